/// Values on one line: in the cells of tables, at the ticks of charts.
module internal MainstayDisplay.Cells

open System
open System.Collections
open System.Globalization
open System.Reflection
open Microsoft.FSharp.Reflection

/// How deep a value is looked into.
let private depthLimit = 3

/// How many items of a collection are told.
let private itemLimit = 5

let private everything = BindingFlags.Public ||| BindingFlags.NonPublic

/// Types whose values are numbers.
let private numericTypes =
    [ typeof<sbyte>; typeof<byte>; typeof<int16>; typeof<uint16>; typeof<int>; typeof<uint32>; typeof<int64>; typeof<uint64>
      typeof<float32>; typeof<float>; typeof<decimal>; typeof<bigint> ]

let isNumeric (kind: Type) = List.contains kind numericTypes

let private isOption (kind: Type) = kind.IsGenericType && kind.GetGenericTypeDefinition() = typedefof<option<_>>

/// What an option is of; other types are themselves.
let contentOf (kind: Type) : Type = if isOption kind then kind.GetGenericArguments().[0] else kind

let isWhole (kind: Type) = isNumeric kind && not (List.contains kind [ typeof<float32>; typeof<float>; typeof<decimal> ])

/// How many columns of a terminal a character takes: those of East Asian scripts, and pictures, take two, marks on others none.
let private widthAt (text: string) (index: int) : int =
    let point = if Char.IsSurrogatePair(text, index) then Char.ConvertToUtf32(text, index) else int text.[index]
    match CharUnicodeInfo.GetUnicodeCategory(text, index) with
    | UnicodeCategory.NonSpacingMark
    | UnicodeCategory.EnclosingMark
    | UnicodeCategory.Format -> 0
    | _ when point >= 0x1100 && (point <= 0x115F || point >= 0x2E80 && point <= 0xA4CF || point >= 0xAC00 && point <= 0xD7A3 || point >= 0xF900 && point <= 0xFAFF
                                 || point >= 0xFE30 && point <= 0xFE6F || point >= 0xFF00 && point <= 0xFF60 || point >= 0xFFE0 && point <= 0xFFE6
                                 || point >= 0x1F300 && point <= 0x1FAFF || point >= 0x20000 && point <= 0x3FFFD) -> 2
    | _ -> 1

/// The beginning of a text that takes at most so many columns, and how many it takes.
let fitting (limit: int) (text: string) : string * int =
    let rec go index width =
        if index >= text.Length then text, width
        else
            let next = width + widthAt text index
            if next > limit then text.Substring(0, index), width
            else go (index + (if Char.IsSurrogatePair(text, index) then 2 else 1)) next
    go 0 0

/// How many columns a text takes.
let width (text: string) : int = snd (fitting Int32.MaxValue text)

/// A number of any type.
let toFloat (value: obj) : float =
    match value with
    | :? bigint as value -> float value
    | value -> Convert.ToDouble(value, CultureInfo.InvariantCulture)

/// A number as people write it.
let ofFloat (value: float) : string =
    let rounded = Math.Round(value, 10)
    if abs rounded >= 1e15 || (rounded <> 0. && abs rounded < 1e-4) then value.ToString("0.####e0", CultureInfo.InvariantCulture)
    else rounded.ToString("0.##########", CultureInfo.InvariantCulture)

let private ofDate (value: DateTime) =
    value.ToString((if value.TimeOfDay = TimeSpan.Zero then "yyyy-MM-dd" else "yyyy-MM-dd HH:mm:ss"), CultureInfo.InvariantCulture)

let private isGeneric (definition: Type) (kind: Type) = kind.IsGenericType && kind.GetGenericTypeDefinition() = definition

let private nameOf (kind: Type) = match kind.Name.IndexOf '`' with -1 -> kind.Name | at -> kind.Name.Substring(0, at)

/// The value on one line, in the invariant culture. Only what is plain data is looked into.
let rec private told (looking: Looking) (depth: int) (value: obj) : string =
    match value with
    | null -> ""
    | :? string as text -> text
    | :? float as number -> ofFloat number
    | :? float32 as number -> number.ToString("R", CultureInfo.InvariantCulture)
    | :? DateTime as date -> ofDate date
    | :? DateTimeOffset as date -> ofDate date.DateTime + date.ToString(" zzz", CultureInfo.InvariantCulture)
    | :? bool as flag -> if flag then "true" else "false"
    | :? char as letter -> string letter
    | :? Enum as case -> case.ToString()
    | :? IFormattable as plain when plain.GetType().Assembly = typeof<int>.Assembly || (plain :? bigint) ->
        plain.ToString(null, CultureInfo.InvariantCulture)
    | :? Type as kind -> kind.FullName
    | :? Uri as address -> address.ToString()
    | other -> toldStructure looking depth other (other.GetType())

and private toldStructure (looking: Looking) (depth: int) (value: obj) (kind: Type) : string =
    let inner = told looking (depth + 1)
    let some (fields: obj[]) = fields |> Seq.map inner |> String.concat ", "
    if isOption kind then
        FSharpValue.GetUnionFields(value, kind, everything) |> snd |> some
    elif depth >= depthLimit then "…"
    elif kind.IsArray || isGeneric typedefof<list<_>> kind || isGeneric typedefof<Collections.Generic.List<_>> kind then
        let items = (value :?> IEnumerable) |> Seq.cast<obj> |> Seq.truncate (itemLimit + 1) |> Array.ofSeq
        let shown = items |> Seq.truncate itemLimit |> Seq.map inner |> String.concat "; "
        let all = if items.Length > itemLimit then shown + "; …" else shown
        if kind.IsArray then "[|" + all + "|]" else "[" + all + "]"
    elif FSharpType.IsTuple kind then "(" + some (FSharpValue.GetTupleFields value) + ")"
    elif FSharpType.IsRecord(kind, everything) then
        let field (property: PropertyInfo) (value: obj) = property.Name + " = " + inner value
        let values = FSharpValue.GetRecordFields(value, everything)
        "{" + String.concat "; " (Seq.map2 field (FSharpType.GetRecordFields(kind, everything)) values) + "}"
    elif FSharpType.IsUnion(kind, everything) then
        let case, fields = FSharpValue.GetUnionFields(value, kind, everything)
        if Array.isEmpty fields then case.Name else case.Name + " (" + some fields + ")"
    else
        match looking with
        | Closely noted ->
            noted ()
            value.ToString()
        | AtWhatIsThere -> "<" + nameOf kind + ">"

/// The value on one line. An object that cannot tell is named.
let ofValue (looking: Looking) (value: obj) : string =
    try told looking 0 value with e -> "<" + e.GetType().Name + ">"

/// The value as a cell of JSON.
let rec ofValueAsJson (looking: Looking) (value: obj) : string =
    match value with
    | null -> "null" // None of an option as well
    | value when isOption (value.GetType()) -> ofValueAsJson looking (FSharpValue.GetUnionFields(value, value.GetType()) |> snd |> Array.head)
    | :? bool as flag -> if flag then "true" else "false"
    | :? float as number -> JsonText.number number
    | :? float32 as number -> JsonText.number (float number)
    | value when isNumeric (value.GetType()) -> ofValue looking value
    | value -> JsonText.text (ofValue looking value)
