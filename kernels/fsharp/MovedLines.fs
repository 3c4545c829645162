/// Where lines of a source file, as it was built, stand in it as it is saved. Pure.
module Mainstay.Worker.MovedLines

open Mainstay.Worker.Outline

/// Where built lines are now.
type Place =
    /// In these lines.
    | At of first: int * last: int
    /// Somewhere in these lines of the declaration that they were in.
    | Within of first: int * last: int
    /// Nowhere: their declaration is gone.
    | Gone
    /// What is saved is not what runs.
    | NotKnown

/// A file in two versions, and whether a declaration of the saved version is what runs.
type Versions =
    { Built: Outline
      Saved: Outline
      Runs: Item -> bool }

let private itemAround (outline: Outline) (line: int) : Item option =
    outline.Items |> List.filter (fun item -> item.Line <= line && line <= item.EndLine) |> List.sortBy (fun item -> item.EndLine - item.Line) |> List.tryHead

/// The same declaration in the saved version.
let private savedItem (versions: Versions) (item: Item) : Item option = versions.Saved.Items |> List.tryFind (fun one -> one.Key = item.Key)

/// The lines of a declaration that have code, as far as that shows: those below its head, where it has any.
let linesOf (item: Item) : int * int = (if item.EndLine > item.Line && item.Kind = Function then item.Line + 1 else item.Line), item.EndLine

/// How far what stands before a line has moved.
let private shiftBefore (versions: Versions) (line: int) : int =
    let ofItems = versions.Built.Items |> List.choose (fun item -> savedItem versions item |> Option.map (fun now -> item.EndLine, now.EndLine))
    let ofRest =
        versions.Built.Rest |> List.choose (fun one ->
            versions.Saved.Rest |> List.tryFind (fun now -> now.What = one.What && now.Text = one.Text) |> Option.map (fun now -> one.Line, now.Line))
    match ofItems @ ofRest |> List.filter (fun (built, _) -> built <= line) |> List.sortBy fst |> List.tryLast with
    | Some (built, saved) -> saved - built
    | None -> 0

/// Where lines of the built version are now.
let placeOf (versions: Versions) (first: int, last: int) : Place =
    match itemAround versions.Built first with
    | Some item ->
        (match savedItem versions item with
         | None -> Gone
         | Some now when not (versions.Runs now) -> NotKnown
         | Some now when now.EndLine - now.Line = item.EndLine - item.Line -> At(first + now.Line - item.Line, last + now.Line - item.Line)
         | Some now -> Within(linesOf now))
    | None ->
        let shift = shiftBefore versions first
        let lineOf (outline: Outline) (line: int) = if line >= 1 && line <= outline.Lines.Length then Some(outline.Lines.[line - 1].Trim()) else None
        if lineOf versions.Built first = lineOf versions.Saved (first + shift) then At(first + shift, last + shift) else NotKnown
