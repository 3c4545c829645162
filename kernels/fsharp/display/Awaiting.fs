/// What `let!`, `use!` and `do!` outside of any computation become: the worker puts this in their place.
module MainstayDisplay.Awaiting

open System.Threading
open System.Threading.Tasks

/// Waits for asynchronous work of F# and for tasks. The compiler calls its members where a computation begins with it.
[<Sealed>]
type Waiter internal () =

    /// An interrupt of the eval cancels the work.
    member _.Source(work: Async<'T>) : unit -> 'T =
        fun () ->
            use cancellation = new CancellationTokenSource()
            let task = Async.StartAsTask(work, cancellationToken = cancellation.Token)
            try
                task.GetAwaiter().GetResult()
            with :? ThreadInterruptedException ->
                cancellation.Cancel()
                reraise ()

    member _.Source(work: Task<'T>) : unit -> 'T = fun () -> work.GetAwaiter().GetResult()

    member _.Source(work: Task) : unit -> unit = fun () -> work.GetAwaiter().GetResult()

    member _.Source(work: ValueTask<'T>) : unit -> 'T = fun () -> work.AsTask().GetAwaiter().GetResult()

    member _.Source(work: ValueTask) : unit -> unit = fun () -> work.AsTask().GetAwaiter().GetResult()

    member _.ReturnFrom(wait: unit -> 'T) : unit -> 'T = wait

    member _.Delay(computation: unit -> unit -> 'T) : unit -> 'T = computation ()

    member _.Run(computation: unit -> 'T) : 'T = computation ()

let result = Waiter()

/// The work that a function begins.
let work (begins: unit -> 'T) : 'T = begins ()
