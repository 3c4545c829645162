/// Stops the code of one eval. Code that waits is woken; code that does not is aborted, where the runtime can do that. An abort that
/// comes while a thread handles another exception can take the process along (.NET keeps no promise there), so it comes only while
/// the client's own code runs, and late where the code was woken already.
module Mainstay.Worker.Interruption

open System
open System.Threading

/// How long code that was woken may take to end by itself before it is aborted.
let private patience = TimeSpan.FromSeconds 1.

/// Does work that no interrupt of its thread may cut short.
let rec private undisturbed (work: unit -> 'T) : 'T =
    try
        work ()
    with :? ThreadInterruptedException -> undisturbed work

/// A submission under way.
type private Run =
    { Thread: Thread
      mutable RunsCode: bool } // rather than compiling it

/// What stops evals; `abort` asks the runtime to abort the submission that runs. `During` and `Run` are called by the threads that
/// evaluate, `Interrupt` by any.
type Interruption(abort: unit -> unit) =
    let gate = obj ()
    let aborting = obj () // held during an abort
    let mutable evaluating: int64 option = None // the id of the eval
    let mutable isRequested = false
    let mutable run: Run option = None

    let isUnderWay (wanted: Run) = lock gate (fun () -> run |> Option.exists (fun run -> obj.ReferenceEquals(run, wanted)))

    let abortAfter (delay: TimeSpan) (wanted: Run) =
        let attempt () =
            Thread.Sleep delay
            lock aborting (fun () -> if isUnderWay wanted then abort ())
        Thread(attempt, IsBackground = true, Name = "abort").Start()

    // A submission begins to run when what it was compiled to is loaded.
    let loaded =
        AssemblyLoadEventHandler(fun _ arguments ->
            if Compat.isInMemory arguments.LoadedAssembly then
                undisturbed (fun () ->
                    lock gate (fun () ->
                        match run with
                        | Some run when run.Thread = Thread.CurrentThread && not run.RunsCode ->
                            run.RunsCode <- true
                            if isRequested then abortAfter patience run
                        | _ -> ())))

    do AppDomain.CurrentDomain.AssemblyLoad.AddHandler loaded

    let begin' () =
        let begun = { Thread = Thread.CurrentThread; RunsCode = false }
        lock gate (fun () ->
            if not isRequested then run <- Some begun
            not isRequested)

    // Neither an interrupt nor an abort that came too late for the client's code may reach whatever this thread does next.
    let finish () =
        undisturbed (fun () -> lock gate (fun () -> run <- None))
        undisturbed (fun () -> lock aborting ignore)
        if isRequested then
            try Thread.Sleep 1 with :? ThreadInterruptedException -> ()

    let stop (run: Run) =
        let waits = run.Thread.ThreadState.HasFlag ThreadState.WaitSleepJoin
        run.Thread.Interrupt()
        if run.RunsCode then abortAfter (if waits then patience else TimeSpan.Zero) run

    /// Whether the eval under way, or the last one, was asked to stop.
    member _.IsRequested = isRequested

    /// Evaluates something that an interrupt with this id reaches. `begins` tells whether it is to begin at all: both are done at one
    /// go, so an interrupt finds the eval either not begun, and keeps it from beginning, or interruptible.
    member _.During(id: int64, begins: unit -> bool, work: unit -> 'T) : 'T =
        lock gate (fun () ->
            isRequested <- not (begins ())
            evaluating <- Some id)
        try
            work ()
        finally
            lock gate (fun () -> evaluating <- None)

    /// Runs a submission on this thread; None where its eval is to stop already.
    member _.Run(work: unit -> 'T) : 'T option =
        try
            if begin' () then Some(work ()) else None
        finally
            finish ()

    /// Asks an eval to stop if it is the one under way.
    member _.Interrupt(eval: int64) =
        lock gate (fun () ->
            if evaluating = Some eval then
                isRequested <- true
                Input.stop ()
                Option.iter stop run)

    /// Nothing is to be stopped any more.
    member _.End() = AppDomain.CurrentDomain.AssemblyLoad.RemoveHandler loaded
