/// What `#load` brings in, as a check sees it before anything has run: the text of each script as a module in front of the code that
/// is checked.
module Mainstay.Worker.LoadedScripts

open System
open System.Collections.Generic
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Directives

/// Where a line of the modules comes from: the script, its line there, and by how many columns it was moved. None of a line of our own.
type Origin = { Script: string; Line: int; Moved: int; LoadedBy: Directive }

/// What an `#r` of the code or of a script refers to, and the folders in which that is looked for. `For` stands in the code.
type Reference = { Arguments: string list; Folders: string list; For: Directive }

/// The modules in lines, each with where it comes from, and what the code and the scripts refer to; whether the script is among them that
/// the code names so.
type Loaded =
    { Lines: (string * Origin option) list
      References: Reference list
      Knows: string -> bool }

let private header = Regex(@"^(module|namespace)\s+(?:rec\s+)?(?:(?:public|internal|private)\s+)?(?:rec\s+)?((?:[\w']+|``[^`]+``)(?:\.(?:[\w']+|``[^`]+``))*)\s*(=?)", RegexOptions.CultureInvariant)
let private directive = Regex(@"^\s*#(?!\s*(?:if|else|elif|endif)\b)", RegexOptions.CultureInvariant)
let private isName = Regex(@"^[\w']+$", RegexOptions.CultureInvariant)

/// The module that the service makes of a script that names none: its file's name, with a capital.
let private moduleOf (path: string) : string =
    let name = Path.GetFileNameWithoutExtension path
    let name = if name = "" then name else name.Substring(0, 1).ToUpperInvariant() + name.Substring 1
    if isName.IsMatch name then name else "``" + name + "``"

let private parts (name: string) : string list = [ for part in Regex.Matches(name, @"``[^`]+``|[^.]+") -> part.Value ]

/// The lines of a script as modules, and the namespace in which they end. What stands in front of its header belongs to what the header
/// names. A namespace can be gone on with, which a module cannot: `before` is the one in which the script before this one ended.
let private asModules (path: string) (loadedBy: Directive) (before: string option) (text: string) : (string * Origin option) list * string option =
    let lines = text.TrimStart('\uFEFF').Split '\n' |> Array.map (fun line -> line.TrimEnd '\r')
    let found = ResizeArray<string * Origin option>()
    let put depth index (line: string) =
        let line = if directive.IsMatch line || (index = 0 && line.StartsWith "#!") then "" else line
        found.Add(String(' ', depth) + line, Some { Script = path; Line = index + 1; Moved = depth; LoadedBy = loadedBy })
    let opened (names: string list) = names |> List.iteri (fun depth name -> found.Add(String(' ', depth) + "module " + name + " =", None))
    let headerOf (line: string) =
        let found = header.Match line
        if found.Success && found.Groups.[3].Value = "" then Some(found.Groups.[1].Value, found.Groups.[2].Value) else None
    let mutable depth = 0
    let mutable space = before
    let isHeaded = lines |> Array.exists (headerOf >> Option.isSome)
    if not isHeaded then
        opened [ moduleOf path ]
        depth <- 1
    let mutable inFront: (int * string) list = [] // the lines in front of the header
    let mutable isBefore = isHeaded
    for index in 0 .. lines.Length - 1 do
        match headerOf lines.[index] with
        | Some ("namespace", "global") ->
            depth <- 0
            space <- None
            isBefore <- false
        | Some ("namespace", name) when space = Some name ->
            depth <- List.length (parts name)
            inFront <- []
            isBefore <- false
        | Some (word, name) ->
            let names = parts name
            space <- if word = "namespace" then Some name else None
            opened (List.take (names.Length - 1) names)
            depth <- names.Length - 1
            for line, text in List.rev inFront do put depth line text
            inFront <- []
            found.Add(String(' ', depth) + "module " + List.last names + " =", None)
            depth <- depth + 1
            isBefore <- false
        | None when isBefore -> inFront <- (index, lines.[index]) :: inFront
        | None -> put depth index lines.[index]
    // A module holds something.
    found.Add(String(' ', depth) + "do ()", None)
    List.ofSeq found, (if isHeaded then space else None)

/// The modules that loading a script brings, part by part.
let modulesOf (path: string) (text: string) : string list =
    let headed =
        [ for line in text.TrimStart('\uFEFF').Split '\n' do
            let found = header.Match(line.TrimEnd '\r')
            if found.Success && found.Groups.[3].Value = "" && found.Groups.[2].Value <> "global" then yield! parts found.Groups.[2].Value ]
    if List.isEmpty headed then [ (moduleOf path).Trim '`' ] else headed

/// How many characters of scripts a check looks into.
let private limit = 4 * 1024 * 1024

/// The scripts that these directives load, and those that they load, each once and in the order in which they are run. A script that is
/// not there, or with which there are more characters than the limit, is left to the compiler.
let find (folders: string list) (directives: Directive list) : Loaded =
    let seen = HashSet<string>()
    let known = HashSet<string>()
    let mutable left = limit
    let mutable space = None
    let lines, references = ResizeArray<string * Origin option>(), ResizeArray<Reference>()
    let rec load (first: Directive option) (folders: string list) (directives: Directive list) =
        let mutable folders = folders
        for one in directives do
            match one.Word with
            | "I" -> folders <- folders @ [ for added in one.Arguments -> Path.GetFullPath(Path.Combine(List.head folders, added)) ]
            | "r" -> references.Add { Arguments = one.Arguments; Folders = folders; For = Option.defaultValue one first }
            | _ ->
                for argument in one.Arguments do
                    match file folders argument with
                    | Some path when not (seen.Add path) -> known.Add argument |> ignore
                    | Some path ->
                        let text = try (if FileInfo(path).Length <= int64 left then File.ReadAllText path else "") with _ -> ""
                        left <- left - text.Length
                        if not (String.IsNullOrWhiteSpace text) then
                            if first.IsNone then known.Add argument |> ignore
                            let by = Option.defaultValue one first
                            load (Some by) (Path.GetDirectoryName path :: List.tail folders) (Directives.find text)
                            let made, ends = asModules path by space text
                            lines.AddRange made
                            space <- ends
                    | _ -> ()
    load None folders directives
    { Lines = List.ofSeq lines; References = List.ofSeq references; Knows = known.Contains }

/// The paths of what `find` finds, in the order in which they are run.
let paths (folder: string) (directives: Directive list) : string list =
    if List.isEmpty directives then []
    else (find [ folder ] directives).Lines |> List.choose (snd >> Option.map (fun origin -> origin.Script)) |> List.distinct
