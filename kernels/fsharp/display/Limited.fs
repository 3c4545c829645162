/// Runs something on a thread of its own that has so much time and no more.
module internal MainstayDisplay.Limited

open System
open System.Diagnostics
open System.Threading

/// The stack of a test, in bytes. Only what is used of it takes memory.
let private stackSize = 64 * 1024 * 1024

/// How long what ran out of time has to end.
let grace = TimeSpan.FromMilliseconds 500.

/// The longest that a thread can be waited for.
let forever = TimeSpan.FromMilliseconds(float Int32.MaxValue)

type Ending<'T> =
    | Ended of Result<'T, exn>
    | OutOfTime of goesOn: bool

/// A thread for tests, not begun.
let thread (work: unit -> unit) = Thread(work, stackSize, IsBackground = true, Name = "test")

/// Runs something for so long at most. What does not end then is left to itself. `meanwhile` is called while it runs, and says how long
/// until it is to be called again.
let runBeside (meanwhile: unit -> TimeSpan) (limit: TimeSpan) (work: CancellationToken -> 'T) : Ending<'T> =
    let cancel = new CancellationTokenSource()
    let ended: Result<'T, exn> option ref = ref None
    let thread = thread (fun () -> ended.Value <- Some(try Ok(work cancel.Token) with e -> Error e))
    // What is called by a cancellation is the test's code, and may do anything.
    let stop () =
        cancel.CancelAfter 0
        thread.Interrupt()
    let watch = Stopwatch()
    let rec hasEnded () =
        let wait = min (limit - watch.Elapsed) (meanwhile ())
        thread.Join(max TimeSpan.Zero wait) || (watch.Elapsed < limit && hasEnded ())
    thread.Start()
    watch.Start()
    try
        if hasEnded () then Ended(Option.get ended.Value)
        else
            stop ()
            OutOfTime(not (thread.Join grace))
    with _ ->
        // The run is cancelled. It ends when the test does: who cancels it kills what does not.
        stop ()
        thread.Join()
        reraise ()

/// Runs something for so long at most, and does nothing beside it.
let run (limit: TimeSpan) (work: CancellationToken -> 'T) : Ending<'T> = runBeside (fun () -> forever) limit work
