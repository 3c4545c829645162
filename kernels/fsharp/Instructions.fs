/// How the instructions of a method's code are laid out, as ECMA-335 III has them.
module Mainstay.Worker.Instructions

open System
open System.Reflection
open System.Reflection.Emit

/// What stands behind an instruction.
type Operand =
    /// So many bytes that name nothing.
    | Bytes of int
    /// How far behind it the code may go on, in so many bytes.
    | Target of int
    /// A number, and so many such distances of four bytes.
    | Targets
    | Token

/// One instruction of a method's code.
[<Struct>]
type Instruction =
    { /// Where it begins.
      At: int
      /// Its code; those of two bytes from 256 on.
      Code: int
      Operand: Operand
      /// Where what it takes begins.
      OperandAt: int
      /// Where the next one begins.
      Next: int }

let private operands: Operand[] =
    let all = Array.create 512 (Bytes 0)
    for field in typeof<OpCodes>.GetFields(BindingFlags.Public ||| BindingFlags.Static) do
        match field.GetValue null with
        | :? OpCode as code ->
            let operand =
                match code.OperandType with
                | OperandType.InlineNone -> Bytes 0
                | OperandType.ShortInlineBrTarget -> Target 1
                | OperandType.InlineBrTarget -> Target 4
                | OperandType.ShortInlineI
                | OperandType.ShortInlineVar -> Bytes 1
                | OperandType.InlineVar -> Bytes 2
                | OperandType.InlineI8
                | OperandType.InlineR -> Bytes 8
                | OperandType.InlineSwitch -> Targets
                | OperandType.InlineMethod
                | OperandType.InlineField
                | OperandType.InlineTok
                | OperandType.InlineType -> Token
                | _ -> Bytes 4
            let value = int code.Value &&& 0xffff
            all.[if code.Size = 1 then value else 256 + (value &&& 0xff)] <- operand
        | _ -> ()
    all

/// Calls `visit` with each instruction, in their order.
let visitAll (code: byte[]) (visit: Instruction -> unit) =
    let rec next (at: int) =
        if at < code.Length then
            let isLong = code.[at] = 0xfeuy && at + 1 < code.Length
            let instruction = if isLong then 256 + int code.[at + 1] else int code.[at]
            let behind = at + (if isLong then 2 else 1)
            let operand = operands.[instruction]
            let size =
                match operand with
                | Bytes count
                | Target count -> count
                | Targets -> 4 + 4 * BitConverter.ToInt32(code, behind)
                | Token -> 4
            visit { At = at; Code = instruction; Operand = operand; OperandAt = behind; Next = behind + size }
            next (behind + size)
    next 0

/// Where the code may go on behind an instruction, other than at the next one.
let targetsOf (code: byte[]) (one: Instruction) : int list =
    match one.Operand with
    | Target 1 -> [ one.Next + int (sbyte code.[one.OperandAt]) ]
    | Target _ -> [ one.Next + BitConverter.ToInt32(code, one.OperandAt) ]
    | Targets -> [ for at in one.OperandAt + 4 .. 4 .. one.Next - 4 -> one.Next + BitConverter.ToInt32(code, at) ]
    | Bytes _
    | Token -> []
