/// What a restore of packages (`#r "nuget: …"`) says. The service hands it on as lines of the build, each with the path of a project that
/// it made up, and says all of it again with each further package: warnings on standard output, and an error with every warning as an
/// error beside it.
module Mainstay.Worker.Restores

open System
open System.Collections.Generic
open System.Text.RegularExpressions

/// One thing that a restore said: `warning` or `error`, NuGet's code, and its words.
type Said = { Severity: string; Code: string; Text: string }

let private line = Regex(@"^\S.*[/\\]Project\.fsproj : (warning|error) (NU[0-9]+): (.*)$", RegexOptions.CultureInvariant)

/// What a line says, if it is one of a restore's. `Text` begins with a blank where it goes on with what the line before it said.
let read (text: string) : Said option =
    let found = line.Match(text.TrimEnd())
    if found.Success then Some { Severity = found.Groups.[1].Value; Code = found.Groups.[2].Value; Text = found.Groups.[3].Value }
    else None

/// The same with lines that go on put behind those that they belong to.
let joined (said: Said list) : Said list =
    let add (before: Said list) (next: Said) =
        match before with
        | last :: others when next.Text.StartsWith " " && last.Code = next.Code -> { last with Text = last.Text.TrimEnd() + "\n" + next.Text } :: others
        | _ -> { next with Text = next.Text.Trim() } :: before
    said |> List.fold add [] |> List.rev

/// What a session's restores have said, so that each warning is told once.
type Told() =
    let told = HashSet<Said>()

    /// What of it is new; errors always are.
    member _.News(said: Said list) : Said list =
        said |> List.filter (fun one -> one.Severity = "error" || told.Add one)

/// Whether code may have packages restored.
let mayRestore (code: string) = code.IndexOf("nuget", StringComparison.OrdinalIgnoreCase) >= 0
