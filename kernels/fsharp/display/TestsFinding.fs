/// Where tests are looked for: in what the session's code defined, and in the assemblies it refers to.
module internal MainstayDisplay.TestsFinding

open System
open System.IO
open System.Reflection
open System.Text.RegularExpressions
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

/// A session, as far as its tests are concerned.
type Session =
    { /// The files of the assemblies that it refers to, loaded or not.
      References: string list
      /// The assemblies that its own code became.
      Own: Assembly list
      /// Whether what a submission defined is not to be seen.
      IsGone: int -> bool }

/// The session whose tests `Mainstay.Tests` finds, as the worker sets it.
let mutable session: unit -> Session = fun () -> { References = []; Own = []; IsGone = fun _ -> false }

/// A test of an assembly that was saved since that was built.
type SavedTest =
    { /// The assembly's name.
      Assembly: string
      /// What its class is called in the assembly.
      Class: string
      /// Its name, and the type that it was compiled in.
      Method: string
      Kind: Type }

/// What of assemblies' tests is otherwise than it was built.
type SavedTests =
    { Added: SavedTest list
      /// The tests that their sources have no more, or have otherwise: each by the assembly, the class and the method.
      Gone: Set<string * string * string> }

/// What was saved of tests since their assemblies were built, as the worker sets it.
let mutable saved: unit -> SavedTests = fun () -> { Added = []; Gone = Set.empty }

/// An engine, and the tests that it finds as far as they are declared: those that the session's code defined.
type FoundEngine =
    { Engine: Engine
      Declared: Declared list }

/// What an assembly's code is at present, as the worker sets it: code can be exchanged while it runs.
let mutable versionOf: Assembly -> Guid = fun assembly -> assembly.ManifestModule.ModuleVersionId

/// What was found.
type Found =
    { /// Tests that no engine is at hand for.
      Suites: Suite list
      Engines: FoundEngine list
      /// The test frameworks that something refers to.
      Frameworks: string list
      /// The assemblies with tests, each with what it and all it needs are now.
      Assemblies: (string * string) list
      /// Those of them that are as they were: their tests are not among those found.
      Unchanged: string list
      /// What could not be looked at.
      Notes: string list }

let private isFramework (name: string) = TestsMarked.libraries |> List.exists (fun (library, _) -> library = name)

let private frameworksOf (assembly: Assembly) : string list =
    assembly.GetReferencedAssemblies() |> Seq.map (fun name -> name.Name) |> Seq.filter isFramework |> List.ofSeq

let private typesOf (assembly: Assembly) : Type list * string list =
    try List.ofArray (assembly.GetTypes()), []
    with
    | :? ReflectionTypeLoadException as e ->
        let reason = match e.LoaderExceptions |> Array.tryHead with Some first -> first.Message | None -> e.Message
        let loaded = e.Types |> Seq.filter (isNull >> not) |> List.ofSeq
        loaded, [ sprintf "%d types of %s could not be loaded: %s" (e.Types.Length - loaded.Length) (assembly.GetName().Name) reason ]

let private isPlain (name: string) = not (name.Contains "@" || name.Contains "<" || name.Contains "$")

let private mayHold (kind: Type) =
    kind.IsClass && isPlain kind.FullName && not kind.ContainsGenericParameters && (not kind.IsAbstract || isStaticKind kind) && not (typeof<Delegate>.IsAssignableFrom kind)

/// A function that only raises is generic in what it gives; as a test it is as good as any other.
let private closed (m: MethodInfo) : MethodInfo option =
    if not m.IsGenericMethodDefinition then Some m
    else
        try Some(m.MakeGenericMethod(m.GetGenericArguments() |> Array.map (fun _ -> typeof<obj>)))
        with :? ArgumentException -> None

let private methodsOf (kind: Type) =
    kind.GetMethods publicMembers |> Seq.filter (fun m -> not m.IsSpecialName && m.DeclaringType <> typeof<obj>) |> Seq.choose closed |> List.ofSeq

let private propertiesOf (kind: Type) = kind.GetProperties(BindingFlags.Public ||| BindingFlags.Static) |> List.ofArray

let private holderOf (assembly: string option) (name: string) (kind: Type) : Holder =
    { Name = name.Replace('+', '.'); Kind = Some kind; Assembly = assembly; Methods = methodsOf kind; Properties = propertiesOf kind }

let private submission = Regex(@"^FSI_(\d+)(?:[+.]|$)", RegexOptions.CultureInvariant)

/// The types of the session's code: of which submission, what it is called, and it.
let private submitted (own: Assembly list) (isGone: int -> bool) : (int * string * Type) list =
    own
    |> List.collect (typesOf >> fst)
    |> List.choose (fun kind ->
        let found = submission.Match kind.FullName
        if not found.Success then None
        else
            let number = int found.Groups.[1].Value
            if isGone number then None else Some(number, kind.FullName.Substring found.Length, kind))

