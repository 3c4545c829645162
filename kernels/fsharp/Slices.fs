/// The text of the submission in which changed declarations are compiled: each in a module of its own, behind what its file opens, at the
/// lines and columns that it has in its file. Pure.
module Mainstay.Worker.Slices

open System
open System.Collections.Generic
open System.Text
open System.Text.RegularExpressions
open Mainstay.Worker.Outline

/// A declaration as it is compiled.
type Slice =
    { Item: Item
      /// The file that it is from.
      File: string
      /// The module that it is compiled in.
      Module: string
      /// The modules in that one in which it stands, by the names of those that it has in its file: what is new is seen by them.
      Within: string list
      /// The names of its functions in that module.
      Names: string list }

/// A compiled declaration that others of the project may see.
type Visible =
    { /// The file that it is from, and the namespaces and modules in that.
      File: string
      Path: string list
      /// The module that it was compiled in, and whether it stands there in modules as in its file.
      Module: string
      IsNested: bool
      Reach: Reach }

/// A name as code has it.
let private inCode (name: string) = if Regex.IsMatch(name, @"^\w+$", RegexOptions.CultureInvariant) then name else "``" + name + "``"

/// A path as code has it. It begins at the root: the standard library has a `Core`, too, which a short path may mean.
let pathInCode (path: string list) : string = "global." + String.Join(".", path |> List.map inCode)

let private access = Regex(@"\b(private|internal)\b", RegexOptions.CultureInvariant)

let private headEnd = Regex(@"=|\bfunction\b", RegexOptions.CultureInvariant)

let private entryPoint = Regex(@"(?<=\[<[^>]*)\bEntryPoint(?:Attribute)?\b\s*;?", RegexOptions.CultureInvariant)

let private noAttribute = Regex(@"\[<\s*>\]", RegexOptions.CultureInvariant)

let private blank (found: Match) = String(' ', found.Length)

/// A line without the mark of where the program begins, which only the last file of one may have.
let private withoutEntryPoint (line: string) : string =
    if entryPoint.IsMatch line then noAttribute.Replace(entryPoint.Replace(line, blank), blank) else line

/// A line as it reads where its declaration is compiled alone.
let private rewritten (item: Item) (number: int) (line: string) : string =
    let rewrite (text: string) (one: Rewriting) = text.Substring(0, one.Column) + one.Text + text.Substring(one.Column + one.Length)
    item.Rewritten |> List.filter (fun one -> one.Line = number) |> List.sortByDescending (fun one -> one.Column) |> List.fold rewrite line

/// A binding's text whose own access words are blank: they stand between `let` or `and` and the name.
let private opened (line: string) : string =
    let isHead = Regex.IsMatch(line, @"^\s*(?:\[<.*?>\]\s*)*(?:let|and)\b", RegexOptions.CultureInvariant)
    if not isHead then line
    else
        let stop = match headEnd.Match line with found when found.Success -> found.Index | _ -> line.Length
        let start = Regex.Match(line, @"\b(?:let|and)\b", RegexOptions.CultureInvariant).Index
        if start >= stop then line
        else line.Substring(0, start) + access.Replace(line.Substring(start, stop - start), blank, 1) + line.Substring stop

/// The lines of a declaration, blank where others stand in them.
let private linesOf (outline: Outline) (item: Item) (from: int * int) : (int * string) list =
    let firstLine, firstColumn = from
    [ for number in firstLine .. item.EndLine do
        let line = outline.Lines.[number - 1]
        number, (if number = firstLine then String(' ', min firstColumn line.Length) + line.Substring(min firstColumn line.Length) else line) ]

/// The function's name and its object, as a function of a module has them.
let private headOf (owner: MemberOf) (isStruct: bool) (name: string) : string =
    let kind = if List.isEmpty owner.Parameters then owner.Type else owner.Type + "<" + String.Join(", ", owner.Parameters) + ">"
    let self = if isStruct then "(" + owner.Self + ": byref<" + kind + ">)" else "(" + owner.Self + ": " + kind + ")"
    match owner.IsStatic, owner.IsProperty || owner.TakesUnit with
    | false, _ -> "let " + name + " " + self
    | true, true -> "let " + name + " ()"
    | true, false -> "let " + name

