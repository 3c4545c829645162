/// The difference of a loaded assembly in which methods have another body: one that hands its arguments to another method and returns what
/// that returns, or the one that they were built with. It is what `MetadataUpdater.ApplyUpdate` takes: metadata and code, as ECMA-335 has
/// them, with the two tables that say what is new. Nothing here touches a loaded assembly.
module Mainstay.Worker.Deltas

open System
open System.Collections.Generic
open System.Collections.Immutable
open System.IO
open System.Reflection
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open System.Reflection.PortableExecutable

/// What a method does.
type Body =
    /// It calls a static one that takes its object, where it has one, and its arguments.
    | Calls of MethodInfo
    | AsBuilt

/// A method whose body changes.
type Redirection = { Old: MethodInfo; New: Body }

/// What one difference consists of.
type Delta =
    { Metadata: byte[]
      Code: byte[]
      /// To be called once the runtime has taken it: the next difference is on top of it.
      Applied: unit -> unit }

/// Signatures of methods, as ECMA-335 II.23.2 encodes them.
module private Signature =
    [<Literal>]
    let HasThis = 0x20uy

    [<Literal>]
    let Generic = 0x10uy

    /// Reads a compressed number; gives it with the index behind it.
    let number (bytes: byte[]) (at: int) : int * int =
        let first = int bytes.[at]
        if first &&& 0x80 = 0 then first, at + 1
        elif first &&& 0x40 = 0 then ((first &&& 0x3f) <<< 8) ||| int bytes.[at + 1], at + 2
        else
            ((first &&& 0x1f) <<< 24) ||| (int bytes.[at + 1] <<< 16) ||| (int bytes.[at + 2] <<< 8) ||| int bytes.[at + 3], at + 4

    /// Copies one type, in which a parameter of the method's type becomes one of the method, before the method's own; gives the index
    /// behind it.
    let rec copyType (ofType: int) (bytes: byte[]) (at: int) (into: BlobBuilder) : int =
        let keep count =
            into.WriteBytes(bytes, at, count)
            at + count
        let numbered code (value: int, next: int) =
            into.WriteByte code
            into.WriteCompressedInteger value
            next
        match bytes.[at] with
        | 0x13uy -> numbered 0x1euy (number bytes (at + 1)) // VAR
        | 0x1euy -> let value, next = number bytes (at + 1) in numbered 0x1euy (value + ofType, next) // MVAR
        | 0x11uy
        | 0x12uy -> numbered bytes.[at] (number bytes (at + 1)) // VALUETYPE, CLASS
        | 0x0fuy
        | 0x10uy
        | 0x1duy
        | 0x45uy -> copyType ofType bytes (keep 1) into // PTR, BYREF, SZARRAY, PINNED
        | 0x1fuy
        | 0x20uy -> // required and optional modifiers
            let next = numbered bytes.[at] (number bytes (at + 1))
            copyType ofType bytes next into
        | 0x15uy -> // GENERICINST
            into.WriteByte bytes.[at]
            into.WriteByte bytes.[at + 1]
            let kind, next = number bytes (at + 2)
            into.WriteCompressedInteger kind
            let count, next = number bytes next
            into.WriteCompressedInteger count
            (next, seq { 1 .. count }) ||> Seq.fold (fun at _ -> copyType ofType bytes at into)
        | 0x14uy -> // ARRAY
            into.WriteByte bytes.[at]
            let next = copyType ofType bytes (at + 1) into
            let rank, next = number bytes next
            into.WriteCompressedInteger rank
            let numbers next =
                let count, next = number bytes next
                into.WriteCompressedInteger count
                (next, seq { 1 .. count }) ||> Seq.fold (fun at _ ->
                    let value, next = number bytes at
                    into.WriteCompressedInteger value
                    next)
            numbers (numbers next)
        | _ -> keep 1

    /// The signature of the static method that stands for one with this signature: its object comes first, and the parameters of its type
    /// are the method's own.
    let standingFor (bytes: byte[]) (owner: Type) (ownerToken: int) (isStatic: bool) : byte[] =
        let ofType = owner.GetGenericArguments().Length
        let own, next = if bytes.[0] &&& Generic <> 0uy then number bytes 1 else 0, 1
        let count, next = number bytes next
        let into = BlobBuilder()
        let all = ofType + own
        into.WriteByte((bytes.[0] &&& ~~~HasThis &&& ~~~Generic) ||| (if all > 0 then Generic else 0uy))
        if all > 0 then into.WriteCompressedInteger all
        into.WriteCompressedInteger(count + (if isStatic then 0 else 1))
        let mutable at = copyType ofType bytes next into
        if not isStatic then
            if owner.IsValueType then into.WriteByte 0x10uy
            if ofType > 0 then into.WriteByte 0x15uy
            into.WriteByte(if owner.IsValueType then 0x11uy else 0x12uy)
            into.WriteCompressedInteger(CodedIndex.TypeDefOrRef(MetadataTokens.EntityHandle ownerToken))
            if ofType > 0 then
                into.WriteCompressedInteger ofType
                for index in 0 .. ofType - 1 do
                    into.WriteByte 0x1euy
                    into.WriteCompressedInteger index
        for _ in 1 .. count do
            at <- copyType ofType bytes at into
        into.ToArray()

