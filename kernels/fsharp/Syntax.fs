/// The untyped tree of the compiler as plain data. It is read by reflection: its cases gain and lose fields with nearly every SDK, so
/// patterns over them would compile on one SDK only, while the names of cases are stable.
module Mainstay.Worker.Syntax

open System
open System.Collections
open System.Collections.Concurrent
open Microsoft.FSharp.Reflection

/// A part of the tree. Lists, options, tuples and records are not nodes of their own: what they hold belongs to the node around them.
type Tree =
    | Node of union: string * case: string * parts: Tree list
    | Name of string
    | Flag of bool

/// How an object of some type is taken apart.
type private Shape =
    | Cases of union: string * names: string[] * tag: (obj -> int) * fields: (int -> obj -> obj[])
    | Parts of (obj -> obj[])
    | Identifier of (obj -> string)
    | Opaque

/// Whether objects of this type belong to the tree, rather than hang on it like ranges and documentation, which lead elsewhere.
let private isOfTree (name: string) =
    [ "Syn"; "Parsed"; "LongIdent" ] |> List.exists (fun start -> name.StartsWith(start, StringComparison.Ordinal))

let private shapeOf (kind: Type) : Shape =
    let identifierText = kind.GetProperty "idText"
    if not (isNull identifierText) then Identifier(fun value -> string (identifierText.GetValue value))
    elif FSharpType.IsTuple kind then Parts(FSharpValue.PreComputeTupleReader kind)
    elif FSharpType.IsUnion(kind, true) then
        let cases = FSharpType.GetUnionCases(kind, true)
        let union = cases.[0].DeclaringType
        let fields = cases |> Array.map (fun case -> lazy FSharpValue.PreComputeUnionReader(case, true))
        let read (index: int) (value: obj) = fields.[index].Value value
        if union.IsGenericType && union.GetGenericTypeDefinition() = typedefof<_ option> then Parts(read 1)
        elif isOfTree union.Name then
            Cases(union.Name, cases |> Array.map (fun case -> case.Name), FSharpValue.PreComputeUnionTagReader(union, true), read)
        else Opaque
    elif isOfTree kind.Name && FSharpType.IsRecord(kind, true) then Parts(FSharpValue.PreComputeRecordReader(kind, true))
    else Opaque

let private shapes = ConcurrentDictionary<Type, Shape>()

/// What is made of the parts of a tree; the object is the one that is read.
type private Makers<'part> =
    { OfName: obj -> string -> 'part
      OfFlag: bool -> 'part
      OfNode: obj -> string -> string -> 'part list -> 'part }

/// Reads an object of the tree, recursing as deeply as it is nested.
let rec private readWith (makers: Makers<'part>) (value: obj) : 'part list =
    match value with
    | null
    | :? string -> []
    | :? bool as flag -> [ makers.OfFlag flag ]
    | :? IEnumerable as items -> [ for item in items do yield! readWith makers item ]
    | _ ->
        match shapes.GetOrAdd(value.GetType(), shapeOf) with
        | Identifier text -> [ makers.OfName value (text value) ]
        | Cases (union, names, tag, fields) ->
            let case = tag value
            [ makers.OfNode value union names.[case] (readAll makers (fields case value)) ]
        | Parts fields -> readAll makers (fields value)
        | Opaque -> []

and private readAll (makers: Makers<'part>) (values: obj[]) : 'part list =
    values |> List.ofArray |> List.collect (readWith makers)

let private trees : Makers<Tree> =
    { OfName = fun _ text -> Name text
      OfFlag = Flag
      OfNode = fun _ union case parts -> Node(union, case, parts) }

/// Reads an object of the tree.
let read (tree: obj) : Tree list = readWith trees tree

/// Where a part of the tree stands in the code: lines from 1, columns from 0.
[<Struct>]
type Place =
    { Line: int
      Column: int
      EndLine: int
      EndColumn: int }

    /// Whether the tree says where it stands.
    member place.IsKnown = place.Line > 0

/// A part of the tree with its place. A name or a flag is a part of its own.
type Placed =
    { Union: string
      Case: string
      Word: string option
      Flag: bool option
      Place: Place
      Parts: Placed list }

let private nowhere = { Line = 0; Column = 0; EndLine = 0; EndColumn = 0 }

let private ranges = ConcurrentDictionary<Type, Reflection.PropertyInfo option>()

/// Which property of a part says where it stands.
let private rangeOf (kind: Type) : Reflection.PropertyInfo option =
    [ "Range"; "idRange"; "RangeOfBindingWithRhs" ] |> List.tryPick (fun name -> kind.GetProperty name |> Option.ofObj)

let private placeOf (value: obj) : Place =
    match ranges.GetOrAdd(value.GetType(), rangeOf) with
    | None -> nowhere
    | Some property ->
        let range = property.GetValue value
        let number (name: string) = range.GetType().GetProperty(name).GetValue range :?> int
        { Line = number "StartLine"; Column = number "StartColumn"; EndLine = number "EndLine"; EndColumn = number "EndColumn" }

let private placed : Makers<Placed> =
    let leaf word flag place = { Union = ""; Case = ""; Word = word; Flag = flag; Place = place; Parts = [] }
    { OfName = fun value text -> leaf (Some text) None (placeOf value)
      OfFlag = fun flag -> leaf None (Some flag) nowhere
      OfNode =
        fun value union case parts ->
            { Union = union; Case = case; Word = None; Flag = None; Place = placeOf value; Parts = parts } }

/// Reads an object of the tree with the places of its parts.
let readPlaced (tree: obj) : Placed list = readWith placed tree

/// Whether it is a name of several parts; SDK 6 calls that otherwise.
let isLongName (part: Placed) : bool = part.Union = "SynLongIdent" || part.Union = "LongIdentWithDots"

/// The parts of a part that are of this union.
let nodes (union: string) (part: Placed) : Placed list = part.Parts |> List.filter (fun one -> one.Union = union)

/// The first of them.
let node (union: string) (part: Placed) : Placed option = nodes union part |> List.tryHead

/// The flags of a part, in order.
let flags (part: Placed) : bool list = part.Parts |> List.choose (fun one -> one.Flag)

/// The names of a part, in order.
let words (part: Placed) : string list = part.Parts |> List.choose (fun one -> one.Word)

/// All parts below a part, and itself.
let rec below (part: Placed) : Placed seq =
    seq {
        yield part
        for inner in part.Parts do
            yield! below inner
    }
