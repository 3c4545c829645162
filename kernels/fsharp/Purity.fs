/// Tells whether running a submission again could matter to later ones, from its untyped tree. Only what is proven harmless counts as
/// pure: names, literals, operators, printing and the functions of FSharp.Core named below, over parts that are pure themselves.
///
/// A name that the session's own code gives counts as unknown (`Names`), as do members, indexing and the enumeration of sequences, which
/// may run code of the session. What remains unnoticed is a `ToString` that assigns something, when its object is printed.
module Mainstay.Worker.Purity

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Names
open Mainstay.Worker.Syntax

/// Longer submissions count as impure unread.
let private lengthLimit = 65536

/// A first word that already tells of a change, so that the text need not be parsed.
let private definingWords =
    HashSet<string> [ "let"; "type"; "module"; "namespace"; "open"; "exception"; "extern"; "use"; "and" ]

/// Functions that change nothing and call none of their arguments.
let private plainFunctions =
    HashSet<string> [
        "abs"; "acos"; "asin"; "atan"; "atan2"; "bigint"; "box"; "byte"; "ceil"; "char"; "compare"; "cos"; "cosh"; "decimal"; "double"; "eprintf"
        "eprintfn"; "Error"; "exp"; "failwith"; "failwithf"; "float"; "float32"; "floor"; "fst"; "hash"; "id"; "ignore"; "infinity"; "int"; "int16"
        "int32"; "int64"; "int8"; "invalidArg"; "invalidOp"; "isNull"; "log"; "log10"; "max"; "min"; "nameof"; "nativeint"; "not"; "Ok"; "pown"; "printf"
        "printfn"; "raise"; "round"; "sbyte"; "sign"; "sin"; "single"; "sinh"; "sizeof"; "snd"; "Some"; "sprintf"; "sqrt"; "string"; "tan"; "tanh"
        "truncate"; "typedefof"; "typeof"; "uint16"; "uint32"; "uint64"; "uint8"; "unativeint"; "unbox"; "ValueSome";
    ]

/// Modules of FSharp.Core whose functions change nothing themselves, unless named in `mutators`. `Seq` is none of them: its sequences
/// are evaluated when they are enumerated.
let private pureModules = HashSet<string> [ "List"; "Option"; "String"; "Map"; "Set"; "Array"; "Result"; "ValueOption" ]

let private mutators =
    HashSet<string> [ "set"; "fill"; "blit"; "sortInPlace"; "sortInPlaceBy"; "sortInPlaceWith"; "CopyTo"; "Copy" ]

/// Functions of those modules that call no argument; every other one may call its first.
let private firstOrder =
    HashSet<string> [
        "add"; "allPairs"; "append"; "average"; "cache"; "cast"; "chunkBySize"; "concat"; "contains"; "containsKey"; "copy"; "count"; "defaultValue"
        "difference"; "distinct"; "empty"; "exactlyOne"; "except"; "find"; "findKey"; "flatten"; "get"; "head"; "indexed"; "insertAt"; "insertManyAt"
        "intersect"; "intersectMany"; "isEmpty"; "isNone"; "isProperSubset"; "isProperSuperset"; "isSome"; "isSubset"; "isSuperset"; "item"; "keys"
        "last"; "length"; "max"; "maxElement"; "min"; "minElement"; "nth"; "ofArray"; "ofList"; "ofNullable"; "ofObj"; "orElse"; "pairwise"
        "permute"; "rangeOf"; "readonly"; "remove"; "removeAt"; "removeManyAt"; "replicate"; "rev"; "singleton"; "skip"; "sort"; "sortDescending"
        "splitAt"; "splitInto"; "sub"; "sum"; "tail"; "take"; "toArray"; "toList"; "toNullable"; "toObj"; "toSeq"; "transpose"; "truncate"; "tryExactlyOne"
        "tryGet"; "tryHead"; "tryItem"; "tryLast"; "union"; "unionMany"; "unzip"; "unzip3"; "updateAt"; "values"; "windowed"; "zeroCreate"; "zip"; "zip3"
        "Join"; "Concat"; "Compare"; "Equals"; "Format"; "IsNullOrEmpty"; "IsNullOrWhiteSpace"
    ]

