/// xUnit 3, by the front controller that its own runners use.
module internal MainstayDisplay.EngineXunit3

open System
open System.Collections.Concurrent
open System.Collections.Generic
open System.Reflection
open System.Threading
open MainstayDisplay.EngineCalls
open MainstayDisplay.EngineXunit2
open MainstayDisplay.TestsModel

/// A test that began: what its end does not say.
type private Begun = { Name: string; Categories: string list }

let engine (load: string -> Assembly) (assembly: Assembly) : Engine =
    let core, common, runners = load "xunit.v3.core", load "xunit.v3.common", load "xunit.v3.runner.common"
    let sinkFace, caseFace = typeIn common "Xunit.Sdk.IMessageSink", typeIn common "Xunit.Sdk.ITestCase"
    let listening (hear: obj -> bool) = implementing sinkFace (fun _ arguments -> box (hear arguments.[0]))
    let deaf = listening (fun _ -> true)

    let options (kind: string) =
        let configuration = make (typeIn runners "Xunit.Runner.Common.TestAssemblyConfiguration") []
        match configuration.GetType().GetProperty "ParallelizeTestCollections" with
        | null -> ()
        | property -> property.SetValue(configuration, Nullable false)
        callStatic (typeIn runners "Xunit.Runner.Common.TestFrameworkOptions") kind [ configuration ]

    // What is set for a run is of the thread that sets it, and what that starts.
    let onThisThread () = callStatic (typeIn core "Xunit.TestContext") "SetForInitialization" [ deaf; false; false ] |> ignore

    let controller =
        lazy (
            let framework = callStatic (typeIn core "Xunit.v3.ExtensibilityPointFactory") "GetTestFramework" [ assembly ]
            make (typeIn core "Xunit.v3.InProcessFrontController") [ framework; assembly; null ])

    let find () =
        onThisThread ()
        let found = List<EngineCase>()
        let take (case: obj) =
            found.Add
                { Name = text case "TestCaseDisplayName"
                  Categories = categoriesOf (get case "Traits")
                  Skipped = (match text case "SkipReason" with "" -> None | reason -> Some reason)
                  IsExplicit = (match get case "Explicit" with :? bool as isExplicit -> isExplicit | _ -> false)
                  Key = case }
            box true
        use cancel = new CancellationTokenSource()
        let filter = delegateOf (typedefof<Func<_, _>>.MakeGenericType(caseFace, typeof<bool>)) take
        call controller.Value "Find" [ deaf; options "ForDiscovery"; filter; cancel ] |> waitFor |> ignore
        List.ofSeq found

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let cases = meant |> Option.defaultWith find |> List.map (fun case -> case.Key)
        onThisThread ()
        let begun = ConcurrentDictionary<string, Begun>()
        let failed = ConcurrentDictionary<string, bool>()
        let hear (message: obj) =
            let id = text message "TestUniqueID"
            let ended (outcome: Outcome) =
                let one = match begun.TryGetValue id with | true, one -> one | false, _ -> { Name = message.GetType().Name; Categories = [] }
                tell (Ended(one.Name, one.Categories, outcome, tookOf message, text message "Output"))
            if isA "ITestStarting" message then
                let one = { Name = text message "TestDisplayName"; Categories = categoriesOf (get message "Traits") }
                begun.[id] <- one
                tell (Began one.Name)
            elif isA "ITestPassed" message then ended Passed
            elif isA "ITestFailed" message then
                failed.[id] <- true
                ended (Failed(failureOf message))
            elif isA "ITestSkipped" message then ended (Skipped(text message "Reason"))
            elif isA "ITestNotRun" message then ended (Skipped "explicit")
            elif isA "IErrorMetadata" message && not (failed.ContainsKey id) then
                // What a test that failed already could not clean up says nothing new of it.
                let name = match begun.TryGetValue id with | true, one -> one.Name | false, _ -> assembly.GetName().Name
                tell (Ended(name + " (ending)", [], Failed(failureOf message), TimeSpan.Zero, ""))
            not token.IsCancellationRequested
        use cancel = CancellationTokenSource.CreateLinkedTokenSource token
        call controller.Value "Run" [ listening hear; options "ForExecution"; arrayOf caseFace cases; cancel ] |> waitFor |> ignore

    { Framework = "xUnit"; Assembly = assembly.GetName().Name; Find = find; Run = run }
