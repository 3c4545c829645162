/// What a source file declares, piece by piece and with the text of each: what the difference of two versions of a file is taken of.
module Mainstay.Worker.Outline

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Syntax

/// A namespace with the modules in it that a declaration stands in, as the source names them, the outermost first.
type Scope =
    { Namespace: string list
      Modules: string list }

    /// The whole path.
    member scope.Path = scope.Namespace @ scope.Modules

/// What stands in the place of some characters of a line.
type Rewriting =
    { Line: int
      Column: int
      Length: int
      Text: string }

/// How code applies a function that it names.
type Applied =
    /// To an argument that stands apart, as in `f x`.
    | Apart
    /// To one that stands right behind it, as in `f(x)`, and ends there: a line, and a column from 0.
    | Closely of endLine: int * endColumn: int
    /// To nothing, as in `List.map f`.
    | Unapplied

/// Where code names a function that `let` binds in its type.
type LetUse =
    { Function: string
      Place: Place
      Applied: Applied }

/// What code calls its object where it has no name for that.
[<Literal>]
let private UnnamedSelf = "objectOfSwap"

/// What makes a member of a type a function of its own, or a function that `let` binds in a type.
type MemberOf =
    { /// The type's name, without what it takes.
      Type: string
      /// The names of the type's own parameters, such as `'a`.
      Parameters: string list
      IsStatic: bool
      /// Whether `let` binds it: only its type's code sees it. A group of `let rec … and …` is one.
      IsLet: bool
      /// Whether it takes no arguments and so is a property.
      IsProperty: bool
      /// Whether it takes `()` alone.
      TakesUnit: bool
      /// What the member calls its object; `_` where it does not.
      Self: string
      /// Which of the members of that name it is, from 0; -1 where `let` binds it, as an interface may have a member of that name.
      Ordinal: int
      /// What it uses of what is built with each object: arguments of the type's constructor, and values that `let` binds in it.
      State: Set<string>
      /// How it names that where it is a member that is compiled beside its type: through its object.
      StateNames: Rewriting list
      /// The functions that it uses and that `let` binds in the type.
      LetUses: LetUse list
      /// A name that it uses and that only the type's own code can see, otherwise than as such state or such a function; none where it uses none.
      Hidden: string option
      /// Whether something that it makes may keep such a function: a function without a name, an object, or a computation.
      KeepsLets: bool
      /// Whether it calls its base type's members as such.
      CallsBase: bool
      /// Where what follows the member's name begins: a line, and a column from 0.
      AfterName: int * int
      /// Whether its type takes it from another one, a base or an interface.
      IsTaken: bool
      /// Of what its type takes from another one: the arguments that have no type of their own, each with its number from
      /// 0 and its place; that of the only one without parentheses is told apart.
      Untyped: (int * Place * bool) list }

type Kind =
    | Function
    | Value
    | Member of MemberOf

/// What two versions of one declaration have in common.
type Key =
    { Path: string list
      /// The type of a member, how many parameters that has, and which of the members of that name it is.
      Member: (string * int * int) option
      Names: string list }

/// From where a declaration can be seen.
type Reach =
    | Everywhere
    | InAssembly
    /// Within its module alone, or a module around it.
    | InModule

/// What makes names visible to a declaration.
type Opening =
    /// As the file says it.
    | Opens of text: string
    /// The module that it stands in, with what stands above it there.
    | Own of path: string list

/// A declaration that can be replaced alone.
type Item =
    { Scope: Scope
      Kind: Kind
      /// What the source calls it; a group of `let rec … and …` has several.
      Names: string list
      /// The names in the assembly.
      CompiledNames: string list
      /// Where it stands: lines from 1, the last one included, a column from 0.
      Line: int
      EndLine: int
      Column: int
      /// The text by which two versions are compared; of what is not to be replaced for its layout, without that.
      Text: string
      /// The words in it, but for those of comments.
      Words: Set<string>
      /// The attributes on it, each as its name and what it was given.
      Attributes: (string * string) list
      /// What it reads otherwise as where it is compiled alone.
      Rewritten: Rewriting list
      /// The names that its arguments have in all of it.
      Arguments: Set<string>
      /// The texts of the functions and objects without a name that it hands to methods, which may keep them.
      HandedOver: string list
      /// Whether it has computation expressions, makes anonymous records, and names their types.
      HasComputation: bool
      MakesAnonymous: bool
      NamesAnonymous: bool
      /// What makes names visible to it, in the order in which a later one hides those of an earlier one.
      Openings: Opening list
      /// Whether names declared further down are visible to it anyway.
      IsRecursiveScope: bool
      /// Whether its callers contain it, so that another version is for them as another function.
      IsInline: bool
      Reach: Reach
      /// Why it cannot be replaced, whatever changes in it.
      Fixed: string option }

    member item.Key: Key =
        { Path = item.Scope.Path
          Member = (match item.Kind with Member one -> Some(one.Type, one.Parameters.Length, one.Ordinal) | Function | Value -> None)
          Names = item.Names }

    /// What makes it a part of its type; None where it stands in a module.
    member item.OfType = match item.Kind with Member one -> Some one | Function | Value -> None

    /// Whether it is a member, and not bound by `let`.
    member item.IsMember = item.OfType |> Option.exists (fun one -> not one.IsLet)

    /// Whether `let` binds it in a type.
    member item.IsLet = item.OfType |> Option.exists (fun one -> one.IsLet)

    /// Whether both are of one type.
    member item.IsOfTypeOf(other: Item) =
        match item.OfType, other.OfType with
        | Some one, Some own -> item.Scope = other.Scope && one.Type = own.Type && one.Parameters.Length = own.Parameters.Length
        | _ -> false

    /// Its full name, for people.
    member item.Shown =
        let within = match item.Kind with Member one -> [ one.Type ] | Function | Value -> []
        String.Join(".", item.Scope.Path @ within @ [ String.Join(", ", item.Names) ])

