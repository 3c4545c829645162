//! Files are watched that sessions rest on: who has a session open hears of a change without asking, and may have it brought up to date.

use crate::support;
use crate::support::{Finished, World};

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
    assert_eq!(world.eval("let other = 1")["success"], true);
    let pid = world.worker_pid();
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "tax.fsx", "let rate = 0.3");
    follower.wait_until(|event| event["body"]["reason"] == "refreshed");
    let told = follower.wait_for("warmUpCompleted")["body"]["reload"].clone();
    assert_eq!(told["inPlace"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["changes"][0]["now"], "30.0", "{told}");
    assert_eq!((world.eval("price")["value"].clone(), world.worker_pid()), ("30.0".into(), pid));
}

/// A session of a project that is built.
fn open_shop(world: &World) {
    write(
        world,
        "Shop.fsproj",
        r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Shop.fs" /></ItemGroup>
</Project>"#,
    );
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 1\n");
    ok(world.run(["session", "new", "--project", "Shop.fsproj"]));
    ok(world.run(["session", "rebuild"]));
}

#[test]
fn who_has_a_project_open_hears_that_a_source_is_not_built_until_it_is() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"mark\"\n");
    open_shop(&world);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 2\n");
    let changed = follower.wait_for("sourcesChanged");
    let shop = world.work().join("Shop.fs");
    assert_eq!(changed["body"]["changed"], serde_json::json!([shop]));
    let words = "saved and not what runs: Shop.fs";
    assert_eq!(world.session()["startup"]["unbuilt"], words);
    assert_eq!(world.eval("price")["value"], "1", "it is told, and nothing is built by itself");

    ok(world.run(["session", "stop"]));
    assert_eq!(world.eval("price")["value"], "1");
    assert_eq!(world.session()["startup"]["unbuilt"], words, "a new worker has it no more than the former");
    ok(world.run(["session", "rebuild", "--keep"]));
    assert_eq!(world.eval("price")["value"], "2");
    assert_eq!(world.session()["startup"]["unbuilt"], serde_json::Value::Null);

    what_was_written_before_a_session_began_is_told_too(&world);
}

#[test]
fn what_comes_with_a_folder_that_takes_anothers_place_is_told_however_old_it_is() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"mark\"\n");
    let in_work = |name: &str| world.work().join(name);
    for (folder, price) in [("src", 1), ("other", 2)] {
        std::fs::create_dir(in_work(folder)).unwrap();
        write(
            &world,
            &format!("{folder}/Shop.fs"),
            &format!("[<AutoOpen>]\nmodule Shop\nlet price = {price}\n"),
        );
    }
    write(
        &world,
        "Shop.fsproj",
        r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="src/Shop.fs" /></ItemGroup>
</Project>"#,
    );
    ok(world.run(["session", "new", "--project", "Shop.fsproj"]));
    ok(world.run(["session", "rebuild"]));
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    std::fs::rename(in_work("src"), in_work("former")).unwrap();
    std::fs::rename(in_work("other"), in_work("src")).unwrap();
    let changed = follower.wait_for("sourcesChanged");
    assert_eq!(changed["body"]["changed"], serde_json::json!([in_work("src/Shop.fs")]));
}

/// A session that begins later, of the same project.
fn what_was_written_before_a_session_began_is_told_too(world: &World) {
    ok(world.run(["session", "stop"]));
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 3\n");
    ok(world.run(["session", "new", "--project", "Shop.fsproj", "--name", "later"]));
    let said = ok(world.run(["session", "show", "later"])).stdout;
    assert!(said.contains("saved and not what runs: Shop.fs"), "{said}");
}

/// How many events of this kind the session has.
fn count(world: &World, kind: &str) -> usize {
    world.events().iter().filter(|event| event["kind"] == kind).count()
}

/// One session for all of it: its project is slow to build.
#[test]
fn a_project_is_built_and_reloaded_as_its_files_are_saved_where_settings_say_so() {
    let world = World::new();
    configure(&world, "[fsharp]\nwatch = \"reload\"\n[limits]\nwatch-quiet-ms = 20\n");
    open_shop(&world);
    what_is_saved_is_built_and_reloaded(&world);
    what_is_saved_while_a_project_is_built_is_built_after_it(&world);
    one_command_waits_however_often_files_are_saved_while_code_runs(&world);
}

