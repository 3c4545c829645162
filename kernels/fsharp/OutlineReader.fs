/// Reads what a source file declares.
module Mainstay.Worker.OutlineReader

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Bindings
open Mainstay.Worker.FileText
open Mainstay.Worker.Outline
open Mainstay.Worker.Rewritings
open Mainstay.Worker.Syntax
open Mainstay.Worker.TypeScope

let private staticLet = Regex(@"^\s*(static\s+let)\b", RegexOptions.CultureInvariant)

/// Where a declaration stands.
type private Standing =
    { Scope: Scope
      Openings: Opening list
      /// Whether names declared further down are visible.
      IsRecursive: bool
      Reach: Reach }

/// The type that a member, or a function that `let` binds, belongs to.
type private Owner =
    { Name: string
      Parameters: string list
      Sees: TypeScope }

/// Reads one file.
type private Reader(text: FileText) =
    let items = List<Item>()
    let rest = List<Rest>()
    let declared = List<Declared>()
    let lateOpens = List<string list * int>()
    let allOpens = List<string * int>()
    let namespaces = HashSet<string list>()
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
            declared.Add { Name = text.Within(place).Trim('(', ')', ' '); Path = scope.Path; Line = place.Line; IsExtension = false }

    let addRest what (place: Place) (shape: string) =
        rest.Add { What = what; Line = place.Line; From = place.Line; Text = Layout.without (fun _ -> false) shape []; Openings = [] }

    /// Adds what mentions names. `from` is the line from which on it is seen.
    let addRestIn openings from what (part: Placed) shape =
        rest.Add { What = what; Line = part.Place.Line; From = from; Text = shape; Openings = openings }

    /// A declaration without what depends on its kind. `compared` is the text by which versions are compared.
    let itemOf (standing: Standing) (kind: Kind) (names: string list) (part: Placed) (mentioned: Set<string>) (compared: string) : Item =
        { Scope = standing.Scope
          Kind = kind
          Names = names
          CompiledNames = names
          Line = part.Place.Line
          EndLine = part.Place.EndLine
          Column = part.Place.Column
          // Where it stands counts where its code asks for that.
          Text = (if mentioned.Contains "__LINE__" then compared + "\n" + string part.Place.Line else compared)
          Words = mentioned
          Attributes = []
          Rewritten = []
          Arguments = Set.empty
          HandedOver = handedOver text part
          HasComputation = hasComputation part
          MakesAnonymous = makesAnonymous part
          NamesAnonymous = namesAnonymous part
          Openings = standing.Openings
          IsRecursiveScope = standing.IsRecursive
          IsInline = false
          Reach = standing.Reach
          Fixed = None }

    /// What belongs to a type, without what depends on whether it is a member. What follows its name begins at this line and column.
    let ofOwner (owner: Owner) (inner: Inner) (part: Placed) (mentioned: Set<string>) (line: int, column: int) : MemberOf =
        { Type = owner.Name
          Parameters = owner.Parameters
          IsStatic = false
          IsLet = false
          IsProperty = false
          TakesUnit = false
          Self = inner.Self
          Ordinal = 0
          State = inner.State
          StateNames = inner.OfObject
          LetUses = inner.LetUses
          Hidden = inner.Hidden
          KeepsLets = not (List.isEmpty inner.LetUses) && (keepsFunctions part || inner.LetUses |> List.exists (fun one -> one.Applied = Unapplied))
          CallsBase = mentioned.Contains "base" && callsBase part
          AfterName = line, column
          IsTaken = false
          Untyped = [] }

    member _.Outline =
        { Lines = text.Lines
          InString = text.InString
          Items = List.ofSeq items
          Rest = List.ofSeq rest
          Namespaces = Set.ofSeq namespaces
          AutoOpen = Set.ofSeq autoOpen
          Declared = List.ofSeq declared
          LateOpens = List.ofSeq lateOpens
          Opens = List.ofSeq allOpens }

    /// The bindings of one `let` of a module.
    member private reader.Let(standing: Standing, part: Placed) =
        let bindings = nodes "SynBinding" part
        let named =
            bindings |> List.map (fun binding ->
                let attributes = text.Attributes binding
                binding, attributes, patternOf binding |> Option.bind nameIn)
        for _, _, name in named do
            name |> Option.iter (fun (name, place, _) -> declareAt standing.Scope name place)
        match named |> List.forall (fun (_, _, name) -> name.IsSome), named with
        | false, _
        | _, [] ->
            let names = bindings |> Seq.choose patternOf |> Seq.collect below |> Seq.filter (fun one -> one.Union = "SynPat") |> Seq.choose nameIn |> List.ofSeq
            for name, place, _ in names do
                declare standing.Scope name place.Line
            addRestIn standing.Openings part.Place.Line "a binding of a pattern" part (text.WithoutLayout part)
        | true, (first, _, _) :: _ ->
            let isFunction (binding: Placed) arguments =
                not (List.isEmpty arguments) || (expressionOf binding |> Option.exists isLambda)
            let kinds = named |> List.map (fun (binding, _, name) -> let _, _, arguments = name.Value in isFunction binding arguments)
            let names = named |> List.map (fun (_, _, name) -> let name, _, _ = name.Value in name)
            let code = text.Of part.Place
            let why =
                if kinds |> List.distinct |> List.length > 1 then Some "it binds functions together with values"
                elif not kinds.Head && isMutable first then Some "it is a mutable value, which keeps what it holds"
                else named |> List.tryPick (fun (binding, attributes, _) -> fixedBy binding attributes)
            let isInline = named |> List.exists (fun (binding, _, _) -> isInline binding)
            let compared = if kinds.Head && why.IsNone && not isInline then code else text.WithoutLayout part
            items.Add
                { itemOf standing (if kinds.Head then Function else Value) names part (wordsIn (Layout.code code)) compared with
                    CompiledNames = List.map2 (fun (_, attributes, _) name -> compiledName attributes name) named names
                    Attributes = named |> List.collect (fun (_, attributes, _) -> attributes)
                    Arguments = (match named with [ binding, _, _ ] -> patternOf binding |> Option.map argumentsOf |> Option.defaultValue Set.empty | _ -> Set.empty)
                    Rewritten = (match named with [ _, attributes, Some (_, _, [ argument ]) ] -> entryArgument attributes argument | _ -> [])
                    IsInline = isInline
                    Reach = (standing.Reach, bindings) ||> List.fold (fun strictest binding -> max strictest (reachOf (binding :: (patternOf binding |> Option.map headOf |> Option.toList))))
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
    member private reader.Member(standing: Standing, owner: Owner, isOfInterface: bool, part: Placed) : Item option =
        match nodes "SynBinding" part, part.Case with
        | [ binding ], "Member" when text.HasItsLines part.Place ->
            let attributes = text.Attributes binding
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
                    let takesUnit = match arguments with [ only ] -> isUnit text only | _ -> false
                    let line, column =
                        if takesUnit then arguments.Head.Place.EndLine, arguments.Head.Place.EndColumn else namePlace.EndLine, namePlace.EndColumn
                    // Of an operator the name stands in parentheses.
                    let behind = text.Behind(line, column)
                    let column = if behind.TrimStart().StartsWith(")", StringComparison.Ordinal) && not takesUnit then column + behind.IndexOf ')' + 1 else column
                    let code = text.Of part.Place
                    let mentioned = wordsIn (Layout.code code)
                    let inner = innerOf text owner.Sees isInstance (match self with Some "__" | None -> "_" | Some name -> name) [ binding ]
                    let ofSelf = [ if inner.IsUnnamed then for place in Option.toList selfPlace -> { Line = place.Line; Column = place.Column; Length = place.EndColumn - place.Column; Text = inner.Self } ]
                    let isTaken = isOfInterface || isOverride
                    let kind =
                        Member
                            { ofOwner owner inner part mentioned (line, column) with
                                IsStatic = not isInstance
                                IsProperty = List.isEmpty arguments
                                TakesUnit = takesUnit
                                StateNames = ofSelf @ inner.OfObject
                                IsTaken = isTaken
                                Untyped = if isTaken then reader.Untyped arguments else [] }
                    { itemOf standing kind [ name ] part mentioned (if isInline binding then text.WithoutLayout part else code) with
                        CompiledNames = [ compiledName attributes name ]
                        Attributes = attributes
                        Arguments = (if inner.Self = "_" then argumentsOf pattern else (argumentsOf pattern).Add inner.Self)
                        Rewritten = inner.OfObject @ optionalArguments pattern @ (expressionOf binding |> Option.map functionGiven |> Option.defaultValue [])
                        Reach = Everywhere
                        Fixed = if isInline binding then Some "it is inline, so its callers contain it" else fixedBy binding attributes })
            | _ -> None
        | _ -> None

    /// The functions that one `let` binds in a type, as one declaration that can be replaced alone; None where they are a part of the type.
    /// `self` is what the type calls its object.
    member private _.LetFunctions(standing: Standing, owner: Owner, self: string option, part: Placed) : Item option =
        let isStatic = match flags part with isStatic :: _ -> isStatic | [] -> false
        let named = nodes "SynBinding" part |> List.map (fun binding -> binding, patternOf binding |> Option.bind nameIn)
        let isPlain (name: string) = name |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '_' || c = '\'')
        // Where what stands for the object is taken, before all else.
        let takesObject (binding: Placed, found: (string * Place * Placed list) option) =
            match found with
            | Some (name, _, _) when not (isPlain name && List.isEmpty (text.Attributes binding)) || isInline binding || isMutable binding -> None
            | Some (_, _, first :: _) when first.Place.IsKnown -> Some(first.Place.Line, first.Place.Column)
            | Some (_, place, []) when expressionOf binding |> Option.exists isLambda -> Some(place.EndLine, place.EndColumn)
            | _ -> None
        let taking = List.map takesObject named
        // A static function takes no object that would tell the arguments of its generic type.
        let isOfUnknown = isStatic && not (List.isEmpty owner.Parameters)
        // Comments stand before it.
        let keyword = seq { part.Place.Line .. part.Place.EndLine } |> Seq.map (fun number -> number, staticLet.Match text.Lines.[number - 1]) |> Seq.tryFind (fun (_, found) -> found.Success)
        if not (text.HasItsLines part.Place) || List.isEmpty named || List.exists Option.isNone taking || isOfUnknown || (isStatic && keyword.IsNone) then None
        else
            let names = [ for _, found in named -> (let name, _, _ = found.Value in name) ]
            let inner = innerOf text owner.Sees (not isStatic) (if isStatic then "_" else defaultArg self "_") (List.map fst named)
            let ofType = if List.isEmpty owner.Parameters then owner.Name else owner.Name + "<" + String.Join(", ", owner.Parameters) + ">"
            let self = if inner.Self = "_" then UnnamedSelf else inner.Self
            // What takes `()` alone takes nothing but its object.
            let unit = match named with [ (_, Some (_, _, [ only ])) ] when not isStatic && isUnit text only -> Some only.Place | _ -> None
            // No column moves: what follows stands in a line of its own.
            let objectAt (line: int, column: int) =
                let length = match unit with Some place -> place.EndColumn - column | None -> 0
                { Line = line; Column = column; Length = length; Text = " (" + self + ": " + ofType + ")\n" + String(' ', column + length) }
            let ofObject = if isStatic then [] else List.choose id taking |> List.map objectAt
            let ofKeyword =
                match keyword with
                | Some (line, found) when isStatic -> [ { Line = line; Column = found.Groups.[1].Index; Length = found.Groups.[1].Length; Text = "let" + String(' ', found.Groups.[1].Length - 3) } ]
                | _ -> []
            let code = text.Of part.Place
            let mentioned = wordsIn (Layout.code code)
            // What is bound above it decides what its names mean.
            let seen = Set.toList inner.State @ [ for one in inner.LetUses -> one.Function ] @ Option.toList inner.Hidden |> List.distinct |> List.sort
            let kind =
                Member
                    { ofOwner owner inner part mentioned (part.Place.Line, part.Place.Column) with
                        IsStatic = isStatic
                        IsLet = true
                        TakesUnit = unit.IsSome
                        Self = self
                        Ordinal = -1 }
            Some
                { itemOf standing kind names part mentioned (String.Join(" ", code :: seen)) with
                    Rewritten = ofKeyword @ ofObject @ inner.OfObject
                    Arguments = named |> Seq.choose (fst >> patternOf) |> Seq.map argumentsOf |> Set.unionMany |> Set.add self
                    Reach = InModule }

    /// A type: its members one by one, and the rest of it as its shape.
    member private reader.Type(standing: Standing, from: int, part: Placed) =
        let information = node "SynComponentInfo" part
        let name = nameOf information "a type"
        let parameters =
            information
            |> Option.map (fun one -> below one |> Seq.filter (fun inner -> inner.Union = "SynTypar") |> List.ofSeq)
            |> Option.defaultValue []
            |> List.map (fun parameter -> (text.Of parameter.Place).Trim())
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
            match (if isOnce then reader.LetFunctions(standing, { Name = name; Parameters = parameters; Sees = sees }, self, one) else None) with
            | Some item -> seen + own, withOwn, items @ [ (one, item) ]
            | None -> seen + own, functions, items
        let _, functions, letFunctions = ((namesIn ofConstructor, Map.empty, []), lets) ||> List.fold ofLet
        let owner = { Name = name; Parameters = parameters; Sees = seesOf (Set.ofList (List.map fst bound)) functions }
        let ofInterfaces = definitions |> List.filter (fun one -> one.Case = "Interface") |> List.collect (nodes "SynMemberDefn")
        let members =
            (definitions |> List.map (fun one -> false, one)) @ (ofInterfaces |> List.map (fun one -> true, one)) |> List.choose (fun (isOfInterface, one) ->
                reader.Member(standing, owner, isOfInterface, one) |> Option.map (fun item -> one, item))
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
                if not (isCovered number) then number, text.Of { Line = number; Column = 0; EndLine = number; EndColumn = text.Lines.[number - 1].Length } ]
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
            declare standing.Scope one part.Place.Line
        // What extends another type is found by its name alone.
        if below part |> Seq.exists (fun one -> one.Union = "SynTypeDefnKind" && one.Case = "Augmentation") then
            for _, item in members do
                declare standing.Scope item.Names.Head part.Place.Line
                declared.[declared.Count - 1] <- { declared.[declared.Count - 1] with IsExtension = true }
        let isMember (one: Placed) = one.Union = "SynMemberDefn" && one.Place.IsKnown && List.contains one.Place covered
        addRestIn standing.Openings from ("the type `" + name + "`") part (Layout.without isMember shape [ part ])

    /// The declarations of a module or namespace.
    member private reader.Declarations(standing: Standing, parts: Placed list) =
        let scope = standing.Scope
        let mutable opens = standing.Openings
        let own = if List.isEmpty scope.Modules then [] else [ Own scope.Path ]
        let mutable hasDeclared = false
        for part in parts |> List.filter (fun one -> one.Union = "SynModuleDecl") do
            match part.Case with
            | "Open" ->
                let opened = (text.Of part.Place).Trim()
                opens <- opens @ [ Opens opened ]
                if hasDeclared then lateOpens.Add(scope.Path, part.Place.Line)
                allOpens.Add(String.Join(".", scope.Path) + ": " + opened, part.Place.Line)
            | "ModuleAbbrev" ->
                let opened = (text.Of part.Place).Trim()
                opens <- opens @ [ Opens opened ]
                addRest "a module's short name" part.Place (String.Join(".", scope.Path) + ": " + opened)
            | "Let" ->
                hasDeclared <- true
                reader.Let({ standing with Openings = opens @ own }, part)
            | "NestedModule" ->
                hasDeclared <- true
                let information = node "SynComponentInfo" part
                let name = nameOf information "a module"
                declare scope name part.Place.Line
                if information |> Option.exists (text.Attributes >> List.exists (fst >> (=) "AutoOpen")) then
                    autoOpen.Add(scope.Path @ [ name ]) |> ignore
                let first = part.Parts |> List.tryFind (fun one -> one.Union = "SynModuleDecl")
                let header = match first with Some first -> { part.Place with EndLine = max part.Place.Line (first.Place.Line - 1); EndColumn = Int32.MaxValue } | None -> part.Place
                addRestIn (opens @ own) part.Place.Line ("the module `" + name + "`") part (Layout.without (fun _ -> false) (text.Of header) [])
                let inner =
                    { Scope = { scope with Modules = scope.Modules @ [ name ] }
                      Openings = opens @ own
                      IsRecursive = standing.IsRecursive || List.contains true (flags part |> List.truncate 1)
                      Reach = max standing.Reach (ofModule scope (Option.toList information)) }
                reader.Declarations(inner, part.Parts)
            | "Types" ->
                hasDeclared <- true
                for one in nodes "SynTypeDefn" part do
                    reader.Type({ standing with Openings = opens @ own }, part.Place.Line, one)
            | "Exception" ->
                hasDeclared <- true
                let names = below part |> Seq.filter (fun one -> one.Union = "SynUnionCase") |> Seq.collect below |> Seq.choose (fun one -> one.Word) |> Seq.truncate 1 |> List.ofSeq
                for name in names do
                    declare scope name part.Place.Line
                addRestIn (opens @ own) part.Place.Line "an exception" part (text.WithoutLayout part)
            | "Attributes" -> addRestIn (opens @ own) part.Place.Line "an attribute of the assembly" part (text.WithoutLayout part)
            | _ -> addRestIn (opens @ own) part.Place.Line "code that runs when the program starts" part (text.WithoutLayout part)

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
            if text.Attributes part |> List.exists (fst >> (=) "AutoOpen") then autoOpen.Add path |> ignore
        let isRecursive = match flags part with first :: _ -> first | [] -> false
        let first = part.Parts |> List.tryFind (fun one -> one.Union = "SynModuleDecl")
        let header =
            match first with
            | Some first -> { Line = 1; Column = 0; EndLine = max 1 (first.Place.Line - 1); EndColumn = Int32.MaxValue }
            | None -> part.Place
        // What stands above the first declaration, back to what stands before it, names and marks the module.
        let header = { header with Line = min (max 1 part.Place.Line) header.EndLine }
        addRest ((if isModule then "the module `" else "the namespace `") + String.Join(".", path) + "`") part.Place
            (String.Join(".", path) + string isRecursive + "\n" + (if header.EndLine < (match first with Some first -> first.Place.Line | None -> 1) then text.Of header else ""))
        let space = if List.isEmpty scope.Namespace then [] else [ Own scope.Namespace ]
        reader.Declarations({ Scope = scope; Openings = space; IsRecursive = isRecursive; Reach = ofModule { scope with Modules = [] } [ part ] }, part.Parts)

/// Reads the tree of a file, whose text has no conditional compilation left.
let read (text: string) (tree: obj) : Outline =
    // Strings keep the ends of lines that they have in the file.
    let roots = readPlaced tree
    let reader = Reader(FileText(text.Split '\n', roots))
    for root in roots |> Seq.collect below |> Seq.filter (fun part -> part.Union = "SynModuleOrNamespace") do
        reader.Root root
    reader.Outline
