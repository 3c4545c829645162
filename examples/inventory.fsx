// A script in several files: helpers loaded as source, and a library referenced as a DLL.
// Paths are relative to this file, wherever the session was started.
//
// lib/bin/Pricing.dll is not kept in the repository; README.md has the line that compiles it.

#r "lib/bin/Pricing.dll"
#load "lib/Stock.fs"
#load "lib/report.fsx"

open System.IO
open Examples.Pricing
open Examples.Stock

// ---- Where are we? ---------------------------------------------------------------------------

// __SOURCE_DIRECTORY__ is this file's folder, also when the text is evaluated by a daemon that
// was started somewhere else.
let here = __SOURCE_DIRECTORY__

Report.title "Files"
printfn "script: %s in a folder named %s" (Path.GetFileName __SOURCE_FILE__) (Path.GetFileName here)
for file in [ "lib/Stock.fs"; "lib/report.fsx"; "lib/Pricing.fs" ] do
    printfn "%-16s %s" file (if File.Exists(Path.Combine(here, file)) then "found" else "missing")

// ---- Movements, through the loaded module ----------------------------------------------------

let bolts, nuts, gears = Sku "bolts", Sku "nuts", Sku "gears"

let movements =
    [ Received(bolts, 500)
      Received(nuts, 800)
      Shipped(bolts, 120)
      Shipped(gears, 1)
      Received(gears, 12)
      Shipped(nuts, 850)
      Counted(nuts, 790)
      Shipped(gears, 5)
      Shipped(bolts, 380) ]

printfn ""
Report.title "Movements"

/// Applies what can be applied; also gives what left the house, latest first.
let step (shelf, shipped) movement =
    match apply movement shelf, movement with
    | Choice2Of2 problem, _ ->
        printfn "%-12s %s" (Report.describe movement) problem
        shelf, shipped
    | Choice1Of2 after, Shipped(sku, quantity) ->
        printfn "%-12s ok" (Report.describe movement)
        after, (sku, quantity) :: shipped
    | Choice1Of2 after, _ ->
        printfn "%-12s ok" (Report.describe movement)
        after, shipped

let final, shipped = List.fold step (empty, []) movements

// ---- Prices, through the referenced library --------------------------------------------------

let priceList = Map.ofList [ bolts, Money 12L; nuts, Money 7L; gears, Money 4950L ]

let tiers = [ { From = 100; Percent = 5 }; { From = 500; Percent = 12 }; { From = 5; Percent = 2 } ]

printfn ""
Report.title "Invoice lines"

let invoice =
    [ for sku, quantity in List.rev shipped do
        let (Sku name) = sku
        yield name, quantity, priceList.[sku], Discount.price tiers priceList.[sku] quantity ]

for name, quantity, unitPrice, price in invoice do
    let discount =
        match Discount.best tiers quantity with
        | Some tier -> sprintf "-%d%%" tier.Percent
        | None -> ""
    printfn "%-6s %4d x %6O %4s %10O" name quantity unitPrice discount price

// List.sumBy finds the static members Zero and (+) of the library's type.
printfn "%-24s %10O" "total" (invoice |> List.sumBy (fun (_, _, _, price) -> price))

printfn ""
Report.title "Stock"
for entry in final do
    let (Sku name) = entry.Key
    let level = entry.Value
    let worth = priceList.[entry.Key] * level.OnHand
    printfn "%-6s %4d on hand after %d movements, worth %O" name level.OnHand level.Movements worth

printfn ""
Report.title "The library, seen by reflection"
let assembly = typeof<Money>.Assembly
printfn "%s, %d public types" (assembly.GetName().Name) (assembly.GetExportedTypes().Length)
printfn "equal amounts are equal: %b" (Money 250L + Money 50L = Money 300L)
