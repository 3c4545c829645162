/// Frameworks of Microsoft.Testing.Platform, such as TUnit: the platform runs in this process, and a consumer of its messages tells what happens.
module internal MainstayDisplay.EnginePlatform

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Threading
open System.Threading.Tasks
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

let private properties (node: obj) : obj list =
    call (get node "Properties") "AsEnumerable" [] :?> System.Collections.IEnumerable |> Seq.cast<obj> |> List.ofSeq

let private named (name: string) (all: obj list) : obj = all |> List.tryFind (fun one -> one.GetType().Name = name) |> Option.toObj

/// What a node is called: its method in its class where the platform says which, with what is displayed of it.
let private nameOf (node: obj) (all: obj list) : string =
    let shown = text node "DisplayName"
    match named "TestMethodIdentifierProperty" all with
    | null -> shown
    | place ->
        let owner = [ text place "Namespace"; text place "TypeName" ] |> List.filter ((<>) "") |> String.concat "."
        if shown.StartsWith(owner, StringComparison.Ordinal) then shown else owner + "." + shown

let private rootsOf (all: obj list) : string list =
    match named "TestMethodIdentifierProperty" all with
    | null -> []
    | place -> methodRoot ([ text place "Namespace"; text place "TypeName" ] |> List.filter ((<>) "") |> String.concat ".") (text place "MethodName")

let private categoriesOf (all: obj list) : string list =
    all
    |> List.filter (fun one -> one.GetType().Name = "TestMetadataProperty")
    |> List.map (fun one ->
        match text one "Key", text one "Value" with
        | name, "" -> name
        | ("Category" | "TestCategory"), value -> value
        | name, value -> name + "=" + value)

/// The state of a test, by the name of its property.
let private stateOf (all: obj list) : (string * obj) option =
    all |> List.tryPick (fun one ->
        let name = one.GetType().Name
        if name.EndsWith("TestNodeStateProperty", StringComparison.Ordinal) && name <> "TestNodeStateProperty" then
            Some(name.Substring(0, name.Length - "TestNodeStateProperty".Length), one)
        else None)

let private outcomeOf (state: string, property: obj) : Outcome option =
    let explanation = text property "Explanation"
    match state with
    | "Passed" -> Some Passed
    | "Skipped" -> Some(Skipped(if explanation = "" then "skipped" else explanation))
    | "Failed"
    | "Error"
    | "Timeout" ->
        match get property "Exception" with
        | :? exn as e -> Some(TestsFailure.outcomeOf e)
        | _ -> Some(Failed(TestsFailure.ofText state explanation ""))
    | _ -> None

/// `register` adds the framework to the platform's builder, and is told which assembly has the tests where it asks.
let engine (framework: string) (register: obj -> unit) (load: string -> Assembly) (source: Source) : Engine =
    let platform = load "Microsoft.Testing.Platform"
    let types = try platform.GetTypes() with :? ReflectionTypeLoadException as e -> e.Types |> Array.filter (isNull >> not)
    let own (name: string) = types |> Array.find (fun kind -> kind.Name = name)

    // What the platform displays itself by is told all that happens, of a discovery too, and writes nothing to the process's own output.
    let deviceFace = lazy (combined [ own "IPlatformOutputDevice"; own "IDataConsumer" ])

    let device (tell: obj -> obj list -> string * obj -> unit) =
        implementing deviceFace.Value (fun m given ->
            match m.Name with
            | "get_DataTypesConsumed" -> box [| own "TestNodeUpdateMessage" |]
            | "get_Uid"
            | "get_DisplayName"
            | "get_Description" -> box "mainstay"
            | "get_Version" -> box "1.0"
            | "IsEnabledAsync" -> box (Task.FromResult true)
            | "ConsumeAsync" ->
                let node = get given.[1] "TestNode"
                let all = properties node
                stateOf all |> Option.iter (tell node all)
                box Task.CompletedTask
            | _ when m.ReturnType = typeof<Task> -> box Task.CompletedTask
            | _ -> null)

    /// Runs the platform with these arguments, and tells each state of each test.
    let host (arguments: string list) (token: CancellationToken) (tell: obj -> obj list -> string * obj -> unit) =
        let results = Path.Combine(Path.GetTempPath(), "mainstay-tests-" + Guid.NewGuid().ToString "N")
        let options = make (own "TestApplicationOptions") []
        for name, value in [ "CancellationToken", box token; "EnableTelemetry", box false ] do
            match options.GetType().GetProperty(name, BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Instance) with
            | null -> ()
            | property -> property.SetValue(options, value)
        let quiet = [ "--no-banner"; "--results-directory"; results ]
        let builder = callStatic (own "TestApplication") "CreateBuilderAsync" [ Array.ofList (quiet @ arguments); options ] |> waitFor
        let manager = field (field builder "_testHostBuilder") "_outputDisplay"
        let set = manager.GetType().GetMethod "SetPlatformOutputDevice"
        let made = device tell
        set.Invoke(manager, [| delegateOf (set.GetParameters().[0].ParameterType) (fun _ -> made) |]) |> ignore
        register builder
        let application = call builder "BuildAsync" [] |> waitFor
        try
            call application "RunAsync" [] |> waitFor |> ignore
        finally
            (application :?> IDisposable).Dispose()
            try Directory.Delete(results, true) with _ -> ()

    let find () =
        let found = List<EngineCase>()
        host [ "--list-tests" ] CancellationToken.None (fun node all (state, _) ->
            if state = "Discovered" then
                lock found (fun () ->
                    found.Add
                        { Name = nameOf node all
                          Categories = categoriesOf all
                          Skipped = None
                          IsExplicit = false
                          Roots = rootsOf all
                          Key = box (text (get node "Uid") "Value") }))
        List.ofSeq found

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let filter = match meant with None -> [] | Some cases -> "--filter-uid" :: (cases |> List.map (fun case -> string case.Key))
        let gate = obj ()
        host filter token (fun node all (state, property) ->
            let took = match get (get (named "TimingProperty" all) "GlobalTiming") "Duration" with :? TimeSpan as took -> took | _ -> TimeSpan.Zero
            let output = text (named "StandardOutputProperty" all) "StandardOutput"
            lock gate (fun () ->
                if state = "InProgress" then tell (Began(nameOf node all))
                else outcomeOf (state, property) |> Option.iter (fun outcome -> tell (Ended(nameOf node all, categoriesOf all, outcome, took, output)))))

    { Framework = framework; Source = source; Find = find; Run = run }
