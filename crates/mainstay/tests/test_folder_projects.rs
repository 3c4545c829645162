//! The project of a folder is that of the sessions that are opened there, whoever opens them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use support::{Finished, World, kill};

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /></ItemGroup>
</Project>"#;
const MONEY: &str =
    "module Shop.Money\nlet euros (cents: int) = sprintf \"%d.%02d\" (cents / 100) (cents % 100)\n";

/// A working folder with these project files, and a source that they share.
fn folder(projects: &[&str], source: &str) -> World {
    let world = World::new();
    projects.iter().for_each(|name| std::fs::write(world.work().join(name), PROJECT).unwrap());
    std::fs::write(world.work().join("Money.fs"), source).unwrap();
    world
}

fn eval(world: &World, arguments: &[&str]) -> Finished {
    world.run(["eval"].iter().chain(arguments))
}

#[test]
fn the_first_eval_in_a_folder_builds_its_project_says_so_and_has_it() {
    let world = folder(&["Shop.fsproj"], MONEY);
    let first = eval(&world, &["euros 250"]);
    assert!(first.stdout.contains("\"2.50\""), "{first:?}");
    assert!(first.stderr.contains("building the project, which was not built yet"), "{first:?}");
    assert!(first.stderr.contains("Shop.fsproj: 1 assembly loaded"), "{first:?}");
    // What is built once is not built for the next session.
    let next = world.run(["session", "new", "--project", ".", "--name", "next", "--json"]);
    assert!(!next.stderr.contains("building"), "{next:?}");
    assert!(next.json()["project"].as_str().unwrap().ends_with("/Shop.fsproj"), "{next:?}");
    let bare = eval(&world, &["--no-project", "--json", "Shop.Money.euros 250"]).json();
    assert_eq!(bare["success"], false, "{bare}");
}

#[test]
fn a_project_that_does_not_build_leaves_a_session_that_says_why_and_how_to_go_on() {
    let world = folder(&["Shop.fsproj"], &MONEY.replace("cents / 100", "cent / 100"));
    let first = eval(&world, &["1 + 1"]);
    assert!(first.stdout.contains("val it: int = 2"), "{first:?}");
    for said in [
        "Shop.fsproj does not build: the build has 1 error",
        "Money.fs:2:45: error FS0039",
        "`session rebuild`",
    ] {
        assert!(first.stderr.contains(said), "{said}: {first:?}");
    }
    // Another worker does not build again what cannot have become better.
    kill(world.worker_pid());
    eval(&world, &["1 + 1"]);
    let faults = world.session()["startup"]["faults"].to_string();
    assert!(faults.contains("does not build"), "{faults}");
    std::fs::write(world.work().join("Money.fs"), MONEY).unwrap();
    assert_eq!(world.run(["session", "rebuild"]).code, 0);
    assert!(eval(&world, &["euros 250"]).stdout.contains("\"2.50\""));
}

#[test]
fn of_several_projects_none_is_taken_and_they_are_named() {
    let world = folder(&["A.fsproj", "B.fsproj"], MONEY);
    let first = eval(&world, &["1 + 1"]);
    assert!(first.stdout.contains("val it: int = 2"), "{first:?}");
    let said = "its folder has several projects (A.fsproj, B.fsproj) and none was named";
    assert!(first.stderr.contains(said), "{first:?}");
    let refused = world.run(["session", "new", "--project", "."]);
    assert!(refused.stderr.contains("[project_ambiguous]"), "{refused:?}");
}
