/// Charts: drawn here as SVG, and described for programs that draw better.
module internal MainstayDisplay.Plot

open System
open System.Globalization

type Mark =
    | Line
    | Bar
    | Scatter

/// A place on the x axis: a number, or one of a row of names.
type Place =
    | At of float
    | Named of string

type Plot =
    { Mark: Mark
      Title: string
      X: string
      Y: string
      Points: (Place * float) list }

let private width, height = 640., 360.
let private left, right, top, bottom = 64., 16., 36., 48.

/// How many ticks an axis has, about.
let private tickCount = 6
/// How wide a letter under an axis is, about, and the room between two names.
let private letter, gap = 7., 10.
/// The longest name under an axis.
let private nameLength = 12

let private number (value: float) = value.ToString("0.##", CultureInfo.InvariantCulture)

let private isNumber (value: float) = not (Double.IsNaN value || Double.IsInfinity value)

/// Round numbers that lie in and around a range.
let private ticks (low: float) (high: float) : float list =
    let span = if high > low then high - low else max 1. (abs high)
    let rough = span / float tickCount
    let power = Math.Pow(10., floor (log10 rough))
    let step = [ 1.; 2.; 5.; 10. ] |> List.map (fun factor -> factor * power) |> List.find (fun step -> step >= rough * 0.999)
    let first, last = floor (low / step + 1e-9), ceil ((if high > low then high else low + span) / step - 1e-9)
    [ for index in 0 .. int (last - first) -> (first + float index) * step ]

/// A label that has room beside its axis.
let private tickLabel (value: float) =
    if abs value >= 1e7 then value.ToString("0.###e0", CultureInfo.InvariantCulture) else Cells.ofFloat value

/// How an axis goes: where a value lies on it, from 0 to 1, and its ticks with their labels.
type private Axis = { Of: float -> float; Ticks: (float * string) list }

let private axisOf (values: float list) (fromZero: bool) : Axis =
    let values = values |> List.filter isNumber
    let low, high = if List.isEmpty values then 0., 1. else List.min values, List.max values
    let low, high = if fromZero then min 0. low, max 0. high else low, high
    let ticks = ticks low high
    let first, last = List.head ticks, List.last ticks
    { Of = (fun value -> (value - first) / (last - first)); Ticks = ticks |> List.map (fun tick -> tick, tickLabel tick) }

/// The names stand side by side, each in the middle of its share.
let private nameAxis (names: string list) : Axis =
    let count = max 1 (List.length names)
    let short (name: string) = if Cells.width name <= nameLength then name else fst (Cells.fitting (nameLength - 1) name) + "…"
    let widest = names |> Seq.map (short >> Cells.width) |> Seq.append [ 1 ] |> Seq.max
    let fitting = max 1 (int ((width - left - right) / (float widest * letter + gap)))
    let every = (count + fitting - 1) / fitting
    { Of = (fun index -> (index + 0.5) / float count)
      Ticks = names |> List.mapi (fun index name -> float index, short name) |> List.filter (fun (index, _) -> int index % every = 0) }

let private text (x: float) (y: float) (more: string) (content: string) =
    "<text x=\"" + number x + "\" y=\"" + number y + "\"" + more + ">" + Markup.escaped content + "</text>"

let private lineFrom (x1: float, y1: float) (x2: float, y2: float) (opacity: string) =
    "<line x1=\"" + number x1 + "\" y1=\"" + number y1 + "\" x2=\"" + number x2 + "\" y2=\"" + number y2
    + "\" stroke=\"currentColor\" stroke-opacity=\"" + opacity + "\"/>"

let private nameOf (place: Place) = match place with At value -> Cells.ofFloat value | Named name -> name

/// Whether the x axis has names: those of bars are names in any case.
let private hasNames (plot: Plot) = plot.Mark = Bar || plot.Points |> List.exists (function Named _, _ -> true | At _, _ -> false)

let private markName (mark: Mark) = match mark with Line -> "line" | Bar -> "bar" | Scatter -> "scatter"

/// Lines and letters take the colour around them; a picture that stands alone is told which by what the reader prefers.
let private style = "<style>.mainstay-plot{color:#444}@media (prefers-color-scheme:dark){.mainstay-plot{color:#ccc}}</style>"

