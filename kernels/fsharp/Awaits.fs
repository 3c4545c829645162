/// `let!`, `use!` and `do!` outside of any computation. The language has no such thing, so the compiler is given a computation that
/// waits in their place. What stands in the code keeps its line and its column.
module Mainstay.Worker.Awaits

open System
open System.Text
open System.Text.RegularExpressions

/// What stands before the work, and behind it.
let private opening = "global.MainstayDisplay.Awaiting.result { return! global.MainstayDisplay.Awaiting.work <| fun () ->"
let private closing = " }"

/// The words, and what the compiler reads instead: of the same length. At the prompt, what `use` binds is not disposed of either.
let private words = [ "let!", "let "; "use!", "let "; "do!", "do " ]

/// A piece of code that is no blank and no comment. `Depth` is how many brackets are open around it.
type private Token = { Start: int; Stop: int; Depth: int; IsMarginal: bool }

let private startsWith (code: string) (index: int) (text: string) = String.CompareOrdinal(code, index, text, 0, text.Length) = 0

let private isOperator (c: char) = "!$%&*+-./<=>?@^|~:".IndexOf c >= 0

let private isComment (code: string) (index: int) = startsWith code index "//" || startsWith code index "(*" && not (startsWith code index "(*)")

let private columnOf (code: string) (index: int) = if index = 0 then 0 else index - 1 - code.LastIndexOf('\n', index - 1)

/// All of it. A token is marginal that begins a line and stands no further in than the first does.
let private tokensOf (afterToken: string -> int -> int) (code: string) : Token[] =
    let tokens = ResizeArray<Token>()
    let mutable index = 0
    let mutable depth = 0
    let mutable isFirst = true // of its line
    let margin = columnOf code (code.Length - code.TrimStart().Length)
    let skip stop =
        isFirst <- isFirst || code.IndexOf('\n', index, stop - index) >= 0
        index <- stop
    while index < code.Length do
        if Char.IsWhiteSpace code.[index] then skip (index + 1)
        elif isComment code index then skip (afterToken code index)
        else
            let mutable stop = afterToken code index
            if isOperator code.[index] && stop = index + 1 then
                while stop < code.Length && isOperator code.[stop] && not (isComment code stop) do
                    stop <- stop + 1
            let isAlone = stop = index + 1
            if isAlone && ")]}".IndexOf code.[index] >= 0 then depth <- depth - 1
            tokens.Add { Start = index; Stop = stop; Depth = depth; IsMarginal = isFirst && columnOf code index <= margin }
            if isAlone && "([{".IndexOf code.[index] >= 0 then depth <- depth + 1
            isFirst <- false
            index <- stop
    tokens.ToArray()

/// One place where the code waits: the word and what takes its place, where the opening goes, and the first and the last token of the
/// work.
type private Place = { At: int; Word: string; Plain: string; Before: int; First: Token; Last: Token }

/// Code as the compiler gets it. Each of the lines in `Split` was parted in two: what follows has a greater number than it had.
type Resolved = { Code: string; Split: int list }

/// The line that had this number.
let originOf (split: int list) (line: int) : int = line - (split |> List.filter (fun parted -> parted < line) |> List.length)

let private isStatement (token: Token) = token.IsMarginal && token.Depth = 0

/// The place where a statement begins with one of the words; `tokens` are those of the statement.
let private placeOf (code: string) (tokens: Token[]) : Place option =
    let start = tokens.[0].Start
    match words |> List.tryFind (fun (word, _) -> startsWith code start word && start + word.Length < code.Length && Char.IsWhiteSpace code.[start + word.Length]) with
    | None -> None
    | Some (word, plain) ->
        // The `!` is a token of its own.
        let behind = tokens |> Array.skipWhile (fun token -> token.Start < start + word.Length)
        let isEquals token = token.Depth = 0 && token.Stop = token.Start + 1 && code.[token.Start] = '='
        let before = if word = "do!" then Some(start + word.Length) else behind |> Array.tryFind isEquals |> Option.map (fun equals -> equals.Stop)
        match before with
        | None -> None
        | Some before ->
            match behind |> Array.filter (fun token -> token.Start >= before) with
            | [||] -> None
            | work -> Some { At = start; Word = word; Plain = plain; Before = before; First = work.[0]; Last = Array.last work }

/// The statements: what begins at the margin, up to what begins there next.
let private statementsOf (tokens: Token[]) : Token[] list =
    let starts = [ for index in 0 .. tokens.Length - 1 do if isStatement tokens.[index] then yield index ]
    List.zip starts (List.append (List.skip (min 1 starts.Length) starts) (if List.isEmpty starts then [] else [ tokens.Length ]))
    |> List.map (fun (start, stop) -> tokens.[start .. stop - 1])

/// The code with waits; `afterToken` gives the index after the token at an index, and the code begins in this line.
let resolve (afterToken: string -> int -> int) (line: int) (code: string) : Resolved =
    if not (words |> List.exists (fun (word, _) -> code.Contains word)) then { Code = code; Split = [] }
    else
        let resolved = StringBuilder()
        let split = ResizeArray<int>()
        let mutable copied = 0
        let copyTo (stop: int) =
            resolved.Append(code, copied, stop - copied) |> ignore
            copied <- stop
        for place in tokensOf afterToken code |> statementsOf |> List.choose (placeOf code) do
            copyTo place.At
            resolved.Append place.Plain |> ignore
            copied <- place.At + place.Word.Length
            copyTo place.Before
            resolved.Append(' ').Append opening |> ignore
            let lines = code.Substring(0, place.First.Start) |> Seq.filter ((=) '\n') |> Seq.length
            if code.IndexOf('\n', place.Before, place.First.Start - place.Before) < 0 then
                // What begins on the line of the word begins on one of its own, at its column.
                resolved.Append('\n').Append(' ', columnOf code place.First.Start) |> ignore
                copied <- place.First.Start
                split.Add(line + lines + split.Count)
            copyTo place.Last.Stop
            resolved.Append closing |> ignore
        copyTo code.Length
        { Code = resolved.ToString(); Split = List.ofSeq split }

/// How the compiler names the type that is nothing to wait for; the second wording is that of SDK 3.1.
let private argumentType = Regex(@"Known type of argument: (.+)|The type\s+'([^']+)'\s+is not compatible", RegexOptions.CultureInvariant)

/// Whether the compiler says of a wait that there is nothing to wait for.
let isOfWait (message: string) : bool = message.Contains "Waiter.Source" || message.Contains "match for method 'Source'"

/// That in words of those who wrote it, from all that the compiler says of it; None where it only follows from another fault.
let explained (messages: string) : string option =
    let found = argumentType.Match messages
    if found.Success then
        let typeName = if found.Groups.[1].Success then found.Groups.[1].Value.Trim() else found.Groups.[2].Value
        Some(sprintf "What `let!`, `use!` and `do!` wait for here is an Async, a Task or a ValueTask, and this is of type '%s'." typeName)
    else None
