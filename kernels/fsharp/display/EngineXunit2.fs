/// xUnit 2, by the runner of its own in `xunit.execution`.
module internal MainstayDisplay.EngineXunit2

open System
open System.Collections
open System.Collections.Generic
open System.Reflection
open System.Threading
open MainstayDisplay.EngineCalls
open MainstayDisplay.EngineXunitCases
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

let private known = KnownCases()

let engine (load: string -> Assembly) (source: Source) : Engine =
    let execution, abstractions = load "xunit.execution.dotnet", load "xunit.abstractions"
    let own (name: string) = typeIn execution ("Xunit.Sdk." + name)
    let face (name: string) = typeIn abstractions ("Xunit.Abstractions." + name)
    let listening (hear: obj -> bool) = implementing (face "IMessageSink") (fun _ arguments -> box (hear arguments.[0]))
    let deaf = listening (fun _ -> true)
    let described = make (own "ReflectionAssemblyInfo") [ source.Assembly ]

    /// Finds cases: `which` are the arguments that say of what.
    let discover (discoverer: obj) (which: obj list) : Discovered list =
        let found = List<Discovered>()
        use isComplete = new ManualResetEventSlim()
        let hear (message: obj) =
            if isA "ITestCaseDiscoveryMessage" message then
                let case = get message "TestCase"
                let place = get case "TestMethod"
                found.Add { Class = text (get (get place "TestClass") "Class") "Name"; Method = text (get place "Method") "Name"; Case = case }
            elif isA "IDiscoveryCompleteMessage" message then isComplete.Set()
            true
        call discoverer "Find" (which @ [ false; listening hear; optionsOf (face "ITestFrameworkDiscoveryOptions") [] ]) |> ignore
        isComplete.Wait()
        List.ofSeq found

    let discoverer () =
        let places = implementing (face "ISourceInformationProvider") (fun m _ -> if m.Name = "Dispose" then null else having (face "ISourceInformation") [])
        make (own "XunitTestFrameworkDiscoverer") [ described; places; deaf ]

    let finder () : Finder =
        let discoverer = discoverer ()
        fun owner ->
            let cases = discover discoverer (match owner with Some owner -> [ owner ] | None -> [])
            // A case reads its own attributes when it is first asked, which is nothing for two threads at once.
            for one in cases do text one.Case "DisplayName" |> ignore
            cases

    /// Has the collections of some cases run in an order that is nobody's, as xUnit has it for those that it has just found.
    let shuffle (cases: obj list) =
        let collections = HashSet<obj>(HashIdentity.Reference)
        for case in cases do collections.Add(get (get (get case "TestMethod") "TestClass") "TestCollection") |> ignore
        for collection in collections do
            match (if isNull collection then null else collection.GetType().GetProperty "UniqueID") with
            | null -> ()
            | id -> id.SetValue(collection, box (Guid.NewGuid()))

    let find () : EngineCase list =
        [ for { Class = owner; Method = method'; Case = case } in known.Of(source, finder) do
            if source.IsThere owner method' then
                { Name = source.NameOf(text case "DisplayName")
                  Categories = categoriesOf (get case "Traits")
                  Skipped = (match text case "SkipReason" with "" -> None | reason -> Some reason)
                  IsExplicit = false
                  Roots = methodRoot owner method'
                  Key = case } ]

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
        shuffle cases
        let made = make runner [ make (own "TestAssembly") [ described ]; arrayOf wanted cases; deaf; listening hear; options ]
        try
            call made "RunAsync" [] |> waitFor |> ignore
        finally
            call made "Dispose" [] |> ignore

    { Framework = "xUnit"; Source = source; Find = found.Force; Run = run }