let svg (plot: Plot) : string =
    let isPlace place = match place with At value -> isNumber value | Named _ -> true
    let points = plot.Points |> List.filter (fun (place, y) -> isPlace place && isNumber y)
    let named = hasNames plot
    let xAxis =
        if named then nameAxis (points |> List.map (fst >> nameOf))
        else axisOf (points |> List.map (fun (place, _) -> match place with At value -> value | Named _ -> nan)) false
    let yAxis = axisOf (points |> List.map snd) (plot.Mark = Bar)
    let x value = left + (width - left - right) * xAxis.Of value
    let y value = height - bottom - (height - top - bottom) * yAxis.Of value
    let placed =
        points
        |> List.mapi (fun index (place, value) ->
            (match place with
             | At at when not named -> x at
             | At _
             | Named _ -> x (float index)),
            y value)
    let yTicks = yAxis.Ticks |> List.map (fun (tick, label) -> lineFrom (left, y tick) (width - right, y tick) "0.15" + text (left - 8.) (y tick + 4.) " text-anchor=\"end\"" label)
    let xTicks = xAxis.Ticks |> List.map (fun (tick, label) -> lineFrom (x tick, height - bottom) (x tick, height - bottom + 4.) "0.6" + text (x tick) (height - bottom + 18.) " text-anchor=\"middle\"" label)
    let axes = lineFrom (left, height - bottom) (width - right, height - bottom) "0.6" + lineFrom (left, top) (left, height - bottom) "0.6"
    let circle (radius: string) (px: float, py: float) = "<circle cx=\"" + number px + "\" cy=\"" + number py + "\" r=\"" + radius + "\" fill=\"#3b82c4\"/>"
    let marks =
        match plot.Mark with
        | Line ->
            let path = placed |> List.map (fun (px, py) -> number px + "," + number py) |> String.concat " "
            "<polyline points=\"" + path + "\" fill=\"none\" stroke=\"#3b82c4\" stroke-width=\"2\" stroke-linejoin=\"round\"/>"
            + (if List.length placed <= 40 then placed |> List.map (circle "2.5") |> String.concat "" else "")
        | Scatter -> placed |> List.map (circle "3") |> String.concat ""
        | Bar ->
            let share = (width - left - right) / float (max 1 (List.length placed))
            let zero = y 0.
            placed
            |> List.map (fun (px, py) ->
                "<rect x=\"" + number (px - share * 0.4) + "\" y=\"" + number (min py zero) + "\" width=\"" + number (share * 0.8)
                + "\" height=\"" + number (abs (py - zero)) + "\" fill=\"#3b82c4\"/>")
            |> String.concat ""
    let title = if plot.Title = "" then markName plot.Mark + " chart" else plot.Title
    let shown (label: string) (write: string -> string) = if label = "" then "" else write label
    let labels =
        shown plot.Title (text (width / 2.) 20. " text-anchor=\"middle\" font-size=\"14\" font-weight=\"bold\"")
        + shown plot.X (text ((left + width - right) / 2.) (height - 8.) " text-anchor=\"middle\"")
        + shown plot.Y (text 14. ((top + height - bottom) / 2.) (" text-anchor=\"middle\" transform=\"rotate(-90 14 " + number ((top + height - bottom) / 2.) + ")\""))
    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mainstay-plot\" width=\"640\" height=\"360\" viewBox=\"0 0 640 360\" role=\"img\" fill=\"currentColor\""
    + " font-family=\"system-ui, sans-serif\" font-size=\"12\"><title>" + Markup.escaped title + "</title>" + style
    + String.concat "" yTicks + String.concat "" xTicks + axes + marks + labels + "</svg>"

let private vegaLite (plot: Plot) : string =
    let named = hasNames plot
    let x place =
        match place with
        | At value when not named -> JsonText.number value
        | At _
        | Named _ -> JsonText.text (nameOf place)
    let value (place, y) = JsonText.object [ "x", x place; "y", JsonText.number y ]
    let channel (field: string) (kind: string) (label: string) =
        [ "field", JsonText.text field; "type", JsonText.text kind; "title", (if label = "" then "null" else JsonText.text label) ]
        @ (if kind = "nominal" then [ ("sort", "null") ] else [])
        |> JsonText.object
    JsonText.object [
        yield "$schema", JsonText.text "https://vega.github.io/schema/vega-lite/v5.json"
        if plot.Title <> "" then yield "title", JsonText.text plot.Title
        yield "mark", JsonText.text (match plot.Mark with Line -> "line" | Bar -> "bar" | Scatter -> "point")
        yield "data", JsonText.object [ ("values", JsonText.array (plot.Points |> List.map value)) ]
        yield "encoding", JsonText.object [
            "x", channel "x" (if named then "nominal" else "quantitative") plot.X
            "y", channel "y" "quantitative" plot.Y
        ]
    ]

let private plain (plot: Plot) : string =
    let values = plot.Points |> Seq.map snd |> Array.ofSeq
    let what = if plot.Title = "" then markName plot.Mark + " chart" else sprintf "%s (%s chart)" plot.Title (markName plot.Mark)
    what + ": " + Numbers.summary "points" values true + "\n" + Numbers.sparkline values

let bundle (plot: Plot) : Bundle =
    [ "text/plain", Text(plain plot)
      "image/svg+xml", Text(svg plot)
      "application/vnd.vegalite.v5+json", Json(vegaLite plot) ]
