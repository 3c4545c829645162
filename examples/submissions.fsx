(* One file, many submissions. Each part below ends with two semicolons, as one would type it at
   the F# prompt, and each must be sent as a whole: a tool that cuts this file at the wrong ;;
   sends half a definition (* even when the ;; is in a nested comment *) and "a string in a
   comment, with ;; and even *) inside, does not end it". *)

// The program itself is a ledger whose own little language ends statements with ;; too, so that
// the traps are in its data as well: strings, characters, comments and paths.

open System
open System.Collections.Generic
open System.Text;;

// ---- Characters ------------------------------------------------------------------------------
// A quote in a character literal opens no string: '"' is one character, and so is '\''.

let quoteMark = '"';;
let apostrophe = '\'';;
let backslash = '\\';;
let semicolons = [ ';'; ';'; '\u003b'; '\059' ];;
let pair = String([| ';'; ';' |]);;

printfn "characters: %c %c %c %A" quoteMark apostrophe backslash semicolons;;
printfn "a pair: %s, written %s" pair ";;";;

// Two submissions begin on this line; the second ends on the next, where a third begins.
let first = 1;; let second =
                    first + 1;; let third = first + second;;
printfn "two lines, three submissions: %d %d %d" first second third;;

// ---- Primes and type variables ---------------------------------------------------------------
// An apostrophe also ends names and begins type variables; neither opens a character literal.

let swap' (x': 'a, y': 'b) : 'b * 'a = y', x';;
let twice' f' = f' >> f';;

printfn "primes: %A %d" (swap' (';', "';'")) (twice' (fun n' -> n' * 3) 7);;

// ---- Strings ---------------------------------------------------------------------------------

let plain = "first;; second \" ;; third \\";;
let verbatim = @"C:\ledgers\;;\";;
let doubled = @"she said "";;"" and left";;
let triple = """a "quoted" ;; and a \ at the end, "too" \""";;
let long = "a string over two lines;; \
            joined without the line break;;";;
let lines = "a string over
two lines, the second ends here ;;";;
let bytes = ";;"B;;
let price = "5;;$";;
let looksLikeAComment = "(* not ;; a comment" + " // nor ;; this *)";;
let looksLikeAString = [ '"'; ';'; ';'; '"' ] |> List.map string |> String.concat "";;

for text in [ plain; verbatim; doubled; triple; long; lines; price; looksLikeAComment; looksLikeAString ] do
    printfn "%3d |%s|" text.Length text;;

printfn "bytes: %A, and one: %d" bytes ';'B;;

// ---- Comments --------------------------------------------------------------------------------

(* outer ;; (* inner ;; *) "a string ;; with *) in it" still outer '"' ;; still outer *)
(* "an escaped quote \" ;; *) inside" and @"a verbatim one \" and """triple " ;; *) """ ;; *)
// an unclosed "string ;; in a line comment, and an unclosed (* comment ;;
/// ;; even in documentation "
let commented (* ;; *) = (* (* ;; *) ;; *) 42 // ;; and more ;;
;;

// (*) is multiplication, not the beginning of a comment.
let product = List.fold (*) 1 [ 1 .. 6 ];;
let operators = [ (+); (-); (*); (/) ] |> List.map (fun apply -> apply 12 4);;

printfn "comments: %d %d %A" commented product operators;;

// ---- Names and inactive code -----------------------------------------------------------------

let ``a name with ;; in it`` = "a name";;

#if COMPILED
// Left out at the prompt, with everything in it ;;
let onlyCompiled = "never seen";;
printfn "%s" onlyCompiled;;
#endif

printfn "names: %s" ``a name with ;; in it``;;

// ---- The ledger's language: types ------------------------------------------------------------

type Token =
    | Word of string
    | Text of string
    | Amount of int
    | End

type Statement =
    | Open of account: string
    | Deposit of account: string * cents: int
    | Transfer of source: string * target: string * cents: int
    | Note of text: string
    | Show of account: string

type Complaint = { Line: int; Problem: string }

exception Rejected of Complaint;;

// ---- Tokens ----------------------------------------------------------------------------------

