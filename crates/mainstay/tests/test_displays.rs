//! What code shows, from the compiler to whoever sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;
#[path = "support/terminal.rs"]
#[allow(dead_code, reason = "other tests type more")]
mod terminal;

use serde_json::{Value, json};
use support::{Finished, World};
use terminal::Terminal;

/// Prints, shows a table, prints, shows a picture, and has a chart as its value.
const SHOWING: &str = "printf \"before\"
Mainstay.display [ \"Ada\", 36; \"Grace\", 85 ]
printfn \"after\"
Mainstay.display [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |]
Mainstay.bar [ \"Mon\"; \"Tue\" ] [ 3; 7 ]";

fn ok(finished: Finished) -> String {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished.stdout
}

/// The types of what a notebook's first cell puts out, in order.
fn outputs(notebook: &Value) -> Vec<String> {
    let told = |output: &Value| match output["output_type"].as_str().unwrap() {
        "stream" => output["text"].to_string(),
        _ => output["data"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "),
    };
    notebook["cells"][0]["outputs"].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn scripts_have_every_form_and_exports_have_what_was_shown() {
    let world = World::new();
    let eval = world.eval(SHOWING);
    let displays = eval["displays"].as_array().unwrap();
    let told: Vec<_> = displays
        .iter()
        .map(|display| {
            let kinds: Vec<_> = display["data"].as_object().unwrap().keys().map(String::as_str).collect();
            (display["printedBefore"].clone(), display["isValue"] == true, kinds)
        })
        .collect();
    assert_eq!(
        told,
        [
            (json!(6), false, vec!["application/vnd.dataresource+json", "text/html", "text/plain"]),
            (json!(12), false, vec!["image/png", "text/plain"]),
            (json!(12), true, vec!["application/vnd.vegalite.v5+json", "image/svg+xml", "text/plain"]),
        ]
    );
    insta::assert_snapshot!(ok(world.run(["session", "transcript"])), @r#"
    1 > printf "before"
        Mainstay.display [ "Ada", 36; "Grace", 85 ]
        printfn "after"
        Mainstay.display [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |]
        Mainstay.bar [ "Mon"; "Tue" ] [ 3; 7 ]
    2   Item1  Item2
        ─────  ─────
        Ada       36
        Grace     85
    3   [image/png, 4 bytes]
    4   bar chart: 2 points, 3 to 7
        ▁█
    5   beforeafter
        val it : Mainstay.Chart = bar chart: 2 points, 3 to 7
        ▁█
    "#);
    let told = ok(world.run(["events", "--kind", "outputDisplayed"]));
    let told: Vec<&str> =
        told.lines().filter_map(|line| line.split_once("worker    ")).map(|(_, what)| what).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    showed application/vnd.dataresource+json, text/html, text/plain: Item1  Item2 …
    showed image/png, text/plain: [image/png, 4 bytes]
    has the value as application/vnd.vegalite.v5+json, image/svg+xml, text/plain: bar chart: 2 points, 3 to 7 …
    ");

    ok(world.run(["export", "--output", "it.jsonl"]));
    let notebook = |arguments: &[&str]| -> Value {
        serde_json::from_str(&ok(world.run([&["export", "--format", "ipynb"], arguments].concat()))).unwrap()
    };
    let first = notebook(&[]);
    insta::assert_snapshot!(outputs(&first).join("\n"), @r#"
    ["before"]
    application/vnd.dataresource+json text/html text/plain
    ["after\n"]
    image/png text/plain
    application/vnd.vegalite.v5+json image/svg+xml text/plain
    "#);
    ok(world.run(["import", "it.jsonl", "--name", "again"]));
    assert_eq!(notebook(&["again"])["cells"], first["cells"]);

    ok(world.run(["session", "fork", "again", "--name", "forked"]));
    let entries = |session: &str| ok(world.run(["session", "transcript", session]));
    assert_eq!(entries("forked"), entries("again"));
}

#[test]
fn a_terminal_has_tables_and_lines_as_text_and_is_told_of_pictures() {
    let world = World::new();
    let terminal = Terminal::open(&world);
    terminal.wait_for("Type F#, or :help");
    terminal.wait_for_last_line("work>");
    terminal.enter(
        "printf \"begun\"; Mainstay.display [ for i in 1 .. 2 -> i, String.replicate 39 \"a\", String.replicate 39 \"b\", String.replicate 39 \"c\" ]",
    );
    terminal.wait_for("val it : unit = ()");
    terminal.enter("[ 1; 5; 2; 8; 3 ]");
    terminal.wait_for("5 numbers, 1 to 8");
    terminal.enter("Mainstay.image [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |] |> Mainstay.display");
    terminal.wait_for("has it]");
    terminal.wait_for_last_line("work>");
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().skip_while(|line| *line != "begun").collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    begun
    Item1  Item2                                    Item3                                    Item4
    ─────  ───────────────────────────────────────  ───────────────────────────────────────  ──────────…
        1  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  cccccccccc…
        2  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  cccccccccc…
    val it : unit = ()
    work> [ 1; 5; 2; 8; 3 ]
    val it : int list = [1; 5; 2; 8; 3]
    ▁▅▂█▃  5 numbers, 1 to 8
    work> Mainstay.image [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |] |> Mainstay.display
    [image/png, 4 bytes: `mainstay export --output FILE.ipynb` has it]
    val it : unit = ()
    work>
    ");
}
