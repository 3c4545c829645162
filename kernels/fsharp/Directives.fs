/// The directives of a text that bring something in: `#r`, `#load`, `#I`. Those in strings, in comments and in what conditional compilation
/// leaves out are none.
module Mainstay.Worker.Directives

open System
open System.IO
open System.Text.RegularExpressions

/// A directive: its word without the sign, its arguments, and where it stands; `Line` counts from 1, `Column` and `Length` in characters.
type Directive = { Word: string; Arguments: string list; Line: int; Column: int; Length: int }

let private pattern = Regex(@"\G#(r|load|I)((?:[ \t]+@?""[^""\r\n]*"")+)", RegexOptions.CultureInvariant)
let private argument = Regex(@"(@?)""([^""]*)""", RegexOptions.CultureInvariant)

let private textOf (found: Match) =
    let text = found.Groups.[2].Value
    if found.Groups.[1].Value = "@" then text else text.Replace(@"\\", @"\")

/// The directives of a text, in order.
let find (text: string) : Directive list =
    if text.IndexOf '#' < 0 then []
    else
        let code = Conditionals.resolve Splitter.afterToken text
        let found = ResizeArray<Directive>()
        let mutable line, lineStart, index = 1, 0, 0
        let advanceTo target =
            while index < target do
                if code.[index] = '\n' then
                    line <- line + 1
                    lineStart <- index + 1
                index <- index + 1
        while index < code.Length do
            let directive =
                if code.[index] = '#' && String.IsNullOrWhiteSpace(code.Substring(lineStart, index - lineStart)) then pattern.Match(code, index)
                else Match.Empty
            if directive.Success then
                let arguments = [ for one in argument.Matches directive.Groups.[2].Value -> textOf one ]
                found.Add { Word = directive.Groups.[1].Value; Arguments = arguments; Line = line; Column = index - lineStart; Length = directive.Length }
                advanceTo (index + directive.Length)
            else
                advanceTo (Splitter.afterToken code index)
        List.ofSeq found

/// What a package manager is asked for, without its name: ` FParsec, 1.1.1` of `nuget: FParsec, 1.1.1`.
let package (argument: string) : string option =
    let text = argument.TrimStart()
    if text.StartsWith("nuget", StringComparison.OrdinalIgnoreCase) && text.Substring(5).TrimStart().StartsWith ":" then
        Some(text.Substring(text.IndexOf ':' + 1).Trim())
    else None

/// The file that an argument names, looked up from these folders in order; None where there is none.
let file (folders: string list) (argument: string) : string option =
    if String.IsNullOrWhiteSpace argument then None
    else folders |> List.map (fun folder -> Path.GetFullPath(Path.Combine(folder, argument))) |> List.tryFind File.Exists
