/// What came of tests, for people and for programs.
module internal MainstayDisplay.TestsReport

open System
open System.Globalization
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsRunning

/// The form that programs read.
let kind = "application/vnd.mainstay.tests+json"

/// How many tests are told one by one; those that did not pass are told before the others.
let private testLimit = 1000

/// Up to so many, people are told of those that passed as well.
let private shownPassed = 50

let private isPassed (ran: Ran) = ran.Outcome = Passed

let private count (isMeant: Outcome -> bool) (run: Run) = run.Ran |> Seq.filter (fun ran -> isMeant ran.Outcome) |> Seq.length
let private passed = count (function Passed -> true | _ -> false)
let private skipped = count (function Skipped _ -> true | _ -> false)
let private failed = count (function Failed _ -> true | _ -> false)
let private timedOut = count (function TimedOut _ -> true | _ -> false)

let private seconds (time: TimeSpan) =
    if time.TotalSeconds < 1. then sprintf "%.0f ms" time.TotalMilliseconds else time.TotalSeconds.ToString("0.0", CultureInfo.InvariantCulture) + " s"

let private mustRestart = "a test goes on although its time is over: a hard reset of the session ends it"

let private told (run: Run) : Ran list =
    let others, first = run.Ran |> List.indexed |> List.partition (snd >> isPassed)
    first @ others |> List.truncate testLimit |> List.sortBy fst |> List.map snd

let private indented (text: string) =
    let lines = text.Split '\n' |> Array.map (fun line -> line.TrimEnd()) |> Array.filter (fun line -> line <> "")
    let margin = if Array.isEmpty lines then 0 else lines |> Seq.map (fun line -> line.Length - line.TrimStart().Length) |> Seq.min
    lines |> Seq.map (fun line -> "    " + line.Substring margin) |> String.concat "\n"

/// How much is told of what a test wrote, in characters: its end, since what failed wrote last.
let private outputLength = 4000

let private shortened (output: string) =
    let output = output.Trim()
    if output.Length <= outputLength then output else "…" + output.Substring(output.Length - outputLength)

let private line (ran: Ran) : string =
    match ran.Outcome with
    | Passed -> sprintf "passed   %s (%s)" ran.Name (seconds ran.Took)
    | Skipped reason -> sprintf "skipped  %s: %s" ran.Name reason
    | TimedOut limit -> sprintf "timeout  %s: it ran longer than %s" ran.Name (seconds limit)
    | Failed failure ->
        let message = indented failure.Message
        let where =
            match failure.Place, failure.Stack with
            | Some (file, line), _ -> sprintf "\n    at %s:%d" file line
            | None, first :: _ -> "\n    at " + first
            | None, [] -> ""
        let kind = if TestsFailure.isAssertion failure then "" else " " + failure.Kind
        let output = if ran.Output.Trim() = "" then "" else "\n    it wrote:\n" + indented (shortened ran.Output)
        sprintf "failed   %s (%s)%s\n%s%s%s" ran.Name (seconds ran.Took) kind message where output

let private summary (run: Run) : string =
    let parts = [ passed run, "passed"; failed run, "failed"; timedOut run, "timed out"; skipped run, "skipped" ]
    let shown = parts |> List.filter (fun (count, word) -> count > 0 || word = "passed") |> List.map (fun (count, word) -> sprintf "%d %s" count word)
    String.concat ", " shown + " in " + seconds run.Took

let private text (run: Run) : string =
    let told = told run |> List.filter (fun ran -> not (isPassed ran) || run.Ran.Length <= shownPassed)
    let lines = told |> List.map line
    let unchanged = if List.isEmpty run.Unchanged then [] else [ "unchanged, and not run: " + String.concat ", " run.Unchanged ]
    let after = unchanged @ (if run.MustRestart then [ mustRestart ] else []) @ run.Notes
    lines @ (if List.isEmpty run.Ran then [] else [ summary run ]) @ after |> String.concat "\n"

let private number (value: float) = JsonText.number (Math.Round value)

let private optional (name: string) (value: string option) = match value with Some value -> [ (name, JsonText.text value) ] | None -> []

let private failureJson (failure: Failure) : string =
    JsonText.object (
        [ "kind", JsonText.text failure.Kind; "message", JsonText.text failure.Message ]
        @ optional "expected" failure.Expected
        @ optional "actual" failure.Actual
        @ (if List.isEmpty failure.Stack then [] else [ ("stack", JsonText.array (List.map JsonText.text failure.Stack)) ])
        @ (match failure.Place with Some (file, line) -> [ "file", JsonText.text file; "line", string line ] | None -> [])
    )

let private testJson (ran: Ran) : string =
    let outcome, more =
        match ran.Outcome with
        | Passed -> "passed", []
        | Skipped reason -> "skipped", [ ("reason", JsonText.text reason) ]
        | TimedOut limit -> "timedOut", [ ("limitMs", number limit.TotalMilliseconds) ]
        | Failed failure -> "failed", [ ("failure", failureJson failure) ]
    JsonText.object (
        [ "name", JsonText.text ran.Name; "framework", JsonText.text ran.Framework ]
        @ optional "assembly" ran.Assembly
        @ (if List.isEmpty ran.Categories then [] else [ ("categories", JsonText.array (List.map JsonText.text ran.Categories)) ])
        @ [ "durationMs", number ran.Took.TotalMilliseconds; "outcome", JsonText.text outcome ]
        @ (match shortened ran.Output with "" -> [] | output -> [ ("output", JsonText.text output) ])
        @ more
    )

let private json (run: Run) : string =
    let told = told run
    let left = run.Ran.Length - told.Length
    JsonText.object (
        [ "passed", string (passed run); "failed", string (failed run); "timedOut", string (timedOut run); "skipped", string (skipped run)
          "durationMs", number run.Took.TotalMilliseconds; "tests", JsonText.array (List.map testJson told) ]
        @ (if left > 0 then [ ("leftOut", string left) ] else [])
        @ (if List.isEmpty run.Assemblies then [] else [ ("assemblies", JsonText.object (run.Assemblies |> List.map (fun (name, fingerprint) -> name, JsonText.text fingerprint))) ])
        @ (if List.isEmpty run.Unchanged then [] else [ ("unchanged", JsonText.array (List.map JsonText.text run.Unchanged)) ])
        @ (if run.MustRestart then [ ("mustRestart", "true") ] else [])
        @ (if List.isEmpty run.Notes then [] else [ ("notes", JsonText.array (List.map JsonText.text run.Notes)) ])
    )

let bundle (run: Run) : Bundle = [ "text/plain", Text(text run); kind, Json(json run) ]
