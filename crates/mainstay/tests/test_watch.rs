//! Files are watched that sessions rest on: who has a session open hears of a change without asking, and may have it brought up to date.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use support::{Finished, World};

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

fn write(world: &World, name: &str, text: &str) {
    // As editors do: another file takes the place of the former.
    std::fs::write(world.work().join("new"), text).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join(name)).unwrap();
}

fn configure(world: &World, text: &str) {
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), text).unwrap();
}

#[test]
fn who_follows_a_session_hears_that_a_script_it_loaded_has_changed() {
    let world = World::new();
    write(&world, "tax.fsx", "let rate = 0.2");
    assert_eq!(world.eval("#load \"tax.fsx\"")["success"], true);
    assert_eq!(world.eval("let price = 100.0 * Tax.rate")["success"], true);
    let mut follower = world.follow(0);
    follower.wait_for("evalCompleted");
    write(&world, "tax.fsx", "let rate = 0.3");
    let changed = follower.wait_for("assembliesChanged");
    assert_eq!(changed["body"]["changed"], serde_json::json!(["tax.fsx"]));
    assert_eq!(world.eval("price")["value"], "20.0", "it is marked, and nothing runs by itself");
}

#[test]
fn a_session_is_brought_up_to_date_where_settings_say_so() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"reload\"\n");
    write(&world, "tax.fsx", "let rate = 0.2");
    assert_eq!(world.eval("#load \"tax.fsx\"")["success"], true);
    assert_eq!(world.eval("let price = 100.0 * Tax.rate")["success"], true);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "tax.fsx", "let rate = 0.3");
    follower.wait_until(|event| event["body"]["reason"] == "refreshed");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("price")["value"], "30.0");
}

/// A session of a project that is built.
fn open_shop(world: &World) {
    write(
        world,
        "Shop.fsproj",
        r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Shop.fs" /></ItemGroup>
</Project>"#,
    );
    write(world, "Shop.fs", "module Shop\nlet price = 1\n");
    ok(world.run(["session", "new", "--project", "Shop.fsproj"]));
    ok(world.run(["session", "rebuild"]));
}

#[test]
fn who_has_a_project_open_hears_that_a_source_is_not_built_until_it_is() {
    let world = World::new();
    open_shop(&world);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "Shop.fs", "module Shop\nlet price = 2\n");
    let changed = follower.wait_for("sourcesChanged");
    let shop = world.work().join("Shop.fs");
    assert_eq!(changed["body"]["changed"], serde_json::json!([shop]));
    let words = "changed and not built yet: Shop.fs; methods that are loaded are not exchanged in place";
    assert_eq!(world.session()["startup"]["unbuilt"], words);
    assert_eq!(world.eval("price")["value"], "1", "it is told, and nothing is built by itself");

    ok(world.run(["session", "stop"]));
    assert_eq!(world.eval("price")["value"], "1");
    assert_eq!(world.session()["startup"]["unbuilt"], words, "a new worker has it no more than the former");
    ok(world.run(["session", "rebuild", "--keep"]));
    assert_eq!(world.eval("price")["value"], "2");
    assert_eq!(world.session()["startup"]["unbuilt"], serde_json::Value::Null);
}

#[test]
fn what_was_written_before_a_session_began_is_told_too() {
    let world = World::new();
    open_shop(&world);
    ok(world.run(["session", "stop"]));
    write(&world, "Shop.fs", "module Shop\nlet price = 2\n");
    ok(world.run(["session", "new", "--project", "Shop.fsproj", "--name", "later"]));
    let said = ok(world.run(["session", "show", "later"])).stdout;
    assert!(said.contains("changed and not built yet: Shop.fs"), "{said}");
}

#[test]
fn a_project_is_built_and_reloaded_where_settings_say_so() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"reload\"\n");
    open_shop(&world);
    assert_eq!(world.eval("let twice = 2 * price")["success"], true);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "Shop.fs", "module Shop\nlet price = 2\n");
    let built = follower.wait_for("jobRequested");
    assert_eq!(built["body"]["work"]["work"], "build", "{built}");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("twice")["value"], "4");
}

#[test]
fn a_daemon_can_be_told_not_to_watch() {
    let world = World::new();
    ok(world.run(["-d", "--no-watch"]));
    write(&world, "tax.fsx", "let rate = 0.2");
    assert_eq!(world.eval("#load \"tax.fsx\"")["success"], true);
    assert_eq!(world.eval("Tax.rate")["value"], "0.2");
}
