// Tests of the project, for a session that has it: its namespace is open there. `NUnit` must be referred to before.
open NUnit.Framework
open Cart

let items = [ { Name = "tea"; Price = 250 }; { Name = "cake"; Price = 750 } ]

[<Test>]
let ``a cart costs what its items cost`` () = Assert.AreEqual(1000, total items)

[<Test>]
let ``a discount is taken off once`` () = Assert.AreEqual(900, discounted 10 items)
