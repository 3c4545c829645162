// A script of helpers, loaded by inventory.fsx. A `#load`ed script becomes a module named after
// its file (Report), and may itself load others, relative to its own folder.

#load "Stock.fs"

open Examples.Stock

let rule (width: int) = String.replicate width "="

let title (text: string) =
    printfn "%s" text
    printfn "%s" (rule text.Length)

let describe movement =
    match movement with
    | Received(Sku name, quantity) -> sprintf "+%d %s" quantity name
    | Shipped(Sku name, quantity) -> sprintf "-%d %s" quantity name
    | Counted(Sku name, quantity) -> sprintf "=%d %s" quantity name
