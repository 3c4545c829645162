/// The console's input as client code sees it. Code that reads asks whoever is attached to the session, and waits for the answer. What
/// nobody answers reads as the end of input, and so does whatever is read by code that belongs to no running job.
module Mainstay.Worker.Input

open System
open System.Collections.Generic
open System.IO
open System.Threading
open Mainstay.Worker.Protocol

/// What is asked where the code has not begun to print a line that says it.
let private lineWanted = "the code reads a line"

let private restWanted = "the code reads all of its input"

let private aLine = Input "a line of the input"

let private theRest = Input "the rest of the input"

/// The answer that is the end of the input.
let private endOfInput = "\u0004"

/// An ask that waits for its answer.
type private Waiting =
    { Take: string -> unit // the answer
      mutable HasEnded: bool }

// All of this is guarded by the gate, at which threads wait for their answers: an interrupt wakes them.
let private gate = obj ()
let private waiting = Dictionary<Guid, Waiting>()
let mutable private running: string option = None
let mutable private isToStop = false // the running job
let mutable private unread = "" // of the answers to the running job
let mutable private send: byte[] -> unit = ignore

/// The running job, if the code that calls is code of it.
let private ownJob () = running |> Option.filter (fun job -> Blame.job () = Some job)

let private close (ask: Waiting) =
    ask.HasEnded <- true
    Monitor.PulseAll gate

let private register (id: Guid) (take: string -> unit) =
    lock gate (fun () ->
        ownJob ()
        |> Option.map (fun job ->
            let ask = { Take = take; HasEnded = false }
            waiting.[id] <- ask
            job, ask))

/// Asks, and waits until that has ended. An ask whose wait is interrupted is forgotten with its job.
let private askFor (prompt: unit -> string) (wanted: Wanted) (take: string -> unit) =
    let id = Guid.NewGuid()
    match register id take with
    | None -> ()
    | Some (job, ask) ->
        send (encodeAsks id job (prompt ()) wanted)
        lock gate (fun () ->
            while not ask.HasEnded do
                Monitor.Wait gate |> ignore)

/// Asks for a part of the input; the answer is unread then.
let private ask (otherwise: string) (wanted: Wanted) (ending: string) =
    let prompt () = match UserOutput.takeBegunLine () with "" -> otherwise | line -> line
    askFor prompt wanted (fun text -> unread <- unread + text + ending)

/// Asks for a secret; None where nobody answers.
let private askSecret (prompt: string) : string option =
    let answer = ref None
    askFor (fun () -> prompt) Secret (fun text -> answer.Value <- Some text)
    answer.Value

/// What is unread and for the caller; else nothing.
let private available () = lock gate (fun () -> if (ownJob ()).IsSome then unread else "")

/// Reads as much as `length` says of what is unread, which is never nothing; asks for a line where all was read.
let private read (length: string -> int) : string =
    if available () = "" then ask lineWanted aLine "\n"
    lock gate (fun () ->
        match available () with
        | "" -> ""
        | text ->
            let count = length text
            unread <- text.Substring count
            text.Substring(0, count))

/// Takes all that is left of the input: one answer.
let private takeRest () : string =
    ask restWanted theRest ""
    lock gate (fun () ->
        let text = available ()
        if text <> "" then unread <- ""
        text)

type private AskingReader() =
    inherit TextReader()

    override _.Peek() =
        if available () = "" then ask lineWanted aLine "\n"
        match available () with
        | "" -> -1
        | text -> int text.[0]

    override _.Read() =
        match read (fun _ -> 1) with
        | "" -> -1
        | text -> int text.[0]

    // As from a terminal: no more than there is.
    override _.Read(buffer: char[], index: int, count: int) =
        let text = if count > 0 then read (fun text -> min count text.Length) else ""
        text.CopyTo(0, buffer, index, text.Length)
        text.Length

    override _.ReadLine() =
        match read (fun text -> match text.IndexOf '\n' with -1 -> text.Length | at -> at + 1) with
        | "" -> null
        | line -> line.TrimEnd('\n').TrimEnd '\r'

    override _.ReadToEnd() = takeRest ()

/// Runs a job's code, which may ask meanwhile, and read the input as a stream where it `mayOpen` one. Threads of it that still wait then are
/// at the end of their input.
let during (job: string) (mayOpen: bool) (work: unit -> 'T) : 'T =
    let turn (next: string option) =
        lock gate (fun () ->
            running <- next
            isToStop <- false
            unread <- ""
            waiting.Values |> Seq.iter close
            waiting.Clear())
    UserOutput.takeBegunLine () |> ignore
    turn (Some job)
    try
        if mayOpen then StandardInput.during (fun () -> Blame.under (Some job) takeRest) work else work ()
    finally
        turn None

/// The running job is to stop: from now on nothing reads as the end of its input. A thread that went on with that could bring the job
/// to its end before the one that is interrupted has stopped.
let stop () = lock gate (fun () -> isToStop <- true)

/// Gives an answer to the code that waits for it, if it still does.
let answer (id: Guid) (text: string option) =
    lock gate (fun () ->
        match waiting.TryGetValue id with
        | true, ask when text.IsSome || not isToStop ->
            waiting.Remove id |> ignore
            text |> Option.filter ((<>) endOfInput) |> Option.iter ask.Take
            close ask
        | _ -> ())

/// Makes the console's input ask; `tell` sends a message.
let install (tell: byte[] -> unit) =
    send <- tell
    Console.SetIn(new AskingReader())
    MainstayDisplay.Sink.askSecret <- askSecret