/// Reads a ledger: words, numbers, "texts" in which "" stands for a quote, # comments, and ;; at
/// the end of each statement. A token comes with its line.
let tokenize (source: string) =
    let tokens = List<int * Token>()
    let mutable line = 1
    let mutable i = 0
    let peek offset = if i + offset < source.Length then source.[i + offset] else '\000'
    let reject problem = raise (Rejected { Line = line; Problem = problem })

    let readText () =
        let text = StringBuilder()
        let opened = line
        let mutable closed = false
        i <- i + 1 // the opening "
        while not closed do
            match peek 0, peek 1 with
            | '\000', _ -> raise (Rejected { Line = opened; Problem = "a text without its closing \"" })
            | '"', '"' ->
                text.Append '"' |> ignore
                i <- i + 2
            | '"', _ ->
                closed <- true
                i <- i + 1
            | c, _ ->
                if c = '\n' then line <- line + 1
                text.Append c |> ignore
                i <- i + 1
        Text(text.ToString())

    let readWhile accepts =
        let start = i
        while accepts (peek 0) do
            i <- i + 1
        source.Substring(start, i - start)

    while i < source.Length do
        match peek 0, peek 1 with
        | '\n', _ ->
            line <- line + 1
            i <- i + 1
        | (' ' | '\t' | '\r'), _ -> i <- i + 1
        | '#', _ -> readWhile (fun c -> c <> '\n' && c <> '\000') |> ignore
        | ';', ';' ->
            tokens.Add((line, End))
            i <- i + 2
        | ';', _ -> reject "a lone ; (a statement ends with ;;)"
        | '"', _ ->
            let opened = line
            let text = readText ()
            tokens.Add((opened, text))
        | c, _ when Char.IsDigit c -> tokens.Add((line, Amount(int (readWhile Char.IsDigit))))
        | c, _ when Char.IsLetter c -> tokens.Add((line, Word(readWhile (fun c -> Char.IsLetterOrDigit c || c = '-'))))
        | c, _ -> reject (sprintf "cannot read '%c'" c)
    List.ofSeq tokens;;

// ---- Statements ------------------------------------------------------------------------------

/// Cuts the tokens at each End; what is left over at the end has no ;; and is refused.
let split tokens =
    let rec go statement statements rest =
        match rest with
        | (_, End) :: rest when List.isEmpty statement -> go [] statements rest
        | (_, End) :: rest -> go [] (List.rev statement :: statements) rest
        | token :: rest -> go (token :: statement) statements rest
        | [] when List.isEmpty statement -> List.rev statements
        | [] -> raise (Rejected { Line = fst (List.last statement); Problem = "a statement without its ;;" })
    go [] [] tokens;;

let parse tokens =
    let line = fst (List.head tokens)
    match List.map snd tokens with
    | [ Word "open"; Word account ] -> line, Open account
    | [ Word "deposit"; Amount cents; Word "to"; Word account ] -> line, Deposit(account, cents)
    | [ Word "transfer"; Amount cents; Word "from"; Word source; Word "to"; Word target ] -> line, Transfer(source, target, cents)
    | [ Word "note"; Text text ] -> line, Note text
    | [ Word "show"; Word account ] -> line, Show account
    | Word word :: _ -> raise (Rejected { Line = line; Problem = sprintf "cannot make sense of '%s'" word })
    | _ -> raise (Rejected { Line = line; Problem = "a statement begins with a word" });;

// ---- Books -----------------------------------------------------------------------------------

type Books() =
    let balances = SortedDictionary<string, int>(StringComparer.Ordinal)
    let notes = List<string>()

    let reject line problem = raise (Rejected { Line = line; Problem = problem })

    let change line account cents =
        match balances.TryGetValue account with
        | false, _ -> reject line (sprintf "no account '%s'" account)
        | true, balance when balance + cents < 0 -> reject line (sprintf "'%s' has only %d" account balance)
        | true, balance -> balances.[account] <- balance + cents

    member __.Balances = [ for entry in balances -> entry.Key, entry.Value ]
    member __.Notes = List.ofSeq notes

    member __.Run(line, statement) =
        match statement with
        | Open account when balances.ContainsKey account -> reject line (sprintf "'%s' is open already" account)
        | Open account -> balances.[account] <- 0
        | Deposit(account, cents) -> change line account cents
        | Transfer(source, target, cents) ->
            change line source -cents
            try
                change line target cents
            with Rejected _ ->
                change line source cents // all or nothing
                reraise ()
        | Note text -> notes.Add text
        | Show account ->
            match balances.TryGetValue account with
            | true, balance -> printfn "    %s: %d.%02d" account (balance / 100) (balance % 100)
            | _ -> reject line (sprintf "no account '%s'" account);;

