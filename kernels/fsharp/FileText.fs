/// The text of a source file, by the places that the tree of the compiler gives. Pure.
module Mainstay.Worker.FileText

open System
open Mainstay.Worker.Syntax

/// The lines that begin inside a string: they mean what they are, and are never moved.
let private linesInStrings (roots: Placed list) : Set<int> =
    roots
    |> Seq.collect below
    |> Seq.filter (fun part ->
        (part.Union = "SynExpr" && (part.Case = "Const" || part.Case = "InterpolatedString")) || (part.Union = "SynPat" && part.Case = "Const"))
    |> Seq.filter (fun part -> part.Place.EndLine > part.Place.Line)
    |> Seq.collect (fun part -> seq { part.Place.Line + 1 .. part.Place.EndLine })
    |> Set.ofSeq

/// A file's lines. Which of them begin in a string is known of its tree.
type FileText(lines: string[], roots: Placed list) =
    let inString = linesInStrings roots

    member _.Lines = lines

    /// The lines that begin inside a string.
    member _.InString = inString

    /// The text between two places by which versions are compared: without blank lines, and without lines of comments where no line can be in
    /// a comment of another kind.
    member text.Of(place: Place) : string =
        let hasBlocks = seq { place.Line .. place.EndLine } |> Seq.exists (fun number -> lines.[number - 1].Contains "(*" || lines.[number - 1].Contains "*)")
        seq {
            for number in place.Line .. place.EndLine do
                let line = lines.[number - 1]
                let line = if number = place.EndLine then line.Substring(0, min line.Length place.EndColumn) else line
                let line = if number = place.Line then String(' ', min place.Column line.Length) + line.Substring(min place.Column line.Length) else line
                let trimmed = line.TrimStart()
                if inString.Contains number || inString.Contains(number + 1) then yield line
                elif trimmed <> "" && (hasBlocks || not (trimmed.StartsWith("//", StringComparison.Ordinal))) then yield line.TrimEnd()
        }
        |> String.concat "\n"

    /// All of a part, without its layout.
    member text.WithoutLayout(part: Placed) : string = Layout.without (fun _ -> false) (text.Of part.Place) [ part ]

    /// Whether nothing else stands in its lines.
    member text.HasItsLines(place: Place) : bool =
        String.IsNullOrWhiteSpace(lines.[place.Line - 1].Substring(0, min place.Column lines.[place.Line - 1].Length))
        && (let last = lines.[place.EndLine - 1]
            let behind = last.Substring(min place.EndColumn last.Length).Trim()
            behind = "" || behind.StartsWith("//", StringComparison.Ordinal))

    /// The characters of a place within one line.
    member _.Within(place: Place) : string = lines.[place.Line - 1].Substring(place.Column, place.EndColumn - place.Column)

    /// What stands behind a column of a line.
    member _.Behind(line: int, column: int) : string = lines.[line - 1].Substring(min column lines.[line - 1].Length)

    /// The names of attributes, which stand flat among the parts of what they are on, and the text that each was given.
    member text.Attributes(part: Placed) : (string * string) list =
        let rec read (parts: Placed list) =
            match parts with
            | name :: argument :: more when isLongName name ->
                (match words name |> List.tryLast with
                 | Some last when argument.Union = "SynExpr" -> [ (last.Replace("Attribute", ""), text.Of argument.Place) ]
                 | _ -> [])
                @ read (argument :: more)
            | _ :: more -> read more
            | [] -> []
        read part.Parts
