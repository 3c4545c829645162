/// Puts what changed in source files of the project into the session that runs: methods of loaded assemblies get the bodies of newly compiled
/// ones. Either all that changed in the files is put in, or nothing is, and why not is told.
module Mainstay.Worker.Swapping

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.Baselines
open Mainstay.Worker.Compat
open Mainstay.Worker.Difference
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol

/// A file as it is now, with the hash of its content.
let private read (path: string) : string * string =
    use content = new MemoryStream(File.ReadAllBytes path)
    let hash = Sha256.ofStream content
    content.Position <- 0L
    use reader = new StreamReader(content)
    reader.ReadToEnd(), hash

let private refusal file code name line reason : Obstacle = { File = file; Code = code; Name = name; Line = line; Reason = reason }

/// One file of the project, as the loaded assembly has it.
type private Source =
    { Path: string
      Baseline: Baseline
      Before: Outline }

/// What of a file is to be compiled: declarations of its new version, and whether the loaded assembly has none of that name.
type private Change =
    { Source: Source
      After: Outline
      Items: (Item * bool) list
      /// What is again as it was built.
      Restored: Item list
      /// By what the code of a declaration is known that means something else than it did: its text, and the names that make it so.
      RunsAs: Item -> string }

/// A declaration that was compiled, and the methods that it is to replace.
type private Compiled =
    { Of: Source
      Slice: Slices.Slice
      IsAdded: bool
      Redirections: Deltas.Redirection list }

/// The values of all, or all errors.
let private allOf (results: Result<'T, 'E list> list) : Result<'T list, 'E list> =
    match results |> List.collect (function Error errors -> errors | Ok _ -> []) with
    | [] -> Ok(results |> List.choose (function Ok value -> Some value | Error _ -> None))
    | errors -> Error errors

