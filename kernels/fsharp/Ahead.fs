/// What the directives of code will bring in, for those who look at the code before it has run: scripts as modules in front of it, and the
/// assemblies that it and they refer to.
module Mainstay.Worker.Ahead

open System
open System.Collections.Concurrent
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Compat
open Mainstay.Worker.Directives

/// The code with what stands in front of it, a line for each of `Origins`; assemblies; and messages, placed in the code itself.
type Seen =
    { Text: string
      Origins: LoadedScripts.Origin option[]
      References: string list
      Messages: CompilerMessage list
      /// The first directive that refers to something.
      Refers: Directive option }

let private message (severity: string) (code: string) (text: string) (place: Directive) : CompilerMessage =
    { Severity = severity
      Code = code
      Text = text
      File = anonymousFile
      StartLine = place.Line
      StartColumn = place.Column
      EndLine = place.Line
      EndColumn = place.Column + place.Length }

let private restored = ConcurrentDictionary<string, Packages>()

/// Packages that were restored once are not restored again; those that were not are only where someone can wait.
let private packagesOf (folder: string) (mayRestore: bool) (packages: string list) : Packages option =
    let key = packages |> List.distinct |> List.sort |> String.concat "\n"
    match restored.TryGetValue key with
    | true, known -> Some { known with Lines = [] }
    | _ when not mayRestore -> None
    | _ ->
        let found = try restorePackages folder packages with _ -> None
        match found with
        | Some packages when not (List.isEmpty packages.Assemblies) -> restored.[key] <- packages
        | _ -> ()
        found

let private framework = Regex(@"^\s*framework\s*:\s*(.*?)\s*$", RegexOptions.CultureInvariant)

/// The assemblies of an argument, of a package none.
let private assembliesOf (reference: LoadedScripts.Reference) (argument: string) : string list =
    let named = framework.Match argument
    if (package argument).IsSome then []
    elif named.Success then Frameworks.assembliesOf named.Groups.[1].Value |> Option.defaultValue []
    else file reference.Folders argument |> Option.toList

/// The same text, without the directives whose files were found: the compiler would look for them once more.
let private without (directives: Directive list) (text: string) : string =
    let lines = text.Split '\n'
    for one in directives do
        let line = lines.[one.Line - 1]
        lines.[one.Line - 1] <- line.Remove(one.Column, one.Length).Insert(one.Column, String(' ', one.Length))
    String.concat "\n" lines

let private nothing (text: string) : Seen = { Text = text; Origins = [||]; References = []; Messages = []; Refers = None }

/// Looks at code whose directives look from a folder. Packages are restored for it where they may be, which can take seconds.
let look (folder: string) (mayRestore: bool) (code: string) : Seen =
    match Directives.find code with
    | [] -> nothing code
    | directives ->
        let loaded = LoadedScripts.find [ folder ] directives
        let arguments = [ for reference in loaded.References do for argument in reference.Arguments -> reference, argument ]
        let wanted = arguments |> List.choose (fun (reference, argument) -> package argument |> Option.map (fun package -> reference, package))
        let messages, ofPackages =
            match wanted with
            | [] -> [], []
            | (first, _) :: _ ->
                match packagesOf folder mayRestore (List.map snd wanted) with
                | Some packages ->
                    let said = packages.Lines |> List.choose Restores.read |> Restores.joined
                    said |> List.map (fun said -> message said.Severity said.Code said.Text first.For), packages.Assemblies
                | None -> [], []
        let isAnswered = not (List.isEmpty ofPackages && List.isEmpty messages)
        let isFound (one: Directive) =
            match one.Word, loaded.References |> List.tryFind (fun reference -> obj.ReferenceEquals(reference.For, one)) with
            | "r", Some reference ->
                let isThere argument = if (package argument).IsSome then isAnswered else not (List.isEmpty (assembliesOf reference argument))
                List.forall isThere one.Arguments
            | "load", _ -> one.Arguments |> List.forall loaded.Knows
            | _ -> false
        let front = loaded.Lines |> List.map (fun (line, _) -> line + "\n") |> String.concat ""
        { Text = front + (Splitter.withFrameworks (without (directives |> List.filter isFound) code)).Code
          Origins = loaded.Lines |> List.map snd |> Array.ofList
          References = ofPackages @ (arguments |> List.collect (fun (reference, argument) -> assembliesOf reference argument)) |> List.distinct
          Messages = messages
          Refers = loaded.References |> List.tryHead |> Option.map (fun reference -> reference.For) }

/// The same while other code runs, when nothing can be referred to.
let withoutReferences (seen: Seen) : Seen =
    match seen.Refers with
    | Some place when not (List.isEmpty seen.References) ->
        let text = "Code runs in the session: what this refers to can be looked into when that has ended. Until then its names are unknown."
        { seen with References = []; Messages = message "info" "code_runs" text place :: seen.Messages }
    | _ -> seen

/// The compiler's messages about the text as messages about the code: those about a script are where the code loads it, errors only.
let inCode (seen: Seen) (messages: CompilerMessage[]) : CompilerMessage[] =
    let count = seen.Origins.Length
    let moved (one: CompilerMessage) =
        if one.StartLine > count || one.StartLine = 0 then Some { one with StartLine = one.StartLine - count; EndLine = one.EndLine - count }
        else
            match seen.Origins.[one.StartLine - 1] with
            | Some origin when one.Severity = "error" ->
                let where = sprintf "%s(%d,%d): " origin.Script origin.Line (max 1 (one.StartColumn + 1 - origin.Moved))
                Some(message one.Severity one.Code (where + one.Text) origin.LoadedBy)
            | _ -> None
    Array.append (Array.ofList seen.Messages) (Array.choose moved messages)
