/// Which tests reach the lines of the project's source files: those that ran them where that was measured, and else, by the graph of its calls, those
/// that may. A line has the tests that reach the code made of it; where the file was saved since it was built, the lines are those of the saved file.
module Mainstay.Worker.Coverage

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.Affected
open Mainstay.Worker.Baselines
open Mainstay.Worker.CallGraph
open Mainstay.Worker.Measurement
open Mainstay.Worker.MovedLines
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol
open Mainstay.Worker.SourcePlaces

/// A part of an assembly's code: the name of that, and the part's number in its symbols.
type private Part = (struct (string * int))

/// Lines that code of one node of the graph was made of.
type private Made =
    { Lines: int * int
      Node: int
      /// The declaration that they are of, by its own name or that of what the compiler made of it.
      Name: string
      /// What is measured of them; None for what makes values, which runs once for all tests.
      Part: Part option }

/// Lines that a piece of a method was made of.
type private Piece =
    { Lines: int * int
      Method: int
      /// What the code that follows stores a value in.
      Value: int option
      /// Whether no other piece comes before that.
      IsCertain: bool
      Part: Part option }

/// A file as it was built and as it is.
type private Saved =
    | Unchanged
    | Changed of Versions
    /// How its lines correspond is not known.
    | Unread

/// What is said of a line.
type private Mark =
    { Span: int
      Nodes: int list
      Of: string
      IsUnsure: bool
      /// What is measured of it; None where that is not all.
      Parts: Part list option }

/// What was measured of this project.
type private Measured =
    { /// What the code was.
      Code: string
      /// The tests, each by its assembly and where its code begins, with their numbers.
      Numbers: Dictionary<struct (string * string list), int>
      /// The tests that ran each part, a bit for each.
      RanBy: Dictionary<Part, uint64[]>
      /// The parts of which it is known whether they ran.
      Noted: HashSet<Part>
      /// What ran before: what of it no test runs is run once for all of them.
      AtFirst: HashSet<Part>
      Notes: string list }

let private isNamed (name: string) (asked: string) = name = asked || name.EndsWith("." + asked, StringComparison.Ordinal)

let private isFile (path: string) (asked: string) =
    let plain (text: string) = text.Replace('\\', '/')
    plain path = plain asked || (plain path).EndsWith("/" + plain asked, StringComparison.Ordinal)

let private everyMember = BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.DeclaredOnly

