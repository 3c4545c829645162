//! Tests that are saved while the session runs: they run at once, by the engine of their framework, wherever that is the same as after a build.
//! What a build's tests are called, where they stand and that they go is held by `live_tests` of the command line.

use std::fs;

use mainstay_kernel::{Project, ShadowCopy, StartupContext};
use mainstay_model::{LoadedProject, Swap, TestOutcome, TestSelection};

use super::swapping::{build, codes};
use super::*;

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework><OutputType>Exe</OutputType></PropertyGroup>
  <PropertyGroup><SatelliteResourceLanguages>en</SatelliteResourceLanguages></PropertyGroup>
  <ItemGroup><Compile Include="Mixed.fs" /></ItemGroup>
  <ItemGroup>
    <PackageReference Include="xunit.v3" Version="4.0.2" />
    <PackageReference Include="FsCheck.Xunit.v3" Version="3.6.0" />
    <PackageReference Include="NUnit" Version="5.0.0" />
  </ItemGroup>
</Project>"#;

const SOURCE: &str = "namespace Mixed

open Xunit
open NUnit.Framework

module Facts =
    [<Fact>]
    let built () = ()
    let rows = [ [| box 1 |] ]
    //facts

module Nu =
    [<Test>]
    let built () = ()
    //nu

[<Category \"slow\">]
module Marked =
    [<Test>]
    let built () = ()
    //marked

module Around =
    [<SetUp>]
    let before () = ()
    [<Test>]
    let built () = ()
    //around

module Own =
    type TestAttribute() =
        inherit System.Attribute()
    //own

module Strangers =
    open Own
    [<Test>]
    let built () = ()
    //strangers
";

/// The tests that run then and did not before, each with whether it passed; else the code of the reason why nothing is put in.
type Expected = Result<&'static [(&'static str, bool)], &'static str>;

/// What is saved in the place of a comment, and what comes of it.
const SAVES: &[(&str, &str, Expected)] = &[
    ("facts", "[<Fact>]\n    let fresh () = failwith \"red\"", Ok(&[("Mixed.Facts.fresh", false)])),
    (
        "facts",
        "[<FsCheck.Xunit.Property>]\n    let commutes (x: int) (y: int) = x + y = y + x",
        Ok(&[("Mixed.Facts.commutes", true)]),
    ),
    (
        "nu",
        "[<TestCase(1); TestCase(2)>]\n    let fresh (x: int) = Assert.That(x, Is.EqualTo 1)",
        Ok(&[("Mixed.Nu.fresh(1)", true), ("Mixed.Nu.fresh(2)", false)]),
    ),
    ("facts", "[<Theory; MemberData \"rows\">]\n    let many (x: int) = ()", Err("attribute")),
    ("marked", "[<Test>]\n    let fresh () = ()", Err("attribute")),
    ("around", "[<Test>]\n    let fresh () = ()", Err("attribute")),
    ("strangers", "[<Test>]\n    let fresh () = ()", Err("attribute")),
];

/// A session of the project with this source, and its folder.
async fn session_of(text: &str) -> (TempDir, Session) {
    let others =
        ["xunit.v3.core", "xunit.v3.common", "xunit.v3.assert", "FsCheck.Xunit.v3", "nunit.framework"];
    session_of_project("Mixed", PROJECT, &[("Mixed.fs", text)], &others).await
}

