/// Which parts of a project's code ran while its tests ran alone, as the worker that ran them tells it and the session's takes it.
module Mainstay.Worker.Measurement

open System.Text.Json
open Mainstay.Worker.Json

/// Parts of an assembly's code, counted in the order of its symbols.
[<Struct>]
type PartRange =
    { /// The number of the assembly among those of the measurement.
      Assembly: int
      First: int
      Count: int }

/// Tests that begin at the same code, and what ran with them.
type MeasuredTests =
    { /// The assembly that they are in.
      Assembly: string
      /// Where their code begins.
      Roots: string list
      Ran: PartRange list }

type Measurement =
    { /// The assemblies of the project, each by its name and the identity of its build.
      Assemblies: (string * string) list
      /// The parts of them of which it is noted whether they run; of all others that is not known.
      Noted: PartRange list
      Tests: MeasuredTests list
      /// What ran before, while the tests were found and ran for the first time: also what runs once for all of them.
      AtFirst: PartRange list
      Notes: string list }

/// The parts as ranges, of parts in their order.
let rangesOf (assembly: int) (parts: int list) : PartRange list =
    let add (ranges: PartRange list) (part: int) =
        match ranges with
        | last :: before when last.First + last.Count = part -> { last with Count = last.Count + 1 } :: before
        | _ -> { Assembly = assembly; First = part; Count = 1 } :: ranges
    List.fold add [] parts |> List.rev

/// How many parts one range has at most.
let private mostParts = 10_000_000

/// Ranges as three numbers each, one after the other.
let private writeRanges (name: string) (ranges: PartRange list) (writer: Utf8JsonWriter) =
    writer.WriteStartArray name
    for range in ranges do
        writer.WriteNumberValue range.Assembly
        writer.WriteNumberValue range.First
        writer.WriteNumberValue range.Count
    writer.WriteEndArray()

let private ranges (name: string) (element: JsonElement) : PartRange list =
    match element.TryGetProperty name with
    | true, value when value.ValueKind = JsonValueKind.Array ->
        [ for item in value.EnumerateArray() -> match item.TryGetInt32() with | true, number -> number | _ -> -1 ]
        |> List.chunkBySize 3
        |> List.choose (function
            | [ assembly; first; count ] when assembly >= 0 && first >= 0 && count > 0 && count <= mostParts -> Some { Assembly = assembly; First = first; Count = count }
            | _ -> None)
    | _ -> []

/// Writes the members of a measurement.
let write (measurement: Measurement) (writer: Utf8JsonWriter) =
    writeObjects "assemblies" measurement.Assemblies (fun (name, build) writer ->
        writeText "name" name writer
        writeText "build" build writer) writer
    writeObjects "tests" measurement.Tests (fun tests writer ->
        writeText "assembly" tests.Assembly writer
        writeTexts "roots" tests.Roots writer
        writeRanges "ran" tests.Ran writer) writer
    writeRanges "noted" measurement.Noted writer
    writeRanges "atFirst" measurement.AtFirst writer
    writeTexts "notes" measurement.Notes writer

/// Reads what `write` has written.
let read (element: JsonElement) : Measurement =
    let text (name: string) (element: JsonElement) = defaultArg (tryText name element) ""
    { Assemblies = objects "assemblies" element |> List.map (fun one -> text "name" one, text "build" one)
      Tests =
        objects "tests" element |> List.map (fun one ->
            { Assembly = text "assembly" one
              Roots = texts "roots" one
              Ran = ranges "ran" one })
      Noted = ranges "noted" element
      AtFirst = ranges "atFirst" element
      Notes = texts "notes" element }
