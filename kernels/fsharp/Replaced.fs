/// Which method of an assembly a newly compiled function stands for, and whether it can: what it takes and gives must be the same, to the
/// assembly and the position of each type parameter.
module Mainstay.Worker.Replaced

open System
open System.Reflection
open Mainstay.Worker.Outline
open MainstayDisplay

let private declared =
    BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.DeclaredOnly

/// A type nested in another, or in a namespace, as a module or type of the source is called.
let private typeIn (assembly: Assembly) (space: string list) (owner: Type option) (name: string) : Type list =
    let plain (kind: Type) = kind.Name.Split('`').[0]
    let isNamed (kind: Type) = plain kind = name || plain kind = name + "Module"
    let all =
        match owner with
        | Some owner -> owner.GetNestedTypes(BindingFlags.Public ||| BindingFlags.NonPublic)
        | None -> assembly.GetTypes() |> Array.filter (fun kind -> not kind.IsNested && (if isNull kind.Namespace then "" else kind.Namespace) = String.Join(".", space))
    all |> Array.filter isNamed |> List.ofArray

/// Whether the compiler says that a type of an assembly is one of these.
let private isA (kinds: SourceConstructFlags list) (kind: Type) =
    kind.GetCustomAttributes(typeof<CompilationMappingAttribute>, false)
    |> Seq.cast<CompilationMappingAttribute>
    |> Seq.exists (fun mapping -> List.contains (mapping.SourceConstructFlags &&& SourceConstructFlags.KindMask) kinds)

let private isModule = isA [ SourceConstructFlags.Module ]

/// The type of the assembly that a module is.
let moduleOf (assembly: Assembly) (scope: Scope) : Type option =
    let step (owner: Type option) (name: string) = typeIn assembly scope.Namespace owner name |> List.tryFind isModule
    match scope.Modules with
    | [] -> None
    | first :: rest -> (step None first, rest) ||> List.fold (fun found name -> found |> Option.bind (fun owner -> step (Some owner) name))

/// The type of the assembly that a type of the source is.
let typeOf (assembly: Assembly) (scope: Scope) (name: string) (parameters: int) : Type option =
    let owner = moduleOf assembly scope
    if List.isEmpty scope.Modules || owner.IsSome then
        typeIn assembly scope.Namespace owner name
        |> List.tryFind (fun kind -> not (isModule kind) && kind.Name.Split('`').[0] = name && kind.GetGenericArguments().Length = parameters)
    else None

/// Whether a value that this type has is a test of Expecto's, or several: what holds it has to be made anew with it.
let isExpectoTest (owner: Type) (item: Item) : bool =
    match owner.GetProperty(List.head item.CompiledNames, declared) with
    | null -> false
    | found -> EngineExpecto.isOfTests found.PropertyType

/// Whether a copy of a value of this type is not that value: it may be changed in place.
let canChangeInPlace (kind: Type) : bool =
    let isReadOnly = kind.GetCustomAttributesData() |> Seq.exists (fun one -> one.AttributeType.Name = "IsReadOnlyAttribute")
    // Code of F# has no way to change a tuple, a case or a field that is not mutable.
    let isFixed =
        (kind.Namespace = "System" && kind.Name.StartsWith("ValueTuple`", StringComparison.Ordinal))
        || (isA [ SourceConstructFlags.SumType; SourceConstructFlags.RecordType ] kind && kind.GetProperties declared |> Array.forall (fun property -> not property.CanWrite))
    kind.IsValueType && not (kind.IsPrimitive || kind.IsEnum || isReadOnly || isFixed)

/// Why code beside a type cannot use what a member uses of its object's state; None where it can, or the member uses none.
let stateObstacle (assembly: Assembly) (item: Item) : string option =
    match item.Kind with
    | Member one when not (Set.isEmpty one.State) ->
        let ofField (kind: Type) (name: string) =
            match kind.GetField(name, declared) with
            | null -> Some("it uses `" + name + "`, which the objects that were built do not keep")
            | field when canChangeInPlace field.FieldType -> Some("it uses `" + name + "`, a structure that changes in place")
            | _ -> None
        (match typeOf assembly item.Scope one.Type one.Parameters.Length with
         | Some kind when not kind.IsValueType -> one.State |> Seq.tryPick (ofField kind)
         | _ -> Some("it uses `" + Seq.head one.State + "`, which only the type's own code can see"))
    | _ -> None

/// Why code beside a type cannot extend it by a new member; None where it can.
let extensionObstacle (assembly: Assembly) (item: Item) : string option =
    match item.Kind with
    | Function
    | Value -> None
    | Member one ->
        let everywhere = declared ||| BindingFlags.FlattenHierarchy &&& ~~~BindingFlags.DeclaredOnly
        let has (name: string) (kind: Type) = kind.GetMember(name, everywhere) |> Array.isEmpty |> not
        match typeOf assembly item.Scope one.Type one.Parameters.Length with
        | None -> Some "its type is not found in the assembly"
        | Some kind ->
            kind :: List.ofArray (kind.GetInterfaces())
            |> List.tryFind (fun one -> item.CompiledNames |> List.exists (fun name -> has name one))
            |> Option.map (fun found -> found.Name + " has a member of its name")

