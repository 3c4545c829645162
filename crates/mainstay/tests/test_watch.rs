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

#[test]
fn a_project_is_built_and_reloaded_where_settings_say_so() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"reload\"\n");
    write(
        &world,
        "Shop.fsproj",
        r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Shop.fs" /></ItemGroup>
</Project>"#,
    );
    write(&world, "Shop.fs", "module Shop\nlet price = 1\n");
    ok(world.run(["session", "new", "--project", "Shop.fsproj"]));
    ok(world.run(["session", "rebuild"]));
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
