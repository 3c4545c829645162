/// Words an exception that escaped from client code: its kind, its message, and the part of its stack that is the client's.
module Mainstay.Worker.Faults

open System
open Mainstay.Worker.Protocol

/// Whether the exception only says that the compiler gave up; its messages say why.
let isCompilerStop (e: exn) =
    match e.GetType().Name with
    | "FsiCompilationException"
    | "StopProcessingExn" -> true
    | _ -> isNull e.StackTrace && e.Message.StartsWith("Operation could not be completed due to earlier error", StringComparison.Ordinal)

let private isForeignFrame (line: string) =
    let frame = line.TrimStart()
    let owners =
        [ "FSharp.Compiler."; "Mainstay.Worker."; "System.RuntimeMethodHandle."; "System.Reflection."; "InvokeStub_"; "System.Runtime.ControlledExecution" ]
    owners
    |> List.exists (fun owner -> frame.StartsWith("at " + owner, StringComparison.Ordinal))

/// The frames of client code, those of inner exceptions below them.
let rec private stackOf (e: exn) : string =
    let frames =
        if isNull e.StackTrace then [||]
        else e.StackTrace.Split '\n' |> Array.map (fun line -> line.TrimEnd()) |> Array.filter (fun line -> not (isForeignFrame line))
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
