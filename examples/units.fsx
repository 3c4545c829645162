// Cold-chain freight: a small domain where mixing up two numbers costs a truckload of vaccine.
// Units of measure keep kilograms, kilometres and degrees apart at no run-time cost; active
// patterns turn raw readings into the words the dispatchers use.

[<Measure>] type kg
[<Measure>] type km
[<Measure>] type h
[<Measure>] type degC
[<Measure>] type eur
[<Measure>] type litre

/// Single-case unions: an identifier is never just a string.
type ShipmentId = ShipmentId of string
type VehicleId = VehicleId of string

type Goods =
    | Vaccine of doses: int
    | Produce of name: string
    | DryGoods

type Vehicle =
    { Id: VehicleId
      Payload: float<kg>
      Consumption: float<litre / km>
      Refrigerated: bool }

type Leg =
    { From: string
      To: string
      Distance: float<km>
      Speed: float<km / h> }

type Shipment =
    { Id: ShipmentId
      Goods: Goods
      Weight: float<kg>
      Legs: Leg list
      /// Readings of the cargo hold, one every hour on the road.
      Readings: float<degC> list }

type Rejection =
    | Overloaded of excess: float<kg>
    | NeedsRefrigeration
    | NoRoute

// ---- What the numbers mean -------------------------------------------------------------------

/// The range in which goods survive; dry goods do not care.
let safeRange goods =
    match goods with
    | Vaccine _ -> Some(2.0<degC>, 8.0<degC>)
    | Produce "bananas" -> Some(12.0<degC>, 15.0<degC>)
    | Produce _ -> Some(0.0<degC>, 7.0<degC>)
    | DryGoods -> None

/// Total: every reading is exactly one of these, and the compiler checks that all are handled.
let (|Frozen|TooWarm|Borderline|Fine|) (low: float<degC>, high: float<degC>, reading: float<degC>) =
    let margin = 0.5<degC>
    if reading < low then Frozen(low - reading)
    elif reading > high then TooWarm(reading - high)
    elif reading - low < margin || high - reading < margin then Borderline
    else Fine

/// Partial: matches only when the load does not fit.
let (|TooHeavyFor|_|) (vehicle: Vehicle) (weight: float<kg>) =
    if weight > vehicle.Payload then Some(weight - vehicle.Payload) else None

/// Parameterised and partial: a goods' description that starts with a prefix yields the rest.
let (|Prefixed|_|) (prefix: string) (text: string) =
    if text.StartsWith(prefix, System.StringComparison.Ordinal) then
        Some(text.Substring(prefix.Length).Trim())
    else
        None

let parseGoods text =
    match text with
    | Prefixed "vaccine:" doses -> Vaccine(int doses)
    | Prefixed "produce:" name -> Produce name
    | _ -> DryGoods

// ---- Computing with units --------------------------------------------------------------------

let distance shipment = shipment.Legs |> List.sumBy (fun leg -> leg.Distance)

// km divided by km/h can only be h: the signature below is inferred, and checked.
let travelTime (shipment: Shipment) : float<h> =
    shipment.Legs |> List.sumBy (fun leg -> leg.Distance / leg.Speed)

let fuelPrice = 1.75<eur / litre>
let driverWage = 24.0<eur / h>

/// Cooling costs fuel for every hour on the road, whatever the speed.
let coolingRate = 2.5<litre / h>

let cost (vehicle: Vehicle) shipment : float<eur> =
    let driving = distance shipment * vehicle.Consumption
    let cooling = if vehicle.Refrigerated then travelTime shipment * coolingRate else 0.0<litre>
    (driving + cooling) * fuelPrice + travelTime shipment * driverWage

let accept vehicle (shipment: Shipment) =
    match shipment.Weight, shipment.Legs, safeRange shipment.Goods with
    | _, [], _ -> Error NoRoute
    | TooHeavyFor vehicle excess, _, _ -> Error(Overloaded excess)
    | _, _, Some _ when not vehicle.Refrigerated -> Error NeedsRefrigeration
    | _ -> Ok(cost vehicle shipment)

/// Generic in its unit: averages kilograms as well as degrees.
let average (values: float<'u> list) : float<'u> = List.sum values / float (List.length values)

// ---- The day's plan --------------------------------------------------------------------------

let reefer =
    { Id = VehicleId "REEFER-7"; Payload = 12000.0<kg>; Consumption = 0.31<litre / km>; Refrigerated = true }

let van =
    { Id = VehicleId "VAN-2"; Payload = 1100.0<kg>; Consumption = 0.09<litre / km>; Refrigerated = false }

let leg from toward distance speed = { From = from; To = toward; Distance = distance; Speed = speed }

let shipments =
    [ { Id = ShipmentId "S-100"
        Goods = parseGoods "vaccine: 40000"
        Weight = 900.0<kg>
        Legs = [ leg "Basel" "Lyon" 405.0<km> 81.0<km / h>; leg "Lyon" "Marseille" 315.0<km> 90.0<km / h> ]
        Readings = [ 4.1<degC>; 4.4<degC>; 7.7<degC>; 8.6<degC>; 6.0<degC> ] }
      { Id = ShipmentId "S-101"
        Goods = parseGoods "produce: bananas"
        Weight = 13500.0<kg>
        Legs = [ leg "Antwerp" "Basel" 600.0<km> 75.0<km / h> ]
        Readings = [ 13.0<degC>; 11.2<degC>; 13.5<degC> ] }
      { Id = ShipmentId "S-102"
        Goods = parseGoods "paper"
        Weight = 800.0<kg>
        Legs = [ leg "Ulm" "Graz" 480.0<km> 96.0<km / h> ]
        Readings = [] }
      { Id = ShipmentId "S-103"; Goods = parseGoods "produce: lettuce"; Weight = 350.0<kg>; Legs = []; Readings = [] } ]

let describe goods =
    match goods with
    | Vaccine doses -> sprintf "%d doses of vaccine" doses
    | Produce name -> name
    | DryGoods -> "dry goods"

let quote (vehicle: Vehicle) shipment =
    let (VehicleId name) = vehicle.Id
    match accept vehicle shipment with
    | Ok price -> printfn "    %-9s %8.2f EUR, %4.1f h" name (float price) (float (travelTime shipment))
    | Error(Overloaded excess) -> printfn "    %-9s refused: %.0f kg too heavy" name (float excess)
    | Error NeedsRefrigeration -> printfn "    %-9s refused: cannot keep it cool" name
    | Error NoRoute -> printfn "    %-9s refused: no route" name

let inspect shipment =
    match safeRange shipment.Goods with
    | None -> printfn "    no temperature to watch"
    | Some(low, high) ->
        shipment.Readings
        |> List.iteri (fun hour reading ->
            let verdict =
                match low, high, reading with
                | Frozen by -> sprintf "too cold by %.1f" (float by)
                | TooWarm by -> sprintf "too warm by %.1f" (float by)
                | Borderline -> "borderline"
                | Fine -> "fine"
            printfn "    hour %d: %5.1f C %s" (hour + 1) (float reading) verdict)

for shipment in shipments do
    let (ShipmentId id) = shipment.Id
    printfn "%s: %s, %.0f kg over %.0f km" id (describe shipment.Goods) (float shipment.Weight) (float (distance shipment))
    quote reefer shipment
    quote van shipment
    inspect shipment

let meanWeight = shipments |> List.map (fun shipment -> shipment.Weight) |> average
let meanReading = shipments |> List.collect (fun shipment -> shipment.Readings) |> average

printfn "mean weight  %8.1f kg" (float meanWeight)
printfn "mean reading %8.2f C" (float meanReading)
