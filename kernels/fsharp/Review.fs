/// Reviews code: what its syntax tree shows that F# has a plainer way to write. Nothing of it runs, and no type is looked at, so what
/// is said is a suggestion. docs/fsharp-review.md lists the rules.
module Mainstay.Worker.Review

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol
open Mainstay.Worker.Syntax

/// How many suggestions an answer has.
let private limit = 200

/// What a rule says of a place.
type private Suggestion = { Code: string; Says: string; Place: Place }

/// The code under review, for what the tree leaves out: the text of a place, and what may be a named argument, `Visible = true`.
type private Text(code: string, arguments: HashSet<Place>) =
    let starts = [| yield 0; for index in 0 .. code.Length - 1 do if code.[index] = '\n' then yield index + 1 |]
    let index (line: int) (column: int) = if line > starts.Length then code.Length else min code.Length (starts.[line - 1] + column)

    member _.MayBeNamed(tree: Placed) : bool = arguments.Contains tree.Place

    member _.At(place: Place) : string =
        let start = index place.Line place.Column
        code.Substring(start, max 0 (index place.EndLine place.EndColumn - start))

let private isExpression (tree: Placed) = tree.Union = "SynExpr"

/// Without parentheses around it.
let rec private bare (tree: Placed) : Placed =
    match tree.Case, tree.Parts |> List.filter isExpression with
    | "Paren", inner :: _ when isExpression tree -> bare inner
    | _ -> tree

let rec private words (trees: Placed list) : string list =
    trees |> List.collect (fun tree -> match tree.Word with Some word -> [ word ] | None -> words tree.Parts)

let private (|Path|_|) (tree: Placed) =
    match (bare tree).Case with
    | "Ident" | "LongIdent" when isExpression tree -> Some(words (bare tree).Parts)
    | _ -> None

/// A call with all its arguments.
let rec private (|Call|_|) (tree: Placed) =
    let tree = bare tree
    if not (isExpression tree && tree.Case = "App") then None
    else
        match tree.Parts |> List.filter isExpression with
        | [ func; argument ] ->
            match func with
            | Call (head, arguments) when (bare func).Case = "App" -> Some(head, arguments @ [ argument ])
            | head -> Some(head, [ argument ])
        | _ -> None

/// A call of what has a name.
let private (|Named|_|) (tree: Placed) =
    match tree with
    | Call (Path path, arguments) -> Some(String.concat "." path, arguments)
    | _ -> None

let private (|Operator|_|) (tree: Placed) =
    match tree with
    | Named (name, [ left; right ]) when name.StartsWith("op_", StringComparison.Ordinal) -> Some(name, left, right)
    | _ -> None

/// The steps of `x |> f |> g`: [x; f; g].
let rec private pipeline (tree: Placed) : Placed list =
    match tree with
    | Operator ("op_PipeRight", left, right) -> pipeline left @ [ right ]
    | other -> [ other ]

let private (|Truth|_|) (tree: Placed) =
    let tree = bare tree
    match tree.Case, tree.Parts with
    | "Const", [ { Case = "Bool"; Parts = [ { Flag = Some truth } ] } ] -> Some truth
    | _ -> None

let private collections = [ "List"; "Array"; "Seq"; "Set"; "Map" ]

/// A function of a collection's module: `List.map` is (List, map).
let private (|OfCollection|_|) (path: string list) =
    match path with
    | [ owner; name ] when List.contains owner collections -> Some(owner, name)
    | _ -> None

let rec private all (tree: Placed) : Placed seq =
    seq {
        yield tree
        for part in tree.Parts do yield! all part
    }

/// A function of one argument: the argument and the body.
let private (|Lambda|_|) (tree: Placed) =
    let tree = bare tree
    if not (isExpression tree && tree.Case = "Lambda") then None
    else
        // What was parsed is kept beside it on later SDKs; the first body is the one that counts.
        let pattern = tree.Parts |> List.tryFind (fun part -> part.Union = "SynSimplePats" || part.Union = "SynSimplePat")
        match pattern, tree.Parts |> List.filter isExpression with
        | Some pattern, body :: _ ->
            match words [ pattern ] with
            | [ name ] when (bare body).Case <> "Lambda" -> Some(name, body)
            | _ -> None
        | _ -> None

let private clausesOf (tree: Placed) = tree.Parts |> List.filter (fun part -> part.Union = "SynMatchClause")

/// A clause without a condition: the words of its pattern, whether they are all of it, and its result.
let private (|Clause|_|) (clause: Placed) =
    match clause.Parts |> List.filter (fun part -> part.Union = "SynPat"), clause.Parts |> List.filter isExpression with
    | [ pattern ], [ result ] -> Some(pattern, result)
    | _ -> None

let private isMatch (tree: Placed) = isExpression tree && tree.Case = "Match"