/// Functions of the pure modules whose second argument is the one they call.
let private secondOrderLate = HashSet<string> [ "init"; "initialize"; "fold2"; "foldBack2" ]

let private plainOperators =
    HashSet<string> [
        "op_Addition"; "op_Subtraction"; "op_Multiply"; "op_Division"; "op_Modulus"; "op_Exponentiation"; "op_Equality"; "op_Inequality"; "op_LessThan"
        "op_GreaterThan"; "op_LessThanOrEqual"; "op_GreaterThanOrEqual"; "op_BooleanAnd"; "op_BooleanOr"; "op_Concatenate"; "op_Append"; "op_ColonColon"
        "op_UnaryNegation"; "op_UnaryPlus"; "op_BitwiseAnd"; "op_BitwiseOr"; "op_ExclusiveOr"; "op_LogicalNot"; "op_LeftShift"; "op_RightShift"
        "op_Dereference"; "op_Range"; "op_RangeStep"; "op_Amp"; "op_AmpAmp"; "op_BarBar"
    ]

/// Static methods that change nothing but the console, and functions that only show something, by type or module; an empty list means
/// every one. What of the session's code runs when something is shown, is noticed when it does.
let private staticMethods =
    dict [
        "Mainstay", []
        "Console", [ "Write"; "WriteLine" ]
        "Out", [ "Write"; "WriteLine"; "Flush" ]
        "Error", [ "Write"; "WriteLine"; "Flush" ]
        "Math", []
        "Char", []
    ]

/// Methods that every object has and that are taken to change nothing.
let private objectMethods = HashSet<string> [ "ToString"; "GetType"; "GetHashCode"; "Equals"; "CompareTo" ]

/// Expressions that are pure when all the expressions in them are.
let private transparent =
    HashSet<string> [
        "Paren"; "Const"; "Typed"; "Upcast"; "Downcast"; "InferredUpcast"; "InferredDowncast"; "TypeTest"; "TypeApp"; "Tuple"
        "ArrayOrList"; "ArrayOrListOfSeqExpr"; "ArrayOrListComputed"; "CompExpr"; "ComputationExpr"; "IndexRange"; "IndexFromEnd"
        "Record"; "AnonRecd"; "InterpolatedString"; "Null"; "IfThenElse"; "Match"; "MatchLambda"; "Lambda"; "Sequential"; "TryWith"; "TryFinally"
        "For"; "While"; "YieldOrReturn"; "YieldOrReturnFrom"; "ImplicitZero"; "Quote"; "StructTuple"
    ]

let rec private expressionsIn (trees: Tree list) : Tree list =
    trees
    |> List.collect (fun tree ->
        match tree with
        | Node ("SynExpr", _, _) -> [ tree ]
        | Node (_, _, parts) -> expressionsIn parts
        | Name _
        | Flag _ -> [])

let private (|Expression|_|) (tree: Tree) =
    match tree with
    | Node ("SynExpr", case, parts) -> Some(case, parts)
    | _ -> None

let rec private unwrap (expression: Tree) =
    match expression with
    | Expression (("Paren" | "Typed" | "TypeApp"), parts) ->
        match expressionsIn parts with
        | inner :: _ -> unwrap inner
        | [] -> expression
    | _ -> expression

let rec private names (trees: Tree list) : string list =
    trees
    |> List.collect (fun tree ->
        match tree with
        | Name name -> [ name ]
        | Node (_, _, parts) -> names parts
        | Flag _ -> [])

/// The path that an expression names: `List.map` is [List; map].
let private (|Path|_|) (expression: Tree) =
    match unwrap expression with
    | Expression (("Ident" | "LongIdent"), parts) -> Some(names parts)
    | _ -> None

