/// The worker's entry: connects to the daemon, reads requests on the main thread and hands each to the thread that serves it. Evaluations
/// and resets run on one thread in the order they came; checks, completions and explorations on another, beside them; an interrupt is
/// served at once.
module Mainstay.Worker.Program

open System
open System.Collections.Generic
open System.Diagnostics
open System.IO
open System.Threading
open Mainstay.Worker.Channel
open Mainstay.Worker.Evaluator
open Mainstay.Worker.Protocol

/// How long the runtime may take to end in an orderly way before the process is killed.
let private exitGrace = TimeSpan.FromMilliseconds 500.

/// Whether a worker uses its first silence to run what later requests would wait for. Most workers of tests are asked too little to gain by it.
let private warmsUp = Environment.GetEnvironmentVariable "MAINSTAY_TEST_WARM_UP" <> "0"

/// How long the daemon must be silent before the silence is used.
let private idleTime = TimeSpan.FromMilliseconds 50.

/// A queue between threads.
type private Mailbox<'T>() =
    let items = Queue<'T>()

    member _.Post item =
        lock items (fun () ->
            items.Enqueue item
            Monitor.Pulse items)

    /// The next item, or None if none comes in time. Interrupts meant for client code are ignored.
    member this.Take(timeout: TimeSpan) : 'T option =
        try
            lock items (fun () ->
                if items.Count = 0 then Monitor.Wait(items, timeout) |> ignore
                if items.Count = 0 then None else Some(items.Dequeue()))
        with :? ThreadInterruptedException -> this.Take timeout

/// The evals that were accepted and have not begun. Whoever takes one out decides what comes of it: the thread that evaluates begins it,
/// an interrupt keeps it from beginning.
type private Pending() =
    let evals = HashSet<int64>()

    member _.Add(id: int64) = lock evals (fun () -> evals.Add id |> ignore)

    /// Whether the eval was still there to be taken.
    member _.Take(id: int64) : bool = lock evals (fun () -> evals.Remove id)

/// Ends the process even while client code spins or hangs at exit.
let private leave (code: int) =
    let kill () =
        Thread.Sleep exitGrace
        Process.GetCurrentProcess().Kill()
    Thread(kill, IsBackground = true).Start()
    exit code

let private startThread (name: string) (work: unit -> unit) =
    Thread(work, stackSize, IsBackground = true, Name = name).Start()

