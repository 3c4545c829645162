/// Which engine runs the tests of a compiled assembly, or those that the session's code defined: that of their framework, as the version that
/// they refer to.
module internal MainstayDisplay.Engines

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Text.RegularExpressions
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

let private folders = HashSet<string>()

/// Adapters and engines name what they need of the build that they lie in.
let private resolve =
    lazy (
        AppDomain.CurrentDomain.add_AssemblyResolve (fun _ wanted ->
            let file = AssemblyName(wanted.Name).Name + ".dll"
            let all = lock folders (fun () -> List.ofSeq folders)
            match all |> List.map (fun folder -> Path.Combine(folder, file)) |> List.tryFind File.Exists with
            | Some path -> Assembly.LoadFrom path
            | None -> null))

/// Loads an assembly by its name, unless it is there already: from the first of these folders that has it, else one of these files.
let private loader (files: string list) (places: string list) (notThere: string) : string -> Assembly =
    lock folders (fun () -> folders.UnionWith places)
    resolve.Value
    fun name ->
        let isIt (found: string) = String.Equals(found, name, StringComparison.OrdinalIgnoreCase)
        match AppDomain.CurrentDomain.GetAssemblies() |> Array.tryFind (fun one -> not one.IsDynamic && isIt (one.GetName().Name)) with
        | Some there -> there
        | None ->
            let beside = places |> List.map (fun folder -> Path.Combine(folder, name + ".dll")) |> List.filter File.Exists
            match beside @ (files |> List.filter (Path.GetFileNameWithoutExtension >> isIt)) with
            | path :: _ -> Assembly.LoadFrom path
            | [] -> try Assembly.Load(AssemblyName name) with _ -> failwithf "%s.dll is %s" name notThere

/// Adapters of frameworks that are run by their own programming interface.
let private otherwiseRun = [ "xunit.runner.visualstudio.testadapter"; "nunit3.testadapter"; "fscheck.testadapter"; "yolodev.expecto.testsdk" ]

let private adaptersIn (folder: string) : string list =
    try
        Directory.GetFiles(folder, "*.dll")
        |> Seq.filter (fun path ->
            let name = (Path.GetFileNameWithoutExtension path).ToLowerInvariant()
            name.EndsWith(".testadapter", StringComparison.Ordinal) && not (List.contains name otherwiseRun))
        |> List.ofSeq
    with _ -> []

let private registerTUnit (load: string -> Assembly) (builder: obj) =
    // It would write a page for each run, which nobody asked for.
    Environment.SetEnvironmentVariable("TUNIT_DISABLE_HTML_REPORTER", "true")
    match staticMethods (load "TUnit.Engine") "AddTUnit" with
    | add :: _ -> add.Invoke(null, BindingFlags.DoNotWrapExceptions, null, [| builder |], null) |> ignore
    | [] -> failwith "TUnit.Engine has no `AddTUnit`"

let private mstestFrameworks = [ "MSTest.TestFramework"; "Microsoft.VisualStudio.TestPlatform.TestFramework" ]

let private isMstest (adapter: string) = (Path.GetFileName adapter).IndexOf("MSTest", StringComparison.OrdinalIgnoreCase) >= 0

let private folderOf (assembly: Assembly) = Path.GetDirectoryName assembly.Location

let private dependencies = ".deps.json"

/// Whether an assembly is what a build was for.
let private isMain (folder: string) (assembly: Assembly) = File.Exists(Path.Combine(folder, assembly.GetName().Name + dependencies))

/// Whether an assembly lies in a build that was for another one, as frameworks and their adapters do. Its tests are nobody's.
let isOnlyNeeded (assembly: Assembly) : bool =
    let folder = folderOf assembly
    not (isMain folder assembly) && (try not (Seq.isEmpty (Directory.EnumerateFiles(folder, "*" + dependencies))) with _ -> false)

/// Whether an adapter in its build's folder may find tests in an assembly.
let hasAdapter (assembly: Assembly) : bool = isMain (folderOf assembly) assembly && not (List.isEmpty (adaptersIn (folderOf assembly)))

/// A framework that tests are of, and its engine, or why there is none.
type private Wanted = string * Result<(string -> Assembly) -> Source -> Engine, string>

let private ofNunit (version: Version) : Wanted =
    if version.Major >= 3 then "NUnit", Ok EngineNunit.engine
    else "NUnit", Error(sprintf "version %d is older than the engines that are known here" version.Major)

let private wantedBy (assembly: Assembly) : Wanted list =
    let folder = folderOf assembly
    let referred = assembly.GetReferencedAssemblies() |> Seq.map (fun name -> name.Name, name.Version) |> Map.ofSeq
    let refersTo (name: string) = referred.ContainsKey name
    let mstestAdapters, otherAdapters = adaptersIn folder |> List.partition isMstest
    [ if refersTo "xunit.core" then yield "xUnit", Ok EngineXunit2.engine
      if refersTo "xunit.v3.core" then yield "xUnit", Ok EngineXunit3.engine
      match referred.TryFind "nunit.framework" with
      | Some version -> yield ofNunit version
      | None -> ()
      if refersTo "Expecto" then yield "Expecto", Ok EngineExpecto.engine
      if List.exists refersTo mstestFrameworks then
          match mstestAdapters with
          | path :: _ -> yield "MSTest", Ok(EngineAdapter.engine "MSTest" "Microsoft.VisualStudio.TestTools.UnitTesting.AssertFailedException" path)
          | [] -> yield "MSTest", Error "its adapter (the package MSTest.TestAdapter) is not in the build's folder"
      if refersTo "TUnit.Core" then yield "TUnit", Ok(fun load -> EnginePlatform.engine "TUnit" (registerTUnit load) load)
      if isMain folder assembly then
          for path in otherAdapters do
              let name = Path.GetFileNameWithoutExtension path
              yield name, Ok(EngineAdapter.engine name "" path) ]