/// `assemblies` are the paths of the project's own, `sources` what they are built from. `outlineOf` reads a file of this path and text.
type Coverage(affected: Affected, assemblies: string list, sources: string list, outlineOf: string -> string -> Outline option) =
    let stretches = Dictionary<string, Stretch list>() // of the assemblies
    let built = Dictionary<string, Outline option>() // the files as they were built
    let exchanged = Dictionary<string, Type * Set<string>>() // the newest code of what was exchanged, and its words, by its name
    let mutable last: (string * string list list * Reach.Reached) option = None
    let mutable measured: Measured option = None

    let stretchesIn (path: string) =
        match stretches.TryGetValue path with
        | true, found -> found
        | _ ->
            let found = stretchesOf path
            stretches.[path] <- found
            found

    let isSource = let all = HashSet<string> sources in all.Contains

    let readText (path: string) : string option =
        try
            use reader = new StreamReader(path)
            Some(reader.ReadToEnd())
        with _ -> None

    let builtOutline (path: string) (text: string) =
        match built.TryGetValue path with
        | true, outline -> outline
        | _ ->
            let outline = outlineOf path text
            built.[path] <- outline
            outline

    let savedOf (path: string) : Saved =
        let known = capture assemblies |> List.tryPick (fun one -> one.Sources |> List.tryFind (fst >> (=) path) |> Option.map (fun (_, text) -> one, text))
        match known, readText path with
        | Some (_, text), Some now when now = text -> Unchanged
        | Some (baseline, text), Some now ->
            match builtOutline path text, outlineOf path now with
            | Some before, Some after ->
                let isAsBuilt (item: Item) = before.Items |> List.exists (fun one -> one.Key = item.Key && one.Text = item.Text)
                let runs (item: Item) =
                    match baseline.Current.TryGetValue { File = path; Key = item.Key } with
                    | true, running -> running.Text = item.Text || running.Text.StartsWith(item.Text + "\n", StringComparison.Ordinal)
                    | _ -> isAsBuilt item
                Changed { Built = before; Saved = after; Runs = runs }
            | _ -> Unread
        | _ -> Unread

    /// What was made of the lines of the project's files, by file.
    let piecesIn (graph: CallGraph) : (string * Piece list) list =
        let found = Dictionary<string, List<Piece>>()
        let add (file: string) (piece: Piece) =
            match found.TryGetValue file with
            | true, all -> all.Add piece
            | _ -> found.[file] <- List<Piece>([ piece ])
        for path in assemblies do
            let assembly = Path.GetFileNameWithoutExtension path
            let baseline = capture [ path ] |> List.head
            for token, all in stretchesIn path |> List.indexed |> List.groupBy (fun (_, one) -> one.Token) do
                match graph.OfToken(assembly, token) with
                | None -> ()
                | Some method' ->
                    let stores = graph.StoresOf method'
                    for number, one in all do
                        if isSource one.File then
                            let store = stores |> List.tryFind (fun (at, _) -> at >= one.Offset)
                            let isLast (at: int) = all |> List.forall (fun (_, other) -> other.Offset <= one.Offset || other.Offset > at)
                            add one.File
                                { Lines = (one.First, one.Last)
                                  Method = method'
                                  Value = Option.map snd store
                                  IsCertain = (match store with Some (at, _) -> isLast at | None -> true)
                                  Part = if List.isEmpty stores && baseline.IsAsBuilt token then Some(struct (assembly, number)) else None }
        [ for path in sources do
            match found.TryGetValue path with
            | true, all -> path, all |> Seq.distinct |> Seq.sortBy (fun one -> fst one.Lines) |> List.ofSeq
            | _ -> () ]

    /// Whether a line is of a value of a module as it was built, as far as the file can be read.
    let isOfValue (path: string) : int -> bool =
        let text = capture assemblies |> List.tryPick (fun one -> one.Sources |> List.tryFind (fst >> (=) path) |> Option.map snd)
        match text |> Option.bind (builtOutline path) with
        | Some outline -> fun line -> outline.Items |> List.exists (fun item -> item.Kind = Value && item.Line <= line && line <= item.EndLine)
        | None -> fun _ -> true

    /// The same with names. Where a value is made by several pieces of code, what stands between values is told from what is part of one.
    let named (graph: CallGraph) (isOfValue: int -> bool) (pieces: Piece list) : Made list =
        let nodeOf (piece: Piece) =
            match piece.Value with
            | Some value when piece.IsCertain || isOfValue (fst piece.Lines) -> value
            | _ -> piece.Method
        let ordered = pieces |> List.map (fun piece -> piece, nodeOf piece)
        let declared = ordered |> List.choose (snd >> graph.SourceName) |> HashSet<string>
        let name (before: string) (node: int) =
            match graph.SourceName node, graph.MadeOf node with
            | Some name, _ -> name
            | None, Some name when declared.Contains name || before = "" -> name
            | None, _ -> before
        ordered
        |> List.mapFold (fun before (piece, node) ->
            let name = name before node
            { Lines = piece.Lines; Node = node; Name = name; Part = piece.Part }, name) ""
        |> fst

    /// The nodes of what was compiled of a declaration after the build.
    let compiledNodes (graph: CallGraph) (name: string) : int list =
        match exchanged.TryGetValue name with
        | true, (kind, _) -> kind.GetMethods everyMember |> Seq.collect (fun one -> graph.RootsOf(kind.FullName + "::" + one.Name)) |> Seq.distinct |> List.ofSeq
        | _ -> []

    /// The declarations that were compiled after the build and mention one of this name: the compiler may have put its code into theirs.
    let mentioning (name: string) : string list =
        let short = name.Substring(name.LastIndexOf '.' + 1)
        [ for entry in exchanged do if entry.Key <> name && (snd entry.Value).Contains short then entry.Key ]

    /// The nodes of a declaration that the build does not have, and of those that may have its code.
    let addedNodes (graph: CallGraph) (name: string) : int list =
        let rec spread (seen: Set<string>) (left: string list) =
            match left with
            | [] -> seen
            | one :: rest when seen.Contains one -> spread seen rest
            | one :: rest -> spread (seen.Add one) (mentioning one @ rest)
        spread Set.empty [ name ] |> Seq.collect (compiledNodes graph) |> Seq.distinct |> List.ofSeq

    /// What is said of each line of a file.
    let marksOf (graph: CallGraph) (saved: Saved) (made: Made list) : SortedDictionary<int, Mark> =
        let marks = SortedDictionary<int, Mark>()
        let note (first: int, last: int) (name: string) (isUnsure: bool) (nodes: int list) (part: Part option) =
            let span, parts = last - first, Option.map List.singleton part
            for line in first .. last do
                match marks.TryGetValue line with
                | true, known when known.Span < span -> ()
                | true, known when known.Span = span && known.Of = name ->
                    marks.[line] <-
                        { known with
                            Nodes = List.distinct (nodes @ known.Nodes)
                            IsUnsure = isUnsure || known.IsUnsure
                            Parts = Option.map2 (@) parts known.Parts }
                | _ -> marks.[line] <- { Span = span; Nodes = nodes; Of = name; IsUnsure = isUnsure; Parts = parts }
        for one in made do
            // What runs in its place was compiled since, and is not measured.
            let part = if exchanged.ContainsKey one.Name then None else one.Part
            let noted lines isUnsure = note lines one.Name isUnsure [ one.Node ] part
            match saved with
            | Unchanged -> noted one.Lines false
            | Unread -> noted one.Lines true
            | Changed versions ->
                match placeOf versions one.Lines with
                | At (first, last)
                | Within (first, last) -> noted (first, last) false
                | NotKnown -> noted one.Lines true
                | Gone -> ()
        match saved with
        | Changed versions ->
            let isNew (item: Item) = versions.Built.Items |> List.forall (fun one -> one.Key <> item.Key)
            for item in versions.Saved.Items |> List.filter isNew do
                let isRunning = versions.Runs item
                note (linesOf item) item.Shown (not isRunning) (if isRunning then addedNodes graph item.Shown else []) None
        | Unchanged
        | Unread -> ()
        marks

    let reachedBy (graph: CallGraph) (tests: CoveringTests list) : Reach.Reached =
        let roots = tests |> List.map (fun one -> one.Roots)
        match last with
        | Some (mark, known, reached) when mark = affected.Mark && known = roots -> reached
        | _ ->
            let isClosure (root: string) = not (root.Contains "::")
            let endings = roots |> List.collect (List.filter isClosure >> List.collect graph.RootsOf)
            let reached = Reach.Reached(graph, roots |> List.map (List.collect graph.RootsOf) |> Array.ofList, HashSet<int> endings)
            last <- Some(affected.Mark, roots, reached)
            reached

    /// Where a node's code begins, as the files are saved.
    let placesOf (made: (string * Made list) list) : Dictionary<int, string * int> =
        let places = Dictionary<int, string * int>()
        for path, all in made do
            for one in all do
                if not (places.ContainsKey one.Node) then places.[one.Node] <- (path, fst one.Lines)
        places

    let callingOf (graph: CallGraph) (saved: string -> Saved) (places: Dictionary<int, string * int>) (nodes: int list) : CallingDeclaration list =
        let savedPlace (path: string, line: int) =
            match saved path with
            | Changed versions ->
                (match placeOf versions (line, line) with
                 | At (line, _)
                 | Within (line, _) -> path, line
                 | Gone
                 | NotKnown -> path, line)
            | Unchanged
            | Unread -> path, line
        let of' (node: int) : CallingDeclaration =
            let place = match places.TryGetValue node with | true, place -> Some(savedPlace place) | _ -> None
            { Name = defaultArg (graph.SourceName node) ""; Place = place }
        nodes |> List.map of' |> List.sortBy (fun one -> one.Name) |> List.distinctBy (fun one -> one.Name)

    /// What is part of whoever calls it: what was compiled in the place of a method of the build.
    let submitted (graph: CallGraph) : int -> bool =
        let inner = HashSet<int>(graph.Methods |> Seq.choose (fun (struct (assembly, _), node) -> if assembly.StartsWith("submission ", StringComparison.Ordinal) then Some node else None))
        inner.Contains

    /// Something was exchanged.
    member _.Tell(all: Exchanged list) =
        lock exchanged (fun () ->
            for one in all do
                match one.New with
                | Compiled (Some kind, words) -> exchanged.[one.Name] <- (kind, words)
                | Compiled (None, _)
                | AsBuilt -> exchanged.Remove one.Name |> ignore)

    /// The paths of the project's own assemblies.
    member _.Assemblies = assemblies

    /// Takes what was measured when the code was what a mark says; gives whether that was of this build, and the mark of this session.
    member _.Take(code: string, measurement: Measurement) : bool =
        let names = measurement.Assemblies |> List.map fst |> Array.ofList
        let isOurs = measurement.Assemblies |> List.forall (fun (name, build) -> capture assemblies |> List.exists (fun one -> one.Name = name && Measuring.buildOf one.Assembly = build))
        let isTaken = isOurs && (affected.Since code).IsSome
        if isTaken then
            let parts (ranges: PartRange list) : seq<Part> =
                seq { for range in ranges do if range.Assembly < names.Length then for number in range.First .. range.First + range.Count - 1 -> struct (names.[range.Assembly], number) }
            let numbers, ranBy = Dictionary<struct (string * string list), int>(), Dictionary<Part, uint64[]>()
            let width = (measurement.Tests.Length + 63) / 64
            for number, one in List.indexed measurement.Tests do
                numbers.[struct (one.Assembly, one.Roots)] <- number
                for part in parts one.Ran do
                    let bits =
                        match ranBy.TryGetValue part with
                        | true, bits -> bits
                        | _ ->
                            let bits = Array.zeroCreate<uint64> width
                            ranBy.[part] <- bits
                            bits
                    bits.[number / 64] <- bits.[number / 64] ||| (1UL <<< (number % 64))
            let taken =
                { Code = code
                  Numbers = numbers
                  RanBy = ranBy
                  Noted = HashSet<Part>(parts measurement.Noted)
                  AtFirst = HashSet<Part>(parts measurement.AtFirst)
                  Notes = measurement.Notes }
            lock exchanged (fun () -> measured <- Some taken)
        isTaken

    /// What was measured, and which of some tests it still says something of: those whose code has not changed since, each with its number in it.
    member private _.MeasuredOf(tests: CoveringTests list) : (Measured * Dictionary<int, int>) option =
        let known = lock exchanged (fun () -> measured)
        match known |> Option.bind (fun known -> affected.Since known.Code |> Option.map (fun (_, reaching) -> known, reaching)) with
        | None -> None
        | Some (known, reaching) ->
            let numbers = Dictionary<int, int>()
            // Where nothing was noted, nothing is known of any test.
            if known.Noted.Count > 0 then
                let hasChanged = reaching (tests |> List.map (fun one -> one.Roots))
                for number, (one, hasChanged) in List.indexed (List.zip tests hasChanged) do
                    match one.Assembly |> Option.map (fun assembly -> known.Numbers.TryGetValue(struct (assembly, one.Roots))) with
                    | Some (true, measured) when not hasChanged -> numbers.[number] <- measured
                    | _ -> ()
            Some(known, numbers)

    /// The tests that are known, in the order in which they are counted, and how many are not.
    member private _.Known(cases: CoveringTests list) : CoveringTests list * int =
        affected.Read(fun graph ->
            let isKnown (one: CoveringTests) = one.Roots |> List.exists (graph.RootsOf >> List.isEmpty >> not)
            let known, others = List.partition isKnown cases
            known, others |> List.sumBy (fun one -> List.length one.Names))

    /// Which of some tests reach which lines; None where nothing of that name is in the project. `unknown` more tests begin nobody knows where.
    member this.Read(asked: CoverageQuestion, cases: CoveringTests list, unknown: int, fingerprints: (string * string) list, notes: string list) : Protocol.Coverage option =
        let tests, others = this.Known cases
        let measured = this.MeasuredOf tests
        let isMeasured (number: int) = match measured with Some (_, numbers) -> numbers.ContainsKey number | None -> false
        let roots = tests |> List.map (fun one -> one.Roots)
        let numbers (reaching: bool list) = reaching |> List.indexed |> List.filter snd |> List.map fst
        let reaching = asked.Since |> List.distinct |> List.choose (fun mark -> affected.Since mark |> Option.map (fun (_, reaching) -> mark, numbers (reaching roots)))
        let pieces = affected.Read piecesIn
        // Files are read, and parsed, while nobody waits for the graph.
        let isMeantFile (path: string) = asked.File |> Option.forall (isFile path)
        let saved = dict [ for path, _ in pieces -> path, (if asked.Name.IsSome || isMeantFile path then savedOf path else Unchanged) ]
        let valueLines = dict [ for path, all in pieces -> path, (if List.forall (fun one -> one.IsCertain) all then (fun _ -> true) else isOfValue path) ]
        lock exchanged (fun () ->
            affected.Read(fun graph ->
                let made = pieces |> List.map (fun (path, all) -> path, named graph valueLines.[path] all)
                let reached = reachedBy graph tests
                let sets = Dictionary<int list, int>(HashIdentity.Structural)
                let isKnown (measured: Measured) (parts: Part list) =
                    List.forall measured.Noted.Contains parts && (List.exists measured.RanBy.ContainsKey parts || not (List.exists measured.AtFirst.Contains parts))
                let testsOf (mark: Mark) : int list =
                    let byCalls = reached.By mark.Nodes
                    match mark.Parts, measured with
                    | Some parts, Some (measured, numbers) when isKnown measured parts ->
                        let all = parts |> List.choose (fun part -> match measured.RanBy.TryGetValue part with | true, bits -> Some bits | _ -> None)
                        let ran = [ for entry in numbers do if all |> List.exists (fun bits -> bits.[entry.Value / 64] &&& (1UL <<< (entry.Value % 64)) <> 0UL) then entry.Key ]
                        ran @ List.filter (numbers.ContainsKey >> not) byCalls |> List.sort
                    | _ -> byCalls
                let setOf (mark: Mark) =
                    let tests = testsOf mark
                    match sets.TryGetValue tests with
                    | true, set -> set
                    | _ ->
                        sets.[tests] <- sets.Count
                        sets.Count - 1
                let isMeant (name: string) = asked.Name |> Option.forall (isNamed name)
                let linesOf (path: string) (made: Made list) : CoveredLines list =
                    let add (lines: CoveredLines list) (line: int, mark: Mark) =
                        let one = { First = line; Last = line; Count = 1; Name = mark.Of; Set = setOf mark; IsMoved = mark.IsUnsure }
                        match lines with
                        | before :: rest when before.Name = one.Name && before.Set = one.Set && before.IsMoved = one.IsMoved -> { before with Last = line; Count = before.Count + 1 } :: rest
                        | _ -> one :: lines
                    marksOf graph saved.[path] made |> Seq.filter (fun entry -> isMeant entry.Value.Of) |> Seq.map (fun entry -> entry.Key, entry.Value) |> Seq.fold add [] |> List.rev
                let files =
                    [ for path, all in made do
                        if isMeantFile path then
                            match linesOf path all with
                            | [] when asked.Name.IsSome -> ()
                            | lines -> path, lines ]
                let isShown (name: string) = files |> List.exists (fun (_, lines) -> lines |> List.exists (fun one -> one.Name = name))
                let unmeasured = if measured.IsSome then exchanged.Keys |> Seq.filter isShown |> Seq.sort |> List.ofSeq else []
                let ofUnmeasured =
                    match unmeasured with
                    | [] -> []
                    | names -> [ String.Join(", ", List.truncate 5 names) + (if names.Length > 5 then " and others" else "") + ": saved since the build, so that its lines are measured after the next one" ]
                // What the build does not have is known by what was compiled of it, and by who may have its code.
                let isAdded (name: string) = List.isEmpty (graph.Declared name)
                let changed = match asked.Name with Some name -> exchanged.Keys |> Seq.filter (fun one -> isNamed one name) |> List.ofSeq | None -> []
                let declared = match asked.Name with Some name -> graph.Declared name @ List.collect (compiledNodes graph) changed |> List.distinct | None -> []
                let inlined = changed |> List.filter isAdded |> List.collect mentioning |> List.collect (compiledNodes graph)
                let next (way: CallGraph -> (int -> bool) -> int list -> int list) (nodes: int list) =
                    if List.isEmpty nodes then [] else callingOf graph (fun path -> saved.[path]) (placesOf made) (way graph (submitted graph) (List.collect graph.WithStored nodes))
                let addedCallees =
                    [ for one in exchanged.Keys do
                        if isAdded one && changed |> List.exists (fun caller -> List.contains caller (mentioning one)) then ({ Name = one; Place = None }: CallingDeclaration) ]
                if List.isEmpty files && List.isEmpty declared && (asked.File.IsSome || asked.Name.IsSome) then None
                else
                    Some
                        { Code = affected.Mark
                          Policies = MainstayDisplay.TestsChosen.writtenPolicies ()
                          Tests = tests |> List.indexed |> List.map (fun (number, one) -> { one with IsMeasured = isMeasured number })
                          Unknown = unknown + others
                          Assemblies = fingerprints
                          Changed = reaching
                          Files = files
                          Sets = sets |> Seq.sortBy (fun entry -> entry.Value) |> Seq.map (fun entry -> entry.Key) |> List.ofSeq
                          Callers = next Reach.callers (declared @ inlined)
                          Callees = next Reach.callees declared @ addedCallees
                          Notes = List.distinct (notes @ (match measured with Some (known, _) -> known.Notes | None -> []) @ ofUnmeasured) }))
