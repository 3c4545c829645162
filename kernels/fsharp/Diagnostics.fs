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
        if line = submission.Line then { Line = line; Column = column + 1 + submission.Column } else { Line = line; Column = column + 1 }
    if isOwn then
        { Severity = message.Severity
          Code = message.Code
          Message = message.Text
          Start = place message.StartLine message.StartColumn
          End = place message.EndLine message.EndColumn }
    else
        let start = { Line = submission.Line; Column = submission.Column + 1 }
        let where = if message.StartLine > 0 then sprintf "%s(%d,%d): " message.File message.StartLine (message.StartColumn + 1) else ""
        { Severity = message.Severity
          Code = message.Code
          Message = where + message.Text
          Start = start
          End = start }

/// The compiler's messages about code that was checked as a whole.
let diagnosticsOf (file: string option) (messages: CompilerMessage[]) : Diagnostic list =
    let whole = { Text = ""; Line = 1; Column = 0; Stop = 0 }
    messages |> Seq.map (diagnosticOf file whole) |> List.ofSeq

/// A rejection for which the compiler gave no message of its own.
let unexplained (submission: Submission) (complaint: string) : Diagnostic =
    let start = { Line = submission.Line; Column = submission.Column + 1 }
    { Severity = "error"
      Code = "FS0193"
      Message = (if complaint = "" then "The compiler gave up without a message." else complaint)
      Start = start
      End = start }
