//! `mainstay test --watch` in a project whose sources are saved: the tests that reach a change run first and at once, in the worker that is
//! there, and then the others.

use serde_json::{Value, json};

use crate::support::tool_call::call;
use crate::support::{World, kill};

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Cart.fs" /><Compile Include="Tests.fs" /></ItemGroup>
  <ItemGroup><PackageReference Include="xunit" Version="2.9.3" /></ItemGroup>
</Project>"#;

/// The source, with the body of a function.
pub(crate) fn source(price: &str) -> String {
    format!(
        "module Shop.Cart\nlet price (count: int) = {price}\nlet unused () = 1\nlet other (count: int) = count + 1\n"
    )
}

const TESTS: &str = "module Shop.Tests
open Xunit
open Shop
[<Fact>]
let prices () = Assert.Equal(20, Cart.price 2)
[<Fact>]
let others () = Assert.Equal(2, Cart.other 1)
[<Fact; Trait(\"Category\", \"integration\")>]
let slowly () = Assert.Equal(20, Cart.price 2)
";

/// A project with a library's code and tests of it in one assembly, in a session that takes in what is saved.
fn shop() -> World {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\nwatch = \"swap\"\n").unwrap();
    open_shop(&world);
    world
}

/// Makes the project and a session of it.
pub(crate) fn open_shop(world: &World) {
    let write = |name: &str, text: &str| std::fs::write(world.work().join(name), text).unwrap();
    write("Shop.fsproj", PROJECT);
    write("Cart.fs", &source("count * 10"));
    write("Tests.fs", TESTS);
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
}

/// Saves the code as editors do: another file takes the place of the former.
pub(crate) fn save(world: &World, text: &str) {
    save_as(world, "Cart.fs", text);
}

fn save_as(world: &World, file: &str, text: &str) {
    std::fs::write(world.work().join("new"), text).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join(file)).unwrap();
}

/// The tests that ran, each with how it ended.
fn ran(run: &Value) -> Vec<(&str, &str)> {
    let tests = run["tests"].as_array().unwrap();
    tests.iter().map(|test| (test["name"].as_str().unwrap(), test["outcome"].as_str().unwrap())).collect()
}

#[test]
fn a_save_runs_the_tests_that_reach_it_first_and_then_the_others() {
    let world = shop();
    let mut runs = world.follow_lines(&["test", "--watch", "--json"]);
    let first = runs.next();
    assert_eq!(
        (first["passed"].as_u64(), first["choice"]["onDemand"].as_u64()),
        (Some(2), Some(1)),
        "{first}"
    );
    let pid = world.worker_pid();

    save(&world, &source("count * 9"));
    let saved = std::time::Instant::now();
    let reached = runs.next();
    println!("reached after {:?}", saved.elapsed());
    assert_eq!(ran(&reached), [("Shop.Tests.prices", "failed")], "{reached}");
    let choice = &reached["choice"];
    assert_eq!(
        (&choice["part"], &choice["changed"], &choice["chosen"], &choice["found"]),
        (&json!("reached"), &json!(["Shop.Cart.price"]), &json!(1), &json!(3)),
        "{reached}"
    );
    assert!(reached["tests"][0]["place"]["file"].as_str().unwrap().ends_with("/Tests.fs"), "{reached}");
    let rest = runs.next();
    assert_eq!(
        (ran(&rest), &rest["choice"]["part"]),
        (vec![("Shop.Tests.others", "passed")], &json!("rest"))
    );
    assert_eq!(world.worker_pid(), pid);
    let status = call(&world, "get_live_test_status", &json!({}));
    let failing = &status["failing"];
    assert_eq!(failing[0]["name"], "Shop.Tests.prices", "{status}");
    assert!(failing[0]["message"].as_str().is_some_and(|message| message.contains("18")), "{status}");
    assert_eq!(
        (failing.as_array().map(Vec::len), &status["last"]["passed"]),
        (Some(1), &json!(1)),
        "{status}"
    );

    save(&world, &source("count * 10"));
    assert_eq!(ran(&runs.next()), [("Shop.Tests.prices", "passed")]);
    assert_eq!(ran(&runs.next()), [("Shop.Tests.others", "passed")]);
    let status = call(&world, "get_live_test_status", &json!({}));
    assert_eq!((status.get("failing"), status.get("changedSince")), (None, None), "{status}");

    let set = call(&world, "set_run_policy", &json!({ "category": "integration", "policy": "save" }));
    assert_eq!(set["policy"], "save", "{set}");
    let never = call(&world, "set_run_policy", &json!({ "category": "integration", "policy": "never" }));
    assert_eq!(never["code"], "invalid_argument", "{never}");
    let all = runs.next();
    assert_eq!(
        (&all["choice"]["part"], ran(&all).len()),
        (&json!("all"), 0),
        "the session's code ran: {all}"
    );
    save(&world, &source("10 * count"));
    let both = [("Shop.Tests.prices", "passed"), ("Shop.Tests.slowly", "passed")];
    let run = runs.next();
    let mut known = ran(&run);
    known.sort_unstable();
    assert_eq!(known, both, "{run}");
    assert_eq!(ran(&runs.next()), [("Shop.Tests.others", "passed")]);
    assert_eq!(runs.interrupt(), Some(0), "all passed when they last ran");
}