/// What stands at the prompt; of two with one name only the newer can be reached.
let private prompt (types: (int * string * Type) list) : Holder =
    let members =
        types
        |> List.filter (fun (_, name, _) -> name = "")
        |> List.sortByDescending (fun (number, _, _) -> number)
        |> List.collect (fun (number, _, kind) ->
            (methodsOf kind |> List.map (fun m -> number, m :> MemberInfo)) @ (propertiesOf kind |> List.map (fun property -> number, property :> MemberInfo)))
    let newest = members |> List.distinctBy (fun (_, m) -> m.Name) |> List.sortBy fst |> List.map snd
    { Name = ""
      Kind = None
      Assembly = None
      Methods = newest |> List.choose (function :? MethodInfo as m -> Some m | _ -> None)
      Properties = newest |> List.choose (function :? PropertyInfo as property -> Some property | _ -> None) }

/// The classes and modules of the session's code. One that is defined again hides the older one with all that stands in it.
let private defined (types: (int * string * Type) list) : Holder list =
    let root (name: string) = name.Split([| '+'; '.' |]).[0]
    let nested = types |> List.filter (fun (_, name, _) -> name <> "")
    let newest = nested |> List.groupBy (fun (_, name, _) -> root name) |> List.map (fun (root, some) -> root, some |> List.map (fun (number, _, _) -> number) |> List.max) |> dict
    nested
    |> List.filter (fun (number, name, kind) -> newest.[root name] = number && mayHold kind)
    |> List.map (fun (_, name, kind) -> holderOf None name kind)

let private load (path: string) : Result<Assembly, string> =
    try Ok(Assembly.LoadFrom path)
    with e -> Error(sprintf "%s could not be loaded: %s" (Path.GetFileName path) e.Message)

/// The assemblies that refer to a framework.
let private compiled (references: string list) : Assembly list * string list =
    let loaded = references |> List.map load
    let notes = loaded |> List.choose (function Error note -> Some note | Ok _ -> None)
    // What submissions became has no file, whether it was emitted or loaded from its bytes.
    let hasFile (assembly: Assembly) = not assembly.IsDynamic && not (String.IsNullOrEmpty assembly.Location)
    let others = AppDomain.CurrentDomain.GetAssemblies() |> Seq.filter hasFile |> List.ofSeq
    let all = (loaded |> List.choose (function Ok assembly -> Some assembly | Error _ -> None)) @ others
    let mayHaveTests (assembly: Assembly) =
        (not (List.isEmpty (frameworksOf assembly)) && not (Engines.isOnlyNeeded assembly)) || Engines.hasAdapter assembly
    all |> List.distinct |> List.filter mayHaveTests, notes

/// What an assembly and those that it needs are, as far as they are loaded: another build of any of them gives another, and so does other code.
let private fingerprintOf (assembly: Assembly) : string =
    // The framework's own are loaded when they are first used, which says nothing.
    let framework = Path.GetDirectoryName typeof<obj>.Assembly.Location
    let counts (one: Assembly) = not one.IsDynamic && Path.GetDirectoryName one.Location <> framework
    let loaded = AppDomain.CurrentDomain.GetAssemblies() |> Array.filter counts |> Array.groupBy (fun one -> one.GetName().Name) |> Map.ofArray
    let needed (one: Assembly) = one.GetReferencedAssemblies() |> Seq.collect (fun name -> match loaded.TryFind name.Name with Some all -> List.ofArray all | None -> []) |> List.ofSeq
    let rec all (seen: Set<Guid>) (left: Assembly list) =
        match left with
        | [] -> seen
        | one :: rest ->
            let version = versionOf one
            if seen.Contains version then all seen rest else all (seen.Add version) (needed one @ rest)
    let combined = Array.zeroCreate<byte> 16
    for version in all Set.empty [ assembly ] do
        version.ToByteArray() |> Array.iteri (fun index part -> combined.[index] <- combined.[index] ^^^ part)
    Guid(combined).ToString "N"

/// A mark of what of an assembly's tests is otherwise than it was built; empty where nothing is.
let private markOf (saved: SavedTests) (name: string) : string =
    let added = [ for one in saved.Added do if one.Assembly = name then one.Kind.FullName + "." + one.Method ]
    let gone = [ for assembly, owner, method' in saved.Gone do if assembly = name then owner + "." + method' ]
    match added @ gone with
    | [] -> ""
    | all ->
        use hash = Security.Cryptography.SHA256.Create()
        let bytes = hash.ComputeHash(Text.Encoding.UTF8.GetBytes(String.Join("\n", all)))
        "." + String.Join("", bytes |> Seq.truncate 8 |> Seq.map (fun one -> one.ToString "x2"))

