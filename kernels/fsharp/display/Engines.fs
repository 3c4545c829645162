/// Which engine runs the tests of a compiled assembly: that of its framework, as the version that it refers to.
module internal MainstayDisplay.Engines

open System
open System.Collections.Generic
open System.IO
open System.Reflection
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

/// Loads an assembly of the build that a test assembly is part of, unless it is there already.
let private loader (folder: string) : string -> Assembly =
    lock folders (fun () -> folders.Add folder |> ignore)
    resolve.Value
    fun name ->
        let isIt (one: Assembly) = not one.IsDynamic && String.Equals(one.GetName().Name, name, StringComparison.OrdinalIgnoreCase)
        match AppDomain.CurrentDomain.GetAssemblies() |> Array.tryFind isIt with
        | Some there -> there
        | None ->
            let path = Path.Combine(folder, name + ".dll")
            if File.Exists path then Assembly.LoadFrom path
            else try Assembly.Load(AssemblyName name) with _ -> failwithf "%s.dll is not in the build's folder" name

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

/// A framework that an assembly's tests are of, and its engine, or why there is none.
type private Wanted = string * Result<(string -> Assembly) -> Assembly -> Engine, string>

let private wantedBy (assembly: Assembly) : Wanted list =
    let folder = folderOf assembly
    let referred = assembly.GetReferencedAssemblies() |> Seq.map (fun name -> name.Name, name.Version) |> Map.ofSeq
    let refersTo (name: string) = referred.ContainsKey name
    let mstestAdapters, otherAdapters = adaptersIn folder |> List.partition isMstest
    [ if refersTo "xunit.core" then yield "xUnit", Ok EngineXunit2.engine
      if refersTo "xunit.v3.core" then yield "xUnit", Ok EngineXunit3.engine
      match referred.TryFind "nunit.framework" with
      | Some version when version.Major >= 3 -> yield "NUnit", Ok EngineNunit.engine
      | Some version -> yield "NUnit", Error(sprintf "version %d is older than the engines that are known here" version.Major)
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

/// The engines of an assembly's tests; the frameworks that have none at hand, each with why.
let ofAssembly (assembly: Assembly) : Engine list * (string * string) list =
    let load = loader (folderOf assembly)
    let made =
        wantedBy assembly |> List.map (fun (framework, wanted) ->
            match wanted with
            | Error reason -> Error(framework, reason)
            | Ok engine -> try Ok(engine load assembly) with e -> Error(framework, e.Message))
    made |> List.choose (function Ok engine -> Some engine | Error _ -> None), made |> List.choose (function Error missing -> Some missing | Ok _ -> None)