/// A call as its function and its arguments, all of them: `f a b` is (f, [a; b]).
let rec private (|Call|_|) (expression: Tree) =
    match expression with
    | Expression ("App", parts) ->
        match expressionsIn parts with
        | [ func; argument ] ->
            match unwrap func with
            | Call (head, arguments) -> Some(head, arguments @ [ argument ])
            | head -> Some(head, [ argument ])
        | _ -> None
    | _ -> None

/// What is known of the function a path names.
type private Known =
    | CallsNothing
    | CallsArgument of index: int
    | Unknown

let private isOperator (name: string) = name.StartsWith("op_", StringComparison.Ordinal)

let private isRedefined (own: Names) (path: string list) =
    path |> List.exists (fun name -> if isOperator name then own.RedefinesOperators else own.Redefines name)

let private knowledgeOf (own: Names) (path: string list) =
    match List.rev path with
    | _ when isRedefined own path -> Unknown
    | [ name ] when plainFunctions.Contains name || plainOperators.Contains name -> CallsNothing
    | name :: _ :: _ when objectMethods.Contains name -> CallsNothing
    | name :: owner :: _ when pureModules.Contains owner && not (mutators.Contains name) ->
        if firstOrder.Contains name then CallsNothing
        elif secondOrderLate.Contains name then CallsArgument 1
        else CallsArgument 0
    | name :: owner :: _ ->
        match staticMethods.TryGetValue owner with
        | true, methods when List.isEmpty methods || List.contains name methods -> CallsNothing
        | _ -> Unknown
    | _ -> Unknown

/// Whether a local binding is a `use`. The flags of that node are isRecursive and isUse, then others on later SDKs; a tree that keeps
/// them elsewhere is not understood, which counts as one.
let private isUse (parts: Tree list) =
    match parts |> List.choose (function Flag flag -> Some flag | _ -> None) with
    | _ :: isUse :: _ -> isUse
    | _ -> true

/// Whether reading this path runs nothing: a name of its own, or a member of a type or module that is known.
let private isPlainPath (own: Names) (path: string list) =
    match path with
    | [ _ ] -> true
    | owner :: _ when own.IsModule owner -> true
    | "System" :: _ -> not (isRedefined own path)
    | owner :: _ -> (pureModules.Contains owner || staticMethods.ContainsKey owner) && not (isRedefined own path)
    | [] -> false

let rec private isPure (own: Names) (expression: Tree) : bool =
    match expression with
    | Call (head, arguments) -> isPureCall own head arguments
    | Expression (("Ident" | "LongIdent"), parts) -> isPlainPath own (names parts)
    | Expression (("Match" | "MatchLambda" | "Lambda"), _) when own.HasPatterns -> false
    | Expression ("LetOrUse", parts) -> not (isUse parts) && not own.HasPatterns && arePure own (expressionsIn parts)
    | Expression (case, parts) when transparent.Contains case -> arePure own (expressionsIn parts)
    | _ -> false

and private arePure (own: Names) (expressions: Tree list) : bool = expressions |> List.forall (isPure own)

and private isPureCall (own: Names) (head: Tree) (arguments: Tree list) : bool =
    match head with
    | Path path -> isPureCallOf own path arguments
    | Expression (("Lambda" | "MatchLambda"), _) -> isPure own head && arePure own arguments
    | _ -> false

and private isPureCallOf (own: Names) (path: string list) (arguments: Tree list) : bool =
    match path, arguments with
    | _ when isRedefined own path -> false
    | [ "op_PipeRight" ], [ value; func ]
    | [ "op_PipeLeft" ], [ func; value ] -> isPure own value && isPureFunction own func
    | [ ("op_ComposeRight" | "op_ComposeLeft") ], functions -> functions |> List.forall (isPureFunction own)
    | [ "seq" ], [ body ] -> isPure own body
    | _ ->
        match knowledgeOf own path with
        | CallsNothing -> arePure own arguments
        | CallsArgument called ->
            arguments
            |> List.indexed
            |> List.forall (fun (index, argument) -> if index = called then isPureFunction own argument else isPure own argument)
        | Unknown -> false

