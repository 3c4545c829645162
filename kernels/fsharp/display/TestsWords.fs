/// How the result of one test is written, for people and for programs.
module internal MainstayDisplay.TestsWords

open System
open System.Globalization
open MainstayDisplay.TestsModel

/// A time as people read it.
let seconds (time: TimeSpan) : string =
    if time.TotalSeconds < 1. then sprintf "%.0f ms" time.TotalMilliseconds else time.TotalSeconds.ToString("0.0", CultureInfo.InvariantCulture) + " s"

let private indented (text: string) =
    let lines = text.Split '\n' |> Array.map (fun line -> line.TrimEnd()) |> Array.filter (fun line -> line <> "")
    let margin = if Array.isEmpty lines then 0 else lines |> Seq.map (fun line -> line.Length - line.TrimStart().Length) |> Seq.min
    lines |> Seq.map (fun line -> "    " + line.Substring margin) |> String.concat "\n"

/// How much is told of what a test wrote, in characters: its end, since what failed wrote last.
let private outputLength = 4000

let private shortened (output: string) =
    let output = output.Trim()
    if output.Length <= outputLength then output else "…" + output.Substring(output.Length - outputLength)

/// How many ended so, in words: those that passed in any case, the others where there are some.
let counts (passed: int) (failed: int) (timedOut: int) (skipped: int) : string =
    [ passed, "passed"; failed, "failed"; timedOut, "timed out"; skipped, "skipped" ]
    |> List.filter (fun (count, word) -> count > 0 || word = "passed")
    |> List.map (fun (count, word) -> sprintf "%d %s" count word)
    |> String.concat ", "

/// A result on one line, with what is needed to understand a failure below it.
let line (ran: Ran) : string =
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

/// A number as JSON has it, without a fraction.
let number (value: float) : string = JsonText.number (Math.Round value)

let private optional (name: string) (value: string option) = match value with Some value -> [ (name, JsonText.text value) ] | None -> []

let private failureJson (failure: Failure) : string =
    JsonText.object (
        [ "kind", JsonText.text failure.Kind; "message", JsonText.text failure.Message ]
        @ optional "expected" failure.Expected
        @ optional "actual" failure.Actual
        @ (if List.isEmpty failure.Stack then [] else [ ("stack", JsonText.array (List.map JsonText.text failure.Stack)) ])
        @ (match failure.Place with Some (file, line) -> [ "file", JsonText.text file; "line", string line ] | None -> [])
    )

/// A result as JSON.
let json (ran: Ran) : string =
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
        @ (match ran.Place with Some (file, line) -> [ ("place", JsonText.object [ "file", JsonText.text file; "line", string line ]) ] | None -> [])
        @ (match shortened ran.Output with "" -> [] | output -> [ ("output", JsonText.text output) ])
        @ more
    )
