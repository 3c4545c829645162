/// What a delta consists of, as text: tables, signatures and code, in which names stand for the tokens and rows of what was there before. So a
/// compiler that numbers the methods of the fixed assembly otherwise changes nothing here.
module Dump

open System
open System.Collections.Immutable
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open System.Reflection.PortableExecutable
open Mainstay.Worker.Deltas

/// The deltas of one assembly so far.
type Dump(image: byte[]) =
    let basis = (new PEReader(ImmutableArray.Create<byte> image)).GetMetadataReader()
    let deltas = Collections.Generic.List<MetadataReader>()

    let reader (handle: Handle) =
        let aggregator = MetadataAggregator(basis, deltas)
        let mutable generation = 0
        let own = aggregator.GetGenerationHandle(handle, &generation)
        (if generation = 0 then basis else deltas.[generation - 1]), own

    let text (handle: StringHandle) =
        if handle.IsNil then ""
        else
            let reader, own = reader (StringHandle.op_Implicit handle: Handle)
            reader.GetString(StringHandle.op_Explicit own: StringHandle)

    let blob (handle: BlobHandle) =
        let reader, own = reader (BlobHandle.op_Implicit handle: Handle)
        reader.GetBlobBytes(BlobHandle.op_Explicit own: BlobHandle)

    let guid (handle: GuidHandle) =
        if handle.IsNil then "none"
        else
            // Of this heap a delta holds all.
            string (deltas.[deltas.Count - 1].GetGuid handle)

    let rec name (handle: EntityHandle) : string =
        let reader, own = reader (EntityHandle.op_Implicit handle: Handle)
        let own = EntityHandle.op_Explicit own: EntityHandle
        match own.Kind with
        | HandleKind.AssemblyReference -> sprintf "[%s]" (text (reader.GetAssemblyReference(AssemblyReferenceHandle.op_Explicit own)).Name)
        | HandleKind.TypeReference ->
            let found = reader.GetTypeReference(TypeReferenceHandle.op_Explicit own)
            let space = text found.Namespace
            sprintf "%s%s%s" (name found.ResolutionScope) (if space = "" then "/" else space + ".") (text found.Name)
        | HandleKind.TypeDefinition -> text (reader.GetTypeDefinition(TypeDefinitionHandle.op_Explicit own)).Name
        | HandleKind.MethodDefinition -> text (reader.GetMethodDefinition(MethodDefinitionHandle.op_Explicit own)).Name
        | HandleKind.MemberReference ->
            let found = reader.GetMemberReference(MemberReferenceHandle.op_Explicit own)
            sprintf "%s::%s %s" (name found.Parent) (text found.Name) (signature (blob found.Signature))
        | HandleKind.MethodSpecification ->
            let found = reader.GetMethodSpecification(MethodSpecificationHandle.op_Explicit own)
            sprintf "%s <%s>" (name found.Method) (BitConverter.ToString(blob found.Signature))
        | HandleKind.ModuleDefinition -> "module"
        | kind -> string kind

    /// A signature in hexadecimal, but for the types that it names.
    and signature (bytes: byte[]) : string =
        let rec parts at =
            if at >= bytes.Length then []
            else
                match bytes.[at] with
                | 0x11uy
                | 0x12uy when at > 0 ->
                    let coded = if bytes.[at + 1] &&& 0x80uy = 0uy then int bytes.[at + 1] else ((int bytes.[at + 1] &&& 0x3f) <<< 8) ||| int bytes.[at + 2]
                    let table = [| TableIndex.TypeDef; TableIndex.TypeRef; TableIndex.TypeSpec |].[coded &&& 3]
                    let found = MetadataTokens.EntityHandle(table, coded >>> 2)
                    sprintf "%02X{%s}" bytes.[at] (name found) :: parts (at + (if bytes.[at + 1] &&& 0x80uy = 0uy then 2 else 3))
                | other -> sprintf "%02X" other :: parts (at + 1)
        String.concat "-" (parts 0)

    /// A body whose calls have names, or its length where it is one that was built.
    let code (bytes: byte[]) (at: int) (isBuilt: bool) =
        let isFat = bytes.[at] &&& 3uy = 3uy
        let length = if isFat then BitConverter.ToInt32(bytes, at + 4) else int (bytes.[at] >>> 2)
        let start = at + (if isFat then 12 else 1)
        if isBuilt then "as it was built"
        else
            let callAt = start + length - 6
            if bytes.[callAt] <> 0x28uy || bytes.[callAt + 5] <> 0x2auy then failwith "no call and return at its end"
            let token = BitConverter.ToInt32(bytes, callAt + 1)
            sprintf "header %s, arguments %s, call %s, ret" (BitConverter.ToString(bytes, at, 12)) (BitConverter.ToString(bytes, start, callAt - start)) (name (MetadataTokens.EntityHandle token))

    /// Takes in the next delta, and gives what it consists of. `isBuilt` says of which methods the body is the one that was built.
    member _.Next(delta: Delta, isBuilt: bool) : string list =
        let provider = MetadataReaderProvider.FromMetadataImage(ImmutableArray.Create<byte> delta.Metadata)
        let reader = provider.GetMetadataReader()
        deltas.Add reader
        let about = reader.GetModuleDefinition()
        let rows (handle: EntityHandle) = sprintf "%O %s" handle.Kind (name handle)
        [ yield sprintf "generation %d, id %s, on %s, mvid as the assembly's: %b" about.Generation (guid about.GenerationId) (guid about.BaseGenerationId) (reader.GetGuid about.Mvid = basis.GetGuid (basis.GetModuleDefinition()).Mvid)
          for entry in reader.GetEditAndContinueLogEntries() -> sprintf "log %O %s" entry.Operation (rows entry.Handle)
          for handle in reader.GetEditAndContinueMapEntries() -> sprintf "map %s" (rows handle)
          for handle in reader.MethodDefinitions do
              let found = reader.GetMethodDefinition handle
              yield sprintf "method %s %s: %s" (text found.Name) (signature (blob found.Signature)) (code delta.Code found.RelativeVirtualAddress isBuilt) ]
