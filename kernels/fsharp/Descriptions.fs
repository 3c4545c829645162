/// Says of submissions what matters to running them again in the process that ran them, once a script has changed: which names they give a
/// meaning, which scripts they load, and why they must not run twice, where they do more than define. Nothing of them runs.
///
/// Definitions count as harmless, and what only computes: what the computing of a value changes elsewhere (`let n = list.Add 1`) cannot be seen.
module Mainstay.Worker.Descriptions

open System
open System.Collections.Generic
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Names
open Mainstay.Worker.Protocol
open Mainstay.Worker.Syntax

let private lengthLimit = 65536

/// Directives that may be carried out twice.
let private repeatable = HashSet<string> [ "load"; "r"; "I"; "nowarn"; "if"; "else"; "endif"; "elif" ]

let private directive = Regex(@"^[ \t]*#(?:(?!if\b|else\b|elif\b|endif\b))[ \t]*(\w+).*$", RegexOptions.Multiline ||| RegexOptions.CultureInvariant)

let private closing = Regex(@"^[ \t]*use!?[ \t]", RegexOptions.Multiline ||| RegexOptions.CultureInvariant)

let private assignments =
    HashSet<string> [ "Set"; "LongIdentSet"; "DotSet"; "DotIndexedSet"; "NamedIndexedPropertySet"; "DotNamedIndexedPropertySet" ]

let rec private assigns (tree: Tree) : bool =
    match tree with
    | Name name -> name = "op_ColonEquals"
    | Flag _ -> false
    | Node ("SynExpr", case, _) when assignments.Contains case -> true
    | Node (_, _, parts) -> List.exists assigns parts

let rec private declarationsIn (tree: Tree) : (string * Tree list) list =
    match tree with
    | Node ("SynModuleDecl", case, parts) -> [ (case, parts) ]
    | Node (_, _, parts) -> List.collect declarationsIn parts
    | Name _
    | Flag _ -> []

/// The names of a pattern, without those of arguments.
let rec private namesOfPattern (tree: Tree) : string list =
    match tree with
    | Node (("SynArgPats" | "SynType" | "SynExpr" | "SynValTyparDecls"), _, _)
    | Flag _ -> []
    | Name name -> [ name ]
    | Node (_, _, parts) -> List.collect namesOfPattern parts

let rec private hasArguments (tree: Tree) : bool =
    match tree with
    | Node ("SynArgPats", _, arguments) -> not (List.isEmpty arguments)
    | Node (_, _, parts) -> List.exists hasArguments parts
    | Name _
    | Flag _ -> false

let private patternsOf (binding: Tree list) : Tree list =
    binding |> List.filter (function Node ("SynPat", _, _) -> true | _ -> false)

let private bindingsOf (declaration: Tree list) : Tree list list = Plain.childrenOf "SynBinding" declaration |> List.map snd

let private boundBy (binding: Tree list) : string list = patternsOf binding |> List.collect namesOfPattern

let private moreThanDefines = "does more than define"

/// Why a declaration must not be carried out twice.
let rec private onceOf (case: string, parts: Tree list) : string option =
    match case with
    | "Let" ->
        let assignsNow binding = not (patternsOf binding |> List.exists hasArguments) && List.exists assigns binding
        let bindings = bindingsOf parts
        if bindings |> List.exists (boundBy >> List.isEmpty) then Some moreThanDefines
        elif bindings |> List.exists assignsNow then Some "assigns"
        else None
    | "NestedModule" -> parts |> List.collect declarationsIn |> List.tryPick onceOf
    | "Types"
    | "Exception"
    | "Open"
    | "ModuleAbbrev"
    | "HashDirective" -> None
    | _ -> Some moreThanDefines

/// The names that something gives a meaning, and whether there are others, which are not known.
type private Given = { Names: string list; HasOthers: bool }

let private nothing = { Names = []; HasOthers = false }

let private all (given: Given list) : Given =
    { Names = given |> List.collect (fun one -> one.Names); HasOthers = given |> List.exists (fun one -> one.HasOthers) }

/// Operators and active patterns are used without their names.
let private ofNames (names: string list) : Given =
    { Names = List.filter Plain.isOrdinary names; HasOthers = not (List.forall Plain.isOrdinary names) }

/// The types of a namespace of the framework's.
let private typesOf (space: string) : string list =
    let namesIn (assembly: Reflection.Assembly) =
        try
            [ for kind in assembly.GetExportedTypes() do
                if kind.Namespace = space && not kind.IsNested then (kind.Name.Split '`').[0] ]
        with _ -> []
    AppDomain.CurrentDomain.GetAssemblies() |> Seq.filter (fun assembly -> not assembly.IsDynamic) |> Seq.collect namesIn |> List.ofSeq

/// What scripts give: the modules that loading them brings, and the names that opening one of those does.
type private Scripts = { Modules: HashSet<string>; Inner: Given }

let private openedBy (scripts: Scripts) (parts: Tree list) : Given =
    match Plain.namesIn parts with
    | first :: _ when scripts.Modules.Contains first -> scripts.Inner
    | "System" :: _ as path ->
        match typesOf (String.concat "." path) with
        | [] -> { nothing with HasOthers = true } // its assembly may not be loaded yet
        | types -> ofNames types
    | _ -> { nothing with HasOthers = true }

