/// A test of xUnit 2 in a library that does not lie beside its framework.
module Apart.Tests

[<Xunit.Fact>]
let adds () = Xunit.Assert.Equal(2, 1 + 1)
