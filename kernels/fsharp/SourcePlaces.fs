/// Where the source of a compiled method begins, as the symbols of its assembly say.
module Mainstay.Worker.SourcePlaces

open System.Collections.Generic
open System.Collections.Immutable
open System.IO
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open System.Reflection.PortableExecutable

/// Reads the symbols of an assembly, from the file beside it or within it; None where it has none.
let withSymbols (path: string) (read: MetadataReader -> 'T) : 'T option =
    let symbols = Path.ChangeExtension(path, ".pdb")
    if File.Exists symbols then
        use provider = MetadataReaderProvider.FromPortablePdbImage(ImmutableArray.Create<byte>(File.ReadAllBytes symbols))
        Some(read (provider.GetMetadataReader()))
    else
        use file = new PEReader(ImmutableArray.Create<byte>(File.ReadAllBytes path))
        match file.ReadDebugDirectory() |> Seq.tryFind (fun entry -> entry.Type = DebugDirectoryEntryType.EmbeddedPortablePdb) with
        | Some entry ->
            use provider = file.ReadEmbeddedPortablePdbDebugDirectoryData entry
            Some(read (provider.GetMetadataReader()))
        | None -> None

/// The file and first line of each method, by its token.
let private placesIn (reader: MetadataReader) : Dictionary<int, string * int> =
    let places = Dictionary<int, string * int>()
    for handle in reader.MethodDebugInformation do
        let information = reader.GetMethodDebugInformation handle
        if not information.SequencePointsBlob.IsNil then
            match information.GetSequencePoints() |> Seq.tryFind (fun point -> not point.IsHidden) with
            | Some point ->
                let token = MetadataTokens.GetToken(MethodDefinitionHandle.op_Implicit (handle.ToDefinitionHandle()): EntityHandle)
                places.[token] <- (reader.GetString(reader.GetDocument(point.Document).Name), point.StartLine)
            | None -> ()
    places

/// The places in an assembly's source, by the tokens of its methods; none where it has no symbols that can be read.
let ofAssembly (path: string) : Dictionary<int, string * int> =
    try withSymbols path placesIn |> Option.defaultWith (fun () -> Dictionary()) with _ -> Dictionary()

/// Lines that some code of a method was made of.
type Stretch =
    { Token: int
      File: string
      First: int
      Last: int
      /// Where in the method that code begins.
      Offset: int }

let private stretchesIn (reader: MetadataReader) : Stretch list =
    [ for handle in reader.MethodDebugInformation do
        let information = reader.GetMethodDebugInformation handle
        if not information.SequencePointsBlob.IsNil then
            let token = MetadataTokens.GetToken(MethodDefinitionHandle.op_Implicit (handle.ToDefinitionHandle()): EntityHandle)
            for point in information.GetSequencePoints() do
                if not point.IsHidden then
                    { Token = token
                      File = reader.GetString(reader.GetDocument(point.Document).Name)
                      First = point.StartLine
                      Last = max point.StartLine point.EndLine
                      Offset = point.Offset } ]

/// All that an assembly's symbols say of its lines; nothing where it has no symbols that can be read.
let stretchesOf (path: string) : Stretch list =
    try withSymbols path stretchesIn |> Option.defaultValue [] with _ -> []
