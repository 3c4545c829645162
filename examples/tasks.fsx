// Asynchronous workflows and .NET tasks side by side: fan-out, retries, timeouts, cancellation
// and throttling. Uses `async` with StartAsTask/AwaitTask only, so that it runs on every F#.
//
// Nothing here prints from two threads at once: work runs concurrently, and results are printed
// in a fixed order once they are in.

open System
open System.Collections.Generic
open System.Threading
open System.Threading.Tasks

exception Unavailable of service: string * attempt: int

type Quote = { Supplier: string; Item: string; Cents: int }

/// A stand-in for a remote service: slower for later suppliers, so that completion order differs
/// from the order of asking.
let askSupplier (supplier: string) (delay: int) (item: string) =
    async {
        do! Async.Sleep delay
        let cents = 100 * supplier.Length + 7 * item.Length
        return { Supplier = supplier; Item = item; Cents = cents }
    }

let show quote = sprintf "%-9s %-5s %6.2f" quote.Supplier quote.Item (float quote.Cents / 100.0)

// ---- Fan out, gather in order ----------------------------------------------------------------

let quotes =
    [ for supplier, delay in [ "Northwind", 40; "Acme", 20; "Initech", 5 ] -> askSupplier supplier delay "bolts" ]
    |> Async.Parallel
    |> Async.RunSynchronously

printfn "fan-out"
quotes |> Array.iter (show >> printfn "  %s")
printfn "  best: %s" (quotes |> Array.minBy (fun quote -> quote.Cents) |> show)

// ---- Tasks to async and back -----------------------------------------------------------------

let sumOfSquares (n: int) : Task<int64> =
    Task.Run(fun () ->
        let mutable total = 0L
        for i in 1..n do
            total <- total + int64 i * int64 i
        total)

let combined: Task<string> =
    async {
        let! small = sumOfSquares 10 |> Async.AwaitTask
        let! large = [| 100; 1000; 10000 |] |> Array.map sumOfSquares |> Task.WhenAll |> Async.AwaitTask
        return sprintf "%d, then %s" small (large |> Array.map string |> String.concat " ")
    }
    |> Async.StartAsTask

printfn "tasks"
printfn "  sums: %s" combined.Result
printfn "  status: %O" combined.Status

// ---- Starting children early -----------------------------------------------------------------

let overlapped =
    async {
        // Both children run while this workflow goes on; the second `let!` waits for each.
        let! slow = Async.StartChild(askSupplier "Tortoise" 30 "nuts")
        let! fast = Async.StartChild(askSupplier "Hare" 1 "nuts")
        let! first = fast
        let! second = slow
        return [ first; second ]
    }

printfn "children"
overlapped |> Async.RunSynchronously |> List.iter (show >> printfn "  %s")

// ---- Retrying --------------------------------------------------------------------------------

/// Runs `work` until it succeeds, at most `attempts` times; the last failure is the caller's.
let rec retry attempts (work: int -> Async<'T>) =
    let rec go attempt =
        async {
            let! outcome = work attempt |> Async.Catch
            match outcome with
            | Choice1Of2 value -> return value, attempt
            | Choice2Of2 _ when attempt < attempts ->
                do! Async.Sleep(1 <<< attempt)
                return! go (attempt + 1)
            | Choice2Of2 problem -> return raise problem
        }
    go 1

let flaky failures attempt =
    async {
        if attempt <= failures then raise (Unavailable("warehouse", attempt))
        return "in stock"
    }

printfn "retry"
for failures in [ 0; 2; 5 ] do
    let report =
        async {
            try
                let! answer, attempts = retry 4 (flaky failures)
                return sprintf "%s after %d attempt(s)" answer attempts
            with Unavailable(service, attempt) ->
                return sprintf "%s still unavailable at attempt %d" service attempt
        }
    printfn "  %d failure(s): %s" failures (Async.RunSynchronously report)

// ---- Timeouts and cancellation ---------------------------------------------------------------

let withTimeout (milliseconds: int) work =
    async {
        try
            let! child = Async.StartChild(work, milliseconds)
            let! value = child
            return Ok value
        with :? TimeoutException ->
            return Error "timed out"
    }

let patience =
    [ askSupplier "Prompt" 1 "gears" |> withTimeout 20000
      askSupplier "Never" Timeout.Infinite "gears" |> withTimeout 50 ]

printfn "timeouts"
for outcome in patience |> Async.Parallel |> Async.RunSynchronously do
    match outcome with
    | Ok quote -> printfn "  %s" (show quote)
    | Error problem -> printfn "  %s" problem

let cancelled =
    use source = new CancellationTokenSource()
    use started = new ManualResetEventSlim(false)
    let trail = List<string>()
    let work =
        async {
            try
                trail.Add "started"
                started.Set()
                do! Async.Sleep Timeout.Infinite
                trail.Add "never reached"
            finally
                trail.Add "cleaned up"
        }
    let task = Async.StartAsTask(work, cancellationToken = source.Token)
    started.Wait()
    source.Cancel()
    let ending =
        try
            task.Wait()
            "completed"
        with :? AggregateException as failure ->
            match failure.InnerException with
            | :? TaskCanceledException -> "task was cancelled"
            | other -> other.GetType().Name
    List.ofSeq trail @ [ ending ]

printfn "cancellation"
cancelled |> List.iter (printfn "  %s")

// ---- Throttling ------------------------------------------------------------------------------

/// Runs the jobs with at most `width` of them under way; also says how many were at most.
let throttled width (jobs: Async<'T> list) =
    async {
        use gate = new SemaphoreSlim(width, width)
        let mutex = obj ()
        let running = ref 0
        let peak = ref 0
        let enter () = lock mutex (fun () ->
            running.Value <- running.Value + 1
            peak.Value <- max peak.Value running.Value)
        let leave () = lock mutex (fun () -> running.Value <- running.Value - 1)
        let guarded job =
            async {
                do! gate.WaitAsync() |> Async.AwaitTask
                enter ()
                try
                    return! job
                finally
                    leave ()
                    gate.Release() |> ignore
            }
        let! results = jobs |> List.map guarded |> Async.Parallel
        return results, peak.Value
    }

let results, peak =
    [ for n in 1..12 -> async {
        do! Async.Sleep(13 - n)
        return n * n } ]
    |> throttled 3
    |> Async.RunSynchronously

printfn "throttling"
printfn "  results: %s" (results |> Array.map string |> String.concat " ")
printfn "  never more than three at once: %b" (peak <= 3)
