/// Conditional compilation, resolved before code is cut at `;;`: the compiler sees one submission at a time, and an `#if` must not
/// be parted from its `#endif`. Directives and the code they leave out become blanks, so that every position stays as it is.
module Mainstay.Worker.Conditionals

open System
open System.Text

/// The symbols that a compiler is told of.
let symbolsIn (arguments: string list) : Set<string> =
    let symbol (argument: string) =
        [ "--define:"; "-d:" ] |> List.tryPick (fun start -> if argument.StartsWith(start, StringComparison.Ordinal) then Some(argument.Substring start.Length) else None)
    arguments |> List.choose symbol |> Set.ofList

/// The symbols of an interactive session.
let mutable private ofSession = Set.ofList [ "INTERACTIVE" ]

/// Takes the symbols of a session from what its compiler is told.
let takeFrom (arguments: string list) = ofSession <- (symbolsIn arguments).Add "INTERACTIVE"

/// The words and operators of a condition.
let private tokens (condition: string) : string list =
    let condition = match condition.IndexOf("//", StringComparison.Ordinal) with -1 -> condition | index -> condition.Substring(0, index)
    let rec read index found =
        if index >= condition.Length then List.rev found
        elif Char.IsWhiteSpace condition.[index] then read (index + 1) found
        elif Char.IsLetterOrDigit condition.[index] || condition.[index] = '_' then
            let word = String(condition.Substring index |> Seq.takeWhile (fun c -> Char.IsLetterOrDigit c || c = '_') |> Seq.toArray)
            read (index + word.Length) (word :: found)
        elif index + 1 < condition.Length && (condition.Substring(index, 2) = "&&" || condition.Substring(index, 2) = "||") then
            read (index + 2) (condition.Substring(index, 2) :: found)
        else read (index + 1) (string condition.[index] :: found)
    read 0 []

/// Whether a condition holds; one that is not understood does not.
let private holds (defined: Set<string>) (condition: string) : bool =
    let rec either tokens =
        let left, rest = both tokens
        match rest with
        | "||" :: rest -> let right, rest = either rest in (left || right), rest
        | _ -> left, rest
    and both tokens =
        let left, rest = one tokens
        match rest with
        | "&&" :: rest -> let right, rest = both rest in (left && right), rest
        | _ -> left, rest
    and one tokens =
        match tokens with
        | "!" :: rest -> let inner, rest = one rest in not inner, rest
        | "(" :: rest ->
            match either rest with
            | inner, ")" :: rest -> inner, rest
            | inner, rest -> inner, rest
        | symbol :: rest -> defined.Contains symbol, rest
        | [] -> false, []
    fst (either (tokens condition))

type private Directive =
    | If of bool
    | Else
    | EndIf

let private directiveOf (defined: Set<string>) (line: string) : Directive option =
    let text = line.Trim()
    if text.StartsWith("#if ", StringComparison.Ordinal) then Some(If(holds defined (text.Substring 4)))
    elif text.StartsWith("#else", StringComparison.Ordinal) then Some Else
    elif text.StartsWith("#endif", StringComparison.Ordinal) then Some EndIf
    else None

/// One `#if` that is open: whether the code around it is compiled, and whether its own branch is.
type private Open = { Around: bool; Here: bool }

let private enter (stack: Open list) (directive: Directive) : Open list =
    let isActive = match stack with [] -> true | top :: _ -> top.Around && top.Here
    match directive, stack with
    | If condition, _ -> { Around = isActive; Here = condition } :: stack
    | Else, top :: rest -> { top with Here = not top.Here } :: rest
    | EndIf, _ :: rest -> rest
    | (Else | EndIf), [] -> []

let private endOfLine (code: string) (index: int) =
    match code.IndexOf('\n', index) with
    | -1 -> code.Length
    | found -> found

let private startsLine (code: string) (index: int) =
    let lineStart = if index = 0 then 0 else code.LastIndexOf('\n', index - 1) + 1
    String.IsNullOrWhiteSpace(code.Substring(lineStart, index - lineStart))

/// The code without its directives and without what these symbols leave out; `afterToken` gives the index after the token at an index.
let resolveWith (defined: Set<string>) (afterToken: string -> int -> int) (code: string) : string =
    let result = StringBuilder code
    let blank start stop =
        for index in start .. stop - 1 do
            if result.[index] <> '\r' then result.[index] <- ' '
    let rec go (stack: Open list) index =
        if index < code.Length then
            let isActive = stack |> List.forall (fun one -> one.Around && one.Here)
            let mayBeDirective = code.[index] = '#' && startsLine code index
            let stop = if mayBeDirective || not isActive then endOfLine code index else index
            match (if mayBeDirective then directiveOf defined (code.Substring(index, stop - index)) else None) with
            | Some directive ->
                blank index stop
                go (enter stack directive) stop
            | None when isActive -> go stack (afterToken code index)
            | None when code.[index] = ' ' || code.[index] = '\t' || code.[index] = '\n' -> go stack (index + 1)
            | None ->
                blank index stop
                go stack stop
    if code.IndexOf("#if ", StringComparison.Ordinal) >= 0 then go [] 0
    result.ToString()

/// The code as the session compiles it.
let resolve (afterToken: string -> int -> int) (code: string) : string = resolveWith ofSession afterToken code
