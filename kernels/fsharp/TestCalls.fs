/// Runs of tests that are written as one call with nothing but literals, as `mainstay test` and those who watch tests write them: such code needs
/// no compiler, whose time would be most of a short run's.
module Mainstay.Worker.TestCalls

open System
open System.Globalization
open System.Text.RegularExpressions

let private call = Regex(@"^\s*Mainstay\.Tests\.run\s*\((.*)\)\s*$", RegexOptions.CultureInvariant ||| RegexOptions.Singleline)

/// `name = "text"` or `name = number`, and a comma before the next one.
let private argument =
    Regex(@"\G\s*([A-Za-z]+)\s*=\s*(?:""((?:[^""\\\r\n]|\\[""\\]|\\u[0-9a-fA-F]{4})*)""|([0-9]{1,9}))\s*(,|$)", RegexOptions.CultureInvariant)

let private escape = Regex(@"\\(?:u([0-9a-fA-F]{4})|(.))", RegexOptions.CultureInvariant)

/// What a text stands for, by what is between its quotes.
let private unescaped (text: string) : string =
    escape.Replace(text, fun (found: Match) ->
        if found.Groups.[1].Success then string (char (Int32.Parse(found.Groups.[1].Value, NumberStyles.HexNumber, CultureInfo.InvariantCulture)))
        else found.Groups.[2].Value)

type private Literal =
    | Text of string
    | Number of int

let private texts = set [ "pattern"; "category"; "changedSince"; "part"; "since"; "code"; "policies" ]

let private numbers = set [ "timeoutMs"; "progressMs" ]

/// The arguments by their names; None where they are not all known, or not all literals.
let private argumentsIn (text: string) : Map<string, Literal> option =
    let rec all (start: int) (isMore: bool) (found: Map<string, Literal>) =
        if start = text.Length then (if isMore then None else Some found)
        else
            let one = argument.Match(text, start)
            let name = one.Groups.[1].Value
            let isText = one.Groups.[2].Success
            if not one.Success || found.ContainsKey name || not ((if isText then texts else numbers).Contains name) then None
            else
                let value = if isText then Text(unescaped one.Groups.[2].Value) else Number(int one.Groups.[3].Value)
                all (one.Index + one.Length) (one.Groups.[4].Value <> "") (found.Add(name, value))
    if String.IsNullOrWhiteSpace text then Some Map.empty else all 0 false Map.empty

/// Whether a call with these arguments raises nothing before it runs tests. Of one that does the compiler knows the place.
let private isRight (arguments: Map<string, Literal>) : bool =
    arguments |> Map.forall (fun name value ->
        match name, value with
        | "timeoutMs", Number limit -> limit > 0
        | "part", Text part -> part = "reached" || part = "rest"
        | "policies", Text policies -> (try MainstayDisplay.TestsChosen.policiesOf policies |> ignore; true with :? ArgumentException -> false)
        | _ -> true)

/// What a submission does that is such a call; None where it is anything else.
let read (text: string) : (unit -> unit) option =
    match call.Match text with
    | found when found.Success ->
        argumentsIn found.Groups.[1].Value |> Option.filter isRight |> Option.map (fun arguments ->
            let text (name: string) = match arguments.TryFind name with Some (Text text) -> Some text | _ -> None
            let number (name: string) = match arguments.TryFind name with Some (Number number) -> Some number | _ -> None
            fun () ->
                Mainstay.Tests.run (
                    ?pattern = text "pattern",
                    ?category = text "category",
                    ?timeoutMs = number "timeoutMs",
                    ?changedSince = text "changedSince",
                    ?progressMs = number "progressMs",
                    ?part = text "part",
                    ?since = text "since",
                    ?code = text "code",
                    ?policies = text "policies"
                ))
    | _ -> None