/// A session of a project that has these sources, and that refers to these assemblies of its build; and its folder.
pub(super) async fn session_of_project(
    name: &str,
    project: &str,
    sources: &[(&str, &str)],
    others: &[&str],
) -> (TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    let project_file = folder.path().join(format!("{name}.fsproj"));
    fs::write(&project_file, project).unwrap();
    for (file, text) in sources {
        fs::write(folder.path().join(file), text).unwrap();
    }
    build(folder.path());
    let copy = |name: &&str| {
        let path = folder.path().join(format!("bin/Debug/net10.0/{name}.dll"));
        ShadowCopy { origin: path.clone(), copy: path }
    };
    let known = LoadedProject {
        path: project_file.display().to_string(),
        sources: sources.iter().map(|(file, _)| folder.path().join(file).display().to_string()).collect(),
        ..LoadedProject::default()
    };
    let own = vec![copy(&name)];
    let project = Project { known, own, others: others.iter().map(copy).collect(), ..Project::default() };
    let beginning = StartupContext { project: Some(project), ..StartupContext::in_folder(folder.path()) };
    let session = Session::begin(beginning, Vec::new()).await;
    (folder, session)
}

/// Saves a source of the project in a folder, and has the session put it in.
pub(super) async fn swapped(session: &Session, folder: &TempDir, file: &str, text: &str) -> Swap {
    let source = folder.path().join(file);
    fs::write(&source, text).unwrap();
    let files = vec![source.display().to_string()];
    soon(session.worker.runner.kernel().unwrap().swap(files)).await.unwrap().unwrap()
}

