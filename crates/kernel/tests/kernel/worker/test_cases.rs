//! The cases of xUnit's tests after a save: those that only attributes say are kept from run to run, and all others are found anew.

use mainstay_model::{TestOutcome, TestSelection};

use super::saved_tests::{session_of_project, swapped};
use super::*;

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework><CopyLocalLockFileAssemblies>true</CopyLocalLockFileAssemblies></PropertyGroup>
  <PropertyGroup><SatelliteResourceLanguages>en</SatelliteResourceLanguages><OutputType>$OUTPUT</OutputType></PropertyGroup>
  <ItemGroup><Compile Include="Cases.fs" /></ItemGroup>
  <ItemGroup><PackageReference Include="$PACKAGE" Version="$VERSION" /></ItemGroup>
</Project>"#;

/// A version of xUnit, and what is written otherwise for it.
struct Framework {
    package: (&'static str, &'static str),
    output: &'static str,
    assemblies: [&'static str; 3],
    /// The attributes of the assembly, a source of data of one's own and a trait of one's own.
    own: &'static str,
    /// What only this version has, and what its tests come to before and after a save.
    more: &'static str,
    built: &'static [&'static str],
    saved: &'static [&'static str],
}

const XUNIT_2: Framework = Framework {
    package: ("xunit", "2.9.3"),
    output: "Library",
    assemblies: ["xunit.core", "xunit.assert", "xunit.abstractions"],
    own: "open Xunit.Sdk

module Assembly =
    [<assembly: CollectionBehavior(CollectionBehavior.CollectionPerClass, MaxParallelThreads = 4)>]
    do ()

type OwnDataAttribute() =
    inherit DataAttribute()
    override _.GetData(_: Reflection.MethodInfo) = Data.words () |> Seq.map (fun word -> [| box word |])

type KindDiscoverer() =
    interface ITraitDiscoverer with
        member _.GetTraits(_: Abstractions.IAttributeInfo) =
            seq { Collections.Generic.KeyValuePair(\"Kind\", Data.trait' ()) }

[<TraitDiscoverer(\"Cases.KindDiscoverer\", \"Cases\"); AttributeUsage(AttributeTargets.Method)>]
type KindAttribute() =
    inherit Attribute()
    interface ITraitAttribute
",
    more: "",
    built: &[],
    saved: &[],
};

const XUNIT_3: Framework = Framework {
    package: ("xunit.v3.mtp-off", "4.0.2"),
    output: "Exe",
    assemblies: ["xunit.v3.core", "xunit.v3.common", "xunit.v3.assert"],
    own: "open Xunit.Sdk
open Xunit.v3

module Assembly =
    [<assembly: Parallelization(Mode = ParallelMode.All, MaxThreads = 4)>]
    do ()

type OwnDataAttribute() =
    inherit DataAttribute()
    override _.SupportsDiscoveryEnumeration() = true
    override _.GetData(_: Reflection.MethodInfo, _: DisposalTracker) =
        let rows = [| for word in Data.words () -> TheoryDataRow(box word) :> ITheoryDataRow |]
        Threading.Tasks.ValueTask<Collections.Generic.IReadOnlyCollection<ITheoryDataRow>> rows

[<AttributeUsage(AttributeTargets.Method ||| AttributeTargets.Class)>]
type KindAttribute() =
    inherit Attribute()
    interface ITraitAttribute with
        member _.GetTraits() = [| Collections.Generic.KeyValuePair(\"Kind\", Data.trait' ()) |]

type AroundAttribute() =
    inherit BeforeAfterTestAttribute()
    let made = Data.trait' ()
    override _.Before(_: Reflection.MethodInfo, _: IXunitTest) =
        Assert.Equal(Data.trait' (), made)
",
    more: "
type ISpec =
    [<Theory; MemberData(\"numbers\", MemberType = typeof<Members.Marker>)>]
    abstract holds: x: int -> unit

type Spec() =
    interface ISpec with
        member _.holds(x: int) = Assert.True(x < 3)

module Surrounded =
    [<Fact; Around>]
    let plain () = ()
",
    built: &["+Spec.holds(x: 1)", "+Spec.holds(x: 2)", "+Surrounded.plain"],
    saved: &["+Spec.holds(x: 2)", "-Spec.holds(x: 3)", "-Spec.holds(x: 4)", "+Surrounded.plain"],
};

/// Each way in which code says what tests there are, and one class in which only attributes do.
const SOURCE: &str = "namespace Cases

open System
open Xunit

module Data =
    let numbers () = [ 1; 2 ]
    let words () = [ \"a\" ]
    let trait' () = \"old\"

//own

module Alone =
    let mutable private inside = 0
    let check () =
        let together = Threading.Interlocked.Increment &inside
        Threading.Thread.Sleep 100
        Threading.Interlocked.Decrement &inside |> ignore
        Assert.Equal(1, together)

module First =
    [<Fact>]
    let alone () = Alone.check ()

module Second =
    [<Fact>]
    let alone () = Alone.check ()

module Plain =
    let checked' (x: int) = x > 0
    [<Fact>]
    let fact () = Assert.True(checked' 1)
    [<Theory; InlineData 1; InlineData 2; Trait(\"Category\", \"rows\")>]
    let rows (x: int) = Assert.True(checked' x)

module Members =
    let numbers: seq<obj[]> = Seq.delay (fun () -> Data.numbers () |> Seq.map (fun one -> [| box one |]))
    type Marker() =
        static member numbers: seq<obj[]> = numbers
    [<Theory; MemberData \"numbers\">]
    let number (x: int) = Assert.True(x < 3)

type Money(text: string) =
    member _.Text = text
    override this.ToString() = this.Text
    static member op_Implicit(text: string) : Money = Money(text + Data.trait' ())

module Converted =
    [<Theory; InlineData \"5\">]
    let price (money: Money) = Assert.StartsWith(\"5\", money.Text)

[<AbstractClass>]
type Base() =
    [<Theory; MemberData(\"numbers\", MemberType = typeof<Members.Marker>)>]
    abstract inherited: int -> unit

type Derived() =
    inherit Base()
    override _.inherited(x: int) = Assert.True(x < 3)

module Own =
    [<Theory; OwnData>]
    let word (x: string) = Assert.NotNull x

module Kinds =
    [<Fact; Kind>]
    let marked () = ()
";

/// The name of each test, with its categories, and whether it passed.
async fn tested(session: &mut Session) -> Vec<String> {
    let run = session.test(&TestSelection::default()).await.run;
    let line = |test: &mainstay_model::TestResult| {
        let sign = if test.outcome == TestOutcome::Passed { '+' } else { '-' };
        let name = test.name.strip_prefix("Cases.").unwrap_or(&test.name);
        format!("{sign}{name} {}", test.categories.join(",")).trim_end().to_owned()
    };
    run.tests.iter().map(line).collect()
}

const BUILT: [&str; 12] = [
    "+Converted.price(money: 5old)",
    "+Derived.inherited(x: 1)",
    "+Derived.inherited(x: 2)",
    "+First.alone",
    "+Kinds.marked Kind=old",
    "+Members.number(x: 1)",
    "+Members.number(x: 2)",
    "+Own.word(x: \"a\")",
    "+Plain.fact",
    "+Plain.rows(x: 1) rows",
    "+Plain.rows(x: 2) rows",
    "+Second.alone",
];

/// The same after the save.
const SAVED: [&str; 15] = [
    "+Converted.price(money: 5new)",
    "+Derived.inherited(x: 2)",
    "-Derived.inherited(x: 3)",
    "-Derived.inherited(x: 4)",
    "+First.alone",
    "+Kinds.marked Kind=new",
    "+Members.number(x: 2)",
    "-Members.number(x: 3)",
    "-Members.number(x: 4)",
    "+Own.word(x: \"b\")",
    "+Own.word(x: \"c\")",
    "-Plain.fact",
    "-Plain.rows(x: 1) rows",
    "+Plain.rows(x: 2) rows",
    "+Second.alone",
];

fn sorted<T: AsRef<str>>(mut lines: Vec<T>) -> Vec<T> {
    lines.sort_by(|a, b| a.as_ref()[1..].cmp(&b.as_ref()[1..]));
    lines
}

async fn session_of(framework: &Framework, source: &str) -> (TempDir, Session) {
    let Framework { package: (package, version), output, assemblies, .. } = framework;
    let project =
        PROJECT.replace("$PACKAGE", package).replace("$VERSION", version).replace("$OUTPUT", output);
    session_of_project("Cases", &project, &[("Cases.fs", source)], assemblies).await
}

async fn what_code_says_is_asked_for_each_run(framework: &Framework) {
    let source = SOURCE.replace("//own", framework.own) + framework.more;
    let (folder, mut session) = session_of(framework, &source).await;
    for _ in 0..2 {
        assert_eq!(sorted(tested(&mut session).await), sorted([&BUILT, framework.built].concat()));
    }

    let saved = source
        .replace("[ 1; 2 ]", "[ 2; 3; 4 ]")
        .replace("[ \"a\" ]", "[ \"b\"; \"c\" ]")
        .replace("\"old\"", "\"new\"")
        .replace("x > 0", "x > 1");
    let swap = swapped(&session, &folder, "Cases.fs", &saved).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(sorted(tested(&mut session).await), sorted([&SAVED, framework.saved].concat()));

    let swap = swapped(&session, &folder, "Cases.fs", &saved.replace("let fact ()", "let renamed ()")).await;
    assert!(swap.is_applied(), "{swap:?}");
    let renamed = tested(&mut session).await;
    assert!(renamed.contains(&"-Plain.renamed".to_owned()), "{renamed:?}");
    assert!(!renamed.contains(&"-Plain.fact".to_owned()), "{renamed:?}");
}

#[tokio::test]
async fn what_code_says_of_tests_of_xunit_2_is_asked_for_each_run() {
    what_code_says_is_asked_for_each_run(&XUNIT_2).await;
}

#[tokio::test]
async fn what_code_says_of_tests_of_xunit_3_is_asked_for_each_run() {
    what_code_says_is_asked_for_each_run(&XUNIT_3).await;
}

/// A collection of xUnit 3 whose definition has a trait that code says, and a test in it of which only attributes tell.
const COLLECTION: &str = "namespace Cases

open System
open Xunit
open Xunit.v3

module Data =
    let trait' () = \"old\"

type KindAttribute() =
    inherit Attribute()
    interface ITraitAttribute with
        member _.GetTraits() = [| Collections.Generic.KeyValuePair(\"Kind\", Data.trait' ()) |]

[<CollectionDefinition \"database\"; Kind>]
type Database() = class end

[<Collection \"database\">]
type InDatabase() =
    [<Fact>]
    member _.plain() = ()
";

#[tokio::test]
async fn what_code_says_of_a_collection_of_xunit_3_is_asked_for_each_run() {
    let (folder, mut session) = session_of(&XUNIT_3, COLLECTION).await;
    assert_eq!(tested(&mut session).await, ["+InDatabase.plain Kind=old"]);
    let saved = COLLECTION.replace("\"old\"", "\"new\"");
    let swap = swapped(&session, &folder, "Cases.fs", &saved).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(tested(&mut session).await, ["+InDatabase.plain Kind=new"]);
}
