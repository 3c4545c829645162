// A tiny stock exchange: mutable order books inside agents, observers outside. Shows
// MailboxProcessor with replies, Event and its combinators, a hand-written IObservable, and
// disposal of subscriptions.
//
// The output is deterministic although agents run on the thread pool: every command is answered
// before the next is sent, and events are raised before the answer.

open System
open System.Collections.Generic

type Side =
    | Buy
    | Sell

type Order = { Id: int; Trader: string; Side: Side; Cents: int; mutable Quantity: int }

type Trade = { Symbol: string; Buyer: string; Seller: string; Price: int; Volume: int }

// ---- The book: plain mutable state, owned by one agent ---------------------------------------

type Book(symbol: string) =
    let bids = List<Order>()
    let asks = List<Order>()
    let traded = Event<Trade>()
    let rejected = Event<EventHandler<string>, string>()

    /// Best price first; among equals the order that came first.
    let insert (side: List<Order>) (better: Order -> Order -> bool) order =
        let mutable at = 0
        while at < side.Count && not (better order side.[at]) do
            at <- at + 1
        side.Insert(at, order)

    let settle order (opposite: Order) =
        let volume = min order.Quantity opposite.Quantity
        order.Quantity <- order.Quantity - volume
        opposite.Quantity <- opposite.Quantity - volume
        let buyer, seller = if order.Side = Buy then order, opposite else opposite, order
        traded.Trigger { Symbol = symbol; Buyer = buyer.Trader; Seller = seller.Trader; Price = opposite.Cents; Volume = volume }

    let crosses order (opposite: Order) =
        match order.Side with
        | Buy -> order.Cents >= opposite.Cents
        | Sell -> order.Cents <= opposite.Cents

    [<CLIEvent>]
    member __.Traded = traded.Publish

    /// In the shape other .NET languages subscribe to.
    [<CLIEvent>]
    member __.Rejected = rejected.Publish

    member this.Submit(order: Order) =
        if order.Quantity <= 0 || order.Cents <= 0 then
            rejected.Trigger(this, sprintf "order %d of %s makes no sense" order.Id order.Trader)
        else
            let opposite = if order.Side = Buy then asks else bids
            while order.Quantity > 0 && opposite.Count > 0 && crosses order opposite.[0] do
                settle order opposite.[0]
                if opposite.[0].Quantity = 0 then opposite.RemoveAt 0
            if order.Quantity > 0 then
                match order.Side with
                | Buy -> insert bids (fun a b -> a.Cents > b.Cents) order
                | Sell -> insert asks (fun a b -> a.Cents < b.Cents) order

    member __.Depth = Seq.sumBy (fun order -> order.Quantity) bids, Seq.sumBy (fun order -> order.Quantity) asks

// ---- The agent -------------------------------------------------------------------------------

type Command =
    | Place of trader: string * side: Side * cents: int * quantity: int * AsyncReplyChannel<int>
    | Depth of AsyncReplyChannel<int * int>
    | Close of AsyncReplyChannel<int>

let startMarket (book: Book) =
    MailboxProcessor.Start(fun inbox ->
        let rec loop nextId =
            async {
                match! inbox.Receive() with
                | Place(trader, side, cents, quantity, reply) ->
                    book.Submit { Id = nextId; Trader = trader; Side = side; Cents = cents; Quantity = quantity }
                    reply.Reply nextId
                    return! loop (nextId + 1)
                | Depth reply ->
                    reply.Reply book.Depth
                    return! loop nextId
                | Close reply -> reply.Reply(nextId - 1)
            }
        loop 1)

// ---- Observers -------------------------------------------------------------------------------

/// A subject written by hand: what `Event` does, with completion.
type Feed<'T>() =
    let observers = List<IObserver<'T>>()

    member __.Publish value = for observer in List.ofSeq observers do observer.OnNext value

    member __.Complete() =
        for observer in List.ofSeq observers do observer.OnCompleted()
        observers.Clear()

    interface IObservable<'T> with
        member __.Subscribe observer =
            observers.Add observer
            { new IDisposable with
                member __.Dispose() = observers.Remove observer |> ignore }

