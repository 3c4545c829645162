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
      Before: Outline
      Words: Set<string> }

/// What of a file is to be compiled: declarations of its new version, and whether the loaded assembly has none of that name.
type private Change =
    { Source: Source
      After: Outline
      Items: (Item * bool) list }

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
    let latest = Dictionary<string, Set<string>>() // the words of files that were put in, as they are now
    let addedNames = Dictionary<string, Set<string>>() // the names that these have and the build has not
    let mutable count = 0

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
                    let source = { Path = path; Baseline = baseline; Before = outline; Words = wordsIn text }
                    outlines.[path] <- source
                    source)

    let keyOf (path: string) (item: Item) = path + "\n" + sprintf "%A" item.Key

    /// What has to be compiled of a file: what is not as it runs now, and all functions that are not as they were loaded, since they may
    /// use one another.
    let toCompile (source: Source) (after: Outline) (difference: Difference) : Item list =
        let keys (items: Item list) = items |> List.map (keyOf source.Path) |> Set.ofList
        let isChanged, isAdded = (keys difference.Changed).Contains, (keys difference.Added).Contains
        after.Items |> List.filter (fun item ->
            let key = keyOf source.Path item
            match item.Kind, source.Baseline.Current.TryGetValue key with
            | Value, (true, text) -> text <> item.Text || (isAdded key && not (added.ContainsKey key))
            | (Function | Member _), (true, _) -> true
            | _, (false, _) -> isChanged key || isAdded key)

    /// The words of all files but one, by the name of the file: as they are saved now, else as they run, else as they were built.
    let wordsBeside (path: string) (saved: (string * string) list) : (string * Set<string>) list =
        [ for baseline in baselines do
            for other, text in baseline.Sources do
                if other <> path then
                    match List.tryFind (fst >> (=) other) saved, latest.TryGetValue other, outlines.TryGetValue other with
                    | Some (_, text), _, _ -> Path.GetFileName other, wordsIn text
                    | None, (true, words), _ -> Path.GetFileName other, words
                    | None, _, (true, source) -> Path.GetFileName other, source.Words
                    | None, _, _ -> Path.GetFileName other, wordsIn text ]

    /// What another file added is not in what was built, where this file looks for it.
    let usesAddition (path: string) (item: Item) : Reason option =
        addedNames |> Seq.tryPick (fun entry ->
            let named = if entry.Key = path then Set.empty else Set.intersect (item.Words - item.Arguments) entry.Value
            if Set.isEmpty named then None
            else Some { Code = "added_elsewhere"; Name = item.Shown; Line = item.Line; Words = "it mentions `" + Seq.head named + "`, which " + Path.GetFileName entry.Key + " has added since the build" })

    /// A name of the file's own namespace that something it opens has too: which one is meant depends on which file declares it.
    let hasRival (source: Source) (item: Item) : Reason option =
        let own = source.Before.Declared |> List.filter (fun one -> source.Before.Namespaces.Contains one.Path) |> List.map (fun one -> one.Name) |> Set.ofList
        let opened = item.Openings |> List.choose (function Opens text -> Some(text.Replace("open type ", "").Replace("open ", "").Trim()) | Own _ -> None)
        let isType (name: string) = AppDomain.CurrentDomain.GetAssemblies() |> Array.exists (fun assembly -> not (isNull (try assembly.GetType name with _ -> null)))
        Set.intersect item.Words own
        |> Seq.tryFind (fun name -> opened |> List.exists (fun space -> isType (space + "." + name)))
        |> Option.map (fun name -> { Code = "ambiguous"; Name = item.Shown; Line = item.Line; Words = "it mentions `" + name + "`, which its namespace has and something that it opens has too" })

    /// A value of a module that is a structure cannot be changed by code of another assembly, which gets a copy.
    let changesCopy (baseline: Baseline) (item: Item) : Reason option =
        let named = Set.intersect (item.Words - item.Arguments) baseline.ChangedInPlace.Value
        if Set.isEmpty named then None
        else Some { Code = "mutable_struct"; Name = item.Shown; Line = item.Line; Words = "it uses `" + Seq.head named + "`, a structure that changes in place" }

    /// The names that files behind one show to namespaces, with the names of the files. A file whose place is not known counts as behind.
    let laterThan (path: string) : (string * string) list =
        let place (one: string) = order |> List.tryFindIndex ((=) one)
        let own = place path
        let isBehind (one: string) = match own, place one with Some own, Some other -> other > own | _ -> true
        [ for one, _ in baselines |> List.collect (fun one -> one.Sources) do
            if one <> path && isBehind one then
                match sourceOf one with
                | Ok source ->
                    for declared in source.Before.Declared do
                        if source.Before.Namespaces.Contains declared.Path then declared.Name, Path.GetFileName one
                | Error _ -> () ]

    /// What of a file is to be compiled, as it is now.
    let changeOf (saved: (string * string) list) (path: string, text: string) : Result<Change, Obstacle list> =
        let alone result = result |> Result.mapError List.singleton
        alone (sourceOf path) |> Result.bind (fun source ->
            match source.Baseline.Obstacle with
            | Some reason -> Error [ refusal path "not_modifiable" source.Baseline.Name 1 reason ]
            | None ->
                alone (outlineOf path text) |> Result.bind (fun after ->
                    let difference = between (wordsBeside path saved) (laterThan path) source.Before after
                    let items = toCompile source after difference
                    let isAdded (item: Item) = difference.Added |> List.exists (fun one -> one.Key = item.Key)
                    let ofItems = items |> List.collect (fun item -> [ changesCopy source.Baseline item; usesAddition path item; hasRival source item ] |> List.choose id)
                    match difference.Obstacles @ ofItems with
                    | [] -> Ok { Source = source; After = after; Items = [ for item in items -> item, isAdded item ] }
                    | all -> Error [ for found in all -> refusal path found.Code found.Name found.Line found.Words ]))

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
                |> Result.map (fun (old, replacement) -> { Deltas.Old = old; Deltas.New = replacement })
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

    /// What the compiler says of a submission that it does not take.
    let complaints (path: string) (messages: CompilerMessage[]) : Obstacle list =
        match messages |> Array.filter (fun message -> message.Severity = "error") |> List.ofArray with
        | [] -> [ refusal path "not_compiled" (Path.GetFileName path) 1 "the compiler of this SDK compiles no part of a project" ]
        | errors ->
            [ for message in errors do
                let file = if File.Exists message.File then message.File else path
                refusal file "not_compiled" (Path.GetFileName file) message.StartLine message.Text ]

    /// Compiles declarations, and gives the methods that they are to replace.
    let compile (changes: Change list) : Result<Compiled list, Obstacle list> =
        let slices = [ for change in changes do for item, isAdded in change.Items -> change, sliceOf change.Source.Path item, isAdded ]
        let referenced = (check session "").Assemblies()
        let present = [ for change in changes do for item in change.After.Items -> keyOf change.Source.Path item ] |> Set.ofList
        let isGone (key: string) = changes |> List.exists (fun change -> key.StartsWith(change.Source.Path + "\n", StringComparison.Ordinal)) && not (present.Contains key)
        let placeOf (change: Change) (item: Item) : Slices.Place = { Assembly = change.Source.Baseline.Name; Path = item.Scope.Path }
        let text =
            slices
            |> List.map (fun (change, slice, _) -> placeOf change slice.Item, change.After, isStruct change.Source slice.Item, slice)
            |> Slices.submission (baselines |> List.map (fun one -> one.Name)) [ for entry in added do if not (isGone entry.Key) then entry.Value ]
        let standings =
            slices
            |> List.collect (fun (change, slice, _) -> standingsOf referenced change.Source slice.Item)
            |> List.distinctBy (fun one -> one.Assembly.SimpleName, one.Path)
        let path = (List.head changes).Source.Path
        match (try Ok(match isolated with Some isolated -> isolated.Run(standings, text) | None -> false, [||]) with e -> Error(e.GetBaseException())) with
        | Error e -> Error [ refusal path "raised" (Path.GetFileName path) 1 (e.GetType().FullName + ": " + e.Message) ]
        | Ok (false, messages) -> Error(complaints path messages)
        | Ok (true, _) ->
            slices
            |> List.map (fun (change, slice, isAdded) ->
                (if isAdded then Ok [] else redirectionsOf change.Source slice)
                |> Result.map (fun redirections -> { Of = change.Source; Slice = slice; IsAdded = isAdded; Redirections = redirections }))
            |> allOf

    /// Gives methods the bodies of their replacements, assembly by assembly.
    let redirect (compiled: Compiled list) : Result<unit, Obstacle list> =
        let rec each (left: (Baseline * Deltas.Redirection list) list) (ran: string list) =
            match left with
            | [] -> Ok()
            | (_, []) :: rest -> each rest ran
            | (baseline, redirections) :: rest ->
                try
                    baseline.Redirect redirections
                    each rest (baseline.Name :: ran)
                with :? InvalidOperationException as e ->
                    let already = if List.isEmpty ran then "" else "; what changed in " + String.Join(", ", ran) + " runs already"
                    Error [ refusal compiled.Head.Of.Path "runtime_refused" baseline.Name 1 (e.Message + already) ]
        let byAssembly = compiled |> List.groupBy (fun one -> one.Of.Baseline.Name)
        each [ for _, all in byAssembly -> all.Head.Of.Baseline, (all |> List.collect (fun one -> one.Redirections)) ] []

    /// Whether a declaration runs otherwise than it has run.
    let isNews (source: Source) (item: Item) : bool =
        let key = keyOf source.Path item
        match source.Baseline.Current.TryGetValue key with
        | true, text -> text <> item.Text
        | _ -> source.Before.Items |> List.forall (fun one -> keyOf source.Path one <> key || one.Text <> item.Text)

    /// Takes note of what runs now.
    let remember (changes: Change list) (compiled: Compiled list) =
        for change in changes do
            let source = change.Source
            latest.[source.Path] <- wordsIn (String.Join("\n", change.After.Lines))
            let built = source.Before.Items |> List.collect (fun item -> item.Names) |> Set.ofList
            addedNames.[source.Path] <- (change.After.Items |> List.collect (fun item -> item.Names) |> Set.ofList) - built
            let present = change.After.Items |> List.map (keyOf source.Path) |> Set.ofList
            for key in List.ofSeq added.Keys do
                if key.StartsWith(source.Path + "\n", StringComparison.Ordinal) && not (present.Contains key) then added.Remove key |> ignore
            let known = source.Before.Items |> List.map (fun item -> keyOf source.Path item, item.Text) |> Map.ofList
            for item, _ in change.Items do
                let key = keyOf source.Path item
                if known.TryFind key = Some item.Text && item.Kind <> Value then source.Baseline.Current.Remove key |> ignore
                else source.Baseline.Current.[key] <- item.Text
        for one in compiled do
            if one.IsAdded && one.Slice.Item.Kind = Value then
                added.[keyOf one.Of.Path one.Slice.Item] <- ({ Assembly = one.Of.Baseline.Name; Path = one.Slice.Item.Scope.Path }, one.Slice.Module)

    /// Puts in what differs; gives what runs now and did not before.
    let putIn (changes: Change list) : Result<(Source * Item) list, Obstacle list> =
        match changes |> List.filter (fun change -> not (List.isEmpty change.Items)) with
        | [] ->
            remember changes []
            Ok []
        | some ->
            compile some |> Result.bind (fun compiled ->
                redirect compiled |> Result.map (fun () ->
                    let news = [ for one in compiled do if isNews one.Of one.Slice.Item then one.Of, one.Slice.Item ]
                    remember changes compiled
                    news))

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
            if item.Kind = Value then { Name = item.Shown; File = path; Line = item.Line } ]

    /// Reads all sources, which the first swap would wait for.
    member _.ReadAhead() =
        for baseline in baselines do
            for path, _ in baseline.Sources do
                sourceOf path |> ignore

    /// Compiles something, which the first swap would wait for. As for a swap, the session may compile nothing meanwhile.
    member _.WarmUp() =
        isolated |> Option.iter (fun isolated -> isolated.Run([], "module WarmUp =\n let f (x: int) = x + 1\n") |> ignore)
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
            changes |> List.exists (fun (other, change) -> other = path && (match change with Ok change -> not (List.isEmpty change.Items) | Error _ -> true))
        let filesWhere isMeant = [ for path, (_, hash) in contents do if isMeant path then path, hash ]
        match result with
        | Error obstacles -> { Files = filesWhere isOther; Assemblies = []; Swapped = []; Outdated = []; Obstacles = obstacles }
        | Ok swapped ->
            { Files = filesWhere (fun _ -> true)
              Assemblies = swapped |> List.map (fun (source, _) -> source.Baseline.Path) |> List.distinct
              Swapped = [ for source, item in swapped -> { Name = item.Shown; File = source.Path; Line = item.Line } ]
              Outdated = outdatedBy swapped
              Obstacles = [] }
