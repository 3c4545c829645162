/// Tests of NUnit, of which one does not end by itself.
module Hanging.Tests

open System.Threading
open NUnit.Framework

[<Test>]
let ``adds before`` () = Assert.Pass()

[<Test>]
let hangs () = Thread.Sleep Timeout.Infinite

[<Test>]
let ``subtracts after`` () = Assert.Pass()
