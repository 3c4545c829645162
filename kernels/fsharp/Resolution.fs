/// Whether the names in declarations that are compiled beside their file resolve to what they resolve to within it. Pure, but for what the
/// compiler tells of its symbols.
///
/// A submission sees more than a file does: also what stands below a declaration, and in later files. Where a name resolved to something that
/// the declaration sees in its file too, nothing that it sees less could have come before that. What remains is the order in which names
/// become visible, and where that is not certain the submission is checked in each order.
module Mainstay.Worker.Resolution

open System
open System.Text.RegularExpressions
open Mainstay.Worker.Compat
open Mainstay.Worker.Outline
open Mainstay.Worker.Slices

/// Where something is declared that a name resolved to.
type Declaration =
    /// In no source of the project.
    | Outside
    /// In the source that an assembly was built from, at a line.
    | InFile of file: string * line: int
    /// In this submission.
    | InSlice of Slice
    /// In the module of an earlier one.
    | InEarlier of name: string

/// A name in a slice, and what it resolved to.
type Mention =
    { Slice: Slice
      /// The line in its file.
      Line: int
      /// The column in the submission, which tells the names of a line apart.
      Column: int
      Name: string
      /// What it resolved to; no two things have the same.
      Target: string
      Declaration: Declaration
      /// The path of the module or type that alone may use it, where it is private.
      PrivateTo: string list option
      /// Whether it is a field or a member of an object, which no function hides.
      IsOfObject: bool
      /// Whether it is a member that extends a type from outside.
      IsExtension: bool }

let private moduleOfSwap = Regex(@"\bSwapped\d+\b", RegexOptions.CultureInvariant)

let private fullName (symbol: Symbol) = try symbol.FullName with _ -> symbol.DisplayName

/// Of overloads, which one.
let private overload (symbol: Symbol) =
    match symbol with
    | :? Member as one -> (try one.XmlDocSig + one.FullType.Format DisplayContext.Empty with _ -> "")
    | _ -> ""

/// Whether something is private; the service says that of what is internal to another assembly, too.
let private isPrivate (access: Access) : bool =
    let isOfAssembly (path: obj) = Seq.isEmpty (Insides.itemsOf (Insides.get "AccessPath" path))
    access.IsPrivate
    && not (try Insides.itemsOf (Insides.fieldOfCase "compilationPaths" (Insides.get "Contents" access)) |> List.forall isOfAssembly with _ -> false)

/// The path of the module or type in which something private is declared.
let private privateTo (symbol: Symbol) : string list option =
    let pathOf (entity: Entity) = [ (if entity.AccessPath = "global" then "" else entity.AccessPath); entity.DisplayName ] |> List.collect (fun part -> List.ofArray (part.Split([| '.' |], StringSplitOptions.RemoveEmptyEntries)))
    let around (entity: Entity) =
        let path = pathOf entity
        // What is in a private module is seen where that is.
        let isInPrivate = entity.DeclaringEntity |> Option.exists (fun owner -> isPrivate owner.Accessibility)
        Some(List.truncate (path.Length - (if isInPrivate then 2 else 1)) path)
    match symbol with
    | :? Member as one when isPrivate one.Accessibility ->
        // What is in a private module is seen where that is.
        one.DeclaringEntity |> Option.map (fun owner -> let path = pathOf owner in if isPrivate owner.Accessibility then List.truncate (path.Length - 1) path else path)
    | :? Entity as entity when isPrivate entity.Accessibility -> around entity
    | :? Field as field ->
        (match field.DeclaringEntity with
         | Some owner when isPrivate owner.Accessibility -> around owner
         | _ -> None)
    | _ -> None

let private isOfObject (symbol: Symbol) : bool =
    match symbol with
    | :? Member as one -> one.IsInstanceMember
    | :? Field -> true
    | _ -> false

let private isNamespace (symbol: Symbol) = match symbol with :? Entity as entity -> entity.IsNamespace | _ -> false

/// What the names of a submission resolved to, of which these are the lines. `isOwn` tells of an assembly of the project.
let mentionsOf (isOwn: string -> bool) (lines: Line[]) (uses: SymbolUse seq) : Mention list =
    let originOf (line: int) = if line >= 1 && line <= lines.Length then lines.[line - 1].Origin else None
    [ for found in uses do
        let place = placeOfUse found
        match originOf place.StartLine with
        | Some (slice, line) when not found.IsFromDefinition && not (isNamespace found.Symbol) ->
            let symbol = found.Symbol
            let location = declarationOf symbol
            // Where it is in a submission depends on the order of what is opened above it, and is no part of what it is.
            let declaration, where =
                match location with
                | Some at when at.FileName = place.FileName ->
                    (match originOf at.StartLine with
                     | Some (other, line) -> InSlice other, sprintf "%s %d %d" other.Module line at.StartColumn
                     | None -> InSlice slice, slice.Module)
                | Some at when isOwn symbol.Assembly.SimpleName -> InFile(at.FileName, at.StartLine), sprintf "%O" location
                | _ ->
                    let earlier = moduleOfSwap.Match(fullName symbol)
                    (if earlier.Success then InEarlier earlier.Value else Outside), sprintf "%O" location
            { Slice = slice
              Line = line
              Column = place.StartColumn
              Name = symbol.DisplayName
              Target = sprintf "%s %s %s" (fullName symbol) where (overload symbol)
              Declaration = declaration
              PrivateTo = (try privateTo symbol with _ -> None)
              IsOfObject = (try isOfObject symbol with _ -> false)
              IsExtension = (match symbol with :? Member as one -> (try one.IsExtensionMember with _ -> false) | _ -> false) }
        | _ -> () ]

