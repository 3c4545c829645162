/// Which forms a value has, by its type.
module internal MainstayDisplay.Forms

open System
open System.Collections
open System.Collections.Generic
open System.Data
open System.Text

/// Fewer numbers than these are read as quickly as seen.
let private fewNumbers = 5

let private startsWith (bytes: byte[]) (start: byte[]) = bytes.Length >= start.Length && Array.sub bytes 0 start.Length = start

/// The type of a picture, by how its bytes begin.
let imageType (bytes: byte[]) : string option =
    let beginning = lazy (Encoding.UTF8.GetString(bytes, 0, min bytes.Length 512).TrimStart('\uFEFF', ' ', '\r', '\n', '\t'))
    if startsWith bytes [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |] then Some "image/png"
    elif startsWith bytes [| 0xFFuy; 0xD8uy; 0xFFuy |] then Some "image/jpeg"
    elif startsWith bytes "GIF8"B then Some "image/gif"
    elif startsWith bytes "RIFF"B && bytes.Length >= 12 && Array.sub bytes 8 4 = "WEBP"B then Some "image/webp"
    elif beginning.Value.StartsWith("<svg", StringComparison.Ordinal) then Some "image/svg+xml"
    elif beginning.Value.StartsWith("<?xml", StringComparison.Ordinal) && beginning.Value.Contains "<svg" then Some "image/svg+xml"
    else None

/// A picture.
let ofImage (bytes: byte[]) : Bundle option =
    imageType bytes
    |> Option.map (fun kind -> if kind = "image/svg+xml" then [ (kind, Text(Encoding.UTF8.GetString bytes)) ] else [ (kind, Bytes bytes) ])

let private elementOf (kind: Type) : Type option =
    let isSequence (face: Type) = face.IsGenericType && face.GetGenericTypeDefinition() = typedefof<IEnumerable<_>>
    Seq.append [ kind ] (kind.GetInterfaces()) |> Seq.tryFind isSequence |> Option.map (fun face -> face.GetGenericArguments().[0])

/// Collections that hold all their elements: enumerating them runs no code.
let private holdsAll (kind: Type) =
    kind.IsArray && kind.GetArrayRank() = 1
    || kind.IsGenericType && List.contains (kind.GetGenericTypeDefinition()) [ typedefof<list<_>>; typedefof<List<_>>; typedefof<Set<_>> ]

let private ofNumbers (bounds: Bounds) (items: seq<obj>) : Bundle =
    let values = items |> Seq.truncate (bounds.Points + 1) |> Seq.map Cells.toFloat |> Array.ofSeq
    Numbers.bundle (Array.truncate bounds.Points values) (values.Length <= bounds.Points)

let private ofSequence (bounds: Bounds) (looking: Looking) (element: Type) (isLazy: bool) (items: seq<obj>) : Bundle option =
    if Cells.isNumeric element then Some(ofNumbers bounds items)
    else Table.ofItems bounds element isLazy items |> Option.map (Table.bundle looking)

/// The forms of a value besides what the language prints of it; none where it has no others. `own` knows those of the types that say
/// themselves how they look.
let ofValue (own: obj -> Bundle option) (bounds: Bounds) (looking: Looking) (value: obj) : Bundle option =
    let sequence (value: IEnumerable) =
        let kind = value.GetType()
        match elementOf kind, looking with
        | Some element, AtWhatIsThere when holdsAll kind ->
            let items = Seq.cast<obj> value
            if Cells.isNumeric element && Seq.length (Seq.truncate fewNumbers items) < fewNumbers then None
            else ofSequence bounds looking element false items
        | Some element, Closely _ when holdsAll kind -> ofSequence bounds looking element false (Seq.cast<obj> value)
        | Some element, Closely noted ->
            noted ()
            ofSequence bounds looking element true (Seq.cast<obj> value)
        | None, Closely noted ->
            // The language enumerates it to print it.
            noted ()
            None
        | _, AtWhatIsThere -> None
    match value with
    | null -> None
    | value ->
        match own value |> Option.orElseWith (fun () -> Conventions.ofValue bounds looking value) with
        | Some bundle -> Some bundle
        | None ->
            match value with
            | :? string -> None
            | :? (byte[]) as bytes -> ofImage bytes
            | :? DataTable as table -> Some(Table.bundle looking (Table.ofDataTable bounds table))
            | :? IEnumerable as items ->
                match Table.ofPairs bounds looking value with
                | Some table -> Some(Table.bundle looking table)
                | None -> sequence items
            | _ -> None
