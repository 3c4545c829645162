/// What is different between two versions of a source file: the declarations that can be replaced alone, and all that keeps the new
/// version from being one with other functions only. Pure.
module Mainstay.Worker.Difference

open System
open Mainstay.Worker.Outline

/// Why a change cannot be swapped in.
type Reason =
    { /// A stable word for the reason.
      Code: string
      /// What changed, by its name.
      Name: string
      /// Where, in the new version; lines count from 1.
      Line: int
      /// The reason, for people.
      Words: string }

/// What has the same text in both versions, and before which something else is opened.
type Reopened =
    { /// The declaration, where it is one that can be replaced alone.
      Item: Item option
      /// What it is, and where it stands in the new version.
      What: string
      Line: int
      Words: Set<string>
      /// What is opened otherwise, each with all that is opened before it.
      Opens: (Opening list * string) list
      /// What is opened after that in both versions, which may be something else now.
      After: string list }

type Difference =
    { /// Declarations that both versions have, with other texts, as the new one has them.
      Changed: Item list
      /// Those with the same text that may mean something else, each with the names that are new or gone.
      Affected: (Item * string list) list
      /// What has the same text, and before which something else is opened.
      Reopened: Reopened list
      /// Declarations that only the new version has.
      Added: Item list
      /// Declarations that only the old version has.
      Removed: Item list
      Obstacles: Reason list }

let private obstacle code name line words = { Code = code; Name = name; Line = line; Words = words }

/// Calls that tell which assembly or method runs, which would be the replacement.
let private selfAware = Set.ofList [ "GetExecutingAssembly"; "GetCallingAssembly"; "GetCurrentMethod" ]

/// Attributes that a function has only for its compiler.
let private ofCompiler = Set.ofList [ "CompiledName"; "MethodImpl"; "TailCall"; "Struct" ]

let private keyOf (item: Item) = sprintf "%A" item.Key

/// The declarations and the rest in the order of the file.
let private sequenceOf (outline: Outline) : string list =
    (outline.Items |> List.map (fun item -> item.Line, keyOf item)) @ (outline.Rest |> List.map (fun one -> one.Line, one.What + "\n" + one.Text))
    |> List.sortBy fst
    |> List.map snd

/// Why one declaration of the new version cannot replace that of the old one.
let obstaclesOf (item: Item) : Reason list =
    let at code reason = Some(obstacle code item.Shown item.Line reason)
    let hidden = match item.Kind with Member one -> Set.intersect item.Words one.Hidden | Function | Value -> Set.empty
    let isMember = match item.Kind with Member _ -> true | Function | Value -> false
    [ item.Fixed |> Option.bind (at "fixed")
      (if item.Text.Contains "{|" then at "anonymous_record" "it has an anonymous record, whose type belongs to the assembly" else None)
      (if Set.isEmpty (Set.intersect item.Words selfAware) then None else at "self_aware" "it asks which assembly or method runs")
      (if Set.isEmpty hidden then None
       else at "constructor_state" ("it uses `" + Seq.head hidden + "`, which only the type's own code can see"))
      (if isMember && item.Words.Contains "base" then at "base_call" "it calls its base type" else None) ]
    |> List.choose id

/// The names that a declaration gives, as code mentions them.
let namesOf (outline: Outline) (item: Item) : Declared list =
    outline.Declared |> List.filter (fun one -> item.Line <= one.Line && one.Line <= item.EndLine)

/// Whether code with these words can mean a name: where that does not show itself, its module has to be named.
let private canMean (isShown: Declared -> bool) (words: Set<string>) (name: Declared) : bool =
    words.Contains name.Name && (isShown name || words.Contains(List.last name.Path))

/// The same of a declaration of the file itself.
let canMeanWithin (item: Item) (name: Declared) : bool =
    let opened = item.Openings |> List.map (function Opens text -> wordsIn text | Own _ -> Set.empty) |> Set.unionMany
    canMean (fun name -> List.truncate name.Path.Length item.Scope.Path = name.Path) (item.Words + opened) name

/// What is opened in one of two versions only, or in another order, each with all that is opened before it; and what is opened after that.
let private openedOtherwise (before: Opening list) (after: Opening list) : (Opening list * string) list * string list =
    let inContext (all: Opening list) = all |> List.mapi (fun index one -> match one with Opens text -> Some(List.truncate index all, text) | Own _ -> None) |> List.choose id
    let texts all = inContext all |> List.map snd
    let shared = Set.intersect (Set.ofList (texts before)) (Set.ofList (texts after))
    let inBoth all = texts all |> List.filter shared.Contains
    if inBoth before <> inBoth after then inContext before @ inContext after, []
    else
        let isOther (_, text) = not (shared.Contains text)
        let behind all = inContext all |> List.skipWhile (isOther >> not) |> List.map snd |> List.filter shared.Contains
        (inContext before @ inContext after) |> List.filter isOther, List.distinct (behind before @ behind after)

