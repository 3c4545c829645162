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

/// What one session has put in; it sees nothing of what the session does later. `assemblies` are the paths of its project's own, and `symbols` what conditional compilation of them
/// knows, and `order` has their sources in the order of the build.
type Swapping(session: Session, symbols: Set<string>, assemblies: string list, order: string list) =
    let baselines = capture assemblies
    let isolated = try Some(Isolated.Isolated session) with _ -> None
    let outlines = Dictionary<string, Source>()
    let added = Dictionary<string, Scope * string>() // the modules in which values were compiled that the build does not have, by their key
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

    let words (except: string list) : (string * Set<string>) list =
        [ for baseline in baselines do
            for path, text in baseline.Sources do
                if not (List.contains path except) then
                    match outlines.TryGetValue path with
                    | true, source -> Path.GetFileName path, source.Words
                    | _ -> Path.GetFileName path, wordsIn text ]

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
        let siblings = baselines |> List.tryFind (fun one -> one.Sources |> List.exists (fst >> (=) path))
        [ for one, _ in siblings |> Option.map (fun one -> one.Sources) |> Option.defaultValue [] do
            if one <> path && isBehind one then
                match sourceOf one with
                | Ok source ->
                    for declared in source.Before.Declared do
                        if source.Before.Namespaces.Contains declared.Path then declared.Name, Path.GetFileName one
                | Error _ -> () ]

    let differenceOf (others: (string * Set<string>) list) (path: string, text: string) =
        let one result = result |> Result.mapError List.singleton
        one (sourceOf path) |> Result.bind (fun source ->
            match source.Baseline.Obstacle with
            | Some reason -> Error [ refusal path "not_modifiable" source.Baseline.Name 1 reason ]
            | None ->
                one (outlineOf path text) |> Result.bind (fun after ->
                    let difference = between others (laterThan path) source.Before after
                    let items = toCompile source after difference
                    match difference.Obstacles @ (items |> List.choose (changesCopy source.Baseline)) with
                    | [] -> Ok(source, after, items, difference)
                    | all -> Error [ for found in all -> refusal path found.Code found.Name found.Line found.Words ]))

    let compiledModule (name: string) : Type option =
        evaluatedAssemblies session |> List.rev |> List.tryPick (fun assembly ->
            try
                assembly.GetTypes() |> Array.tryFind (fun kind -> kind.Name = name)
            with _ -> None)

    let pairsOf (source: Source) (slice: Slices.Slice) (isAdded: bool) : Result<Deltas.Redirection list, Obstacle> =
        let refuse reason = Error(refusal source.Path "signature" slice.Item.Shown slice.Item.Line reason)
        match compiledModule slice.Module with
        | _ when isAdded -> Ok []
        | None -> refuse "what was compiled of it is not found"
        | Some compiled ->
            let each = List.zip slice.Item.CompiledNames slice.Names |> List.map (fun (old, name) -> Replaced.pair source.Baseline.Assembly compiled slice.Item old name)
            match each |> List.tryPick (function Error reason -> Some reason | Ok _ -> None) with
            | Some reason -> refuse reason
            | None -> Ok(each |> List.choose (function Ok (old, replacement) -> Some { Deltas.Old = old; Deltas.New = replacement } | Error _ -> None))

    let sliceOf (path: string) (item: Item) : Slices.Slice =
        count <- count + 1
        let name = "Swapped" + string count
        let names = match item.Kind with Member _ -> [ "swapped" + string count ] | Function | Value -> item.CompiledNames
        { Item = item; File = path; Module = name; Names = names }

    /// Compiles declarations, and gives the methods that they are to replace.
    let compile (changes: (Source * Outline * (Item * bool) list) list) : Result<(Source * Slices.Slice * bool * Deltas.Redirection list) list, Obstacle list> =
        let slices = [ for source, after, items in changes do for item, isAdded in items -> source, after, sliceOf source.Path item, isAdded ]
        let referenced = lazy (check session "").Assemblies()
        let standing (source: Source) (item: Item) : Isolated.Standing list =
            match referenced.Value |> List.tryFind (fun one -> one.SimpleName = source.Baseline.Name) with
            | None -> []
            | Some assembly ->
                let within = match item.Kind with Member one -> [ item.Scope.Path @ [ one.Type ] ] | Function | Value -> []
                item.Scope.Path :: within |> List.map (fun path -> { Isolated.Assembly = assembly; Isolated.Path = path })
        let isStruct (source: Source) (item: Item) (name: string) =
            match item.Kind with
            | Member one -> Replaced.typeOf source.Baseline.Assembly item.Scope name one.Parameters.Length |> Option.exists (fun kind -> kind.IsValueType)
            | Function
            | Value -> false
        let text =
            slices
            |> List.map (fun (source, after, slice, _) -> after, isStruct source slice.Item, slice)
            |> Slices.submission (baselines |> List.map (fun one -> one.Name)) (List.ofSeq added.Values)
        let standings = slices |> List.collect (fun (source, _, slice, _) -> standing source slice.Item) |> List.distinctBy (fun one -> one.Assembly.SimpleName, one.Path)
        let fallback = match changes with (source, _, _) :: _ -> source.Path | [] -> ""
        let run () = match isolated with Some isolated -> isolated.Run(standings, text) | None -> false, [||]
        match run () with
        | false, messages ->
            match messages |> Array.filter (fun message -> message.Severity = "error") |> List.ofArray with
            | [] -> Error [ refusal fallback "not_compiled" (Path.GetFileName fallback) 1 "the compiler of this SDK compiles no part of a project" ]
            | errors ->
                Error [ for message in errors do
                            let file = if File.Exists message.File then message.File else fallback
                            refusal file "not_compiled" (Path.GetFileName file) message.StartLine message.Text ]
        | true, _ ->
            let paired = slices |> List.map (fun (source, _, slice, isAdded) -> pairsOf source slice isAdded |> Result.map (fun pairs -> source, slice, isAdded, pairs))
            match paired |> List.choose (function Error refused -> Some refused | Ok _ -> None) with
            | [] -> Ok(paired |> List.choose (function Ok one -> Some one | Error _ -> None))
            | refused -> Error refused

    /// Gives methods the bodies of their replacements, assembly by assembly.
    let redirect (compiled: (Source * Slices.Slice * bool * Deltas.Redirection list) list) : Result<unit, Obstacle list> =
        let byAssembly = compiled |> List.groupBy (fun (source, _, _, _) -> source.Baseline.Name)
        try
            for _, all in byAssembly do
                let source, _, _, _ = all.Head
                match all |> List.collect (fun (_, _, _, pairs) -> pairs) with
                | [] -> ()
                | redirections -> source.Baseline.Redirect redirections
            Ok()
        with :? InvalidOperationException as e ->
            let source, _, _, _ = compiled.Head
            Error [ refusal source.Path "runtime_refused" source.Baseline.Name 1 e.Message ]

    let remember (changes: (Source * Outline * (Item * bool) list) list) (compiled: (Source * Slices.Slice * bool * Deltas.Redirection list) list) =
        for source, _, items in changes do
            let known = source.Before.Items |> List.map (fun item -> keyOf source.Path item, item.Text) |> Map.ofList
            for item, _ in items do
                let key = keyOf source.Path item
                if known.TryFind key = Some item.Text && item.Kind <> Value then source.Baseline.Current.Remove key |> ignore
                else source.Baseline.Current.[key] <- item.Text
        for source, slice, isAdded, _ in compiled do
            if isAdded && slice.Item.Kind = Value then added.[keyOf source.Path slice.Item] <- (slice.Item.Scope, slice.Module)

    /// What differs, and can be put in.
    let changesIn (files: (string * string) list) : Result<(Source * Outline * (Item * bool) list) list, Obstacle list> =
        let others = words (List.map fst files)
        let differences = files |> List.map (differenceOf others)
        match differences |> List.collect (function Error refused -> refused | Ok _ -> []) with
        | _ :: _ as refused -> Error refused
        | [] ->
            Ok [ for found in differences do
                    match found with
                    | Ok (source, after, items, difference) when not (List.isEmpty items) ->
                        let isAdded (item: Item) = difference.Added |> List.exists (fun one -> one.Key = item.Key)
                        yield source, after, [ for item in items -> item, isAdded item ]
                    | Ok _
                    | Error _ -> () ]

    let putIn changes =
        if List.isEmpty changes then Ok []
        else
            compile changes |> Result.bind (fun compiled ->
                redirect compiled |> Result.map (fun () ->
                    remember changes compiled
                    [ for source, slice, _, _ in compiled -> source, slice.Item ]))

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
        let result =
            match gone with
            | [] -> changesIn [ for path, (text, _) in contents -> path, text ] |> Result.bind putIn
            | gone -> Error [ for path in gone -> refusal path "gone" (Path.GetFileName path) 1 "the file is gone" ]
        { Files = [ for path, (_, hash) in contents -> path, hash ]
          Assemblies = (match result with Ok swapped -> swapped |> List.map (fun (source, _) -> source.Baseline.Path) |> List.distinct | Error _ -> [])
          Swapped = (match result with Ok swapped -> [ for source, item in swapped -> { Name = item.Shown; File = source.Path; Line = item.Line } ] | Error _ -> [])
          Outdated = (match result with Ok swapped -> outdatedBy swapped | Error _ -> [])
          Obstacles = (match result with Ok _ -> [] | Error obstacles -> obstacles) }
