/// The stock room: what inventory.fsx takes in with `#load`. A module like any in a project.
module Examples.Stock

type Sku = Sku of string

type Movement =
    | Received of Sku * quantity: int
    | Shipped of Sku * quantity: int
    | Counted of Sku * quantity: int

type Level = { OnHand: int; Movements: int }

type Shelf = Map<Sku, Level>

let empty: Shelf = Map.empty

let private level sku (shelf: Shelf) =
    shelf |> Map.tryFind sku |> Option.defaultValue { OnHand = 0; Movements = 0 }

let onHand sku shelf = (level sku shelf).OnHand

/// Applies a movement, or says why it cannot have happened.
let apply movement (shelf: Shelf) =
    let change sku update =
        let before = level sku shelf
        shelf |> Map.add sku { OnHand = update before.OnHand; Movements = before.Movements + 1 }
    match movement with
    | Received(sku, quantity) -> Choice1Of2(change sku (fun n -> n + quantity))
    | Counted(sku, quantity) -> Choice1Of2(change sku (fun _ -> quantity))
    | Shipped(sku, quantity) when quantity <= onHand sku shelf -> Choice1Of2(change sku (fun n -> n - quantity))
    | Shipped(Sku name, quantity) -> Choice2Of2(sprintf "cannot ship %d of %s, only %d there" quantity name (onHand (Sku name) shelf))
