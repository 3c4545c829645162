/// Tables: rows of records or tuples, maps and dictionaries, and `DataTable`.
module internal MainstayDisplay.Table

open System
open System.Collections
open System.Collections.Generic
open System.Data
open System.Reflection
open Microsoft.FSharp.Reflection

/// The widest cell in plain text.
let private cellWidth = 40

/// What is in a column, whether each cell has one or not.
type Column = { Name: string; Kind: Type }

/// What is shown of a table, and what there is besides.
type Table =
    { Columns: Column list
      MoreColumns: int
      Rows: obj[] list
      /// How many rows there are; none where nobody knows, but that there are more.
      Total: int option }

let private everything = BindingFlags.Public ||| BindingFlags.NonPublic

/// How the elements of a type are rows: their columns, and what reads them.
let private rowsOf (element: Type) : (Column list * (obj -> obj[])) option =
    let columnOf (property: PropertyInfo) = { Name = property.Name; Kind = Cells.contentOf property.PropertyType }
    if FSharpType.IsRecord(element, everything) && not (FSharpType.IsUnion(element, everything)) then
        let columns = FSharpType.GetRecordFields(element, everything) |> Seq.map columnOf |> List.ofSeq
        Some(columns, FSharpValue.PreComputeRecordReader(element, everything))
    elif FSharpType.IsTuple element then
        let columns = FSharpType.GetTupleElements element |> Seq.mapi (fun index kind -> { Name = sprintf "Item%d" (index + 1); Kind = Cells.contentOf kind }) |> List.ofSeq
        Some(columns, FSharpValue.PreComputeTupleReader element)
    else None

/// How the pairs of a map or dictionary are rows: the key, then the value, whose own columns are taken where it has some.
let private pairRowsOf (key: Type) (value: Type) : Column list * (obj -> obj[]) =
    let pair = typedefof<KeyValuePair<_, _>>.MakeGenericType(key, value)
    let keyOf, valueOf = pair.GetProperty "Key", pair.GetProperty "Value"
    let key = { Name = "Key"; Kind = key }
    match rowsOf value with
    | Some (columns, read) -> key :: columns, (fun item -> Array.append [| keyOf.GetValue item |] (read (valueOf.GetValue item)))
    | None -> [ key; { Name = "Value"; Kind = Cells.contentOf value } ], (fun item -> [| keyOf.GetValue item; valueOf.GetValue item |])

let private genericInterface (definition: Type) (kind: Type) =
    kind.GetInterfaces() |> Seq.tryFind (fun face -> face.IsGenericType && face.GetGenericTypeDefinition() = definition)

let private ofRows (bounds: Bounds) (columns: Column list, read: obj -> obj[]) (items: seq<obj>) (total: int option) : Table =
    let shown = columns |> List.truncate bounds.Columns
    { Columns = shown
      MoreColumns = List.length columns - List.length shown
      Rows = items |> Seq.truncate bounds.Rows |> Seq.map (fun item -> if isNull item then Array.create shown.Length null else Array.truncate shown.Length (read item)) |> List.ofSeq
      Total = total }

/// The items of something that is enumerated, as far as a table shows them; `isLazy` where even counting them would run code.
let ofItems (bounds: Bounds) (element: Type) (isLazy: bool) (items: seq<obj>) : Table option =
    rowsOf element
    |> Option.map (fun rows ->
        if not isLazy then ofRows bounds rows items (Some(Seq.length items))
        else
            let first = items |> Seq.truncate (bounds.Rows + 1) |> Array.ofSeq
            ofRows bounds rows first (if first.Length > bounds.Rows then None else Some first.Length))

/// A map or a dictionary. Of a type that is not known to hold all it has, only where the look may run code.
let ofPairs (bounds: Bounds) (looking: Looking) (value: obj) : Table option =
    let kind = value.GetType()
    let holdsAll = kind.IsGenericType && List.contains (kind.GetGenericTypeDefinition()) [ typedefof<Map<_, _>>; typedefof<Dictionary<_, _>>; typedefof<SortedDictionary<_, _>> ]
    let tableOf (face: Type) =
        let types = face.GetGenericArguments()
        let items = (value :?> IEnumerable) |> Seq.cast<obj>
        ofRows bounds (pairRowsOf types.[0] types.[1]) items (Some(Seq.length items))
    match genericInterface typedefof<IReadOnlyDictionary<_, _>> kind, looking with
    | Some face, _ when holdsAll -> Some(tableOf face)
    | Some face, Closely noted ->
        noted ()
        Some(tableOf face)
    | Some _, AtWhatIsThere
    | None, _ -> None

