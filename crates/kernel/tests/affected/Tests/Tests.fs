module Lib.Tests

open Xunit
open Lib

[<Fact>]
let direct () = Assert.Equal(2, Calc.direct 1)
[<Fact>]
let closure () = Assert.Equal<int list>([ 3 ], List.map (fun x -> Calc.viaClosure x) [ 1 ])
[<Fact>]
let asynchronous () = Assert.Equal(4, Async.RunSynchronously(Uses.asynchronous 1))
[<Fact>]
let tasks () = task { let! x = Uses.tasks 1 in Assert.Equal(5, x) }
[<Fact>]
let sequence () = Assert.Equal<int list>([ 8 ], List.ofSeq (Uses.sequence 1))
[<Fact>]
let builder () = Assert.Equal(Some 3, Uses.both (Some 1) (Some 2))
[<Fact>]
let ``interface`` () = Assert.Equal(4, Uses.area (Square 2))
[<Fact>]
let expression () = Assert.Equal(6, Uses.area (Uses.nameless 1))
[<Fact>]
let inherited () = Assert.Equal(20, Uses.shoes (Dog()))
[<Fact>]
let generic () = Assert.Equal<string list>([ "a" ], Calc.generic "a")
[<Fact>]
let inlined () = Assert.Equal(7, Calc.inlined 1)
[<Fact>]
let operator () = Assert.Equal(102, Calc.(|+|) 1 2)
[<Fact>]
let pattern () = match 11 with Calc.Big -> () | Calc.Small -> failwith "small"
[<Fact>]
let value () = Assert.Equal<int list>([ 3; 3 ], Calc.value)
[<Fact>]
let started () = Assert.Equal(9, Started.count ())
[<Fact>]
let nested () = Assert.Equal(2, Calc.Nested.deep 1)
[<Fact>]
let applied () = Assert.Equal<int list>([ 4; 3 ], Uses.numbers 5)
[<Fact>]
let ``private`` () = Assert.Equal(11, Calc.throughPrivate 1)
[<Fact>]
let recursive () = Assert.True(Calc.even 4)
[<Fact>]
let plus () = Assert.Equal({ Amount = 3 }, { Amount = 1 } + { Amount = 2 })
[<Fact>]
let words () = Assert.Equal("1 EUR", Uses.words { Amount = 1 })

let rows () = [ [| box (Calc.direct 1) |] ]

[<Theory; MemberData(nameof rows)>]
let row (x: int) = Assert.Equal(2, x)

type Fixture() =
    member val Size = Calc.square 3

type WithFixture(fixture: Fixture) =
    interface IClassFixture<Fixture>
    [<Fact>]
    member _.Uses() = Assert.Equal(9, fixture.Size)

type WithConstructor() =
    let size = Calc.later 1
    [<Fact>]
    member _.Uses() = Assert.Equal(11, size)
    [<Fact; Trait("Category", "integration")>]
    member _.Slowly() = Assert.Equal(2, Calc.direct 1)

let helper (x: int) = Calc.direct x

open Expecto

[<Tests>]
let all =
    testList "expecto" [
        testCase "direct" (fun () -> Expect.equal (helper 1) 2 "")
        testCase "square" (fun () -> Expect.equal (Calc.square 2) 4 "")
        testCaseAsync "asynchronous" (async { let! x = Uses.asynchronous 1 in Expect.equal x 4 "" })
        testList "made" [ for x in [ 1; 2 ] -> testCase (string x) (fun () -> Expect.equal (Calc.later x) (x + 10) "") ]
    ]

let inner = testList "inner" [ testCase "one" (fun () -> Expect.equal 1 1 "") ]

[<Tests>]
let outer = testList "outer" [ inner ]
