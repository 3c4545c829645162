/// The assemblies of a session's project as they were loaded, each with the sources that it was built from: what changes are measured by.
module Mainstay.Worker.Baselines

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Reflection.Metadata

/// Changes a loaded assembly.
type private ApplyUpdate = delegate of Assembly * ReadOnlySpan<byte> * ReadOnlySpan<byte> * ReadOnlySpan<byte> -> unit

let private updater = Type.GetType "System.Reflection.Metadata.MetadataUpdater"

let private applyUpdate =
    lazy
        (match updater with
         | null -> None
         | kind -> Option.ofObj (kind.GetMethod "ApplyUpdate") |> Option.map (fun found -> found.CreateDelegate typeof<ApplyUpdate> :?> ApplyUpdate))

/// Whether the process was started so that loaded assemblies can change.
let isSupported =
    lazy
        (match updater with
         | null -> false
         | kind ->
            match kind.GetProperty "IsSupported" with
            | null -> false
            | property -> (property.GetValue null :?> bool) && applyUpdate.Value.IsSome)

/// The algorithm of documents' hashes that is known here, as symbol files name it.
let private sha256 = Guid "8829d00f-11b8-4213-878b-770e8597ac16"

/// The documents that a symbol file names, with their hashes in lowercase hexadecimal.
let private documentsIn (reader: MetadataReader) : (string * string) list =
    [ for handle in reader.Documents do
        let document = reader.GetDocument handle
        if reader.GetGuid document.HashAlgorithm = sha256 then
            let hash = reader.GetBlobBytes document.Hash
            reader.GetString document.Name, String.Join("", hash |> Array.map (fun one -> one.ToString "x2")) ]

/// The documents of an assembly.
let private documentsOf (path: string) : (string * string) list = SourcePlaces.withSymbols path documentsIn |> Option.defaultValue []

/// Whether it was built without optimization, which the runtime requires of an assembly that is to change.
let private isUnoptimized (assembly: Assembly) =
    assembly.GetCustomAttributes(typeof<Diagnostics.DebuggableAttribute>, false)
    |> Seq.cast<Diagnostics.DebuggableAttribute>
    |> Seq.exists (fun one -> one.IsJITOptimizerDisabled)

/// A declaration of a file.
type Declaration =
    { File: string
      Key: Outline.Key }

/// A declaration that runs otherwise than it was built.
type Running =
    { /// What it runs as.
      Text: string
      /// The methods that it was built as.
      Methods: MethodInfo list }

