/// What the code of an assembly mentions: for each of its methods the methods, static fields and types that its IL names. Pure over a reader of
/// metadata; what is made of it is the subject of `CallGraph`.
module Mainstay.Worker.CodeReading

open System
open System.Collections.Generic
open System.Collections.Immutable
open System.Reflection
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open Mainstay.Worker.Instructions

/// The code of a method, and the signature of its locals, which is nil where it has none.
type Body =
    { Code: byte[]
      Locals: StandaloneSignatureHandle }

/// Something that code can name, by which assemblies find each other's. A method has its signature in its name.
type Mention =
    | Method of string
    | StaticField of string
    | Type of string

/// The instructions that store into a static field.
let private storesStatic = 0x80

/// Calls `visit` with each instruction that names something, the token of that, and where the instruction stands.
let private tokensIn (code: byte[]) (visit: int -> int -> int -> unit) =
    visitAll code (fun one -> if one.Operand = Token then visit one.Code (BitConverter.ToInt32(code, one.OperandAt)) one.At)

/// The names of types as an assembly's metadata has them. Of another assembly's those are known that count as the project's own.
type private TypeNames(reader: MetadataReader, isOwn: string -> bool) =
    let defined = Dictionary<TypeDefinitionHandle, string>()
    let referred = Dictionary<TypeReferenceHandle, string * bool>()

    let inNamespace (space: StringHandle) (name: StringHandle) =
        match reader.GetString space with
        | "" -> reader.GetString name
        | space -> space + "." + reader.GetString name

    member this.Defined(handle: TypeDefinitionHandle) : string =
        match defined.TryGetValue handle with
        | true, name -> name
        | _ ->
            let kind = reader.GetTypeDefinition handle
            let owner = kind.GetDeclaringType()
            let name = if owner.IsNil then inNamespace kind.Namespace kind.Name else this.Defined owner + "+" + reader.GetString kind.Name
            defined.[handle] <- name
            name

    /// Its name, and whether it is of an assembly that counts.
    member this.Referred(handle: TypeReferenceHandle) : string * bool =
        match referred.TryGetValue handle with
        | true, found -> found
        | _ ->
            let kind = reader.GetTypeReference handle
            let found =
                match kind.ResolutionScope.Kind with
                | HandleKind.TypeReference ->
                    let owner, counts = this.Referred(TypeReferenceHandle.op_Explicit kind.ResolutionScope)
                    owner + "+" + reader.GetString kind.Name, counts
                | HandleKind.AssemblyReference ->
                    let assembly = reader.GetAssemblyReference(AssemblyReferenceHandle.op_Explicit kind.ResolutionScope)
                    inNamespace kind.Namespace kind.Name, isOwn (reader.GetString assembly.Name)
                | _ -> inNamespace kind.Namespace kind.Name, true
            referred.[handle] <- found
            found

/// A type in a signature: as it is written, and the types of the project's own in it, the outermost first.
[<Struct>]
type private Signed = { Written: string; Named: string list }

type private Signatures(reader: MetadataReader, names: TypeNames) =
    let plain (text: string) : Signed = { Written = text; Named = [] }
    let suffixed (text: string) (inner: Signed) : Signed = { inner with Written = inner.Written + text }
    let joined (all: seq<Signed>) = String.Join(",", all |> Seq.map (fun one -> one.Written))

    interface ISignatureTypeProvider<Signed, obj> with
        member _.GetArrayType(inner, shape) = suffixed ("[" + string shape.Rank + "]") inner
        member _.GetByReferenceType inner = suffixed "&" inner
        member _.GetFunctionPointerType _ = plain "*()"
        member _.GetGenericInstantiation(generic, arguments) =
            { Written = generic.Written + "<" + joined arguments + ">"
              Named = generic.Named @ (arguments |> Seq.collect (fun one -> one.Named) |> List.ofSeq) }
        member _.GetGenericMethodParameter(_, index) = plain ("!!" + string index)
        member _.GetGenericTypeParameter(_, index) = plain ("!" + string index)
        member _.GetModifiedType(_, inner, _) = inner
        member _.GetPinnedType inner = inner
        member _.GetPointerType inner = suffixed "*" inner
        member _.GetPrimitiveType kind = plain (kind.ToString())
        member _.GetSZArrayType inner = suffixed "[]" inner
        member _.GetTypeFromDefinition(_, handle, _) =
            let name = names.Defined handle
            { Written = name; Named = [ name ] }
        member _.GetTypeFromReference(_, handle, _) =
            let name, counts = names.Referred handle
            { Written = name; Named = (if counts then [ name ] else []) }
        member this.GetTypeFromSpecification(_, context, handle, _) = reader.GetTypeSpecification(handle).DecodeSignature(this, context)