/// What the threads share.
type private Worker(channel: Channel) =
    let evaluations = Mailbox<unit -> unit>()
    let checks = Mailbox<unit -> unit>()
    let pending = Pending()
    let mutable hello: Hello option = None
    let mutable evaluator: Evaluator option = None
    let mutable standby: Standby.Standby option = None
    let mutable isWarm = false
    let mutable hasStoodBy = false // so that nothing is left to be compiled for the first requests
    let mutable hasEnded = false // a session, whose memory is still taken

    let fail id code message = channel.Send(encodeFailed { Id = Some id; Code = code; Message = message })

    /// Sends an answer whose size the session's contents decide.
    let answer (id: int64) (body: byte[]) =
        if body.Length <= frameLimit then channel.Send body
        else fail id Internal ("the answer has " + string body.Length + " bytes, and a frame holds " + string frameLimit)

    let noSession id = fail id BadRequest "there is no session yet: `hello` comes first"

    let explained (complaints: StringWriter) (message: string) =
        match complaints.ToString().Trim() with
        | "" -> message
        | complaint -> complaint

    /// The compiler may end the process over an argument or a reference it does not like; this says why.
    let reportingExit (id: int64) (complaints: StringWriter) (work: unit -> 'T) : 'T =
        let report = EventHandler(fun _ _ -> fail id Internal ("F# interactive did not start: " + explained complaints "it ended the process"))
        AppDomain.CurrentDomain.ProcessExit.AddHandler report
        try
            work ()
        finally
            AppDomain.CurrentDomain.ProcessExit.RemoveHandler report

    /// The session that was made ahead, once, where it is as this one is to be.
    let takeStandby (wanted: Hello) : Evaluator option =
        let ahead = standby
        standby <- None
        let taken = ahead |> Option.bind (Standby.takenBy wanted)
        match ahead with
        // Its memory is left to the collector: whoever takes the process is about to use it.
        | Some unfit when taken.IsNone -> unfit.Session.End()
        | _ -> ()
        taken

    let openSession (id: int64) (wanted: Hello) (listens: string list) =
        match wanted.References |> List.tryFind (fun path -> not (File.Exists path)) with
        | Some missing -> failwith ("the referenced assembly does not exist: " + missing)
        | None -> ()
        Environment.CurrentDirectory <- wanted.WorkingDirectory
        // The system may know the folder by another path.
        [ wanted.WorkingDirectory; Environment.CurrentDirectory ] |> List.distinct |> List.iter Compat.tellSdk
        UserOutput.install (fun job isError text -> channel.Send(encodeOutput job isError text))
        Input.install channel.Send
        Applications.install channel.Send wanted.Project
        let complaints = new StringWriter()
        let opened =
            try
                reportingExit id complaints (fun () -> takeStandby wanted |> Option.defaultWith (fun () -> Evaluator(wanted, complaints)))
            with e -> raise (Exception(explained complaints e.Message, e))
        let begun = { Startup.run opened wanted (fun phase done' total -> channel.Send(encodeProgress id phase done' total)) with Listens = listens }
        Displays.install channel.Send (fun value kind -> opened.Session.FormatValue(value, kind).Trim('\n'))
        hello <- Some wanted
        evaluator <- Some opened
        isWarm <- false
        channel.Send(encodeReady id Compat.languageVersion begun)

    let start (id: int64) (wanted: Hello) =
        try
            openSession id wanted []
        with e ->
            fail id Internal ("F# interactive did not start: " + e.Message)
            leave 1

    let reset (id: int64) =
        match hello, evaluator with
        | Some _, Some _ when Baselines.isChanged () ->
            fail id Internal "code of its project was exchanged, which a new process has as it is saved"
        | Some wanted, Some ended ->
            ended.End()
            hasEnded <- true
            openSession id wanted (Listening.endPoints ())
        | _ -> noSession id

    let openFirst (id: int64) (wanted: Hello) =
        if hello.IsSome then fail id BadRequest "the session was opened already: use `reset`"
        else
            Standby.give wanted.Variables
            start id wanted

    let standBy (id: int64) (arguments: string list) =
        if hello.IsSome || standby.IsSome then fail id BadRequest "it stands by, or has a session already"
        else
            let complaints = new StringWriter()
            standby <- Some(reportingExit id complaints (fun () -> Standby.prepare arguments))
            hasStoodBy <- true
            channel.Send(encodeStandsBy id)

    let compile (id: int64) (folder: string) (arguments: string list) =
        if hello.IsSome || standby.IsSome then fail id BadRequest "it has a session, or stands by for one"
        else
            let isMade, said = Compiling.run folder arguments
            answer id (encodeCompiled id isMade said)

    let check (id: int64) (code: string) (file: string option) (session: Evaluator) =
        answer id (encodeDiagnostics id (Intellisense.check session code file))

    let complete (id: int64) (code: string) (cursor: Position) (session: Evaluator) =
        let items, start = Intellisense.complete session code cursor
        answer id (encodeCompletions id items start)

    let explore (id: int64) (name: string) (session: Evaluator) =
        match Explorer.explore session name with
        | Some explored -> answer id (encodeMembers id name explored)
        | None -> fail id NotFound ("nothing is named `" + name + "`; a search finds names by a part of them")

    let search (id: int64) (text: string) (limit: int) (session: Evaluator) =
        let items, found = Search.search session text limit
        answer id (encodeSymbols id items found)

    let tests (id: int64) (pattern: string option) (category: string option) (session: Evaluator) =
        let items, found, notes = TestDiscovery.discover session pattern category
        answer id (encodeTests id items found notes)

    let coverage (id: int64) (question: CoverageQuestion) (session: Evaluator) =
        match session.Coverage question with
        | Ok read -> answer id (encodeCoverage id read)
        | Error reason -> fail id NotFound reason

    let measure (id: int64) (policies: string, limit: int, timeout: int) (session: Evaluator) =
        match session.Measure(policies, TimeSpan.FromMilliseconds(float limit), TimeSpan.FromMilliseconds(float timeout)) with
        | Ok measurement -> answer id (encodeMeasured id measurement)
        | Error reason -> fail id NotFound reason

    let review (id: int64) (code: string) (session: Evaluator) =
        match session.Check(fun () -> Review.review session.Session code) with
        | Some (remarks, left) -> answer id (encodeReview id true remarks left)
        | None -> answer id (encodeReview id false (Intellisense.check session code None) 0)

    let swap (id: int64) (files: string list, texts: (string * string) list, isAll: bool) (session: Evaluator) =
        let swapped = if isAll then session.SwapAll() else session.Swap(files, texts)
        if List.isEmpty swapped.Obstacles && not (List.isEmpty swapped.Swapped) then MainstayDisplay.AppRunning.codeChanged ()
        answer id (encodeSwapped id swapped)

    let evaluate (id: int64) (job: string) (code: string) (file: string option) commandLine (isWithheld: bool) (session: Evaluator) =
        answer id (encodeResult id (session.Evaluate(id, job, code, file, commandLine, isWithheld, (fun () -> pending.Take id))))

    let inSession (id: int64) (serve: Evaluator -> unit) =
        match evaluator with
        | Some session -> serve session
        | None -> noSession id

    let post (mailbox: Mailbox<unit -> unit>) (id: int64) (serve: unit -> unit) =
        mailbox.Post(fun () -> try serve () with e -> fail id Internal (e.GetType().FullName + ": " + e.Message))

    /// Serves what is posted for ever; `idle` is called after a silence.
    let rec work (mailbox: Mailbox<unit -> unit>) (idle: unit -> unit) (wait: TimeSpan) =
        match mailbox.Take wait with
        | Some serve ->
            serve ()
            work mailbox idle idleTime
        | None ->
            idle ()
            work mailbox idle Timeout.InfiniteTimeSpan

    /// Uses the silence after a session's start to run what its first requests would otherwise wait for.
    let warmUp () =
        match evaluator with
        | Some session when warmsUp && not isWarm ->
            isWarm <- true
            if not hasStoodBy then (try session.WarmUp() with _ -> ())
            checks.Post(fun () -> try Intellisense.warmUp session with _ -> ())
            checks.Post(fun () -> try session.WarmUpSwaps() with _ -> ())
            checks.Post(fun () -> startThread "warm-up" (fun () -> try session.WarmUpChoice() with _ -> ()))
        | _ -> ()
        if hasEnded then
            hasEnded <- false
            Compat.giveBackMemory ()

    let interrupt (id: int64) (eval: int64) =
        match pending.Take eval, evaluator with
        | false, Some session -> session.Interrupt eval
        | true, _
        | false, None -> ()
        channel.Send(encodeInterrupted id)

    let dispatch (id: int64, request: Request) =
        match request with
        | Hello wanted -> post evaluations id (fun () -> openFirst id wanted)
        | StandBy arguments -> post evaluations id (fun () -> standBy id arguments)
        | Compile (folder, arguments) -> post evaluations id (fun () -> compile id folder arguments)
        | Eval (job, code, file, commandLine, isWithheld) ->
            pending.Add id
            post evaluations id (fun () ->
                try
                    inSession id (evaluate id job code file commandLine isWithheld)
                finally
                    pending.Take id |> ignore)
        | Upcoming evals -> post evaluations id (fun () -> inSession id (fun session -> session.Expect evals))
        | Describe codes -> post checks id (fun () -> inSession id (fun session -> answer id (encodeDescriptions id (session.Describe codes))))
        | Swap (files, texts, isAll) -> post checks id (fun () -> inSession id (swap id (files, texts, isAll)))
        | Reset -> post evaluations id (fun () -> reset id)
        | Check (code, file) -> post checks id (fun () -> inSession id (check id code file))
        | Complete (code, cursor) -> post checks id (fun () -> inSession id (complete id code cursor))
        | Explore name -> post checks id (fun () -> inSession id (explore id name))
        | Search (text, limit) -> post checks id (fun () -> inSession id (search id text limit))
        | Values -> post checks id (fun () -> inSession id (fun session -> answer id (encodeValues id (session.Bound.All()))))
        | Tests (pattern, category) -> post checks id (fun () -> inSession id (tests id pattern category))
        | Request.Coverage question -> post checks id (fun () -> inSession id (coverage id question))
        | Measure (policies, limit, timeout) -> post checks id (fun () -> inSession id (measure id (policies, limit, timeout)))
        | TakeMeasured (code, measurement) -> post checks id (fun () -> inSession id (fun session -> answer id (encodeMeasuredTaken id (session.TakeMeasured(code, measurement)))))
        | Review code -> post checks id (fun () -> inSession id (review id code))
        | Interrupt eval -> interrupt id eval
        | Answer (ask, text) -> Input.answer ask text
        | Displayed mark -> Displays.arrived mark

    /// Code that ends the process leaves no result; what is to be told of it is told now.
    let tellLeaving () =
        match evaluator |> Option.bind (fun session -> session.Leaving()), Applications.leaving () with
        | Some (job, diagnostics), _ when not (List.isEmpty diagnostics) -> channel.Send(encodeLeaving job diagnostics)
        | None, Some job -> channel.Send(encodeEnding job "its application ended the process")
        | _ -> ()

    member _.Run() =
        AppDomain.CurrentDomain.ProcessExit.Add(fun _ -> tellLeaving ())
        startThread "evaluations" (fun () -> work evaluations warmUp Timeout.InfiniteTimeSpan)
        startThread "checks" (fun () -> work checks ignore Timeout.InfiniteTimeSpan)
        let rec next () =
            match channel.Receive() with
            | Closed -> leave 0
            | TooLarge length ->
                channel.Send(encodeFailed { Id = None; Code = BadRequest; Message = "a frame of " + string length + " bytes is too large" })
                next ()
            | Frame body ->
                match decode body with
                | Ok request -> dispatch request
                | Error failure -> channel.Send(encodeFailed failure)
                next ()
        next ()

let private takeVariable (name: string) =
    let value = Environment.GetEnvironmentVariable name
    Environment.SetEnvironmentVariable(name, null)
    value

[<EntryPoint>]
let main _ =
    let address = takeVariable "MAINSTAY_WORKER_ADDRESS"
    let token = takeVariable "MAINSTAY_WORKER_TOKEN"
    Applications.configure (takeVariable "MAINSTAY_APPLICATIONS")
    takeVariable "DOTNET_MODIFIABLE_ASSEMBLIES" |> ignore // The runtime has read it; programs that code starts are none of its business.
    if String.IsNullOrEmpty address || String.IsNullOrEmpty token then
        eprintfn "The F# worker is started by mainstay, which sets MAINSTAY_WORKER_ADDRESS and MAINSTAY_WORKER_TOKEN."
        2
    else
        let channel = Channel address
        channel.Send(encodeAttach token)
        Blame.install (fun job reason -> channel.Send(encodeEnding job reason))
        Worker(channel).Run()
        0
