// A stand-in for xUnit 2: the names and shapes that a runner sees, and no more. In the real one the helper for output and the assertions are
// in assemblies of their own.
namespace Xunit.Abstractions

type ITestOutputHelper =
    abstract WriteLine: message: string -> unit
    abstract WriteLine: format: string * args: obj[] -> unit

namespace Xunit.Sdk

open System
open System.Reflection

[<AbstractClass; AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type DataAttribute() =
    inherit Attribute()
    member val Skip: string = null with get, set
    abstract GetData: testMethod: MethodInfo -> seq<obj[]>

type XunitException(message: string) =
    inherit Exception(message)

type EqualException(expected: obj, actual: obj) =
    inherit XunitException(sprintf "Assert.Equal() Failure\nExpected: %O\nActual:   %O" expected actual)
    member _.Expected = string expected
    member _.Actual = string actual

namespace Xunit

open System
open System.Threading.Tasks
open Xunit.Sdk

[<AttributeUsage(AttributeTargets.Method)>]
type FactAttribute() =
    inherit Attribute()
    member val DisplayName: string = null with get, set
    member val Skip: string = null with get, set
    member val Timeout = 0 with get, set

type TheoryAttribute() =
    inherit FactAttribute()

[<AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type InlineDataAttribute([<ParamArray>] data: obj[]) =
    inherit DataAttribute()
    override _.GetData _ = Seq.singleton data

[<AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type MemberDataAttribute(memberName: string, [<ParamArray>] parameters: obj[]) =
    inherit DataAttribute()
    member _.MemberName = memberName
    member _.Parameters = parameters
    member val MemberType: Type = null with get, set
    override _.GetData _ = failwith "this stand-in finds no members"

[<AttributeUsage(AttributeTargets.Method, AllowMultiple = true)>]
type ClassDataAttribute(kind: Type) =
    inherit DataAttribute()
    member _.Class = kind
    override _.GetData _ = failwith "this stand-in makes nothing"

[<AttributeUsage(AttributeTargets.All, AllowMultiple = true)>]
type TraitAttribute(name: string, value: string) =
    inherit Attribute()
    member _.Name = name
    member _.Value = value

type IClassFixture<'T> =
    interface
    end

type ICollectionFixture<'T> =
    interface
    end

[<AttributeUsage(AttributeTargets.Class)>]
type CollectionAttribute(name: string) =
    inherit Attribute()
    member _.Name = name

[<AttributeUsage(AttributeTargets.Class)>]
type CollectionDefinitionAttribute(name: string) =
    inherit Attribute()
    member _.Name = name

type IAsyncLifetime =
    abstract InitializeAsync: unit -> Task
    abstract DisposeAsync: unit -> Task

type Assert =
    static member Equal(expected: 'T, actual: 'T) =
        if not (Object.Equals(expected, actual)) then raise (EqualException(box expected, box actual))