/// Attributes of these namespaces have nothing that a test framework would look up.
let private plainAttributes = [ "Microsoft.FSharp."; "System." ]

/// The parts of an attribute's arguments that may be names. They are written as UTF-8 among other bytes.
let private wordsOf (arguments: byte[]) : string list =
    let isPart (one: byte) = Char.IsLetterOrDigit(char one) || char one = '_' || char one = '.' || char one = '+' || one >= 128uy
    let rec from (at: int) (found: string list) =
        if at >= arguments.Length then found
        else
            let mutable behind = at
            while behind < arguments.Length && isPart arguments.[behind] do behind <- behind + 1
            from (behind + 1) (if behind - at > 1 then Text.Encoding.UTF8.GetString(arguments, at, behind - at) :: found else found)
    from 0 []

/// An attribute of a method: the name of its type, and the words in its arguments.
type Attribute = { Kind: string; Words: string list }

/// What a method stores into a static field.
type Store =
    { /// Where in its code.
      At: int
      Field: string
      /// What the code before that reads or calls, back to the last store.
      Before: Mention list }

/// A method as an assembly defines it.
type Defined =
    { /// With its signature, as others mention it.
      Name: string
      /// Without it, and without the name of its type.
      Short: string
      Token: int
      IsVirtual: bool
      /// The types that it takes.
      Takes: string list
      Attributes: Attribute list
      /// What its code reads or calls.
      Mentions: Mention list
      /// What it stores into static fields, in the order of its code.
      Stores: Store list }

/// A type as an assembly defines it, with all that stands in it.
type DefinedType =
    { Type: string
      Bases: string list
      Methods: Defined list
      /// Methods that stand for those of a base or an interface, each with what it stands for.
      Implements: (string * string) list }