#[tokio::test]
async fn tests_run_once_they_are_saved_by_the_engines_of_their_frameworks() {
    let (folder, mut session) = session_of(SOURCE).await;
    let built = session.test(&TestSelection::default()).await.run;
    let there: Vec<_> = built.tests.iter().map(|test| test.name.clone()).collect();
    assert_eq!(there.len(), 4, "{built:?}");
    let mut wrong = Vec::new();
    for (place, text, expected) in SAVES {
        let swap = swapped(&session, &folder, "Mixed.fs", &SOURCE.replace(&format!("//{place}"), text)).await;
        let run = session.test(&TestSelection::default()).await.run;
        let mut news: Vec<_> = run
            .tests
            .iter()
            .filter(|test| !there.contains(&test.name))
            .map(|test| (test.name.as_str(), test.outcome == TestOutcome::Passed))
            .collect();
        news.sort_unstable();
        let is_right = match expected {
            Ok(tests) => swap.is_applied() && news == *tests,
            Err(code) => codes(&swap) == [*code] && news.is_empty(),
        };
        if !is_right || run.tests.len() != there.len() + news.len() {
            wrong.push(format!("{place}: {text}\n  {news:?} {swap:?} {:?}", run.notes));
        }
        let back = swapped(&session, &folder, "Mixed.fs", SOURCE).await;
        assert!(back.is_applied(), "{back:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_is_set_up_for_all_tests_of_an_assembly_leaves_new_ones_to_a_build() {
    for (mark, text) in [
        (
            "//own",
            "[<SetUpFixture>]\n    type Setup() =\n        [<OneTimeSetUp>]\n        member _.Begin() = ()",
        ),
        ("module Facts", "[<assembly: Category \"slow\">]\ndo ()\n\nmodule Facts"),
    ] {
        let source = SOURCE.replacen(mark, text, 1);
        let (folder, session) = session_of(&source).await;
        let saved = source.replace("//nu", "[<Test>]\n    let fresh () = ()");
        let swap = swapped(&session, &folder, "Mixed.fs", &saved).await;
        assert_eq!(codes(&swap), ["attribute"], "{text}: {swap:?}");
    }
}

const EXPECTO_PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework><CopyLocalLockFileAssemblies>true</CopyLocalLockFileAssemblies></PropertyGroup>
  <PropertyGroup><SatelliteResourceLanguages>en</SatelliteResourceLanguages></PropertyGroup>
  <ItemGroup><Compile Include="First.fs" /><Compile Include="Second.fs" /><Compile Include="All.fs" /></ItemGroup>
  <ItemGroup><PackageReference Include="Expecto" Version="11.1.1" /></ItemGroup>
</Project>"#;

const FIRST: &str = "module First

open Expecto

let inline check (x: int) = Expect.equal x 7 \"\"
let equals = testCase \"equals\" (fun () -> Expect.equal 1 1 \"\")
//fresh
let tests = testList \"first\" [ equals (*held*) ]
let several = [ testCase \"of several\" (fun () -> Expect.equal 2 2 \"\") ]
";

const SECOND: &str = "module Second

open Expecto

let contains = testCase \"contains\" (fun () -> First.check 7)
let tests = testList \"second\" [ First.tests; testList \"more\" First.several; contains ]
";

const ALL: &str = "module All

open Expecto

[<Tests>]
let all = testList \"all\" [ Second.tests ]
";

/// The names of all tests, each with whether it passed.
async fn outcomes(session: &mut Session) -> Vec<String> {
    let run = session.test(&TestSelection::default()).await.run;
    let sign = |outcome: &TestOutcome| if *outcome == TestOutcome::Passed { '+' } else { '-' };
    run.tests.iter().map(|test| format!("{}{}", sign(&test.outcome), test.name)).collect()
}

#[tokio::test]
async fn tests_of_expecto_that_other_files_hold_are_made_again_with_what_holds_them() {
    let sources = [("First.fs", FIRST), ("Second.fs", SECOND), ("All.fs", ALL)];
    let (folder, mut session) = session_of_project("Tests", EXPECTO_PROJECT, &sources, &["Expecto"]).await;
    let names = ["first.equals", "first.fresh", "more.of several", "contains"];
    // Each name with its outcome; one that is not there has none.
    let signed = |signs: [&str; 4]| -> Vec<String> {
        let there = std::iter::zip(signs, names).filter(|(sign, _)| !sign.is_empty());
        there.map(|(sign, name)| format!("{sign}all.second.{name}")).collect()
    };
    assert_eq!(outcomes(&mut session).await, signed(["+", "", "+", "+"]));

    let red = FIRST.replace("Expect.equal 1 1", "Expect.equal 1 3");
    let fresh = "let fresh = testCase \"fresh\" (fun () -> Expect.equal 4 4 \"\")";
    let added = FIRST.replace("//fresh", fresh).replace("(*held*)", "; fresh");
    let inlined = FIRST.replace("Expect.equal x 7", "Expect.equal x 8");
    let saves = [
        (red.clone(), signed(["-", "", "+", "+"])),
        (red.replace("Expect.equal 2 2", "Expect.equal 2 5"), signed(["-", "", "-", "+"])),
        (FIRST.to_owned(), signed(["+", "", "+", "+"])),
        (added.clone(), signed(["+", "+", "+", "+"])),
        (added.replace("Expect.equal 4 4", "Expect.equal 4 6"), signed(["+", "-", "+", "+"])),
        (inlined.clone(), signed(["+", "", "+", "-"])),
        (inlined.replace("Expect.equal 1 1", "Expect.equal 1 3"), signed(["-", "", "+", "-"])),
        (FIRST.to_owned(), signed(["+", "", "+", "+"])),
    ];
    for (text, expected) in saves {
        let swap = swapped(&session, &folder, "First.fs", &text).await;
        assert!(swap.is_applied() && swap.outdated.is_empty(), "{swap:?}\n{text}");
        assert_eq!(outcomes(&mut session).await, expected, "{swap:?}\n{text}");
    }

    // What holds one and cannot be made again keeps all of it from running.
    let kept = ALL.to_owned() + "let mutable kept = First.tests\n";
    let sources = [("First.fs", FIRST), ("Second.fs", SECOND), ("All.fs", &kept)];
    let (folder, session) = session_of_project("Tests", EXPECTO_PROJECT, &sources, &["Expecto"]).await;
    let swap = swapped(&session, &folder, "First.fs", &red).await;
    let told: Vec<_> = swap.obstacles.iter().map(|one| format!("{}: {}", one.name, one.reason)).collect();
    assert_eq!(
        (codes(&swap), told),
        (vec!["held"], vec!["First.tests: All.kept holds it, which is not made again".to_owned()])
    );
}