/// Other orders in which names could become visible to a declaration of a file, where the usual one is not certain.
let otherOrders (outline: Outline) (item: Item) : Opening list list =
    let own, opens = item.Openings |> List.partition (function Own _ -> true | Opens _ -> false)
    let isNamedInNamespace =
        outline.Declared |> List.exists (fun one -> one.Path = item.Scope.Namespace && one.Line < item.Line && item.Words.Contains one.Name)
    let opensLate = outline.LateOpens |> List.exists (fun (path, line) -> line < item.Line && isAround path item.Scope.Path)
    [ // What its namespace has from earlier files comes before what it opens, and what it has from this file behind that.
      if isNamedInNamespace && not (List.isEmpty opens) then yield item.Openings @ own
      // What is opened in the middle of a module hides what stands above it there.
      if opensLate then yield own @ opens ]

/// The names that resolved to something else in another order.
let differing (usual: Mention list) (other: Mention list) : Mention list =
    let keyOf (one: Mention) = one.Slice.Module, one.Line, one.Column
    let targets (mentions: Mention list) = mentions |> List.groupBy keyOf |> List.map (fun (key, all) -> key, all |> List.map (fun one -> one.Target) |> List.sort) |> Map.ofList
    let others = targets other
    usual
    |> List.groupBy keyOf
    |> List.filter (fun (key, all) -> others.TryFind key <> Some(all |> List.map (fun one -> one.Target) |> List.sort))
    |> List.map (fun (_, all) -> all.Head)

/// What is known of the project's sources.
type Sources =
    { /// A file as it was built.
      Built: string -> Outline option
      /// A file as it is now, where it has changed since.
      Now: string -> Outline option
      /// Where a file stands in the order of the build.
      Place: string -> int option
      /// The declaration that an earlier submission's module has, with its file.
      Earlier: string -> (string * Item) option
      /// Whether something else is used in the place of a declaration of the build, by its file.
      IsReplaced: string -> Item -> bool }

/// What stands at a line of a file: a declaration of its own, or what holds it.
type private Found =
    | Whole of Item
    | Part of Rest

/// What is declared at a line of a file. A member is seen where its type is.
let private declaredAt (outline: Outline) (line: int) : Found option =
    match outline.Items |> List.tryFind (fun item -> item.OfType.IsNone && item.Line <= line && line <= item.EndLine) with
    | Some item -> Some(Whole item)
    | None ->
        match outline.Rest |> List.filter (fun one -> one.Line <= line) with
        | [] -> None
        | before -> before |> List.maxBy (fun one -> one.Line) |> Part |> Some

/// The line from which on something that was built is seen in the file as it is now; None where it is gone.
let private seenFrom (built: Outline) (now: Outline) (found: Found) : int option =
    match found with
    | Whole item -> now.Items |> List.tryFind (fun one -> one.Key = item.Key) |> Option.map (fun one -> one.Line)
    | Part rest ->
        // Of several that are alike, the one in the same place.
        let alike (outline: Outline) = outline.Rest |> List.filter (fun one -> one.What = rest.What && one.Text = rest.Text)
        let number = alike built |> List.findIndex (fun one -> one.Line = rest.Line)
        alike now |> List.tryItem number |> Option.map (fun one -> one.From)

/// Why a declaration does not see in its file what a name of it resolved to, as a stable word and for people; None where it does.
let obstacleOf (sources: Sources) (mention: Mention) : (string * string) option =
    let item, file = mention.Slice.Item, mention.Slice.File
    let ofLine line =
        if item.IsRecursiveScope || line < item.Line then None
        elif line = item.Line then Some("own_name", "which it gives itself")
        else Some("declared_below", "which line " + string line + " declares below it")
    let ofOtherFile (other: string) =
        match sources.Place file, sources.Place other with
        | Some own, Some place when place < own -> None
        | _ -> Some("declared_below", "which " + IO.Path.GetFileName other + " declares, a later file")
    let ofItem (other: string) (found: Item) = if other = file then ofLine found.Line else ofOtherFile other
    let gone = Some("name", "which is gone")
    // The members of a type see one another.
    let ofOneType (other: Item) =
        match item.Kind, other.Kind with
        | Member one, Member own -> item.Scope = other.Scope && one.Type = own.Type
        | _ -> false
    let standing = match item.Kind with Member one -> item.Scope.Path @ [ one.Type ] | Function | Value -> item.Scope.Path
    match mention.Declaration with
    | InFile _ when mention.PrivateTo |> Option.exists (fun path -> not (isAround path standing)) -> Some("declared_below", "which is private where it is declared")
    | Outside -> None
    | InSlice other when other.Module = mention.Slice.Module -> None
    | InSlice other when other.File = file && ofOneType other.Item -> None
    | InSlice other -> ofItem other.File other.Item
    | InEarlier name ->
        match sources.Earlier name with
        | Some (other, found) -> ofItem other found
        | None -> gone
    | InFile (other, line) ->
        match sources.Built other |> Option.bind (fun built -> declaredAt built line |> Option.map (fun found -> built, found)), sources.Now other with
        | Some (built, found), Some now ->
            match seenFrom built now found with
            | None -> gone
            | Some _ when (match found with Whole item -> sources.IsReplaced other item | Part _ -> false) -> Some("ambiguous", "which has another signature since the build")
            | Some line when other = file -> ofLine line
            | Some _ -> ofOtherFile other
        | _, _ -> if other = file then None else ofOtherFile other