/// A type's identity. The parameters of a type with so many count as the first of a method's.
let rec private identity (ofType: int) (kind: Type) : string =
    if kind.IsGenericParameter then
        "!" + string (kind.GenericParameterPosition + (if isNull kind.DeclaringMethod then 0 else ofType))
    elif kind.IsByRef then identity ofType (kind.GetElementType()) + "&"
    elif kind.IsPointer then identity ofType (kind.GetElementType()) + "*"
    elif kind.IsArray then identity ofType (kind.GetElementType()) + "[" + string (kind.GetArrayRank()) + "]"
    elif kind.IsGenericType then
        let arguments = kind.GetGenericArguments() |> Array.map (identity ofType)
        kind.GetGenericTypeDefinition().AssemblyQualifiedName + "<" + String.Join(",", arguments) + ">"
    else kind.AssemblyQualifiedName

/// What a method takes and gives, as that of the static method that would stand for it.
let private signatureOf (found: MethodInfo) : string =
    let owner = found.DeclaringType
    let ofType = owner.GetGenericArguments().Length
    let own = if found.IsStatic then [] else [ (if owner.IsValueType then owner.MakeByRefType() else owner) ]
    let parameters = own @ [ for parameter in found.GetParameters() -> parameter.ParameterType ]
    let constraints (parameter: Type) = [ for one in parameter.GetGenericParameterConstraints() -> identity ofType one ] |> List.sort
    let generic = Array.append (if owner.IsGenericType then owner.GetGenericArguments() else [||]) (if found.IsGenericMethod then found.GetGenericArguments() else [||])
    String.Join("|", (found.ReturnType :: parameters) |> List.map (identity ofType))
    + "`"
    + String.Join(";", generic |> Array.map (fun parameter -> sprintf "%A%A" (constraints parameter) (parameter.GenericParameterAttributes &&& GenericParameterAttributes.SpecialConstraintMask)))

/// How many arguments each of the groups has that a function takes one after the other.
let private groupsOf (found: MethodInfo) : int list =
    match found.GetCustomAttributes(typeof<CompilationArgumentCountsAttribute>, false) |> Seq.cast<CompilationArgumentCountsAttribute> |> Seq.tryHead with
    | Some counted -> List.ofSeq counted.Counts
    | None -> [ found.GetParameters().Length ]

/// What callers of a member may name or leave out: the names of its arguments, and what they are where they are left out.
let private argumentsOf (skip: int) (found: MethodInfo) : (string * bool * string) list =
    [ for parameter in found.GetParameters() |> Seq.skip skip ->
        parameter.Name, parameter.IsOptional, (if parameter.HasDefaultValue then sprintf "%A" parameter.RawDefaultValue else "") ]

/// Whether a method takes or gives an anonymous record.
let private hasAnonymous (found: MethodInfo) : bool =
    let isOne (kind: Type) = (identity 0 kind).Contains "<>f__AnonymousType"
    isOne found.ReturnType || found.GetParameters() |> Array.exists (fun parameter -> isOne parameter.ParameterType)

let private shown (found: MethodInfo) : string =
    found.Name + "(" + String.Join(", ", [ for parameter in found.GetParameters() -> parameter.ParameterType.Name ]) + "): " + found.ReturnType.Name

/// The methods of a type that a declaration may be.
let private candidates (owner: Type) (item: Item) (name: string) : MethodInfo list =
    let names =
        match item.Kind with
        | Function -> [ name ]
        | Value -> [ "get_" + name; name ] // a generic one is a method
        | Member one -> if one.IsProperty then [ "get_" + name ] else [ name ]
    let ofInterface (found: MethodInfo) (name: string) = not item.IsLet && found.Name.EndsWith("." + name, StringComparison.Ordinal)
    owner.GetMethods declared
    |> Array.filter (fun found -> names |> List.exists (fun name -> found.Name = name || ofInterface found name))
    |> List.ofArray

