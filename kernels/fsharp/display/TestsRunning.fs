/// Runs tests one after the other, each on a thread of its own that has so much time and no more.
module internal MainstayDisplay.TestsRunning

open System
open System.Diagnostics
open System.Threading
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsFinding

/// What came of all of them.
type Run =
    { Ran: Ran list
      Took: TimeSpan
      /// Whether a test goes on that ran longer than it may.
      MustRestart: bool
      /// The assemblies with tests, each with what it and all it needs are.
      Assemblies: (string * string) list
      /// Those of them whose tests were left alone.
      Unchanged: string list
      Notes: string list }

/// The stack of a test, in bytes. Only what is used of it takes memory.
let private stackSize = 64 * 1024 * 1024

/// How long a test that ran out of time has to end.
let private grace = TimeSpan.FromMilliseconds 500.

type private Ending<'T> =
    | Ended of Result<'T, exn>
    | OutOfTime of goesOn: bool

/// Runs something for so long at most. What does not end then is left to itself.
let private within (limit: TimeSpan) (work: CancellationToken -> 'T) : Ending<'T> =
    let cancel = new CancellationTokenSource()
    let ended: Result<'T, exn> option ref = ref None
    let thread = Thread((fun () -> ended.Value <- Some(try Ok(work cancel.Token) with e -> Error e)), stackSize, IsBackground = true, Name = "test")
    // What is called by a cancellation is the test's code, and may do anything.
    let stop () =
        cancel.CancelAfter 0
        thread.Interrupt()
    thread.Start()
    try
        if thread.Join limit then Ended(Option.get ended.Value)
        else
            stop ()
            OutOfTime(not (thread.Join grace))
    with _ ->
        // The run is cancelled. It ends when the test does: who cancels it kills what does not.
        stop ()
        thread.Join()
        reraise ()

let private ranOf (name: string) (declared: Declared) (categories: string list) (outcome: Outcome) (took: TimeSpan) : Ran =
    { Name = name; Framework = declared.Framework; Assembly = declared.Assembly; Categories = categories; Outcome = outcome; Took = took }

/// What is said of something that ended or did not, and whether it goes on.
let private outcomeOf (limit: TimeSpan) (ending: Ending<unit>) : Outcome * bool =
    match ending with
    | Ended (Ok ()) -> Passed, false
    | Ended (Error e) -> TestsFailure.outcomeOf e, false
    | OutOfTime goesOn -> TimedOut limit, goesOn

let private runCase (limit: TimeSpan) (declared: Declared, case: Case) : Ran * bool =
    let ran = ranOf case.Name declared case.Categories
    match case.Skipped with
    | Some reason -> ran (Skipped reason) TimeSpan.Zero, false
    | None ->
        let limit = match case.TimeLimit with Some own when own < limit -> own | Some _ | None -> limit
        let watch = Stopwatch.StartNew()
        let outcome, goesOn = outcomeOf limit (within limit case.Run)
        ran outcome watch.Elapsed, goesOn

/// The cases of a test; what comes of finding them out where that fails.
let private expanded (limit: TimeSpan) (declared: Declared) : Result<Case list, Ran * bool> =
    match within limit (fun _ -> declared.Expand()) with
    | Ended (Ok cases) -> Ok cases
    | Ended (Error e) -> Error(ranOf declared.Name declared declared.Categories (TestsFailure.outcomeOf e) TimeSpan.Zero, false)
    | OutOfTime goesOn -> Error(ranOf declared.Name declared declared.Categories (TimedOut limit) limit, goesOn)

let private closed (limit: TimeSpan) (suite: Suite) (framework: string) : (Ran * bool) list =
    match outcomeOf limit (within limit (fun _ -> suite.Close())) with
    | Passed, _
    | Skipped _, _ -> []
    | (Failed _ | TimedOut _) as outcome, goesOn ->
        [ ({ Name = suite.Name + " (ending)"; Framework = framework; Assembly = None; Categories = []; Outcome = outcome; Took = TimeSpan.Zero }, goesOn) ]

/// What came of a suite.
type private SuiteRun =
    { Results: Ran list
      /// How many tests it has, as far as that was found out.
      Count: int
      /// Whether something of it goes on, be it meant or not.
      GoesOn: bool }

let private runSuite (filter: Filter) (limit: TimeSpan) (suite: Suite) : SuiteRun =
    let meant, others = suite.Declared |> List.partition (mayHoldMeant filter)
    let all = meant |> List.map (fun declared -> declared, expanded limit declared)
    let count = all |> List.sumBy (function _, Ok cases -> List.length cases | _, Error _ -> 1)
    let run (declared: Declared, cases: Result<Case list, Ran * bool>) =
        match cases with
        | Ok cases -> cases |> List.filter (fun case -> selects filter case.Name case.Categories) |> List.map (fun case -> runCase limit (declared, case))
        | Error (ran, goesOn) -> if selects filter ran.Name ran.Categories then [ (ran, goesOn) ] else []
    let goesOn = all |> List.exists (function _, Error (_, goesOn) -> goesOn | _, Ok _ -> false)
    let ran = all |> List.collect run
    let framework = match suite.Declared with first :: _ -> first.Framework | [] -> "xUnit"
    let results = ran @ closed limit suite framework
    { Results = List.map fst results
      Count = count + (others |> List.sumBy (fun declared -> defaultArg declared.Cases 1))
      GoesOn = goesOn || List.exists snd results }

/// Runs the tests that a filter selects, except those in assemblies that are as is said.
let run (filter: Filter) (known: Map<string, string>) (limit: TimeSpan) : Run =
    let watch = Stopwatch.StartNew()
    let found = find known
    let ran = found.Suites |> List.map (runSuite filter limit)
    let all = ran |> List.collect (fun suite -> suite.Results)
    { Ran = all
      Took = watch.Elapsed
      MustRestart = ran |> List.exists (fun suite -> suite.GoesOn)
      Assemblies = found.Assemblies
      Unchanged = found.Unchanged
      Notes = found.Notes @ (if List.isEmpty all && List.isEmpty found.Unchanged then [ advice found (ran |> List.sumBy (fun suite -> suite.Count)) ] else []) }