fn what_is_saved_is_built_and_reloaded(world: &World) {
    assert_eq!(world.eval("let twice = 2 * price")["success"], true);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 2\n");
    let built = follower.wait_for("jobRequested");
    assert_eq!(built["body"]["work"]["work"], "build", "{built}");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("twice")["value"], "4");
}

fn what_is_saved_while_a_project_is_built_is_built_after_it(world: &World) {
    let before = count(world, "jobRequested");
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 4\n");
    follower.wait_for("outputProduced");
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 3\n");
    follower.wait_for("sourcesChanged");
    follower.wait_for("jobEnded");
    let built = follower.wait_for("jobRequested");
    assert_eq!(built["body"]["work"]["work"], "build", "{built}");
    follower.wait_for("jobEnded");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("price")["value"], "3");
    let builds = count(world, "jobRequested") - before;
    assert_eq!(builds, 2, "that of the first save, and one for what was saved meanwhile");
}

fn one_command_waits_however_often_files_are_saved_while_code_runs(world: &World) {
    let before = count(world, "commandQueued");
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    let running = run_until_released(world);
    follower.wait_for("outputProduced");
    write(world, "Shop.fs", "[<AutoOpen>]\nmodule Shop\nlet price = 5\n");
    follower.wait_for("commandQueued");
    let project = std::fs::read_to_string(world.work().join("Shop.fsproj")).unwrap();
    write(world, "Shop.fsproj", &project);
    follower.wait_for("sourcesChanged");
    release(world, running);
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.eval("price")["value"], "5");
    assert_eq!(count(world, "commandQueued") - before, 1);
}

#[test]
fn a_folder_that_was_removed_and_made_again_is_watched_again() {
    let world = World::new();
    let folder = world.work().join("rates");
    let save = |rate: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("tax.fsx"), format!("let rate = {rate}")).unwrap();
    };
    save("0.2");
    assert_eq!(world.eval("#load \"rates/tax.fsx\"")["success"], true);
    assert_eq!(world.eval("let price = 100.0 * Tax.rate")["success"], true);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    follower.wait_for("assembliesChanged");
    save("0.3");
    let found = |event: &serde_json::Value| event["kind"] == "assembliesChanged" && !hash(event).is_null();
    let first = follower.wait_until(found);
    save("0.4");
    let second = follower.wait_until(found);
    assert_ne!(hash(&first), hash(&second));
}

/// How the script is that the event tells of.
fn hash(event: &serde_json::Value) -> &serde_json::Value {
    &event["body"]["new"]["tax.fsx"]["hash"]
}

/// Starts code that prints something, and runs until it is released.
fn run_until_released(world: &World) -> std::process::Child {
    let file = world.work().join("release");
    world.start_eval(&format!(
        "printfn \"runs\"\nwhile not (System.IO.File.Exists {file:?}) do System.Threading.Thread.Sleep 20"
    ))
}

fn release(world: &World, running: std::process::Child) {
    std::fs::write(world.work().join("release"), "").unwrap();
    assert!(running.wait_with_output().unwrap().status.success());
}

/// Whether it is told while code runs that a script has changed; an eval that ends looks itself.
fn hears_while_code_runs(arguments: &[&str]) -> bool {
    let world = World::new();
    configure(&world, "[limits]\nwatch-quiet-ms = 20\n");
    ok(world.run(arguments));
    write(&world, "tax.fsx", "let rate = 0.2");
    assert_eq!(world.eval("#load \"tax.fsx\"")["success"], true);
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    let file = world.work().join("release");
    let running = world.start_eval(&format!(
        "printfn \"begins\"
while not (System.IO.File.Exists {file:?}) do System.Threading.Thread.Sleep 20
System.Threading.Thread.Sleep 1500
printfn \"marker\"
System.IO.File.Delete {file:?}
while not (System.IO.File.Exists {file:?}) do System.Threading.Thread.Sleep 20"
    ));
    follower.wait_for("outputProduced");
    write(&world, "tax.fsx", "let rate = 0.3");
    std::fs::write(&file, "").unwrap();
    let first = follower.wait_until(|event| {
        ["assembliesChanged", "outputProduced"].iter().any(|kind| event["kind"] == *kind)
    });
    let is_told = first["kind"] == "assembliesChanged";
    support::within(std::time::Duration::from_secs(20), || !file.exists());
    release(&world, running);
    is_told
}

#[test]
fn a_daemon_can_be_told_not_to_watch() {
    assert!(hears_while_code_runs(&["-d"]));
    assert!(!hears_while_code_runs(&["-d", "--no-watch"]));
}
