// A JSON reader and writer from parser combinators, small enough to read in one sitting: the
// combinators, the grammar, a printer, a path query, and error messages with line and column.

open System
open System.Globalization
open System.Text

type Json =
    | Null
    | Bool of bool
    | Number of float
    | String of string
    | Array of Json list
    | Object of (string * Json) list

// ---- Combinators -----------------------------------------------------------------------------

/// Where the parser stands; the text is shared, so a position is cheap to keep and return to.
type Input = { Text: string; Offset: int }

type Reply<'T> =
    | Parsed of value: 'T * rest: Input
    | Failed of expected: string * at: Input

type Parser<'T> = Parser of (Input -> Reply<'T>)

let run (Parser parse) input = parse input

let preturn value = Parser(fun input -> Parsed(value, input))

let (>>=) parser next =
    Parser(fun input ->
        match run parser input with
        | Parsed(value, rest) -> run (next value) rest
        | Failed(expected, at) -> Failed(expected, at))

let (|>>) parser f = parser >>= (f >> preturn)
let (.>>.) first second = first >>= fun a -> second |>> fun b -> (a, b)
let (.>>) first second = first .>>. second |>> fst
let (>>.) first second = first .>>. second |>> snd

/// The second is tried only where the first failed without consuming anything: a choice once
/// made is kept, and so the error message is about the alternative that was begun.
let (<|>) first second =
    Parser(fun input ->
        match run first input with
        | Failed(expected, at) when at.Offset = input.Offset ->
            match run second input with
            | Failed(other, at') when at'.Offset = input.Offset -> Failed(expected + " or " + other, at')
            | reply -> reply
        | reply -> reply)

let many parser =
    let rec go parsed input =
        match run parser input with
        | Parsed(value, rest) -> go (value :: parsed) rest
        | Failed(_, at) when at.Offset = input.Offset -> Parsed(List.rev parsed, input)
        | Failed(expected, at) -> Failed(expected, at)
    Parser(go [])

let sepBy parser separator =
    (parser .>>. many (separator >>. parser) |>> fun (first, others) -> first :: others) <|> preturn []

/// Names what was expected, in the user's words instead of the grammar's.
let (<?>) parser label =
    Parser(fun input ->
        match run parser input with
        | Failed(_, at) when at.Offset = input.Offset -> Failed(label, at)
        | reply -> reply)

let satisfy label accepts =
    Parser(fun input ->
        if input.Offset < input.Text.Length && accepts input.Text.[input.Offset] then
            Parsed(input.Text.[input.Offset], { input with Offset = input.Offset + 1 })
        else
            Failed(label, input))

let pchar (c: char) = satisfy (sprintf "'%c'" c) ((=) c)

let literal (word: string) =
    Parser(fun input ->
        if String.CompareOrdinal(input.Text, input.Offset, word, 0, word.Length) = 0 then
            Parsed(word, { input with Offset = input.Offset + word.Length })
        else
            Failed(word, input))

/// Ties the knot of a recursive grammar.
let forward () =
    let target = ref (Parser(fun input -> Failed("a grammar", input)))
    Parser(fun input -> run target.Value input), target

let concat (chars: char list) = System.String(List.toArray chars)

// ---- Grammar ---------------------------------------------------------------------------------

let spaces = many (satisfy "space" (fun c -> c = ' ' || c = '\n' || c = '\t' || c = '\r'))
let token parser = parser .>> spaces

let digit = satisfy "a digit" (fun c -> '0' <= c && c <= '9')
let digits = digit .>>. many digit |>> fun (d, ds) -> concat (d :: ds)
let optional parser = parser <|> preturn ""

let number =
    let sign = pchar '-' |>> string
    let fraction = pchar '.' >>. digits |>> fun ds -> "." + ds
    let exponentSign = (pchar '+' <|> pchar '-') |>> string
    let exponent = (pchar 'e' <|> pchar 'E') >>. (optional exponentSign .>>. digits) |>> fun (s, ds) -> "e" + s + ds
    optional sign .>>. digits .>>. optional fraction .>>. optional exponent
    |>> fun (((sign, whole), fraction), exponent) ->
        Double.Parse(sign + whole + fraction + exponent, NumberStyles.Float, CultureInfo.InvariantCulture)

let quoted =
    let plain = satisfy "a character" (fun c -> c <> '"' && c <> '\\' && c >= ' ')
    let hex = satisfy "a hexadecimal digit" Uri.IsHexDigit
    let unicode =
        pchar 'u' >>. (hex .>>. hex .>>. hex .>>. hex)
        |>> fun (((a, b), c), d) -> char (Convert.ToInt32(concat [ a; b; c; d ], 16))
    let simple =
        [ '"', '"'; '\\', '\\'; '/', '/'; 'b', '\b'; 'n', '\n'; 'r', '\r'; 't', '\t' ]
        |> List.map (fun (written, meant) -> pchar written |>> fun _ -> meant)
        |> List.reduce (<|>)
    let escape = pchar '\\' >>. ((simple <|> unicode) <?> "an escape")
    pchar '"' >>. many (plain <|> escape) .>> (pchar '"' <?> "a closing quote") |>> concat

let value, valueRef = forward ()

let array = token (pchar '[') >>. sepBy value (token (pchar ',')) .>> pchar ']' |>> Array

let object' =
    let field = token (quoted <?> "a name") .>> token (pchar ':') .>>. value
    token (pchar '{') >>. sepBy field (token (pchar ',')) .>> pchar '}' |>> Object

valueRef.Value <-
    token (
        (literal "null" |>> fun _ -> Null)
        <|> (literal "true" |>> fun _ -> Bool true)
        <|> (literal "false" |>> fun _ -> Bool false)
        <|> (number |>> Number)
        <|> (quoted |>> String)
        <|> array
        <|> object'
    )
    <?> "a value"

let endOfInput = Parser(fun input -> if input.Offset = input.Text.Length then Parsed((), input) else Failed("the end", input))

let parse text =
    match run (spaces >>. value .>> endOfInput) { Text = text; Offset = 0 } with
    | Parsed(json, _) -> Choice1Of2 json
    | Failed(expected, at) ->
        let before = text.Substring(0, at.Offset).Split('\n')
        let found = if at.Offset < text.Length then sprintf "'%c'" text.[at.Offset] else "the end"
        Choice2Of2(sprintf "line %d, column %d: expected %s, found %s" before.Length (before.[before.Length - 1].Length + 1) expected found)

// ---- Printing and asking ---------------------------------------------------------------------

let quote (text: string) =
    let out = StringBuilder("\"")
    for c in text do
        match c with
        | '"' -> out.Append "\\\""
        | '\\' -> out.Append "\\\\"
        | '\n' -> out.Append "\\n"
        | c when c < ' ' || c > '~' -> out.Append(sprintf "\\u%04x" (int c))
        | c -> out.Append c
        |> ignore
    out.Append("\"").ToString()

let rec print indent json =
    let inner = indent + "  "
    let block opening closing items =
        opening + "\n" + inner + String.Join(",\n" + inner, Array.ofList<string> items) + "\n" + indent + closing
    match json with
    | Null -> "null"
    | Bool b -> if b then "true" else "false"
    | Number n -> n.ToString("R", CultureInfo.InvariantCulture)
    | String s -> quote s
    | Array [] -> "[]"
    | Object [] -> "{}"
    | Array items -> items |> List.map (print inner) |> block "[" "]"
    | Object fields -> fields |> List.map (fun (name, item) -> quote name + ": " + print inner item) |> block "{" "}"

/// Follows a path such as "crew.1.name"; numbers index arrays.
let query (path: string) json =
    let step current (key: string) =
        match current, Int32.TryParse key with
        | Some(Object fields), _ -> fields |> List.tryFind (fun (name, _) -> name = key) |> Option.map snd
        | Some(Array items), (true, index) -> List.tryItem index items
        | _ -> None
    path.Split('.') |> Array.fold step (Some json)

// ---- At work ---------------------------------------------------------------------------------

let document = """
{ "ship": "Rocinante", "mass": 5.0e2, "armed": true, "owner": null,
  "crew": [ { "name": "Naomi", "skills": ["engineering", "systems"] },
            { "name": "Jim \"Hold\u0065n\"", "skills": [] } ],
  "log": "day 1\nday 2 \u2014 quiet", "offset": -0.125, "empty": {} }
"""

match parse document with
| Choice2Of2 problem -> printfn "unexpected: %s" problem
| Choice1Of2 json ->
    let printed = print "" json
    printfn "%s" printed
    printfn "reads back as itself: %b" (parse printed = Choice1Of2 json)
    for path in [ "ship"; "crew.1.name"; "crew.0.skills.1"; "crew.7"; "mass.kg"; "offset" ] do
        match query path json with
        | Some found -> printfn "%-16s %s" path (print "" found)
        | None -> printfn "%-16s nothing there" path

for text in [ "[1, 2,]"; "{\"a\": 1,\n \"b\" 2}"; "\"open"; "[true, nul]"; "\"\\q\""; "1 2"; ""; "-"; "[1\n,2\n;3]" ] do
    match parse text with
    | Choice1Of2 json -> printfn "unexpected success: %s" (print "" json)
    | Choice2Of2 problem -> printfn "%-22s %s" (quote text) problem