/// What cannot be replaced alone: a type without its members, an open, an attribute, code that runs when the program starts.
type Rest =
    { /// What it is, in the words of the language.
      What: string
      Line: int
      /// From which line on it is seen: of types that are declared together, that of the first.
      From: int
      /// The text by which two versions are compared, without its layout.
      Text: string
      /// What makes names visible to it, as for a declaration; empty where it mentions none.
      Openings: Opening list }

/// A name that a file declares.
type Declared =
    { Name: string
      /// The namespaces and modules that show it to what stands in them.
      Path: string list
      Line: int
      /// Whether it is a member of a type that stands elsewhere.
      IsExtension: bool }

/// One file.
type Outline =
    { /// The text without what conditional compilation leaves out, in lines.
      Lines: string[]
      /// The lines that begin inside a string.
      InString: Set<int>
      Items: Item list
      Rest: Rest list
      /// Its namespaces.
      Namespaces: Set<string list>
      /// The modules that open themselves.
      AutoOpen: Set<string list>
      /// Every name that the file declares.
      Declared: Declared list
      /// The lines of what is opened behind a declaration of the same module.
      LateOpens: (string list * int) list
      /// All that it opens, each with the module that it stands in.
      Opens: (string * int) list }

/// Whether a path of namespaces and modules is that of the other, or of one around it.
let isAround (outer: string list) (path: string list) : bool = List.truncate outer.Length path = outer

let private word = Regex(@"``[^`]+``|[\p{L}_][\w']*|[!%&*+\-./<=>?@^|~]+", RegexOptions.CultureInvariant)

/// The methods that a computation expression calls without naming them.
let builderMembers =
    Set.ofList
        [ "Bind"; "BindReturn"; "Bind2"; "MergeSources"; "Source"; "Delay"; "Run"; "Zero"; "Return"; "ReturnFrom"; "Combine"; "Using"; "For"; "While"
          "TryWith"; "TryFinally"; "Yield"; "YieldFrom" ]

/// The names, operators, keywords and other words of a text; those of strings too.
let wordsIn (text: string) : Set<string> =
    word.Matches text |> Seq.cast<Match> |> Seq.map (fun found -> found.Value.Trim '`') |> Set.ofSeq

let private staticLet = Regex(@"^\s*(static\s+let)\b", RegexOptions.CultureInvariant)

let private nodes (union: string) (part: Placed) = part.Parts |> List.filter (fun one -> one.Union = union)

let private node (union: string) (part: Placed) = nodes union part |> List.tryHead

let private flags (part: Placed) = part.Parts |> List.choose (fun one -> one.Flag)

let private words (part: Placed) = part.Parts |> List.choose (fun one -> one.Word)

/// All parts below a part, and itself.
let rec private below (part: Placed) : Placed seq =
    seq {
        yield part
        for inner in part.Parts do
            yield! below inner
    }

/// The lines that begin inside a string: they mean what they are, and are never moved.
let private linesInStrings (roots: Placed list) : Set<int> =
    roots
    |> Seq.collect below
    |> Seq.filter (fun part ->
        (part.Union = "SynExpr" && (part.Case = "Const" || part.Case = "InterpolatedString")) || (part.Union = "SynPat" && part.Case = "Const"))
    |> Seq.filter (fun part -> part.Place.EndLine > part.Place.Line)
    |> Seq.collect (fun part -> seq { part.Place.Line + 1 .. part.Place.EndLine })
    |> Set.ofSeq

/// The names that only a type's own code can see.
type private TypeScope =
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
type private Inner =
    { State: Set<string>
      LetUses: LetUse list
      /// What is used otherwise.
      Hidden: string option
      /// Whether it needs its object, and has no name for it.
      IsUnnamed: bool
      Self: string
      /// The state as what its object has.
      OfObject: Rewriting list }