let private inParentheses (text: string) = if Regex.IsMatch(text, @"^[\w.]+$") then text else "(" + text + ")"

/// The rules: what each says of a part of the tree, where it says anything.
let private rules: (string * (Text -> Placed -> string option)) list =
    let conditional (tree: Placed) =
        if isExpression tree && tree.Case = "IfThenElse" then
            match tree.Parts |> List.filter isExpression with
            | [ condition; yes; no ] -> Some(condition, yes, no)
            | _ -> None
        else None
    [ "FSR001", fun text tree ->
        match conditional tree with
        | Some (condition, Truth true, Truth false) -> Some(sprintf "the condition is the value already: `%s`" (text.At condition.Place))
        | Some (condition, Truth false, Truth true) -> Some(sprintf "the value is the condition turned round: `not %s`" (inParentheses (text.At condition.Place)))
        | _ -> None
      "FSR002", fun text tree ->
        match tree with
        | _ when text.MayBeNamed tree -> None
        | Operator ("op_Equality", other, Truth true)
        | Operator ("op_Inequality", other, Truth false) -> Some(sprintf "a comparison with a truth value says nothing: `%s`" (text.At other.Place))
        | Operator ("op_Equality", other, Truth false)
        | Operator ("op_Inequality", other, Truth true) -> Some(sprintf "`not` says it: `not %s`" (inParentheses (text.At other.Place)))
        | _ -> None
      "FSR003", fun text tree ->
        match tree with
        | Named ("not", [ Operator ("op_Equality", left, right) ]) -> Some(sprintf "there is an operator for it: `%s <> %s`" (text.At left.Place) (text.At right.Place))
        | Named ("not", [ Operator ("op_Inequality", left, right) ]) -> Some(sprintf "there is an operator for it: `%s = %s`" (text.At left.Place) (text.At right.Place))
        | _ -> None
      "FSR004", fun text tree ->
        let counted (other: Placed) =
            match other with
            | Call (Path (OfCollection (owner, ("length" | "count"))), [ items ]) -> Some(owner, text.At items.Place)
            | _ ->
                match List.rev (pipeline other) with
                | Path (OfCollection (owner, ("length" | "count"))) :: [ items ] -> Some(owner, inParentheses (text.At items.Place))
                | _ -> None
        match tree with
        | Operator (("op_Equality" | "op_Inequality" | "op_GreaterThan") as operator, left, right) when text.At right.Place = "0" ->
            counted left
            |> Option.map (fun (owner, items) ->
                let isEmpty = sprintf "%s.isEmpty %s" owner items
                sprintf "whether there are any need not be counted: `%s`" (if operator = "op_Equality" then isEmpty else "not (" + isEmpty + ")"))
        | _ -> None
      "FSR005", fun text tree ->
        match List.rev (pipeline tree) with
        | Path (OfCollection (owner, (("head" | "tryHead" | "isEmpty") as last))) :: Call (Path (OfCollection (other, "filter")), [ condition ]) :: _ :: _ when owner = other ->
            let instead =
                match last with
                | "head" -> sprintf "%s.find %s" owner (text.At condition.Place)
                | "tryHead" -> sprintf "%s.tryFind %s" owner (text.At condition.Place)
                | _ -> sprintf "%s.exists %s` and `not" owner (text.At condition.Place)
            Some(sprintf "one function does both and stops at the first: `%s`" instead)
        | _ -> None
      "FSR006", fun text tree ->
        match List.rev (pipeline tree) with
        | Call (Path (OfCollection (owner, "map")), [ second ]) :: Call (Path (OfCollection (other, "map")), [ first ]) :: _ :: _ when owner = other ->
            Some(sprintf "one pass does both: `%s.map (%s >> %s)`" owner (text.At first.Place) (text.At second.Place))
        | _ -> None
      "FSR007", fun text tree ->
        match tree.Case, tree with
        | "Lambda", Lambda (name, Call (Path path, [ argument ])) when Char.IsLower (List.last path).[0] && List.head path <> name ->
            match argument with
            | Path [ given ] when given = name -> Some(sprintf "the function itself does: `%s`" (String.concat "." path))
            | _ -> None
        | "Lambda", Lambda (name, Path [ given ]) when given = name -> Some "it gives back what it is given: `id`"
        | _ -> None
      "FSR008", fun text tree ->
        if not (isMatch tree) then None
        else
            match clausesOf tree with
            | [ Clause (some, result); Clause (none, nothing) ] ->
                match words [ some ], words [ none ], result, nothing with
                | [ "Some"; name ], [ "None" ], Call (Path [ "Some" ], [ value ]), Path [ "None" ] when Char.IsLower name.[0] ->
                    Some(sprintf "`Option.map` does it: `Option.map (fun %s -> %s)`" name (text.At (bare value).Place))
                | _ -> None
            | _ -> None
      "FSR009", fun _ tree ->
        if not (isMatch tree) then None
        else
            let isTruth (clause: Placed) =
                match clause with
                | Clause (pattern, _) -> all pattern |> Seq.exists (fun part -> part.Case = "Bool") && pattern.Case = "Const"
                | _ -> false
            if clausesOf tree |> List.exists isTruth && List.length (clausesOf tree) = 2 then Some "for two ways to go on there is `if … then … else`" else None
      "FSR010", fun text tree ->
        if not (isExpression tree && (tree.Case = "LetOrUse" || tree.Case = "LetOrUseBang")) then None
        else
            let bindings = tree.Parts |> List.filter (fun part -> part.Union = "SynBinding")
            let body = tree.Parts |> List.filter isExpression
            match bindings with
            | [ binding ] ->
                match binding.Parts |> List.tryFind (fun part -> part.Union = "SynPat") with
                | Some pattern when Regex.IsMatch(text.At tree.Place, @"^let\s+mutable\b") ->
                    match words [ pattern ] with
                    | [ name ] ->
                        let assigns (part: Placed) =
                            match part.Case with
                            | "LongIdentSet" | "Set" | "AddressOf" | "DotSet" | "DotIndexedSet" | "DotNamedIndexedPropertySet" | "NamedIndexedPropertySet" -> words [ part ] |> List.contains name
                            | _ -> false
                        if body |> Seq.collect all |> Seq.exists assigns then None
                        else Some(sprintf "`%s` is never assigned again, so it need not be `mutable`" name)
                    | _ -> None
                | _ -> None
            | _ -> None
      "FSR011", fun text tree ->
        match tree with
        | Operator ("op_ColonEquals", cell, value) -> Some(sprintf "F# 6 and later write it as an assignment: `%s.Value <- %s`" (text.At cell.Place) (text.At value.Place))
        | Named ("op_Dereference", [ cell ]) -> Some(sprintf "F# 6 and later write it as a property: `%s.Value`" (text.At cell.Place))
        | _ -> None
      "FSR012", fun _ tree ->
        if not (isExpression tree && tree.Case = "TryWith") then None
        else
            match clausesOf tree with
            | [ Clause (pattern, result) ] when pattern.Case = "Wild" && (bare result).Case = "Const" && (bare result).Parts |> List.exists (fun part -> part.Case = "Unit") ->
                Some "every failure is swallowed, also those that nobody thought of: catch the one that is meant, `with :? System.IO.IOException -> ()`"
            | _ -> None
      "FSR013", fun text tree ->
        // Of a range the first and the last are its two expressions, however an SDK has it in its tree.
        let range (items: Placed) =
            match items with
            | Operator ("op_Range", first, last) -> Some(first, last)
            | _ ->
                match items.Case, items.Parts |> List.filter isExpression with
                | "IndexRange", [ first; last ] -> Some(first, last)
                | _ -> None
        let loop =
            match tree.Case, tree.Parts |> List.filter isExpression, tree.Parts |> List.filter (fun part -> part.Union = "SynPat") with
            | "ForEach", [ items; body ], [ pattern ] when isExpression tree -> range items |> Option.map (fun (first, last) -> words [ pattern ], first, last, body)
            | "For", [ first; last; body ], _ when isExpression tree -> Some(words (tree.Parts |> List.filter (fun part -> part.Word.IsSome)), first, last, body)
            | _ -> None
        match loop with
        | None -> None
        | Some (names, first, last, body) ->
            match names with
            | [ name ] when text.At first.Place = "0" ->
                let found = Regex.Match(text.At last.Place, @"^(\w+)\.Length\s*-\s*1$|^(?:List|Array)\.length\s+(\w+)\s*-\s*1$")
                let items = if found.Groups.[1].Success then found.Groups.[1].Value else found.Groups.[2].Value
                let written = text.At body.Place
                let uses = Regex.Matches(written, @"\b" + Regex.Escape name + @"\b").Count
                let indexed = Regex.Matches(written, Regex.Escape items + @"\.?\[\s*" + Regex.Escape name + @"\s*\](?!\s*<-)").Count
                if found.Success && uses > 0 && uses = indexed then Some(sprintf "the items themselves can be gone through: `for item in %s do`" items) else None
            | _ -> None
      "FSR014", fun text tree ->
        match tree with
        | Call (Path (OfCollection (owner, "fold")), (folder :: start :: _)) ->
            let folds = text.At (bare folder).Place
            let isSum = folds = "+" || Regex.IsMatch(folds, @"^fun (\w+) (\w+) -> (\1 \+ \2|\2 \+ \1)$")
            if isSum && text.At start.Place = "0" then Some(sprintf "there is a function for it: `%s.sum`" owner) else None
        | _ -> None
      "FSR015", fun text tree ->
        match tree with
        | _ when text.MayBeNamed tree -> None
        | Operator ("op_Equality", other, null') when text.At null'.Place = "null" -> Some(sprintf "`isNull` asks no equality of the type: `isNull %s`" (text.At other.Place))
        | Operator ("op_Inequality", other, null') when text.At null'.Place = "null" -> Some(sprintf "`isNull` asks no equality of the type: `not (isNull %s)`" (text.At other.Place))
        | _ -> None
      "FSR016", fun text tree ->
        match (if isExpression tree && tree.Case = "IfThenElse" then tree.Parts |> List.filter isExpression else []) with
        | condition :: yes :: _ ->
            let asked =
                match condition with
                | Path path when List.length path > 1 && List.last path = "IsSome" -> Some(path |> List.take (path.Length - 1) |> String.concat ".")
                | Call (Path [ "Option"; "isSome" ], [ Path path ]) -> Some(String.concat "." path)
                | _ -> None
            match asked with
            | Some name when (text.At yes.Place).Contains(name + ".Value") || (text.At yes.Place).Contains("Option.get " + name) ->
                Some(sprintf "a match asks and takes at once: `match %s with Some value -> … | None -> …`" name)
            | _ -> None
        | _ -> None
      "FSR017", fun text tree ->
        match tree with
        | Named ("sprintf", [ format ]) when (bare format).Case = "Const" && not ((text.At format.Place).Contains "%") ->
            Some(sprintf "there is nothing to fill in: `%s`" (text.At format.Place))
        | Named ("failwith", [ Named ("sprintf", arguments) ]) ->
            Some(sprintf "one function does both: `failwithf %s`" (arguments |> List.map (fun argument -> text.At argument.Place) |> String.concat " "))
        | Named ("raise", [ Call (Path path, [ message ]) ]) when (path = [ "Exception" ] || path = [ "System"; "Exception" ]) && (bare message).Case <> "Tuple" ->
            Some(sprintf "`failwith` raises such a one: `failwith %s`" (text.At (bare message).Place))
        | _ -> None
      "FSR018", fun text tree ->
        match tree with
        | Call (Path [ ("async" | "task") ], [ computation ]) ->
            let inner = (text.At computation.Place).Trim().TrimStart('{').TrimEnd('}').Trim()
            let found = Regex.Match(inner, @"^return!\s+([^\n]+)$")
            if found.Success then Some(sprintf "the computation only passes on what it has: `%s`" found.Groups.[1].Value) else None
        | _ -> None ]

/// What stands in parentheses behind a function or an attribute: there an equation may name an argument.
let private argumentsIn (parts: Placed seq) : HashSet<Place> =
    let found = HashSet<Place>()
    for part in parts do
        let arguments =
            match part with
            | Call (_, arguments) -> arguments
            | _ when isExpression part && part.Case = "New" -> part.Parts |> List.filter isExpression
            | _ when isExpression part || part.Union = "SynExprRecordField" -> []
            | _ ->
                // The name and the argument of an attribute stand side by side among the parts of what it is on.
                part.Parts |> List.pairwise |> List.choose (fun (name, argument) -> if isLongName name && isExpression argument then Some argument else None)
        for argument in arguments do
            let inner = bare argument
            if argument.Case = "Paren" then
                for one in (if inner.Case = "Tuple" then inner.Parts else [ inner ]) do found.Add one.Place |> ignore
    found

/// What the rules say of the code, in the order of their places, and how many more there are; None where it cannot be
/// parsed.
let review (session: Session) (code: string) : (Diagnostic list * int) option =
    let awaiting = Splitter.awaiting 1 code
    match parse session awaiting.Code with
    | None -> None
    | Some tree ->
        let parts = readPlaced tree |> Seq.collect all |> Array.ofSeq
        let text = Text(awaiting.Code, argumentsIn parts)
        let told =
            parts
            |> Seq.collect (fun part ->
                if not (isExpression part) || part.Case = "Paren" then Seq.empty
                else rules |> Seq.choose (fun (code, rule) -> rule text part |> Option.map (fun says -> { Code = code; Says = says; Place = part.Place })))
            |> Seq.filter (fun suggestion -> suggestion.Place.IsKnown)
            |> List.ofSeq
        // Of a pipeline each longer part says what the shorter says.
        let told = told |> List.distinctBy (fun one -> one.Code, one.Says) |> List.sortBy (fun one -> one.Place)
        let position line column : Position = { Line = Awaits.originOf awaiting.Split line; Column = column + 1 }
        let diagnostic (one: Suggestion) : Diagnostic =
            { Severity = "info"
              Code = one.Code
              Message = one.Says
              Start = position one.Place.Line one.Place.Column
              End = position one.Place.EndLine one.Place.EndColumn }
        Some(told |> List.truncate limit |> List.map diagnostic, max 0 (told.Length - limit))