/// One assembly of the project.
type Baseline(path: string, sources: (string * string) list) =
    let assembly = lazy Assembly.LoadFrom path
    let generations = lazy Deltas.Generations(File.ReadAllBytes path)
    let bodies = Dictionary<int, Deltas.Body>() // of methods that were given one, by their tokens

    let apply (delta: Deltas.Delta) =
        applyUpdate.Value.Value.Invoke(assembly.Value, ReadOnlySpan delta.Metadata, ReadOnlySpan delta.Code, ReadOnlySpan<byte>.Empty)
        delta.Applied()

    /// Where it was loaded from.
    member val Path = path

    /// The name by which code refers to it.
    member val Name = Path.GetFileNameWithoutExtension path

    member _.Assembly = assembly.Value

    /// The sources that it was built from, by path, as far as they are known, in the order of the build.
    member _.Sources = sources

    /// The declarations that run otherwise than they were built: whatever session of the process had them changed.
    member val Current = Dictionary<Declaration, Running>()

    /// What its code is at present: the last difference that it took, or the build.
    member val Version : Guid option = None with get, set

    /// The names of values of modules that can be changed in place: other code sees a copy of one.
    member val ChangedInPlace =
        lazy
            (let values (kind: Type) =
                kind.GetProperties(BindingFlags.Static ||| BindingFlags.Public ||| BindingFlags.NonPublic)
                |> Array.filter (fun property -> property.CanWrite && Replaced.canChangeInPlace property.PropertyType)
             assembly.Value.GetTypes() |> Seq.collect values |> Seq.map (fun property -> property.Name) |> Set.ofSeq)

    /// Whether it can change; if not, why, as a stable word and for people.
    member _.Obstacle : (string * string) option =
        let never = "not_modifiable"
        if Diagnostics.Debugger.IsAttached then Some("debugger_attached", "a debugger is attached") // The runtime refuses it then.
        elif not isSupported.Value then Some(never, "the runtime of this worker changes no loaded code")
        elif not (isUnoptimized assembly.Value) then Some(never, Path.GetFileName path + " was built with optimization")
        else None

    /// Writes a difference that nobody applies, which has the first one written sooner.
    member _.WarmUp(callee: MethodInfo) =
        let own (kind: Type) = kind.GetMethods(BindingFlags.Static ||| BindingFlags.Public ||| BindingFlags.DeclaredOnly)
        let isPlain (found: MethodInfo) = not found.IsGenericMethod && not found.DeclaringType.IsGenericType
        assembly.Value.GetExportedTypes() |> Seq.collect own |> Seq.tryFind isPlain |> Option.iter (fun old ->
            generations.Value.Next(Guid.NewGuid(), [ { Deltas.Old = old; Deltas.New = Deltas.Calls callee } ]) |> ignore)

    /// What a method does at present.
    member _.BodyOf(built: MethodInfo) : Deltas.Body =
        match bodies.TryGetValue built.MetadataToken with
        | true, body -> body
        | _ -> Deltas.AsBuilt

    /// Whether a method, told by its token, has the body that it was built with.
    member _.IsAsBuilt(token: int) : bool =
        match bodies.TryGetValue token with
        | true, Deltas.Calls _ -> false
        | _ -> true

    /// Gives methods new bodies. The runtime may refuse that with an `InvalidOperationException`.
    member this.Redirect(redirections: Deltas.Redirection list) =
        let id = Guid.NewGuid()
        apply (generations.Value.Next(id, redirections))
        for one in redirections do bodies.[one.Old.MetadataToken] <- one.New
        this.Version <- Some id

    /// Has methods, told by their tokens, note which parts of them run; gives those that do. What the code does is the same, and so is its version.
    member _.NoteWith(probes: (int * Probes.Probe list) list) : int list =
        let delta, noting = generations.Value.NextWithProbes(Guid.NewGuid(), probes)
        apply delta
        noting

/// The text of a file, where that has this hash.
let private textOf (hash: string) (path: string) : string option =
    try
        use content = new MemoryStream(File.ReadAllBytes path)
        if Sha256.ofStream content <> hash then None
        else
            content.Position <- 0L
            use reader = new StreamReader(content)
            Some(reader.ReadToEnd())
    with _ -> None

/// The folder beside an assembly with its sources as they were when it was copied: they may have been saved since.
let private keptSources = Path.Combine(".mainstay", "sources")

/// A source as the assembly at a path was built from it.
let private sourceOf (assembly: string) (path: string, hash: string) : (string * string) option =
    let kept () =
        try
            List.ofArray (Directory.GetFiles(Path.Combine(Path.GetDirectoryName assembly, keptSources), "*-" + Path.GetFileName path))
        with _ -> []
    match textOf hash path with
    | Some text -> Some(path, text)
    | None -> kept () |> List.tryPick (textOf hash) |> Option.map (fun text -> path, text)

/// What is known of the assemblies of this process. They stay loaded, and changed, when a session ends.
let private known = Dictionary<string, Baseline>()

/// Whether the code of an assembly of this process is another than was loaded.
let isChanged () : bool = lock known (fun () -> known.Values |> Seq.exists (fun one -> one.Version.IsSome))

/// What the code of an assembly is at present.
let versionOf (assembly: Assembly) : Guid =
    let changed = lock known (fun () -> match known.TryGetValue assembly.Location with | true, one -> one.Version | _ -> None)
    defaultArg changed assembly.ManifestModule.ModuleVersionId

/// The assemblies at these paths with what their sources were when they came into the process, as far as that is what they were built from.
let capture (paths: string list) : Baseline list =
    let captured (path: string) =
        match known.TryGetValue path with
        | true, one -> one
        | _ ->
            let one = Baseline(path, (try documentsOf path |> List.choose (sourceOf path) with _ -> []))
            known.[path] <- one
            one
    lock known (fun () -> List.map captured paths)
