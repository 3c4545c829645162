//! A project's sources are saved while its session runs: what can be exchanged runs at once, in the same worker; what cannot is told with its
//! reason and runs after a build. A worker that is lost, or a daemon, leaves nobody with older code.

use serde_json::{Value, json};

use crate::support::{World, kill};

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Shop.fs" /></ItemGroup>
</Project>"#;

/// The source, with a price and the fields of an item.
fn source(price: &str, fields: &str) -> String {
    format!(
        "namespace Shop

type Item = {{ {fields} }}

module Cart =
    let private price (count: int) = {price}
    let total (counts: int list) = List.sumBy price counts
"
    )
}

/// Saves as editors do: another file takes the place of the former.
fn save(world: &World, text: &str) {
    std::fs::write(world.work().join("new"), text).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join("Shop.fs")).unwrap();
}

fn last_seq(world: &World) -> u64 {
    world.session()["lastSeq"].as_u64().unwrap()
}

fn names(swap: &Value) -> Vec<&str> {
    let all = swap["body"]["swapped"].as_array().unwrap();
    all.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn what_is_saved_runs_at_once_or_is_told_and_no_loss_brings_older_code_back() {
    let world = World::new();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    save(&world, &source("count * 10", "Name: string"));
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "30");
    assert_eq!(world.eval("let before = Cart.total [ 1 ]")["success"], true);
    let pid = world.worker_pid();

    // A private function, in the worker that is there.
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * 100", "Name: string"));
    let swap = follower.wait_for("sourcesSwapped");
    assert_eq!(names(&swap), ["Shop.Cart.price"], "{swap}");
    assert_eq!(swap["body"]["assemblies"], json!(["Shop.dll"]), "{swap}");
    assert_eq!((world.eval("Cart.total [ 1; 2 ]")["value"].clone(), world.worker_pid()), ("300".into(), pid));
    assert_eq!(
        world.session()["validity"]["stale"],
        2,
        "what used the older code is marked: {}",
        world.session()
    );
    assert_eq!(world.eval("before")["value"], "10");

    // A worker that is lost: the next one is built from what was saved.
    kill(pid);
    follower.wait_for("workerExited");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "300");
    assert_eq!(world.eval("before")["value"], "100", "it was made again");

    // A daemon that is lost: the worker goes on, and so do swaps in it.
    save(&world, &source("count * 1000", "Name: string"));
    follower.wait_for("sourcesSwapped");
    let pid = world.worker_pid();
    world.replace_daemon();
    assert_eq!(
        (world.eval("Cart.total [ 1; 2 ]")["value"].clone(), world.worker_pid()),
        ("3000".into(), pid)
    );
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * 7", "Name: string"));
    follower.wait_for("sourcesSwapped");
    assert_eq!((world.eval("Cart.total [ 1; 2 ]")["value"].clone(), world.worker_pid()), ("21".into(), pid));
    let seen = last_seq(&world);

    // What is saved while no daemon runs.
    world.kill_daemon();
    save(&world, &source("count * 6", "Name: string"));
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut follower = world.follow(0);
    follower.wait_until(|event| event["kind"] == "sourcesSwapped" && event["seq"].as_u64() > Some(seen));
    assert_eq!((world.eval("Cart.total [ 1; 2 ]")["value"].clone(), world.worker_pid()), ("18".into(), pid));
    let mut follower = world.follow(last_seq(&world));

    // What cannot be exchanged.
    save(&world, &source("count * 8", "Name: string; Price: int"));
    let swap = follower.wait_for("sourcesSwapped");
    let obstacle = &swap["body"]["obstacles"][0];
    assert_eq!((&obstacle["code"], &obstacle["line"]), (&json!("shape"), &json!(3)), "{swap}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "18", "nothing of it runs");
    assert_eq!(world.session()["startup"]["unbuilt"], "changed and not built yet: Shop.fs");
    let rebuilt = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "24");
    assert_eq!(world.session()["startup"]["unbuilt"], Value::Null);

    // What was built is what later saves are compared with.
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * 9", "Name: string; Price: int"));
    follower.wait_for("sourcesSwapped");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "27");
}

#[test]
fn what_cannot_be_exchanged_is_built_at_once_where_settings_say_so() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\non-obstacle = \"build\"\n").unwrap();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    save(&world, &source("count * 10", "Name: string"));
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("let before = Cart.total [ 1 ]")["success"], true);
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * ", "Name: string"));
    assert_eq!(follower.wait_for("sourcesSwapped")["body"]["obstacles"][0]["code"], "syntax_error");
    save(&world, &source("count * 8", "Name: string; Price: int"));
    assert_eq!(follower.wait_for("sourcesSwapped")["body"]["obstacles"][0]["code"], "shape");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "24");
    assert_eq!(world.eval("before")["value"], "8", "it was made again");
}
