/// The code of a method that notes which parts of it run: before each part a byte of memory is set to one. That needs nothing of the assembly's
/// metadata, since where the byte stands is a number in the code. Pure; the memory is the subject of `Measuring`.
module Mainstay.Worker.Probes

open System
open System.Collections.Generic
open System.Collections.Immutable
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open Mainstay.Worker.Instructions

/// A part of a method's code: where it begins, and the address of its byte.
[<Struct>]
type Probe = { Offset: int; Address: int64 }

/// How many bytes a probe's code has, and how many values it puts on the stack.
let private probeSize, probeStack = 12, 2

let private writeProbe (code: BlobBuilder) (probe: Probe) =
    code.WriteByte 0x21uy // ldc.i8
    code.WriteInt64 probe.Address
    code.WriteByte 0xd3uy // conv.i
    code.WriteByte 0x17uy // ldc.i4.1
    code.WriteByte 0x52uy // stind.i1

/// The instruction that goes as far as one with a distance of one byte, in four bytes.
let private longForm (code: int) : byte = if code = 0xde then 0xdduy else byte (code + 0x0d) // leave.s; br.s to blt.un.s

let private sizeOf (one: Instruction) : int = match one.Operand with Target 1 -> 5 | _ -> one.Next - one.At

/// A table of guarded regions in the form that has room for all, as ECMA-335 II.25.4.5 has it.
let private writeRegions (into: BlobBuilder) (regions: ImmutableArray<ExceptionRegion>) (movedTo: int -> int) =
    into.WriteByte 0x41uy
    let size = 4 + 24 * regions.Length
    into.WriteByte(byte size)
    into.WriteUInt16(uint16 (size >>> 8))
    for region in regions do
        let range (first: int) (length: int) =
            into.WriteInt32(movedTo first)
            into.WriteInt32(movedTo (first + length) - movedTo first)
        into.WriteInt32(int region.Kind)
        range region.TryOffset region.TryLength
        range region.HandlerOffset region.HandlerLength
        match region.Kind with
        | ExceptionRegionKind.Catch -> into.WriteInt32(MetadataTokens.GetToken region.CatchType)
        | ExceptionRegionKind.Filter -> into.WriteInt32(movedTo region.FilterOffset)
        | _ -> into.WriteInt32 0

/// The body of a method with probes, its header included; None where a probe stands within an instruction. What it names keeps its tokens.
let insert (body: MethodBodyBlock) (probes: Probe list) : byte[] option =
    let code = body.GetILBytes()
    let at = Dictionary<int, Probe list>()
    for one in probes do at.[one.Offset] <- one :: (match at.TryGetValue one.Offset with | true, others -> others | _ -> [])
    let instructions = List<Instruction>()
    visitAll code instructions.Add
    let moved = Dictionary<int, int>() // where each instruction's probes begin, or it does
    let mutable length = 0
    let probesAt (offset: int) = match at.TryGetValue offset with | true, found -> found | _ -> []
    for one in instructions do
        moved.[one.At] <- length
        length <- length + probeSize * List.length (probesAt one.At) + sizeOf one
    moved.[code.Length] <- length
    if not (Seq.forall moved.ContainsKey at.Keys) then None
    else
        let written = BlobBuilder()
        for one in instructions do
            probesAt one.At |> List.iter (writeProbe written)
            let behind = written.Count + sizeOf one
            let distances () = for target in targetsOf code one do written.WriteInt32(moved.[target] - behind)
            match one.Operand with
            | Target size ->
                written.WriteByte(if size = 1 then longForm one.Code else code.[one.At])
                distances ()
            | Targets ->
                written.WriteBytes(code, one.At, one.OperandAt + 4 - one.At)
                distances ()
            | Bytes _
            | Token -> written.WriteBytes(code, one.At, one.Next - one.At)
        let isGuarded = body.ExceptionRegions.Length > 0
        let whole = BlobBuilder()
        whole.WriteUInt16(0x3003us ||| (if body.LocalVariablesInitialized then 0x10us else 0us) ||| (if isGuarded then 0x08us else 0us))
        whole.WriteUInt16(uint16 (body.MaxStack + probeStack))
        whole.WriteInt32 written.Count
        whole.WriteInt32(if body.LocalSignature.IsNil then 0 else MetadataTokens.GetToken(StandaloneSignatureHandle.op_Implicit body.LocalSignature: EntityHandle))
        whole.WriteBytes(written.ToArray())
        if isGuarded then
            whole.Align 4
            writeRegions whole body.ExceptionRegions (fun offset -> moved.[offset])
        Some(whole.ToArray())
