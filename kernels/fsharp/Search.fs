/// Answers `search`: what the session defined or refers to that has a text in its name: namespaces' types and modules, and what modules hold.
/// Members of types are for `explore`.
module Mainstay.Worker.Search

open System
open System.Collections.Generic
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol
open Mainstay.Worker.Evaluator

/// Something with a name. What it is told by is worked out only where it is found.
type private Named =
    { Name: string
      FullName: string
      Assembly: string option
      Describe: unit -> SymbolItem }

let private kindOfEntity (entity: Entity) = if entity.IsFSharpModule then "module" else "type"

/// What a name stands in: submissions of the session are modules of their own, whose names nobody writes.
let private within (path: string) =
    path.Split '.' |> Array.filter (fun part -> part <> "" && part <> "global" && not (part.StartsWith("FSI_", StringComparison.Ordinal))) |> String.concat "."

let private qualified (path: string) (name: string) = match within path with "" -> name | path -> path + "." + name

let private namedEntity (assembly: string option) (path: string) (entity: Entity) : Named =
    let fullName = qualified path entity.DisplayName
    { Name = entity.DisplayName
      FullName = fullName
      Assembly = assembly
      Describe =
        fun () ->
            { Name = entity.DisplayName
              FullName = fullName
              Kind = kindOfEntity entity
              Signature = None
              Documentation = Documentation.summary (symbolDocumentation entity)
              Assembly = assembly } }

let private namedMember (assembly: string option) (path: string) (m: Member) : Named =
    let name = Bound.nameInCode m.DisplayName
    let fullName = qualified path name
    { Name = name
      FullName = fullName
      Assembly = assembly
      Describe =
        fun () ->
            { Name = name
              FullName = fullName
              Kind = Explorer.kindOfMember m
              Signature = Explorer.signatureOf (fun () -> Compat.signatureOf m (DisplayContext.Empty.WithShortTypeNames true))
              Documentation = Documentation.summary (symbolDocumentation m)
              Assembly = assembly } }

let rec private namesIn (assembly: string option) (path: string) (entity: Entity) : seq<Named> =
    seq {
        if entity.Accessibility.IsPublic && not entity.IsNamespace then
            let isSubmission = within entity.DisplayName = ""
            let below = qualified path entity.DisplayName
            if not isSubmission then namedEntity assembly path entity
            if entity.IsFSharpModule then
                for m in entity.MembersFunctionsAndValues do
                    if m.Accessibility.IsPublic && not m.IsCompilerGenerated then namedMember assembly below m
            for nested in entity.NestedEntities do
                yield! namesIn assembly below nested
    }

let private namesOf (assembly: string option) (entities: seq<Entity>) : Named[] =
    [| for entity in entities do
        // One that cannot be read hides no other.
        yield! (try List.ofSeq (namesIn assembly entity.AccessPath entity) with _ -> []) |]

/// What the assemblies hold that were searched before: it does not change.
let private known = Dictionary<string, Named[]>()

let private namesOfAssembly (assembly: Referenced) : Named[] =
    let key = defaultArg assembly.FileName assembly.QualifiedName
    match known.TryGetValue key with
    | true, names -> names
    | _ ->
        let names = namesOf (Some assembly.SimpleName) assembly.Contents.Entities
        known.[key] <- names
        names

/// What the session defined. Of two with one name only the newer can be reached.
let private namesOfSession (evaluator: Evaluator) : Named[] =
    evaluator.Session.CurrentPartialAssemblySignature.Entities
    |> Seq.filter (fun entity -> not (evaluator.Hides entity))
    |> Seq.sortByDescending submissionOf
    |> namesOf None
    |> Array.distinctBy (fun named -> named.FullName)

/// How well a name fits: the whole of it, its beginning, or a part; the shorter of two first.
let private rank (text: string) (named: Named) =
    let ignoring = StringComparison.OrdinalIgnoreCase
    let fit =
        if named.Name.Equals(text, ignoring) || named.FullName.Equals(text, ignoring) then 0
        elif named.Name.StartsWith(text, ignoring) then 1
        else 2
    fit, named.Assembly.IsSome, named.FullName.Length, named.FullName

let private fits (text: string) (named: Named) =
    let sought = if text.Contains "." then named.FullName else named.Name
    sought.IndexOf(text, StringComparison.OrdinalIgnoreCase) >= 0

/// What fits best, at most so many, and how many fit.
let search (evaluator: Evaluator) (text: string) (limit: int) : SymbolItem list * int =
    let text = text.Trim()
    evaluator.Check(fun () ->
        let assemblies = (Compat.check evaluator.Session "").Assemblies()
        let all = Seq.append (namesOfSession evaluator) (assemblies |> Seq.collect namesOfAssembly)
        let found = all |> Seq.filter (fits text) |> Seq.distinctBy (fun named -> named.FullName, named.Assembly) |> Array.ofSeq
        let best = found |> Array.sortBy (rank text) |> Array.truncate limit
        best |> Array.map (fun named -> named.Describe()) |> List.ofArray, found.Length)