#[test]
fn a_test_that_is_saved_runs_at_once_and_one_that_is_taken_away_no_more() {
    let world = shop();
    let mut runs = world.follow_lines(&["test", "--watch", "--json"]);
    assert_eq!(runs.next()["passed"], 2);
    let pid = world.worker_pid();

    // One that fails, before there is anything that could pass it.
    let fresh = "[<Fact>]\nlet ``has no price below zero`` () = Assert.Equal(0, Cart.price -1)\n";
    save_as(&world, "Tests.fs", &format!("{TESTS}{fresh}"));
    let reached = runs.next();
    assert_eq!(ran(&reached), [("Shop.Tests.has no price below zero", "failed")], "{reached}");
    let test = &reached["tests"][0];
    assert!(test["place"]["file"].as_str().unwrap().ends_with("/Tests.fs"), "{reached}");
    assert_eq!((&test["place"]["line"], &test["assembly"]), (&json!(10), &json!("Shop")), "{reached}");
    assert_eq!(reached["choice"]["found"], 4, "{reached}");
    assert_eq!(ran(&runs.next()).len(), 2, "the others");

    // The code that passes it reaches it like any other.
    save(&world, &source("max 0 count * 10"));
    let reached = runs.next();
    let mut known = ran(&reached);
    known.sort_unstable();
    let both = [("Shop.Tests.has no price below zero", "passed"), ("Shop.Tests.prices", "passed")];
    assert_eq!(known, both, "{reached}");
    assert_eq!(ran(&runs.next()), [("Shop.Tests.others", "passed")]);

    // Another name, rows and a category; of one that was built, another mark.
    let rows = "[<Theory; InlineData(1, 10); InlineData(2, 21)>]\nlet costs (count: int) (price: int) = Assert.Equal(price, Cart.price count)\n";
    let marked = TESTS.replace("[<Fact>]\nlet others", "[<Fact(Skip = \"later\")>]\nlet others");
    save_as(&world, "Tests.fs", &format!("{marked}{rows}"));
    let reached = runs.next();
    let mut known = ran(&reached);
    known.sort_unstable();
    let expected = [
        ("Shop.Tests.costs(count: 1, price: 10)", "passed"),
        ("Shop.Tests.costs(count: 2, price: 21)", "failed"),
        ("Shop.Tests.others", "skipped"),
    ];
    assert_eq!(known, expected, "{reached}");
    assert_eq!(reached["choice"]["found"], 5, "{reached}");
    assert_eq!(ran(&runs.next()), [("Shop.Tests.prices", "passed")]);
    assert_eq!(world.worker_pid(), pid);

    // A build has the same tests by the same names.
    let listed = || {
        let told = world.run(["test", "--list"]).stdout;
        let mut lines: Vec<String> = told.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let saved = listed();
    assert_eq!(saved.len(), 5, "{saved:?}");
    let rebuilt = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert_eq!(listed(), saved);
}

/// What the command says, with each number of lines before the name of its declaration.
fn coverage(world: &World, subject: &[&str]) -> String {
    let told = world.run(["coverage"].into_iter().chain(subject.iter().copied()));
    assert_eq!(told.code, 0, "{told:?}");
    told.stdout
}

#[test]
fn coverage_follows_what_is_saved_and_outlives_its_worker() {
    let world = shop();
    assert!(coverage(&world, &["Cart.price"]).contains("not run"), "nothing has run yet");
    assert_eq!(world.run(["test"]).code, 0);
    insta::assert_snapshot!(coverage(&world, &[]));
    insta::assert_snapshot!(coverage(&world, &["Cart.fs"]));
    insta::assert_snapshot!(coverage(&world, &["Cart.price"]));

    // The lines are those of what was saved, which runs and breaks a test.
    let last = world.session()["lastSeq"].as_u64().unwrap();
    let mut follower = world.follow(last);
    save(&world, &source("\n  let each = 9\n  count * each"));
    follower.wait_for("sourcesSwapped");
    insta::assert_snapshot!(coverage(&world, &["Cart.fs"]));
    assert_eq!(world.run(["test"]).code, 1);
    insta::assert_snapshot!(coverage(&world, &["Cart.fs"]));

    // The next worker is built from what was saved: nothing has run with it.
    let pid = world.worker_pid();
    kill(pid);
    follower.wait_for("workerExited");
    follower.wait_for("warmUpCompleted");
    insta::assert_snapshot!(coverage(&world, &["Cart.fs"]));
    assert_eq!(world.run(["test"]).code, 1);
    kill(world.worker_pid());
    follower.wait_for("workerExited");
    follower.wait_for("warmUpCompleted");
    insta::assert_snapshot!(coverage(&world, &["Cart.fs"]));

    let unknown = world.run(["coverage", "Cart.nothing"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    insta::assert_snapshot!(unknown.stderr);
}

/// A function of which a test runs one branch, and one that only reflection calls.
const BRANCHES: &str = "module Shop.Cart
let price (count: int) =
  if count > 100 then
    count * 9
  else
    count * 10
let unused () = 1
let other (count: int) = count + 1
";

const REFLECTING: &str = "[<Fact>]
let reflects () =
  let found = System.Type.GetType(\"Shop.Cart\").GetMethod \"unused\"
  Assert.Equal(1, unbox (found.Invoke(null, [||])))
";

#[test]
fn measured_lines_are_those_that_the_tests_ran() {
    let world = shop();
    let follow = |world: &World| world.follow(world.session()["lastSeq"].as_u64().unwrap());
    save(&world, BRANCHES);
    save_as(&world, "Tests.fs", &format!("{TESTS}{REFLECTING}"));
    let rebuilt = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert_eq!(world.run(["test"]).code, 0);
    insta::assert_snapshot!("lines_by_calls", coverage(&world, &["Cart.fs"]));
    let pid = world.worker_pid();
    let events = world.session()["lastSeq"].clone();
    insta::assert_snapshot!("lines_as_measured", coverage(&world, &["--measure", "Cart.fs"]));
    assert_eq!(coverage(&world, &["Cart.fs"]), coverage(&world, &["--measure", "Cart.fs"]), "it is kept");
    assert_eq!(
        (world.worker_pid(), &world.session()["lastSeq"]),
        (pid, &events),
        "nothing ran in the session"
    );

    // What is saved counts by its calls, until it is measured again.
    let mut follower = follow(&world);
    save(&world, &BRANCHES.replace("count + 1", "1 + count"));
    follower.wait_for("sourcesSwapped");
    let told = world.run(["coverage", "--json", "Cart.fs"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["tests"], &told["measured"]), (&json!(4), &json!(2)), "{told}");
    assert!(told.get("measuring").is_none(), "nothing runs by itself: {told}");
}

#[test]
fn lines_are_measured_in_the_background_where_the_settings_say_so() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[tests]\ncoverage = \"measured\"\n").unwrap();
    open_shop(&world);
    let told = |arguments: &[&str]| -> Value {
        let told = world.run(["coverage", "--json"].iter().chain(arguments));
        serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"))
    };
    let first = told(&[]);
    assert_eq!((&first["measuring"], first.get("measured")), (&json!(true), None), "{first}");
    // Whoever waits waits for the measurement that goes on.
    let waited = told(&["--measure"]);
    assert_eq!(waited["measured"], json!(2), "{waited}");
    let then = told(&[]);
    assert_eq!(
        (then.get("measuring"), &then["measured"]),
        (None, &json!(2)),
        "the one on demand is no reason to measure again: {then}"
    );
}
