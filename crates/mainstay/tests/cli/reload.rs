//! What of a session runs again when a script that it loaded has changed, with the real compiler: in the worker that is there where that
//! gives the same as a new one, and else in a new one.

use std::time::Duration;

use crate::support::{Finished, World, kill, within};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

fn write(world: &World, name: &str, text: &str) {
    // As editors do: another file takes the place of the former.
    std::fs::write(world.work().join("new"), text).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join(name)).unwrap();
}

fn eval(world: &World, code: &str) -> Value {
    let evaluated = world.eval(code);
    assert_eq!(evaluated["success"], true, "{code}: {evaluated}");
    evaluated["value"].clone()
}

/// What a refresh says.
fn refreshed(world: &World) -> String {
    ok(world.run(["session", "refresh"])).stdout
}

/// What a refresh would do.
fn would(world: &World) -> Value {
    ok(world.run(["session", "refresh", "--dry-run", "--json"])).json()["would"].clone()
}

/// How many evals the session says are stale.
fn stale(world: &World) -> Value {
    ok(world.run(["session", "show", "--json"])).json()["validity"]["stale"].clone()
}

/// A session with what depends on a script and what does not.
fn shop() -> World {
    let world = World::new();
    write(&world, "tax.fsx", "let rate = 0.2");
    for code in [
        "#load \"tax.fsx\"",
        "let price = 100.0 * Tax.rate",
        "let data = System.Guid.NewGuid()",
        "let total = price * 3.0",
    ] {
        eval(&world, code);
    }
    world
}

#[test]
fn what_depends_on_a_script_runs_again_in_the_worker_that_is_there_and_nothing_else_does() {
    let world = shop();
    let (pid, data) = (world.worker_pid(), eval(&world, "data"));
    write(&world, "tax.fsx", "let rate = 0.3");
    assert_eq!(stale(&world), 3);
    assert_eq!(would(&world), json!({ "count": 3, "of": 5 }));
    assert_eq!(
        refreshed(&world),
        "3 of 5 submissions ran again: price is 30.0 (was 20.0), total is 90.0 (was 60.0)\n"
    );
    assert_eq!((world.worker_pid(), eval(&world, "data")), (pid, data.clone()));
    assert_eq!((eval(&world, "total"), stale(&world)), ("90.0".into(), 0.into()));
    assert_eq!(world.run(["session", "refresh"]).stderr, "nothing is out of date\n");

    write(&world, "tax.fsx", "let rate = 0.2 // again");
    assert!(
        refreshed(&world)
            .contains("price is 20.0 (was 30.0), total is 60.0 (was 90.0), it is 60.0 (was 90.0)"),
        "what it had last counts, not what it had first"
    );
    write(&world, "tax.fsx", "let rate = 0.2");
    assert!(refreshed(&world).ends_with("ran again: nothing gave another value\n"));
    assert_eq!((world.worker_pid(), eval(&world, "data")), (pid, data.clone()));

    let all = ok(world.run(["session", "refresh", "--all"]));
    assert_eq!(all.stderr, "nothing is out of date; all runs again\n");
    assert!(all.stdout.contains("submissions ran again in a new worker: data is "), "{all:?}");
    assert_ne!(world.worker_pid(), pid);
    assert_ne!(eval(&world, "data"), data);
}

#[test]
fn a_script_that_does_not_compile_leaves_what_it_defined_and_is_named_with_its_error() {
    let world = shop();
    let pid = world.worker_pid();
    write(&world, "tax.fsx", "let name = 1\nlet rate = 0.3 + \"x\"");
    let said = refreshed(&world);
    assert!(said.starts_with("1 of 4 submissions ran again: #4 failed: FS0001 "), "{said}");
    assert!(said.contains("tax.fsx(2,"), "{said}");
    assert!(said.ends_with(", #7, #11 did not run\n"), "{said}");
    assert_eq!((eval(&world, "price"), stale(&world), world.worker_pid()), ("20.0".into(), 4.into(), pid));
    write(&world, "tax.fsx", "let rate : float = failwith \"no rate\"");
    assert!(refreshed(&world).contains("#4 failed: System.Exception: no rate"));
    assert_eq!(eval(&world, "Tax.rate"), "0.2");
    write(&world, "tax.fsx", "let rate = 0.3");
    let said = refreshed(&world);
    assert!(said.contains("price is 30.0 (was 20.0), total is 90.0 (was 60.0)"), "{said}");
    assert_eq!((stale(&world), world.worker_pid()), (0.into(), pid));
}