/// Reads what an assembly defines.
type private AssemblyReader(reader: MetadataReader, bodyOf: MethodDefinitionHandle -> Body option, isOwn: string -> bool) =
    let names = TypeNames(reader, isOwn)
    let signatures = Signatures(reader, names) :> ISignatureTypeProvider<Signed, obj>
    let specifications = Dictionary<TypeSpecificationHandle, string list>()
    let written = Dictionary<BlobHandle, string>()

    let nameOf (signature: MethodSignature<Signed>) =
        let generic = if signature.GenericParameterCount = 0 then "" else "`" + string signature.GenericParameterCount
        generic + "(" + String.Join(",", signature.ParameterTypes |> Seq.map (fun one -> one.Written)) + ")" + signature.ReturnType.Written

    let writtenOf (blob: BlobHandle) (decode: unit -> MethodSignature<Signed>) =
        match written.TryGetValue blob with
        | true, text -> text
        | _ ->
            let text = nameOf (decode ())
            written.[blob] <- text
            text

    /// The project's own types in a handle of a type, the type itself first.
    let typesOf (handle: EntityHandle) : string list =
        match handle.Kind with
        | _ when handle.IsNil -> []
        | HandleKind.TypeDefinition -> [ names.Defined(TypeDefinitionHandle.op_Explicit handle) ]
        | HandleKind.TypeReference -> (match names.Referred(TypeReferenceHandle.op_Explicit handle) with name, true -> [ name ] | _ -> [])
        | HandleKind.TypeSpecification ->
            let handle = TypeSpecificationHandle.op_Explicit handle
            match specifications.TryGetValue handle with
            | true, found -> found
            | _ ->
                let found = reader.GetTypeSpecification(handle).DecodeSignature(signatures, null).Named
                specifications.[handle] <- found
                found
        | _ -> []

    /// The type that a member reference is of, where that is the project's own.
    let ownerOf (handle: EntityHandle) : string option =
        match handle.Kind with
        | HandleKind.TypeSpecification ->
            let written = reader.GetTypeSpecification(TypeSpecificationHandle.op_Explicit handle).DecodeSignature(signatures, null)
            match written.Named with
            // Of a list of own things the list is not the project's.
            | first :: _ when written.Written.StartsWith(first + "<", StringComparison.Ordinal) -> Some first
            | _ -> None
        | _ -> List.tryHead (typesOf handle)

    let methodName (handle: MethodDefinitionHandle) =
        let found = reader.GetMethodDefinition handle
        let signature = writtenOf found.Signature (fun () -> found.DecodeSignature(signatures, null))
        names.Defined(found.GetDeclaringType()) + "::" + reader.GetString found.Name + signature

    let fieldName (handle: FieldDefinitionHandle) =
        let found = reader.GetFieldDefinition handle
        names.Defined(found.GetDeclaringType()) + "::" + reader.GetString found.Name

    /// What a token stands for, and the types that it names beside the one that it is of.
    let rec mentioned (handle: EntityHandle) : Mention list =
        match handle.Kind with
        | HandleKind.MethodDefinition -> [ Method(methodName (MethodDefinitionHandle.op_Explicit handle)) ]
        | HandleKind.FieldDefinition ->
            let handle = FieldDefinitionHandle.op_Explicit handle
            if reader.GetFieldDefinition(handle).Attributes.HasFlag FieldAttributes.Static then [ StaticField(fieldName handle) ] else []
        | HandleKind.MemberReference ->
            let found = reader.GetMemberReference(MemberReferenceHandle.op_Explicit handle)
            let own =
                match ownerOf found.Parent with
                | None -> []
                | Some owner when found.GetKind() = MemberReferenceKind.Field -> [ StaticField(owner + "::" + reader.GetString found.Name) ]
                | Some owner ->
                    let signature = writtenOf found.Signature (fun () -> found.DecodeMethodSignature(signatures, null))
                    [ Method(owner + "::" + reader.GetString found.Name + signature) ]
            let generic = if found.Parent.Kind = HandleKind.TypeSpecification then typesOf found.Parent |> List.map Type else []
            own @ generic
        | HandleKind.MethodSpecification ->
            let found = reader.GetMethodSpecification(MethodSpecificationHandle.op_Explicit handle)
            let arguments = found.DecodeSignature(signatures, null) |> Seq.collect (fun one -> one.Named) |> Seq.map Type |> List.ofSeq
            mentioned found.Method @ arguments
        | HandleKind.TypeDefinition
        | HandleKind.TypeReference
        | HandleKind.TypeSpecification -> typesOf handle |> List.map Type
        | _ -> []

    /// Who makes an object names its constructor, and so its type.
    let madeBy (mention: Mention) : Mention list =
        match mention with
        | Method name ->
            (match name.IndexOf "::.ctor" with
             | -1 -> []
             | at -> [ Type(name.Substring(0, at)) ])
        | StaticField _
        | Type _ -> []

    let tokens = Dictionary<int, Mention list>()

    let mentionedBy (token: int) : Mention list =
        match tokens.TryGetValue token with
        | true, found -> found
        | _ ->
            let found = try mentioned (MetadataTokens.EntityHandle(token: int)) with :? BadImageFormatException -> []
            let found = found @ List.collect madeBy found
            tokens.[token] <- found
            found

    let contentsOf (body: Body) : Mention list * Store list =
        let mentions, stores, before = HashSet<Mention>(), List<Store>(), List<Mention>()
        tokensIn body.Code (fun instruction token at ->
            for mention in mentionedBy token do
                match mention with
                | StaticField name when instruction = storesStatic ->
                    stores.Add { At = at; Field = name; Before = List.ofSeq before }
                    before.Clear()
                | mention ->
                    mentions.Add mention |> ignore
                    before.Add mention)
        if not body.Locals.IsNil then
            for local in reader.GetStandaloneSignature(body.Locals).DecodeLocalSignature(signatures, null) do
                for name in local.Named do mentions.Add(Type name) |> ignore
        List.ofSeq mentions, List.ofSeq stores

    let attributeOf (handle: CustomAttributeHandle) : Attribute option =
        let attribute = reader.GetCustomAttribute handle
        let kind =
            match attribute.Constructor.Kind with
            | HandleKind.MemberReference ->
                let parent = reader.GetMemberReference(MemberReferenceHandle.op_Explicit attribute.Constructor).Parent
                if parent.Kind = HandleKind.TypeReference then fst (names.Referred(TypeReferenceHandle.op_Explicit parent)) else ""
            | HandleKind.MethodDefinition -> names.Defined(reader.GetMethodDefinition(MethodDefinitionHandle.op_Explicit attribute.Constructor).GetDeclaringType())
            | _ -> ""
        if kind = "" || plainAttributes |> List.exists (fun space -> kind.StartsWith(space, StringComparison.Ordinal)) then None
        else Some { Kind = kind; Words = wordsOf (reader.GetBlobBytes attribute.Value) }

    let methodOf (handle: MethodDefinitionHandle) : Defined =
        let found = reader.GetMethodDefinition handle
        let isConstructor = reader.GetString found.Name = ".ctor"
        let mentions, stores = match bodyOf handle with Some body -> contentsOf body | None -> [], []
        { Name = methodName handle
          Short = reader.GetString found.Name
          Token = MetadataTokens.GetToken(MethodDefinitionHandle.op_Implicit handle: EntityHandle)
          IsVirtual = found.Attributes.HasFlag MethodAttributes.Virtual
          Takes = (if isConstructor then found.DecodeSignature(signatures, null).ParameterTypes |> Seq.collect (fun one -> one.Named) |> List.ofSeq else [])
          Attributes = found.GetCustomAttributes() |> Seq.choose attributeOf |> List.ofSeq
          Mentions = mentions
          Stores = stores }

    member _.All() : DefinedType list =
        [ for handle in reader.TypeDefinitions do
            let kind = reader.GetTypeDefinition handle
            let faces = [ for face in kind.GetInterfaceImplementations() -> reader.GetInterfaceImplementation(face).Interface ]
            let implementation (one: MethodImplementationHandle) =
                let found = reader.GetMethodImplementation one
                match mentionedBy (MetadataTokens.GetToken found.MethodBody), mentionedBy (MetadataTokens.GetToken found.MethodDeclaration) with
                | Method body :: _, Method declaration :: _ -> Some(body, declaration)
                | _ -> None
            { Type = names.Defined handle
              Bases = kind.BaseType :: faces |> List.collect typesOf |> List.distinct
              Methods = [ for one in kind.GetMethods() -> methodOf one ]
              Implements = kind.GetMethodImplementations() |> Seq.choose implementation |> List.ofSeq } ]

/// What an assembly defines. The names of other assemblies' members count where `isOwn` says so of the assembly.
let read (reader: MetadataReader) (bodyOf: MethodDefinitionHandle -> Body option) (isOwn: string -> bool) : DefinedType list =
    AssemblyReader(reader, bodyOf, isOwn).All()
