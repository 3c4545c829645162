/// The thread that runs the session's submissions. It is the same from one submission to the next, so that what code keeps by thread
/// stays. A thread that was interrupted is replaced: .NET aborts a thread out of a tight loop only once.
module Mainstay.Worker.SubmissionThread

open System
open System.Collections.Concurrent
open System.Globalization
open System.Threading

/// Runs work on one thread at a time, whose stack has this many bytes. Its members are called by one thread.
type SubmissionThread(stackSize: int) =
    let mutable inbox: BlockingCollection<unit -> unit> option = None
    let mutable cultures: (CultureInfo * CultureInfo) option = None // as the last work left them

    let start () =
        let work = new BlockingCollection<unit -> unit>()
        let inherited = cultures
        let serve () =
            inherited |> Option.iter (fun (culture, uiCulture) ->
                CultureInfo.CurrentCulture <- culture
                CultureInfo.CurrentUICulture <- uiCulture)
            try
                for item in work.GetConsumingEnumerable() do
                    item ()
            with :? ThreadInterruptedException -> () // An interrupt that came too late for the client's code.
        Thread(serve, stackSize, IsBackground = true, Name = "submissions").Start()
        inbox <- Some work
        work

    /// Runs the work on the thread, and waits for its end.
    member _.Run(work: unit -> 'T) : 'T =
        use ended = new ManualResetEventSlim(false)
        let mutable outcome = Unchecked.defaultof<Result<'T, exn>>
        let item () =
            outcome <- (try Ok(work ()) with e -> Error e)
            cultures <- Some(CultureInfo.CurrentCulture, CultureInfo.CurrentUICulture)
            ended.Set()
        (inbox |> Option.defaultWith start).Add item
        ended.Wait()
        match outcome with
        | Ok value -> value
        | Error e -> raise (AggregateException(e.Message, e))

    /// The next work runs on another thread.
    member _.Replace() =
        inbox |> Option.iter (fun work -> work.CompleteAdding())
        inbox <- None