/// Runs a ledger; a statement that is refused leaves the ones before it in place.
let run title source =
    printfn "%s" title
    let books = Books()
    try
        for statement in source |> tokenize |> split do
            books.Run(parse statement)
        printfn "    all done"
    with Rejected complaint -> printfn "    line %d: %s" complaint.Line complaint.Problem
    for account, cents in books.Balances do
        printfn "    %-10s %8d" account cents
    for note in books.Notes do
        printfn "    note |%s|" (note.Replace("\n", "\\n"))
;;

// ---- Ledgers ---------------------------------------------------------------------------------

run "an empty ledger" "";;
run "only separators" ";; ;;;; # and a comment ;;\n;;";;

run "a plain ledger" "open cash;; open rent;;
deposit 12000 to cash;; # wages ;; not a separator
transfer 4500 from cash to rent;;
show cash;; show rent;;";;

run "a verbatim ledger" @"open c;; note ""C:\temp\;;"";;
note ""\"";; deposit 5 to c;;";;

run "a triple-quoted ledger" """
open savings;;
note "quoted ;; separators";;   # "an unclosed quote in a comment
note "a doubled "" quote ;; and
a second line";;
deposit 100 to savings;; show savings;;
note "(* ;; *)";;
""";;

run "a lone semicolon" "open a;; deposit 1; to a;;";;
run "no end" "open a;;\n\nopen b";;
run "no closing quote" "open a;;\nnote \"never ends ;;\n;;";;
run "no such account" "open a;; deposit 10 to a;;\ntransfer 5 from a to nowhere;; open never;;";;
run "not enough" "open a;; open b;;\ndeposit 10 to a;;\ntransfer 11 from a to b;;";;
run "not a statement" "open a;;\n\"text\" first;;";;
run "not a word" "open a;; close a;;";;
run "not a token" "open a;; deposit 10 to a !;;";;

// ---- Writing ledgers -------------------------------------------------------------------------

/// The text that `tokenize` reads as this statement.
let write statement =
    let quoted (text: string) = "\"" + text.Replace("\"", "\"\"") + "\""
    let words =
        match statement with
        | Open account -> [ "open"; account ]
        | Deposit(account, cents) -> [ "deposit"; string cents; "to"; account ]
        | Transfer(source, target, cents) -> [ "transfer"; string cents; "from"; source; "to"; target ]
        | Note text -> [ "note"; quoted text ]
        | Show account -> [ "show"; account ]
    String.concat " " words + ";;";;

let samples =
    [ Open "cash"
      Open "tax-2020"
      Deposit("cash", 2500)
      Transfer("cash", "tax-2020", 499)
      Note ";;"
      Note "\";;\""
      Note """back\slash ;; "quote" (* comment *) # hash"""
      Note(string quoteMark + pair + string quoteMark)
      Show "tax-2020" ];;

let written = samples |> List.map write |> String.concat "\n";;

printfn "written:\n%s" written;;
printfn "reads back as itself: %b" (written |> tokenize |> split |> List.map (parse >> snd) = samples);;

run "what was written" written;;

// ---- Later submissions see earlier ones ------------------------------------------------------

let mutable evaluated = 0;;
evaluated <- evaluated + 1;;
evaluated <- evaluated + List.length samples;;

module Totals =
    /// Deposits of a ledger; ";;" in here ends nothing, being in documentation.
    let deposits statements =
        statements |> List.sumBy (function Deposit(_, cents) -> cents | _ -> 0)

    let describe statements = sprintf "%d statements;; %d deposited" (List.length statements) (deposits statements);;

open Totals;;

printfn "%s" (describe samples);;
printfn "counted %d" evaluated

// The last submission may go without its separator: the file's end is enough. ;;
printfn "the end"