/// Reads one file.
type private Reader(lines: string[], inString: Set<int>) =
    let items = List<Item>()
    let rest = List<Rest>()
    let declared = List<Declared>()
    let lateOpens = List<string list * int>()
    let allOpens = List<string * int>()
    let namespaces = HashSet<string list>()

    /// The text between two places by which versions are compared: without blank lines, and without lines of comments where no line can be in
    /// a comment of another kind.
    let textOf (place: Place) =
        let hasBlocks = seq { place.Line .. place.EndLine } |> Seq.exists (fun number -> lines.[number - 1].Contains "(*" || lines.[number - 1].Contains "*)")
        seq {
            for number in place.Line .. place.EndLine do
                let line = lines.[number - 1]
                let line = if number = place.EndLine then line.Substring(0, min line.Length place.EndColumn) else line
                let line = if number = place.Line then String(' ', min place.Column line.Length) + line.Substring(min place.Column line.Length) else line
                let trimmed = line.TrimStart()
                if inString.Contains number || inString.Contains(number + 1) then yield line
                elif trimmed <> "" && (hasBlocks || not (trimmed.StartsWith("//", StringComparison.Ordinal))) then yield line.TrimEnd()
        }
        |> String.concat "\n"

    /// Where a declaration stands counts where its code asks for that.
    let textAt (place: Place) (words: Set<string>) (text: string) = if words.Contains "__LINE__" then text + "\n" + string place.Line else text

    let autoOpen = HashSet<string list>()

    /// A module that opens itself shows its names where it stands.
    let declare (scope: Scope) (name: string) (line: int) =
        let rec shown (path: string list) = if autoOpen.Contains path then shown (List.take (path.Length - 1) path) else path
        for part in name.Split([| '|' |], StringSplitOptions.RemoveEmptyEntries) |> Array.filter ((<>) "_") do
            declared.Add { Name = part; Path = shown scope.Path; Line = line; IsExtension = false }

    /// A name as the source has it, which for an operator is another than that of its method.
    let declareAt (scope: Scope) (name: string) (place: Place) =
        declare scope name place.Line
        if place.Line = place.EndLine && name.StartsWith("op_", StringComparison.Ordinal) then
            declared.Add { Name = lines.[place.Line - 1].Substring(place.Column, place.EndColumn - place.Column).Trim('(', ')', ' '); Path = scope.Path; Line = place.Line; IsExtension = false }

    let addRest what (place: Place) text =
        rest.Add { What = what; Line = place.Line; From = place.Line; Text = Layout.without (fun _ -> false) text []; Openings = [] }

    /// Adds what mentions names. `from` is the line from which on it is seen.
    let addRestIn openings from what (part: Placed) text =
        rest.Add { What = what; Line = part.Place.Line; From = from; Text = text; Openings = openings }

    /// All of a part, without its layout.
    let wholeOf (part: Placed) = Layout.without (fun _ -> false) (textOf part.Place) [ part ]

    /// The names of attributes, which stand flat among the parts of what they are on, and the text that each was given.
    let attributesOf (part: Placed) =
        let rec read (parts: Placed list) =
            match parts with
            | name :: argument :: more when isLongName name ->
                (match words name |> List.tryLast with
                 | Some last when argument.Union = "SynExpr" -> [ (last.Replace("Attribute", ""), textOf argument.Place) ]
                 | _ -> [])
                @ read (argument :: more)
            | _ :: more -> read more
            | [] -> []
        read part.Parts

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

    /// The names that the patterns of a binding's arguments give.
    let argumentsOf (pattern: Placed) : Set<string> =
        match node "SynArgPats" pattern with
        | None -> Set.empty
        | Some arguments ->
            let named = below arguments |> Seq.filter (fun part -> part.Union = "SynPat" && part.Case = "Named") |> Seq.choose nameIn |> Seq.map (fun (name, _, _) -> name)
            let optional = below arguments |> Seq.filter (fun part -> part.Union = "SynPat" && part.Case = "OptionalVal") |> Seq.collect words
            Set.ofSeq (Seq.append named optional)

    /// What code hands to methods that has no name: the argument of a method stands right behind what is called.
    let handedOver (part: Placed) : string list =
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
        |> Seq.map (fun one -> textOf one.Place)
        |> List.ofSeq

    /// Older services call it otherwise.
    let hasComputation (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynExpr" && (one.Case = "ComputationExpr" || one.Case = "CompExpr"))

    let makesAnonymous (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynExpr" && one.Case = "AnonRecd")

    let namesAnonymous (part: Placed) = below part |> Seq.exists (fun one -> one.Union = "SynType" && one.Case = "AnonRecd")

    let callsBase (part: Placed) = below part |> Seq.exists (fun one -> one.Word = Some "base")

    let patternOf (binding: Placed) = node "SynPat" binding

    /// The name of a module or type. Up to F# 10 it is words of its own, and from F# 11 on those of a type.
    let nameOf (information: Placed option) (otherwise: string) : string =
        let ofType (information: Placed) =
            nodes "SynType" information |> Seq.collect below |> Seq.tryFind isLongName |> Option.map words |> Option.defaultValue []
        let all = match information with Some one -> (match words one with [] -> ofType one | own -> own) | None -> []
        List.tryLast all |> Option.defaultValue otherwise

    let expressionOf (binding: Placed) = nodes "SynExpr" binding |> List.tryLast

    let rec isLambda (expression: Placed) =
        match expression.Case with
        | "Lambda"
        | "MatchLambda" -> true
        | "Paren"
        | "Typed" -> node "SynExpr" expression |> Option.exists isLambda
        | _ -> false

    let inserted (line: int) (column: int) (text: string) = { Line = line; Column = column; Length = 0; Text = text }

    /// A function that is all of a function's body is taken for more arguments of it, and that of a member is what it gives.
    let rec functionGiven (body: Placed) : Rewriting list =
        match body.Case, node "SynExpr" body with
        | ("Lambda" | "MatchLambda"), _ -> [ inserted body.Place.Line body.Place.Column "(); " ]
        | ("Paren" | "Typed"), Some inner -> functionGiven inner
        | _ -> []

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

    let isInline (binding: Placed) = match flags binding with isInline :: _ -> isInline | [] -> false

    /// The argument of where the program begins has a type that the compiler knows there alone.
    let entryArgument (attributes: (string * string) list) (argument: Placed) : Rewriting list =
        let isEntry = attributes |> List.exists (fun (name, _) -> name = "EntryPoint")
        let place = argument.Place
        if isEntry && argument.Case = "Named" then [ inserted place.Line place.Column "("; inserted place.EndLine place.EndColumn ": string[])" ] else []

    /// Only members may have arguments that can be left out: a function takes options.
    let optionalArguments (pattern: Placed) : Rewriting list =
        let withoutMark (optional: Placed) = { Line = optional.Place.Line; Column = optional.Place.Column; Length = 1; Text = "" }
        let rec read (part: Placed) : Rewriting list =
            match part.Case, part.Parts with
            | "OptionalVal", _ when part.Union = "SynPat" -> [ withoutMark part; inserted part.Place.EndLine part.Place.EndColumn ": _ option" ]
            | "Typed", optional :: kind :: _ when optional.Case = "OptionalVal" ->
                [ withoutMark optional
                  inserted kind.Place.Line kind.Place.Column "("
                  inserted kind.Place.EndLine kind.Place.EndColumn ") option" ]
            | _ -> List.collect read part.Parts
        node "SynArgPats" pattern |> Option.map read |> Option.defaultValue []

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

    /// Where the access of what a pattern names stands.
    let rec headOf (pattern: Placed) : Placed =
        match pattern.Case, node "SynPat" pattern with
        | ("Typed" | "Paren"), Some inner -> headOf inner
        | _ -> pattern

    /// Whether a pattern is `()`.
    let isUnit (pattern: Placed) =
        (pattern.Case = "Const" || (pattern.Case = "Paren" && pattern.Parts |> List.exists (fun inner -> inner.Case = "Const")))
        && pattern.Place.Line = pattern.Place.EndLine
        && lines.[pattern.Place.Line - 1].Substring(pattern.Place.Column, pattern.Place.EndColumn - pattern.Place.Column).Replace(" ", "") = "()"

    /// Whether what code makes may keep functions that it names.
    let keepsFunctions (part: Placed) =
        below part |> Seq.exists (fun one -> one.Union = "SynExpr" && List.contains one.Case [ "Lambda"; "MatchLambda"; "ObjExpr"; "ComputationExpr"; "CompExpr"; "Lazy" ])

    let isMutable (binding: Placed) = match flags binding with _ :: isMutable :: _ -> isMutable | _ -> false

    /// Where the code of a type's binding uses names that only the type sees. An error is a name that is used otherwise.
    let usesOf (names: Set<string>) (binding: Placed) : Result<Use list, string> =
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
            | Ok all, Ok one -> if inString.Contains one.Place.Line then Error one.Name else Ok(one :: all)) (Ok [])

    /// How bindings of a type name what only that sees. `self` is what they call their object; `_` where they do not.
    let innerOf (sees: TypeScope) (isInstance: bool) (self: string) (bindings: Placed list) : Inner =
        let isPattern (one: Placed) = one.Union = "SynPat" || one.Union = "SynSimplePat"
        let binds (name: string) (part: Placed) = below part |> Seq.filter isPattern |> Seq.collect below |> Seq.exists (fun one -> one.Word = Some name)
        let codeOf (binding: Placed) = nodes "SynExpr" binding @ (patternOf binding |> Option.bind (node "SynArgPats") |> Option.toList)
        // What stands for the object may stand for another within.
        let hasObject = isInstance && not (bindings |> List.exists (codeOf >> List.exists (binds self)))
        let isSeen (one: Use) =
            match sees.Functions.TryFind one.Name with
            | Some isStatic -> isStatic || hasObject
            | None -> hasObject && (if one.IsSet then sees.Mutable else sees.State).Contains one.Name
        let found = bindings |> List.map (fun binding -> usesOf (sees.Hidden - (patternOf binding |> Option.map argumentsOf |> Option.defaultValue Set.empty)) binding)
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

    /// Whether nothing else stands in its lines.
    let hasItsLines (place: Place) =
        String.IsNullOrWhiteSpace(lines.[place.Line - 1].Substring(0, min place.Column lines.[place.Line - 1].Length))
        && (let last = lines.[place.EndLine - 1]
            let behind = last.Substring(min place.EndColumn last.Length).Trim()
            behind = "" || behind.StartsWith("//", StringComparison.Ordinal))

    member _.Outline =
        { Lines = lines
          InString = inString
          Items = List.ofSeq items
          Rest = List.ofSeq rest
          Namespaces = Set.ofSeq namespaces
          AutoOpen = Set.ofSeq autoOpen
          Declared = List.ofSeq declared
          LateOpens = List.ofSeq lateOpens
          Opens = List.ofSeq allOpens }

    /// The bindings of one `let` of a module.
    member private reader.Let(scope: Scope, openings: Opening list, isRecursive: bool, reach: Reach, part: Placed) =
        let bindings = nodes "SynBinding" part
        let named =
            bindings |> List.map (fun binding ->
                let attributes = attributesOf binding
                binding, attributes, patternOf binding |> Option.bind nameIn)
        for _, _, name in named do
            name |> Option.iter (fun (name, place, _) -> declareAt scope name place)
        let whole = part.Place
        match named |> List.forall (fun (_, _, name) -> name.IsSome), named with
        | false, _
        | _, [] ->
            let names = bindings |> Seq.choose patternOf |> Seq.collect below |> Seq.filter (fun one -> one.Union = "SynPat") |> Seq.choose nameIn |> List.ofSeq
            for name, place, _ in names do
                declare scope name place.Line
            addRestIn openings whole.Line "a binding of a pattern" part (wholeOf part)
        | true, (first, _, _) :: _ ->
            let isFunction (binding: Placed) arguments =
                not (List.isEmpty arguments) || (expressionOf binding |> Option.exists isLambda)
            let kinds = named |> List.map (fun (binding, _, name) -> let _, _, arguments = name.Value in isFunction binding arguments)
            let names = named |> List.map (fun (_, _, name) -> let name, _, _ = name.Value in name)
            let text = textOf whole
            let why =
                if kinds |> List.distinct |> List.length > 1 then Some "it binds functions together with values"
                elif not kinds.Head && isMutable first then Some "it is a mutable value, which keeps what it holds"
                else named |> List.tryPick (fun (binding, attributes, _) -> fixedBy binding attributes)
            let isInline = named |> List.exists (fun (binding, _, _) -> isInline binding)
            let mentioned = wordsIn (Layout.code text)
            items.Add
                { Scope = scope
                  Kind = (if kinds.Head then Function else Value)
                  Names = names
                  CompiledNames = List.map2 (fun (_, attributes, _) name -> compiledName attributes name) named names
                  Line = whole.Line
                  EndLine = whole.EndLine
                  Column = whole.Column
                  Text = textAt whole mentioned (if kinds.Head && why.IsNone && not isInline then text else wholeOf part)
                  Words = mentioned
                  Attributes = named |> List.collect (fun (_, attributes, _) -> attributes)
                  Arguments = (match named with [ binding, _, _ ] -> patternOf binding |> Option.map argumentsOf |> Option.defaultValue Set.empty | _ -> Set.empty)
                  Rewritten = (match named with [ _, attributes, Some (_, _, [ argument ]) ] -> entryArgument attributes argument | _ -> [])
                  HandedOver = handedOver part
                  HasComputation = hasComputation part
                  MakesAnonymous = makesAnonymous part
                  NamesAnonymous = namesAnonymous part
                  Openings = openings
                  IsRecursiveScope = isRecursive
                  IsInline = isInline
                  Reach = (reach, bindings) ||> List.fold (fun strictest binding -> max strictest (reachOf (binding :: (patternOf binding |> Option.map headOf |> Option.toList))))
                  Fixed = why }

    /// The arguments of a member that have no type in its pattern.
    member private _.Untyped(arguments: Placed list) : (int * Place * bool) list =
        let isUntyped (part: Placed) = part.Case = "Named" || part.Case = "Wild"
        let inside (part: Placed) =
            match part.Case, nodes "SynPat" part with
            | "Tuple", parts -> parts
            | _ -> [ part ]
        match arguments with
        | [ only ] when isUntyped only -> [ 0, only.Place, true ]
        | [ only ] when only.Case = "Paren" ->
            [ for number, part in nodes "SynPat" only |> List.collect inside |> List.indexed do if isUntyped part then number, part.Place, false ]
        | _ -> []

    /// A member that can be replaced alone; None where it is a part of its type.
    member private reader.Member(scope: Scope, openings: Opening list, isRecursive: bool, owner: string, parameters: string list, sees: TypeScope, isOfInterface: bool, part: Placed) : Item option =
        match nodes "SynBinding" part, part.Case with
        | [ binding ], "Member" when hasItsLines part.Place ->
            let attributes = attributesOf binding
            let data = node "SynValData" binding
            let isInstance = data |> Option.exists (fun data -> match flags data with isInstance :: _ -> isInstance | [] -> false)
            let isOverride = data |> Option.exists (fun data -> match flags data with _ :: _ :: isOverride :: _ -> isOverride | _ -> false)
            let isConstructor = data |> Option.bind (node "SynMemberKind") |> Option.exists (fun kind -> kind.Case = "Constructor")
            match patternOf binding with
            | Some pattern when not isConstructor ->
                nameIn pattern |> Option.map (fun (name, namePlace, arguments) ->
                    let named = pattern.Parts |> List.tryFind isLongName |> Option.map (fun one -> one.Parts |> List.filter (fun part -> part.Word.IsSome)) |> Option.defaultValue []
                    let selfPlace = if List.length named > 1 then Some named.Head.Place else None
                    let self = if List.length named > 1 then named.Head.Word else None
                    let takesUnit = match arguments with [ only ] -> isUnit only | _ -> false
                    let afterName =
                        if takesUnit then arguments.Head.Place.EndLine, arguments.Head.Place.EndColumn else namePlace.EndLine, namePlace.EndColumn
                    let afterName =
                        // Of an operator the name stands in parentheses.
                        let line, column = afterName
                        let rest = lines.[line - 1].Substring(min column lines.[line - 1].Length)
                        if rest.TrimStart().StartsWith(")", StringComparison.Ordinal) && not takesUnit then line, column + rest.IndexOf ')' + 1 else afterName
                    let text = textOf part.Place
                    let mentioned = wordsIn (Layout.code text)
                    let self = match self with Some "__" | None -> "_" | Some name -> name
                    let inner = innerOf sees isInstance self [ binding ]
                    let self = inner.Self
                    let ofSelf = [ if inner.IsUnnamed then for place in Option.toList selfPlace -> { Line = place.Line; Column = place.Column; Length = place.EndColumn - place.Column; Text = self } ]
                    { Scope = scope
                      Kind =
                        Member
                            { Type = owner
                              Parameters = parameters
                              IsStatic = not isInstance
                              IsLet = false
                              IsProperty = List.isEmpty arguments
                              TakesUnit = takesUnit
                              Self = self
                              Ordinal = 0
                              State = inner.State
                              StateNames = ofSelf @ inner.OfObject
                              LetUses = inner.LetUses
                              Hidden = inner.Hidden
                              KeepsLets = not (List.isEmpty inner.LetUses) && (keepsFunctions part || inner.LetUses |> List.exists (fun one -> one.Applied = Unapplied))
                              CallsBase = mentioned.Contains "base" && callsBase part
                              AfterName = afterName
                              IsTaken = isOfInterface || isOverride
                              Untyped = if isOfInterface || isOverride then reader.Untyped arguments else [] }
                      Names = [ name ]
                      CompiledNames = [ compiledName attributes name ]
                      Line = part.Place.Line
                      EndLine = part.Place.EndLine
                      Column = part.Place.Column
                      Text = textAt part.Place mentioned (if isInline binding then wholeOf part else text)
                      Words = mentioned
                      Attributes = attributes
                      Arguments = (if self = "_" then argumentsOf pattern else (argumentsOf pattern).Add self)
                      Rewritten = inner.OfObject @ optionalArguments pattern @ (expressionOf binding |> Option.map functionGiven |> Option.defaultValue [])
                      HandedOver = handedOver part
                      HasComputation = hasComputation part
                      MakesAnonymous = makesAnonymous part
                      NamesAnonymous = namesAnonymous part
                      Openings = openings
                      IsRecursiveScope = isRecursive
                      IsInline = false
                      Reach = Everywhere
                      Fixed = if isInline binding then Some "it is inline, so its callers contain it" else fixedBy binding attributes })
            | _ -> None
        | _ -> None

    /// The functions that one `let` binds in a type, as one declaration that can be replaced alone; None where they are a part of the type.
    member private _.LetFunctions(scope: Scope, openings: Opening list, isRecursive: bool, owner: string, parameters: string list, sees: TypeScope, self: string option, part: Placed) : Item option =
        let isStatic = match flags part with isStatic :: _ -> isStatic | [] -> false
        let named = nodes "SynBinding" part |> List.map (fun binding -> binding, patternOf binding |> Option.bind nameIn)
        let isPlain (name: string) = name |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '_' || c = '\'')
        // Where what stands for the object is taken, before all else.
        let takesObject (binding: Placed, found: (string * Place * Placed list) option) =
            match found with
            | Some (name, _, _) when not (isPlain name && List.isEmpty (attributesOf binding)) || isInline binding || isMutable binding -> None
            | Some (_, _, first :: _) when first.Place.IsKnown -> Some(first.Place.Line, first.Place.Column)
            | Some (_, place, []) when expressionOf binding |> Option.exists isLambda -> Some(place.EndLine, place.EndColumn)
            | _ -> None
        let taking = List.map takesObject named
        // A static function takes no object that would tell the arguments of its generic type.
        let isOfUnknown = isStatic && not (List.isEmpty parameters)
        // Comments stand before it.
        let keyword = seq { part.Place.Line .. part.Place.EndLine } |> Seq.map (fun number -> number, staticLet.Match lines.[number - 1]) |> Seq.tryFind (fun (_, found) -> found.Success)
        if not (hasItsLines part.Place) || List.isEmpty named || List.exists Option.isNone taking || isOfUnknown || (isStatic && keyword.IsNone) then None
        else
            let names = [ for _, found in named -> (let name, _, _ = found.Value in name) ]
            let inner = innerOf sees (not isStatic) (if isStatic then "_" else defaultArg self "_") (List.map fst named)
            let kind = if List.isEmpty parameters then owner else owner + "<" + String.Join(", ", parameters) + ">"
            let self = if inner.Self = "_" then UnnamedSelf else inner.Self
            // What takes `()` alone takes nothing but its object.
            let unit = match named with [ (_, Some (_, _, [ only ])) ] when not isStatic && isUnit only -> Some only.Place | _ -> None
            // No column moves: what follows stands in a line of its own.
            let objectAt (line: int, column: int) =
                let length = match unit with Some place -> place.EndColumn - column | None -> 0
                { Line = line; Column = column; Length = length; Text = " (" + self + ": " + kind + ")\n" + String(' ', column + length) }
            let ofObject = if isStatic then [] else List.choose id taking |> List.map objectAt
            let ofKeyword =
                match keyword with
                | Some (line, found) when isStatic -> [ { Line = line; Column = found.Groups.[1].Index; Length = found.Groups.[1].Length; Text = "let" + String(' ', found.Groups.[1].Length - 3) } ]
                | _ -> []
            let text = textOf part.Place
            let mentioned = wordsIn (Layout.code text)
            // What is bound above it decides what its names mean.
            let seen = Set.toList inner.State @ [ for one in inner.LetUses -> one.Function ] @ Option.toList inner.Hidden |> List.distinct |> List.sort
            Some
                { Scope = scope
                  Kind =
                    Member
                        { Type = owner
                          Parameters = parameters
                          IsStatic = isStatic
                          IsLet = true
                          IsProperty = false
                          TakesUnit = unit.IsSome
                          Self = self
                          Ordinal = -1
                          State = inner.State
                          StateNames = inner.OfObject
                          LetUses = inner.LetUses
                          Hidden = inner.Hidden
                          KeepsLets = not (List.isEmpty inner.LetUses) && (keepsFunctions part || inner.LetUses |> List.exists (fun one -> one.Applied = Unapplied))
                          CallsBase = mentioned.Contains "base" && callsBase part
                          AfterName = part.Place.Line, part.Place.Column
                          IsTaken = false
                          Untyped = [] }
                  Names = names
                  CompiledNames = names
                  Line = part.Place.Line
                  EndLine = part.Place.EndLine
                  Column = part.Place.Column
                  Text = textAt part.Place mentioned (String.Join(" ", text :: seen))
                  Words = mentioned
                  Attributes = []
                  Rewritten = ofKeyword @ ofObject @ inner.OfObject
                  Arguments = named |> Seq.choose (fst >> patternOf) |> Seq.map argumentsOf |> Set.unionMany |> Set.add self
                  HandedOver = handedOver part
                  HasComputation = hasComputation part
                  MakesAnonymous = makesAnonymous part
                  NamesAnonymous = namesAnonymous part
                  Openings = openings
                  IsRecursiveScope = isRecursive
                  IsInline = false
                  Reach = InModule
                  Fixed = None }

    /// A type: its members one by one, and the rest of it as its shape.
    member private reader.Type(scope: Scope, openings: Opening list, isRecursive: bool, from: int, part: Placed) =
        let information = node "SynComponentInfo" part
        let name = nameOf information "a type"
        let parameters =
            information
            |> Option.map (fun one -> below one |> Seq.filter (fun inner -> inner.Union = "SynTypar") |> List.ofSeq)
            |> Option.defaultValue []
            |> List.map (fun parameter -> (textOf parameter.Place).Trim())
            |> List.distinct
        let parts = part.Parts @ (nodes "SynTypeDefnRepr" part |> List.collect (fun one -> one.Parts))
        let definitions = parts |> List.filter (fun one -> one.Union = "SynMemberDefn")
        let placesIn (patterns: seq<Placed>) = patterns |> Seq.choose nameIn |> Seq.map (fun (name, place, _) -> name, place) |> Seq.distinct
        let namesIn (patterns: seq<Placed>) = placesIn patterns |> Seq.map fst |> Set.ofSeq
        let ofConstructor = definitions |> List.filter (fun one -> one.Case = "ImplicitCtor") |> Seq.collect below |> Seq.filter (fun inner -> inner.Union = "SynPat")
        let isStatic (bindings: Placed) = match flags bindings with isStatic :: _ -> isStatic | [] -> false
        let ofLets (lets: Placed list) =
            lets
            |> List.collect (nodes "SynBinding")
            |> List.choose patternOf
            |> Seq.collect (fun pattern -> if pattern.Case = "LongIdent" then Seq.singleton pattern else below pattern)
            |> Seq.filter (fun inner -> inner.Union = "SynPat")
        let lets = definitions |> List.filter (fun one -> one.Case = "LetBindings")
        let isValue (binding: Placed) =
            match patternOf binding |> Option.bind nameIn with
            | Some (_, _, arguments) -> List.isEmpty arguments
            | None -> false
        let values = lets |> List.filter (isStatic >> not) |> List.collect (nodes "SynBinding") |> List.filter isValue
        let namesOf (bindings: Placed list) = bindings |> Seq.choose patternOf |> namesIn
        let bound = Seq.append ofConstructor (ofLets lets) |> placesIn |> Seq.countBy fst |> List.ofSeq
        // Of what bears one name the object keeps each under a name of its own.
        let once = Set.ofList [ for name, count in bound do if count = 1 then name ]
        let seesOf (hidden: Set<string>) (functions: Map<string, bool>) =
            let seen = Set.intersect once hidden
            { Hidden = hidden
              State = Set.intersect seen (namesIn ofConstructor + namesOf values)
              Mutable = Set.intersect seen (values |> List.filter isMutable |> namesOf)
              Functions = functions }
        let self = definitions |> List.tryFind (fun one -> one.Case = "ImplicitCtor") |> Option.bind (words >> List.tryHead)
        // Each `let` sees what stands above it, and itself where it is recursive.
        let ofLet (seen: Set<string>, functions: Map<string, bool>, items: (Placed * Item) list) (one: Placed) =
            let own = namesIn (ofLets [ one ])
            let isRecursiveLet = match flags one with _ :: isRecursive :: _ -> isRecursive | _ -> false
            let withOwn = (functions, own) ||> Set.fold (fun all name -> all.Add(name, isStatic one))
            let isOnce = Set.isSubset own once
            let sees = if isRecursiveLet then seesOf (seen + own) withOwn else seesOf seen functions
            match (if isOnce then reader.LetFunctions(scope, openings, isRecursive, name, parameters, sees, self, one) else None) with
            | Some item -> seen + own, withOwn, items @ [ (one, item) ]
            | None -> seen + own, functions, items
        let _, functions, letFunctions = ((namesIn ofConstructor, Map.empty, []), lets) ||> List.fold ofLet
        let sees = seesOf (Set.ofList (List.map fst bound)) functions
        let ofInterfaces = definitions |> List.filter (fun one -> one.Case = "Interface") |> List.collect (nodes "SynMemberDefn")
        let members =
            (definitions |> List.map (fun one -> false, one)) @ (ofInterfaces |> List.map (fun one -> true, one)) |> List.choose (fun (isOfInterface, one) ->
                reader.Member(scope, openings, isRecursive, name, parameters, sees, isOfInterface, one) |> Option.map (fun item -> one, item))
        for _, item in letFunctions do
            items.Add item
        // Overloads have one name; which is which is told by their order.
        let counted = Dictionary<string, int>()
        for _, item in members do
            let ordinal = match counted.TryGetValue item.Names.Head with | true, count -> count | _ -> 0
            counted.[item.Names.Head] <- ordinal + 1
            items.Add(match item.Kind with Member one -> { item with Kind = Member { one with Ordinal = ordinal } } | Function | Value -> item)
        let covered = letFunctions @ members |> List.map (fun (one, _) -> one.Place)
        let isCovered number = covered |> List.exists (fun place -> place.Line <= number && number <= place.EndLine)
        let uncovered =
            [ for number in part.Place.Line .. part.Place.EndLine do
                if not (isCovered number) then number, textOf { Line = number; Column = 0; EndLine = number; EndColumn = lines.[number - 1].Length } ]
        // Which code of the constructor means such a function depends on where that stands.
        let mentioned = lazy (wordsIn (Layout.code (String.Join("\n", List.map snd uncovered))))
        let places = [ for one, item in letFunctions do if List.exists mentioned.Value.Contains item.Names then one.Place.Line, "let " + String.Join(" ", item.Names) ]
        let shape = uncovered @ places |> List.sortBy fst |> List.map snd |> List.filter ((<>) "") |> String.concat "\n"
        let fields =
            part
            |> below
            |> Seq.filter (fun one -> one.Union = "SynField" || one.Union = "SynUnionCase" || one.Union = "SynEnumCase")
            |> Seq.collect (fun one -> (words one) @ (nodes "SynIdent" one |> List.collect words))
            |> List.ofSeq
        for one in name :: fields do
            declare scope one part.Place.Line
        // What extends another type is found by its name alone.
        if below part |> Seq.exists (fun one -> one.Union = "SynTypeDefnKind" && one.Case = "Augmentation") then
            for _, item in members do
                declare scope item.Names.Head part.Place.Line
                declared.[declared.Count - 1] <- { declared.[declared.Count - 1] with IsExtension = true }
        let isMember (one: Placed) = one.Union = "SynMemberDefn" && one.Place.IsKnown && List.contains one.Place covered
        addRestIn openings from ("the type `" + name + "`") part (Layout.without isMember shape [ part ])

    /// The declarations of a module or namespace.
    member reader.Declarations(scope: Scope, outer: Opening list, isRecursive: bool, reach: Reach, parts: Placed list) =
        let mutable opens = outer
        let own = if List.isEmpty scope.Modules then [] else [ Own scope.Path ]
        let mutable hasDeclared = false
        for part in parts |> List.filter (fun one -> one.Union = "SynModuleDecl") do
            match part.Case with
            | "Open" ->
                let text = (textOf part.Place).Trim()
                opens <- opens @ [ Opens text ]
                if hasDeclared then lateOpens.Add(scope.Path, part.Place.Line)
                allOpens.Add(String.Join(".", scope.Path) + ": " + text, part.Place.Line)
            | "ModuleAbbrev" ->
                let text = (textOf part.Place).Trim()
                opens <- opens @ [ Opens text ]
                addRest "a module's short name" part.Place (String.Join(".", scope.Path) + ": " + text)
            | "Let" ->
                hasDeclared <- true
                reader.Let(scope, opens @ own, isRecursive, reach, part)
            | "NestedModule" ->
                hasDeclared <- true
                let information = node "SynComponentInfo" part
                let name = nameOf information "a module"
                declare scope name part.Place.Line
                if information |> Option.exists (attributesOf >> List.exists (fst >> (=) "AutoOpen")) then
                    autoOpen.Add(scope.Path @ [ name ]) |> ignore
                let first = part.Parts |> List.tryFind (fun one -> one.Union = "SynModuleDecl")
                let header = match first with Some first -> { part.Place with EndLine = max part.Place.Line (first.Place.Line - 1); EndColumn = Int32.MaxValue } | None -> part.Place
                addRestIn (opens @ own) part.Place.Line ("the module `" + name + "`") part (Layout.without (fun _ -> false) (textOf header) [])
                let inner = { scope with Modules = scope.Modules @ [ name ] }
                let isInnerRecursive = isRecursive || List.contains true (flags part |> List.truncate 1)
                reader.Declarations(inner, opens @ own, isInnerRecursive, max reach (ofModule scope (Option.toList information)), part.Parts)
            | "Types" ->
                hasDeclared <- true
                for one in nodes "SynTypeDefn" part do
                    reader.Type(scope, opens @ own, isRecursive, part.Place.Line, one)
            | "Exception" ->
                hasDeclared <- true
                let names = below part |> Seq.filter (fun one -> one.Union = "SynUnionCase") |> Seq.collect below |> Seq.choose (fun one -> one.Word) |> Seq.truncate 1 |> List.ofSeq
                for name in names do
                    declare scope name part.Place.Line
                addRestIn (opens @ own) part.Place.Line "an exception" part (wholeOf part)
            | "Attributes" -> addRestIn (opens @ own) part.Place.Line "an attribute of the assembly" part (wholeOf part)
            | _ -> addRestIn (opens @ own) part.Place.Line "code that runs when the program starts" part (wholeOf part)

    /// One namespace, or the module that is the whole file.
    member reader.Root(part: Placed) =
        let path = words part
        let isModule = node "SynModuleOrNamespaceKind" part |> Option.exists (fun kind -> kind.Case = "NamedModule" || kind.Case = "AnonModule")
        let scope =
            if isModule then { Namespace = List.take (List.length path - 1) path; Modules = [ List.last path ] }
            else { Namespace = path; Modules = [] }
        namespaces.Add scope.Namespace |> ignore
        if isModule then
            declare { scope with Modules = [] } (List.last path) part.Place.Line
            if attributesOf part |> List.exists (fst >> (=) "AutoOpen") then autoOpen.Add path |> ignore
        let isRecursive = match flags part with first :: _ -> first | [] -> false
        let first = part.Parts |> List.tryFind (fun one -> one.Union = "SynModuleDecl")
        let header =
            match first with
            | Some first -> { Line = 1; Column = 0; EndLine = max 1 (first.Place.Line - 1); EndColumn = Int32.MaxValue }
            | None -> part.Place
        // What stands above the first declaration, back to what stands before it, names and marks the module.
        let header = { header with Line = min (max 1 part.Place.Line) header.EndLine }
        addRest ((if isModule then "the module `" else "the namespace `") + String.Join(".", path) + "`") part.Place
            (String.Join(".", path) + string isRecursive + "\n" + (if header.EndLine < (match first with Some first -> first.Place.Line | None -> 1) then textOf header else ""))
        let space = if List.isEmpty scope.Namespace then [] else [ Own scope.Namespace ]
        reader.Declarations(scope, space, isRecursive, ofModule { scope with Modules = [] } [ part ], part.Parts)

/// Reads the tree of a file, whose text has no conditional compilation left.
let read (text: string) (tree: obj) : Outline =
    // Strings keep the ends of lines that they have in the file.
    let lines = text.Split '\n'
    let roots = readPlaced tree
    let reader = Reader(lines, linesInStrings roots)
    for root in roots |> Seq.collect below |> Seq.filter (fun part -> part.Union = "SynModuleOrNamespace") do
        reader.Root root
    reader.Outline
