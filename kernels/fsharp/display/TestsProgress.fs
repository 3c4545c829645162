/// What is shown of a run of tests while it goes on: one display, which each later one replaces, and the report in the end.
module internal MainstayDisplay.TestsProgress

open System
open System.Collections.Generic
open System.Diagnostics
open MainstayDisplay.TestsModel

/// The form that programs read.
let kind = "application/vnd.mainstay.test-progress+json"

/// How long a result waits for others to be shown with it, unless the run was told otherwise. A run that is over by then shows its report alone.
let usualInterval = TimeSpan.FromMilliseconds 100.

/// After so many displays results wait twice as long, up to the longest wait: each display is an event of the log.
let private displaysPerInterval, longestInterval = 64, TimeSpan.FromSeconds 10.

/// Of so many that passed people are told each; of those after them how many they are.
let private shownPassed = 50

/// How many that did not pass stand in what is shown in place, and how much of each, in characters.
let private lastFailed, failedLength = 10, 120

/// How many results one display has, and how many characters of them and of what people are told. All of it is within what is kept of a display.
let private resultsPerDisplay, resultsLength, linesLength = 200, 128 * 1024, 128 * 1024

/// How many characters all displays of a run have together, as text and as JSON. It is a part of what is kept of a job's output, so that what
/// tests print and the report have room.
let private textLimit, jsonLimit = 256 * 1024, 1024 * 1024

/// What a display takes besides its text, in characters.
let private displayCost = 256

/// The results of a run that goes on, for those who watch it. Used by one thread; what is shown is shown on it.
type LiveResults(interval: TimeSpan, show: Bundle -> unit) =
    let watch = Stopwatch.StartNew()
    let untold = List<Ran>() // to programs
    let lines = List<string>() // that people have not seen
    let failed = Queue<string>()
    let mutable passed, failures, timedOut, skipped = 0, 0, 0, 0
    let mutable displays, shownAt = 0, TimeSpan.Zero
    let mutable text, json = 0, 0
    let mutable hasCut = false // of what people are told

    let wait () =
        let doubled = Math.Pow(2., float (displays / displaysPerInterval))
        TimeSpan.FromMilliseconds(min (interval.TotalMilliseconds * doubled) (max interval.TotalMilliseconds longestInterval.TotalMilliseconds))

    /// The room for another display is used up; the last one is always shown.
    let isFull () = text >= textLimit || json >= jsonLimit

    let inPlace () =
        let left = failures + timedOut + skipped - failed.Count
        let before = if left > 0 then [ sprintf "… %d more" left ] else []
        String.concat "\n" (sprintf "running: %s, after %s" (TestsWords.counts passed failures timedOut skipped) (TestsWords.seconds watch.Elapsed) :: before @ List.ofSeq failed)

    let display (isLast: bool) =
        let mutable room = resultsLength
        let fits (result: string) =
            room <- room - result.Length
            room >= 0
        let told = untold |> Seq.truncate resultsPerDisplay |> Seq.map TestsWords.json |> Seq.takeWhile fits |> List.ofSeq
        let left = untold.Count - told.Length
        let all = String.Join("\n", lines)
        let isCut = all.Length > linesLength
        displays <- displays + 1
        hasCut <- hasCut || isCut
        let form =
            JsonText.object (
                [ "nth", string displays; "passed", string passed; "failed", string failures; "timedOut", string timedOut; "skipped", string skipped; "tests", JsonText.array told ]
                @ (if left > 0 then [ ("leftOut", string left) ] else [])
                @ (if all = "" then [] else [ ("lines", JsonText.text (if isCut then all.Substring(0, linesLength) + "…" else all)) ])
                @ (if isLast && not hasCut then [ ("hasToldAll", "true") ] else [])
            )
        let words = inPlace ()
        untold.Clear()
        lines.Clear()
        text <- text + words.Length + displayCost
        json <- json + form.Length
        show [ "text/plain", Text words; kind, Json form ]
        shownAt <- watch.Elapsed

    /// A test has ended.
    member _.Tell(ran: Ran) =
        untold.Add ran
        match ran.Outcome with
        | Passed -> passed <- passed + 1
        | Failed _ -> failures <- failures + 1
        | TimedOut _ -> timedOut <- timedOut + 1
        | Skipped _ -> skipped <- skipped + 1
        let isPassed = ran.Outcome = Passed
        let line = TestsWords.line ran
        if not isPassed || passed <= shownPassed then lines.Add line
        if not isPassed then
            let first = (line.Split '\n').[0]
            failed.Enqueue(if first.Length <= failedLength then first else first.Substring(0, failedLength) + "…")
            if failed.Count > lastFailed then failed.Dequeue() |> ignore

    /// Shows what has waited for long enough; says how long until something else will have.
    member _.Look() : TimeSpan =
        if untold.Count = 0 || isFull () then Limited.forever
        else
            let left = shownAt + wait () - watch.Elapsed
            if left > TimeSpan.Zero then left
            else
                display false
                Limited.forever

    /// Whether anything was shown.
    member _.IsShown = displays > 0

    /// Shows what was not shown yet, and this after it, where anything was shown: whoever reads one display after the other has read all then.
    member live.End(summary: string) =
        if live.IsShown then
            lines.Add summary
            display true
