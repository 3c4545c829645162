/// Places the compiler's messages in the client's code.
module Mainstay.Worker.Diagnostics

open System
open System.IO
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol
open Mainstay.Worker.Splitter

/// Whether two texts name the same file.
let private isSameFile (one: string) (other: string) =
    one = other || (try Path.GetFullPath one = Path.GetFullPath other with _ -> false)

let private startOf (submission: Submission) = { Line = submission.Line; Column = submission.Column + 1 }

/// The compiler's message at its place in the client's code. One about another file (a loaded script) is placed at the submission's
/// start and says where it belongs.
let diagnosticOf (file: string option) (submission: Submission) (message: CompilerMessage) : Diagnostic =
    let isOwn =
        message.StartLine > 0
        && (message.File = anonymousFile
            || message.File = "stdin.fsx"
            || message.File.EndsWith("/stdin.fsx", StringComparison.Ordinal)
            || message.File.EndsWith("\\stdin.fsx", StringComparison.Ordinal)
            || (match file with Some path -> isSameFile path message.File | None -> false))
    let place line column =
        let line = Awaits.originOf submission.Split line
        if line = submission.Line then { Line = line; Column = column + 1 + submission.Column } else { Line = line; Column = column + 1 }
    if isOwn then
        { Severity = message.Severity
          Code = message.Code
          Message = message.Text
          Start = place message.StartLine message.StartColumn
          End = place message.EndLine message.EndColumn }
    else
        let start = startOf submission
        let where = if message.StartLine > 0 then sprintf "%s(%d,%d): " message.File message.StartLine (message.StartColumn + 1) else ""
        { Severity = message.Severity
          Code = message.Code
          Message = where + message.Text
          Start = start
          End = start }

/// All that the compiler says of a wait for nothing, as one message about the word.
let private withWaitsExplained (messages: CompilerMessage list) : CompilerMessage list =
    match messages |> List.partition (fun message -> Awaits.isOfWait message.Text) with
    | [], _ -> messages
    | ofWaits, others ->
        let explained = ofWaits |> List.map (fun message -> message.Text) |> String.concat "\n" |> Awaits.explained
        match explained, ofWaits |> List.tryFind (fun message -> message.StartLine > 0) with
        | Some text, Some placed -> { placed with Text = text; StartColumn = 0; EndLine = placed.StartLine; EndColumn = 4 } :: others
        | _ when List.isEmpty others -> messages
        | _ -> others

/// How the compiler numbers an exception of its own code.
let private failure = "FS0192"

/// That the compiler stumbled over an error tells nothing where it says the error too.
let private withoutFailures (diagnostics: Diagnostic list) : Diagnostic list =
    let isError (diagnostic: Diagnostic) = diagnostic.Severity = "error" && diagnostic.Code <> failure
    if List.exists isError diagnostics then diagnostics |> List.filter (fun diagnostic -> diagnostic.Code <> failure) else diagnostics

/// The compiler's messages about a submission, each once.
let diagnosticsIn (file: string option) (submission: Submission) (messages: CompilerMessage[]) : Diagnostic list =
    messages |> List.ofArray |> withWaitsExplained |> List.map (diagnosticOf file submission) |> List.distinct |> withoutFailures

/// The compiler's messages about code that was checked as a whole; each of the lines in `split` was checked as two.
let diagnosticsOf (file: string option) (split: int list) (messages: CompilerMessage[]) : Diagnostic list =
    diagnosticsIn file { Text = ""; Line = 1; Column = 0; Stop = 0; Split = split } messages

/// What a restore of packages said, at the first line of the submission that wants one.
let restored (submission: Submission) (said: Restores.Said) : Diagnostic =
    let lines = submission.Text.Split '\n'
    let start, stop =
        match lines |> Array.tryFindIndex Restores.mayRestore with
        | Some 0 | None -> startOf submission, { startOf submission with Column = submission.Column + 1 + lines.[0].TrimEnd().Length }
        | Some index ->
            let line = lines.[index].TrimEnd()
            let place column = { Line = submission.Line + index; Column = column + 1 }
            place (line.Length - line.TrimStart().Length), place line.Length
    { Severity = said.Severity; Code = said.Code; Message = said.Text; Start = start; End = stop }

/// A task that code bound, or gave, had failed when the code had run: nothing else tells of it.
let failedTask (submission: Submission) (name: string) (line: int, column: int) (failure: string) : Diagnostic =
    let isNamed = name <> "it" && line >= submission.Line
    let start = if isNamed then { Line = line; Column = column + 1 } else startOf submission
    let what = if isNamed then "`" + name + "`" else "The task that this gave"
    { Severity = "warning"
      Code = "task_failed"
      Message = what + " has failed: " + failure
      Start = start
      End = (if isNamed then { start with Column = start.Column + name.Length } else start) }

/// A rejection for which the compiler gave no message of its own.
let unexplained (submission: Submission) (complaint: string) : Diagnostic =
    let start = startOf submission
    { Severity = "error"
      Code = "FS0193"
      Message = (if complaint = "" then "The compiler gave up without a message." else complaint)
      Start = start
      End = start }