let observer name (show: 'T -> string) =
    { new IObserver<'T> with
        member __.OnNext value = printfn "  [%s] %s" name (show value)
        member __.OnError problem = printfn "  [%s] failed: %s" name problem.Message
        member __.OnCompleted() = printfn "  [%s] done" name }

let showTrade trade = sprintf "%s %d @ %d, %s from %s" trade.Symbol trade.Volume trade.Price trade.Buyer trade.Seller

let book = Book "FSX"
let market = startMarket book
let feed = Feed<Trade>()
let mutable turnover = 0L

let ticker = book.Traded.Subscribe(fun trade -> printfn "  [ticker] %s" (showTrade trade))
book.Traded.Add(fun trade -> turnover <- turnover + int64 trade.Price * int64 trade.Volume)
book.Traded.Add feed.Publish
book.Rejected.AddHandler(EventHandler<string>(fun _ reason -> printfn "  [compliance] %s" reason))

// Combinators build new streams out of old ones; nothing is stored that is not asked for.
let large, small = book.Traded |> Observable.partition (fun trade -> trade.Volume >= 50)

large |> Observable.add (fun trade -> printfn "  [desk] block trade of %d" trade.Volume)

small
|> Observable.scan (fun (count, volume) trade -> count + 1, volume + trade.Volume) (0, 0)
|> Observable.add (fun (count, volume) -> printfn "  [retail] %d small trades, %d shares" count volume)

book.Traded
|> Event.map (fun trade -> trade.Price)
|> Event.pairwise
|> Event.choose (fun (before, now) -> if now = before then None else Some(now - before))
|> Event.add (fun change -> printfn "  [chart] %+d" change)

let audit = (feed :> IObservable<Trade>).Subscribe(observer "audit" (fun trade -> sprintf "%d cents" (trade.Price * trade.Volume)))

// ---- A day of trading ------------------------------------------------------------------------

let place trader side cents quantity =
    printfn "%s %A %d @ %d" trader side quantity cents
    let id = market.PostAndReply(fun reply -> Place(trader, side, cents, quantity, reply))
    let bids, asks = market.PostAndReply Depth
    printfn "  order %d; book: %d to buy, %d to sell" id bids asks

place "ann" Sell 1010 100
place "bob" Sell 1005 30
place "cyd" Buy 1000 40
place "dan" Buy 1010 60
place "eve" Sell 990 0
place "eve" Sell 990 10

printfn "the ticker is switched off"
ticker.Dispose()

place "fay" Buy 1020 200
audit.Dispose()
place "gus" Sell 1015 25

feed.Complete()
let second = (feed :> IObservable<Trade>).Subscribe(observer "latecomer" showTrade)
place "hal" Sell 1020 5
feed.Complete()
second.Dispose()

// ---- Many writers, one owner -----------------------------------------------------------------

// A hundred concurrent clients; the agent handles one message at a time, so nothing gets lost.
let counter =
    MailboxProcessor.Start(fun inbox ->
        let seen = Dictionary<string, int>()
        let rec loop () =
            async {
                let! key, (reply: AsyncReplyChannel<int * int> option) = inbox.Receive()
                match reply with
                | Some channel -> channel.Reply(seen.Count, Seq.sum seen.Values)
                | None -> seen.[key] <- 1 + (match seen.TryGetValue key with | true, n -> n | _ -> 0)
                return! loop ()
            }
        loop ())

[ for client in 1..100 -> async {
    for _ in 1..client do
        counter.Post(sprintf "client-%d" (client % 10), None) } ]
|> Async.Parallel
|> Async.Ignore
|> Async.RunSynchronously

let keys, total = counter.PostAndReply(fun reply -> "", Some reply)

printfn "counted %d messages under %d keys" total keys
printfn "closed after %d orders, turnover %d cents" (market.PostAndReply Close) turnover