/// Those who read tests without an engine, by the framework.
let private readers = [ "NUnit", TestsNunit.suites; "MSTest", TestsMstest.suites ]

/// The tests in these that no engine is at hand for, and a word on it: they run as far as is known here how, or cannot be run.
let private withoutEngine (whose: string) (holders: Holder list) (framework: string, reason: string) : Suite list * string list =
    match readers |> List.tryFind (fun (known, _) -> known = framework) with
    | None -> [], [ sprintf "the tests of %s %s cannot be run: %s" framework whose reason ]
    | Some (_, read) ->
        match read holders with
        | [] -> [], []
        | some -> some, [ sprintf "the tests of %s %s run without its own engine, so not all of it works: %s" framework whose reason ]

/// The tests of an assembly that were saved since it was built.
let private ofSaved (references: string list) (saved: SavedTests) (name: string) : FoundEngine list * string list =
    let added = saved.Added |> List.filter (fun one -> one.Assembly = name)
    let holder (kind: Type, tests: SavedTest list) =
        let names = tests |> List.map (fun one -> one.Method) |> Set.ofList
        { holderOf (Some name) tests.Head.Class kind with Methods = methodsOf kind |> List.filter (fun one -> names.Contains one.Name); Properties = [] }
    let marked = added |> List.groupBy (fun one -> one.Kind) |> List.map holder |> TestsMarked.marked
    let found = Engines.ofSaved references name (added |> List.map (fun one -> one.Kind.FullName, one.Class) |> List.distinct) marked
    found |> List.choose (fun one -> match one.Engine with Ok engine -> Some { Engine = engine; Declared = [] } | Error _ -> None),
    found |> List.choose (fun one -> match one.Engine with Error reason -> Some(sprintf "tests of %s that were saved since %s was built cannot be run before it is built again: %s" one.Framework name reason) | Ok _ -> None)

let private ofAssembly (references: string list) (saved: SavedTests) (assembly: Assembly) : FoundEngine list * Suite list * string list =
    let name = assembly.GetName().Name
    let engines, missing = Engines.ofAssembly references (fun owner method' -> not (saved.Gone.Contains((name, owner, method')))) assembly
    let types, notes = if List.isEmpty missing then [], [] else typesOf assembly
    let holders = types |> List.filter mayHold |> List.map (fun kind -> holderOf (Some name) kind.FullName kind)
    let read = missing |> List.map (withoutEngine ("in " + name) holders)
    let added, unfound = ofSaved references saved name
    (engines |> List.map (fun engine -> { Engine = engine; Declared = [] })) @ added, List.collect fst read, notes @ List.collect snd read @ unfound

/// The tests that the session's code defined.
let private ofSession (references: string list) (holders: Holder list) : FoundEngine list * Suite list * string list =
    let declared (members: TestsMarked.Marked list) (framework: string) : Declared list =
        let own = members |> List.groupBy (fun one -> one.Holder.Name) |> List.map (fun (_, some) -> some.Head.Holder, some |> List.map (fun one -> one.Member))
        let methodsOf (some: MemberInfo list) = some |> List.choose (function :? MethodInfo as m -> Some m | _ -> None)
        if framework = "NUnit" then own |> List.map (fun (holder, some) -> { holder with Methods = methodsOf some }) |> TestsNunit.suites |> List.collect (fun suite -> suite.Declared)
        else TestsMarked.declared members
    let found = Engines.ofSession references (TestsMarked.marked holders)
    let engines = found |> List.choose (fun one -> match one.Engine with Ok engine -> Some { Engine = engine; Declared = declared one.Members one.Framework } | Error _ -> None)
    let missing = found |> List.choose (fun one -> match one.Engine with Error reason -> Some(one.Framework, reason) | Ok _ -> None)
    let read = missing |> List.distinct |> List.map (withoutEngine "that the session defined" holders)
    engines, List.collect fst read, List.collect snd read

