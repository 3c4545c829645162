/// Answers `check` and `complete`: both check a text against the session's present definitions, and run nothing.
module Mainstay.Worker.Intellisense

open System
open System.Text.RegularExpressions
open Mainstay.Worker.Compat
open Mainstay.Worker.Diagnostics
open Mainstay.Worker.Protocol
open Mainstay.Worker.Evaluator

/// Signatures and documentation are worked out for this many proposals; each costs up to a millisecond.
let private describedLimit = 100

/// The diagnostics of the code.
let check (evaluator: Evaluator) (code: string) (file: string option) : Diagnostic list =
    let awaiting = Splitter.awaiting 1 code
    evaluator.CheckAhead(file, true, awaiting.Code, fun seen check -> (check seen.Text).Messages |> Ahead.inCode seen)
    |> diagnosticsOf file awaiting.Split

/// One line, without the blanks that align it.
let private squeezed (text: string) = Regex.Replace(text.Trim(), @"\s+", " ")

/// The service gives functions the sign of methods and union cases that of enumerations; its descriptions tell them apart.
let private exactKind (kind: string) (description: string) =
    match kind with
    | "method" when description.StartsWith("val ", StringComparison.Ordinal) -> "function"
    | "enumMember" when description.StartsWith("union case ", StringComparison.Ordinal) -> "unionCase"
    | _ -> kind

/// The type in a description such as `val sum : int list -> int` or `property String.Length: int`, the head of a type's, all of any other.
let private detailOf (kind: string) (description: string) =
    let colon = description.IndexOf(": ", StringComparison.Ordinal)
    let equals = description.IndexOf(" = ", StringComparison.Ordinal)
    match kind with
    | "property" when colon > 0 -> Regex.Replace(description.Substring(colon + 2), " with get(, set)?$| with set$", "")
    | "value" | "function" | "field" | "event" when colon > 0 -> description.Substring(colon + 2)
    | "class" | "struct" | "interface" | "type" | "union" | "enum" | "delegate" | "exception" when equals > 0 -> description.Substring(0, equals)
    | _ -> description

/// A text where there is one.
let nonEmpty (text: string) = if String.IsNullOrWhiteSpace text then None else Some text

let private described (proposal: Proposal) : CompletionItem =
    let text, documentation = proposal.Describe()
    let description = squeezed text
    let kind = exactKind proposal.Kind description
    { Label = proposal.NameInCode
      Kind = kind
      Detail = nonEmpty (detailOf kind description)
      Documentation = Documentation.summary documentation }

let private undescribed (proposal: Proposal) : CompletionItem =
    { Label = proposal.NameInCode; Kind = proposal.Kind; Detail = None; Documentation = None }

let private hasPrefix (prefix: string) (proposal: Proposal) = proposal.Name.StartsWith(prefix, StringComparison.OrdinalIgnoreCase)

/// What may stand at the cursor, and where the name being typed begins.
let complete (evaluator: Evaluator) (code: string) (cursor: Position) : CompletionItem list * Position =
    let lines = code.Split '\n'
    let line = if cursor.Line <= lines.Length then lines.[cursor.Line - 1].TrimEnd '\r' else ""
    let beforeCursor = line.Substring(0, min line.Length (cursor.Column - 1))
    let prefix = Compat.partialName beforeCursor
    let start = { cursor with Column = beforeCursor.Length - prefix.Length + 1 }
    // The service proposes nothing in a text that holds nothing.
    let text, line = if String.IsNullOrWhiteSpace code then "\n\n", 2 else code, cursor.Line
    // Who types waits for no package.
    evaluator.CheckAhead(None, false, text, fun seen check ->
        let proposals = (check seen.Text).Propose (line + seen.Origins.Length) beforeCursor
        let fitting = proposals |> Array.filter (hasPrefix prefix)
        let items = fitting |> Seq.mapi (fun index proposal -> if index < describedLimit then described proposal else undescribed proposal)
        List.ofSeq items, start)

/// Runs once what a first check and completion need, so that they need not wait for it.
let warmUp (evaluator: Evaluator) =
    // A module of F#'s, and a type of .NET's, whose members and documentation are looked up in other ways.
    for code in [ "List.len"; "System.String.Joi" ] do
        complete evaluator code { Line = 1; Column = code.Length + 1 } |> ignore
