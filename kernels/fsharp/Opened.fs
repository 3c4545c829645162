/// The names that an `open` brings, for code of a file in which it is new or gone.
module Mainstay.Worker.Opened

open System
open System.Collections.Generic
open Mainstay.Worker.Compat
open Mainstay.Worker.Outline

/// The words with which a computation expression calls methods that it does not name.
let ofExpressions = Set.ofList [ "!"; "return"; "yield"; "for"; "while"; "use"; "try"; "if" ]

let private has (attribute: string) (entity: Entity) =
    try entity.Attributes |> Seq.exists (fun one -> one.AttributeType.CompiledName = attribute) with _ -> false

/// A name as code mentions it: an operator without its parentheses, a pattern case by case.
let private asMentioned (name: string) : string list =
    let bare = name.Trim('(', ')', ' ', '`')
    let ofAttribute = "Attribute"
    if bare.StartsWith("|", StringComparison.Ordinal) && bare.Length > 1 && Char.IsLetter bare.[1] then
        bare.Split([| '|' |], StringSplitOptions.RemoveEmptyEntries) |> Array.filter ((<>) "_") |> List.ofArray
    elif bare.EndsWith(ofAttribute, StringComparison.Ordinal) then [ bare; bare.Substring(0, bare.Length - ofAttribute.Length) ]
    else [ bare ]

/// The names that something shows which is in what is opened.
let rec private shownBy (entity: Entity) : string seq =
    seq {
        yield entity.DisplayName
        if entity.IsFSharpModule then
            if has "AutoOpenAttribute" entity then yield! within entity
        else
            // Values of enumerations and static members are named with their type; what extends another type is not.
            if entity.IsFSharpUnion then yield! entity.UnionCases |> Seq.map (fun case -> case.DisplayName)
            if entity.IsFSharpRecord then yield! entity.FSharpFields |> Seq.map (fun field -> field.DisplayName)
            if has "ExtensionAttribute" entity then yield! entity.MembersFunctionsAndValues |> Seq.map (fun one -> one.DisplayName)
    }

/// The names in a module, or in a type that is opened.
and private within (entity: Entity) : string seq =
    seq {
        yield! entity.MembersFunctionsAndValues |> Seq.map (fun one -> one.DisplayName)
        if entity.IsFSharpUnion then yield! entity.UnionCases |> Seq.map (fun case -> case.DisplayName)
        yield! entity.NestedEntities |> Seq.collect shownBy
    }

let private pathOf (space: Entity) : string =
    match space.AccessPath with
    | "global" -> space.DisplayName
    | outer -> outer + "." + space.DisplayName

/// The names in a namespace.
let private inNamespace (assemblies: Referenced list) (path: string) : string seq =
    let inner (entity: Entity) =
        if entity.AccessPath = path then shownBy entity
        elif entity.AccessPath.StartsWith(path + ".", StringComparison.Ordinal) then Seq.singleton (entity.AccessPath.Substring(path.Length + 1).Split('.').[0])
        else Seq.empty
    assemblies |> Seq.collect (fun assembly -> assembly.Contents.Entities |> Seq.collect (fun entity -> try List.ofSeq (inner entity) with _ -> []))

/// What is opened by a text, which has been checked, in its last line: several modules may have one name.
let private openedBy (text: string) (found: Checked) : Entity list =
    let last = text.TrimEnd().Split('\n').Length
    found.Uses()
    |> Seq.filter (fun one -> (placeOfUse one).StartLine = last)
    |> Seq.choose (fun one -> match one.Symbol with :? Entity as entity -> Some((placeOfUse one).StartColumn, entity) | _ -> None)
    |> Seq.groupBy fst
    |> Seq.sortBy fst
    |> Seq.tryLast
    |> Option.map (snd >> Seq.map snd >> List.ofSeq)
    |> Option.defaultValue []

/// The names that what code opens brings. `check` checks a text that mentions nothing else.
type Names(check: string -> Checked) =
    let known = Dictionary<string, Set<string> option>()

    let read (text: string) : Set<string> option =
        try
            let found = check text
            if found.Messages |> Array.exists (fun message -> message.Severity = "error") then None
            else
                match openedBy text found with
                | [] -> None
                | entities ->
                    let namesOf (entity: Entity) = if entity.IsNamespace then inNamespace (found.Assemblies()) (pathOf entity) else within entity
                    let names = entities |> Seq.collect namesOf |> Seq.collect asMentioned |> Set.ofSeq
                    Some(if Set.isEmpty (Set.intersect names builderMembers) then names else names + ofExpressions)
        with _ -> None

    /// None where that cannot be told. `context` is what is opened before.
    member _.Of(context: Opening list, opening: string) : Set<string> option =
        let before = context |> List.map (function Opens text -> text | Own path -> "open " + Slices.pathInCode path)
        let text = "module Opened =\n" + String.Join("\n", [ for line in before @ [ opening ] -> " " + line ])
        match known.TryGetValue text with
        | true, names -> names
        | _ ->
            let names = read text
            known.[text] <- names
            names
