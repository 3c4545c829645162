//! Sessions for a project, with the real compiler: what is loaded of it, how it is built, and what becomes of a session where that fails.

use crate::support::terminal::Terminal;
use crate::support::{Finished, World, interrupt, kill};
use serde_json::Value;

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /><Compile Include="Cart.fs" /></ItemGroup>
</Project>"#;
const MONEY: &str = "namespace Shop
module Money =
    let euros (cents: int) = sprintf \"%d.%02d\" (cents / 100) (cents % 100)
";
const CART: &str = "namespace Shop
type Item = { Name: string; Price: int }
module Cart =
    let total (items: Item list) = items |> List.sumBy (fun item -> item.Price)
";

/// A folder with a project.
fn shop() -> World {
    let world = World::new();
    for (name, text) in [("Shop.fsproj", PROJECT), ("Money.fs", MONEY), ("Cart.fs", CART)] {
        std::fs::write(world.work().join(name), text).unwrap();
    }
    world
}

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

fn new_session(world: &World) -> Value {
    ok(world.run(["session", "new", "--project", "Shop.fsproj", "--json"])).json()
}

fn rebuild(world: &World) -> Finished {
    world.run(["session", "rebuild"])
}

fn value(world: &World, code: &str) -> Value {
    let evaluated = world.eval(code);
    assert_eq!(evaluated["success"], true, "{code}: {evaluated}");
    evaluated["value"].clone()
}

#[test]
fn a_project_is_built_loaded_and_open() {
    let world = shop();
    std::fs::write(world.home().join("init.fsx"), "let mine = 1").unwrap();
    std::fs::write(world.work().join(".mainstayrc.fsx"), "printfn \"hello\"\nlet ours = mine + 1").unwrap();
    let session = new_session(&world);
    let summary = session["startup"]["summary"].as_str().unwrap();
    assert!(summary.starts_with("Shop.fsproj: 1 assembly loaded, 1 namespace or module opened"), "{session}");
    assert_eq!(value(&world, "Cart.total [ { Name = \"tea\"; Price = 250 } ] |> Money.euros"), "\"2.50\"");
    assert_eq!(value(&world, "mine, ours"), "(1, 2)");
    let shown = ok(world.run(["session", "show"])).stdout;
    assert!(shown.contains("init.fsx ran") && shown.contains(".mainstayrc.fsx ran"), "{shown}");
}

#[test]
fn a_projects_own_names_are_not_hidden_by_the_languages() {
    let world = shop();
    let own =
        "namespace Shop\nmodule Log =\n    let log (text: string) = \"logged \" + text\n    let id = 7\n";
    std::fs::write(world.work().join("Money.fs"), format!("{own}{}", MONEY.replace("namespace Shop", "")))
        .unwrap();
    new_session(&world);
    assert_eq!(value(&world, "Log.log \"this\", Log.id"), "(\"logged this\", 7)");
}

/// One session for all of it: its project is slow to build.
#[test]
fn a_build_that_is_ended_or_fails_and_a_project_that_is_gone_cost_no_value() {
    let world = shop();
    new_session(&world);
    a_build_ends_with_ctrl_c_and_changes_nothing(&world);
    a_build_that_fails_is_told_with_its_place_and_costs_no_value(&world);
    a_project_that_is_gone_costs_the_project_and_not_the_session(&world);
}

fn a_build_that_fails_is_told_with_its_place_and_costs_no_value(world: &World) {
    value(world, "let kept = Cart.total []");
    std::fs::write(world.work().join("Cart.fs"), CART.replace("item.Price", "item.Pric")).unwrap();
    let failed = rebuild(world);
    assert_eq!(failed.code, 1, "{failed:?}");
    let place = format!("{}:4:", world.work().join("Cart.fs").display());
    assert!(failed.stderr.contains(&place) && failed.stderr.contains("error FS0039"), "{failed:?}");
    assert!(failed.stderr.contains("failed: the build has 1 error"), "{failed:?}");
    let failed = world.run(["session", "rebuild", "--json"]).json();
    assert_eq!(failed["diagnostics"][0]["code"], "FS0039");
    assert_eq!(value(world, "kept"), "0");
}

#[test]
fn what_was_built_anew_is_there_after_a_rebuild_and_stale_before() {
    let world = shop();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\nwatch = \"mark\"\n").unwrap();
    new_session(&world);
    value(&world, "let price = Money.euros 250");
    std::fs::write(world.work().join("Money.fs"), MONEY.replace("%d.%02d", "%d,%02d")).unwrap();
    // Another session builds it: this one has its copy, and says that what it has is out of date.
    ok(world.run(["session", "new", "--project", "Shop.fsproj", "--name", "other", "--json"]));
    ok(world.run(["session", "rebuild", "other"]));
    let session = world.session();
    let reference = session["session"].as_str().unwrap();
    let shown = ok(world.run(["session", "show", "--json", reference])).json();
    assert_eq!(shown["name"], "other", "the newest");
    let sessions = ok(world.run(["session", "list", "--json"])).json();
    let first = sessions.as_array().unwrap().iter().find(|one| one["name"] != "other").unwrap();
    let first = first["session"].as_str().unwrap();
    let evaluated = ok(world.run(["eval", "--session", first, "--json", "Money.euros 250"])).json();
    assert_eq!(evaluated["value"], "\"2.50\"", "it has a copy of its own");
    let stale = ok(world.run(["session", "show", "--json", first])).json();
    assert_eq!(stale["validity"]["stale"], 2, "{stale}");
    let refreshed = ok(world.run(["session", "refresh", first]));
    assert!(refreshed.stderr.contains("Shop.dll changed"), "{refreshed:?}");
    let evaluated = ok(world.run(["eval", "--session", first, "--json", "price"])).json();
    assert_eq!(evaluated["value"], "\"2,50\"");
}

