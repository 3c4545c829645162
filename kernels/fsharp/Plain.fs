/// Tells whether a submission only defines: whether its running computes nothing that could fail, print, wait or depend on when it runs.
/// Such submissions may be compiled together when a session is rebuilt (`Fragments`). Only what is known is plain: functions, whatever
/// they would do when called; records, unions, enumerations, abbreviations and classes that keep nothing static; and values of literals.
module Mainstay.Worker.Plain

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Names
open Mainstay.Worker.Syntax

/// Longer submissions are not plain, unread.
let private lengthLimit = 8192

/// Attributes may mean anything, directives are not of the language, and what is private in a submission is open to the next one.
let private unwanted = [ "[<"; "#"; "``"; "private"; "internal" ]

let private primitives =
    HashSet<string> [ "int"; "string"; "float"; "bool"; "char"; "byte"; "int64"; "float32"; "int16"; "uint32"; "uint64"; "decimal"; "bigint"; "list"; "array" ]

let private arithmetic = HashSet<string> [ "op_Addition"; "op_Subtraction"; "op_Multiply"; "op_UnaryNegation" ]

/// The parts of a union among those of a node.
let childrenOf (union: string) (parts: Tree list) : (string * Tree list) list =
    parts |> List.choose (function Node (found, case, inner) when found = union -> Some(case, inner) | _ -> None)

/// All names in parts of a tree.
let rec namesIn (parts: Tree list) : string list =
    parts |> List.collect (function Name name -> [ name ] | Node (_, _, inner) -> namesIn inner | Flag _ -> [])

/// Whether computing an expression does nothing but make a value of literals, whose printing runs no code of the session's.
let rec private isInert (own: Names) (case: string, parts: Tree list) : bool =
    let inner = childrenOf "SynExpr" parts
    match case with
    | "Const"
    | "Lambda"
    | "MatchLambda" -> true
    | "Paren"
    | "Tuple"
    | "ArrayOrList"
    | "ArrayOrListComputed"
    | "Sequential" -> inner |> List.forall (isInert own)
    | "Typed" ->
        let types = childrenOf "SynType" parts |> List.collect (snd >> namesIn)
        types |> List.forall (fun name -> primitives.Contains name && not (own.Gives name)) && inner |> List.forall (isInert own)
    | "App" -> not own.RedefinesOperators && isArithmetic own inner
    | _ -> false

/// `1 + 2` is an application of `(+) 1` to 2. A lambda is a literal as well, and nothing to calculate with.
and private isArithmetic (own: Names) (inner: (string * Tree list) list) : bool =
    match inner with
    | [ ("Ident" | "LongIdent"), parts; argument ] -> namesIn parts |> List.forall arithmetic.Contains && isNumber own argument
    | [ "App", parts; argument ] -> isArithmetic own (childrenOf "SynExpr" parts) && isNumber own argument
    | _ -> false

and private isNumber (own: Names) (case: string, parts: Tree list) : bool =
    let inner = childrenOf "SynExpr" parts
    match case with
    | "Const" -> true
    | "Paren" -> inner |> List.forall (isNumber own)
    | "App" -> isArithmetic own inner
    | _ -> false

/// Names that stand for operators or for active patterns change what other code means without being named in it.
let isOrdinary (name: string) = not (name.StartsWith("op_", StringComparison.Ordinal)) && not (name.Contains "|")

/// What a binding gives: a function, or a value that is inert. None where it is neither.
type private Given =
    | Function
    | Value

let private givenBy (own: Names) (parts: Tree list) : Given option =
    let flags = parts |> List.choose (function Flag flag -> Some flag | _ -> None)
    let expressions = childrenOf "SynExpr" parts
    match flags, childrenOf "SynPat" parts, expressions with
    // Whether it is inline, and whether it is mutable.
    | [ _; false ], [ ("Named" | "LongIdent"), pattern ], [ expression ] when namesIn pattern |> List.forall isOrdinary ->
        let arguments = childrenOf "SynArgPats" pattern |> List.collect (fun (_, inner) -> childrenOf "SynPat" inner)
        if not (List.isEmpty arguments) then Some Function
        elif isInert own expression then Some Value
        else None
    | _ -> None

/// Whether a part of a type keeps something static, or is of a kind that is not known.
let rec private keepsNothing (tree: Tree) : bool =
    match tree with
    | Node ("SynMemberDefn", ("LetBindings" | "AutoProperty" | "ValField" | "NestedType" | "Open"), _)
    | Node ("SynTypeDefnKind", ("Augmentation" | "Delegate" | "IL" | "Opaque"), _)
    | Node ("SynTypeDefnRepr", "Exception", _)
    | Node ("SynTypeDefnSimpleRepr", ("General" | "LibraryOnlyILAssembly" | "None" | "Exception"), _) -> false
    | Node (("SynExpr" | "SynPat" | "SynType"), _, _)
    | Name _
    | Flag _ -> true
    | Node (_, _, parts) -> List.forall keepsNothing parts

