// A stand-in for MSTest: the names and shapes that a runner sees, and no more.
namespace Microsoft.VisualStudio.TestTools.UnitTesting

open System

type AssertFailedException(message: string) =
    inherit Exception(message)

type AssertInconclusiveException(message: string) =
    inherit Exception(message)

[<AbstractClass>]
type TestContext() =
    abstract WriteLine: message: string -> unit

[<AttributeUsage(AttributeTargets.Class)>]
type TestClassAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method)>]
type TestMethodAttribute(displayName: string) =
    inherit Attribute()
    new() = TestMethodAttribute null
    member _.DisplayName = displayName

[<AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type DataRowAttribute(data1: obj, [<ParamArray>] moreData: obj[]) =
    inherit Attribute()
    new(data1: obj) = DataRowAttribute(data1, [||])
    member _.Data = Array.append [| data1 |] moreData
    member val DisplayName: string = null with get, set

[<AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type DynamicDataAttribute(dynamicDataSourceName: string) =
    inherit Attribute()
    member _.Name = dynamicDataSourceName

[<AttributeUsage(AttributeTargets.Method)>]
type TestInitializeAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method)>]
type TestCleanupAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method)>]
type ClassInitializeAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method)>]
type ClassCleanupAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.All)>]
type IgnoreAttribute(message: string) =
    inherit Attribute()
    new() = IgnoreAttribute ""
    member _.IgnoreMessage = message

[<AttributeUsage(AttributeTargets.All, AllowMultiple = true)>]
type TestCategoryAttribute(testCategory: string) =
    inherit Attribute()
    member _.TestCategories = [ testCategory ]

[<AttributeUsage(AttributeTargets.Method)>]
type TimeoutAttribute(timeout: int) =
    inherit Attribute()
    member _.Timeout = timeout

[<AttributeUsage(AttributeTargets.Method)>]
type ExpectedExceptionAttribute(exceptionType: Type) =
    inherit Attribute()
    member _.ExceptionType = exceptionType

type Assert =
    static member AreEqual(expected: 'T, actual: 'T) =
        if not (Object.Equals(expected, actual)) then
            raise (AssertFailedException(sprintf "Assert.AreEqual failed. Expected:<%O>. Actual:<%O>. " expected actual))
    static member Inconclusive(message: string) : unit = raise (AssertInconclusiveException("Assert.Inconclusive failed. " + message))
