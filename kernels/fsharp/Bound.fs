/// Answers `values`: the names that the session's code bound at its prompt, and what each is bound to now.
module Mainstay.Worker.Bound

open System
open System.Collections.Generic
open System.Reflection
open Mainstay.Worker.Compat
open Mainstay.Worker.Protocol

/// The longest text that is told of a value; more is at the prompt.
let private valueLimit = 1000

/// Whether printing a value of this type may compute it.
let isLazy (valueType: string) =
    valueType.Contains "seq<" || valueType.Contains "IEnumerable" || valueType.Contains "Lazy<"

/// The service prints a name that is no plain identifier as `( +. )` or `( a b )` on SDK 3.1; this is how it is written in code.
let nameInCode (shown: string) =
    if shown.StartsWith("( ", StringComparison.Ordinal) && shown.EndsWith(" )", StringComparison.Ordinal) then
        let inner = shown.Substring(2, shown.Length - 4)
        if inner |> Seq.exists (fun c -> Char.IsLetterOrDigit c || c = '_') && not (inner.StartsWith("|", StringComparison.Ordinal)) then
            "``" + inner + "``"
        else "(" + inner + ")"
    else shown

let private plainTypes =
    HashSet<Type>([ typeof<string>; typeof<decimal>; typeof<DateTime>; typeof<DateTimeOffset>; typeof<TimeSpan>; typeof<Guid>; typeof<bigint>; typeof<unit> ])

let private plainShapes =
    HashSet<Type>([ typedefof<list<_>>; typedefof<option<_>>; typedefof<Set<_>>; typedefof<Map<_, _>>; typedefof<_ * _>; typedefof<_ * _ * _> ])

/// Whether printing a value of this type runs no code of the session's: it is made of nothing but numbers, texts and the like.
let rec private isPlain (kind: Type) : bool =
    if kind.IsArray then isPlain (kind.GetElementType())
    elif kind.IsGenericType then plainShapes.Contains(kind.GetGenericTypeDefinition()) && kind.GetGenericArguments() |> Array.forall isPlain
    else kind.IsPrimitive || plainTypes.Contains kind

let private cutValue (text: string) = if text.Length <= valueLimit then text else text.Substring(0, valueLimit) + "…"

/// A value as it was when it was bound.
type private Bound =
    { Value: DefinedValue
      Shown: string option
      /// How many were bound before it.
      Place: int }

/// What is bound in one session. `format` prints a value as the prompt does.
type Bindings(format: obj * Type -> string) =
    let bound = Dictionary<string, Bound>()
    let mutable count = 0

    /// What a mutable name holds now: what was told when it was bound is a copy.
    let heldNow (value: DefinedValue) : (obj * Type) option =
        value.Holder |> Option.bind (fun holder ->
            match holder.GetProperty(value.LogicalName, BindingFlags.Static ||| BindingFlags.Public ||| BindingFlags.NonPublic) with
            | null -> None
            | property -> value.Content |> Option.map (fun (_, kind) -> property.GetValue null, kind))

    // Of all others what was printed is told again: to print them anew could run code of the session's.
    let shownNow (one: Bound) : string option =
        match one.Value.Content with
        | Some (_, kind as content) when isPlain kind ->
            (try Some(format (defaultArg (heldNow one.Value) content)) with _ -> None) |> Option.orElse one.Shown
        | _ -> one.Shown

    /// Takes in what a submission bound.
    member _.Learn(valued: (DefinedValue * string option) list) =
        lock bound (fun () ->
            for value, shown in valued do
                count <- count + 1
                bound.[value.ShownName] <- { Value = value; Shown = shown; Place = count })

    /// Takes out what is bound anew and told to nobody.
    member _.Forget(valued: (DefinedValue * string option) list) =
        lock bound (fun () -> for value, _ in valued do bound.Remove value.ShownName |> ignore)

    /// Each name, the newest first.
    member _.All() : Binding list =
        let all = lock bound (fun () -> List.ofSeq bound.Values)
        all
        |> List.sortByDescending (fun one -> one.Place)
        |> List.truncate Limits.itemLimit
        |> List.map (fun one ->
            { Name = nameInCode one.Value.ShownName
              ValueType = one.Value.TypeText
              Value = shownNow one |> Option.map cutValue })
