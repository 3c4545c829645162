/// What a session brings in before its own code runs: the assemblies of its project, whose namespaces and modules are opened, and the
/// scripts that its user has run in every session. Nothing that fails here keeps the session from being there; it is told.
module Mainstay.Worker.Startup

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Text
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol
open Mainstay.Worker.Evaluator

/// How often what could not be opened is tried again, while that opens anything.
let private roundLimit = 5

/// How much is kept of what a script prints.
let private outputLimit = 16384

/// Says which phase is under way, how far it is, and of how much.
type Say = string -> int -> int -> unit

let private errorIn (result: EvalResult) : string option =
    match result.Outcome with
    | Completed -> None
    | Raised fault -> Some(fault.Kind + ": " + fault.Message)
    | Interrupted -> Some "it was interrupted"
    | Rejected ->
        result.Diagnostics
        |> List.tryFind (fun diagnostic -> diagnostic.Severity = "error")
        |> Option.map (fun diagnostic -> diagnostic.Message.Trim())
        |> Option.orElse (Some "the compiler rejected it")

/// Submits lines at once. Those that the compiler complains of are left out, until it takes the others; where it is not clear which those
/// are, each is submitted for itself. Gives those that were left out, and why.
let rec private submitLines (session: Evaluator) (lineOf: 'T -> string) (items: 'T list) : ('T * Diagnostic option * string) list =
    let submit (items: 'T list) = session.Bring(items |> List.map lineOf |> String.concat "\n", None)
    match items with
    | [] -> []
    | [ item ] ->
        let result = submit [ item ]
        match errorIn result with
        | None -> []
        | Some error -> [ (item, List.tryHead result.Diagnostics, error) ]
    | items ->
        let result = submit items
        if result.Outcome = Completed then []
        else
            let errors = result.Diagnostics |> List.filter (fun diagnostic -> diagnostic.Severity = "error")
            let complaintOf index = errors |> List.tryFind (fun diagnostic -> diagnostic.Start.Line = index + 1)
            let judged = items |> List.mapi (fun index item -> item, complaintOf index)
            match judged |> List.choose (fun (item, complaint) -> complaint |> Option.map (fun c -> item, Some c, c.Message.Trim())) with
            | [] -> items |> List.collect (fun item -> submitLines session lineOf [ item ])
            | refused -> refused @ submitLines session lineOf (judged |> List.filter (snd >> Option.isNone) |> List.map fst)

let private verbatim (path: string) = "@\"" + path.Replace("\"", "\"\"") + "\""

/// Why a file is no assembly. The compiler is not shown such a one: it would go on complaining of it.
let private wrongWith (path: string) : string option =
    if not (File.Exists path) then Some "it is not there"
    else
        try
            AssemblyName.GetAssemblyName path |> ignore
            None
        with e -> Some e.Message

/// Refers to assemblies. Gives those that cannot be, and why.
let private load (session: Evaluator) (paths: string list) : (string * string) list =
    let judged = paths |> List.map (fun path -> path, wrongWith path)
    let refused = judged |> List.choose (function path, Some wrong -> Some(path, wrong) | _ -> None)
    let sound = judged |> List.choose (function path, None -> Some path | _ -> None)
    let failed = submitLines session (fun path -> "#r " + verbatim path) sound |> List.map (fun (path, _, error) -> path, error)
    let isFailed = HashSet<string>(failed |> List.map fst)
    session.RestOn(sound |> List.filter (isFailed.Contains >> not))
    refused @ failed

/// What the compiler opens by itself, and does not.
type private Opening =
    | Explicit
    /// With the namespace or module it stands in.
    | Automatic
    | NeedsQualification

/// Something that can be opened.
type private Opened =
    { Name: string
      IsModule: bool
      Opening: Opening }

let private inCode (name: string) =
    name.Split '.'
    |> Array.map (fun part -> if part |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '_') then part else "``" + part + "``")
    |> String.concat "."

let private openingOf (entity: Entity) =
    try
        let has (name: string) = entity.Attributes |> Seq.exists (fun attribute -> attribute.AttributeType.CompiledName = name)
        if has "RequireQualifiedAccessAttribute" then NeedsQualification
        elif has "AutoOpenAttribute" then Automatic
        else Explicit
    with _ -> Explicit

let rec private modulesIn (path: string) (entity: Entity) : seq<Opened> =
    seq {
        if entity.IsFSharpModule && entity.Accessibility.IsPublic then
            let name = if path = "" then entity.DisplayName else path + "." + entity.DisplayName
            yield { Name = name; IsModule = true; Opening = openingOf entity }
            for nested in entity.NestedEntities do
                yield! modulesIn name nested
    }

/// What an assembly has to open: its namespaces, those they stand in first, then its modules.
let private openable (assembly: Referenced) : Opened list =
    let spaces, modules = HashSet<string>(), List<Opened>()
    for entity in assembly.Contents.Entities do
        try
            let path = match entity.AccessPath with "global" -> "" | path -> path
            if path <> "" && entity.Accessibility.IsPublic then
                let parts = path.Split '.'
                for count in 1 .. parts.Length do
                    spaces.Add(String.Join(".", parts, 0, count)) |> ignore
            modules.AddRange(modulesIn path entity)
        with _ -> () // One that cannot be read hides no other.
    let ofSpaces = spaces |> Seq.sort |> Seq.map (fun name -> { Name = name; IsModule = false; Opening = Explicit }) |> List.ofSeq
    ofSpaces @ List.ofSeq modules |> List.distinctBy (fun one -> one.Name)

/// The compiler's complaint that a module is not meant to be opened.
let private isMeant (complaint: Diagnostic option) = complaint |> Option.exists (fun diagnostic -> diagnostic.Code = "FS0892")

/// Opens what is asked for, in rounds: what one of them opens may be what another needs. Gives what was opened, and what was not.
let private openAll (session: Evaluator) (say: Say) (wanted: Opened list) : string list * Unopened list =
    let qualified, rest = wanted |> List.partition (fun one -> one.Opening = NeedsQualification)
    let total = List.length rest
    let rec rounds (count: int) (items: string list) =
        say "namespaces" (total - List.length items) total
        let refused = submitLines session (fun name -> "open " + inCode name) items
        let again = refused |> List.filter (fun (_, complaint, _) -> not (isMeant complaint))
        if count >= roundLimit || List.isEmpty again || List.length refused = List.length items then refused
        else
            let final = refused |> List.filter (fun (_, complaint, _) -> isMeant complaint)
            final @ rounds (count + 1) (again |> List.map (fun (name, _, _) -> name))
    let names = rest |> List.map (fun one -> one.Name)
    let refused = rounds 1 names
    let isRefused = HashSet<string>(refused |> List.map (fun (name, _, _) -> name))
    let opened = names |> List.filter (isRefused.Contains >> not)
    let qualifiedAccess = "it requires qualified access"
    opened,
    (qualified |> List.map (fun one -> { Name = one.Name; Reason = qualifiedAccess; IsMeant = true }))
    @ (refused
       |> List.map (fun (name, complaint, error) ->
           let meant = isMeant complaint
           { Name = name; Reason = (if meant then qualifiedAccess else error); IsMeant = meant }))

/// What these assemblies have to open, in their order; without modules where only what a file of theirs sees by itself is wanted. A module
/// that opens itself is opened with what it stands in, and at the top by nothing.
let private openableIn (session: Evaluator) (withModules: bool) (paths: string list) : Opened list =
    let assemblies = session.Check(fun () -> (Compat.check session.Session "").Assemblies())
    let at (path: string) = assemblies |> List.tryFind (fun assembly -> assembly.FileName = Some path)
    let isWanted (one: Opened) =
        withModules || not one.IsModule || (one.Opening = Automatic && not (one.Name.Contains "."))
    paths |> List.choose at |> List.collect openable |> List.distinctBy (fun one -> one.Name) |> List.filter isWanted

/// Keeps the beginning of what is written to it.
type private Bounded() =
    inherit TextWriter()
    let kept = StringBuilder()

    override _.Encoding = Encoding.UTF8
    override _.Write(c: char) = if kept.Length < outputLimit then kept.Append c |> ignore
    member _.Text = lock kept (fun () -> kept.ToString())

/// The console while this works; what is printed meanwhile has no job that it could belong to.
let private capturing (work: unit -> 'T) : 'T * string =
    let out, error, kept = Console.Out, Console.Error, new Bounded()
    let shared = TextWriter.Synchronized kept
    Console.SetOut shared
    Console.SetError shared
    try
        let result = work ()
        shared.Flush()
        result, kept.Text
    finally
        Console.SetOut out
        Console.SetError error

let private runProfile (session: Evaluator) (path: string) : ProfileRun =
    let watch = Diagnostics.Stopwatch.StartNew()
    let ended (error: string option) (diagnostics: Diagnostic list) (output: string) : ProfileRun =
        { Path = path; Diagnostics = diagnostics; Error = error; Output = output; Duration = watch.Elapsed }
    try
        let code = File.ReadAllText path
        let result, output = capturing (fun () -> session.Bring(code, Some path))
        ended (errorIn result) result.Diagnostics output
    with e -> ended (Some e.Message) [] ""

/// The folders in which native libraries are looked for.
let mutable private nativeFolders: string list = []

/// Has native libraries looked for in these folders too; the runtime is told once in the worker's life.
let private findNatives (folders: string list) =
    let find (name: string) =
        let names = [ name; "lib" + name + ".so"; name + ".so"; "lib" + name + ".dylib"; name + ".dll" ]
        nativeFolders |> Seq.collect (fun folder -> names |> Seq.map (fun file -> Path.Combine(folder, file))) |> Seq.tryFind File.Exists
    let resolve (_: Assembly) (name: string) =
        match find name with
        | Some path -> Runtime.InteropServices.NativeLibrary.Load path
        | None -> IntPtr.Zero
    let isFirst = List.isEmpty nativeFolders
    nativeFolders <- folders
    if isFirst && not (List.isEmpty folders) then
        Runtime.Loader.AssemblyLoadContext.Default.add_ResolvingUnmanagedDll (Func<_, _, _> resolve)

/// Brings in a project. Gives what could not be loaded, what was opened, and what was not.
let private bringProject (session: Evaluator) (say: Say) (project: Project) =
    let references = project.Frameworks @ project.References
    let total = references.Length + project.Assemblies.Length
    say "assemblies" 0 total
    findNatives project.Natives
    let failed = load session references @ load session project.Assemblies
    // What .NET's own code takes for the program's folder (`AppContext.BaseDirectory`). SDK 3.1's compiler refers to nothing before it has
    // seen its own there.
    project.Folder |> Option.iter (fun folder -> AppDomain.CurrentDomain.SetData("APP_CONTEXT_BASE_DIRECTORY", folder + string Path.DirectorySeparatorChar))
    say "assemblies" (total - List.length failed) total
    session.Begin project
    let opened, unopened = openAll session say (openableIn session project.OpensModules project.Opened)
    failed, opened, unopened

/// Brings in what a session is to begin with.
let run (session: Evaluator) (hello: Hello) (say: Say) : Begun =
    let failed, opened, unopened =
        match hello.Project with
        | None -> [], [], []
        | Some project ->
            try
                bringProject session say project
            with e -> project.Assemblies |> List.map (fun path -> path, e.Message), [], []
    let profiles =
        hello.Profiles |> List.mapi (fun index path ->
            say "profile" index hello.Profiles.Length
            runProfile session path)
    { Failed = failed
      Opened = opened
      Unopened = unopened
      Profiles = profiles
      Listens = []
      References = session.Rests }
