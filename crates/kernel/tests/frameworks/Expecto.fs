// A stand-in for Expecto: the names and shapes that a runner sees, and no more.
namespace Expecto

open System
open System.Threading

[<AttributeUsage(AttributeTargets.Method ||| AttributeTargets.Property ||| AttributeTargets.Field)>]
type TestsAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method ||| AttributeTargets.Property ||| AttributeTargets.Field)>]
type PTestsAttribute() =
    inherit Attribute()

[<AttributeUsage(AttributeTargets.Method ||| AttributeTargets.Property ||| AttributeTargets.Field)>]
type FTestsAttribute() =
    inherit Attribute()

type AssertException(message: string) =
    inherit Exception(message)

type IgnoreException(message: string) =
    inherit Exception(message)

type FsCheckConfig =
    { maxTest: int }
    static member defaultConfig = { maxTest = 200 }

type TestCode =
    | Sync of stest: (unit -> unit)
    | SyncWithCancel of stest: (CancellationToken -> unit)
    | Async of atest: Async<unit>
    | AsyncFsCheck of testConfig: FsCheckConfig option * stressConfig: FsCheckConfig option * test: (FsCheckConfig -> Async<unit>)

type FocusState =
    | Normal
    | Pending
    | Focused

type SequenceMethod =
    | Synchronous
    | SynchronousGroup of string
    | InParallel

type Test =
    | TestCase of code: TestCode * state: FocusState
    | TestList of tests: Test list * state: FocusState
    | TestLabel of label: string * test: Test * state: FocusState
    | Sequenced of SequenceMethod * Test

[<AutoOpen>]
module Tests =
    let testList name tests = TestLabel(name, TestList(tests, Normal), Normal)
    let ptestList name tests = TestLabel(name, TestList(tests, Pending), Pending)
    let testCase name test = TestLabel(name, TestCase(Sync test, Normal), Normal)
    let ptestCase name test = TestLabel(name, TestCase(Sync test, Pending), Pending)
    let ftestCase name test = TestLabel(name, TestCase(Sync test, Focused), Focused)
    let testCaseAsync name test = TestLabel(name, TestCase(Async test, Normal), Normal)
    let testCaseWithCancel name test = TestLabel(name, TestCase(SyncWithCancel test, Normal), Normal)
    let testProperty name test = TestLabel(name, TestCase(AsyncFsCheck(None, None, test), Normal), Normal)
    let testSequenced test = Sequenced(Synchronous, test)

module Expect =
    let equal (actual: 'a) (expected: 'a) (message: string) =
        if actual <> expected then raise (AssertException(sprintf "%s.\n  expected: %A\n  actual: %A" message expected actual))
