/// What the tree says of a binding, a member or the head of a module: the name, the arguments, the body. Pure.
module Mainstay.Worker.Bindings

open Mainstay.Worker.Outline
open Mainstay.Worker.FileText
open Mainstay.Worker.Syntax

/// The name in a pattern, where it stands, and whether arguments follow.
let rec nameIn (pattern: Placed) : (string * Place * Placed list) option =
    match pattern.Case with
    | "Named" -> node "SynIdent" pattern |> Option.orElse (Some pattern) |> Option.bind (fun one -> one.Parts |> List.tryFind (fun part -> part.Word.IsSome)) |> Option.map (fun name -> name.Word.Value, name.Place, [])
    | "LongIdent" ->
        let name = pattern.Parts |> List.tryFind isLongName
        let last = name |> Option.bind (fun one -> one.Parts |> List.filter (fun part -> part.Word.IsSome) |> List.tryLast)
        let arguments = node "SynArgPats" pattern |> Option.map (fun one -> one.Parts) |> Option.defaultValue []
        last |> Option.map (fun last -> last.Word.Value, last.Place, arguments)
    | "Typed"
    | "Paren" -> node "SynPat" pattern |> Option.bind nameIn
    | _ -> None

/// What a binding binds.
let patternOf (binding: Placed) = node "SynPat" binding

/// What it is bound to.
let expressionOf (binding: Placed) = nodes "SynExpr" binding |> List.tryLast

/// The names that the patterns of a binding's arguments give.
let argumentsOf (pattern: Placed) : Set<string> =
    match node "SynArgPats" pattern with
    | None -> Set.empty
    | Some arguments ->
        let named = below arguments |> Seq.filter (fun part -> part.Union = "SynPat" && part.Case = "Named") |> Seq.choose nameIn |> Seq.map (fun (name, _, _) -> name)
        let optional = below arguments |> Seq.filter (fun part -> part.Union = "SynPat" && part.Case = "OptionalVal") |> Seq.collect words
        Set.ofSeq (Seq.append named optional)

/// Where the access of what a pattern names stands.
let rec headOf (pattern: Placed) : Placed =
    match pattern.Case, node "SynPat" pattern with
    | ("Typed" | "Paren"), Some inner -> headOf inner
    | _ -> pattern

/// Whether an expression is a function without a name.
let rec isLambda (expression: Placed) =
    match expression.Case with
    | "Lambda"
    | "MatchLambda" -> true
    | "Paren"
    | "Typed" -> node "SynExpr" expression |> Option.exists isLambda
    | _ -> false

/// Whether its callers contain it.
let isInline (binding: Placed) = match flags binding with isInline :: _ -> isInline | [] -> false

/// Whether it can be set.
let isMutable (binding: Placed) = match flags binding with _ :: isMutable :: _ -> isMutable | _ -> false

/// Whether a pattern is `()`.
let isUnit (text: FileText) (pattern: Placed) : bool =
    (pattern.Case = "Const" || (pattern.Case = "Paren" && pattern.Parts |> List.exists (fun inner -> inner.Case = "Const")))
    && pattern.Place.Line = pattern.Place.EndLine
    && text.Within(pattern.Place).Replace(" ", "") = "()"

/// What code hands to methods that has no name: the argument of a method stands right behind what is called.
let handedOver (text: FileText) (part: Placed) : string list =
    let isArgument (callee: Placed) (argument: Placed) =
        argument.Case = "Paren" && argument.Place.Line = callee.Place.EndLine && argument.Place.Column = callee.Place.EndColumn
    let arguments (one: Placed) =
        match one.Case, nodes "SynExpr" one with
        | "App", [ callee; argument ] when isArgument callee argument -> [ argument ]
        | "New", all -> all
        | _ -> []
    below part
    |> Seq.collect arguments
    |> Seq.collect below
    |> Seq.filter (fun one -> one.Union = "SynExpr" && List.contains one.Case [ "Lambda"; "MatchLambda"; "ObjExpr" ])
    |> Seq.map (fun one -> text.Of one.Place)
    |> List.ofSeq

/// Whether what code makes may keep functions that it names.
let keepsFunctions (part: Placed) =
    below part |> Seq.exists (fun one -> one.Union = "SynExpr" && List.contains one.Case [ "Lambda"; "MatchLambda"; "ObjExpr"; "ComputationExpr"; "CompExpr"; "Lazy" ])

/// Whether code has a computation expression; older services call it otherwise.
let hasComputation (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynExpr" && (one.Case = "ComputationExpr" || one.Case = "CompExpr"))

/// Whether code makes anonymous records.
let makesAnonymous (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynExpr" && one.Case = "AnonRecd")

/// Whether it names their types.
let namesAnonymous (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynType" && one.Case = "AnonRecd")

/// Whether it calls its base type's members as such.
let callsBase (part: Placed) = below part |> Seq.exists (fun one -> one.Word = Some "base")

/// The name of a module or type. Up to F# 10 it is words of its own, and from F# 11 on those of a type.
let nameOf (information: Placed option) (otherwise: string) : string =
    let ofType (information: Placed) =
        nodes "SynType" information |> Seq.collect below |> Seq.tryFind isLongName |> Option.map words |> Option.defaultValue []
    let all = match information with Some one -> (match words one with [] -> ofType one | own -> own) | None -> []
    List.tryLast all |> Option.defaultValue otherwise

/// The name in the assembly.
let compiledName (attributes: (string * string) list) (name: string) =
    match attributes |> List.tryFind (fst >> (=) "CompiledName") with
    | Some (_, argument) -> argument.Trim('(', ')', ' ', '"')
    | None -> name

/// Why a binding is fixed in the assembly, as far as its own declaration tells.
let fixedBy (binding: Placed) (attributes: (string * string) list) : string option =
    let has name = attributes |> List.exists (fst >> (=) name)
    if has "Literal" then Some "it is a literal, so its users contain it"
    elif has "DllImport" then Some "it is external"
    elif has "ReflectedDefinition" then Some "its definition is stored as data"
    else None

/// From where it can be seen, as one of its parts says.
let reachOf (parts: Placed list) : Reach =
    match parts |> List.tryPick (node "SynAccess") with
    | Some access when access.Case = "Private" -> InModule
    | Some access when access.Case = "Internal" -> InAssembly
    | _ -> Everywhere

/// A private module of a namespace is seen by all that is in that namespace, in other files too.
let ofModule (scope: Scope) (parts: Placed list) : Reach =
    match reachOf parts with
    | InModule when List.isEmpty scope.Modules -> InAssembly
    | reach -> reach