/// The difference of two versions of a file. `others` has the words of the project's other files, by the name of the file.
let between (others: (string * Set<string>) list) (before: Outline) (after: Outline) : Difference =
    let known = before.Items |> List.map (fun item -> keyOf item, item) |> Map.ofList
    let present = after.Items |> List.map (fun item -> keyOf item, item) |> Map.ofList
    let changed =
        after.Items |> List.filter (fun item ->
            match known.TryFind(keyOf item) with
            | Some old -> old.Text <> item.Text
            | None -> false)
    let added = after.Items |> List.filter (fun item -> not (known.ContainsKey(keyOf item)))
    let removed = before.Items |> List.filter (fun item -> not (present.ContainsKey(keyOf item)))
    let staying = after.Items |> List.filter (fun item -> match known.TryFind(keyOf item) with Some old -> old.Text = item.Text | None -> false)
    let ofRest =
        let texts (outline: Outline) = outline.Rest |> List.map (fun one -> one.What, one.Text) |> Set.ofList
        let old, current = texts before, texts after
        let news = after.Rest |> List.filter (fun one -> not (old.Contains(one.What, one.Text)))
        let gone = before.Rest |> List.filter (fun one -> not (current.Contains(one.What, one.Text)) && news |> List.forall (fun other -> other.What <> one.What))
        (news |> List.map (fun one -> obstacle "shape" one.What one.Line (one.What + " changed")))
        @ (gone |> List.map (fun one -> obstacle "shape" one.What 1 (one.What + " is gone")))
    let ofOrder =
        let common = Set.intersect (Set.ofList (sequenceOf before)) (Set.ofList (sequenceOf after))
        let inBoth outline = sequenceOf outline |> List.filter common.Contains
        // What a declaration sees of its own module and of what is opened depends on which stands first.
        let above (outline: Outline) =
            let places = (outline.Items |> List.map (fun item -> item.Line, keyOf item)) @ (outline.Rest |> List.map (fun one -> one.Line, one.What + "\n" + one.Text))
            outline.Opens |> List.map (fun (text, line) -> text, places |> List.filter (fun (at, key) -> at < line && common.Contains key) |> List.map snd |> Set.ofList) |> Map.ofList
        let opensBefore, opensAfter = above before, above after
        let isMoved = opensBefore |> Map.exists (fun text seen -> match opensAfter.TryFind text with Some now -> now <> seen | None -> false)
        if List.isEmpty ofRest && (inBoth before <> inBoth after || isMoved) then [ obstacle "order" "the declarations" 1 "the declarations stand in another order" ] else []
    let ofAttributes (what: string) (finds: string) (items: Item list) =
        items |> List.choose (fun item ->
            item.Attributes |> List.tryFind (fun (name, _) -> not (ofCompiler.Contains name)) |> Option.map (fun (name, _) ->
                obstacle "attribute" item.Shown item.Line ("it is " + what + ", and whoever looks for `" + name + "` " + finds + " in what was built")))
    let reopened =
        let ofItem (item: Item) =
            match known.TryFind(keyOf item) with
            | Some old when old.Text = item.Text -> [ (item, old.Openings, item.Openings) ]
            | _ -> []
        let ofPart (part: Rest) =
            match before.Rest |> List.tryFind (fun old -> old.What = part.What && old.Text = part.Text) with
            | Some old -> [ (part, old.Openings, part.Openings) ]
            | None -> []
        [ for item, old, current in List.collect ofItem after.Items do
            match openedOtherwise old current with
            | [], _ -> ()
            | opens, later -> { Item = Some item; What = item.Shown; Line = item.Line; Words = item.Words; Opens = opens; After = later }
          for part, old, current in List.collect ofPart after.Rest do
            match openedOtherwise old current with
            | [], _ -> ()
            | opens, later -> { Item = None; What = part.What; Line = part.Line; Words = wordsIn part.Text; Opens = opens; After = later } ]
    let isOperator (item: Item) = item.Names |> List.exists (fun name -> name.StartsWith("op_", StringComparison.Ordinal))
    let ofNames (what: string) (outline: Outline) (items: Item list) =
        items |> List.choose (fun item ->
            let names = namesOf outline item
            let isShown (name: Declared) = name.Path.Length <= item.Scope.Namespace.Length
            // What stands above something that is new does not see it.
            let sees line = what <> "new" || item.IsRecursiveScope || line > item.Line
            let inValue = staying |> List.tryFind (fun one -> one.Kind = Value && sees one.Line && List.exists (canMeanWithin one) names) |> Option.map (fun one -> one.Shown)
            let inRest = after.Rest |> List.filter (fun one -> sees one.Line) |> List.tryFind (fun one -> let words = wordsIn one.Text in names |> List.exists (fun name -> words.Contains name.Name)) |> Option.map (fun one -> one.What)
            let elsewhere = others |> List.tryFind (fun (_, words) -> names |> List.exists (canMean isShown words)) |> Option.map fst
            let anywhere = if isOperator item then Some "other code" else None
            match item.Kind, List.tryPick id [ inValue; inRest; elsewhere; anywhere ] with
            | Member _, _ -> Some(obstacle "member" item.Shown item.Line ("the member is " + what + ", so its type has another shape"))
            | _, Some place -> Some(obstacle "name" item.Shown item.Line ("it is " + what + ", and " + place + " mentions a name of it, which may mean something else now"))
            | _, None -> None)
    let affected =
        let names = (added |> List.collect (namesOf after)) @ (removed |> List.collect (namesOf before))
        [ for item in staying do
            match names |> List.filter (canMeanWithin item) with
            | _ :: _ as names when item.Kind <> Value -> item, (names |> List.map (fun name -> name.Name))
            | _ -> () ]
    { Changed = changed
      Affected = affected
      Reopened = reopened
      Added = added
      Removed = removed
      Obstacles =
        ofRest
        @ ofOrder
        @ (changed @ List.map fst affected @ added |> List.collect obstaclesOf)
        @ (changed |> List.choose (fun item ->
            if known.[keyOf item].Attributes = item.Attributes then None
            else Some(obstacle "attribute" item.Shown item.Line "its attributes changed, which stay as they were built")))
        @ ofAttributes "new" "does not find it" added
        @ ofAttributes "gone" "still finds it" removed
        @ (changed |> List.choose (fun item ->
            match known.[keyOf item].Fixed with
            | Some reason when item.Fixed.IsNone -> Some(obstacle "fixed" item.Shown item.Line ("before, " + reason))
            | _ -> None))
        @ ofNames "new" after added
        @ ofNames "gone" before removed }
