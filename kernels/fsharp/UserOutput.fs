/// The console as client code sees it. Whatever it writes goes to the process's own streams within the call that writes it, so that
/// nothing is lost if the process dies right after, and everything has left before a result is sent.
module Mainstay.Worker.UserOutput

open System
open System.IO
open System.Text

/// A single large write leaves in pieces of this many characters.
let private bufferSize = 16384

let private writerOver (stream: Stream) =
    TextWriter.Synchronized(new StreamWriter(stream, UTF8Encoding false, bufferSize, AutoFlush = true))

/// Makes the console write UTF-8 without a byte order mark, unbuffered.
let install () =
    Console.SetOut(writerOver (Console.OpenStandardOutput()))
    Console.SetError(writerOver (Console.OpenStandardError()))

/// Flushes writers that client code may have put in place.
let flush () =
    try
        Console.Out.Flush()
        Console.Error.Flush()
    with _ -> () // the client may have disposed of its own writer
