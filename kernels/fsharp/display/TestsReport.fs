/// What came of tests, for people and for programs.
module internal MainstayDisplay.TestsReport

open System.Text
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsRunning

/// The form that programs read.
let kind = "application/vnd.mainstay.tests+json"

/// How many tests are told one by one; those that did not pass are told before the others.
let private testLimit = 1000

/// How many bytes the results that are told have as JSON at most; people are told about as much again. Both have room in what one display may have.
let private resultsLimit = 384 * 1024

/// Up to so many, people are told of those that passed as well.
let private shownPassed = 50

let private isPassed (ran: Ran) = ran.Outcome = Passed

let private count (isMeant: Outcome -> bool) (run: Run) = run.Ran |> Seq.filter (fun ran -> isMeant ran.Outcome) |> Seq.length
let private passed = count (function Passed -> true | _ -> false)
let private skipped = count (function Skipped _ -> true | _ -> false)
let private failed = count (function Failed _ -> true | _ -> false)
let private timedOut = count (function TimedOut _ -> true | _ -> false)

let private mustRestart = "a test goes on although its time is over: a hard reset of the session ends it"

let private told (run: Run) : Ran list =
    let others, first = run.Ran |> List.indexed |> List.partition (snd >> isPassed)
    let room = ref resultsLimit
    let fits (_, ran: Ran) =
        room.Value <- room.Value - Encoding.UTF8.GetByteCount(TestsWords.json ran)
        room.Value >= 0
    first @ others |> List.truncate testLimit |> List.takeWhile fits |> List.sortBy fst |> List.map snd

/// How many tests a run was to choose from, and why these.
let private chosenWords (run: Run) : string option =
    let chosen = run.Chosen
    match chosen.Choice.Part with
    | TestsChosen.All -> None
    | TestsChosen.Reached _ when chosen.Chosen = 0 && List.isEmpty run.Ran -> Some(sprintf "none of %d tests reaches this change" chosen.Found)
    | TestsChosen.Reached _ -> Some(sprintf "%d of %d tests %s this change" chosen.Chosen chosen.Found (if chosen.Chosen = 1 then "reaches" else "reach"))
    | TestsChosen.Rest _ -> Some(if List.isEmpty run.Ran then "the rest: none" else "the rest")

/// What a run left that it was to choose from.
let private leftWords (run: Run) : string list =
    let chosen = run.Chosen
    let tests (count: int) (words: string) = if count = 0 then [] else [ sprintf "%d %s" count words ]
    tests chosen.OnDemand "more run on demand" @ tests chosen.OverBudget "were left for lack of time" @ (if chosen.IsOvertaken then [ "the code has changed meanwhile: the run was ended" ] else [])

/// What stands below the results.
let summary (run: Run) : string =
    let ended = TestsWords.counts (passed run) (failed run) (timedOut run) (skipped run)
    let counts =
        match chosenWords run with
        | Some words when List.isEmpty run.Ran -> words
        | Some words -> sprintf "%s: %s (%s)" words ended (TestsWords.seconds run.Took)
        | None -> ended + " in " + TestsWords.seconds run.Took
    let unchanged = if List.isEmpty run.Unchanged then [] else [ "unchanged, and not run: " + String.concat ", " run.Unchanged ]
    (if List.isEmpty run.Ran && (chosenWords run).IsNone then [] else [ counts ]) @ leftWords run @ unchanged @ (if run.MustRestart then [ mustRestart ] else []) @ run.Notes |> String.concat "\n"

let private text (told: Ran list) (run: Run) : string =
    let told = told |> List.filter (fun ran -> not (isPassed ran) || run.Ran.Length <= shownPassed)
    match List.map TestsWords.line told, summary run with
    | lines, "" -> String.concat "\n" lines
    | lines, summary -> lines @ [ summary ] |> String.concat "\n"

/// What was chosen, as JSON; nothing where all that was meant ran.
let private choiceJson (run: Run) : (string * string) list =
    let chosen = run.Chosen
    let part, changed =
        match chosen.Choice.Part with
        | TestsChosen.All -> "all", []
        | TestsChosen.Reached changes -> "reached", changes.Names
        | TestsChosen.Rest changes -> "rest", changes.Names
    let counted (name: string) (count: int) = if count = 0 then [] else [ (name, string count) ]
    if chosen.IsWhole then []
    else
        [ ("choice",
           JsonText.object (
               [ "part", JsonText.text part; "changed", JsonText.array (List.map JsonText.text changed); "chosen", string chosen.Chosen; "found", string chosen.Found ]
               @ counted "onDemand" chosen.OnDemand
               @ counted "overBudget" chosen.OverBudget
               @ (if chosen.IsOvertaken then [ ("overtaken", "true") ] else [])
           )) ]

let private json (told: Ran list) (run: Run) : string =
    let left = run.Ran.Length - told.Length
    JsonText.object (
        [ "passed", string (passed run); "failed", string (failed run); "timedOut", string (timedOut run); "skipped", string (skipped run)
          "durationMs", TestsWords.number run.Took.TotalMilliseconds; "tests", JsonText.array (List.map TestsWords.json told) ]
        @ (if left > 0 then [ ("leftOut", string left) ] else [])
        @ (if List.isEmpty run.Assemblies then [] else [ ("assemblies", JsonText.object (run.Assemblies |> List.map (fun (name, fingerprint) -> name, JsonText.text fingerprint))) ])
        @ (if List.isEmpty run.Unchanged then [] else [ ("unchanged", JsonText.array (List.map JsonText.text run.Unchanged)) ])
        @ (if run.Code = "" then [] else [ ("code", JsonText.text run.Code) ])
        @ choiceJson run
        @ (if run.MustRestart then [ ("mustRestart", "true") ] else [])
        @ (if List.isEmpty run.Notes then [] else [ ("notes", JsonText.array (List.map JsonText.text run.Notes)) ])
    )

let bundle (run: Run) : Bundle =
    let told = told run
    [ "text/plain", Text(text told run); kind, Json(json told run) ]
