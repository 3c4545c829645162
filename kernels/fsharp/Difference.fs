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

type Difference =
    { /// Declarations that both versions have, with other texts, as the new one has them.
      Changed: Item list
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

/// How often a name stands in a text outside of its plain strings.
let private countOf (name: string) (text: string) : int =
    let text = System.Text.RegularExpressions.Regex.Replace(text, @"(?<![$""])""(?!"")(?:\\.|[^""\\])*""", "\"\"")
    System.Text.RegularExpressions.Regex.Matches(text, @"(?<![\w'])" + System.Text.RegularExpressions.Regex.Escape name + @"(?![\w'])").Count

/// Why one declaration of the new version cannot replace that of the old one.
let private obstaclesOf (later: (string * string) list) (outline: Outline) (item: Item) : Reason list =
    let at code reason = Some(obstacle code item.Shown item.Line reason)
    let hidden = match item.Kind with Member one -> Set.intersect item.Words one.Hidden | Function | Value -> Set.empty
    let isMember = match item.Kind with Member _ -> true | Function | Value -> false
    let declaredBelow =
        if item.IsRecursiveScope then None
        else
            let isSeen (one: Declared) = List.truncate one.Path.Length item.Scope.Path = one.Path
            let isMeant (name: string) = item.Words.Contains name && not (item.Arguments.Contains name) && not (List.contains name item.Names)
            outline.Declared |> List.tryFind (fun one -> one.Line > item.EndLine && isSeen one && isMeant one.Name)
    let openedLate = outline.LateOpens |> List.exists (fun (path, line) -> line < item.Line && List.truncate (List.length path) item.Scope.Path = path)
    [ item.Fixed |> Option.bind (at "fixed")
      (if item.Text.Contains "{|" then at "anonymous_record" "it has an anonymous record, whose type belongs to the assembly" else None)
      (if Set.isEmpty (Set.intersect item.Words selfAware) then None else at "self_aware" "it asks which assembly or method runs")
      (if Set.isEmpty hidden then None
       else at "constructor_state" ("it uses `" + Seq.head hidden + "`, which only the type's own code can see"))
      (if isMember && item.Words.Contains "base" then at "base_call" "it calls its base type" else None)
      (declaredBelow |> Option.bind (fun one ->
          at "declared_below" ("it mentions `" + one.Name + "`, which line " + string one.Line + " declares below it: which one is meant is not certain")))
      (later |> List.tryFind (fun (name, _) -> item.Words.Contains name && not (item.Arguments.Contains name) && not (List.contains name item.Names)) |> Option.bind (fun (name, file) ->
          at "declared_below" ("it mentions `" + name + "`, which " + file + " declares, a later file: which one is meant is not certain")))
      (if item.IsRecursive || List.forall (fun name -> countOf name item.Text < 2) item.Names then None
       else at "own_name" "it mentions a name that it gives, and stands for something else until then")
      (if openedLate then at "late_open" "it stands behind an `open` in the middle of its module" else None) ]
    |> List.choose id

/// What must not be mentioned by what stays as it is: a name that is there now, or no longer, may change what is meant.
let private mentionedBy (staying: Item list) (rest: Rest list) (names: string list) : string option =
    let wanted = Set.ofList names
    let inItem = staying |> List.tryFind (fun item -> not (Set.isEmpty (Set.intersect item.Words wanted))) |> Option.map (fun item -> item.Shown)
    inItem |> Option.orElseWith (fun () ->
        rest |> List.tryFind (fun one -> not (Set.isEmpty (Set.intersect (wordsIn one.Text) wanted))) |> Option.map (fun one -> one.What))

/// The difference of two versions of a file. `others` has the words of the project's other files, by the name of the file, and `later` the
/// names that files behind it declare in namespaces, with the names of the files.
let between (others: (string * Set<string>) list) (later: (string * string) list) (before: Outline) (after: Outline) : Difference =
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
        if List.isEmpty ofRest && inBoth before <> inBoth after then [ obstacle "order" "the declarations" 1 "the declarations stand in another order" ] else []
    let ofAttributes (what: string) (finds: string) (items: Item list) =
        items |> List.choose (fun item ->
            item.Attributes |> List.tryFind (fun (name, _) -> not (ofCompiler.Contains name)) |> Option.map (fun (name, _) ->
                obstacle "attribute" item.Shown item.Line ("it is " + what + ", and whoever looks for `" + name + "` " + finds + " in what was built")))
    let isOperator (item: Item) = item.Names |> List.exists (fun name -> name.StartsWith("op_", StringComparison.Ordinal) || name.Contains "|")
    let ofNames (what: string) (items: Item list) =
        items |> List.collect (fun item ->
            let elsewhere = others |> List.tryFind (fun (_, words) -> item.Names |> List.exists words.Contains) |> Option.map fst
            let anywhere = if isOperator item then Some "other code" else None
            match item.Kind, mentionedBy staying after.Rest item.Names |> Option.orElse elsewhere |> Option.orElse anywhere with
            | Member _, _ -> [ obstacle "member" item.Shown item.Line ("the member is " + what + ", so its type has another shape") ]
            | _, Some place -> [ obstacle "name" item.Shown item.Line ("it is " + what + ", and " + place + " mentions a name of it, which may mean something else now") ]
            | _, None -> [])
    { Changed = changed
      Added = added
      Removed = removed
      Obstacles =
        ofRest
        @ ofOrder
        @ (changed @ added |> List.collect (obstaclesOf later after))
        @ (changed |> List.choose (fun item ->
            if known.[keyOf item].Attributes = item.Attributes then None
            else Some(obstacle "attribute" item.Shown item.Line "its attributes changed, which stay as they were built")))
        @ ofAttributes "new" "does not find it" added
        @ ofAttributes "gone" "still finds it" removed
        @ (changed |> List.choose (fun item ->
            match known.[keyOf item].Fixed with
            | Some reason when item.Fixed.IsNone -> Some(obstacle "fixed" item.Shown item.Line ("before, " + reason))
            | _ -> None))
        @ ofNames "new" added
        @ ofNames "gone" removed }
