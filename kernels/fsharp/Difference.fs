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

/// Why a name may mean something else than it did.
type Novelty =
    | New
    | Gone
    /// What it names takes or gives something else.
    | Resigned

    /// The same, for people.
    member novelty.Words =
        match novelty with
        | New -> "is new"
        | Gone -> "is gone"
        | Resigned -> "has another signature"

/// A name that only one of two versions gives, or gives to something else.
type News =
    { /// What gives it.
      Of: Item
      Novelty: Novelty
      Name: Declared }

type Difference =
    { /// Declarations that both versions have, with other texts, as the new one has them.
      Changed: Item list
      /// Those with the same text that may mean something else, each with the names that are new or gone.
      Affected: (Item * string list) list
      /// What has the same text, and before which something else is opened.
      Reopened: Reopened list
      /// Declarations that only the new version has, or has with another signature.
      Added: Item list
      /// Declarations that only the old version has.
      Removed: Item list
      /// The names that these give.
      News: News list
      Obstacles: Reason list }

let private obstacle code name line words = { Code = code; Name = name; Line = line; Words = words }

/// Calls that tell which assembly or method runs, which would be the replacement.
let private selfAware = Set.ofList [ "GetExecutingAssembly"; "GetCallingAssembly"; "GetCurrentMethod" ]

/// Attributes that a function has only for its compiler.
let private ofCompiler = Set.ofList [ "CompiledName"; "MethodImpl"; "TailCall"; "Struct" ]

/// Members that code may call without naming them.
let private unnamed = builderMembers + Set.ofList [ "Item"; "GetSlice"; "SetSlice"; "GetReverseIndex"; "GetEnumerator"; "MoveNext"; "Current"; "GetAwaiter"; "Deconstruct" ]

/// Attributes that only compilers and tools read, of code that uses what has them.
let private ofTools =
    Set.ofList
        [ "Obsolete"; "EditorBrowsable"; "CompilerMessage"; "Experimental"; "RequiresExplicitTypeArguments"; "Extension"; "Pure"; "SuppressMessage"
          "UnconditionalSuppressMessage"; "RequiresDynamicCode"; "RequiresUnreferencedCode"; "ExcludeFromCodeCoverage"; "DebuggerStepThrough"; "DebuggerHidden" ]

/// Attributes that make tests of functions, for frameworks whose engines also find tests in what was compiled since the build.
let private ofTests = Set.ofList [ "Fact"; "Theory"; "Test"; "TestCase"; "Property" ]

/// Attributes that such tests may have besides.
let private besideTests = Set.ofList [ "InlineData"; "Trait"; "Category"; "Ignore"; "Explicit" ]

/// Whether a declaration is a test that is found also where it was compiled after the build.
let isTest (item: Item) : bool =
    let isOther (name: string) = not (ofTests.Contains name || besideTests.Contains name || ofCompiler.Contains name || ofTools.Contains name)
    item.Kind = Function
    && List.length item.Names = 1
    && item.Attributes |> List.exists (fun (name, _) -> ofTests.Contains name)
    && not (item.Attributes |> List.exists (fun (name, _) -> isOther name))

/// What stands somewhere in a file, whatever a declaration has in it.
type private Standing =
    | Declaration of Key
    | Other of what: string * text: string

/// The declarations and the rest, each with its line, in the order of the file.
let private sequenceOf (outline: Outline) : (int * Standing) list =
    (outline.Items |> List.map (fun item -> item.Line, Declaration item.Key)) @ (outline.Rest |> List.map (fun one -> one.Line, Other(one.What, one.Text)))
    |> List.sortBy fst

/// Why one declaration of the new version cannot replace that of the old one.
let obstaclesOf (item: Item) : Reason list =
    let at code reason = Some(obstacle code item.Shown item.Line reason)
    let hidden = item.OfType |> Option.bind (fun one -> one.Hidden)
    [ item.Fixed |> Option.bind (at "fixed")
      (if item.NamesAnonymous then at "anonymous_record" "it names the type of an anonymous record, which belongs to the assembly" else None)
      (if Set.isEmpty (Set.intersect item.Words selfAware) then None else at "self_aware" "it asks which assembly or method runs")
      hidden |> Option.bind (fun name -> at "constructor_state" ("it uses `" + name + "`, which only the type's own code can see"))
      (if item.OfType |> Option.exists (fun one -> one.CallsBase) then at "base_call" "it calls its base type" else None) ]
    |> List.choose id