/// A type as code names it, from the root; None where that is not known to be the same type. `parameters` are those of the type that the code is of.
let rec private inCode (parameters: string list) (kind: Type) : string option =
    let all (kinds: Type[]) (word: string list -> string) =
        let words = kinds |> Array.map (inCode parameters) |> List.ofArray
        if List.forall Option.isSome words then Some(word (List.choose id words)) else None
    let sourceName (kind: Type) =
        match kind.GetCustomAttributes(typeof<CompilationSourceNameAttribute>, false) |> Seq.cast<CompilationSourceNameAttribute> |> Seq.tryHead with
        | Some named -> named.SourceName
        | None ->
            let plain = kind.Name.Split('`').[0]
            if isModule kind && plain.EndsWith("Module", StringComparison.Ordinal) then plain.Substring(0, plain.Length - "Module".Length) else plain
    let rec path (kind: Type) : string list =
        let around = if kind.IsNested then path kind.DeclaringType elif isNull kind.Namespace then [] else List.ofArray (kind.Namespace.Split '.')
        around @ [ sourceName kind ]
    if kind.IsByRef || kind.IsPointer then None
    elif kind.IsGenericParameter then if isNull kind.DeclaringMethod then List.tryItem kind.GenericParameterPosition parameters else None
    elif kind.IsArray then if kind.GetArrayRank() = 1 then all [| kind.GetElementType() |] (fun words -> words.Head + "[]") else None
    else
        let name = if kind.IsGenericType then kind.GetGenericTypeDefinition().FullName else kind.FullName
        let isOf (start: string) = name.StartsWith(start, StringComparison.Ordinal)
        let arguments = kind.GetGenericArguments()
        if name = "Microsoft.FSharp.Core.FSharpFunc`2" then all arguments (fun words -> "(" + String.Join(" -> ", words) + ")")
        elif isOf "System.Tuple`" && arguments.Length < 8 then all arguments (fun words -> "(" + String.Join(" * ", words) + ")")
        elif isOf "System.ValueTuple`" && arguments.Length < 8 then all arguments (fun words -> "(struct (" + String.Join(" * ", words) + "))")
        elif kind.IsNested && kind.DeclaringType.IsGenericType then None
        else
            let own = Slices.pathInCode (path kind)
            if Array.isEmpty arguments then Some own else all arguments (fun words -> own + "<" + String.Join(", ", words) + ">")

/// What gives the arguments of a member the types that it was built with, where these are said by its base or its interface alone.
let typings (assembly: Assembly) (item: Item) : Rewriting list =
    let inserted (line: int) (column: int) (text: string) = { Line = line; Column = column; Length = 0; Text = text }
    match item.Kind with
    | Member one when not (List.isEmpty one.Untyped) ->
        // What is only read or only written through its address is marked as that in the assembly, as no function is.
        let kindOf (parameter: ParameterInfo) =
            let kind = parameter.ParameterType
            if kind.IsByRef && not (parameter.IsIn || parameter.IsOut) then inCode one.Parameters (kind.GetElementType()) |> Option.map (fun inner -> "byref<" + inner + ">")
            else inCode one.Parameters kind
        (match typeOf assembly item.Scope one.Type one.Parameters.Length |> Option.map (fun owner -> candidates owner item item.CompiledNames.Head) with
         | Some [ built ] ->
            let given = built.GetParameters()
            [ for number, place, isBare in one.Untyped do
                match Array.tryItem number given |> Option.bind kindOf with
                | None -> ()
                | Some kind ->
                    if isBare then yield inserted place.Line place.Column "("
                    yield inserted place.EndLine place.EndColumn (": " + kind + (if isBare then ")" else "")) ]
         | _ -> [])
    | _ -> []

/// The method that a declaration is in its assembly and the new one that replaces it; or why there is no such pair. `compiled` is the module
/// that the declaration was compiled in, and `name` what the function is called there.
let pair (assembly: Assembly) (compiled: Type) (item: Item) (oldName: string) (name: string) : Result<MethodInfo * MethodInfo, string> =
    let owner =
        match item.Kind with
        | Function
        | Value -> moduleOf assembly item.Scope
        | Member one -> typeOf assembly item.Scope one.Type (List.length one.Parameters)
    let isWanted (found: MethodInfo) =
        match item.Kind with
        | Value -> found.Name = "get_" + name || (found.Name = name && found.IsGenericMethodDefinition)
        | Function
        | Member _ -> found.Name = name
    match owner, compiled.GetMethods declared |> Array.filter isWanted with
    | None, _ -> Error "what it stands in is not found in the assembly"
    | Some _, found when found.Length <> 1 -> Error("the compiler made " + string found.Length + " methods of it")
    | Some owner, found ->
        let replacement = found.[0]
        match candidates owner item oldName with
        | [] -> Error "it is no method of the assembly"
        | old ->
            let fits (one: MethodInfo) =
                signatureOf one = signatureOf replacement
                && (if item.IsLet then true elif item.IsMember then argumentsOf 0 one = argumentsOf (if one.IsStatic then 0 else 1) replacement else groupsOf one = groupsOf replacement)
            match old |> List.filter fits with
            | [ _ ] when not replacement.IsPublic -> Error "the compiler keeps its new version private"
            | [ one ] -> Ok(one, replacement)
            | [] when hasAnonymous replacement -> Error "it takes or gives an anonymous record, whose type belongs to the assembly"
            | [] -> Error("it takes or gives something else now: " + shown old.Head + " was, " + shown replacement + " is")
            | _ -> Error "several methods of the assembly fit"
