/// Makes whole assemblies as the compiler's own program does, in a process that has done so before and is the faster for it.
module Mainstay.Worker.Compiling

open System
open System.IO
open System.Threading
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol

/// How long nothing may have been compiled before memory is given back.
let private rest = TimeSpan.FromSeconds 10.

let private givingBack = new Timer((fun _ -> giveBackMemory ()), null, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan)

/// What the compiler says of its own options stands in no file.
let private fileOf (folder: string) (message: CompilerMessage) : string option =
    if message.StartLine > 0 && Path.HasExtension message.File then Some(Path.Combine(folder, message.File)) else None

let private placed (folder: string) (message: CompilerMessage) : string option * Diagnostic =
    let place line column = { Line = max 1 line; Column = column + 1 }
    fileOf folder message,
    { Severity = message.Severity
      Code = message.Code
      Message = message.Text.Replace('\u001d', '\n') // The compiler parts its suggestions by this.
      Start = place message.StartLine message.StartColumn
      End = place message.EndLine message.EndColumn }

let private isTold (message: CompilerMessage) = message.Severity = "error" || message.Severity = "warning"

/// Makes an assembly in a folder. Relative paths among the arguments count from there. Gives whether it was made, and what was said of it.
let run (folder: string) (arguments: string list) : bool * (string option * Diagnostic) list =
    givingBack.Change(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan) |> ignore
    Environment.CurrentDirectory <- folder
    try
        let messages, isMade = compile (Array.ofList ("fsc" :: arguments))
        isMade, (messages |> List.ofArray |> List.filter isTold |> List.map (placed folder) |> List.distinct)
    finally
        givingBack.Change(rest, Timeout.InfiniteTimeSpan) |> ignore
