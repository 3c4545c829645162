/// Sequences of numbers, as a line that shows how they go up and down.
module internal MainstayDisplay.Numbers

open System

/// How many characters, or points of the picture, show all of them.
let private width = 60

let private blocks = "▁▂▃▄▅▆▇█"

let private isNumber (value: float) = not (Double.IsNaN value || Double.IsInfinity value)

/// As many values as fit: where there are more, the means of neighbours.
let private condensed (limit: int) (values: float[]) : float[] =
    if values.Length <= limit then values
    else
        Array.init limit (fun index ->
            let first = int (int64 index * int64 values.Length / int64 limit)
            let next = int (int64 (index + 1) * int64 values.Length / int64 limit)
            match Array.sub values first (next - first) |> Array.filter isNumber with
            | [||] -> nan
            | some -> Array.average some)

let private rangeOf (values: float[]) : (float * float) option =
    match Array.filter isNumber values with
    | [||] -> None
    | some -> Some(Array.min some, Array.max some)

/// One character a value.
let sparkline (values: float[]) : string =
    let shown = condensed width values
    match rangeOf shown with
    | None -> String('·', shown.Length)
    | Some (low, high) ->
        let block value =
            if not (isNumber value) then '·'
            elif high = low then blocks.[3]
            else blocks.[int (Math.Round((value - low) / (high - low) * 7.))]
        String(Array.map block shown)

/// How many there are, and between what.
let summary (what: string) (values: float[]) (isAll: bool) : string =
    let count = if isAll then sprintf "%d %s" values.Length what else sprintf "the first %d %s" values.Length what
    match rangeOf values with
    | Some (low, high) -> sprintf "%s, %s to %s" count (Cells.ofFloat low) (Cells.ofFloat high)
    | None -> count

let private svg (values: float[]) (title: string) : string =
    let shown = condensed (4 * width) values
    let low, high = match rangeOf shown with Some range -> range | None -> 0., 0.
    let x index = if shown.Length < 2 then 120. else 2. + 236. * float index / float (shown.Length - 1)
    let y value = if high = low then 24. else 44. - 40. * (value - low) / (high - low)
    let points =
        shown
        |> Seq.mapi (fun index value -> index, value)
        |> Seq.filter (snd >> isNumber)
        |> Seq.map (fun (index, value) -> (x index).ToString("0.#", Globalization.CultureInfo.InvariantCulture) + "," + (y value).ToString("0.#", Globalization.CultureInfo.InvariantCulture))
        |> String.concat " "
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"240\" height=\"48\" viewBox=\"0 0 240 48\" role=\"img\"><title>"
    + Markup.escaped title + "</title><polyline points=\"" + points
    + "\" fill=\"none\" stroke=\"#3b82c4\" stroke-width=\"1.5\" stroke-linejoin=\"round\" stroke-linecap=\"round\"/></svg>"

let bundle (values: float[]) (isAll: bool) : Bundle =
    let summary = summary "numbers" values isAll
    [ "text/plain", Text(sparkline values + "  " + summary); "image/svg+xml", Text(svg values summary) ]