#[test]
fn what_must_not_run_twice_in_a_process_has_all_run_in_a_new_one() {
    let world = shop();
    eval(&world, "let seen = ResizeArray<float>()");
    eval(&world, "seen.Add price");
    let pid = world.worker_pid();
    write(&world, "tax.fsx", "let rate = 0.3");
    let because = "#15 does more than define";
    assert_eq!(would(&world), json!({ "count": 6, "of": 6, "because": because }));
    let said = refreshed(&world);
    assert!(said.starts_with(&format!("6 submissions ran again in a new worker ({because}): ")), "{said}");
    assert_eq!(eval(&world, "List.ofSeq seen"), "[30.0]");
    assert_ne!(world.worker_pid(), pid);

    write(&world, "tax.fsx", "let rate = 0.4\nprintfn \"loaded\"");
    eval(&world, "let after = 1");
    let would = would(&world)["because"].as_str().unwrap().to_owned();
    assert_eq!(would, "#4 loads tax.fsx, which does more than define");
}

#[test]
fn a_value_of_a_type_that_a_script_defined_is_of_the_new_type_afterwards() {
    let world = World::new();
    write(&world, "shape.fsx", "type Shape = { Side: int }\nlet area shape = shape.Side * shape.Side");
    for code in [
        "#load \"shape.fsx\"",
        "open Shape",
        "let one = { Side = 2 }",
        "let kept = [ one; { Side = 3 } ]",
        "let boxed : obj list = [ box one ]",
        "let other = 5",
    ] {
        eval(&world, code);
    }
    let pid = world.worker_pid();
    write(&world, "shape.fsx", "type Shape = { Side: int }\nlet area shape = 10 * shape.Side * shape.Side");
    assert_eq!(would(&world), json!({ "count": 5, "of": 6 }));
    assert!(refreshed(&world).starts_with("5 of 6 submissions ran again"));
    assert_eq!(eval(&world, "kept |> List.map area"), "[40; 90]");
    assert_eq!(eval(&world, "boxed |> List.forall (fun one -> one :? Shape)"), "true");
    assert_eq!(world.worker_pid(), pid);
}

#[test]
fn scripts_that_load_scripts_and_scripts_that_two_cells_load_are_loaded_again_where_they_were() {
    let world = World::new();
    write(&world, "base.fsx", "type Unit = { Factor: int }\nlet unit = { Factor = 1 }");
    write(&world, "shop.fsx", "#load \"base.fsx\"\nlet sell n = n * Base.unit.Factor");
    write(&world, "apart.fsx", "let apart = 7");
    for code in [
        "#load \"base.fsx\"",
        "let early = Base.unit",
        "#load \"shop.fsx\" \"apart.fsx\"",
        "let late = Base.unit",
        "let sold = Shop.sell 10",
        "#load \"apart.fsx\"",
        "let away = Apart.apart",
    ] {
        eval(&world, code);
    }
    let pid = world.worker_pid();
    write(&world, "shop.fsx", "#load \"base.fsx\"\nlet sell n = 2 * n * Base.unit.Factor");
    assert_eq!(would(&world)["count"], 5, "all but what was there before it was loaded");
    assert!(refreshed(&world).contains("sold is 20 (was 10)"));
    write(&world, "base.fsx", "type Unit = { Factor: int }\nlet unit = { Factor = 3 }");
    assert_eq!(would(&world)["count"], 7);
    let said = refreshed(&world);
    assert!(said.contains("early is { Factor = 3 } (was { Factor = 1 })"), "{said}");
    assert!(said.contains("sold is 60 (was 20)"), "{said}");
    write(&world, "apart.fsx", "let apart = 8");
    assert!(refreshed(&world).contains("away is 8 (was 7)"));
    assert_eq!(world.worker_pid(), pid);

    std::fs::remove_file(world.work().join("base.fsx")).unwrap();
    let gone = world.run(["session", "refresh"]);
    assert_eq!((gone.code, gone.stderr.contains("base.fsx is gone")), (1, true), "{gone:?}");
    assert_eq!((world.worker_pid(), eval(&world, "sold")), (pid, "60".into()));
}

