/// What client code shows (`Mainstay.display`), on its way to the daemon. Whoever shows something waits until the daemon has it: so it stands
/// behind all that was printed before, and before all that is printed afterwards.
module Mainstay.Worker.Displays

open System.Collections.Generic
open System.Threading
open MainstayDisplay
open Mainstay.Worker.Protocol

// All of this is guarded by the gate, at which threads wait: an interrupt wakes them.
let private gate = obj ()
let private waiting = HashSet<int64>()
let mutable private last = 0L
let mutable private send: byte[] -> unit = ignore

let private begin' () =
    lock gate (fun () ->
        last <- last + 1L
        waiting.Add last |> ignore
        last)

let private show (name: string option) (bundle: Bundle) =
    let mark = begin' ()
    UserOutput.flush ()
    try
        send (encodeDisplay (Blame.strayJob ()) (Some mark) name false bundle)
        lock gate (fun () ->
            while waiting.Contains mark do
                Monitor.Wait gate |> ignore)
    finally
        lock gate (fun () -> waiting.Remove mark |> ignore)

/// The daemon has what was sent with this mark.
let arrived (mark: int64) =
    lock gate (fun () ->
        waiting.Remove mark |> ignore
        Monitor.PulseAll gate)

/// Sends the forms of what a submission gave. Nothing more is printed before its result follows.
let showValue (bundle: Bundle) = send (encodeDisplay None None None true bundle)

/// Makes client code show what it shows; `tell` sends a message, `format` words a value as the language prints it.
let install (tell: byte[] -> unit) (format: obj -> System.Type -> string) =
    send <- tell
    Sink.show <- show
    Sink.format <- format
    Host.restore ()
