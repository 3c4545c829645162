/// Runs tests one after the other, each for so long at most: those of compiled assemblies by the engines of their frameworks, those that
/// the session's code defined by what is known of their frameworks here.
module internal MainstayDisplay.TestsRunning

open System
open System.Collections.Concurrent
open System.Diagnostics
open System.Threading
open MainstayDisplay.TestsChosen
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsFinding
open MainstayDisplay.TestsProgress

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
      /// What the code was that they ran with.
      Code: string
      /// What was chosen, and what of it was left.
      Chosen: Chooser
      Notes: string list }

let private ranOf (name: string) (declared: Declared) (categories: string list) (outcome: Outcome) (took: TimeSpan) : Ran =
    { Name = name; Framework = declared.Framework; Assembly = declared.Assembly; Categories = categories; Outcome = outcome; Output = ""; Took = took; Place = None }

/// What is said of something that ended or did not, and whether it goes on.
let private outcomeOf (limit: TimeSpan) (ending: Limited.Ending<unit>) : Outcome * bool =
    match ending with
    | Limited.Ended (Ok ()) -> Passed, false
    | Limited.Ended (Error e) -> TestsFailure.outcomeOf e, false
    | Limited.OutOfTime goesOn -> TimedOut limit, goesOn

let private runCase (live: LiveResults) (limit: TimeSpan) (declared: Declared, case: Case) : Ran * bool =
    let ran = ranOf case.Name declared case.Categories
    match case.Skipped with
    | Some reason -> ran (Skipped reason) TimeSpan.Zero, false
    | None ->
        let limit = match case.TimeLimit with Some own when own < limit -> own | Some _ | None -> limit
        let watch = Stopwatch.StartNew()
        let outcome, goesOn = outcomeOf limit (Limited.runBeside live.Look limit case.Run)
        ran outcome watch.Elapsed, goesOn

/// The cases of a test; what comes of finding them out where that fails.
let private expanded (live: LiveResults) (limit: TimeSpan) (declared: Declared) : Result<Case list, Ran * bool> =
    match Limited.runBeside live.Look limit (fun _ -> declared.Expand()) with
    | Limited.Ended (Ok cases) -> Ok cases
    | Limited.Ended (Error e) -> Error(ranOf declared.Name declared declared.Categories (TestsFailure.outcomeOf e) TimeSpan.Zero, false)
    | Limited.OutOfTime goesOn -> Error(ranOf declared.Name declared declared.Categories (TimedOut limit) limit, goesOn)

let private closed (live: LiveResults) (limit: TimeSpan) (suite: Suite) (framework: string) : (Ran * bool) list =
    match outcomeOf limit (Limited.runBeside live.Look limit (fun _ -> suite.Close())) with
    | Passed, _
    | Skipped _, _ -> []
    | (Failed _ | TimedOut _) as outcome, goesOn ->
        [ ({ Name = suite.Name + " (ending)"; Framework = framework; Assembly = None; Categories = []; Outcome = outcome; Output = ""; Took = TimeSpan.Zero; Place = None }, goesOn) ]

/// What came of a suite.
type private SuiteRun =
    { Results: Ran list
      /// How many tests it has, as far as that was found out.
      Count: int
      /// Whether something of it goes on, be it meant or not.
      GoesOn: bool }

let private runSuite (live: LiveResults) (chooser: Chooser) (filter: Filter) (limit: TimeSpan) (suite: Suite) : SuiteRun =
    let meant, others = suite.Declared |> List.partition (mayHoldMeant filter)
    let meant = if chooser.TakesUnknown meant.Length then meant else []
    let all = meant |> List.map (fun declared -> declared, expanded live limit declared)
    let count = all |> List.sumBy (function _, Ok cases -> List.length cases | _, Error _ -> 1)
    let told (ran: Ran, goesOn: bool) =
        live.Tell ran
        ran, goesOn
    let run (declared: Declared, cases: Result<Case list, Ran * bool>) =
        match cases with
        | Ok cases ->
            cases
            |> List.filter (fun case -> selects filter case.Name case.Categories && not (chooser.MustStop false))
            |> List.map (fun case -> runCase live limit (declared, case) |> told)
        | Error (ran, goesOn) -> if selects filter ran.Name ran.Categories then [ told (ran, goesOn) ] else []
    let goesOn = all |> List.exists (function _, Error (_, goesOn) -> goesOn | _, Ok _ -> false)
    let ran = all |> List.collect run
    let framework = match suite.Declared with first :: _ -> first.Framework | [] -> "xUnit"
    let results = ran @ (closed live limit suite framework |> List.map told)
    { Results = List.map fst results
      Count = count + (others |> List.sumBy (fun declared -> defaultArg declared.Cases 1))
      GoesOn = goesOn || List.exists snd results }