/// The rows that a difference adds, in the order in which they are logged.
type private Rows(builder: MetadataBuilder, counts: int[]) =
    let log = List<EntityHandle>()
    let assemblies = Dictionary<string, EntityHandle>()
    let types = Dictionary<string, EntityHandle>()

    let next (table: TableIndex) =
        counts.[int table] <- counts.[int table] + 1
        let handle = MetadataTokens.EntityHandle(table, counts.[int table])
        log.Add handle
        handle

    member _.Log = log

    member _.Assembly(assembly: Assembly) : EntityHandle =
        match assemblies.TryGetValue assembly.FullName with
        | true, handle -> handle
        | _ ->
            let name = assembly.GetName()
            let token = match name.GetPublicKeyToken() with null | [||] -> Unchecked.defaultof<BlobHandle> | token -> builder.GetOrAddBlob(token)
            let none = Unchecked.defaultof<BlobHandle>
            builder.AddAssemblyReference(builder.GetOrAddString name.Name, name.Version, Unchecked.defaultof<StringHandle>, token, enum 0, none) |> ignore
            let handle = next TableIndex.AssemblyRef
            assemblies.[assembly.FullName] <- handle
            handle

    member rows.Type(kind: Type) : EntityHandle =
        match types.TryGetValue kind.AssemblyQualifiedName with
        | true, handle -> handle
        | _ ->
            let scope = if kind.IsNested then rows.Type kind.DeclaringType else rows.Assembly kind.Assembly
            let space = if kind.IsNested || isNull kind.Namespace then Unchecked.defaultof<StringHandle> else builder.GetOrAddString kind.Namespace
            builder.AddTypeReference(scope, space, builder.GetOrAddString kind.Name) |> ignore
            let handle = next TableIndex.TypeRef
            types.[kind.AssemblyQualifiedName] <- handle
            handle

    /// A method of another assembly.
    member rows.Method(found: MethodInfo, signature: byte[]) : EntityHandle =
        let owner = rows.Type found.DeclaringType
        builder.AddMemberReference(owner, builder.GetOrAddString found.Name, builder.GetOrAddBlob(signature)) |> ignore
        next TableIndex.MemberRef

    /// A generic method of another assembly, with the parameters of the type and of the method that calls it.
    member _.Instance(generic: EntityHandle, ofType: int, ofMethod: int) : EntityHandle =
        let blob = BlobBuilder()
        blob.WriteByte 0x0auy
        blob.WriteCompressedInteger(ofType + ofMethod)
        for index in 0 .. ofType - 1 do
            blob.WriteByte 0x13uy
            blob.WriteCompressedInteger index
        for index in 0 .. ofMethod - 1 do
            blob.WriteByte 0x1euy
            blob.WriteCompressedInteger index
        builder.AddMethodSpecification(generic, builder.GetOrAddBlob(blob)) |> ignore
        next TableIndex.MethodSpec

/// The code that loads all arguments, calls and returns.
let private callCode (arguments: int) (callee: EntityHandle) : byte[] =
    let code = BlobBuilder()
    for index in 0 .. arguments - 1 do
        if index < 4 then code.WriteByte(byte (0x02 + index)) // ldarg.0 to ldarg.3
        elif index < 256 then
            code.WriteByte 0x0euy // ldarg.s
            code.WriteByte(byte index)
        else
            code.WriteUInt16 0x09feus // ldarg
            code.WriteUInt16(uint16 index)
    code.WriteByte 0x28uy // call
    code.WriteInt32(MetadataTokens.GetToken callee)
    code.WriteByte 0x2auy // ret
    code.ToArray()

