/// How the code of a type names what only that sees: arguments of its constructor, and what `let` binds in it. Pure.
module Mainstay.Worker.TypeScope

open Mainstay.Worker.Bindings
open Mainstay.Worker.Outline
open Mainstay.Worker.Rewritings
open Mainstay.Worker.FileText
open Mainstay.Worker.Syntax

/// What code calls its object where it has no name for that.
[<Literal>]
let UnnamedSelf = "objectOfSwap"

/// The names that only a type's own code can see.
type TypeScope =
    { /// All of them.
      Hidden: Set<string>
      /// Those of values that each object may keep: arguments of the constructor, and what `let` binds.
      State: Set<string>
      /// Those of these that can be set.
      Mutable: Set<string>
      /// Those of functions that can be replaced alone, each with whether it is static.
      Functions: Map<string, bool> }

/// Where code names what only its type sees.
type private Use =
    { Name: string
      Place: Place
      IsSet: bool
      Applied: Applied }

/// How code of a type names what only that sees, where it is compiled beside the type.
type Inner =
    { State: Set<string>
      LetUses: LetUse list
      /// What is used otherwise.
      Hidden: string option
      /// Whether it needs its object, and has no name for it.
      IsUnnamed: bool
      Self: string
      /// The state as what its object has.
      OfObject: Rewriting list }

/// Where the code of a type's binding uses names that only the type sees. An error is a name that is used otherwise.
let private usesOf (text: FileText) (names: Set<string>) (binding: Placed) : Result<Use list, string> =
    let isOther (part: Placed) = match part.Word with Some word when names.Contains word -> [ Error word ] | _ -> []
    let firstAs isSet applied (part: Placed) =
        match part.Parts |> List.tryFind (fun one -> one.Word.IsSome) with
        | Some word when names.Contains word.Word.Value -> [ Ok { Name = word.Word.Value; Place = word.Place; IsSet = isSet; Applied = applied } ]
        | _ -> []
    let first isSet = firstAs isSet Unapplied
    let isNameOf (named: Placed) = match named.Case, named.Parts with "Ident", [ word ] -> word.Word | _ -> None
    // What stands before an argument, as in `f x` and not in `x + y`.
    let applied (part: Placed) =
        match part.Case, nodes "SynExpr" part with
        | "App", [ callee; argument ] when callee.Case = "Ident" ->
            let isClose = callee.Place.EndLine = argument.Place.Line && callee.Place.EndColumn = argument.Place.Column
            Some(callee, argument, (if isClose then Closely(argument.Place.EndLine, argument.Place.EndColumn) else Apart))
        | _ -> None
    // `name = value` in parentheses may name an argument.
    let namedArgument (part: Placed) =
        match part.Case, nodes "SynExpr" part with
        | "App", [ inner; _ ] when inner.Case = "App" ->
            (match nodes "SynExpr" inner with
             | [ equals; name ] when (below equals |> Seq.exists (fun one -> one.Word = Some "op_Equality")) -> isNameOf name |> Option.filter names.Contains
             | _ -> None)
        | _ -> None
    let rec uses (isArgument: bool) (part: Placed) =
        match part.Union, part.Case with
        | "SynType", _ -> []
        // `_.name` is of another object, and `?name = value` an argument.
        | "SynExpr", "DotLambda" -> below part |> Seq.collect isOther |> List.ofSeq
        | "SynExpr", "LongIdent" when (match flags part with isOptional :: _ -> isOptional | [] -> false) -> below part |> Seq.collect isOther |> List.ofSeq
        | "SynExpr", "Ident" -> first false part
        | "SynExpr", ("LongIdent" | "LongIdentSet" | "NamedIndexedPropertySet") ->
            let isSet (name: Placed) = part.Case = "LongIdentSet" && List.length (words name) = 1
            part.Parts |> List.collect (fun one -> if isLongName one then first (isSet one) one else uses false one)
        | "SynExpr", ("DotGet" | "DotSet" | "DotNamedIndexedPropertySet" | "AnonRecd")
        | "SynExprRecordField", _ -> part.Parts |> List.collect (fun one -> if isLongName one then [] else uses false one)
        | "SynExpr", _ ->
            (match namedArgument part, applied part with
             | Some name, _ when isArgument -> [ Error name ]
             | _, Some (callee, argument, applied) -> firstAs false applied callee @ uses false argument
             | _ -> part.Parts |> List.collect (uses (part.Case = "Paren" || (isArgument && part.Case = "Tuple"))))
        | _ -> isOther part @ List.collect (uses false) part.Parts
    // The name of the member itself is no use of another of that name.
    let ofArguments = patternOf binding |> Option.bind (node "SynArgPats") |> Option.toList
    List.collect (uses false) (ofArguments @ nodes "SynExpr" binding)
    |> List.distinct // the tree has the body of a lambda in two forms
    |> List.fold (fun all one ->
        match all, one with
        | Error name, _
        | _, Error name -> Error name
        | Ok all, Ok one -> if text.InString.Contains one.Place.Line then Error one.Name else Ok(one :: all)) (Ok [])

/// How bindings of a type name what only that sees. `self` is what they call their object; `_` where they do not.
let innerOf (text: FileText) (sees: TypeScope) (isInstance: bool) (self: string) (bindings: Placed list) : Inner =
    let isPattern (one: Placed) = one.Union = "SynPat" || one.Union = "SynSimplePat"
    let binds (name: string) (part: Placed) = below part |> Seq.filter isPattern |> Seq.collect below |> Seq.exists (fun one -> one.Word = Some name)
    let codeOf (binding: Placed) = nodes "SynExpr" binding @ (patternOf binding |> Option.bind (node "SynArgPats") |> Option.toList)
    // What stands for the object may stand for another within.
    let hasObject = isInstance && not (bindings |> List.exists (codeOf >> List.exists (binds self)))
    let isSeen (one: Use) =
        match sees.Functions.TryFind one.Name with
        | Some isStatic -> isStatic || hasObject
        | None -> hasObject && (if one.IsSet then sees.Mutable else sees.State).Contains one.Name
    let found = bindings |> List.map (fun binding -> usesOf text (sees.Hidden - (patternOf binding |> Option.map argumentsOf |> Option.defaultValue Set.empty)) binding)
    let uses = found |> List.collect (function Ok uses -> uses | Error _ -> [])
    let hidden =
        found |> List.tryPick (function Error name -> Some name | Ok _ -> None)
        |> Option.orElse (uses |> List.tryFind (isSeen >> not) |> Option.map (fun one -> one.Name))
    let uses = if hidden.IsSome then [] else uses
    let state = uses |> List.filter (fun one -> not (sees.Functions.ContainsKey one.Name))
    let ofLets = uses |> List.filter (fun one -> sees.Functions.ContainsKey one.Name)
    let needsObject = not (List.isEmpty state) || ofLets |> List.exists (fun one -> not sees.Functions.[one.Name])
    let isUnnamed = self = "_" && needsObject
    let self = if isUnnamed then UnnamedSelf else self
    { State = Set.ofList [ for one in state -> one.Name ]
      LetUses = [ for one in ofLets -> { Function = one.Name; Place = one.Place; Applied = one.Applied } ]
      Hidden = hidden
      IsUnnamed = isUnnamed
      Self = self
      OfObject = [ for one in state -> inserted one.Place.Line one.Place.Column (self + ".") ] }
