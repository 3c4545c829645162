/// What code reads otherwise where it is compiled apart from its file. Pure.
module Mainstay.Worker.Rewritings

open Mainstay.Worker.Outline
open Mainstay.Worker.Syntax

/// What stands before a column.
let inserted (line: int) (column: int) (text: string) = { Line = line; Column = column; Length = 0; Text = text }

/// A function that is all of a function's body is taken for more arguments of it, and that of a member is what it gives.
let rec functionGiven (body: Placed) : Rewriting list =
    match body.Case, node "SynExpr" body with
    | ("Lambda" | "MatchLambda"), _ -> [ inserted body.Place.Line body.Place.Column "(); " ]
    | ("Paren" | "Typed"), Some inner -> functionGiven inner
    | _ -> []

/// The argument of where the program begins has a type that the compiler knows there alone.
let entryArgument (attributes: (string * string) list) (argument: Placed) : Rewriting list =
    let isEntry = attributes |> List.exists (fun (name, _) -> name = "EntryPoint")
    let place = argument.Place
    if isEntry && argument.Case = "Named" then [ inserted place.Line place.Column "("; inserted place.EndLine place.EndColumn ": string[])" ] else []

/// Only members may have arguments that can be left out: a function takes options.
let optionalArguments (pattern: Placed) : Rewriting list =
    let withoutMark (optional: Placed) = { Line = optional.Place.Line; Column = optional.Place.Column; Length = 1; Text = "" }
    let rec read (part: Placed) : Rewriting list =
        match part.Case, part.Parts with
        | "OptionalVal", _ when part.Union = "SynPat" -> [ withoutMark part; inserted part.Place.EndLine part.Place.EndColumn ": _ option" ]
        | "Typed", optional :: kind :: _ when optional.Case = "OptionalVal" ->
            [ withoutMark optional
              inserted kind.Place.Line kind.Place.Column "("
              inserted kind.Place.EndLine kind.Place.EndColumn ") option" ]
        | _ -> List.collect read part.Parts
    node "SynArgPats" pattern |> Option.map read |> Option.defaultValue []
