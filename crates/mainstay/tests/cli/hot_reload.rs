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
    let unbuilt = world.session()["startup"]["unbuilt"].as_str().unwrap().to_owned();
    assert_eq!(unbuilt, "saved and not what runs: Shop.fs; the type `Item` changed (Shop.fs:3)");
    let told = world.run(["eval", "Cart.total [ 1; 2 ]"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "val it: int = 18\n"), "{told:?}");
    assert_eq!(told.stderr, format!("{unbuilt} (`mainstay session rebuild --keep`)\n"), "{told:?}");
    let rebuilt = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "24");
    assert_eq!(world.session()["startup"]["unbuilt"], Value::Null);
    let told = world.run(["eval", "Cart.total [ 1; 2 ]"]);
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{told:?}");

    // What was built is what later saves are compared with.
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * 9", "Name: string; Price: int"));
    follower.wait_for("sourcesSwapped");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "27");

    // What is taken back leaves nothing to be said.
    save(&world, &source("count * ", "Name: string; Price: int"));
    assert_eq!(follower.wait_for("sourcesSwapped")["body"]["obstacles"][0]["code"], "syntax_error");
    save(&world, &source("count * 9", "Name: string; Price: int"));
    let swap = follower.wait_for("sourcesSwapped");
    assert_eq!((names(&swap), swap["body"]["obstacles"].clone()), (Vec::new(), Value::Null), "{swap}");
    let told = world.run(["eval", "Cart.total [ 1; 2 ]"]);
    assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("val it: int = 27\n", ""), "{told:?}");
    let events = world.run(["events", "--kind", "sourcesSwapped"]);
    assert!(events.stdout.contains("runs as saved: Shop.fs"), "{events:?}");
}

#[test]
fn what_was_refused_and_taken_back_while_nothing_ran_is_told_no_more() {
    let world = World::new();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    let built = source("count * 10", "Name: string");
    save(&world, &built);
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "30");
    let mut follower = world.follow(last_seq(&world));
    save(&world, &source("count * 8", "Name: string; Price: int"));
    follower.wait_for("sourcesSwapped");
    let told = world.session()["startup"]["unbuilt"].clone();
    assert_eq!(told, "saved and not what runs: Shop.fs; the type `Item` changed (Shop.fs:3)");
    let seen = last_seq(&world);

    world.kill_everything();
    save(&world, &built);
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "30");
    // The new worker may have built what was saved, or have found it to be as it was built.
    let unbuilt = || world.session()["startup"]["unbuilt"].clone();
    if unbuilt() != Value::Null {
        let mut follower = world.follow(0);
        follower.wait_until(|event| event["kind"] == "sourcesSwapped" && event["seq"].as_u64() > Some(seen));
    }
    assert_eq!(unbuilt(), Value::Null);
}

/// A file of a project, whose function depends on what its project defines.
fn conditional(module: &str, sum: &str) -> String {
    format!(
        "module {module}
#if APP && !LIB
let which (x: int) = \"app\", x + {sum}
#endif
#if LIB && !APP
let which (x: int) = \"lib\", x + {sum}
#endif
"
    )
}

#[test]
fn conditional_code_is_exchanged_by_what_its_own_project_defines() {
    let world = World::new();
    let projects = [
        ("Lib", "<DefineConstants>$(DefineConstants);LIB</DefineConstants>", ""),
        (
            "App",
            "<OtherFlags>--define:APP</OtherFlags>",
            r#"<ProjectReference Include="../Lib/Lib.fsproj" />"#,
        ),
    ];
    let write = |file: String, text: String| std::fs::write(world.work().join(file), text).unwrap();
    for (name, defines, refers) in projects {
        std::fs::create_dir(world.work().join(name)).unwrap();
        let project = format!(
            r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework>{defines}</PropertyGroup>
  <ItemGroup><Compile Include="{name}.fs" />{refers}</ItemGroup>
</Project>"#
        );
        write(format!("{name}/{name}.fsproj"), project);
        write(format!("{name}/{name}.fs"), conditional(name, "1"));
    }
    let made = world.run(["session", "new", "--project", "App/App.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("Lib.which 2, App.which 2")["value"], "((\"lib\", 3), (\"app\", 3))");
    let mut follower = world.follow(last_seq(&world));
    for (name, _, _) in projects {
        write(format!("{name}/{name}.fs"), conditional(name, "10"));
        let swap = follower.wait_for("sourcesSwapped");
        assert_eq!(names(&swap), [format!("{name}.which")], "{swap}");
    }
    assert_eq!(world.eval("Lib.which 2, App.which 2")["value"], "((\"lib\", 12), (\"app\", 12))");
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

#[test]
fn people_are_asked_whether_to_build_where_settings_say_so() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\non-obstacle = \"ask\"\n").unwrap();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    save(&world, &source("count * 10", "Name: string"));
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "30");
    let mut follower = world.follow(last_seq(&world));
    let mut asked_for = |fields: &str| {
        save(&world, &source("count * 8", fields));
        let asked = follower.wait_for("askRaised");
        let prompt = asked["body"]["prompt"].as_str().unwrap();
        assert!(prompt.contains("the type `Item` changed (Shop.fs:3)"), "{asked}");
        asked["body"]["ask"].as_str().unwrap().to_owned()
    };

    // Who says no is asked again by the next save, and who takes the change back is asked no more.
    let no = world.run(["ask", "answer", &asked_for("Name: string; Price: int"), "false"]);
    assert_eq!(no.code, 0, "{no:?}");
    let ask = asked_for("Name: string; Price: float");
    let mut ended = world.follow(last_seq(&world));
    save(&world, &source("count * 9", "Name: string"));
    let ended = ended.wait_for("askEnded");
    assert_eq!(
        (&ended["body"]["ask"], &ended["body"]["ending"]),
        (&json!(ask), &json!("cancelled")),
        "{ended}"
    );
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "27");

    let yes = world.run(["ask", "answer", &asked_for("Name: string; Price: int"), "true"]);
    assert_eq!(yes.code, 0, "{yes:?}");
    world.follow(0).wait_until(|event| {
        event["kind"] == "warmUpCompleted" && event["seq"].as_u64() > ended["seq"].as_u64()
    });
    assert_eq!(world.eval("Cart.total [ 1; 2 ]")["value"], "24");
}