let ofDataTable (bounds: Bounds) (table: DataTable) : Table =
    let columns = table.Columns |> Seq.cast<DataColumn> |> Seq.map (fun column -> { Name = column.ColumnName; Kind = column.DataType }) |> List.ofSeq
    let read (row: obj) = (row :?> DataRow).ItemArray |> Array.map (fun cell -> if cell :? DBNull then null else cell)
    ofRows bounds (columns, read) (table.Rows |> Seq.cast<obj>) (Some table.Rows.Count)

/// What there is besides what is shown, if anything.
let private rest (table: Table) : string option =
    let rows = List.length table.Rows
    let ofRows =
        match table.Total with
        | None -> [ sprintf "the first %d rows" rows ]
        | Some total when total > rows -> [ sprintf "%d of %d rows" rows total ]
        | Some _ -> []
    let ofColumns = if table.MoreColumns > 0 then [ sprintf "%d more columns" table.MoreColumns ] else []
    match ofRows @ ofColumns with
    | [] -> None
    | parts -> Some(String.concat ", " parts)

let private oneLine (text: string) = text.Replace("\r", "").Replace('\n', '⏎').Replace('\t', ' ')

let private fitted (text: string) = if Cells.width text <= cellWidth then text else fst (Cells.fitting (cellWidth - 1) text) + "…"

let private plain (cells: string[] list) (table: Table) : string =
    let cells = cells |> List.map (Array.map (oneLine >> fitted))
    let names = table.Columns |> List.map (fun column -> fitted (oneLine column.Name))
    let widths = names |> List.mapi (fun index name -> (name :: (cells |> List.map (fun row -> row.[index]))) |> Seq.map Cells.width |> Seq.max)
    let line (texts: seq<string>) =
        let aligned =
            Seq.zip (List.ofSeq texts) (List.zip widths table.Columns)
            |> Seq.map (fun (text, (width, column)) ->
                let blanks = String(' ', width - Cells.width text)
                if Cells.isNumeric column.Kind then blanks + text else text + blanks)
        (String.concat "  " aligned).TrimEnd()
    let ruler = widths |> Seq.map (fun width -> String('─', width)) |> String.concat "  "
    let lines = line names :: ruler :: (cells |> List.map line)
    lines @ (rest table |> Option.map (sprintf "… %s") |> Option.toList) |> String.concat "\n"

let private html (cells: string[] list) (table: Table) : string =
    let cell (tag: string) (text: string) = "<" + tag + ">" + Markup.escaped text + "</" + tag + ">"
    let row (tag: string) (texts: seq<string>) = "<tr>" + String.concat "" (texts |> Seq.map (cell tag)) + "</tr>"
    let caption = match rest table with Some text -> "<caption>" + Markup.escaped text + "</caption>" | None -> ""
    "<table>" + caption + "<thead>" + row "th" (table.Columns |> List.map (fun column -> column.Name)) + "</thead><tbody>"
    + String.concat "" (cells |> List.map (row "td")) + "</tbody></table>"

/// As Frictionless Data describes tables.
let private typeName (kind: Type) =
    if Cells.isWhole kind then "integer"
    elif Cells.isNumeric kind then "number"
    elif kind = typeof<bool> then "boolean"
    elif kind = typeof<DateTime> then "datetime"
    else "string"

let private resource (looking: Looking) (table: Table) : string =
    let field (column: Column) = JsonText.object [ "name", JsonText.text column.Name; "type", JsonText.text (typeName column.Kind) ]
    let row (values: obj[]) =
        JsonText.object (Seq.map2 (fun (column: Column) value -> column.Name, Cells.ofValueAsJson looking value) table.Columns values)
    JsonText.object [
        "schema", JsonText.object [ ("fields", JsonText.array (table.Columns |> List.map field)) ]
        "data", JsonText.array (table.Rows |> List.map row)
    ]

let bundle (looking: Looking) (table: Table) : Bundle =
    let cells = table.Rows |> List.map (Array.map (Cells.ofValue looking))
    [ "text/plain", Text(plain cells table)
      "text/html", Text(html cells table)
      "application/vnd.dataresource+json", Json(resource looking table) ]
