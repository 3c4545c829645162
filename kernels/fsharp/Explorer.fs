/// Answers `explore`: what a namespace, a module or a type holds, or what a function or value is. The name is looked up as the session
/// would at its prompt.
module Mainstay.Worker.Explorer

open System
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol
open Mainstay.Worker.Evaluator

let private kindOfEntity (entity: Entity) =
    if entity.IsNamespace then "namespace"
    elif entity.IsFSharpModule then "module"
    else "type"

let private documented symbol = Documentation.summary (symbolDocumentation symbol)

let signatureOf (format: unit -> string) =
    try Intellisense.nonEmpty (format ()) with _ -> None

let private isAccessor (m: Member) =
    m.IsPropertyGetterMethod || m.IsPropertySetterMethod || m.IsEventAddMethod || m.IsEventRemoveMethod

let kindOfMember (m: Member) =
    if m.IsConstructor then "constructor"
    elif m.IsEvent then "event"
    elif m.IsProperty then "property"
    elif m.IsMember then "method"
    elif m.FullType.IsFunctionType then "function"
    else "value"

let private memberItem (context: DisplayContext) (m: Member) : MemberItem =
    { Name = (if m.IsConstructor then "new" else Bound.nameInCode m.DisplayName)
      Kind = kindOfMember m
      Signature = signatureOf (fun () -> Compat.signatureOf m context)
      Documentation = documented m }

/// The type that an abbreviation such as `string` stands for.
let rec private unabbreviated (entity: Entity) : Entity =
    if entity.IsFSharpAbbreviation && entity.AbbreviatedType.HasTypeDefinition then unabbreviated entity.AbbreviatedType.TypeDefinition
    else entity

/// What a module or type holds, as the compiler lists it.
let private membersOfEntity (context: DisplayContext) (entity: Entity) : MemberItem list =
    [ for case in entity.UnionCases do
        { Name = case.Name
          Kind = "unionCase"
          Signature = signatureOf (fun () -> fieldsOfCase case |> List.map (fun field -> field.FieldType.Format context) |> String.concat " * ")
          Documentation = documented case }
      for field in entity.FSharpFields do
        if field.Accessibility.IsPublic && not field.IsCompilerGenerated then
            { Name = field.Name
              Kind = "field"
              Signature = signatureOf (fun () -> field.FieldType.Format context)
              Documentation = documented field }
      for m in entity.MembersFunctionsAndValues |> Seq.sortBy (fun m -> m.DisplayName) do
        if m.Accessibility.IsPublic && not m.IsCompilerGenerated && not (isAccessor m) then memberItem context m
      for nested in entity.NestedEntities do
        if nested.Accessibility.IsPublic then
            { Name = nested.DisplayName; Kind = kindOfEntity nested; Signature = None; Documentation = documented nested } ]

let private ofProposal (proposal: Proposal) : MemberItem =
    { Name = proposal.Name; Kind = proposal.Kind; Signature = None; Documentation = None }

/// The module or types that stand beside an entity under its own name: a lookup finds one of them.
let private namesakes (entity: Entity) : Entity list =
    let beside =
        try
            match entity.DeclaringEntity with
            | Some outer -> List.ofSeq outer.NestedEntities
            | None -> entity.Assembly.Contents.Entities |> Seq.filter (fun other -> other.AccessPath = entity.AccessPath) |> List.ofSeq
        with _ -> []
    beside |> List.filter (fun other -> other.DisplayName = entity.DisplayName && other.Accessibility.IsPublic)

/// The entities that a name stands for: a module and a type may share one.
let private entitiesNamed (name: string) (lookup: Checked) : (Entity * DisplayContext) list =
    let last = name.Substring(name.LastIndexOf '.' + 1)
    lookup.SymbolsAt 1 name
    |> List.choose (fun (symbol, context) ->
        match symbol with
        | :? Entity as entity when entity.DisplayName = last || entity.CompiledName = last -> Some(entity, context)
        | _ -> None)
    |> List.collect (fun (entity, context) ->
        (entity, context) :: (if entity.IsNamespace then [] else namesakes entity |> List.map (fun other -> other, context)))
    |> List.distinctBy (fun (entity, _) -> entity.CompiledName, entity.GenericParameters.Count, entity.IsFSharpModule)

