/// xUnit 3: a compiled assembly by the front controller that its own runners use; what the session's code became, which has no file, by what
/// that controller uses.
module internal MainstayDisplay.EngineXunit3

open System
open System.Collections.Concurrent
open System.Collections.Generic
open System.Reflection
open System.Threading
open System.Threading.Tasks
open MainstayDisplay.EngineCalls
open MainstayDisplay.EngineXunit2
open MainstayDisplay.EngineXunitCases
open MainstayDisplay.TestsModel

/// A test that began: what its end does not say.
type private Begun = { Name: string; Categories: string list }

let private known = KnownCases()

let engine (load: string -> Assembly) (source: Source) : Engine =
    let core, common, runners = load "xunit.v3.core", load "xunit.v3.common", load "xunit.v3.runner.common"
    let sinkFace, caseFace = typeIn common "Xunit.Sdk.IMessageSink", typeIn common "Xunit.Sdk.ITestCase"
    let listening (hear: obj -> bool) = implementing sinkFace (fun _ arguments -> box (hear arguments.[0]))
    let deaf = listening (fun _ -> true)

    let optionsWith (explicit: string) (kind: string) =
        let configuration = make (typeIn runners "Xunit.Runner.Common.TestAssemblyConfiguration") []
        let set (name: string) (valueOf: Type -> obj) =
            match configuration.GetType().GetProperty name with
            | null -> ()
            | property -> property.SetValue(configuration, valueOf property.PropertyType)
        set "ParallelizeTestCollections" (fun _ -> box (Nullable false))
        set "ExplicitOption" (fun kind -> Enum.Parse(Nullable.GetUnderlyingType kind, explicit))
        callStatic (typeIn runners "Xunit.Runner.Common.TestFrameworkOptions") kind [ configuration ]

    // What is set for a run is of the thread that sets it, and what that starts.
    let onThisThread () = callStatic (typeIn core "Xunit.TestContext") "SetForInitialization" [ deaf; false; false ] |> ignore

    let controller =
        lazy (
            let framework = callStatic (typeIn core "Xunit.v3.ExtensibilityPointFactory") "GetTestFramework" [ source.Assembly ]
            make (typeIn core "Xunit.v3.InProcessFrontController") [ framework; source.Assembly; null ])

    let inMemory =
        lazy (
            let kind = typeIn core "Xunit.v3.XunitTestAssembly"
            let takesPath (one: ConstructorInfo) = one.GetParameters() |> Array.exists (fun parameter -> parameter.Name = "assemblyPath")
            if not (kind.GetConstructors() |> Array.exists takesPath) then failwith "this version of xUnit runs only tests in files"
            make kind [ source.Assembly; null; source.Assembly.GetName().Name; source.Words ])

    let discovered (case: obj) = { Class = text case "TestClassName"; Method = text case "TestMethodName"; Case = case }

    let finder () : Finder =
        let inFile (owner: string option) =
            let found = List<Discovered>()
            use cancel = new CancellationTokenSource()
            let filter = delegateOf (typedefof<Func<_, _>>.MakeGenericType(caseFace, typeof<bool>)) (fun case -> found.Add(discovered case); box true)
            let of' = match owner with Some owner -> [ box [| source.Assembly.GetType(owner, true) |] ] | None -> []
            call controller.Value "Find" ([ deaf; optionsWith "Off" "ForDiscovery"; filter; cancel ] @ of') |> waitFor |> ignore
            List.ofSeq found
        let inSession (_: string option) =
            let found = List<Discovered>()
            let discoverer = make (typeIn core "Xunit.v3.XunitTestFrameworkDiscoverer") [ inMemory.Value ]
            let callback = delegateOf (typedefof<Func<_, _>>.MakeGenericType(caseFace, typeof<ValueTask<bool>>)) (fun case -> found.Add(discovered case); box (ValueTask<bool> true))
            call discoverer "Find" [ callback; optionsWith "Off" "ForDiscovery" ] |> waitFor |> ignore
            List.ofSeq found
        if source.HasFile then inFile else inSession

    let runAll (explicit: string) (cases: obj) (sink: obj) (token: CancellationToken) =
        let options = optionsWith explicit "ForExecution"
        if source.HasFile then
            use cancel = CancellationTokenSource.CreateLinkedTokenSource token
            call controller.Value "Run" [ sink; options; cases; cancel ] |> waitFor |> ignore
        else
            let executor = make (typeIn core "Xunit.v3.XunitTestFrameworkExecutor") [ inMemory.Value ]
            call executor "RunTestCases" [ cases; sink; options; token ] |> waitFor |> ignore

    let find () : EngineCase list =
        onThisThread ()
        [ for { Class = owner; Method = method'; Case = case } in known.Of(source, finder) do
            if source.IsThere owner method' then
                { Name = source.NameOf(text case "TestCaseDisplayName")
                  Categories = categoriesOf (get case "Traits")
                  Skipped = (match text case "SkipReason" with "" -> None | reason -> Some reason)
                  IsExplicit = (match get case "Explicit" with :? bool as isExplicit -> isExplicit | _ -> false)
                  Roots = methodRoot owner method'
                  Key = case } ]

    let found = lazy (find ())

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        // One that is explicit is among those that are meant only where it was named.
        let explicit = match meant with Some cases when cases |> List.exists (fun case -> case.IsExplicit) -> "On" | Some _ | None -> "Off"
        let cases = meant |> Option.defaultWith found.Force |> List.map (fun case -> case.Key)
        onThisThread ()
        let begun = ConcurrentDictionary<string, Begun>()
        let failed = ConcurrentDictionary<string, bool>()
        let hasTimedOut = ref false
        // xUnit cancels a test that is out of time, and fails no test for that. Where the test ends too late for it, it tells the cancellation of no test.
        let isLate (failure: Failure) (id: string) = hasTimedOut.Value && not (begun.ContainsKey id) && failure.Kind = typeof<TaskCanceledException>.FullName
        let hear (message: obj) =
            let id = text message "TestUniqueID"
            let ended (outcome: Outcome) =
                let one = match begun.TryGetValue id with | true, one -> one | false, _ -> { Name = message.GetType().Name; Categories = [] }
                tell (Ended(one.Name, one.Categories, outcome, tookOf message, text message "Output"))
            if isA "ITestStarting" message then
                let one = { Name = source.NameOf(text message "TestDisplayName"); Categories = categoriesOf (get message "Traits") }
                begun.[id] <- one
                tell (Began one.Name)
            elif isA "ITestPassed" message then ended Passed
            elif isA "ITestFailed" message then
                failed.[id] <- true
                if text message "Cause" = "Timeout" then hasTimedOut.Value <- true
                ended (Failed(failureOf message))
            elif isA "ITestSkipped" message then ended (Skipped(text message "Reason"))
            elif isA "ITestNotRun" message then ended (Skipped "explicit")
            elif isA "IErrorMetadata" message && not (failed.ContainsKey id) then
                // What a test that failed already could not clean up says nothing new of it.
                let name = match begun.TryGetValue id with | true, one -> one.Name | false, _ -> source.Words
                let failure = failureOf message
                if not (isLate failure id) then tell (Ended(name + " (ending)", [], Failed failure, TimeSpan.Zero, ""))
            not token.IsCancellationRequested
        runAll explicit (arrayOf caseFace cases) (listening hear) token

    { Framework = "xUnit"; Source = source; Find = found.Force; Run = run }
