/// Cuts code into the submissions that `;;` separates. A `;;` inside a string, a character, a quoted name or a comment separates nothing.
/// Only the tokens that can hide a `;;` are known here; whether the code makes sense is the compiler's business, so an unterminated
/// string or comment simply runs to the end.
module Mainstay.Worker.Splitter

open System

/// One submission and where its text starts in the client's code: `Line` counts from 1, `Column` from 0. `Stop` is the index in the
/// code after its `;;`. Each of the lines in `Split` is two in the text.
type Submission = { Text: string; Line: int; Column: int; Stop: int; Split: int list }

let private startsWith (code: string) index (token: string) = String.CompareOrdinal(code, index, token, 0, token.Length) = 0

let private isNamePart (c: char) = Char.IsLetterOrDigit c || c = '_' || c = '\''

/// The index after `token` at or past `index`, or the end of the code.
let private after (code: string) (token: string) index =
    match code.IndexOf(token, min index code.Length, StringComparison.Ordinal) with
    | -1 -> code.Length
    | found -> found + token.Length

/// The index after a string whose quote can be escaped by a backslash.
let rec private afterString (code: string) index =
    if index >= code.Length then code.Length
    else
        match code.[index] with
        | '\\' -> afterString code (index + 2)
        | '"' -> index + 1
        | _ -> afterString code (index + 1)

/// The index after a verbatim string, in which a doubled quote stands for one.
let rec private afterVerbatim (code: string) index =
    let next = after code "\"" index
    if next < code.Length && code.[next] = '"' then afterVerbatim code (next + 1) else next

/// The index after the string that starts at `index` with a quote or a prefix of one (`@`, `$`); None where none starts.
let private tryAfterString (code: string) index =
    let mutable quote = index
    while quote < code.Length && (code.[quote] = '$' || code.[quote] = '@') do
        quote <- quote + 1
    if quote >= code.Length || code.[quote] <> '"' then None
    elif startsWith code quote "\"\"\"" then Some(after code "\"\"\"" (quote + 3))
    elif code.IndexOf('@', index, quote - index) >= 0 then Some(afterVerbatim code (quote + 1))
    else Some(afterString code (quote + 1))

/// The index after a character such as `'"'` or `'\''`, or after the quote itself where it starts a type variable.
let private afterApostrophe (code: string) index =
    if startsWith code (index + 1) "\\" then after code "'" (index + 3)
    elif index + 2 < code.Length && code.[index + 2] = '\'' then index + 3
    else index + 1

/// The index after a comment whose opening ends before `index`. Comments nest, and a string in one hides its own `*)`.
let private afterComment (code: string) index =
    let rec skip depth index =
        if depth = 0 || index >= code.Length then min index code.Length
        elif startsWith code index "(*)" then skip depth (index + 3)
        elif startsWith code index "(*" then skip (depth + 1) (index + 2)
        elif startsWith code index "*)" then skip (depth - 1) (index + 2)
        else
            match code.[index] with
            | '\'' -> skip depth (afterApostrophe code index)
            | '"' | '@' | '$' -> skip depth (tryAfterString code index |> Option.defaultValue (index + 1))
            | _ -> skip depth (index + 1)
    skip 1 index

let rec private afterName (code: string) index =
    if index < code.Length && isNamePart code.[index] then afterName code (index + 1) else index

let private isOperatorPart (c: char) = "!$%&*+-./<=>?@^|~:".IndexOf c >= 0

/// The index after the token at `index`, a token being whatever must be passed as one. Slashes within an operator begin no comment.
let afterToken (code: string) index =
    match code.[index] with
    | '/' when startsWith code index "//" && not (index > 0 && isOperatorPart code.[index - 1]) -> after code "\n" index
    | '(' when startsWith code index "(*)" -> index + 3
    | '(' when startsWith code index "(*" -> afterComment code (index + 2)
    | '`' when startsWith code index "``" -> after code "``" (index + 2)
    | '"' | '@' | '$' -> tryAfterString code index |> Option.defaultValue (index + 1)
    | '\'' -> afterApostrophe code index
    | c when isNamePart c -> afterName code index
    | _ -> index + 1

/// Where each `;;` of the code is.
let private separators (code: string) : int list =
    let found = ResizeArray<int>()
    let mutable index = 0
    while index < code.Length do
        if startsWith code index ";;" then
            found.Add index
            index <- index + 2
        else
            index <- afterToken code index
    List.ofSeq found

/// The first line of a submission that starts behind a `;;` loses its blanks, so that the lines below it may start at the margin.
let private skipBlanks (code: string) (start: int) (stop: int) =
    let mutable index = start
    while index < stop && (code.[index] = ' ' || code.[index] = '\t' || code.[index] = '\r') do
        index <- index + 1
    if index < stop && code.[index] = '\n' then index + 1 else index

/// Code that begins in a line, with the waits that `let!` and the like stand for.
let awaiting (line: int) (code: string) : Awaits.Resolved = Awaits.resolve afterToken line code

/// Code without its `#r "framework: …"`, and the lines that refer to what these stand for.
let withFrameworks (code: string) : Frameworks.Resolved = Frameworks.resolve afterToken code

/// The submissions of the code, those that hold nothing but blanks left out.
let split (client: string) : Submission list =
    let code = if List.isEmpty (separators client) then client else Conditionals.resolve afterToken client
    let submissions = ResizeArray<Submission>()
    let mutable line = 1
    let mutable lineStart = 0
    let mutable position = 0
    let advanceTo target =
        while position < target do
            if code.[position] = '\n' then
                line <- line + 1
                lineStart <- position + 1
            position <- position + 1
    let add start stop next =
        let start = if start = 0 then 0 else skipBlanks code start stop
        advanceTo start
        let framed = withFrameworks (code.Substring(start, stop - start))
        let text = framed.Code
        if not (List.isEmpty framed.References) then
            submissions.Add { Text = String.concat "\n" framed.References; Line = 1; Column = 0; Stop = start; Split = [] }
        if not (String.IsNullOrWhiteSpace text) then
            let resolved = awaiting line text
            submissions.Add { Text = resolved.Code; Line = line; Column = start - lineStart; Stop = next; Split = resolved.Split }
    let mutable start = 0
    for separator in separators code do
        add start separator (separator + 2)
        start <- separator + 2
    add start code.Length code.Length
    List.ofSeq submissions
