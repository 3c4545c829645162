//! `mainstay test`: tests of a session, with the real compiler and a real NUnit.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::terminal::Terminal;
use crate::support::{World, nunit};
use serde_json::Value;

const SUMS: &str = "[<Test>]
let ``one and one`` () = Assert.AreEqual(2, 1 + 1)
[<Test; Category \"wrong\">]
let ``two and two`` () = printfn \"adding\"; Assert.AreEqual(5, 2 + 2)
[<Test; Ignore \"not today\">]
let later () = ()";

impl World {
    fn defines(&self, code: &str) {
        let evaluated = self.eval(code);
        assert_eq!(evaluated["success"], true, "{evaluated}");
    }

    /// With NUnit, and these definitions.
    fn with_tests(code: &str) -> Self {
        let world = Self::new();
        world.defines(&format!("#r @\"{}\"\nopen NUnit.Framework", nunit().display()));
        world.defines(code);
        world
    }
}

/// What differs from run to run. On a slow machine what takes milliseconds takes seconds.
fn without_times(text: &str) -> String {
    let text = text.lines().map(in_milliseconds).collect::<Vec<_>>().join("\n");
    let mut words = text.split(' ').peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let is_number = !word.is_empty() && word.trim_start_matches('(').chars().all(|c| c.is_ascii_digit());
        match words.peek() {
            Some(unit) if is_number && unit.starts_with("ms") => {
                kept.push(if word.starts_with('(') { "(N" } else { "N" });
            }
            Some(_) | None => kept.push(word),
        }
    }
    kept.join(" ")
}

/// What is said of NUnit 2.6, for which no engine is at hand.
const OLD_NUNIT: &str = "the tests of NUnit that the session defined run without its own engine, so not all of it works: version 2 is older than the engines that are known here";

/// A line in which a time in seconds at its end is one in milliseconds.
fn in_milliseconds(line: &str) -> String {
    let seconds = line.strip_suffix(" s").and_then(|rest| rest.rsplit_once(' '));
    match seconds.filter(|(_, number)| number.parse::<f64>().is_ok()) {
        Some((rest, _)) => format!("{rest} 1 ms"),
        None => line.to_owned(),
    }
}

/// One session for all of it: none of these but the last changes what it has.
#[test]
fn tests_of_a_session_are_listed_run_read_by_programs_and_run_again() {
    let world = World::with_tests(SUMS);
    tests_are_listed_without_running(&world);
    tests_that_fail_are_told_and_are_the_exit_code(&world);
    programs_read_what_came_of_each_test(&world);
    tests_are_run_at_the_prompt(&world);
    tests_of_the_session_run_again_when_its_code_has_changed(&world);
}

fn tests_that_fail_are_told_and_are_the_exit_code(world: &World) {
    let all = world.run(["test"]);
    assert_eq!((all.code, all.stderr.as_str()), (1, ""));
    // What a test prints comes when it does, before or behind the results of those before it.
    assert_eq!(all.stdout.lines().filter(|line| *line == "adding").count(), 1);
    let told = all.stdout.replace("adding\n", "");
    assert!(told.ends_with(&format!("\n{OLD_NUNIT}\n")), "{told}");
    insta::assert_snapshot!(without_times(&told.replace(OLD_NUNIT, "")), @"
    passed   one and one (N ms)
    failed   two and two (N ms)
        Expected: 5
        But was:  4
        at two and two(), line 4
    skipped  later: not today
    1 passed, 1 failed, 1 skipped in N ms
    ");
    let good = world.run(["test", "ONE"]);
    assert_eq!(good.code, 0, "{good:?}");
    assert_eq!(world.run(["test", "--category", "Wrong", "one"]).code, 1, "there is none of both");
}

/// A test that ends, and one that waits for an answer to what it asks.
const ASKS: &str = "[<Test>]
let adds () = ()
[<Test>]
let asks () = stdin.ReadLine() |> ignore";

#[test]
fn a_pipe_has_each_result_as_soon_as_it_is_known() {
    let world = World::with_tests(ASKS);
    let mut child = world.command().arg("test").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(without_times(&lines.next().unwrap()), "passed   adds (N ms)");
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let rest: Vec<String> = lines.map(|line| without_times(&line)).collect();
    assert_eq!(rest[0], "passed   asks (N ms)");
    assert!(rest[1].starts_with("2 passed in "), "{rest:?}");
    assert_eq!(rest[2..], [OLD_NUNIT], "each is told once");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_terminal_says_how_far_the_tests_are_until_they_have_ended() {
    let world = World::with_tests(
        "[<Test>]
let adds () = ()
[<Test>]
let waits () = while not (System.IO.File.Exists \"go on\") do System.Threading.Thread.Sleep 10",
    );
    let mut command = world.command();
    command.arg("test");
    let terminal = Terminal::run(&command);
    terminal.wait_for("running: 1 passed, after");
    std::fs::write(world.work().join("go on"), "").unwrap();
    terminal.wait_for("2 passed in");
    assert!(!terminal.screen().contains("running:"), "{}", terminal.screen());
}

fn programs_read_what_came_of_each_test(world: &World) {
    let run = world.run(["test", "--json", "-c", "wrong"]);
    assert_eq!(run.code, 1);
    let mut told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(told["durationMs"].is_u64() && told["tests"][0]["durationMs"].is_u64());
    assert_eq!(told["notes"].take(), serde_json::json!([OLD_NUNIT]));
    told["durationMs"] = Value::Null;
    told["tests"][0]["durationMs"] = Value::Null;
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap(), @r#"
    {
      "durationMs": null,
      "failed": 1,
      "notes": null,
      "passed": 0,
      "skipped": 0,
      "tests": [
        {
          "categories": [
            "wrong"
          ],
          "durationMs": null,
          "failure": {
            "actual": "4",
            "expected": "5",
            "kind": "NUnit.Framework.AssertionException",
            "message": "  Expected: 5\n  But was:  4\n",
            "stack": [
              "two and two(), line 4"
            ]
          },
          "framework": "NUnit",
          "name": "two and two",
          "outcome": "failed"
        }
      ],
      "timedOut": 0
    }
    "#);
}

fn tests_are_listed_without_running(world: &World) {
    let list = world.run(["test", "--list"]);
    assert_eq!(list.code, 0);
    insta::assert_snapshot!(list.stdout, @"
    one and one (NUnit)
    two and two (NUnit) [wrong]
    later (NUnit) skipped: not today
    ");
    let none = world.run(["test", "--list", "nothing"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(none.stderr.replace(OLD_NUNIT, "").trim(), @"none of the 3 tests is meant: the pattern is a part of a name, or with `*` the whole of it, and a category is named whole");
    let json = world.run(["test", "--list", "--json", "two"]);
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["items"][0]["categories"][0], "wrong");
}

#[test]
fn a_test_that_hangs_and_one_that_ends_the_worker_are_the_end_of_no_session() {
    let world = World::with_tests(
        "[<Test>]\nlet spins () = while true do ()\n[<Test>]\nlet works () = ()\n[<Test>]\nlet exits () = exit 7",
    );
    let hung = world.run(["test", "s*s", "--timeout", "200ms"]);
    assert_eq!(hung.code, 1);
    insta::assert_snapshot!(without_times(&hung.stdout.replace(OLD_NUNIT, "")), @"
    timeout  spins: it ran longer than N ms
    0 passed, 1 timed out in N ms
    a test goes on although its time is over: a hard reset of the session ends it
    ");
    assert_eq!(world.run(["session", "reset", "--hard"]).code, 0);
    let world = World::with_tests("[<Test>]\nlet exits () = exit 7\n[<Test>]\nlet works () = ()");
    let exited = world.run(["test", "--json"]);
    assert_eq!(exited.code, 1);
    let told: Value = serde_json::from_str(&exited.stdout).unwrap();
    assert_eq!((&told["success"], told["ending"].as_str()), (&Value::Bool(false), Some("workerExited")));
    assert_eq!(world.run(["test", "works"]).code, 0, "the tests are there again");
}

#[test]
fn a_run_of_tests_is_not_run_again_when_the_session_is_rebuilt() {
    let world = World::with_tests(
        "let mutable runs = 0\n[<Test>]\nlet counts () = runs <- runs + 1; printfn \"run\"",
    );
    assert_eq!(world.run(["test"]).code, 0);
    assert_eq!(world.eval("runs")["value"], "1");
    assert_eq!(world.run(["test"]).code, 0);
    assert_eq!(world.eval("System.Diagnostics.Process.GetCurrentProcess().Kill()")["success"], false);
    assert_eq!(world.eval("runs")["value"], "0", "what its tests did to the session is not kept");
}

#[test]
fn where_there_are_no_tests_that_is_a_failure_with_a_next_step() {
    let world = World::new();
    let none = world.run(["test"]);
    assert_eq!(none.code, 1);
    insta::assert_snapshot!(none.stdout, @"no test was found, and nothing the session refers to knows a test framework: `#r` the assembly of your tests, or that of NUnit, xUnit, MSTest, TUnit or Expecto, and define tests with its attributes");
    let wrong = world.run(["test", "--timeout", "0s"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

fn tests_are_run_at_the_prompt(world: &World) {
    let terminal = Terminal::open(world);
    terminal.wait_for_last_line("work>");
    terminal.enter(":test one");
    terminal.wait_for("1 passed in");
    terminal.wait_for_last_line("work>");
}

/// How many passed, how many failed, and which assemblies were left alone.
fn verdict(run: &Value) -> (u64, u64, Value) {
    (run["passed"].as_u64().unwrap(), run["failed"].as_u64().unwrap(), run["unchanged"].clone())
}

fn tests_of_the_session_run_again_when_its_code_has_changed(world: &World) {
    let mut runs = world.follow_lines(&["test", "--watch", "--json"]);
    assert_eq!(verdict(&runs.next()), (1, 1, Value::Null));
    world.defines("let looked = 1");
    assert_eq!(verdict(&runs.next()), (1, 1, Value::Null));
    // The next daemon tells what happens.
    world.kill_daemon();
    world.defines("[<Test>]\nlet ``two and two`` () = Assert.AreEqual(4, 2 + 2)");
    assert_eq!(verdict(&runs.next()), (2, 0, Value::Null));
    assert_eq!(runs.interrupt(), Some(0), "all passed when they last ran");
}

#[test]
fn of_a_solution_the_tests_run_again_that_a_written_file_touches() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\nwatch = \"mark\"\n").unwrap();
    let write = |name: &str, text: &str| {
        let path = world.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let project = |file: &str, references: &str| {
        format!(
            r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="{file}" />{references}</ItemGroup>
</Project>"#
        )
    };
    let nunit = format!(
        r#"<Reference Include="nunit.framework"><HintPath>{}</HintPath></Reference>"#,
        nunit().display()
    );
    let with_shop = format!(r#"{nunit}<ProjectReference Include="../Shop/Shop.fsproj" />"#);
    write("Shop/Shop.fsproj", &project("Shop.fs", ""));
    write("Shop/Shop.fs", "module Shop\nlet price = 1\n");
    write("ShopTests/ShopTests.fsproj", &project("Tests.fs", &with_shop));
    write(
        "ShopTests/Tests.fs",
        "module ShopTests\nopen NUnit.Framework\n[<Test>]\nlet ``it costs two`` () = Assert.AreEqual(2, Shop.price)\n",
    );
    write("SumTests/SumTests.fsproj", &project("Tests.fs", &nunit));
    write(
        "SumTests/Tests.fs",
        "module SumTests\nopen NUnit.Framework\n[<Test>]\nlet adds () = Assert.AreEqual(2, 1 + 1)\n",
    );
    write(
        "All.slnx",
        r#"<Solution>
  <Project Path="Shop/Shop.fsproj" /><Project Path="ShopTests/ShopTests.fsproj" /><Project Path="SumTests/SumTests.fsproj" />
</Solution>"#,
    );
    let created = world.run(["session", "new", "--project", "All.slnx"]);
    assert_eq!(created.code, 0, "{created:?}");
    let built = world.run(["session", "rebuild"]);
    assert_eq!(built.code, 0, "{built:?}");

    let mut runs = world.follow_lines(&["test", "--watch", "--json"]);
    assert_eq!(verdict(&runs.next()), (1, 1, Value::Null));
    write("Shop/Shop.fs", "module Shop\nlet price = 2\n");
    assert_eq!(verdict(&runs.next()), (1, 0, serde_json::json!(["SumTests"])));
    write(
        "SumTests/Tests.fs",
        "module SumTests\nopen NUnit.Framework\n[<Test>]\nlet adds () = Assert.AreEqual(3, 1 + 1)\n",
    );
    assert_eq!(verdict(&runs.next()), (0, 1, serde_json::json!(["ShopTests"])));
    let mut events = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write("Shop/Shop.fs", "module Shop\nlet price = \n");
    events.wait_for("jobEnded");
    write("Shop/Shop.fs", "module Shop\nlet price = 3\n");
    assert_eq!(
        verdict(&runs.next()),
        (0, 1, serde_json::json!(["SumTests"])),
        "a saved fix is built and run"
    );
    assert_eq!(runs.interrupt(), Some(1), "one failed when it last ran");

    // Without --watch too, no test passes for sources that were never built.
    let mut events = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    write("Shop/Shop.fs", "module Shop\nlet price = \n");
    events.wait_for("sourcesChanged");
    let broken = world.run(["test"]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert!(broken.stderr.contains("no test was run") && !broken.stdout.contains("passed"), "{broken:?}");
    write("Shop/Shop.fs", "module Shop\nlet price = 2\n");
    events.wait_for("sourcesChanged");
    let mended = world.run(["test", "costs"]);
    assert!(mended.stdout.contains("1 passed"), "{mended:?}");
}

#[test]
fn tests_are_written_from_the_type_of_a_function_and_say_what_breaks_them() {
    let world = World::new();
    world.defines("let turned (items: int list) = List.rev items");
    let written = world.run(["scaffold", "turned"]);
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    world.defines(&written.stdout);
    let check = |claim: &str| world.eval(&format!("CandidatesOfTurned.``turned {claim}`` ()"));
    for claim in ["keeps the length", "keeps the items", "is its own inverse"] {
        assert_eq!(check(claim)["success"], true, "{claim}");
    }
    let broken = check("is idempotent");
    let message = broken["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("turned is idempotent: is not so with ["), "{broken}");
    let unknown = world.run(["scaffold", "turnd"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
}

#[test]
fn code_is_reviewed_where_it_lies() {
    let world = World::new();
    std::fs::write(
        world.work().join("Cart.fs"),
        "module Cart\nlet isFree price = if price = 0 then true else false\n",
    )
    .unwrap();
    let review = world.run(["review", "Cart.fs"]);
    assert_eq!(review.code, 0, "{review:?}");
    assert_eq!(review.stdout, "Cart.fs:2:20 FSR001 the condition is the value already: `price = 0`\n");
    let marked = [b"\xef\xbb\xbf".as_slice(), &std::fs::read(world.work().join("Cart.fs")).unwrap()].concat();
    std::fs::write(world.work().join("Marked.fs"), &marked).unwrap();
    let same = review.stdout.replace("Cart.fs", "Marked.fs");
    assert_eq!(world.run(["review", "Marked.fs"]).stdout, same, "with a byte order mark");
    assert_eq!(world.run_with_input(["review", "-"], &marked).stdout, review.stdout.replace("Cart.fs", "-"));
    let broken = world.run_with_input(["review", "-"], b"let x = (1 +");
    assert_eq!(broken.code, 1, "{broken:?}");
}
