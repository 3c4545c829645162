/// What was exchanged in a session's project, in order, and which tests reach it. Each exchange is told with the methods that were redirected; what
/// the newly compiled bodies call counts as well as what the older ones called.
module Mainstay.Worker.Affected

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.CallGraph

/// What runs in place of what ran before.
type Body =
    /// What was compiled anew: the type that it stands in, and what the source of it mentions, for where the code cannot be read.
    | Compiled of kind: Type option * words: Set<string>
    /// What the build has.
    | AsBuilt

/// A declaration that runs otherwise than it ran.
type Exchanged =
    { Name: string
      /// The methods of the project that it stands for; none where the build has none of it.
      Old: MethodBase list
      New: Body
      /// Whether it runs otherwise than before; what is only compiled once more does not.
      IsNews: bool }

/// A value that was made by code that has changed since.
type MadeEarlier =
    { /// Its full name, where it may be a value of a module.
      Value: string option
      /// The type that has it as a static field, and the name of that.
      Type: string
      Field: string }

/// The nodes of what has changed, by the names of the declarations.
type private Change =
    { Names: string list
      Nodes: int list }

/// `assemblies` are the paths of the project's own, as they were loaded.
type Affected(assemblies: string list) =
    let gate = obj ()
    let told = Queue<Exchanged list>() // and not yet taken in
    let changes = List<Change>()
    let known = Dictionary<Assembly, bool>() // those of submissions: whether their code could be read
    let submissions = Dictionary<Assembly, string>() // the names by which the graph knows them
    let id = Guid.NewGuid().ToString "N"
    let mutable count = 0 // of what was told
    let remade = HashSet<int>() // the getters of values that were made anew
    let compiledAs = Dictionary<string, string>() // the names of these, by the types in which they were compiled
    let compiledBefore = Dictionary<string, int list>() // what each declaration was compiled as, by its name: what was made meanwhile may call it
    let own = assemblies |> List.map Path.GetFileNameWithoutExtension |> Set.ofList

    let graph =
        lazy
            (let graph = CallGraph()
             graph.Add(ofFiles assemblies)
             graph)

    let places = Dictionary<string, Dictionary<int, string * int>>() // of the assemblies, by their names

    let placesIn (name: string) =
        match places.TryGetValue name with
        | true, found -> found
        | _ ->
            let path = assemblies |> List.tryFind (fun path -> Path.GetFileNameWithoutExtension path = name)
            let found = match path with Some path -> SourcePlaces.ofAssembly path | None -> Dictionary()
            places.[name] <- found
            found

    /// The name by which the graph knows the methods of a submission. Submissions of two states may have one name.
    let submissionName (assembly: Assembly) =
        match submissions.TryGetValue assembly with
        | true, name -> name
        | _ ->
            let name = "submission " + string submissions.Count
            submissions.[assembly] <- name
            name

    let isRead (assembly: Assembly) : bool =
        match known.TryGetValue assembly with
        | true, isRead -> isRead
        | _ ->
            let isRead =
                try
                    match ofLoaded assembly (fun name -> own.Contains name || Turns.isSubmission name) with
                    | Some defined ->
                        graph.Value.Add [ (submissionName assembly, defined) ]
                        true
                    | None -> false
                with _ -> false
            known.[assembly] <- isRead
            isRead

    let nodeOf (found: MethodBase) : int list =
        let assembly = found.Module.Assembly
        let name = if own.Contains(assembly.GetName().Name) then assembly.GetName().Name else submissionName assembly
        graph.Value.OfToken(name, found.MetadataToken) |> Option.toList

    let everyMember = BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.DeclaredOnly

    /// Takes in what was exchanged; gives the nodes of it.
    let takeIn (one: Exchanged) : int list =
        let old = List.collect nodeOf one.Old
        // A test that is a closure is known by the type of that.
        let rec closuresOf (kind: Type) : int list =
            [ for inner in kind.GetNestedTypes(BindingFlags.Public ||| BindingFlags.NonPublic) do
                yield! graph.Value.RootsOf inner.FullName
                yield! closuresOf inner ]
        let methodsOf (kind: Type) = (kind.GetMethods everyMember |> Seq.collect nodeOf |> List.ofSeq) @ closuresOf kind
        let meant (words: Set<string>) = Seq.append words Outline.builderMembers |> Seq.collect graph.Value.Named |> List.ofSeq
        let compiled, called =
            match one.New with
            | AsBuilt -> [], []
            | Compiled (Some kind, _) when isRead kind.Assembly -> (let own = methodsOf kind in own, own)
            | Compiled (_, words) -> [], meant words
        for caller in old do
            for callee in called do graph.Value.Link(caller, callee)
            if compiled <> [] then remade.Add caller |> ignore else remade.Remove caller |> ignore
        match one.New with
        | Compiled (Some kind, _) -> compiledAs.[CallGraph.sourceName kind.FullName] <- one.Name
        | _ -> ()
        let before = match compiledBefore.TryGetValue one.Name with | true, nodes -> nodes | _ -> []
        compiledBefore.[one.Name] <- compiled @ before
        List.collect graph.Value.WithStored old @ compiled @ before

    /// Takes in what was told; a swap does not wait for it.
    let takeAllIn () =
        let news =
            lock told (fun () ->
                let all = List.ofSeq told
                told.Clear()
                all)
        for all in news do
            // What cannot be read is no reason to forget the others, or that there was an exchange.
            let nodes = all |> List.map (fun one -> one, (try takeIn one with _ -> []))
            let news = nodes |> List.filter (fun (one, _) -> one.IsNews)
            changes.Add { Names = news |> List.map (fun (one, _) -> one.Name); Nodes = news |> List.collect snd }

    /// Which of some tests reach these nodes. A test that is a closure is run by its framework alone, whoever else made it.
    let reaching (nodes: int list) (tests: string list list) : bool list =
        let rootsOf = List.collect graph.Value.RootsOf
        let isClosure (root: string) = not (root.Contains "::")
        let closures = tests |> List.collect (List.filter isClosure >> rootsOf)
        let reached = graph.Value.Reaching(nodes, HashSet closures)
        let isReached (roots: int list) = List.isEmpty roots || List.exists reached.Contains roots
        tests |> List.map (rootsOf >> isReached)

    /// Reads the assemblies, which the first question would wait for.
    member _.Prepare() = lock gate (fun () -> graph.Force().Size)

    /// Something was exchanged.
    member _.Tell(exchanged: Exchanged list) =
        lock told (fun () ->
            told.Enqueue exchanged
            count <- count + 1)

    /// The values that what was exchanged last has made as it was before.
    member _.MadeEarlier() : MadeEarlier list =
        lock gate (fun () ->
            takeAllIn ()
            let changed = if changes.Count = 0 then [] else changes.[changes.Count - 1].Nodes
            let runsWhenCalled (owner: string) (field: string) =
                let kind = AppDomain.CurrentDomain.GetAssemblies() |> Seq.filter (fun one -> own.Contains(one.GetName().Name)) |> Seq.tryPick (fun one -> Option.ofObj (one.GetType owner))
                let found = kind |> Option.bind (fun kind -> Option.ofObj (kind.GetField(field, everyMember)))
                found |> Option.exists (fun found -> MainstayDisplay.EngineExpecto.isOfTests found.FieldType || FSharp.Reflection.FSharpType.IsFunction found.FieldType)
            let told (id: int, isDirect: bool) =
                let owner, field, getter = graph.Value.Field id
                if field.StartsWith("init@", StringComparison.Ordinal) || field.StartsWith("<", StringComparison.Ordinal) then None
                elif getter |> Option.exists remade.Contains then None
                elif not isDirect && runsWhenCalled owner field then None
                else
                    let valueOf (getter: int) =
                        let owner, short = graph.Value.Method getter
                        let owner = CallGraph.sourceName owner
                        match compiledAs.TryGetValue owner with
                        | true, name -> name
                        | _ -> owner + "." + short
                    Some { Value = Option.map valueOf getter; Type = CallGraph.sourceName owner; Field = field.Split('@').[0] }
            graph.Value.MadeBy changed |> List.choose told |> List.distinct)

    /// What the code is at present: another after each exchange.
    member _.Mark : string = lock told (fun () -> id + ":" + string count)

    /// What was exchanged since a mark was given, and a function that says of tests, each told by its roots, whether they reach it; a test of
    /// which no root is known does. None where the mark is not of this session.
    member _.Since(mark: string) : (string list * (string list list -> bool list)) option =
        match mark.Split ':' with
        | [| known; number |] when known = id ->
            lock gate (fun () ->
                takeAllIn ()
                let since = changes |> Seq.skip (min changes.Count (int number)) |> List.ofSeq
                let nodes = since |> List.collect (fun one -> one.Nodes)
                let names = since |> List.collect (fun one -> one.Names) |> List.distinct
                Some(names, fun tests -> lock gate (fun () -> reaching nodes tests)))
        | _ -> None

    /// The file and line at which a test begins, told by its roots.
    member _.PlaceOf(roots: string list) : (string * int) option =
        let placeOf (struct (name: string, token: int)) =
            match (placesIn name).TryGetValue token with
            | true, place -> Some place
            | _ -> None
        lock gate (fun () -> roots |> List.tryPick graph.Value.DefinitionOf |> Option.bind placeOf)

    /// A function that says of tests, each told by its roots, whether they reach a declaration of this name; None where there is none.
    member _.Reaching(name: string) : (string list list -> bool list) option =
        lock gate (fun () ->
            takeAllIn ()
            match graph.Value.Declared name with
            | [] -> None
            | nodes ->
                let nodes = List.collect graph.Value.WithStored nodes
                Some(fun tests -> lock gate (fun () -> reaching nodes tests)))

    /// Reads the graph as it is with all that was told. The graph is nobody's else meanwhile.
    member _.Read(work: CallGraph -> 'T) : 'T =
        lock gate (fun () ->
            takeAllIn ()
            work graph.Value)
