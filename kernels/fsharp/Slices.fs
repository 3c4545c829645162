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
      /// Whether the build has it not, or with another signature: others see what is compiled here.
      IsAdded: bool
      /// The names of its functions in that module.
      Names: string list }

    /// Whether it is a member that its type has not in the build. It is compiled as one that extends the type.
    member slice.IsExtension : bool = slice.IsAdded && slice.Item.IsMember

    /// The modules in its own in which it stands: those that it has in its file, where others see it. A member is seen wherever its type is.
    member slice.Within : string list = if slice.IsAdded && slice.Item.OfType.IsNone then slice.Item.Scope.Path else []

    /// Whether code runs that makes it.
    member slice.IsMade : bool = slice.Item.Kind = Value

/// A compiled declaration that others of the project may see.
type Visible =
    { /// The file that it is from, and the namespaces and modules in that.
      File: string
      Path: string list
      /// The module that it was compiled in, where it stands in modules as in its file.
      Module: string
      /// Whether it is a member, which stands in no other module.
      IsExtension: bool
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

let private memberHead = Regex(@"(?<=\bmember\s+)(?:private|internal)\b", RegexOptions.CultureInvariant)

/// The same of a member.
let private openedMember (line: string) : string = memberHead.Replace(line, blank, 1)

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

/// A slice whose code calls the functions that `let` binds in its type as they were compiled, in the slices that `sliceOf` gives: there they take
/// the object first.
let callingLets (sliceOf: string -> Slice option) (slice: Slice) : Slice =
    let rewritings (owner: MemberOf) (one: LetUse) : Rewriting list =
        match sliceOf one.Function |> Option.bind (fun found -> found.Item.OfType |> Option.map (fun bound -> found.Module, bound)) with
        | None -> []
        | Some (compiled, bound) ->
            let place = one.Place
            let insteadOf (text: string) = { Line = place.Line; Column = place.Column; Length = place.EndColumn - place.Column; Text = text }
            let called = (if compiled = slice.Module then "" else compiled + ".") + inCode one.Function
            match one.Applied with
            | _ when bound.IsStatic -> [ insteadOf called ]
            | _ when bound.TakesUnit -> [ insteadOf ("(fun () -> " + called + " " + owner.Self + ")") ]
            | Apart -> [ insteadOf (called + " " + owner.Self) ]
            | Unapplied -> [ insteadOf ("(" + called + " " + owner.Self + ")") ]
            | Closely (line, column) -> [ insteadOf ("(" + called + " " + owner.Self + " "); { Line = line; Column = column; Length = 0; Text = ")" } ]
    match slice.Item.Kind with
    | Member owner when not (List.isEmpty owner.LetUses) ->
        let ofLets = owner.LetUses |> List.collect (rewritings owner)
        let kind = Member { owner with StateNames = owner.StateNames @ ofLets }
        { slice with Item = { slice.Item with Kind = kind; Rewritten = slice.Item.Rewritten @ ofLets } }
    | _ -> slice

/// What a declaration is compiled as: lines with their numbers, where they have one.
let private body (outline: Outline) (isStruct: string -> bool) (slice: Slice) : (int option * string) list =
    match slice.Item.Kind with
    | Function
    | Value ->
        linesOf outline slice.Item (slice.Item.Line, slice.Item.Column)
        |> List.map (fun (number, line) -> Some number, (if outline.InString.Contains number then line else opened (withoutEntryPoint (rewritten slice.Item number line))))
    | Member owner when owner.IsLet ->
        [ for number, line in linesOf outline slice.Item (slice.Item.Line, slice.Item.Column) do
            let text = rewritten slice.Item number line
            if outline.InString.Contains number then Some number, text
            else for one in text.Split '\n' do Some number, opened one ]
    | Member owner when slice.IsExtension ->
        let kind = String.Join(".", List.map inCode (slice.Item.Scope.Path @ [ owner.Type ]))
        let parameters = if List.isEmpty owner.Parameters then "" else "<" + String.Join(", ", owner.Parameters) + ">"
        let ofMember = { slice.Item with Rewritten = owner.StateNames }
        let isHead (number: int) = number <= fst owner.AfterName
        (None, String(' ', slice.Item.Column) + "type " + kind + parameters + " with")
        :: (linesOf outline slice.Item (slice.Item.Line, slice.Item.Column)
            |> List.map (fun (number, line) -> Some number, (let line = rewritten ofMember number line in if outline.InString.Contains number then line else " " + (if isHead number then openedMember line else line))))
    | Member owner ->
        let head = String(' ', slice.Item.Column) + headOf owner (isStruct owner.Type) slice.Names.Head
        (None, head) :: (linesOf outline slice.Item owner.AfterName |> List.map (fun (number, line) -> Some number, rewritten slice.Item number line))

/// A line of a submission, and what it is of: which of the slices, and which line of its file.
type Line =
    { Text: string
      Origin: (Slice * int) option }

/// What makes others visible to a slice: first by their whole names, then where it opens what they stand in.
let private opensFor (slice: Slice) (seen: Visible list) (opening: Opening option) : string list =
    match opening with
    | None -> [ for one in seen do if one.File <> slice.File || one.IsExtension then "open " + one.Module ]
    | Some (Opens text) -> [ text ]
    | Some (Own path) ->
        [ yield "open " + pathInCode path
          for one in seen do
              if isAround path one.Path && not one.IsExtension then yield "open " + String.Join(".", one.Module :: List.map inCode path) ]

/// The lines that compile these declarations, each with its file and with what tells of a type in that whether it is a structure. `ignoring` has
/// the assemblies whose access rules do not hold for it. `visible` has what earlier submissions compiled, and `sees` tells what of it
/// a slice may see. `gate` runs at the start, and before each value is made.
let submission (ignoring: string list) (visible: Visible list) (sees: Slice -> Visible -> bool) (gate: string) (slices: (Outline * (string -> bool) * Slice) list) : Line list =
    let lines = List<Line>()
    let add (text: string) = lines.Add { Text = text; Origin = None }
    let mutable known = visible
    let addGate (before: string) =
        add ("module Before" + before + " =")
        add (" do " + gate)
    addGate "All"
    for outline, isStruct, slice in slices do
        let item = slice.Item
        let within = slice.Within
        let depth = within.Length
        let shift = String(' ', max 0 (depth + 1 - item.Column))
        let pad = shift + String(' ', item.Column)
        let seen = List.filter (sees slice) known
        if slice.IsMade then addGate slice.Module
        add ("module " + slice.Module + " =")
        for number in 1 .. depth do
            if outline.AutoOpen.Contains(List.truncate number within) then add (String(' ', number) + "[<AutoOpen>]")
            add (String(' ', number) + "module " + inCode within.[number - 1] + " =")
        for opening in None :: List.map Some item.Openings do
            for line in opensFor slice seen opening do
                add (pad + line)
        for number, content in body outline isStruct slice do
            let isFixed = match number with Some number -> outline.InString.Contains number | None -> false
            let text = if isFixed || content = "" then content else shift + content
            lines.Add { Text = text; Origin = number |> Option.map (fun number -> slice, number) }
        // What the build has too is reached by that.
        if slice.IsAdded && not item.IsLet then known <- known @ [ { File = slice.File; Path = item.Scope.Path; Module = slice.Module; IsExtension = slice.IsExtension; Reach = item.Reach } ]
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
