//! Rebuilds by the warm compiler, with the real one: it is said which one ran, and where it is gone a build runs.

use std::time::Duration;

use serde_json::Value;

use crate::support::{World, kill, within};

/// More than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Cart.fs" /></ItemGroup>
</Project>"#;

/// The project's code, with a type that has another member each time.
fn code(member: &str) -> String {
    format!(
        "namespace Shop\ntype Item = {{ {member}: int }}\nmodule Cart =\n    let one = {{ {member} = 7 }}\n"
    )
}

fn rebuilt(world: &World) -> Value {
    let rebuilt = world.run(["session", "rebuild", "--json"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    rebuilt.json()
}

/// The process that has been warmed last, as the daemon's log tells.
fn warmed(world: &World) -> Option<(usize, i32)> {
    let log = std::fs::read_to_string(world.home().join("logs/daemon.log")).ok()?;
    let processes =
        log.lines().filter_map(|line| line.split_once("a compiler is warm process=")?.1.parse().ok());
    let all: Vec<i32> = processes.collect();
    Some((all.len(), *all.last()?))
}

/// The compilers that the status tells of: their processes, and whether they are used.
fn kept(world: &World) -> Vec<(i64, bool)> {
    let status = world.run(["status", "--json"]).json();
    let compilers = status["compilers"].as_array().cloned().unwrap_or_default();
    compilers.iter().map(|one| (one["pid"].as_i64().unwrap(), one["isWarm"].as_bool().unwrap())).collect()
}

#[test]
fn a_rebuild_leaves_the_compiler_that_becomes_warm_alone() {
    let world = World::new().with_warm_compilers();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    let save = |member: &str| std::fs::write(world.work().join("Cart.fs"), code(member)).unwrap();
    save("First");
    assert_eq!(world.run(["session", "new", "--project", "Shop.fsproj"]).code, 0);
    assert!(within(PATIENCE, || !kept(&world).is_empty()), "no compiler is started");
    let first = kept(&world)[0];
    save("Second");
    rebuilt(&world);
    assert_eq!(world.eval("Cart.one.Second")["value"], "7");
    assert!(within(PATIENCE, || kept(&world) == [(first.0, true)]), "{first:?} {:?}", kept(&world));
    let said = world.run(["status"]).stdout;
    assert!(said.contains("  1 compiler for projects that are built again, which has "), "{said}");
    // What was built meanwhile is known too, once that was found out.
    assert!(within(PATIENCE, || {
        save("Third");
        rebuilt(&world)["reason"] == "warm-compiler"
    }));
    assert_eq!(kept(&world), [(first.0, true)]);
    assert_eq!(world.eval("Cart.one.Third")["value"], "7");
}

#[test]
fn a_rebuild_is_done_by_the_warm_compiler_and_by_a_build_where_that_is_gone() {
    let world = World::new().with_warm_compilers();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    let save = |member: &str| std::fs::write(world.work().join("Cart.fs"), code(member)).unwrap();
    save("First");
    assert_eq!(world.run(["session", "new", "--project", "Shop.fsproj"]).code, 0);
    assert!(within(PATIENCE, || warmed(&world).is_some()), "no compiler is warmed");

    save("Second");
    let told = rebuilt(&world);
    assert_eq!(told["reason"], "warm-compiler", "{told}");
    assert_eq!(world.eval("Cart.one.Second")["value"], "7");
    save("Third");
    let said = world.run(["session", "rebuild"]);
    assert!(said.stdout.contains("compiled by the warm compiler"), "{said:?}");
    assert_eq!(world.eval("Cart.one.Third")["value"], "7");

    std::fs::write(world.work().join("Cart.fs"), code("Fourth").replace("= 7", "= seven")).unwrap();
    let failed = world.run(["session", "rebuild", "--json"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let diagnostic = &failed.json()["diagnostics"][0];
    assert_eq!((&diagnostic["code"], &diagnostic["start"]["line"]), (&"FS0039".into(), &4.into()));

    let (count, process) = warmed(&world).unwrap();
    kill(process);
    save("Fifth");
    let told = rebuilt(&world);
    assert_eq!(told["reason"], "end-turn", "{told}");
    assert_eq!(world.eval("Cart.one.Fifth")["value"], "7");
    assert!(within(PATIENCE, || warmed(&world).is_some_and(|(now, _)| now > count)), "none is warmed again");
}