/// The names that a declaration gives, as code mentions them.
let namesOf (outline: Outline) (item: Item) : Declared list =
    outline.Declared |> List.filter (fun one -> item.Line <= one.Line && one.Line <= item.EndLine)

/// The names that it gives where it is new. A member's is found wherever its type is, and what `let` binds in a type is seen there alone.
let private givenBy (outline: Outline) (item: Item) : Declared list =
    match item.Kind with
    | Member one when one.IsLet -> []
    | Member _ -> [ for name in item.Names -> { Name = name; Path = []; Line = item.Line; IsExtension = true } ]
    | Function
    | Value -> namesOf outline item

/// Whether code with these words can mean a name, where it stands in one of these modules: the name's own is one of them, or is named.
let private canMean (within: string list list) (openings: Opening list) (words: Set<string>) (name: Declared) : bool =
    let isShown = within |> List.exists (isAround name.Path)
    let isNamed (words: Set<string>) = words.Contains(List.last name.Path)
    words.Contains name.Name
    && (isShown || isNamed words || openings |> List.exists (function Opens text -> isNamed (wordsIn text) | Own _ -> false))

/// Whether a declaration can mean a name.
let canMeanWithin (item: Item) (name: Declared) : bool = canMean [ item.Scope.Path ] item.Openings item.Words name

/// The same of what cannot be replaced alone.
let private canMeanInRest (part: Rest) (name: Declared) : bool =
    let within = [ [] ] @ (part.Openings |> List.choose (function Own path -> Some path | Opens _ -> None))
    canMean within part.Openings (wordsIn part.Text) name

/// The obstacle that a name is, where something cannot be compiled anew that may mean something else for it.
let private ofName (news: News) (place: string) : Reason =
    obstacle "name" news.Of.Shown news.Of.Line ("it " + news.Novelty.Words + ", and " + place + " mentions a name of it, which may mean something else now")

/// The obstacles that names are which a file mentions of which only the words are known.
let mentionedIn (file: string) (words: Set<string>) (news: News list) : Reason list =
    let isMentioned (one: News) =
        let isShown = one.Name.Path.Length <= one.Of.Scope.Namespace.Length
        words.Contains one.Name.Name && (isShown || words.Contains(List.last one.Name.Path))
    news |> List.filter isMentioned |> List.map (fun one -> ofName one file) |> List.distinct

/// The names that other files may mean otherwise. What has another signature may have been seen by others before.
let seenElsewhere (news: News list) : News list = news |> List.filter (fun one -> one.Of.Reach <> InModule || one.Novelty = Resigned)

/// What of another file may mean something else because of names that are new or gone: declarations, each with these names, and the names
/// that something mentions which cannot be compiled anew. `isCompiled` tells of what is compiled anyway.
let affectedIn (outline: Outline) (isCompiled: Item -> bool) (news: News list) : (Item * string list) list * (News * Reason) list =
    let news = seenElsewhere news
    let found =
        [ for item in outline.Items do
            if not (isCompiled item) then
                match news |> List.filter (fun one -> canMeanWithin item one.Name) with
                | [] -> ()
                | names -> item, names ]
    let isFixed (item: Item) = item.Kind = Value || item.IsInline || not (List.isEmpty (obstaclesOf item))
    let affected = found |> List.filter (fst >> isFixed >> not) |> List.map (fun (item, names) -> item, names |> List.map (fun one -> one.Name.Name))
    let inItems = found |> List.filter (fst >> isFixed) |> List.map (fun (item, names) -> names.Head, ofName names.Head item.Shown)
    let inRest = [ for part in outline.Rest do for one in news do if canMeanInRest part one.Name then one, ofName one part.What ]
    affected, List.distinctBy fst (inItems @ inRest)

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