let private made (load: string -> Assembly) (source: Source) (framework: string, wanted: Result<(string -> Assembly) -> Source -> Engine, string>) =
    match wanted with
    | Error reason -> Error(framework, reason)
    | Ok engine -> try Ok(engine load source) with e -> Error(framework, e.Message)

/// The folders of the frameworks that an assembly refers to, as far as they are loaded.
let private frameworksOf (assembly: Assembly) : string list =
    let referred = assembly.GetReferencedAssemblies() |> Seq.map (fun name -> name.Name) |> Set.ofSeq
    AppDomain.CurrentDomain.GetAssemblies()
    |> Seq.filter (fun one -> not one.IsDynamic && one.Location <> "" && referred.Contains(one.GetName().Name) && TestsMarked.isLibrary one)
    |> Seq.map folderOf
    |> List.ofSeq

/// The engines of an assembly's tests, where the session refers to these files; the frameworks that have none at hand, each with why. `isThere`
/// tells of a class and a method, both by their names, whether its source still has that test.
let ofAssembly (references: string list) (isThere: string -> string -> bool) (assembly: Assembly) : Engine list * (string * string) list =
    let load = loader references (List.distinct (folderOf assembly :: frameworksOf assembly)) "not in the build's folder"
    let made = wantedBy assembly |> List.map (made load (compiledSource assembly isThere))
    made |> List.choose (function Ok engine -> Some engine | Error _ -> None), made |> List.choose (function Error missing -> Some missing | Ok _ -> None)

/// How a submission's class begins what its framework calls a test, and how what is in it is parted from that.
let private submission = Regex(@"^FSI_\d+[.+]", RegexOptions.CultureInvariant)

let private nameInSession (name: string) : string =
    match submission.Match name with
    | found when found.Success ->
        let own = name.Substring found.Length
        let place, arguments = match own.IndexOf '(' with -1 -> own, "" | at -> own.Substring(0, at), own.Substring at
        place.Replace('+', '.') + arguments
    | _ -> name

/// Some members of the session's code, and what runs them, or why nothing does.
type OfSession =
    { Members: TestsMarked.Marked list
      Framework: string
      Engine: Result<Engine, string> }

/// Who runs tests in code that was compiled in the session, where it refers to these files. `name` is the assembly whose tests they are, and
/// `nameOf` what they are called.
let private ofMembers (references: string list) (name: string option) (nameOf: string -> string) (all: TestsMarked.Marked list) : OfSession list =
    let load (library: Assembly) = loader references [ folderOf library ] "not among what the session refers to"
    let sourceOf (members: TestsMarked.Marked list) : Source =
        let there = HashSet(members |> List.map (fun one -> (TestsMarked.kindOf one).FullName, one.Member.Name))
        { Assembly = (TestsMarked.kindOf members.Head).Assembly
          Name = name
          HasFile = false
          IsThere = fun kind name -> there.Contains((kind, name))
          NameOf = nameOf }
    let of' (members: TestsMarked.Marked list) (library: Assembly) (wanted: Wanted) =
        let engine = made (load library) (sourceOf members) wanted |> Result.mapError snd
        { Members = members; Framework = fst wanted; Engine = engine }
    all
    |> List.groupBy (fun one -> one.Library)
    |> List.collect (fun (library, members) ->
        // What a framework knows as an assembly is a submission.
        let bySubmission (wanted: Wanted) = members |> List.groupBy (fun one -> (TestsMarked.kindOf one).Assembly) |> List.map (fun (_, some) -> of' some library wanted)
        let without (framework: string) (reason: string) = [ of' members library (framework, Error reason) ]
        let name = library.GetName()
        match name.Name with
        | "xunit.core" -> bySubmission ("xUnit", Ok EngineXunit2.engine)
        | "xunit.v3.core" -> bySubmission ("xUnit", Ok EngineXunit3.engine)
        | "nunit.framework" when name.Version.Major >= 3 -> bySubmission (ofNunit name.Version)
        | "nunit.framework" -> [ of' members library (ofNunit name.Version) ]
        | "Expecto" -> [ of' members library ("Expecto", Ok(EngineExpecto.engineOfMembers (members |> List.map (fun one -> one.Member)))) ]
        | "TUnit.Core" -> without "TUnit" "it generates them from the source of a project"
        | _ -> without "MSTest" "its adapter reads files alone")

/// Who runs the tests that the session's code defined, where it refers to these files.
let ofSession (references: string list) (all: TestsMarked.Marked list) : OfSession list = ofMembers references None nameInSession all

/// Who runs the tests of an assembly, by its name, that were compiled since that was built. `classOf` gives what the class of a test is called by
/// its source, of which the name is that of the type that it was compiled in.
let ofSaved (references: string list) (name: string) (classOf: (string * string) list) (all: TestsMarked.Marked list) : OfSession list =
    let nameOf (test: string) =
        match classOf |> List.tryFind (fun (compiled, _) -> test.StartsWith(compiled + ".", StringComparison.Ordinal)) with
        | Some (compiled, own) -> own + test.Substring compiled.Length
        | None -> test
    ofMembers references (Some name) nameOf all