fn a_project_that_is_gone_costs_the_project_and_not_the_session(world: &World) {
    value(world, "let kept = 1");
    std::fs::remove_file(world.work().join("Shop.fsproj")).unwrap();
    kill(world.worker_pid());
    assert_eq!(value(world, "kept"), "1");
    let faults = world.session()["startup"]["faults"].to_string();
    assert!(faults.contains("Shop.fsproj"), "{faults}");
    assert_eq!(rebuild(world).code, 1);
    assert_eq!(value(world, "kept"), "1");
}

#[test]
fn a_script_that_ends_its_worker_is_left_out() {
    let world = shop();
    std::fs::write(world.home().join("init.fsx"), "exit 3").unwrap();
    let session = new_session(&world);
    assert_eq!(session["state"], "Ready");
    let faults = session["startup"]["faults"].to_string();
    assert!(faults.contains("init.fsx did not run to its end: it ended the worker"), "{faults}");
    assert_eq!(value(&world, "1 + 1"), "2");
}

#[test]
fn a_script_that_does_not_end_is_left_out_and_named() {
    let world = shop();
    std::fs::write(world.home().join("config.toml"), "[limits]\nprofile-ms = 2000\n").unwrap();
    std::fs::write(world.home().join("init.fsx"), "let mine = 1").unwrap();
    std::fs::write(world.work().join(".mainstayrc.fsx"), "while true do System.Threading.Thread.Sleep 20")
        .unwrap();
    let session = new_session(&world);
    assert_eq!(session["state"], "Ready");
    let faults = session["startup"]["faults"].to_string();
    let why = ".mainstayrc.fsx did not run to its end: it took longer than 2000 ms (`profile-ms`)";
    assert!(faults.contains(why), "{faults}");
    assert!(
        faults.contains("init.fsx did not run to its end: it was left out with .mainstayrc.fsx"),
        "{faults}"
    );
    assert_eq!(value(&world, "1 + 1"), "2");
}

#[test]
fn a_project_that_is_not_read_in_time_costs_the_project_and_not_the_session() {
    let world = shop();
    std::fs::write(world.home().join("config.toml"), "[limits]\nproject-ms = 0\n").unwrap();
    let session = new_session(&world);
    assert_eq!(session["state"], "Ready");
    let faults = session["startup"]["faults"].to_string();
    assert!(faults.contains("was not found out within 0 ms (`project-ms`)"), "{faults}");
    assert_eq!(value(&world, "1 + 1"), "2");
}

#[test]
fn a_session_without_a_project_runs_no_script_of_its_folder() {
    let world = shop();
    std::fs::write(world.work().join(".mainstayrc.fsx"), "let ours = 2").unwrap();
    ok(world.run(["session", "new", "--no-project"]));
    assert_eq!(world.eval("ours")["success"], false);
}

fn a_build_ends_with_ctrl_c_and_changes_nothing(world: &World) {
    value(world, "let kept = 1");
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    let building = world.command().args(["session", "rebuild"]).spawn().unwrap();
    follower.wait_for("outputProduced");
    interrupt(&building);
    let code = building.wait_with_output().unwrap().status.code();
    assert_eq!(code, Some(1));
    assert_eq!(value(world, "kept"), "1");
}

#[test]
fn a_project_is_built_at_the_prompt() {
    let world = shop();
    std::fs::write(world.work().join("Cart.fs"), CART.replace("item.Price", "item.Pric")).unwrap();
    let terminal = Terminal::open(&world);
    terminal.wait_for("Shop.fsproj: 0 assemblies loaded");
    terminal.wait_for_last_line("work>");
    std::fs::write(world.work().join("Cart.fs"), CART).unwrap();
    terminal.enter(":rebuild");
    terminal.wait_for("Shop.fsproj: 1 assembly loaded, 1 namespace or module opened");
    terminal.wait_for_last_line("work>");
    terminal.enter("Money.euros 250");
    terminal.wait_for("\"2.50\"");
    std::fs::write(world.work().join("Cart.fs"), CART.replace("item.Price", "item.Pric")).unwrap();
    terminal.enter(":rebuild");
    terminal.wait_for("error FS0039");
    terminal.wait_for_last_line("work>");
}