/// Frameworks put their own writers in the place of the console's, and some leave them there.
let private withConsole (work: unit -> 'T) : 'T =
    let output, error = Console.Out, Console.Error
    try
        work ()
    finally
        Console.SetOut output
        Console.SetError error

let private isNamed (name: string) (filter: Filter) = filter.Pattern |> Option.exists (fun pattern -> String.Equals(pattern, name, StringComparison.OrdinalIgnoreCase))

/// What an engine told until it ended, or nothing more came for too long.
type private Attempt =
    { Told: Ran list
      /// The tests under way when time was up; None where it was not.
      Hung: string list option
      MayGoOn: bool }

/// How long an engine may prepare a run, or end it, at least: no test runs meanwhile.
let private preparing = TimeSpan.FromSeconds 60.

/// How often a run is looked at that may have to stop between two tests.
let private stopInterval = TimeSpan.FromMilliseconds 20.

let private attempt (live: LiveResults) (limit: TimeSpan) (mustStop: unit -> bool) (engine: Engine) (cases: EngineCase list option) : Attempt =
    use told = new BlockingCollection<Progress>()
    let cancel = new CancellationTokenSource()
    let tell (progress: Progress) = try told.Add progress with :? InvalidOperationException | :? ObjectDisposedException -> ()
    let thread =
        Limited.thread (fun () ->
            try
                try engine.Run cases tell cancel.Token
                with e -> tell (Ended(engine.Source.Words, [], TestsFailure.outcomeOf e, TimeSpan.Zero, ""))
            finally
                try told.CompleteAdding() with :? ObjectDisposedException -> ())
    let stop () =
        cancel.CancelAfter 0
        thread.Interrupt()
    let ranOf (name, categories, outcome, took, output) : Ran =
        { Name = name; Framework = engine.Framework; Assembly = engine.Source.Name; Categories = categories; Outcome = outcome; Output = output; Took = took; Place = None }
    let heard = Stopwatch()
    let rec follow (ran: Ran list) (under: string list) =
        let next = ref Unchecked.defaultof<Progress>
        let patience = if List.isEmpty under then max limit preparing else limit
        // A run that is to stop ends with the test that is under way.
        if not cancel.IsCancellationRequested && mustStop () then cancel.CancelAfter 0
        let wait = min (min (patience - heard.Elapsed) (live.Look())) stopInterval
        if told.TryTake(next, max TimeSpan.Zero wait) then
            heard.Restart()
            match next.Value with
            | Began name -> follow ran (under @ [ name ])
            | Ended (name, categories, outcome, took, output) ->
                let one = ranOf (name, categories, outcome, took, output)
                live.Tell one
                follow (one :: ran) (under |> List.filter ((<>) name))
        elif told.IsCompleted then { Told = List.rev ran; Hung = None; MayGoOn = false }
        elif heard.Elapsed < patience then follow ran under
        else
            stop ()
            { Told = List.rev ran; Hung = Some under; MayGoOn = not (thread.Join Limited.grace) }
    thread.Start()
    heard.Start()
    try
        follow [] []
    with _ ->
        // The run is cancelled. It ends when the test does: who cancels it kills what does not.
        stop ()
        thread.Join()
        reraise ()

/// Runs cases; where one hangs, those that had not begun run anew without it.
let rec private runCases (live: LiveResults) (limit: TimeSpan) (mustStop: unit -> bool) (engine: Engine) (all: EngineCase list) (cases: EngineCase list option) : (Ran * bool) list =
    let attempted = attempt live limit mustStop engine cases
    let ended = attempted.Told |> List.map (fun ran -> ran, false)
    match attempted.Hung with
    | None -> ended
    | Some under ->
        let names = match under with [] -> [ engine.Source.Words + " (beginning)" ] | under -> under
        let hung: (Ran * bool) list =
            names |> List.map (fun name ->
                { Name = name; Framework = engine.Framework; Assembly = engine.Source.Name; Categories = []; Outcome = TimedOut limit; Output = ""; Took = limit; Place = None }, attempted.MayGoOn)
        hung |> List.iter (fst >> live.Tell)
        let over = set (names @ (attempted.Told |> List.map (fun ran -> ran.Name)))
        let isOver (case: EngineCase) = over.Contains case.Name || over |> Set.exists (fun name -> name.StartsWith(case.Name + "(", StringComparison.Ordinal))
        match defaultArg cases all |> List.filter (isOver >> not) with
        | [] -> ended @ hung
        | _ when List.isEmpty under -> ended @ hung
        | _ when mustStop () -> ended @ hung
        | left -> ended @ hung @ runCases live limit mustStop engine all (Some left)

/// Runs some tests of an engine, each for so long at most, until the run is to stop. Gives what came of each, and whether it may go on.
let runSome (engine: Engine) (limit: TimeSpan) (mustStop: unit -> bool) (cases: EngineCase list) : (Ran * bool) list =
    withConsole (fun () -> runCases (LiveResults(Limited.forever, ignore)) limit mustStop engine cases (Some cases))

/// Runs the tests of a batch, unless the run is to stop.
let private runBatch (live: LiveResults) (chooser: Chooser) (limit: TimeSpan) (engine: Engine) (all: EngineCase list) (cases: EngineCase list option) (batch: Batch) : (Ran * bool) list =
    let mustStop () = chooser.MustStop batch.IsLimited
    let ran = if mustStop () then [] else chooser.During(batch.IsLimited, fun () -> runCases live limit mustStop engine all cases)
    if mustStop () then chooser.Leave(max 0 (batch.Cases.Length - ran.Length))
    ran

let private runEngineOf (live: LiveResults) (chooser: Chooser) (filter: Filter) (limit: TimeSpan) (engine: Engine) : SuiteRun =
    let ranAs (name: string) (outcome: Outcome) (took: TimeSpan) : Ran =
        { Name = name; Framework = engine.Framework; Assembly = engine.Source.Name; Categories = []; Outcome = outcome; Output = ""; Took = took; Place = None }
    let finding (outcome: Outcome) (goesOn: bool) =
        let ran = ranAs (engine.Source.Words + " (finding its tests)") outcome TimeSpan.Zero
        live.Tell ran
        { Results = [ ran ]; Count = 0; GoesOn = goesOn }
    match Limited.runBeside live.Look limit (fun _ -> engine.Find()) with
    | Limited.Ended (Error e) -> finding (TestsFailure.outcomeOf e) false
    | Limited.OutOfTime goesOn -> finding (TimedOut limit) goesOn
    | Limited.Ended (Ok []) -> { Results = []; Count = 0; GoesOn = false }
    | Limited.Ended (Ok all) ->
        let meant = all |> List.filter (fun case -> selects filter case.Name case.Categories)
        // As their author wants them where all are meant; else one that is explicit runs where its whole name is given.
        let isLeft (case: EngineCase) = case.IsExplicit && not (isNamed case.Name filter)
        let run = runBatch live chooser limit engine all
        let results =
            match chooser.Batches(if filter = everyTest then meant else List.filter (isLeft >> not) meant) with
            | [ batch ] when batch.Cases.Length = all.Length && filter = everyTest -> run None batch
            | batches ->
                let left = if chooser.IsWhole then List.filter isLeft meant else []
                let skipped = left |> List.map (fun case -> { ranAs case.Name (Skipped "explicit: it runs where its whole name is given") TimeSpan.Zero with Categories = case.Categories }, false)
                skipped |> List.iter (fst >> live.Tell)
                skipped @ (batches |> List.collect (fun batch -> match List.filter (isLeft >> not) batch.Cases with [] -> [] | cases -> run (Some cases) { batch with Cases = cases }))
        { Results = List.map fst results; Count = all.Length; GoesOn = List.exists snd results }

/// An engine asks for all arguments: it is not where none of the tests that are declared is meant.
let private runEngine (live: LiveResults) (chooser: Chooser) (filter: Filter) (limit: TimeSpan) (found: FoundEngine) : SuiteRun =
    match found.Declared with
    | [] -> runEngineOf live chooser filter limit found.Engine
    | declared when List.exists (mayHoldMeant filter) declared -> runEngineOf live chooser filter limit found.Engine
    | declared -> { Results = []; Count = declared |> List.sumBy (fun one -> defaultArg one.Cases 1); GoesOn = false }

/// Runs the tests that a filter selects and a choice takes, except those in assemblies that are as is said. What comes of each is told as soon
/// as it is known.
let run (live: LiveResults) (choice: Choice) (filter: Filter) (known: Map<string, string>) (limit: TimeSpan) : Run =
    let watch = Stopwatch.StartNew()
    let mark = code.Mark()
    let chooser = Chooser(choice, filter)
    let found = find known
    let ran =
        withConsole (fun () ->
            (found.Suites |> List.map (runSuite live chooser filter limit)) @ (found.Engines |> List.map (runEngine live chooser filter limit)))
    let all = ran |> List.collect (fun suite -> suite.Results) |> List.map chooser.Placed
    List.iter learn all
    { Ran = all
      Took = watch.Elapsed
      MustRestart = ran |> List.exists (fun suite -> suite.GoesOn)
      Assemblies = found.Assemblies
      Unchanged = found.Unchanged
      Code = mark
      Chosen = chooser
      Notes =
        (let count = ran |> List.sumBy (fun suite -> suite.Count)
         // Where tests cannot be run it is said why, and what would make some be found is no answer.
         let hasAdvice = chooser.IsWhole && List.isEmpty all && List.isEmpty found.Unchanged && (count > 0 || List.isEmpty found.Notes)
         found.Notes @ (if hasAdvice then [ advice found count ] else [])) }
