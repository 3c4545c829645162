/// The warnings that a session has switched off: `#nowarn` holds for all that is submitted later, until `#warnon`. From F# 10 on the
/// compiler lets it hold for its own submission only.
module Mainstay.Worker.Silenced

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Compat

let private directive = Regex(@"\G#(nowarn|warnon)[ \t]+([^\r\n]*)", RegexOptions.CultureInvariant)
let private code = Regex(@"(?<![\w.])(?:FS)?0*(\d{1,5})(?!\w)", RegexOptions.CultureInvariant)

/// A message's number, without its letters and zeros.
let private numberOf (text: string) =
    match code.Match text with
    | found when found.Success && found.Length = text.Length -> Some found.Groups.[1].Value
    | _ -> None

/// What the directives of a text say, in order: whether it is switched off, and the numbers.
let private said (text: string) : (bool * string list) list =
    if not (text.Contains "#nowarn" || text.Contains "#warnon") then []
    else
        let resolved = Conditionals.resolve Splitter.afterToken text
        let isFirst index =
            let lineStart = if index = 0 then 0 else resolved.LastIndexOf('\n', index - 1) + 1
            String.IsNullOrWhiteSpace(resolved.Substring(lineStart, index - lineStart))
        let rec walk index found =
            if index >= resolved.Length then List.rev found
            else
                match (if resolved.[index] = '#' && isFirst index then directive.Match(resolved, index) else Match.Empty) with
                | one when one.Success ->
                    let words = Regex.Replace(one.Groups.[2].Value, @"//.*|;;.*", "")
                    let numbers = [ for number in code.Matches words -> number.Groups.[1].Value ]
                    walk (index + one.Length) ((one.Groups.[1].Value = "nowarn", numbers) :: found)
                | _ -> walk (Splitter.afterToken resolved index) found
        walk 0 []

/// The numbers that are switched off.
type Silenced() =
    let numbers = HashSet<string>()

    /// Takes in a submission that has run.
    member _.Learn(text: string) : unit =
        for isOff, codes in said text do
            if isOff then numbers.UnionWith codes else numbers.ExceptWith codes

    /// Without the warnings that are switched off.
    member _.Without(messages: CompilerMessage[]) : CompilerMessage[] =
        let isOff (message: CompilerMessage) =
            message.Severity <> "error" && (numberOf message.Code |> Option.exists numbers.Contains)
        if numbers.Count = 0 then messages else messages |> Array.filter (isOff >> not)
