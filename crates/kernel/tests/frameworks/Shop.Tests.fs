// Tests of MSTest as people write them into projects, compiled.
module Shop.Tests

open Microsoft.VisualStudio.TestTools.UnitTesting

let mutable private log: string list = []
let private note text = log <- log @ [ text ]

[<TestClass>]
type Receipts() =
    let mutable isReady = false

    [<ClassInitialize>]
    static member Open(_: TestContext) = note "receipts opened"

    [<ClassCleanup>]
    static member Close() = note "receipts closed"

    [<TestInitialize>]
    member _.Prepare() = isReady <- true

    [<TestMethod; TestCategory "paper">]
    member _.are_ready() = Assert.AreEqual(true, isReady)

    [<TestMethod>]
    [<DataRow(1, 2); DataRow(2, 5, DisplayName = "two")>]
    member _.add(given: int, expected: int) = Assert.AreEqual(expected, given + given)

    [<TestMethod; Ignore "no paper">]
    member _.printed() = failwith "it must not run"

    [<TestMethod>]
    member _.undecided() = Assert.Inconclusive "who knows"

type Unmarked() =
    [<TestMethod>]
    member _.is_no_test() = failwith "its class is not marked"

/// What was noted up to now.
let noted () = String.concat "; " log