/// What is known of a plain submission.
type Plain =
    { /// The names under which other code may use what it defines: of values, types, cases, fields and members.
      Defines: HashSet<string>
      /// Whether the types of all of them are known from it alone. Those of a function (`let add a b = a + b`) may depend on how
      /// it is used in the same file.
      IsSettled: bool }

let private lastOf (names: string list) = match List.tryLast names with Some name -> [ name ] | None -> []

/// The name that a pattern binds: of `this.Name` the last one.
let private boundBy (parts: Tree list) : string list =
    childrenOf "SynPat" parts |> List.collect (fun (_, inner) ->
        inner |> List.filter (function Node ("SynArgPats", _, _) -> false | _ -> true) |> namesIn |> lastOf)

/// What a type is called. Up to F# 10 its name is a part of its own, and from F# 11 on it is a type with that name.
let private namesOfComponent (parts: Tree list) : string list =
    match parts |> List.filter (function Node _ -> false | _ -> true) |> namesIn with
    | [] -> childrenOf "SynType" parts |> List.collect (snd >> namesIn) |> lastOf
    | names -> lastOf names

/// The names under which other code may use what declarations of types define.
let rec namesOfType (tree: Tree) : string list =
    match tree with
    | Node ("SynComponentInfo", _, parts) -> namesOfComponent parts
    | Node ("SynField", _, parts) -> parts |> List.filter (function Node ("SynIdent", _, _) | Name _ -> true | _ -> false) |> namesIn
    | Node (("SynUnionCase" | "SynEnumCase"), _, parts) ->
        (parts |> List.filter (function Node ("SynIdent", _, _) | Name _ -> true | _ -> false) |> namesIn) @ List.collect namesOfType parts
    | Node ("SynBinding", _, parts) -> boundBy parts
    | Node (("SynExpr" | "SynPat" | "SynType"), _, _)
    | Name _
    | Flag _ -> []
    | Node (_, _, parts) -> parts |> List.collect namesOfType

/// Whether it is known what each type is called: who uses one whose name is not known could not be told to use it.
let rec private isNamed (tree: Tree) : bool =
    match tree with
    | Node ("SynComponentInfo", _, parts) -> not (List.isEmpty (namesOfComponent parts))
    | Node (_, _, parts) -> List.forall isNamed parts
    | Name _
    | Flag _ -> true

let rec private hasMembers (tree: Tree) : bool =
    match tree with
    | Node ("SynMemberDefn", _, _) -> true
    | Node (_, _, parts) -> List.exists hasMembers parts
    | Name _
    | Flag _ -> false

let rec private hasLambda (tree: Tree) : bool =
    match tree with
    | Node ("SynExpr", ("Lambda" | "MatchLambda"), _) -> true
    | Node (_, _, parts) -> List.exists hasLambda parts
    | Name _
    | Flag _ -> false

/// A declaration's names, and whether their types are settled; None where it does not only define.
let private plainDeclaration (own: Names) (text: string) (tree: Tree) : (string list * bool) option =
    match tree with
    | Node ("SynModuleDecl", "Let", parts) ->
        let bindings = childrenOf "SynBinding" parts |> List.map snd
        let given = bindings |> List.map (givenBy own)
        // A text that is printed with its line ends could look like another definition.
        let printsOneLine = not (text.Contains "\"") || not (text.Trim().Contains "\n" || text.Contains "\\")
        if List.forall Option.isSome given && (printsOneLine || not (List.contains (Some Value) given)) then
            Some(List.collect boundBy bindings, not (List.contains (Some Function) given || List.exists hasLambda parts))
        else None
    | Node ("SynModuleDecl", "Types", parts) when List.forall keepsNothing parts && List.forall isNamed parts ->
        Some(List.collect namesOfType parts, not (List.exists hasMembers parts))
    | _ -> None

/// Whether a submission may be plain, as far as its text tells. The last value is not a name like others.
let mayBePlain (text: string) : bool =
    text.Length <= lengthLimit && not (unwanted |> List.exists text.Contains) && not (Purity.usesLast text)

/// What is known of a submission with these declarations, if it is plain; `own` are the names that the session has given.
let plainOf (own: Names) (declarations: Tree list) (text: string) : Plain option =
    let each = if mayBePlain text then List.map (plainDeclaration own text) declarations else []
    if List.isEmpty each || List.exists Option.isNone each then None
    else
        let known = List.choose id each
        let names = known |> List.collect fst
        if names |> List.exists primitives.Contains then None
        else Some { Defines = HashSet<string> names; IsSettled = List.forall snd known }

let private word = Regex(@"[\w']+", RegexOptions.CultureInvariant)

/// The words of a text, which are more than the names that it uses.
let wordsOf (text: string) : HashSet<string> = HashSet<string>(word.Matches text |> Seq.cast<Match> |> Seq.map (fun found -> found.Value))