/// The difference of two versions of a file. `isResigned` tells of the declarations whose signature is known to be another, and `elsewhere` has the
/// names that other files have otherwise.
let between (isResigned: Key -> bool) (elsewhere: News list) (before: Outline) (after: Outline) : Difference =
    let known = before.Items |> List.map (fun item -> item.Key, item) |> Map.ofList
    let present = after.Items |> List.map (fun item -> item.Key, item) |> Map.ofList
    // What others see or see no more is for them as what is new or gone.
    let isShownOtherwise (old: Item) (item: Item) = old.Reach <> item.Reach && not item.IsMember
    let lasting (item: Item) = item.Attributes |> List.filter (fun (name, _) -> not (ofTools.Contains name))
    // A test that is marked otherwise is another test.
    let isMarkedOtherwise (old: Item) (item: Item) =
        let isPlain (one: Item) = one.Kind = Function && List.isEmpty (lasting one)
        lasting old <> lasting item && (isTest old || isTest item) && (isTest old || isPlain old) && (isTest item || isPlain item)
    let isResigned (old: Item) (item: Item) =
        isResigned item.Key || isShownOtherwise old item || isMarkedOtherwise old item || old.IsInline || item.IsInline
    let changed =
        after.Items |> List.filter (fun item ->
            match known.TryFind item.Key with
            | Some old -> old.Text <> item.Text && not (isResigned old item)
            | None -> false)
    let changedAs =
        after.Items |> List.filter (fun item ->
            match known.TryFind item.Key with
            | Some old -> old.Text <> item.Text && isResigned old item
            | None -> true)
    let removed = before.Items |> List.filter (fun item -> not (present.ContainsKey item.Key))
    let newsOf (added: Item list) =
        [ for item in added do for name in givenBy after item do { Of = item; Novelty = (if known.ContainsKey item.Key then Resigned else New); Name = name }
          for item in removed do for name in namesOf before item do { Of = item; Novelty = Gone; Name = name } ]
    // What contains something that is another function now is another one itself.
    let rec withContaining (added: Item list) (staying: Item list) =
        let news = newsOf added @ elsewhere
        match staying |> List.partition (fun one -> one.IsInline && news |> List.exists (fun news -> canMeanWithin one news.Name)) with
        | [], _ -> added, staying
        | more, others -> withContaining (added @ more) others
    let added, staying =
        after.Items
        |> List.filter (fun item -> match known.TryFind item.Key with Some old -> old.Text = item.Text | None -> false)
        |> withContaining changedAs
    let ofRest =
        let texts (outline: Outline) = outline.Rest |> List.map (fun one -> one.What, one.Text) |> Set.ofList
        let old, current = texts before, texts after
        let news = after.Rest |> List.filter (fun one -> not (old.Contains(one.What, one.Text)))
        let gone = before.Rest |> List.filter (fun one -> not (current.Contains(one.What, one.Text)) && news |> List.forall (fun other -> other.What <> one.What))
        (news |> List.map (fun one -> obstacle "shape" one.What one.Line (one.What + " changed")))
        @ (gone |> List.map (fun one -> obstacle "shape" one.What 1 (one.What + " is gone")))
    let ofOrder =
        let sequence, sequenceAfter = sequenceOf before, sequenceOf after
        let common = Set.intersect (Set.ofList (List.map snd sequence)) (Set.ofList (List.map snd sequenceAfter))
        let inBoth = List.map snd >> List.filter common.Contains
        // What a declaration sees of its own module and of what is opened depends on which stands first.
        let above (outline: Outline) (places: (int * Standing) list) =
            outline.Opens |> List.map (fun (text, line) -> text, places |> List.filter (fun (at, one) -> at < line && common.Contains one) |> List.map snd |> Set.ofList) |> Map.ofList
        let opensBefore, opensAfter = above before sequence, above after sequenceAfter
        let isMoved = opensBefore |> Map.exists (fun text seen -> match opensAfter.TryFind text with Some now -> now <> seen | None -> false)
        if List.isEmpty ofRest && (inBoth sequence <> inBoth sequenceAfter || isMoved) then [ obstacle "order" "the declarations" 1 "the declarations stand in another order" ] else []
    let ofAttributes (what: string) (finds: string) (items: Item list) =
        items |> List.filter (isTest >> not) |> List.choose (fun item ->
            item.Attributes |> List.tryFind (fun (name, _) -> not (ofCompiler.Contains name || ofTools.Contains name)) |> Option.map (fun (name, _) ->
                obstacle "attribute" item.Shown item.Line ("it is " + what + ", and whoever looks for `" + name + "` " + finds + " in what was built")))
    let reopened =
        let ofItem (item: Item) =
            match known.TryFind item.Key with
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
    let news = newsOf added
    let isOperator (item: Item) = item.Names |> List.exists (fun name -> name.StartsWith("op_", StringComparison.Ordinal))
    let ofNames =
        news |> List.groupBy (fun one -> one.Novelty, one.Of.Key) |> List.choose (fun (_, all) ->
            let item = all.Head.Of
            // What stands above something that is new does not see it.
            let sees line = all.Head.Novelty = Gone || item.IsRecursiveScope || line > item.Line
            let inValue = staying |> List.tryFind (fun one -> one.Kind = Value && sees one.Line && all |> List.exists (fun news -> canMeanWithin one news.Name)) |> Option.map (fun one -> one.Shown)
            let inRest = after.Rest |> List.filter (fun one -> sees one.Line) |> List.tryFind (fun one -> let words = wordsIn one.Text in all |> List.exists (fun news -> words.Contains news.Name.Name)) |> Option.map (fun one -> one.What)
            let anywhere = if isOperator item then Some "other code" else None
            List.tryPick id [ inValue; inRest; anywhere ] |> Option.map (ofName all.Head))
    let ofMembers (what: string) (isFit: MemberOf -> Item -> bool) (items: Item list) =
        [ for item in items do
            match item.Kind with
            | Member one when not (one.IsLet || isFit one item) -> obstacle "member" item.Shown item.Line ("the member is " + what + ", so its type has another shape")
            | Member _
            | Function
            | Value -> () ]
    // A new member is compiled as one that extends its type. Such a one hides no other, and implements nothing.
    let canExtend (one: MemberOf) (item: Item) =
        let isNamesake (other: Item) = match other.Kind with Member own -> own.Type = one.Type && other.Names = item.Names && (other.Key <> item.Key) | Function | Value -> false
        not (one.IsTaken || isOperator item || List.exists unnamed.Contains item.Names || List.exists isNamesake (before.Items @ after.Items))
    // The constructor goes on with what it was built with.
    let ofLets =
        // Where it is new or gone, and mentioned there, the type has another shape.
        [ for item in added do
            match item.OfType with
            | Some owner when owner.IsLet && known.ContainsKey item.Key ->
                let what = "the type `" + owner.Type + "`"
                if after.Rest |> List.exists (fun part -> part.What = what && List.exists (wordsIn part.Text).Contains item.Names) then
                    obstacle "name" item.Shown item.Line ("it " + Resigned.Words + ", and what the constructor of " + what + " does mentions it")
            | _ -> () ]
    let affected =
        [ for item in staying do
            match news |> List.filter (fun one -> canMeanWithin item one.Name) with
            | _ :: _ as names when item.Kind <> Value -> item, (names |> List.map (fun one -> one.Name.Name))
            | _ -> () ]
    { Changed = changed
      Affected = affected
      Reopened = reopened
      Added = added
      Removed = removed
      News = news
      Obstacles =
        ofRest
        @ ofOrder
        @ (changed @ List.map fst affected @ added |> List.collect obstaclesOf)
        @ (changed |> List.choose (fun item ->
            if lasting known.[item.Key] = lasting item then None
            else Some(obstacle "attribute" item.Shown item.Line "its attributes changed, which stay as they were built")))
        @ ofAttributes "new" "does not find it" added
        @ ofAttributes "gone" "still finds it" removed
        @ (changed |> List.choose (fun item ->
            match known.[item.Key].Fixed with
            | Some reason when item.Fixed.IsNone -> Some(obstacle "fixed" item.Shown item.Line ("before, " + reason))
            | _ -> None))
        @ ofMembers "new" canExtend added
        @ ofMembers "gone" (fun _ _ -> false) removed
        @ ofLets
        @ ofNames }
