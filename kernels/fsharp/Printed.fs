/// Finds the values in what the interactive session printed (`val x : int = 3`). They are taken from there, rather than formatted once
/// more, because formatting can run the client's code: a sequence is evaluated, `ToString` is called.
module Mainstay.Worker.Printed

open System

/// Something the printed text announces, in the order it does.
type Announced =
    /// A name with `val` in front of it; `Holds` is false for a function, which prints no value.
    | Named of name: string * holds: bool
    /// A type, module or exception.
    | Other

let private otherStarts = [ "type "; "module "; "exception "; "namespace "; "[<" ]

/// The index of the first line at or after `start` that satisfies `isWanted`, or -1.
let rec private lineWhere (isWanted: int -> bool) (text: string) start =
    if start >= text.Length then -1
    elif isWanted start then start
    else
        match text.IndexOf('\n', start) with
        | -1 -> -1
        | next -> lineWhere isWanted text (next + 1)

let private startsAt (text: string) (index: int) (token: string) = String.CompareOrdinal(text, index, token, 0, token.Length) = 0

/// The index after `val mutable name` where the line at `index` announces that name, or -1.
let private afterHeader (name: string) (text: string) index =
    if not (startsAt text index "val ") then -1
    else
        let skip (token: string) at = if startsAt text at token then at + token.Length else at
        let at = index + 4 |> skip "mutable " |> skip "inline "
        let past = at + name.Length
        if startsAt text at name && (startsAt text past ":" || startsAt text past " :") then past else -1

let private isHeader name text index = afterHeader name text index >= 0

let private startsOther text index = otherStarts |> List.exists (startsAt text index)

/// Lines below the first lose the indentation that only aligns them with the first. A line of a string in the value has none.
let private alignLeft (indent: int) (value: string) =
    let margin = String(' ', indent)
    let unindent (line: string) = if line.StartsWith(margin, StringComparison.Ordinal) then line.Substring indent else line
    value.Split '\n' |> Array.mapi (fun index line -> if index = 0 then line else unindent line) |> String.concat "\n"

/// The value in an entry, which is the text from a header to the next.
let private valueIn (entry: string) =
    match entry.IndexOf(" =", StringComparison.Ordinal) with
    | -1 -> None
    | equals ->
        let rest = entry.Substring(equals + 2).TrimEnd()
        if rest.StartsWith(" ", StringComparison.Ordinal) then
            let column = equals + 3 - (entry.LastIndexOf('\n', equals) + 1)
            Some(alignLeft column (rest.Substring 1))
        elif rest.StartsWith("\n", StringComparison.Ordinal) then
            let body = rest.Substring 1
            let indent = body.Length - body.TrimStart(' ').Length
            Some(alignLeft indent (body.Substring indent))
        else None

/// The values printed for the announced names, in their order; None where none was printed.
let values (announced: Announced list) (text: string) : string option list =
    let hasOther = List.contains Other announced
    let rec read start (rest: Announced list) found =
        match rest with
        | [] -> List.rev found
        | Other :: rest -> read start rest found
        | Named (name, holds) :: rest ->
            match lineWhere (isHeader name text) text start with
            | -1 -> read start rest (None :: found)
            | line ->
                let past = afterHeader name text line
                let isNext index =
                    (match rest |> List.tryPick (function Named (next, _) -> Some next | Other -> None) with
                     | Some next -> isHeader next text index
                     | None -> false)
                    || (hasOther && startsOther text index)
                let stop =
                    match text.IndexOf('\n', past) with
                    | -1 -> text.Length
                    | lineEnd ->
                        match lineWhere isNext text (lineEnd + 1) with
                        | -1 -> text.Length
                        | next -> next
                let value = if holds then valueIn (text.Substring(line, stop - line)) else None
                read stop rest (value :: found)
    read 0 announced []

/// The parts of a text in which so many definitions each are announced: a definition begins at the margin, maybe with attributes on a line of
/// their own, and what belongs to it is indented. None where they are not as many as are announced.
let parts (counts: int list) (text: string) : string list option =
    let isAttribute (line: string) = line.StartsWith("[<", StringComparison.Ordinal)
    let add (found: string list list) (line: string) =
        match found with
        | current :: earlier when line = "" || line.[0] = ' ' || isAttribute (List.head current) -> (line :: current) :: earlier
        | _ -> [ line ] :: found
    let textOf (lines: string list) = lines |> String.concat "\n" |> fun text -> text.Trim '\n'
    let definitions = ([], text.Split '\n') ||> Array.fold add |> List.rev |> List.map (List.rev >> textOf)
    if List.length definitions <> List.sum counts then None
    else
        let take (rest: string list, found: string list) count = List.skip count rest, textOf (List.take count rest) :: found
        ((definitions, []), counts) ||> List.fold take |> snd |> List.rev |> Some
