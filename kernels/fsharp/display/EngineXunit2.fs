/// xUnit 2, by the runner of its own in `xunit.execution`.
module internal MainstayDisplay.EngineXunit2

open System
open System.Collections
open System.Collections.Generic
open System.Reflection
open System.Threading
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

/// Categories and traits, as `name=value`.
let categoriesOf (traits: obj) : string list =
    let pairs = match traits with :? IEnumerable as pairs -> List.ofSeq (Seq.cast<obj> pairs) | _ -> []
    pairs |> List.collect (fun pair ->
        let name = text pair "Key"
        items pair "Value" |> List.map (fun value -> if name = "Category" then string value else name + "=" + string value))

/// What a message of a failure says: it has several where exceptions have inner ones, the outermost first.
let failureOf (message: obj) : Failure =
    let first (name: string) = match items message name with first :: _ when not (isNull first) -> string first | _ -> ""
    TestsFailure.ofText (first "ExceptionTypes") (first "Messages") (first "StackTraces")

let tookOf (message: obj) : TimeSpan =
    match get message "ExecutionTime" with
    | :? decimal as seconds -> TimeSpan.FromSeconds(float seconds)
    | _ -> TimeSpan.Zero

/// Options of the framework: what is not known of them is the default.
let private optionsOf (face: Type) (values: (string * obj) list) : obj =
    let known = Dictionary<string, obj>(dict values)
    implementing face (fun m arguments ->
        match m.Name with
        | "GetValue" -> (match known.TryGetValue(string arguments.[0]) with | true, value -> value | false, _ -> null)
        | "SetValue" ->
            known.[string arguments.[0]] <- arguments.[1]
            null
        | _ -> null)

let engine (load: string -> Assembly) (source: Source) : Engine =
    let execution, abstractions = load "xunit.execution.dotnet", load "xunit.abstractions"
    let own (name: string) = typeIn execution ("Xunit.Sdk." + name)
    let face (name: string) = typeIn abstractions ("Xunit.Abstractions." + name)
    let listening (hear: obj -> bool) = implementing (face "IMessageSink") (fun _ arguments -> box (hear arguments.[0]))
    let deaf = listening (fun _ -> true)
    let described = make (own "ReflectionAssemblyInfo") [ source.Assembly ]

    let find () =
        let places = implementing (face "ISourceInformationProvider") (fun m _ -> if m.Name = "Dispose" then null else having (face "ISourceInformation") [])
        let found = List<EngineCase>()
        use isComplete = new ManualResetEventSlim()
        let hear (message: obj) =
            if isA "ITestCaseDiscoveryMessage" message then
                let case = get message "TestCase"
                let place = get case "TestMethod"
                let owner, method' = text (get (get place "TestClass") "Class") "Name", text (get place "Method") "Name"
                if source.IsThere owner method' then
                    found.Add
                        { Name = source.NameOf(text case "DisplayName")
                          Categories = categoriesOf (get case "Traits")
                          Skipped = (match text case "SkipReason" with "" -> None | reason -> Some reason)
                          IsExplicit = false
                          Roots = methodRoot owner method'
                          Key = case }
            elif isA "IDiscoveryCompleteMessage" message then isComplete.Set()
            true
        let discoverer = make (own "XunitTestFrameworkDiscoverer") [ described; places; deaf ]
        call discoverer "Find" [ false; listening hear; optionsOf (face "ITestFrameworkDiscoveryOptions") [] ] |> ignore
        isComplete.Wait()
        List.ofSeq found

    let found = lazy (find ())

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let cases = meant |> Option.defaultWith found.Force |> List.map (fun case -> case.Key)
        let nameIn (message: obj) = source.NameOf(text (get message "Test") "DisplayName")
        let hear (message: obj) =
            let ended (outcome: Outcome) =
                let categories = categoriesOf (get (get message "TestCase") "Traits")
                tell (Ended(nameIn message, categories, outcome, tookOf message, text message "Output"))
            if isA "ITestStarting" message then tell (Began(nameIn message))
            elif isA "ITestPassed" message then ended Passed
            elif isA "ITestFailed" message then ended (Failed(failureOf message))
            elif isA "ITestSkipped" message then ended (Skipped(text message "Reason"))
            elif isA "IFailureInformation" message then
                // A fixture, a class or the assembly could not be cleaned up.
                let around = [ "TestCase", "DisplayName"; "TestClass", "Class"; "TestCollection", "DisplayName" ]
                let name = around |> List.tryPick (fun (owner, name) -> match text (get message owner) name with "" -> None | name -> Some name)
                tell (Ended(defaultArg (Option.map source.NameOf name) source.Words + " (ending)", [], Failed(failureOf message), TimeSpan.Zero, ""))
            not token.IsCancellationRequested
        let runner = own "XunitTestAssemblyRunner"
        let caseFace = face "ITestCase"
        let options = optionsOf (face "ITestFrameworkExecutionOptions") [ ("xunit.execution.DisableParallelization", box true) ]
        let wanted = runner.GetConstructors().[0].GetParameters().[1].ParameterType.GetGenericArguments().[0]
        let cases = cases |> List.filter (fun case -> caseFace.IsInstanceOfType case && wanted.IsInstanceOfType case)
        let made = make runner [ make (own "TestAssembly") [ described ]; arrayOf wanted cases; deaf; listening hear; options ]
        try
            call made "RunAsync" [] |> waitFor |> ignore
        finally
            call made "Dispose" [] |> ignore

    { Framework = "xUnit"; Source = source; Find = found.Force; Run = run }
