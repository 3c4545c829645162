/// Words an exception that escaped from client code: its kind, its message, and the part of its stack that is the client's.
module Mainstay.Worker.Faults

open System
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Protocol

/// Whether the exception only says that the compiler gave up; its messages say why.
let isCompilerStop (e: exn) =
    match e.GetType().Name with
    | "FsiCompilationException"
    | "StopProcessingExn" -> true
    | _ -> isNull e.StackTrace && e.Message.StartsWith("Operation could not be completed due to earlier error", StringComparison.Ordinal)

/// Whose frames are not the client's: the compiler's, the worker's, the runtime's and F#'s own library's.
let private foreign = [ "FSharp.Compiler."; "Mainstay.Worker."; "MainstayDisplay."; "Microsoft.FSharp."; "System."; "InvokeStub_" ]

let private framePattern = Regex(@"^\s*at (.+?)(?: in (.+):line (\d+))?$", RegexOptions.CultureInvariant)

/// A frame of client code as people read it: without the module that a submission is, and with the file only where there is one. Code
/// that stands at the top of a submission is named by its line alone. None for frames of others.
let private frameOf (line: string) : string option =
    let found = framePattern.Match(line.TrimEnd())
    let group (index: int) = found.Groups.[index].Value
    let isTopLevel = (group 1).StartsWith("<StartupCode$FSI_", StringComparison.Ordinal)
    let owner = Regex.Replace(group 1, @"^FSI_\d+[.+]", "")
    if not found.Success || foreign |> List.exists (fun name -> owner.StartsWith(name, StringComparison.Ordinal)) then None
    else
        let hasPlace = found.Groups.[3].Success
        match isTopLevel, hasPlace && File.Exists(group 2) with
        | true, true -> Some(sprintf "   at %s:line %s" (group 2) (group 3))
        | true, false -> if hasPlace then Some("   at line " + group 3) else None
        | false, true -> Some(sprintf "   at %s in %s:line %s" owner (group 2) (group 3))
        | false, false -> Some(if hasPlace then sprintf "   at %s, line %s" owner (group 3) else "   at " + owner)

/// The frames of client code, those of inner exceptions below them.
let rec private stackOf (e: exn) : string =
    let frames = if isNull e.StackTrace then [||] else e.StackTrace.Split '\n' |> Array.choose frameOf
    match e.InnerException with
    | null -> String.concat "\n" frames
    | inner -> String.concat "\n" frames + "\n ---> " + inner.GetType().FullName + ": " + inner.Message + "\n" + stackOf inner

/// The exception as the daemon is told of it.
let rec faultOf (e: exn) : Fault =
    match e with
    | :? Reflection.TargetInvocationException when not (isNull e.InnerException) -> faultOf e.InnerException
    | :? TypeInitializationException when not (isNull e.InnerException) && e.Message.Contains "<StartupCode$FSI" -> faultOf e.InnerException
    | _ ->
        let stack = stackOf e
        { Kind = e.GetType().FullName
          Message = e.Message
          Stack = (if stack = "" then None else Some stack) }
