/// Whose code runs. The job of an eval follows its code into the threads, tasks and timers it starts, so that when one of them ends
/// the process, or prints something, maybe long after the eval has ended, the job can be named.
module Mainstay.Worker.Blame

open System
open System.Collections.Concurrent
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

let mutable private running: string = null
let private withheld = ConcurrentDictionary<string, unit>()

/// The job whose code calls this, where it is not the one that runs now: what the code of another one left running. What is told of code that
/// is withheld names no job.
let strayJob () : string option =
    match current.Value with
    | null -> None
    | job when job = Volatile.Read &running || withheld.ContainsKey job -> None
    | job -> Some job

/// Whether the code of a job is stored nowhere.
let isWithheld (job: string) : bool = withheld.ContainsKey job

/// Runs the eval of a job, which is the one that runs until then.
let during (job: string) (isWithheld: bool) (work: unit -> 'T) : 'T =
    if isWithheld then withheld.TryAdd(job, ()) |> ignore
    Volatile.Write(&running, job)
    try
        work ()
    finally
        Volatile.Write(&running, null)

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
