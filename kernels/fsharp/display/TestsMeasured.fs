/// Runs tests one at a time, so that what runs meanwhile is known to be of one of them: tests that begin at the same code count as one.
module internal MainstayDisplay.TestsMeasured

open System
open System.Collections.Generic
open System.Diagnostics
open MainstayDisplay.TestsChosen
open MainstayDisplay.TestsFinding
open MainstayDisplay.TestsModel

/// What was noted while some tests ran that begin at the same code.
type Measured<'T> =
    { Assembly: string
      Roots: string list
      Noted: 'T }

/// What came of all.
type MeasuredRun<'T> =
    { Measured: Measured<'T> list
      /// What was noted while the tests were found and ran for the first time: also what runs once for all of them.
      AtFirst: 'T
      Notes: string list }

/// How long the tests of an assembly may take to be found, at least.
let private finding = TimeSpan.FromSeconds 60.

/// How a test ended, as far as that says whether it ran as it did before.
let private kindOf (outcome: Outcome) : string =
    match outcome with
    | Passed -> "passed"
    | Failed _ -> "failed"
    | Skipped _ -> "skipped"
    | TimedOut _ -> "timed out"

/// Whether something that ran is one of a case, which may have rows.
let private isOf (case: EngineCase) (name: string) = name = case.Name || name.StartsWith(case.Name + "(", StringComparison.Ordinal)

/// Runs the tests of compiled assemblies that run by themselves, each for as long as `timeout` at most; none begins after the `limit`. `begins` is
/// called before each, and `ended` behind it. All run together before that, so that what runs once is no test's own.
let run (policies: Map<string, Policy>) (limit: TimeSpan) (timeout: TimeSpan) (begins: unit -> unit) (ended: unit -> 'T) : MeasuredRun<'T> =
    let watch = Stopwatch.StartNew()
    let isOver () = watch.Elapsed >= limit
    let chooser = Chooser({ everything with Policies = policies }, everyTest)
    let found = find Map.empty
    let notes = List<string>(found.Notes)
    let mutable goesOn = false // something that ran out of time: what it runs from then on is nobody's
    let batchesOf (one: FoundEngine) =
        match Limited.run (max timeout finding) (fun _ -> one.Engine.Find()), one.Engine.Source.Name with
        | Limited.Ended (Ok cases), Some assembly ->
            [ for batch in cases |> List.filter (fun case -> not case.IsExplicit && case.Skipped.IsNone && not (List.isEmpty case.Roots)) |> chooser.Batches do
                one.Engine, assembly, batch ]
        | Limited.Ended (Error e), _ ->
            notes.Add(one.Engine.Source.Words + ": " + e.Message)
            []
        | Limited.OutOfTime isThere, _ ->
            goesOn <- goesOn || isThere
            notes.Add(one.Engine.Source.Words + ": finding its tests took too long")
            []
        | Limited.Ended (Ok _), None -> [] // What the session's code defined is not in this process.
    let runs (engine: Engine) (mustStop: unit -> bool) (cases: EngineCase list) : Ran list =
        if goesOn || mustStop () then []
        else
            let ran = TestsRunning.runSome engine timeout mustStop cases
            goesOn <- goesOn || List.exists snd ran
            List.map fst ran
    begins ()
    let all = found.Engines |> List.collect batchesOf
    // Tests that have a limited time run once: it is for what they are measured by.
    let together = dict [ for engine, _, batch in all do if not batch.IsLimited then for ran in runs engine isOver batch.Cases -> ran.Name, kindOf ran.Outcome ]
    let atFirst = ended ()
    // A test that did not run, or now ends in another way, has lines that are not its own.
    let isWhole (group: EngineCase list) (ran: Ran list) =
        group |> List.forall (fun case -> ran |> List.exists (fun one -> isOf case one.Name))
        && ran |> List.forall (fun one ->
            match together.TryGetValue one.Name with
            | true, before -> kindOf one.Outcome = before
            | _ -> kindOf one.Outcome <> "timed out")
    let measured = List<Measured<'T>>()
    let mutable otherwise, left = 0, 0
    for engine, assembly, batch in all do
        let mustStop () = isOver () || chooser.MustStop batch.IsLimited
        for roots, group in batch.Cases |> List.groupBy (fun case -> case.Roots) do
            begins ()
            match chooser.During(batch.IsLimited, fun () -> runs engine mustStop group) with
            | [] -> left <- left + group.Length
            | ran when isWhole group ran -> measured.Add { Assembly = assembly; Roots = roots; Noted = ended () }
            | _ -> otherwise <- otherwise + group.Length
    if isOver () then notes.Add "not all tests were measured in the time that a measurement has (`measure-ms`)"
    elif goesOn then notes.Add "a test goes on although its time is over (`measure-test-ms`): those behind it were not measured"
    elif left > 0 then notes.Add(sprintf "%d tests were not measured in the time that tests of their category have" left)
    if otherwise > 0 then notes.Add(sprintf "%d tests were not measured: alone they end otherwise than with the others, or do not run" otherwise)
    { Measured = List.ofSeq measured; AtFirst = atFirst; Notes = List.ofSeq notes }
