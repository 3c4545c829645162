/// Whose code runs. The job of an eval follows its code into the threads, tasks and timers it starts, so that when one of them ends
/// the process, maybe long after the eval has ended, the job can be named.
module Mainstay.Worker.Blame

open System
open System.Runtime.CompilerServices
open System.Threading

let private current = AsyncLocal<string>()

/// Whose code threw an exception last: when nobody catches it, the thread has lost its context already.
let private thrown = ConditionalWeakTable<exn, string>()

let private note (e: exn) =
    match current.Value with
    | null -> ()
    | job -> thrown.AddOrUpdate(e, job)

/// The job whose code calls this, if any does.
let job () : string option =
    match current.Value with
    | null -> None
    | job -> Some job

/// Runs code of a job, or of none.
let under (job: string option) (work: unit -> 'T) : 'T =
    current.Value <- Option.toObj job
    try
        work ()
    finally
        current.Value <- null

/// From now on `tell` is called with the job and the reason when an exception of a job's code is about to end the process.
let install (tell: string -> string -> unit) =
    let unhandled (e: obj) =
        match e with
        | :? exn as e ->
            match thrown.TryGetValue e with
            | true, job -> tell job (e.GetType().FullName + ": " + e.Message)
            | false, _ -> ()
        | _ -> ()
    AppDomain.CurrentDomain.FirstChanceException.Add(fun args -> note args.Exception)
    AppDomain.CurrentDomain.UnhandledException.Add(fun args -> unhandled args.ExceptionObject)
