/// The console as client code sees it. Whatever it writes goes to the process's own streams within the call that writes it, so that
/// nothing is lost if the process dies right after, and everything has left before a result is sent. What code prints that another job than
/// the running one left running is sent to the daemon with that job's name.
module Mainstay.Worker.UserOutput

open System
open System.IO
open System.Text

/// A single large write leaves in pieces of this many characters.
let private bufferSize = 16384

/// How many bytes of a line that has no end yet are remembered: its last ones.
let private begunLimit = 400

/// A stream that remembers the line that was begun last, and keeps back the writes that `takes` takes. `tell` is given what is of another
/// job than the running one.
type private Watched(inner: Stream, tell: string -> string -> unit) =
    inherit Stream()
    let begun = new MemoryStream()
    let mutable takes: (string -> bool) option = None

    member _.Takes with set value = takes <- value

    member _.TakeBegun() : string =
        lock begun (fun () ->
            let text = Encoding.UTF8.GetString(begun.GetBuffer(), 0, int begun.Length)
            begun.SetLength 0L
            text)

    member private _.Note(buffer: byte[], offset: int, count: int) =
        lock begun (fun () ->
            let newline = Array.LastIndexOf(buffer, 10uy, offset + count - 1, count)
            let start = if newline < 0 then offset else newline + 1
            if newline >= 0 then begun.SetLength 0L
            begun.Write(buffer, start, offset + count - start)
            if begun.Length > int64 (2 * begunLimit) then
                let last = begun.ToArray()
                begun.SetLength 0L
                begun.Write(last, last.Length - begunLimit, begunLimit))

    override watched.Write(buffer: byte[], offset: int, count: int) =
        let text () = Encoding.UTF8.GetString(buffer, offset, count)
        match Blame.strayJob (), takes with
        | Some job, _ -> tell job (text ())
        | None, Some takes when count > 0 && takes (text ()) -> ()
        | None, _ ->
            if count > 0 then watched.Note(buffer, offset, count)
            inner.Write(buffer, offset, count)

    override _.Flush() = inner.Flush()
    override _.CanWrite = true
    override _.CanRead = false
    override _.CanSeek = false
    override _.Length = inner.Length
    override _.Position with get () = inner.Position and set value = inner.Position <- value
    override _.Read(buffer: byte[], offset: int, count: int) = inner.Read(buffer, offset, count)
    override _.Seek(offset: int64, origin: SeekOrigin) = inner.Seek(offset, origin)
    override _.SetLength(length: int64) = inner.SetLength length

let private writerOver (stream: Stream) =
    TextWriter.Synchronized(new StreamWriter(stream, UTF8Encoding false, bufferSize, AutoFlush = true))

let mutable private output = new Watched(Stream.Null, fun _ _ -> ())

/// Makes the console write UTF-8 without a byte order mark, unbuffered. `tell` is given what is of another job than the running one: the job,
/// whether it is an error, and the text.
let install (tell: string -> bool -> string -> unit) =
    output <- new Watched(Console.OpenStandardOutput(), fun job text -> tell job false text)
    Console.SetOut(writerOver output)
    Console.SetError(writerOver (new Watched(Console.OpenStandardError(), fun job text -> tell job true text)))

/// The line that was begun on standard output and has no end yet, once; its end where it is long.
let takeBegunLine () : string = output.TakeBegun().Trim()

/// Keeps back what is written to standard output while `work` runs, where `takes` takes it. Each call of `WriteLine` is one write.
let withholding (takes: string -> bool) (work: unit -> 'T) : 'T =
    output.Takes <- Some takes
    try work () finally output.Takes <- None

/// Flushes writers that client code may have put in place.
let flush () =
    try
        Console.Out.Flush()
        Console.Error.Flush()
    with _ -> () // the client may have disposed of its own writer
