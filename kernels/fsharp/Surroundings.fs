/// What a session's code rests on besides itself: the assemblies it refers to and the scripts it loaded, each with a hash of its
/// content as it was then; and which of them a submission touched, by itself or through a name of the session.
///
/// The compiler says what a submission names, in a check of its own, which only a session pays for that has brought something in. What
/// a value got from code that ran is followed as well: a submission that may change state hands all it touched on to every name it
/// uses that may hold state, and to all that those were made of.
module Mainstay.Worker.Surroundings

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Text.RegularExpressions
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol

let private contentHash (path: string) : string option =
    try
        use file = new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite ||| FileShare.Delete)
        use buffered = new BufferedStream(file, 65536)
        Some(Sha256.ofStream buffered)
    with _ -> None

let private folderOf (assembly: Assembly) = Path.GetDirectoryName assembly.Location

/// Where the runtime, its reference assemblies and the worker itself are: not the session's.
let private ownFolders =
    let runtime = folderOf typeof<obj>.Assembly
    let root = Path.GetFullPath(Path.Combine(runtime, "..", "..", ".."))
    [ root; folderOf (Reflection.Assembly.GetExecutingAssembly()); folderOf typeof<Session>.Assembly ]
    |> List.map (fun folder -> folder.TrimEnd(Path.DirectorySeparatorChar) + string Path.DirectorySeparatorChar)

/// Whether an assembly is the session's.
let isForeign (path: string) =
    not (String.IsNullOrEmpty path)
    && Path.IsPathRooted path
    && Path.GetFileName path <> "FSharp.Core.dll"
    && not (ownFolders |> List.exists (fun folder -> path.StartsWith(folder, StringComparison.Ordinal)))

/// The assemblies of the process that are the session's, by path.
let private loadedAssemblies () : (string * Assembly) list =
    AppDomain.CurrentDomain.GetAssemblies()
    |> Seq.filter (fun assembly -> not assembly.IsDynamic && isForeign assembly.Location)
    |> Seq.map (fun assembly -> assembly.Location, assembly)
    |> List.ofSeq

/// The content of each assembly when it came into the process, where it stays as it was, whatever becomes of the file.
let private assemblyHashes = Dictionary<string, string>()

let private directive = Regex(@"^[ \t]*#(?:load|r|use|I|nowarn|time|quiet|silentCd|cd)\b.*$", RegexOptions.Multiline ||| RegexOptions.CultureInvariant)

/// What a session prints of each file it loads: `[Loading /a/b.fsx`, then ` Loading /a/c.fsx]`; the word is the language's of the user.
let private loading = Regex(@"^ ?\[?[^\s/\[]+ (/.+?)\]?\r?$", RegexOptions.Multiline ||| RegexOptions.CultureInvariant)

/// What stands for something that cannot be told.
let private unknown = "?"

/// Values of these types never change.
let private fixedTypes =
    HashSet<string> [ "int"; "string"; "float"; "bool"; "char"; "unit"; "byte"; "int64"; "decimal"; "bigint"; "float32"; "int16"; "uint32"; "uint64" ]

/// A name that a session's code gave.
type private Made() =
    /// What it touched, as paths.
    member val Touched = HashSet<string>()
    /// The names it was made of, and those they were made of.
    member val From = HashSet<string>()
    /// Whether it may hold something that changes.
    member val HoldsState = true with get, set

/// Stands for all names from before anything was brought in.
let private early = ""

let private typeName (m: Member) =
    try
        let text = m.FullType.Format DisplayContext.Empty
        text.Substring(text.LastIndexOf '.' + 1)
    with _ -> ""

let private mayHoldState (symbol: Symbol) =
    match symbol with
    | :? Member as m when m.IsModuleValueOrMember ->
        (try m.IsMutable || (m.CurriedParameterGroups.Count = 0 && not (fixedTypes.Contains(typeName m))) with _ -> true)
    | _ -> false

/// Parameters and what else is named inside a definition.
let private isLocal (symbol: Symbol) =
    match symbol with
    | :? Member as m -> not m.IsModuleValueOrMember
    | :? Entity -> false
    | other -> isNull (box other.Assembly)

