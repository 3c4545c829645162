/// The names that a session's own code gives: what they mean there is not what they usually mean.
module Mainstay.Worker.Names

open System.Collections.Generic
open System.Text.RegularExpressions

/// What follows a word that defines: a name, an operator in parentheses, or the bars of an active pattern.
let private definition =
    Regex(@"(?<![\w.'`])(?:let|rec|inline|mutable|and|module|type|exception|private|internal|public)\s+(\(\s*\|?|``[^`]*``|[\w']+)",
          RegexOptions.CultureInvariant)

/// Directives that bring names from elsewhere.
let private elsewhere = Regex(@"^\s*#(?:load|r|use|I)\b", RegexOptions.Multiline ||| RegexOptions.CultureInvariant)

/// What the code of one session has defined so far. It is read and added to by different threads, never at once.
type Names() =
    let names = HashSet<string>()
    let modules = HashSet<string>()
    let mutable hasOperators = false
    let mutable hasPatterns = false
    let mutable hasOthers = false

    /// Takes note of what this code defines. Words in strings and comments count too, which does no harm.
    member _.Learn(code: string) =
        if elsewhere.IsMatch code then hasOthers <- true
        for found in definition.Matches code |> Seq.cast<Match> do
            let name = found.Groups.[1].Value
            if name.EndsWith("|", System.StringComparison.Ordinal) then hasPatterns <- true
            elif name.StartsWith("(", System.StringComparison.Ordinal) then hasOperators <- true
            else names.Add(name.Trim '`') |> ignore

    /// These and what some more code defines, which is in these modules, as if the session had brought in nothing else.
    member _.With(code: seq<string>, modulesOfCode: seq<string>) : Names =
        let more = Names()
        more.TakeOver(names, hasOperators, hasPatterns, modulesOfCode)
        Seq.iter more.Learn code
        more

    member private _.TakeOver(others: seq<string>, operators: bool, patterns: bool, modulesOfOthers: seq<string>) =
        names.UnionWith others
        hasOperators <- operators
        hasPatterns <- patterns
        modules.UnionWith modulesOfOthers

    /// Whether this is known to be a module, of which a value can be read without running anything.
    member _.IsModule(name: string) = modules.Contains name

    /// Whether the session has brought in what is not its own.
    member _.HasOthers = hasOthers

    /// Whether the session's own code gave this name.
    member _.Gives(name: string) = names.Contains name

    /// Whether this name may have been given another meaning.
    member _.Redefines(name: string) = hasOthers || names.Contains name

    /// Whether operators may have been given another meaning.
    member _.RedefinesOperators = hasOthers || hasOperators

    /// Whether a pattern may run the session's own code.
    member _.HasPatterns = hasOthers || hasPatterns
