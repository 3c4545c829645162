// A month-end report: some three thousand lines of tables, and structured values through %A.
// Every printf format that a report needs is here, and the figures come from a generator of
// their own, so that the report is the same on every machine and every day.
//
// %A is kept to shapes that all versions print alike. Since F# 5 a union case with several
// fields is spaced differently, and so is a record's field that does not fit on its line.

open System.Globalization
open System.IO

/// The linear congruential generator of Numerical Recipes; plenty for made-up invoices.
type Lcg(seed: uint32) =
    let mutable state = seed

    /// The next number, at least 0 and below `limit`.
    member __.Next(limit: int) =
        state <- state * 1664525u + 1013904223u
        int ((state >>> 8) % uint32 limit)

    member this.Pick(items: 'T[]) = items.[this.Next items.Length]

type Region =
    | North
    | South
    | Overseas of country: string

type Terms =
    | Cash
    | Net of days: int
    | Instalments of int list

type Address = { Street: string; City: string; Region: Region }

type Customer = { Number: int; Name: string; Address: Address; Discount: float option }

type Line = { Sku: string; Quantity: int; UnitCents: int }

type Invoice = { Id: int; Customer: Customer; Terms: Terms; Lines: Line list; Paid: Result<int, string> option }

// ---- Making it up ----------------------------------------------------------------------------

let rng = Lcg 20200229u

let surnames = [| "Abbot"; "Boyle"; "Curie"; "Dirac"; "Euler"; "Fermi"; "Gauss"; "Hertz"; "Ising"; "Joule" |]
let streets = [| "Acacia Avenue"; "Baker Street"; "Canal Walk"; "Dock Road" |]
let cities = [| "Leeds"; "Hull"; "York"; "Ripon" |]
let skus = [| for shelf in 'A' .. 'E' do for bin in 1..4 -> sprintf "%c-%02d" shelf bin |]

let makeRegion () =
    match rng.Next 4 with
    | 0 -> North
    | 1 -> South
    | _ -> Overseas(rng.Pick [| "FR"; "JP"; "NZ" |])

let makeTerms () =
    match rng.Next 3 with
    | 0 -> Cash
    | 1 -> Net(30 * (1 + rng.Next 3))
    | _ -> Instalments [ for month in 1 .. 2 + rng.Next 3 -> 30 * month ]

let makeCustomer number =
    { Number = number
      Name = rng.Pick surnames
      Address =
          { Street = sprintf "%d %s" (1 + rng.Next 99) (rng.Pick streets)
            City = rng.Pick cities
            Region = makeRegion () }
      Discount = if rng.Next 3 = 0 then Some(float (1 + rng.Next 8) / 40.0) else None }

let makeInvoice (customers: Customer[]) id =
    { Id = id
      Customer = rng.Pick customers
      Terms = makeTerms ()
      Lines = [ for _ in 1 .. 1 + rng.Next 4 -> { Sku = rng.Pick skus; Quantity = 1 + rng.Next 50; UnitCents = 25 * (1 + rng.Next 400) } ]
      Paid =
          match rng.Next 5 with
          | 0 -> None
          | 1 -> Some(Error "bounced")
          | _ -> Some(Ok(rng.Next 60)) }

let customers = [| for number in 1..40 -> makeCustomer (1000 + number) |]
let invoices = [ for id in 1..600 -> makeInvoice customers (500000 + id) ]

// ---- Small printers --------------------------------------------------------------------------

let rule width = printfn "%s" (String.replicate width "-")

let heading (title: string) =
    printfn ""
    printfn "%s" title
    rule title.Length

let euros cents = decimal cents / 100M

/// For %a: writes money right-aligned in the width asked for by the table.
let money (out: TextWriter) cents = fprintf out "%12s" ((euros cents).ToString("0.00", CultureInfo.InvariantCulture))

/// For %t: a footer that needs no value.
let footer (out: TextWriter) = fprintf out "[end of table]"

let lineTotal line = line.Quantity * line.UnitCents

let total invoice =
    let gross = invoice.Lines |> List.sumBy lineTotal
    match invoice.Customer.Discount with
    | Some share -> gross - int (float gross * share)
    | None -> gross

let payment invoice =
    match invoice.Paid with
    | None -> "open"
    | Some(Ok days) -> sprintf "paid +%d" days
    | Some(Error reason) -> reason

// ---- Tables ----------------------------------------------------------------------------------

heading "Customers"
printfn "%-6s %-10s %-20s %-8s %8s" "no" "name" "street" "city" "discount"
for c in customers do
    let discount = match c.Discount with Some share -> sprintf "%.1f%%" (100.0 * share) | None -> ""
    printfn "%06d %-10s %-20s %-8s %8s" c.Number c.Name c.Address.Street c.Address.City discount
printfn "%t" footer

heading "Invoices"
for invoice in invoices do
    printfn "#%d  %-10s %-30s %10s %a" invoice.Id invoice.Customer.Name (sprintf "%A" invoice.Terms) (payment invoice) money (total invoice)
    for line in invoice.Lines do
        printfn "    %-6s %4d x %9.2f = %11.2f" line.Sku line.Quantity (float line.UnitCents / 100.0) (float (lineTotal line) / 100.0)
printfn "%t" footer

heading "Sales by article"
printfn "%-6s|%8s|%14s|%7s|%-20s" "sku" "pieces" "EUR" "share" " chart"
let bySku = invoices |> List.collect (fun invoice -> invoice.Lines) |> List.groupBy (fun line -> line.Sku) |> List.sortBy fst
let everything = bySku |> List.sumBy (fun (_, lines) -> List.sumBy lineTotal lines)
for sku, lines in bySku do
    let cents = List.sumBy lineTotal lines
    let share = float cents / float everything
    let pieces = lines |> List.sumBy (fun line -> line.Quantity)
    printfn "%-6s|%8d|%14.2f|%6.2f%%| %s" sku pieces (float cents / 100.0) (100.0 * share) (String.replicate (int (200.0 * share)) "#")
printfn "%t" footer

heading "Multiplication and powers"
for row in 1..30 do
    for column in 1..12 do
        printf "%*d" 5 (row * column)
    printfn ""
for n in 0..62 do
    let power = 1L <<< n
    printfn "2^%-2d %20d 0x%-16x 0o%-21o %12.5e" n power power power (float power)

heading "Number formats"
for n in [ 0; 7; -7; 42; 65535; -65536; System.Int32.MaxValue ] do
    printfn "%d|%i|%+d|% d|%12d|%-12d|%012d|%x|%X|%o|%u" n n n n n n n n n n (uint32 n)
for x in [ 0.0; 1.0; -2.7; 0.1234; 1234567.891; 1e-7; 6.02214076e23 ] do
    printfn "%f|%.0f|%.3f|%10.2f|%-10.1f|%+.4f|%e|%.2E|%A" x x x x x x x x x
printfn "%b|%-7b|%c|%5c|%s|%10s|%-10s|%O|%%" true false 'x' 'y' "text" "right" "left" (Some 3)

// ---- Structured values -----------------------------------------------------------------------

heading "The first invoices in detail"
for invoice in List.truncate 60 invoices do
    printfn "%A" { invoice with Lines = List.truncate 2 invoice.Lines }

heading "Summaries"
let byRegion =
    invoices
    |> List.groupBy (fun invoice -> invoice.Customer.Address.Region)
    |> List.map (fun (region, group) -> region, List.sumBy total group)
    |> Map.ofList

printfn "%A" byRegion
printfn "%A" (byRegion |> Map.map (fun _ cents -> if cents > 10000000 then Some cents else None))
printfn "%A" (invoices |> List.map (fun invoice -> invoice.Customer.Address.City) |> Set.ofList)
printfn "%A" (invoices |> List.countBy (fun invoice -> invoice.Paid |> Option.map (function Ok _ -> "paid" | Error reason -> reason)))
printfn "%A" [| for invoice in List.truncate 12 invoices -> invoice.Id, euros (total invoice) |]
printfn "%A" [ for n in 1..130 -> n * n ]
printfn "%A" (Some(Some(Net 30)), [ Cash; Instalments []; Instalments [ 1; 2 ] ], (North, Overseas "JP"))
printfn "%A" {| Title = "anonymous"; Totals = [ 1.5; 2.0 ]; Best = Some customers.[0].Address |}
printfn "%A %A %A %A" 'c' "string" 3uy 12345678901L
printfn "%M %A %A %A" 12.30M 2.50M 1.0f (1, "two", 3.0)