/// The assembly of a symbol; none of the session's own, which are emitted under this name.
let private fileOf (symbol: Symbol) =
    if symbol.Assembly.SimpleName.StartsWith("FSI-ASSEMBLY", StringComparison.Ordinal) then None else symbol.Assembly.FileName

let private reflective = [ "System.Reflection."; "System.Activator"; "System.AppDomain"; "System.Type."; "System.Runtime.Loader." ]

let private isReflective (symbol: Symbol) =
    let name = try symbol.FullName with _ -> ""
    reflective |> List.exists (fun start -> name.StartsWith(start, StringComparison.Ordinal))

/// What a text names: paths that it touches at once; names of the session, and names it defines, each with whether it may hold state.
type Named =
    private
        { Touches: HashSet<string>
          Uses: Dictionary<string, bool>
          Defines: Dictionary<string, bool> }

/// What a text names that names nothing of the session.
let nothingNamed () : Named = { Touches = HashSet(); Uses = Dictionary(); Defines = Dictionary() }

/// How a submission ran: what the session printed of it, whether it may have changed state, gave a value, and ran to its end.
type Run =
    { Display: string
      Changes: bool
      GivesValue: bool
      IsComplete: bool }

/// What of the session's surroundings its code has come to rest on. One thread calls this.
type Surroundings(session: Session) =
    let scripts = Dictionary<string, string>() // the hash of each, by path
    let throughScripts = Dictionary<string, HashSet<string>>() // what each script touches
    let assemblies = HashSet<string>()
    let names = Dictionary<string, string>() // of each, by path
    let made = Dictionary<string, Made>()
    let mutable told: Reference list = []

    let madeOf (name: string) =
        match made.TryGetValue name with
        | true, known -> known
        | _ ->
            let created = Made()
            made.[name] <- created
            created

    let give (path: string) =
        if not (names.ContainsKey path) then
            let plain = Path.GetFileName path
            names.[path] <- (if names.ContainsValue plain then path else plain)

    let rest (path: string) =
        if isForeign path && assemblies.Add path then
            give path
            if not (assemblyHashes.ContainsKey path) then
                assemblyHashes.[path] <- defaultArg (contentHash path) ""

    let notice () = loadedAssemblies () |> List.iter (fst >> rest)

    /// With what these assemblies refer to themselves.
    let widened (paths: seq<string>) =
        let loaded = loadedAssemblies ()
        let byName = loaded |> List.map (fun (path, assembly) -> assembly.GetName().Name, path) |> dict
        let assemblyAt = loaded |> dict
        let all = HashSet<string>()
        let rec add (path: string) =
            if all.Add path then
                match assemblyAt.TryGetValue path with
                | true, assembly ->
                    for referred in assembly.GetReferencedAssemblies() do
                        match byName.TryGetValue referred.Name with
                        | true, other -> add other
                        | _ -> ()
                | _ -> ()
                match throughScripts.TryGetValue path with
                | true, touched -> Seq.iter add (List.ofSeq touched)
                | _ -> ()
        Seq.iter add paths
        all

    /// The name under which something of the session is known: of a member or a case, also that of its type.
    let namesOf (symbol: Symbol) =
        let owner =
            match symbol with
            | :? Member as m -> (match m.DeclaringEntity with Some entity -> [ entity.DisplayName ] | None -> [])
            | _ -> []
        symbol.DisplayName :: owner |> List.filter (fun name -> not (name.StartsWith("FSI_", StringComparison.Ordinal)))

    /// None where the compiler cannot tell.
    let namedIn (text: string) : Named option =
        try
            let looked = check session (directive.Replace(text, ""))
            if looked.Messages |> Array.exists (fun message -> message.Severity = "error") then None
            else
                let touched, used, defined = HashSet<string>(), Dictionary<string, bool>(), Dictionary<string, bool>()
                for mention in looked.Uses() do
                    let symbol = mention.Symbol
                    if not (isLocal symbol) then
                        match fileOf symbol, symbol.DeclarationLocation with
                        | Some path, _ ->
                            rest path
                            if assemblies.Contains path then touched.Add path |> ignore
                            if isReflective symbol then touched.Add unknown |> ignore
                        | None, Some place when scripts.ContainsKey place.FileName -> touched.Add place.FileName |> ignore
                        | None, _ ->
                            let into = if mention.IsFromDefinition then defined else used
                            for name in namesOf symbol do
                                into.[name] <- mayHoldState symbol
                Some { Touches = touched; Uses = used; Defines = defined }
        with _ -> None

    /// What was not run to its end left what the session has of a script as it was.
    let loadScripts (display: string) (isComplete: bool) =
        let found = loading.Matches display |> Seq.cast<Match> |> Seq.map (fun one -> one.Groups.[1].Value) |> Seq.filter File.Exists |> List.ofSeq
        let renewed = found |> List.filter (fun path -> isComplete || not (scripts.ContainsKey path))
        for path in renewed do
            scripts.[path] <- defaultArg (contentHash path) ""
            give path
        for path in renewed do
            throughScripts.[path] <-
                match namedIn (File.ReadAllText path) with
                | Some named -> named.Touches
                | None -> HashSet<string> [ unknown ]
        found

    /// Hands on what a submission touched to what it defined, and to what it may have changed. Gives all that it touched.
    let takeNote (named: Named) (run: Run) =
        let touched, from = named.Touches, HashSet<string>()
        for KeyValue (name, holdsState) in named.Uses do
            let isKnown = made.ContainsKey name
            if isKnown || holdsState then
                let one = if isKnown then name else early
                from.Add one |> ignore
                from.UnionWith (madeOf one).From
        for name in from do
            touched.UnionWith (madeOf name).Touched
        if run.Changes then
            for name in from do
                let one = madeOf name
                if one.HoldsState then one.Touched.UnionWith touched
        let define (name: string) (holdsState: bool) =
            let one = Made()
            // What was not run to its end may have left the name as it was.
            if not run.IsComplete && made.ContainsKey name then
                one.Touched.UnionWith made.[name].Touched
                one.From.UnionWith made.[name].From
            one.HoldsState <- holdsState || (not run.IsComplete && made.ContainsKey name && made.[name].HoldsState)
            one.Touched.UnionWith touched
            one.From.UnionWith from
            one.From.Remove name |> ignore
            made.[name] <- one
        for KeyValue (name, holdsState) in named.Defines do
            define name holdsState
        if run.GivesValue then define "it" true

    let references () : Reference list =
        [ for path in assemblies do
            { Name = names.[path]; Path = path; Hash = assemblyHashes.[path] }
          for KeyValue (path, hash) in scripts do
            { Name = names.[path]; Path = path; Hash = hash } ]
        |> List.truncate Limits.itemLimit

    /// Looks at a submission before it runs: afterwards its names may mean something else. What a directive brings in is there only
    /// then, and such a one is looked at behind its run.
    member _.Before(text: string) : Named option = if directive.IsMatch text then None else namedIn text

    /// Takes note of a submission that has run. Gives the names of what it touched; None where that cannot be told.
    member _.After(text: string, before: Named option, run: Run) : string list option =
        let known = HashSet<string>(assemblies)
        notice ()
        let loaded = loadScripts run.Display run.IsComplete
        let isDirective = directive.IsMatch text
        let touched =
            match (if isDirective then namedIn text else before) with
            | Some named ->
                named.Touches.UnionWith loaded
                if isDirective then
                    named.Touches.UnionWith(assemblies |> Seq.filter (known.Contains >> not))
                takeNote named run
                named.Touches
            | None ->
                if run.Changes then
                    // Whatever it named may be another now.
                    for one in madeOf early :: List.ofSeq made.Values do
                        if one.HoldsState then one.Touched.Add unknown |> ignore
                    if run.GivesValue then (madeOf "it").Touched.Add unknown |> ignore
                HashSet<string> [ unknown ]
        let all = widened touched
        if all.Contains unknown then None
        else Some(all |> Seq.choose (fun path -> match names.TryGetValue path with true, name -> Some name | _ -> None) |> Seq.sort |> List.ofSeq)

    /// What a file is called that the session rests on.
    member _.NameOf(path: string) : string = match names.TryGetValue path with true, name -> name | _ -> Path.GetFileName path

    /// From now on the session rests on these assemblies as well.
    member _.RestOn(paths: string list) = List.iter rest paths

    /// What the session rests on.
    member _.All : Reference list = references ()

    /// The same, where that is not what was told last.
    member _.News() : Reference list option =
        let now = references ()
        if now = told then None
        else
            told <- now
            Some now
