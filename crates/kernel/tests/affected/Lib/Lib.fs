namespace Lib

open System.Threading.Tasks

module Calc =
    let direct (x: int) : int = x + 1
    let viaClosure (x: int) : int = x + 2
    let inAsync (x: int) : int = x + 3
    let inTask (x: int) : int = x + 4
    let square (x: int) : int = x * x
    let inObject (x: int) : int = x + 5
    let inBase (x: int) : int = x + 9
    let generic (x: 'a) : 'a list = [ x ]
    let throughInline (x: int) : int = x + 6
    let inline inlined (x: int) : int = throughInline x
    let (|+|) (x: int) (y: int) : int = x * 100 + y
    let (|Big|Small|) (x: int) : Choice<unit, unit> = if x > 10 then Big else Small
    let makes (x: int) : int list = [ x; x ]
    let value : int list = makes 3
    let inSequence (x: int) : int = x + 7
    let onStart (x: int) : int = x + 8
    let partly (x: int) (y: int) : int = x - y
    let later (x: int) : int = x + 10
    let private hidden (x: int) : int = later x
    let throughPrivate (x: int) : int = hidden x
    let rec even (x: int) : bool = if x = 0 then true else odd (x - 1)
    and odd (x: int) : bool = if x = 0 then false else even (x - 1)

    module Nested =
        let deep (x: int) : int = Core.Base.low x

module Started =
    let private log = ResizeArray<int>()
    log.Add(Calc.onStart 1)
    let count () : int = log.[0]

type Maybe() =
    member _.Bind(x: int option, f: int -> int option) : int option = Option.bind f x
    member _.Return(x: int) : int option = Some x

type IShape =
    abstract Area: int

type Square(side: int) =
    interface IShape with
        member _.Area = Calc.square side

[<AbstractClass>]
type Animal() =
    abstract Legs: unit -> int
    member this.Shoes() : int = this.Legs() * 2

type Dog() =
    inherit Animal()
    override _.Legs() : int = Calc.inBase 1

type Money =
    { Amount: int }
    static member (+)(a: Money, b: Money) : Money = { Amount = a.Amount + b.Amount }
    override this.ToString() : string = string this.Amount + " EUR"

module Uses =
    let maybe = Maybe()
    let both (x: int option) (y: int option) : int option = maybe { let! a = x in let! b = y in return a + b }
    let asynchronous (x: int) : Async<int> = async { let! y = async { return Calc.inAsync x } in return y }
    let tasks (x: int) : Task<int> = task { let! y = Task.FromResult(Calc.inTask x) in return y }
    let sequence (x: int) : int seq = seq { yield Calc.inSequence x }
    let area (shape: IShape) : int = shape.Area
    let nameless (x: int) : IShape = { new IShape with member _.Area = Calc.inObject x }
    let shoes (animal: Animal) : int = animal.Shoes()
    let words (money: Money) : string = sprintf "%O" money
    let numbers (x: int) : int list = List.map (Calc.partly x) [ 1; 2 ]