#[test]
fn cells_that_failed_that_printed_or_that_are_of_a_file_run_again_as_others_do() {
    let world = World::new();
    write(&world, "tax.fsx", "let rate = 0");
    write(&world, "cells.fsx", "#load \"tax.fsx\"\n\nlet twice = 2 * Tax.rate\n");
    ok(world.run(["run", "cells.fsx"]));
    assert_eq!(world.eval("let share = 100 / Tax.rate")["success"], false);
    eval(&world, "let shown = (printfn \"the rate is %d\" Tax.rate; Tax.rate)");
    let (pid, before) = (world.worker_pid(), world.session()["lastSeq"].as_u64().unwrap());
    write(&world, "tax.fsx", "let rate = 20");
    let said = refreshed(&world);
    assert!(said.contains("twice is 40 (was 0)") && said.contains("shown is 20 (was 0)"), "{said}");
    assert_eq!((eval(&world, "share"), world.worker_pid()), ("5".into(), pid));
    let printed = |event: &Value| event["kind"] == "outputProduced";
    let since = world.events().into_iter().filter(|event| event["seq"].as_u64().unwrap() > before);
    assert_eq!(since.filter(printed).count(), 0, "what it prints was told the first time");
}

#[test]
fn names_mean_afterwards_what_they_would_had_everything_run_again() {
    let world = shop();
    eval(&world, "let price = 1.0");
    write(&world, "tax.fsx", "let rate = 0.3");
    assert_eq!(would(&world)["because"], "#13 gave `price` another meaning");
    refreshed(&world);
    assert_eq!((eval(&world, "price"), eval(&world, "total")), ("1.0".into(), "90.0".into()));

    // What is opened may have names of its own.
    eval(&world, "open System.IO");
    write(&world, "tax.fsx", "let rate = 0.4");
    assert_eq!(would(&world)["because"], "#13 gave `price` another meaning");
    let world = shop();
    eval(&world, "open System.IO");
    eval(&world, "open Microsoft.FSharp.Linq");
    write(&world, "tax.fsx", "let rate = 0.3");
    assert_eq!(would(&world)["because"], "it is not known which names #15 opened");
}

#[test]
fn a_fork_is_rebuilt_whole() {
    let world = shop();
    ok(world.run(["session", "fork", "--name", "branch"]));
    eval(&world, "let own = Tax.rate");
    write(&world, "tax.fsx", "let rate = 0.3");
    let would =
        ok(world.run(["session", "refresh", "branch", "--dry-run", "--json"])).json()["would"].clone();
    assert_eq!(would["because"], "the session has code of another session", "{would}");
    let said = ok(world.run(["session", "refresh", "branch"])).stdout;
    assert!(said.contains("price is 30.0 (was 20.0)"), "{said}");
}

/// A session that is in the middle of a reload: its script waits for a file.
fn in_the_middle() -> World {
    let world = shop();
    let wait = "while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5";
    let reached = "System.IO.File.WriteAllText(\"reached\", \"\")";
    write(&world, "tax.fsx", &format!("let rate =\n    {reached}\n    {wait}\n    0.3"));
    let before = world.session()["lastSeq"].as_u64().unwrap();
    let mut follower = world.follow(before);
    let refresh = world.command().args(["session", "refresh"]).spawn().unwrap();
    follower.wait_until(|event| event["body"]["reason"] == "refreshed");
    assert!(within(Duration::from_secs(60), || world.work().join("reached").exists()));
    drop(refresh);
    world
}

#[test]
fn a_worker_or_a_daemon_that_dies_in_the_middle_is_rebuilt_whole() {
    let world = in_the_middle();
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap() - 1);
    let pid = world
        .events()
        .iter()
        .rev()
        .find_map(|event| event["body"]["pid"].as_i64().filter(|_| event["kind"] == "warmUpCompleted"));
    kill(i32::try_from(pid.unwrap()).unwrap());
    follower.wait_until(|event| event["body"]["reason"] == "workerLost");
    world.kill_daemon();
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!((eval(&world, "total"), stale(&world)), ("90.0".into(), 0.into()));
    let mut reasons = world.events();
    reasons.retain(|event| event["kind"] == "warmUpStarted");
    let reasons: Vec<_> = reasons.iter().map(|event| event["body"]["reason"].clone()).collect();
    assert_eq!(reasons, ["started", "refreshed", "workerLost", "daemonLost"]);
}

#[test]
fn a_reload_that_takes_too_long_can_be_ended_by_a_hard_reset() {
    let world = in_the_middle();
    ok(world.run(["session", "reset", "--hard"]));
    assert_eq!(eval(&world, "1 + 1"), "2");
}

