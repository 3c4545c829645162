/// Values that packages made to be looked at, by the names of their types: nothing here refers to any package.
module internal MainstayDisplay.Conventions

open System
open System.Collections
open System.Reflection

/// How the values of a type are shown.
type private Convention =
    { /// The full name of the type, or of one that it comes from, without what it is generic in.
      Type: string
      Show: Bounds -> Looking -> obj -> Bundle option }

let private statics = BindingFlags.Public ||| BindingFlags.Static

/// What a static function of a type's assembly gives of a value.
let private given (owner: string) (name: string) (value: obj) : obj option =
    match value.GetType().Assembly.GetType owner with
    | null -> None
    | owner ->
        owner.GetMethods statics
        |> Array.tryFind (fun m -> m.Name = name && m.GetParameters().Length = 1 && m.GetParameters().[0].ParameterType.IsInstanceOfType value)
        |> Option.map (fun m -> m.Invoke(null, BindingFlags.DoNotWrapExceptions, null, [| value |], null))

let private textGiven (owner: string) (name: string) (value: obj) : string option =
    given owner name value |> Option.bind (function :? string as text -> Some text | _ -> None)

let private property (name: string) (value: obj) : obj = value.GetType().GetProperty(name).GetValue value

let private itemsOf (value: obj) : obj list = (value :?> IEnumerable) |> Seq.cast<obj> |> List.ofSeq

/// A figure, as Plotly's own libraries read it.
let private plotly (_: Bounds) (_: Looking) (chart: obj) : Bundle option =
    textGiven "Plotly.NET.GenericChart" "toFigureJson" chart
    |> Option.map (fun figure -> [ "text/plain", Text "a chart of Plotly.NET"; "application/vnd.plotly.v1+json", Json figure ])

/// The type of a column, by the values that are shown of it.
let private kindOf (cells: obj list) : Type =
    match cells |> List.filter (isNull >> not) |> List.map (fun cell -> cell.GetType()) |> List.distinct with
    | [ kind ] -> kind
    | _ -> typeof<obj>

/// A table of columns with all their cells, the keys of its rows first.
let private keyed (bounds: Bounds) (looking: Looking) (keys: obj list) (total: int) (columns: (string * (obj -> obj)) list) : Bundle =
    let shown = List.truncate bounds.Columns columns
    let cells = id :: List.map snd shown |> List.map (fun cellOf -> List.map cellOf keys)
    let columnOf (name: string) (cells: obj list) : Table.Column = { Name = name; Kind = kindOf cells }
    let table: Table.Table =
        { Columns = List.map2 columnOf ("Key" :: List.map fst shown) cells
          MoreColumns = columns.Length - shown.Length
          Rows = (if List.isEmpty keys then [] else cells |> List.transpose |> List.map Array.ofList)
          Total = Some total }
    Table.bundle looking table

let private firstOf (bounds: Bounds) (keys: obj) : obj list = (keys :?> IEnumerable) |> Seq.cast<obj> |> Seq.truncate bounds.Rows |> List.ofSeq

/// What a series of Deedle has at a key; null where that is missing.
let private valueAt (series: obj) : obj -> obj =
    let tryGet = series.GetType().GetMethods() |> Array.find (fun m -> m.Name = "TryGet" && m.GetParameters().Length = 1)
    fun key ->
        let found = tryGet.Invoke(series, [| key |])
        if (property "HasValue" found) :?> bool then property "Value" found else null

let private frame (bounds: Bounds) (looking: Looking) (frame: obj) : Bundle option =
    let columns = property "Columns" frame
    let column (key: obj) =
        let series = columns.GetType().GetProperty("Item", [| key.GetType() |]).GetValue(columns, [| key |])
        string key, valueAt series
    let names = property "ColumnKeys" frame |> itemsOf
    // What is beyond the shown columns is only counted.
    let read = names |> List.mapi (fun index key -> if index < bounds.Columns then column key else string key, fun _ -> null)
    Some(keyed bounds looking (property "RowKeys" frame |> firstOf bounds) (property "RowCount" frame :?> int) read)

let private series (bounds: Bounds) (looking: Looking) (series: obj) : Bundle option =
    Some(keyed bounds looking (property "Keys" series |> firstOf bounds) (property "KeyCount" series :?> int) [ ("Value", valueAt series) ])

let private html (owner: string) (name: string) (_: Bounds) (_: Looking) (node: obj) : Bundle option =
    textGiven owner name node |> Option.map (fun markup -> [ ("text/html", Text markup) ])

let private all =
    [ { Type = "Plotly.NET.GenericChart"; Show = plotly }
      { Type = "Deedle.Frame`2"; Show = frame }
      { Type = "Deedle.Series`2"; Show = series }
      { Type = "Giraffe.ViewEngine.HtmlElements+XmlNode"; Show = html "Giraffe.ViewEngine.RenderView+AsString" "htmlNode" } ]

let rec private named (kind: Type) : Convention option =
    if isNull kind then None
    else
        let name = (if kind.IsGenericType then kind.GetGenericTypeDefinition() else kind).FullName
        all |> List.tryFind (fun one -> one.Type = name) |> Option.orElseWith (fun () -> named kind.BaseType)

/// The forms of a value of a type that is known. What its package does to give them is no code of the session.
let ofValue (bounds: Bounds) (looking: Looking) (value: obj) : Bundle option =
    named (value.GetType()) |> Option.bind (fun convention -> try convention.Show bounds looking value with _ -> None)
