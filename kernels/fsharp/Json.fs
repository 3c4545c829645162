/// Small helpers over System.Text.Json: reading members of an object, and writing one object as UTF-8.
module Mainstay.Worker.Json

open System.Buffers
open System.Text.Encodings.Web
open System.Text.Json

/// The text of a member, or None where it is absent, null or no string.
let tryText (name: string) (element: JsonElement) =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.String -> Some(value.GetString())
    | _ -> None

/// The whole number of a member, or None where it is absent or no whole number.
let tryInteger (name: string) (element: JsonElement) =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.Number ->
        match value.TryGetInt64() with
        | true, number -> Some number
        | _ -> None
    | _ -> None

/// Whether a member is true; one that is absent is not.
let flag (name: string) (element: JsonElement) =
    match element.TryGetProperty name with
    | true, value -> value.ValueKind = JsonValueKind.True
    | _ -> false

/// The strings of an array member; empty where it is absent, what is no string left out.
let texts (name: string) (element: JsonElement) =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.Array ->
        [ for item in value.EnumerateArray() do
            if item.ValueKind = JsonValueKind.String then item.GetString() ]
    | _ -> []

/// The texts of an object member by their names; empty where it is absent, what is no string left out.
let pairs (name: string) (element: JsonElement) : (string * string) list =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.Object ->
        [ for item in value.EnumerateObject() do
            if item.Value.ValueKind = JsonValueKind.String then item.Name, item.Value.GetString() ]
    | _ -> []

/// The objects of an array member; empty where it is absent, what is no object left out.
let objects (name: string) (element: JsonElement) : JsonElement list =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.Array ->
        [ for item in value.EnumerateArray() do
            if item.ValueKind = JsonValueKind.Object then item ]
    | _ -> []

// Half of a surrogate pair is legal in a .NET string and not in UTF-8, and the writer throws on it.
let private wellFormed (text: string) =
    let rec isSound index =
        index >= text.Length
        || (if not (System.Char.IsSurrogate text.[index]) then isSound (index + 1)
            else index + 1 < text.Length && System.Char.IsSurrogatePair(text.[index], text.[index + 1]) && isSound (index + 2))
    if isSound 0 then text
    else
        let encoding = System.Text.Encoding.UTF8
        encoding.GetString(encoding.GetBytes text)

let writeText (name: string) (value: string) (writer: Utf8JsonWriter) = writer.WriteString(name, wellFormed value)

let writeOptionalText (name: string) (value: string option) (writer: Utf8JsonWriter) =
    match value with
    | Some text -> writeText name text writer
    | None -> ()

let writeInteger (name: string) (value: int64) (writer: Utf8JsonWriter) = writer.WriteNumber(name, value)

let writeFlag (name: string) (value: bool) (writer: Utf8JsonWriter) = writer.WriteBoolean(name, value)

let writeObject (name: string) (content: Utf8JsonWriter -> unit) (writer: Utf8JsonWriter) =
    writer.WriteStartObject name
    content writer
    writer.WriteEndObject()

/// An array of objects.
let writeObjects (name: string) (items: seq<'T>) (content: 'T -> Utf8JsonWriter -> unit) (writer: Utf8JsonWriter) =
    writer.WriteStartArray name
    for item in items do
        writer.WriteStartObject()
        content item writer
        writer.WriteEndObject()
    writer.WriteEndArray()

let writeTexts (name: string) (items: seq<string>) (writer: Utf8JsonWriter) =
    writer.WriteStartArray name
    for item in items do
        writer.WriteStringValue(wellFormed item)
    writer.WriteEndArray()

let private writerOptions = JsonWriterOptions(Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, SkipValidation = true)

/// One object as UTF-8; `content` writes its members.
let encode (content: Utf8JsonWriter -> unit) : byte[] =
    let buffer = ArrayBufferWriter<byte>(1024)
    use writer = new Utf8JsonWriter(buffer, writerOptions)
    writer.WriteStartObject()
    content writer
    writer.WriteEndObject()
    writer.Flush()
    buffer.WrittenSpan.ToArray()