/// What one session has put in; it sees nothing of what the session does later. `assemblies` are the paths of its project's own, `symbols` has
/// what conditional compilation of them knows, and `order` their sources in the order of the build.
type Swapping(session: Session, symbols: Set<string>, assemblies: string list, order: string list) =
    let baselines = capture assemblies
    let isolated = try Some(Isolated.Isolated session) with _ -> None
    let outlines = Dictionary<string, Source>()
    let added = Dictionary<string, Slices.Place * string>() // the modules in which values were compiled that the build does not have, by their key
    let current = Dictionary<string, Outline>() // the files that were put in, as they are now
    let addedNames = Dictionary<string, Set<string>>() // the names that these have and the build has not
    let opened = Opened.Names(fun text -> match isolated with Some isolated -> isolated.Check([], text) | None -> check session text)
    let mutable count = 0
    let mutable hear: Affected.Exchanged list -> unit = ignore

    let outlineOf (path: string) (text: string) : Result<Outline, Obstacle> =
        let resolved = Conditionals.resolveWith symbols Splitter.afterToken text
        match parseFile session path resolved with
        | Ok tree -> Ok(Outline.read resolved tree)
        | Error (message: CompilerMessage) -> Error(refusal path "syntax_error" (Path.GetFileName path) message.StartLine message.Text)

    let sourceOf (path: string) : Result<Source, Obstacle> =
        match outlines.TryGetValue path with
        | true, source -> Ok source
        | _ ->
            let found = baselines |> List.choose (fun one -> one.Sources |> List.tryFind (fst >> (=) path) |> Option.map (fun (_, text) -> one, text))
            match found with
            | _ :: _ :: _ -> Error(refusal path "shared_source" (Path.GetFileName path) 1 "several assemblies are built from it")
            | [] -> Error(refusal path "unknown_source" (Path.GetFileName path) 1 "the build that is loaded was not made from this file, or from another version of it than was there when the session started")
            | [ (_, text) ] when List.length baselines > 1 && text.Contains "#if " ->
                Error(refusal path "conditional_source" (Path.GetFileName path) 1 "it has conditional code, and the projects of the session may have symbols of their own")
            | [ (baseline, text) ] ->
                outlineOf path text |> Result.map (fun outline ->
                    let source = { Path = path; Baseline = baseline; Before = outline }
                    outlines.[path] <- source
                    source)

    let keyOf (path: string) (item: Item) = path + "\n" + sprintf "%A" item.Key

    /// What has to be compiled of a file: what is not as it runs now, and all functions that are not as they were loaded, since they may
    /// use one another. And what is to run as it was loaded again.
    let toCompile (source: Source) (after: Outline) (difference: Difference) : Item list * Item list =
        let keys (items: Item list) = items |> List.map (keyOf source.Path) |> Set.ofList
        let isChanged, isAdded = (keys (difference.Changed @ List.map fst difference.Affected)).Contains, (keys difference.Added).Contains
        let differs (item: Item) = let key = keyOf source.Path item in isChanged key || isAdded key
        let runs (item: Item) = source.Baseline.Current.TryGetValue(keyOf source.Path item)
        let isDue (item: Item) =
            match item.Kind, runs item with
            | Value, (true, running) -> running.Text <> item.Text || (isAdded (keyOf source.Path item) && not (added.ContainsKey(keyOf source.Path item)))
            | _, _ -> differs item
        let isRestored (item: Item) = item.Kind <> Value && not (differs item) && fst (runs item)
        List.filter isDue after.Items, List.filter isRestored after.Items

    /// What may mean something else since something else is opened before it: declarations, with what is opened, and what keeps all of it from
    /// being put in.
    let reopenedIn (path: string) (difference: Difference) : (Item * string list) list * Obstacle list =
        let meets (words: Set<string>) (names: Set<string>) = not (Set.isEmpty (Set.intersect words names))
        let isMeant (one: Reopened) (context: Opening list, opening: string) =
            match opened.Of(context, opening) with
            | Some names -> meets one.Words names || one.After |> List.exists (fun later -> meets (wordsIn later) names)
            | None -> true
        let found = [ for one in difference.Reopened do match one.Opens |> List.filter (isMeant one) with [] -> () | opens -> one, List.map snd opens ]
        let ofItem (one: Reopened, opens: string list) = match one.Item with Some item when item.Kind <> Value -> Some(item, opens) | _ -> None
        let refused (one: Reopened, opens: string list) =
            match ofItem (one, opens) with
            | Some _ -> None
            | None -> Some(refusal path "opened" one.What one.Line ("it may mean something else with or without `" + opens.Head + "`"))
        let items = List.choose ofItem found
        let ofItems = items |> List.collect (fun (item, _) -> obstaclesOf item) |> List.map (fun one -> refusal path one.Code one.Name one.Line one.Words)
        items, List.choose refused found @ ofItems

    let placeOf (path: string) = order |> List.tryFindIndex ((=) path)

    /// Whether a file is built before another, as far as that is known.
    let isBefore (path: string) (other: string) = match placeOf path, placeOf other with Some place, Some later -> place < later | _ -> false

    /// The words of all files that may see one, by the name of the file: as they are saved now, else as they run, else as they were built.
    let wordsBeside (path: string) (saved: (string * string) list) : (string * Set<string>) list =
        [ for baseline in baselines do
            for other, text in baseline.Sources do
                if other <> path && not (isBefore other path) then
                    match List.tryFind (fst >> (=) other) saved, current.TryGetValue other, outlines.TryGetValue other with
                    | Some (_, text), _, _ -> Path.GetFileName other, wordsIn text
                    | None, (true, now), _ -> Path.GetFileName other, now.Words
                    | None, _, (true, source) -> Path.GetFileName other, source.Before.Words
                    | None, _, _ -> Path.GetFileName other, wordsIn text ]

    /// What of a file is to be compiled, as it is now.
    let changeOf (saved: (string * string) list) (path: string, text: string) : Result<Change, Obstacle list> =
        let alone result = result |> Result.mapError List.singleton
        alone (sourceOf path) |> Result.bind (fun source ->
            match source.Baseline.Obstacle with
            | Some reason -> Error [ refusal path "not_modifiable" source.Baseline.Name 1 reason ]
            | None ->
                alone (outlineOf path text) |> Result.bind (fun after ->
                    let difference = between (wordsBeside path saved) source.Before after
                    let isAdded (item: Item) = difference.Added |> List.exists (fun one -> one.Key = item.Key)
                    let reopened, refused = if List.isEmpty difference.Obstacles then reopenedIn path difference else [], []
                    let difference = { difference with Affected = difference.Affected @ reopened }
                    match [ for found in difference.Obstacles -> refusal path found.Code found.Name found.Line found.Words ] @ refused with
                    | [] ->
                        let affected = difference.Affected |> List.map (fun (item, names) -> keyOf path item, String.Join(" ", names)) |> List.distinctBy fst |> Map.ofList
                        let runsAs (item: Item) = match affected.TryFind(keyOf path item) with Some names -> item.Text + "\n" + names | None -> item.Text
                        let due, restored = toCompile source after difference
                        Ok { Source = source; After = after; Items = [ for item in due -> item, isAdded item ]; Restored = restored; RunsAs = runsAs }
                    | all -> Error all))

    let compiledModule (name: string) : Type option =
        evaluatedAssemblies session |> List.rev |> List.tryPick (fun assembly ->
            try
                assembly.GetTypes() |> Array.tryFind (fun kind -> kind.Name = name)
            with _ -> None)

    /// The methods that a compiled declaration is to replace.
    let redirectionsOf (source: Source) (slice: Slices.Slice) : Result<Deltas.Redirection list, Obstacle list> =
        let refuse reason = [ refusal source.Path "signature" slice.Item.Shown slice.Item.Line reason ]
        match compiledModule slice.Module with
        | None -> Error(refuse "what was compiled of it is not found")
        | Some compiled ->
            List.zip slice.Item.CompiledNames slice.Names
            |> List.map (fun (old, name) ->
                Replaced.pair source.Baseline.Assembly compiled slice.Item old name
                |> Result.map (fun (old, replacement) -> { Deltas.Old = old; Deltas.New = Deltas.Calls replacement })
                |> Result.mapError refuse)
            |> allOf

    let sliceOf (path: string) (item: Item) : Slices.Slice =
        count <- count + 1
        let name = "Swapped" + string count
        let isWord (name: string) = name |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '_')
        let names =
            match item.Kind with
            | Member _ when not (List.forall isWord item.Names) -> [ "swapped" + string count ]
            | Member _ -> item.Names
            | Function
            | Value -> item.CompiledNames
        { Item = item; File = path; Module = name; Names = names }

    /// Where the code of a declaration stands, with whose rights it is compiled.
    let standingsOf (referenced: Referenced list) (source: Source) (item: Item) : Isolated.Standing list =
        match referenced |> List.tryFind (fun one -> one.SimpleName = source.Baseline.Name) with
        | None -> []
        | Some assembly ->
            let within = match item.Kind with Member one -> [ item.Scope.Path @ [ one.Type ] ] | Function | Value -> []
            item.Scope.Path :: within |> List.map (fun path -> { Isolated.Assembly = assembly; Isolated.Path = path })

    let isStruct (source: Source) (item: Item) (name: string) =
        match item.Kind with
        | Member one -> Replaced.typeOf source.Baseline.Assembly item.Scope name one.Parameters.Length |> Option.exists (fun kind -> kind.IsValueType)
        | Function
        | Value -> false

    /// What the compiler says of a submission that it does not take; `placeOf` gives the file and line of a message.
    let complaints (path: string) (placeOf: CompilerMessage -> string * int) (messages: CompilerMessage[]) : Obstacle list =
        match messages |> Array.filter (fun message -> message.Severity = "error") |> List.ofArray with
        | [] -> [ refusal path "not_compiled" (Path.GetFileName path) 1 "the compiler of this SDK compiles no part of a project" ]
        | errors ->
            [ for message in errors do
                let file, line = placeOf message
                refusal file "not_compiled" (Path.GetFileName file) line message.Text ]

    /// What is known of the sources where some of them are as they were saved.
    let sourcesWith (changes: Change list) : Resolution.Sources =
        let now (path: string) =
            match changes |> List.tryFind (fun change -> change.Source.Path = path), current.TryGetValue path with
            | Some change, _ -> Some change.After
            | None, (true, outline) -> Some outline
            | None, _ -> None
        let earlier (name: string) =
            added |> Seq.tryFind (fun entry -> snd entry.Value = name) |> Option.bind (fun entry ->
                let path = entry.Key.Substring(0, entry.Key.IndexOf '\n')
                now path |> Option.bind (fun outline -> outline.Items |> List.tryFind (fun item -> keyOf path item = entry.Key) |> Option.map (fun item -> path, item)))
        { Resolution.Built = fun path -> match sourceOf path with Ok source -> Some source.Before | Error _ -> None
          Resolution.Now = now
          Resolution.Place = placeOf
          Resolution.Earlier = earlier }

    /// The names that a file gives and did not give when it was built.
    let addedIn (change: Change) : Set<string> =
        let names (outline: Outline) = outline.Items |> List.collect (fun item -> item.Names) |> Set.ofList
        names change.After - names change.Source.Before

    /// What other files added is not in what was built, where a file looks for it.
    let addedElsewhere (changes: Change list) (path: string) (names: Set<string>) : (string * string) list =
        let now = [ for change in changes -> change.Source.Path, addedIn change ]
        let earlier = [ for entry in addedNames do if changes |> List.forall (fun change -> change.Source.Path <> entry.Key) then entry.Key, entry.Value ]
        [ for other, added in now @ earlier do
            if other <> path && not (isBefore path other) then
                for name in Set.intersect names added -> name, "which " + Path.GetFileName other + " has added since the build" ]

    /// What is new in a file and could be meant by a name that resolved to something else.
    let addedHere (change: Change) (item: Item) (name: string) : bool =
        let isNew (one: Item) = change.Source.Before.Items |> List.forall (fun old -> old.Key <> one.Key)
        let isSeen (one: Item) = one.Key <> item.Key && (item.IsRecursiveScope || one.Line < item.Line)
        change.After.Items |> List.exists (fun one -> isNew one && isSeen one && (namesOf change.After one |> List.exists (fun given -> given.Name = name && canMeanWithin item given)))

    /// What could stand for a name that resolved to something outside of the file, and is not seen by a submission.
    let unseen (changes: Change list) (change: Change) (mention: Resolution.Mention) : (string * string) option =
        let path, name = mention.Slice.File, mention.Name
        let hasSignature = List.contains (path + "i") order
        match mention.Declaration with
        | Resolution.InSlice _
        | Resolution.InEarlier _ -> None
        | _ when addedHere change mention.Slice.Item name -> Some("name", "and the file has a new one, which this code may mean")
        | Resolution.InFile (other, _) when other = path -> None
        | _ when hasSignature && change.After.Declared |> List.exists (fun one -> one.Name = name) -> Some("ambiguous", "and the file has one that its signature file may hide")
        | _ -> addedElsewhere changes path (Set.singleton name) |> List.tryHead |> Option.map (fun (_, reason) -> "added_elsewhere", reason)

    /// An assembly of the project that the one of this change does not refer to.
    let notReferred (change: Change) (mention: Resolution.Mention) : (string * string) option =
        let rec refersTo (name: string) (assembly: Assembly) =
            assembly.GetReferencedAssemblies() |> Array.exists (fun one ->
                one.Name = name || (baselines |> List.exists (fun other -> other.Name = one.Name && refersTo name other.Assembly)))
        match mention.Declaration with
        | Resolution.InFile (other, _) ->
            match baselines |> List.tryFind (fun one -> one.Sources |> List.exists (fst >> (=) other)) with
            | Some owner when owner.Name <> change.Source.Baseline.Name && not (refersTo owner.Name change.Source.Baseline.Assembly) ->
                Some("declared_below", "which is in " + owner.Name + ", to which " + change.Source.Baseline.Name + " did not refer when it was built")
            | _ -> None
        | _ -> None

    /// Methods that a computation expression calls without naming them, where something that the code does not see yet has them too.
    let unseenBuilders (change: Change) (slice: Slices.Slice) : Obstacle list =
        let isBehind (one: Declared) = one.Line > slice.Item.EndLine && not slice.Item.IsRecursiveScope
        let ofFile = change.After.Declared |> List.filter (fun one -> isBehind one && builderMembers.Contains one.Name)
        let ofOthers =
            [ for baseline in baselines do
                for other, _ in baseline.Sources do
                    if other <> slice.File && not (isBefore other slice.File) then
                        match sourceOf other with
                        | Ok source -> for one in source.Before.Declared do if builderMembers.Contains one.Name && source.Before.Namespaces.Contains one.Path then one
                        | Error _ -> () ]
        if Set.isEmpty (Set.intersect slice.Item.Words Opened.ofExpressions) then []
        else
            [ for one in List.truncate 1 (ofFile @ ofOthers) ->
                refusal slice.File "declared_below" slice.Item.Shown slice.Item.Line ("its computation expression may call `" + one.Name + "`, which is declared below it or in a later file") ]

    /// A value of a module that is a structure cannot be changed by code of another assembly, which gets a copy.
    let changesCopy (change: Change) (mention: Resolution.Mention) =
        match mention.Declaration with
        | Resolution.InFile _ when change.Source.Baseline.ChangedInPlace.Value.Contains mention.Name -> Some("mutable_struct", "a structure that changes in place")
        | _ -> None

    /// Whether the names in slices resolve to what they resolve to in their files. `check` checks the slices, each with these openings.
    let confirm (changes: Change list) (slices: (Change * Slices.Slice) list) (check: (Slices.Slice -> Opening list) -> Result<Resolution.Mention list, Obstacle list>) : Result<unit, Obstacle list> =
        let sources = sourcesWith changes
        let changeOf = slices |> List.map (fun (change, slice) -> slice.Module, change) |> Map.ofList
        let refuse (mention: Resolution.Mention) (code, reason) =
            refusal mention.Slice.File code mention.Slice.Item.Shown mention.Line ("it mentions `" + mention.Name + "`, " + reason)
        let obstacleOf (mention: Resolution.Mention) =
            let change = changeOf.[mention.Slice.Module]
            [ Resolution.obstacleOf sources; changesCopy change; unseen changes change; notReferred change ]
            |> List.tryPick (fun obstacle -> obstacle mention)
            |> Option.map (refuse mention)
        let orders = slices |> List.map (fun (change, slice) -> slice.Module, Resolution.otherOrders change.After slice.Item) |> Map.ofList
        let most = orders |> Seq.map (fun entry -> List.length entry.Value) |> Seq.fold max 0
        let inOrder (number: int) (slice: Slices.Slice) = orders.[slice.Module] |> List.tryItem number |> Option.defaultValue slice.Item.Openings
        check (fun slice -> slice.Item.Openings) |> Result.bind (fun usual ->
            let uncertain (other: Resolution.Mention list) =
                Resolution.differing usual other |> List.map (fun mention -> refuse mention ("ambiguous", "which means one thing or another by the order in which names become visible"))
            let ofOrders = [ 0 .. most - 1 ] |> List.map (fun number -> check (inOrder number) |> Result.map uncertain) |> allOf |> Result.map List.concat
            match (slices |> List.collect (fun (change, slice) -> unseenBuilders change slice)) @ List.choose obstacleOf usual, ofOrders with
            | [], Ok [] -> Ok()
            | found, Ok more -> Error(List.distinct (found @ more))
            | found, Error more -> Error(found @ [ for one in more -> { one with Code = "ambiguous" } ]))

    /// Compiles declarations, and gives the methods that they are to replace.
    let compileWith (isolated: Isolated.Isolated) (changes: Change list) : Result<Compiled list, Obstacle list> =
        let slices = [ for change in changes do for item, isAdded in change.Items -> change, sliceOf change.Source.Path item, isAdded ]
        let referenced = (check session "").Assemblies()
        let present = [ for change in changes do for item in change.After.Items -> keyOf change.Source.Path item ] |> Set.ofList
        let isGone (key: string) = changes |> List.exists (fun change -> key.StartsWith(change.Source.Path + "\n", StringComparison.Ordinal)) && not (present.Contains key)
        let placeOf (change: Change) (item: Item) : Slices.Place = { Assembly = change.Source.Baseline.Name; Path = item.Scope.Path }
        let names = baselines |> List.map (fun one -> one.Name)
        let submissionWith (openings: Slices.Slice -> Opening list) =
            slices
            |> List.map (fun (change, slice, _) ->
                let ordered = { slice with Item = { slice.Item with Openings = openings slice } }
                placeOf change slice.Item, change.After, isStruct change.Source slice.Item, ordered)
            |> Slices.submission names [ for entry in added do if not (isGone entry.Key) then entry.Value ]
        let standings =
            slices
            |> List.collect (fun (change, slice, _) -> standingsOf referenced change.Source slice.Item)
            |> List.distinctBy (fun one -> one.Assembly.SimpleName, one.Path)
        let path = (slices |> List.map (fun (change, _, _) -> change) |> List.head).Source.Path
        let resolveIn (openings: Slices.Slice -> Opening list) =
            let lines = submissionWith openings |> Array.ofList
            let found = isolated.Check(standings, Slices.plain (List.ofArray lines))
            let origin (message: CompilerMessage) =
                match lines |> Array.tryItem (message.StartLine - 1) |> Option.bind (fun line -> line.Origin) with
                | Some (slice, line) -> slice.File, line
                | None -> path, 1
            if found.Messages |> Array.exists (fun message -> message.Severity = "error") then
                let explained =
                    [ for change, slice, _ in slices do
                        for name, reason in addedElsewhere changes change.Source.Path (slice.Item.Words - slice.Item.Arguments) ->
                            refusal change.Source.Path "added_elsewhere" slice.Item.Shown slice.Item.Line ("it mentions `" + name + "`, " + reason) ]
                Error(if List.isEmpty explained then complaints path origin found.Messages else explained)
            else Ok(Resolution.mentionsOf (fun name -> List.contains name names) lines (found.Uses()))
        let resolve openings =
            try
                resolveIn openings
            with e -> Error [ refusal path "not_compiled" (Path.GetFileName path) 1 ("the compiler could not be asked what its names mean: " + e.GetBaseException().Message) ]
        confirm changes [ for change, slice, _ in slices -> change, slice ] resolve |> Result.bind (fun () ->
            let text = Slices.placed (submissionWith (fun slice -> slice.Item.Openings))
            match (try Ok(isolated.Run(standings, text)) with e -> Error(e.GetBaseException())) with
            | Error e -> Error [ refusal path "raised" (Path.GetFileName path) 1 (e.GetType().FullName + ": " + e.Message) ]
            | Ok (false, messages) -> Error(complaints path (fun message -> (if File.Exists message.File then message.File else path), message.StartLine) messages)
            | Ok (true, _) ->
                slices
                |> List.map (fun (change, slice, isAdded) ->
                    (if isAdded then Ok [] else redirectionsOf change.Source slice)
                    |> Result.map (fun redirections -> { Of = change.Source; Slice = slice; IsAdded = isAdded; Redirections = redirections }))
                |> allOf)

    let compile (changes: Change list) : Result<Compiled list, Obstacle list> =
        match isolated with
        | Some isolated -> compileWith isolated changes
        | None -> Error(complaints (List.head changes).Source.Path (fun message -> message.File, message.StartLine) [||])

    /// Gives methods the bodies of their replacements, or those that they were built with, assembly by assembly; the names of those that took it, and what is in the way of the others.
    let redirect (changes: Change list) (compiled: Compiled list) : string list * Obstacle list =
        let rec each (left: (Source * Deltas.Redirection list) list) (ran: string list) =
            match left with
            | [] -> ran, []
            | (_, []) :: rest -> each rest ran
            | (source, redirections) :: rest ->
                match (try Ok(source.Baseline.Redirect redirections) with e -> Error(e.GetBaseException().Message)) with
                | Ok () -> each rest (source.Baseline.Name :: ran)
                | Error message ->
                    let already = if List.isEmpty ran then "" else "; what changed in " + String.Join(", ", ran) + " runs already"
                    ran, [ refusal source.Path "runtime_refused" source.Baseline.Name 1 (message + already) ]
        let replaced = [ for one in compiled do for redirection in one.Redirections -> one.Of, redirection ]
        let restored =
            [ for change in changes do
                for item in change.Restored do
                    for old in change.Source.Baseline.Current.[keyOf change.Source.Path item].Methods -> change.Source, { Deltas.Old = old; Deltas.New = Deltas.AsBuilt } ]
        let byAssembly = replaced @ restored |> List.groupBy (fun (source, _) -> source.Baseline.Name)
        each [ for _, all in byAssembly -> fst all.Head, List.map snd all ] []

    /// Whether a declaration runs otherwise than it has run.
    let isNews (change: Change) (item: Item) : bool =
        let source = change.Source
        let key = keyOf source.Path item
        match source.Baseline.Current.TryGetValue key with
        | true, running -> running.Text <> change.RunsAs item
        | _ -> source.Before.Items |> List.forall (fun one -> keyOf source.Path one <> key || one.Text <> change.RunsAs item)

    /// What of the older version of a declaration stays with those who have it.
    let keptOf (source: Source) (item: Item) : string option =
        let before = source.Before.Items |> List.tryFind (fun one -> one.Key = item.Key)
        let handedOver = before |> Option.map (fun one -> one.HandedOver) |> Option.defaultValue []
        if item.Kind = Value && before.IsSome then Some "value"
        elif item.Attributes |> List.exists (fun (name, _) -> name = "EntryPoint") then Some "run"
        elif handedOver <> item.HandedOver && not (List.isEmpty handedOver) then Some "closures"
        else None

    /// Takes note of what runs now.
    let remember (changes: Change list) (compiled: Compiled list) =
        for change in changes do
            let source = change.Source
            current.[source.Path] <- change.After
            addedNames.[source.Path] <- addedIn change
            let present = change.After.Items |> List.map (keyOf source.Path) |> Set.ofList
            for key in List.ofSeq added.Keys do
                if key.StartsWith(source.Path + "\n", StringComparison.Ordinal) && not (present.Contains key) then added.Remove key |> ignore
            for item in change.Restored do
                source.Baseline.Current.Remove(keyOf source.Path item) |> ignore
            for item, _ in change.Items do
                let replaced = compiled |> List.filter (fun one -> one.Of.Path = source.Path && one.Slice.Item.Key = item.Key)
                let methods = [ for one in replaced do for redirection in one.Redirections -> redirection.Old ]
                source.Baseline.Current.[keyOf source.Path item] <- { Text = change.RunsAs item; Methods = methods }
        for one in compiled do
            if one.IsAdded && one.Slice.Item.Kind = Value then
                added.[keyOf one.Of.Path one.Slice.Item] <- ({ Assembly = one.Of.Baseline.Name; Path = one.Slice.Item.Scope.Path }, one.Slice.Module)

    /// What was exchanged, for those who follow which code runs which other.
    let exchanged (changes: Change list) (compiled: Compiled list) : Affected.Exchanged list =
        let isNewsOf (one: Compiled) = changes |> List.exists (fun change -> change.Source.Path = one.Of.Path && isNews change one.Slice.Item)
        let anew =
            [ for one in compiled ->
                { Affected.Name = one.Slice.Item.Shown
                  Affected.Old = [ for redirection in one.Redirections -> redirection.Old :> MethodBase ]
                  Affected.New = Affected.Compiled(compiledModule one.Slice.Module, one.Slice.Item.Words)
                  Affected.IsNews = isNewsOf one } ]
        let again =
            [ for change in changes do
                for item in change.Restored ->
                    { Affected.Name = item.Shown
                      Affected.Old = [ for old in change.Source.Baseline.Current.[keyOf change.Source.Path item].Methods -> old :> MethodBase ]
                      Affected.New = Affected.AsBuilt
                      Affected.IsNews = true } ]
        anew @ again

    /// Puts in what differs; gives what runs now and did not before.
    let putIn (changes: Change list) : Result<(Source * Item) list, Obstacle list> =
        let isAsItRuns = changes |> List.forall (fun change -> List.isEmpty change.Items)
        (if isAsItRuns then Ok [] else compile changes) |> Result.bind (fun compiled ->
            let news = [ for change in changes do for item, _ in change.Items do if isNews change item then change.Source, item ]
            let again = [ for change in changes do for item in change.Restored -> change.Source, item ]
            let runs (changes: Change list) (compiled: Compiled list) =
                hear (try exchanged changes compiled with _ -> [])
                remember changes compiled
            match redirect changes compiled with
            | _, [] ->
                runs changes compiled
                Ok(news @ again)
            | ran, obstacles ->
                let hasRun (source: Source) = List.contains source.Baseline.Name ran
                runs (changes |> List.filter (fun change -> hasRun change.Source)) (compiled |> List.filter (fun one -> hasRun one.Of))
                Error obstacles)

    /// The values that may have been made with these, directly or by functions, before they changed.
    let outdatedBy (swapped: (Source * Item) list) : Swapped list =
        let isSwapped = let keys = swapped |> List.map (fun (source, item) -> keyOf source.Path item) |> Set.ofList in keys.Contains
        let all =
            [ for baseline in baselines do
                for path, _ in baseline.Sources do
                    match sourceOf path with
                    | Ok source -> for item in source.Before.Items do if not (isSwapped (keyOf path item)) then path, item
                    | Error _ -> () ]
        let mentions (names: Set<string>) (_, item: Item) = not (Set.isEmpty (Set.intersect item.Words names))
        let rec spread (names: Set<string>) (rest: (string * Item) list) found =
            match rest |> List.partition (mentions names) with
            | [], _ -> found
            | reached, rest -> spread (reached |> List.collect (fun (_, item) -> item.Names) |> Set.ofList) rest (reached @ found)
        let changed = swapped |> List.collect (fun (_, item) -> item.Names) |> Set.ofList
        [ for path, item in spread changed all [] do
            if item.Kind = Value then { Name = item.Shown; File = path; Line = item.Line; Kept = None } ]

    /// Is told what of each swap was compiled, before the swap is answered.
    member _.Hear(listener: Affected.Exchanged list -> unit) = hear <- listener

    /// Reads all sources, which the first swap would wait for.
    member _.ReadAhead() =
        for baseline in baselines do
            for path, _ in baseline.Sources do
                sourceOf path |> ignore

    /// Compiles something, which the first swap would wait for. As for a swap, the session may compile nothing meanwhile.
    member _.WarmUp() =
        let text = "module WarmUp =\n let f (x: int) = x + 1\n"
        isolated |> Option.iter (fun isolated ->
            isolated.Check([], text).Uses() |> Resolution.mentionsOf (fun _ -> false) [||] |> ignore
            isolated.Run([], text) |> ignore)
        check session "" |> ignore

    /// Puts the files in as they are now.
    member _.Swap(files: string list) : Swap =
        let isThere, gone = files |> List.partition File.Exists
        let contents = isThere |> List.map (fun path -> path, read path)
        let saved = [ for path, (text, _) in contents -> path, text ]
        let changes = saved |> List.map (fun (path, text) -> path, changeOf saved (path, text))
        let result =
            match gone with
            | [] -> changes |> List.map snd |> allOf |> Result.bind putIn
            | gone -> Error [ for path in gone -> refusal path "gone" (Path.GetFileName path) 1 "the file is gone" ]
        let isOther (path: string) =
            changes |> List.exists (fun (other, change) -> other = path && (match change with Ok change -> not (List.isEmpty change.Items && List.isEmpty change.Restored) | Error _ -> true))
        let filesWhere isMeant = [ for path, (_, hash) in contents do if isMeant path then path, hash ]
        match result with
        | Error obstacles -> { Files = filesWhere isOther; Assemblies = []; Swapped = []; Outdated = []; Obstacles = obstacles }
        | Ok swapped ->
            { Files = filesWhere (fun _ -> true)
              Assemblies = swapped |> List.map (fun (source, _) -> source.Baseline.Path) |> List.distinct
              Swapped = [ for source, item in swapped -> { Name = item.Shown; File = source.Path; Line = item.Line; Kept = keptOf source item } ]
              Outdated = outdatedBy swapped
              Obstacles = [] }