/// All tests there are, except those in assemblies that are as is said. None of the session's code runs for it.
let find (known: Map<string, string>) : Found =
    let { References = references; Own = own; IsGone = isGone } = session ()
    let types = submitted own isGone
    let ownEngines, ownSuites, ownNotes = ofSession references (prompt types :: defined types)
    let assemblies, unloaded = compiled references
    let saved = saved ()
    let told = assemblies |> List.map (fun assembly -> let name = assembly.GetName().Name in assembly, name, fingerprintOf assembly + markOf saved name)
    let isKnown (_, name, fingerprint) = known.TryFind name = Some fingerprint
    let read = told |> List.filter (isKnown >> not) |> List.map (fun (assembly, _, _) -> ofAssembly references saved assembly)
    let referred = references |> List.map Path.GetFileNameWithoutExtension |> List.filter isFramework
    { Suites = ownSuites @ (read |> List.collect (fun (_, suites, _) -> suites))
      Engines = ownEngines @ (read |> List.collect (fun (engines, _, _) -> engines))
      Frameworks = List.distinct (referred @ List.collect frameworksOf assemblies)
      Assemblies = told |> List.map (fun (_, name, fingerprint) -> name, fingerprint) |> List.distinct
      Unchanged = told |> List.filter isKnown |> List.map (fun (_, name, _) -> name) |> List.distinct
      Notes = ownNotes @ unloaded @ List.collect (fun (_, _, notes) -> notes) read }

/// What would make tests be found, where none was: there are so many, which nothing selects.
let advice (found: Found) (count: int) : string =
    match count, found.Frameworks with
    | 0, [] ->
        "no test was found, and nothing the session refers to knows a test framework: `#r` the assembly of your tests, or that of NUnit, xUnit, MSTest, TUnit or Expecto, and define tests with its attributes"
    | 0, frameworks ->
        sprintf "no test was found, although %s is referred to: mark functions or methods with its attributes, or `#r` the assembly of your tests" (String.concat ", " frameworks)
    | count, _ -> sprintf "none of the %d tests is meant: the pattern is a part of a name, or with `*` the whole of it, and a category is named whole" count

/// A test, as it is listed.
type Listed =
    { Name: string
      Framework: string
      Assembly: string option
      Categories: string list
      Skipped: string option
      Cases: int option }

/// How long an engine may take to find tests.
let private findingLimit = TimeSpan.FromSeconds 60.

/// The tests of an engine, or why they could not be found.
let private listedBy (engine: Engine) : Result<Listed list, string> =
    let listed (case: EngineCase) : Listed =
        { Name = case.Name
          Framework = engine.Framework
          Assembly = engine.Source.Name
          Categories = case.Categories
          Skipped = case.Skipped |> Option.orElse (if case.IsExplicit then Some "explicit" else None)
          Cases = Some 1 }
    let why (reason: string) = Error(sprintf "the tests of %s in %s were not found: %s" engine.Framework engine.Source.Words reason)
    match Limited.run findingLimit (fun _ -> engine.Find()) with
    | Limited.Ended (Ok cases) -> Ok(List.map listed cases)
    | Limited.Ended (Error e) -> why e.Message
    | Limited.OutOfTime _ -> why (sprintf "it took longer than %.0f s" findingLimit.TotalSeconds)

/// The tests that a filter selects, how many there are, and what is to be said besides. None of the session's own code runs; that of
/// compiled assemblies runs as far as their framework's engine needs it, to find the arguments of tests.
let list (filter: Filter) : Listed list * int * string list =
    let found = find Map.empty
    let told (declared: Declared) : Listed =
        { Name = declared.Name
          Framework = declared.Framework
          Assembly = declared.Assembly
          Categories = declared.Categories
          Skipped = declared.Skipped
          Cases = declared.Cases }
    let ofSession, compiled = found.Engines |> List.partition (fun one -> one.Engine.Source.Name.IsNone)
    let declared = (ofSession |> List.collect (fun one -> one.Declared)) @ (found.Suites |> List.collect (fun suite -> suite.Declared)) |> List.map told
    let engines = compiled |> List.map (fun one -> listedBy one.Engine)
    let compiled = engines |> List.collect (function Ok listed -> listed | Error _ -> [])
    let notes = found.Notes @ (engines |> List.choose (function Error note -> Some note | Ok _ -> None))
    let all = declared @ compiled
    let meant = all |> List.filter (fun one -> selects filter one.Name one.Categories)
    meant, all.Length, notes @ (if List.isEmpty meant then [ advice found all.Length ] else [])

/// The tests that engines find, with the name of their assembly; how many there are besides, and what could not be found.
let cases (found: Found) : (string option * EngineCase) list * int * string list =
    let find (engine: Engine) =
        match Limited.run findingLimit (fun _ -> engine.Find()) with
        | Limited.Ended (Ok cases) -> cases |> List.map (fun case -> engine.Source.Name, case), []
        | Limited.Ended (Error e) -> [], [ engine.Source.Words + ": " + e.Message ]
        | Limited.OutOfTime _ -> [], [ engine.Source.Words + ": finding its tests took too long" ]
    let told = found.Engines |> List.map (fun one -> find one.Engine)
    let others = found.Suites |> List.sumBy (fun suite -> suite.Declared |> List.sumBy (fun declared -> defaultArg declared.Cases 1))
    List.collect fst told, others, found.Notes @ List.collect snd told
