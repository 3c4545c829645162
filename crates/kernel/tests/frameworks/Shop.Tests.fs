// Tests as people write them into projects, compiled.
module Shop.Tests

open System
open System.Threading.Tasks
open Expecto

let mutable private log: string list = []
let private note text = log <- log @ [ text ]

type Store() =
    do note "store made"
    member _.Price = 4
    interface IDisposable with
        member _.Dispose() = note "store ended"

type Prices(store: Store, output: Xunit.Abstractions.ITestOutputHelper) =
    let mutable uses = 0
    interface Xunit.IClassFixture<Store>
    interface IDisposable with
        member _.Dispose() = note "prices ended"

    [<Xunit.Fact>]
    member _.``are made anew for each test``() =
        uses <- uses + 1
        output.WriteLine "told by the helper"
        Xunit.Assert.Equal(1, uses)

    [<Xunit.Fact; Xunit.Trait("Category", "slow"); Xunit.Trait("area", "prices")>]
    member _.``are those of the store``() =
        uses <- uses + 1
        Xunit.Assert.Equal(1, uses)
        Xunit.Assert.Equal(5, store.Price)

    static member Rows: seq<obj[]> = seq { yield [| box 1; box 2m |]; yield [| box 2; box 4m |] }

    [<Xunit.Theory; Xunit.InlineData(1, 3); Xunit.InlineData(2, 4); Xunit.MemberData("Rows")>]
    member _.doubled(given: int, expected: decimal) = Xunit.Assert.Equal(expected, decimal given * 2m)

    [<Xunit.Fact(Skip = "not sold yet")>]
    member _.later() = failwith "it must not run"

[<Xunit.CollectionDefinition "one till">]
type OneTill() =
    interface Xunit.ICollectionFixture<Store>

[<Xunit.Collection "one till">]
type Till(store: Store) =
    interface Xunit.IAsyncLifetime with
        member _.InitializeAsync() = note "till opened"; Task.CompletedTask
        member _.DisposeAsync() = note "till closed"; Task.CompletedTask

    [<Xunit.Fact>]
    member _.counts() : Task = Task.Delay(1).ContinueWith(fun (_: Task) -> Xunit.Assert.Equal(4, store.Price))

    [<Xunit.Theory>]
    member _.nothing(given: int) = ignore given

/// What an extension of xUnit brings.
[<AttributeUsage(AttributeTargets.Method)>]
type PropertyAttribute() =
    inherit Xunit.FactAttribute()

type Laws() =
    [<Property>]
    member _.``sums commute``(a: int, b: int) = a + b = b + a

    [<Property>]
    member _.``nothing is lost``() = fun (price: int) -> price = price

type Unmade(number: int) =
    [<Xunit.Fact>]
    member _.``has nothing to be made of``() = ignore number

[<Microsoft.VisualStudio.TestTools.UnitTesting.TestClass>]
type Receipts() =
    let mutable isReady = false

    [<Microsoft.VisualStudio.TestTools.UnitTesting.ClassInitialize>]
    static member Open(_: Microsoft.VisualStudio.TestTools.UnitTesting.TestContext) = note "receipts opened"

    [<Microsoft.VisualStudio.TestTools.UnitTesting.ClassCleanup>]
    static member Close() = note "receipts closed"

    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestInitialize>]
    member _.Prepare() = isReady <- true

    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod; Microsoft.VisualStudio.TestTools.UnitTesting.TestCategory "paper">]
    member _.are_ready() = Microsoft.VisualStudio.TestTools.UnitTesting.Assert.AreEqual(true, isReady)

    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod>]
    [<Microsoft.VisualStudio.TestTools.UnitTesting.DataRow(1, 2); Microsoft.VisualStudio.TestTools.UnitTesting.DataRow(2, 5, DisplayName = "two")>]
    member _.add(given: int, expected: int) = Microsoft.VisualStudio.TestTools.UnitTesting.Assert.AreEqual(expected, given + given)

    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod; Microsoft.VisualStudio.TestTools.UnitTesting.Ignore "no paper">]
    member _.printed() = failwith "it must not run"

    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod>]
    member _.undecided() = Microsoft.VisualStudio.TestTools.UnitTesting.Assert.Inconclusive "who knows"

type Unmarked() =
    [<Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod>]
    member _.is_no_test() = failwith "its class is not marked"

[<Tests>]
let orders =
    testList "orders" [
        testCase "add up" (fun () -> Expect.equal (1 + 1) 2 "the sum")
        testCase "cost something" (fun () -> Expect.equal 0 7 "the price")
        testCaseAsync "come later" (async { do! Async.Sleep 1 })
        ptestCase "are thought of" (fun () -> failwith "it must not run")
        testSequenced (testList "in a row" [ testProperty "hold" (fun config -> async { Expect.equal config.maxTest 200 "the count" }) ])
    ]

[<PTests>]
let someday = testList "someday" [ testCase "deliver" (fun () -> failwith "it must not run") ]

/// What was noted up to now.
let noted () = String.concat "; " log
