/// Tests of NUnit, of which one waits until it is answered.
module Asking.Tests

open NUnit.Framework

[<Test>]
let ``adds before`` () = Assert.Pass()

[<Test>]
let asks () = System.Console.In.ReadLine() |> ignore

[<Test>]
let ``fails after`` () = Assert.Fail "it is wrong"