/// What a declaration is compiled as: lines with their numbers, where they have one.
let private body (outline: Outline) (isStruct: string -> bool) (slice: Slice) : (int option * string) list =
    match slice.Item.Kind with
    | Function
    | Value ->
        linesOf outline slice.Item (slice.Item.Line, slice.Item.Column)
        |> List.map (fun (number, line) -> Some number, (if outline.InString.Contains number then line else opened (withoutEntryPoint (rewritten slice.Item number line))))
    | Member owner ->
        let head = String(' ', slice.Item.Column) + headOf owner (isStruct owner.Type) slice.Names.Head
        (None, head) :: (linesOf outline slice.Item owner.AfterName |> List.map (fun (number, line) -> Some number, rewritten slice.Item number line))

/// A line of a submission, and what it is of: which of the slices, and which line of its file.
type Line =
    { Text: string
      Origin: (Slice * int) option }

/// What makes others visible to a slice: first by their whole names, then where it opens what they stand in.
let private opensFor (slice: Slice) (seen: Visible list) (opening: Opening option) : string list =
    let nested = seen |> List.filter (fun one -> one.IsNested)
    match opening with
    | None -> [ for one in nested do if one.File <> slice.File then "open " + one.Module ]
    | Some (Opens text) -> [ text ]
    | Some (Own path) ->
        [ yield "open " + pathInCode path
          for one in seen do
              if one.IsNested && isAround path one.Path then yield "open " + String.Join(".", one.Module :: List.map inCode path)
              elif not one.IsNested && one.File = slice.File && one.Path = path then yield "open " + one.Module ]

/// The lines that compile these declarations, each with its file and with what tells of a type in that whether it is a structure. `ignoring` has
/// the assemblies whose access rules do not hold for it. `visible` has what earlier submissions compiled, and `sees` tells what of it
/// a slice may see.
let submission (ignoring: string list) (visible: Visible list) (sees: Slice -> Visible -> bool) (slices: (Outline * (string -> bool) * Slice) list) : Line list =
    let lines = List<Line>()
    let add (text: string) = lines.Add { Text = text; Origin = None }
    let mutable known = visible
    for outline, isStruct, slice in slices do
        let item = slice.Item
        let depth = slice.Within.Length
        let shift = String(' ', max 0 (depth + 1 - item.Column))
        let pad = shift + String(' ', item.Column)
        let seen = List.filter (sees slice) known
        add ("module " + slice.Module + " =")
        for number in 1 .. depth do
            if outline.AutoOpen.Contains(List.truncate number slice.Within) then add (String(' ', number) + "[<AutoOpen>]")
            add (String(' ', number) + "module " + inCode slice.Within.[number - 1] + " =")
        for opening in None :: List.map Some item.Openings do
            for line in opensFor slice seen opening do
                add (pad + line)
        for number, content in body outline isStruct slice do
            let isFixed = match number with Some number -> outline.InString.Contains number | None -> false
            let text = if isFixed || content = "" then content else shift + content
            lines.Add { Text = text; Origin = number |> Option.map (fun number -> slice, number) }
        match item.Kind with
        | Function
        | Value -> known <- known @ [ { File = slice.File; Path = item.Scope.Path; Module = slice.Module; IsNested = depth > 0; Reach = item.Reach } ]
        | Member _ -> ()
    for assembly in ignoring do
        add ("[<assembly: System.Runtime.CompilerServices.IgnoresAccessChecksTo(\"" + assembly + "\")>]")
    add "do ()"
    List.ofSeq lines

/// The text of a submission whose code has the places that it has in its files.
let placed (lines: Line list) : string =
    let text = StringBuilder()
    let directive (number: int) (file: string) = text.Append("# ").Append(number).Append(" @\"").Append(file.Replace("\"", "\"\"")).Append("\"\n") |> ignore
    let mutable next: (string * int) option = None
    for line in lines do
        match line.Origin with
        | Some (slice, number) ->
            if next <> Some(slice.File, number) then directive number slice.File
            next <- Some(slice.File, number + 1)
        | None ->
            if next.IsSome then directive 1 "swap"
            next <- None
        text.Append(line.Text).Append('\n') |> ignore
    text.ToString()

/// The text of a submission whose code has the places that it has here.
let plain (lines: Line list) : string = String.Join("\n", lines |> List.map (fun line -> line.Text))
