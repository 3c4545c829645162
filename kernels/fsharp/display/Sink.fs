/// Where displays go, as the worker sets it.
module internal MainstayDisplay.Sink

open System

/// Shows a bundle, maybe under a name.
let mutable show: string option -> Bundle -> unit = fun _ _ -> ()

/// Asks for a secret; None where nobody answers.
let mutable askSecret: string -> string option = fun _ -> None

/// A value as the language prints it.
let mutable format: obj -> Type -> string = fun value _ -> string value

/// Whether showing something has run code of the session since this was last set.
let mutable hasRunCode = false

let noteCode () = hasRunCode <- true