/// Whether calling the value of this expression changes nothing.
and private isPureFunction (own: Names) (expression: Tree) : bool =
    match unwrap expression with
    | Path path -> knowledgeOf own path = CallsNothing
    | Call (head, arguments) -> isPureCall own head arguments
    | Expression (("Lambda" | "MatchLambda"), _) as lambda -> isPure own lambda
    | _ -> false

/// The declarations of the file whose tree this is: their cases and parts.
let rec private declarationsIn (tree: Tree) : (string * Tree list) list =
    match tree with
    | Node ("SynModuleDecl", case, parts) -> [ (case, parts) ]
    | Expression _ -> []
    | Node (_, _, parts) -> parts |> List.collect declarationsIn
    | Name _
    | Flag _ -> []

let private isPureDeclaration (own: Names) (case: string, parts: Tree list) =
    match case with
    | "DoExpr" | "Expr" -> arePure own (expressionsIn parts)
    | _ -> false

let private startsWithDefinition (text: string) =
    let trimmed = text.TrimStart()
    let word = String(trimmed |> Seq.takeWhile Char.IsLetter |> Seq.toArray)
    definingWords.Contains word || trimmed.StartsWith("#", StringComparison.Ordinal)

/// Whether running this submission again could matter; `own` are the names the session has given, `parse` gives the tree. It recurses as
/// deeply as the code is nested.
let changesState (own: Names) (parse: string -> obj option) (text: string) : bool =
    if text.Length > lengthLimit || startsWithDefinition text then true
    else
        try
            match parse text with
            | Some tree -> not (read tree |> List.collect declarationsIn |> List.forall (isPureDeclaration own))
            | None -> true
        with _ -> true // a tree that cannot be read proves nothing

/// What is called for what it does now, and not for what the session has afterwards: it is not run again to rebuild the session. An application
/// that runs is started again for itself.
let private commands = [ [ "Mainstay"; "Tests"; "run" ]; [ "Mainstay"; "App"; "run" ]; [ "Mainstay"; "App"; "runFrom" ]; [ "Mainstay"; "App"; "stop" ] ]

/// Whether an argument is made of nothing but literals, named or not.
let rec private isLiteral (expression: Tree) : bool =
    match expression with
    | Call (Path [ "op_Equality" ], arguments) -> List.forall isLiteral arguments
    | Expression (("Const" | "Ident"), _) -> true
    | Expression (("Paren" | "Tuple" | "Typed"), parts) -> List.forall isLiteral (expressionsIn parts)
    | _ -> false

/// Whether a submission runs tests, or starts or stops the application, and does nothing else.
let isCommand (own: Names) (parse: string -> obj option) (text: string) : bool =
    let isRun (case: string, parts: Tree list) =
        match case, expressionsIn parts with
        | ("DoExpr" | "Expr"), [ Call (Path path, arguments) ] -> List.contains path commands && List.forall isLiteral arguments
        | _ -> false
    let mayRun = (text.Contains "Mainstay.Tests." || text.Contains "Mainstay.App.") && text.Length <= lengthLimit && not (own.Gives "Mainstay")
    mayRun
    && (try
            match parse text |> Option.map (read >> List.collect declarationsIn) with
            | Some [ declaration ] -> isRun declaration
            | Some _
            | None -> false
        with _ -> false)

/// `it` where it can be a name: not inside another word, and not as somebody's member.
let private last = Regex(@"(?<![\w.'`])it(?![\w'`])", RegexOptions.CultureInvariant)

/// Whether the code may use the value of the submission before it. A text or a comment that says `it` counts as well, which does
/// no harm: that submission is then run again without need.
let usesLast (code: string) : bool = last.IsMatch code