/// What a declaration gives; with what its modules hold, where those are opened.
let rec private givenBy (isInner: bool) (scripts: Scripts) (case: string, parts: Tree list) : Given =
    match case with
    | "Let" -> bindingsOf parts |> List.collect boundBy |> ofNames
    | "Types"
    | "Exception" -> parts |> List.collect Plain.namesOfType |> ofNames
    | "NestedModule" ->
        let name = parts |> List.filter (function Node ("SynComponentInfo", _, _) -> true | _ -> false) |> List.collect Plain.namesOfType
        let inner = if isInner then parts |> List.collect declarationsIn |> List.map (givenBy true scripts) |> all else nothing
        all [ ofNames name; inner ]
    | "ModuleAbbrev" -> ofNames (List.truncate 1 (Plain.namesIn parts))
    | "Open" -> openedBy scripts parts
    | _ -> nothing

let private opensItself (text: string) = text.Contains "AutoOpen"

let private declarations (parse: string -> obj option) (text: string) : (string * Tree list) list option =
    if text.Length > lengthLimit then None
    else
        try
            parse (directive.Replace(text, "")) |> Option.map (read >> List.collect declarationsIn)
        with _ -> None

/// A script as it is now. Its declarations are None where it cannot be read: then it will not run either.
type private Script = { Path: string; Text: string; Declarations: (string * Tree list) list option }

let private scriptAt (parse: string -> obj option) (path: string) : Script =
    let text = try File.ReadAllText path with _ -> ""
    { Path = path; Text = text; Declarations = declarations parse text }

let private scriptsOf (scripts: Script list) : Scripts =
    let modules = scripts |> List.collect (fun script -> LoadedScripts.modulesOf script.Path script.Text)
    // What a script opens itself is not opened with it.
    let isOpen (case: string, _) = case = "Open"
    let nowhere = { Modules = HashSet<string>(); Inner = nothing }
    let given (script: Script) =
        match script.Declarations with
        | Some found -> found |> List.filter (isOpen >> not) |> List.map (givenBy true nowhere) |> all
        | None -> { nothing with HasOthers = true }
    { Modules = HashSet<string> modules; Inner = scripts |> List.map given |> all }

let private onceOfScript (script: Script) : string option =
    script.Declarations
    |> Option.bind (List.tryPick onceOf)
    |> Option.map (fun reason -> "loads " + Path.GetFileName script.Path + ", which " + reason)

let private directivesOnce (text: string) : string option =
    let words = directive.Matches text |> Seq.cast<Match> |> Seq.map (fun found -> found.Groups.[1].Value)
    if words |> Seq.exists (repeatable.Contains >> not) then Some moreThanDefines
    elif text.Contains "nuget:" then Some "refers to a package"
    else None

/// Describes submissions of a session; `nameOf` is what a script is called there by its path, and `folderOf` where a file's directives look.
let describe (own: Names) (parse: string -> obj option) (nameOf: string -> string) (folderOf: string option -> string) (codes: CodeText list) : Description list =
    let read = Dictionary<string, Script>()
    let script (path: string) =
        match read.TryGetValue path with
        | true, known -> known
        | _ ->
            read.[path] <- scriptAt parse path
            read.[path]
    let loaded = codes |> List.map (fun one -> LoadedScripts.paths (folderOf one.File) (Directives.find one.Code) |> List.map script)
    let scripts = scriptsOf (List.ofSeq read.Values)
    // What scripts define is known here, so what only computes can be told from the rest.
    let names = own.With(read.Values |> Seq.map (fun script -> directive.Replace(script.Text, "")), scripts.Modules)
    let onceOfText (text: string, found: (string * Tree list) list option) =
        if Purity.usesLast text then Some "uses `it`"
        elif not (Purity.changesState names parse text) then None
        elif closing.IsMatch text then Some moreThanDefines
        else
            match directivesOnce text, found with
            | Some reason, _ -> Some reason
            | None, Some declarations -> List.tryPick onceOf declarations
            | None, None -> Some "cannot be read"
    (codes, loaded) ||> List.map2 (fun one scriptsLoaded ->
        let texts = Splitter.split one.Code |> List.map (fun submission -> submission.Text, declarations parse submission.Text)
        let ofText (text: string, found: (string * Tree list) list option) =
            match found with
            | Some found when not (opensItself text) -> found |> List.map (givenBy false scripts) |> all
            | Some _
            | None -> { nothing with HasOthers = true }
        let ofScript (script: Script) =
            { Names = LoadedScripts.modulesOf script.Path script.Text; HasOthers = opensItself script.Text }
        let given = all (List.map ofText texts @ List.map ofScript scriptsLoaded)
        { Defines = List.distinct given.Names
          DefinesOthers = given.HasOthers
          Loads = scriptsLoaded |> List.map (fun script -> nameOf script.Path)
          RunsOnce =
            match List.tryPick onceOfText texts with
            | Some reason -> Some reason
            | None -> List.tryPick onceOfScript scriptsLoaded })