/// The types that a type inherits from, the nearest first.
let rec private basesOf (context: DisplayContext) (entity: Entity) : string list =
    match (try entity.BaseType with _ -> None) with
    | Some parent when parent.HasTypeDefinition -> parent.Format context :: basesOf context parent.TypeDefinition
    | _ -> []

let private interfacesOf (context: DisplayContext) (entity: Entity) : string list =
    (try [ for implemented in entity.AllInterfaces -> implemented.Format context ] with _ -> []) |> List.distinct |> List.sort

/// What a namespace, module or type holds, or None where the name stands for none.
let private holder (evaluator: Evaluator) (name: string) : Explored option =
    let lookUp text = Compat.check evaluator.Session text
    evaluator.Check(fun () ->
        match entitiesNamed name (lookUp name) |> List.filter (fun (entity, _) -> not (evaluator.Hides entity)) with
        | [] -> None
        | found when found |> List.exists (fun (entity, _) -> entity.IsNamespace) ->
            let line = name + "."
            let members = (lookUp line).Propose 1 line |> Seq.map ofProposal |> Seq.sortBy (fun item -> item.Name) |> List.ofSeq
            Some { Kind = "namespace"; Documentation = None; Bases = []; Interfaces = []; Members = members }
        | found ->
            let modules, types = found |> List.partition (fun (entity, _) -> entity.IsFSharpModule)
            let members = modules @ types |> List.collect (fun (entity, context) -> membersOfEntity context (unabbreviated entity))
            let typed (of': DisplayContext -> Entity -> string list) =
                match modules, types with
                | [], (entity, context) :: _ -> of' context (unabbreviated entity)
                | _ -> []
            Some
                { Kind = (if List.isEmpty modules then "type" else "module")
                  Documentation = modules @ types |> List.tryPick (fun (entity, _) -> documented entity)
                  Bases = typed basesOf
                  Interfaces = typed interfacesOf
                  Members = List.distinct members })

/// A name as it is compared: of an operator the signs alone, however it is written.
let private bare (name: string) = (Bound.nameInCode name).Trim('(', ')', ' ', '`')

/// A name, parted into what it stands in and the last of it. The signs of an operator may have dots among them.
let private parted (name: string) : (string * string) option =
    let upTo = match name.IndexOf '(' with -1 -> name.Length | at -> at
    match name.LastIndexOf('.', max 0 (upTo - 1)) with
    | -1 | 0 -> None
    | at -> Some(name.Substring(0, at), name.Substring(at + 1))

/// What a module or type holds under a name: of a method every overload.
let private held (evaluator: Evaluator) (name: string) : Explored option =
    parted name |> Option.bind (fun (inside, last) ->
        holder evaluator inside |> Option.bind (fun found ->
            match found.Members |> List.filter (fun item -> bare item.Name = bare last) with
            | [] -> None
            | first :: _ as members ->
                Some
                    { Kind = first.Kind
                      Documentation = first.Documentation
                      Bases = []
                      Interfaces = []
                      Members = members }))

/// What a name stands for that is no namespace, module or type: of the session, or of what is open in it.
let private plain (evaluator: Evaluator) (name: string) : Explored option =
    let text = bare name
    let line = if text |> Seq.exists (fun c -> Char.IsLetterOrDigit c || c = '_') then text else "(" + text + ")"
    evaluator.Check(fun () ->
        (Compat.check evaluator.Session line).Uses()
        |> Array.tryPick (fun used ->
            match used.Symbol with
            | :? Member as m when bare m.DisplayName = text && not (m.DeclaringEntity |> Option.exists evaluator.Hides) ->
                let item = memberItem used.DisplayContext m
                Some
                    { Kind = item.Kind
                      Documentation = item.Documentation
                      Bases = []
                      Interfaces = []
                      Members = [ item ] }
            | _ -> None))

/// What the name stands for and what it holds, or None where it stands for nothing.
let explore (evaluator: Evaluator) (name: string) : Explored option =
    let name = name.Trim()
    holder evaluator name
    |> Option.orElseWith (fun () -> held evaluator name)
    |> Option.orElseWith (fun () -> plain evaluator name)