/// The differences of one loaded assembly, each on top of the last. `image` is the file that it was loaded from.
type Generations(image: byte[]) =
    let file = new PEReader(ImmutableArray.Create<byte> image)
    let reader = file.GetMetadataReader()
    let mutable counts =
        [| for table in 0 .. 63 ->
            if table < MetadataTokens.TableCount then reader.GetTableRowCount(LanguagePrimitives.EnumOfValue(byte table)) else 0 |]
    let size (heap: HeapIndex) = reader.GetHeapSize heap
    let mutable userStrings, strings, blobs, guids = size HeapIndex.UserString, size HeapIndex.String, size HeapIndex.Blob, size HeapIndex.Guid
    let mutable generation = 0
    let mutable last = Guid.Empty

    /// The body that a method was built with, its header included. What it names keeps its tokens.
    let built (definition: MethodDefinition) : byte[] =
        let size = file.GetMethodBody(definition.RelativeVirtualAddress).Size
        file.GetSectionData(definition.RelativeVirtualAddress).GetContent(0, size).AsSpan().ToArray()

    /// A body that hands everything to another method, with a header of twelve bytes.
    let calling (rows: Rows) (old: MethodInfo) (signature: byte[]) (callee: MethodInfo) : byte[] =
        let owner = old.DeclaringType
        let ofType, ofMethod = owner.GetGenericArguments().Length, old.GetGenericArguments().Length
        let standing = Signature.standingFor signature owner owner.MetadataToken old.IsStatic
        let called = rows.Method(callee, standing)
        let arguments = old.GetParameters().Length + (if old.IsStatic then 0 else 1)
        let body = callCode arguments (if ofType + ofMethod > 0 then rows.Instance(called, ofType, ofMethod) else called)
        let code = BlobBuilder()
        code.WriteUInt16 0x3003us
        code.WriteUInt16(uint16 (max 8 (arguments + 1)))
        code.WriteInt32 body.Length
        code.WriteInt32 0
        code.WriteBytes body
        code.ToArray()

    /// The next difference, in which methods have these bodies, which are written as it is begun. `id` tells it from all others.
    let next (id: Guid) (bodies: (int * (Rows -> MethodDefinition -> byte[])) list) : Delta =
        let builder = MetadataBuilder(userStrings, strings, blobs, guids)
        let number, rowCounts = generation + 1, Array.copy counts
        let about = reader.GetModuleDefinition()
        let before = if last = Guid.Empty then Unchecked.defaultof<GuidHandle> else builder.GetOrAddGuid last
        let mvid = builder.GetOrAddGuid(reader.GetGuid about.Mvid)
        builder.AddModule(number, builder.GetOrAddString(reader.GetString about.Name), mvid, builder.GetOrAddGuid id, before) |> ignore
        let rows = Rows(builder, rowCounts)
        let code = BlobBuilder()
        code.WriteInt32 0
        let methods = List<EntityHandle>()
        // The runtime wants the methods in the order of their rows.
        for token, write in List.sortBy fst bodies do
            let definition = reader.GetMethodDefinition(MetadataTokens.MethodDefinitionHandle token)
            let signature = reader.GetBlobBytes definition.Signature
            let body = write rows definition
            code.Align 4
            let offset = code.Count
            code.WriteBytes(body: byte[])
            let name = builder.GetOrAddString(reader.GetString definition.Name)
            builder.AddMethodDefinition(definition.Attributes, definition.ImplAttributes, name, builder.GetOrAddBlob(signature: byte[]), offset, Unchecked.defaultof<ParameterHandle>) |> ignore
            methods.Add(MetadataTokens.EntityHandle token)
        let all = Seq.append rows.Log methods
        for handle in all do
            builder.AddEncLogEntry(handle, EditAndContinueOperation.Default)
        for handle in all |> Seq.sortBy (fun handle -> uint32 (MetadataTokens.GetToken handle)) do
            builder.AddEncMapEntry handle
        let root = MetadataRootBuilder(builder, suppressValidation = true)
        let written = BlobBuilder()
        root.Serialize(written, 0, 0)
        let applied () =
            userStrings <- userStrings + root.Sizes.GetAlignedHeapSize HeapIndex.UserString
            strings <- strings + root.Sizes.HeapSizes.[int HeapIndex.String]
            blobs <- blobs + root.Sizes.GetAlignedHeapSize HeapIndex.Blob
            guids <- root.Sizes.HeapSizes.[int HeapIndex.Guid] // of this heap a difference holds all, not what is new
            counts <- rowCounts
            generation <- number
            last <- id
        { Metadata = written.ToArray(); Code = code.ToArray(); Applied = applied }

    /// The next difference, in which these methods have new bodies. `id` tells it from all others.
    member _.Next(id: Guid, redirections: Redirection list) : Delta =
        let body (one: Redirection) (rows: Rows) (definition: MethodDefinition) =
            match one.New with
            | Calls callee -> calling rows one.Old (reader.GetBlobBytes definition.Signature) callee
            | AsBuilt -> built definition
        next id [ for one in redirections -> one.Old.MetadataToken, body one ]

    /// The next difference, in which methods, told by their tokens, note which parts of the code run that they were built with, and which do. Those
    /// of which that cannot be said are left alone.
    member _.NextWithProbes(id: Guid, probes: (int * Probes.Probe list) list) : Delta * int list =
        let bodies =
            [ for token, all in probes do
                let definition = reader.GetMethodDefinition(MetadataTokens.MethodDefinitionHandle token)
                if definition.RelativeVirtualAddress <> 0 then
                    match Probes.insert (file.GetMethodBody definition.RelativeVirtualAddress) all with
                    | Some body -> token, (fun (_: Rows) (_: MethodDefinition) -> body)
                    | None -> () ]
        next id bodies, List.map fst bodies
