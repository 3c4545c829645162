/// Keeps type checks off the compiler while a submission is being compiled: the service shares its tables between the two and was not
/// made for both at once. The service does not tell when compiling ends and the client's code begins to run, so a check waits until the
/// evaluation has ended or has lasted long enough to be past its compilation.
module Mainstay.Worker.Turns

open System
open System.Diagnostics
open System.Threading

/// How long after its start an evaluation is taken to be still compiling.
let private compilation = TimeSpan.FromMilliseconds 400.

/// Whose turn it is; one per session.
type Turns() =
    let gate = obj ()
    let mutable evaluation: Stopwatch option = None
    let mutable checking = false

    let waitForCompilation () =
        let left () =
            match evaluation with
            | Some watch -> compilation - watch.Elapsed
            | None -> TimeSpan.Zero
        while left () > TimeSpan.Zero do
            Monitor.Wait(gate, left () + TimeSpan.FromMilliseconds 1.) |> ignore

    /// Runs an evaluation, once no check is under way.
    member _.Evaluate(work: unit -> 'T) : 'T =
        lock gate (fun () ->
            while checking do
                Monitor.Wait gate |> ignore
            evaluation <- Some(Stopwatch.StartNew()))
        try
            work ()
        finally
            lock gate (fun () ->
                evaluation <- None
                Monitor.PulseAll gate)

    /// Runs a check, once no evaluation is compiling, and tells it whether one is under way; if not, none begins before the check has
    /// ended. Only one thread may call this.
    member _.Check(work: bool -> 'T) : 'T =
        let isEvaluating =
            lock gate (fun () ->
                waitForCompilation ()
                checking <- true
                evaluation.IsSome)
        try
            work isEvaluating
        finally
            lock gate (fun () ->
                checking <- false
                Monitor.PulseAll gate)