/// A cell that defines one of a few names, or loads a script.
#[derive(Clone, Debug)]
enum Cell {
    Load(&'static str),
    OfScript { name: &'static str, script: &'static str, times: u8 },
    OfName { name: &'static str, of: Index, plus: u8 },
    Function { name: &'static str, script: &'static str },
    Record { name: &'static str },
    Plain { name: &'static str, value: u8 },
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let name = || select(vec!["p", "q", "r", "s", "t"]);
    let script = || select(vec!["One", "Two"]);
    prop_oneof![
        1 => select(vec!["one", "two"]).prop_map(Cell::Load),
        3 => (name(), script(), 1..9_u8).prop_map(|(name, script, times)| Cell::OfScript { name, script, times }),
        3 => (name(), any::<Index>(), 1..9_u8).prop_map(|(name, of, plus)| Cell::OfName { name, of, plus }),
        1 => (name(), script()).prop_map(|(name, script)| Cell::Function { name, script }),
        1 => name().prop_map(|name| Cell::Record { name }),
        2 => (name(), any::<u8>()).prop_map(|(name, value)| Cell::Plain { name, value }),
    ]
}

/// The code of cells: each of a name that is a number then.
fn codes(cells: &[Cell]) -> (Vec<String>, Vec<&'static str>) {
    let mut codes = vec!["#load \"one.fsx\"".to_owned(), "#load \"two.fsx\"".to_owned()];
    let mut numbers: Vec<&'static str> = Vec::new();
    for cell in cells {
        let (code, name) = match cell {
            Cell::Load(script) => (format!("#load \"{script}.fsx\""), None),
            Cell::OfScript { name, script, times } => {
                (format!("let {name} = {times} * {script}.value"), Some(*name))
            }
            Cell::OfName { of, .. } if numbers.is_empty() => {
                (format!("let {} = 0", ["p"][of.index(1)]), Some("p"))
            }
            Cell::OfName { name, of, plus } => {
                (format!("let {name} = {} + {plus}", numbers[of.index(numbers.len())]), Some(*name))
            }
            Cell::Function { name, script } => (
                format!("let twice_{name} x = 2 * x * {script}.value\nlet {name} = twice_{name} 3"),
                Some(*name),
            ),
            Cell::Record { name } => (
                format!("let kept_{name} = [ {{ One.Held = Two.value }} ]\nlet {name} = One.sum kept_{name}"),
                Some(*name),
            ),
            Cell::Plain { name, value } => (format!("let {name} = {value}"), Some(*name)),
        };
        codes.push(code);
        numbers.retain(|known| Some(*known) != name);
        numbers.extend(name);
    }
    (codes, numbers)
}

fn scripts(world: &World, one: u8, two: u8) {
    let record =
        "type Box = { Held: int }\nlet sum (boxes: Box list) = boxes |> List.sumBy (fun one -> one.Held)";
    write(world, "one.fsx", &format!("{record}\nlet value = {one}"));
    write(world, "two.fsx", &format!("#load \"one.fsx\"\nlet value = {two} + One.value"));
}

#[test]
fn values_are_the_same_as_if_everything_had_run_again() {
    let world = World::new();
    let cases = std::env::var("MAINSTAY_RELOADS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(8);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let (in_place, number) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let edits = vec((0..2_u8, 0..2_u8), 1..3);
    let checked = runner.run(&(vec(any_cell(), 1..8), edits), |(cells, edits)| {
        number.set(number.get() + 1);
        let name = format!("case{}", number.get());
        scripts(&world, 10, 20);
        ok(world.run(["session", "new", "--name", &name]));
        let run =
            |code: &str| ok(world.run_with_input(["eval", "--session", &name, "-"], code.as_bytes())).stdout;
        let (codes, numbers) = codes(&cells);
        codes.iter().for_each(|code| drop(run(code)));
        let all = format!("[ {} ]", numbers.join("; "));
        for (one, two) in edits {
            scripts(&world, 10 + one, 20 + two);
            let said = ok(world.run(["session", "refresh", &name])).stdout;
            in_place.set(in_place.get() + u32::from(said.contains(" of ")));
            prop_assert!(!said.contains("failed"), "{said}");
        }
        let partly = run(&all);
        ok(world.run(["session", "refresh", &name, "--all"]));
        prop_assert_eq!(partly, run(&all), "{:?}", codes);
        ok(world.run(["session", "stop", &name]));
        Ok(())
    });
    checked.unwrap();
    assert!(in_place.get() > 0, "something ran again in the worker that was there");
}
