//! What code shows, from the compiler to whoever sees it.

use crate::support::terminal::Terminal;
use crate::support::{Finished, World};
use serde_json::{Value, json};

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
        val it: Mainstay.Chart = bar chart: 2 points, 3 to 7
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
    terminal.wait_for("val it: unit = ()");
    terminal.enter("[ 1; 5; 2; 8; 3 ]");
    terminal.wait_for("5 numbers, 1 to 8");
    terminal.enter("[ {| Name = \"Ada\"; Age = 36 |}; {| Name = \"Alan\"; Age = 41 |} ]");
    terminal.wait_for("41  Alan");
    terminal.enter("Mainstay.image [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |] |> Mainstay.display");
    terminal.wait_for("has it]");
    terminal.wait_for_last_line("work>");
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().skip_while(|line| *line != "begun").collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    begun
    Item1  Item2                                    Item3                                    Item4
    ─────  ───────────────────────────────────────  ───────────────────────────────────────  ──────────…
        1  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  cccccccccc…
        2  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  cccccccccc…
    val it: unit = ()
    work> [ 1; 5; 2; 8; 3 ]
    val it: int list = [1; 5; 2; 8; 3]
    ▁▅▂█▃  5 numbers, 1 to 8
    work> [ {| Name = "Ada"; Age = 36 |}; {| Name = "Alan"; Age = 41 |} ]
    val it: {| Age: int; Name: string |} list =
    Age  Name
    ───  ────
     36  Ada
     41  Alan
    work> Mainstay.image [| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |] |> Mainstay.display
    [image/png, 4 bytes: `mainstay export --output FILE.ipynb` has it]
    val it: unit = ()
    work>
    "#);
}

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

fn shows_a_pixel() -> String {
    format!(
        "Mainstay.display (Mainstay.image (System.Convert.FromBase64String \"{PIXEL}\")); printfn \"shown\""
    )
}

#[test]
fn a_terminal_that_shows_pictures_is_given_them_wherever_they_are_shown() {
    let world = World::scripted();
    let drawn = format!("\u{1b}_Ga=T,f=100,q=2,m=0;{PIXEL}\u{1b}\\");
    let mut command = world.command();
    command.env("MAINSTAY_IMAGES", "kitty");
    let terminal = Terminal::run(&command);
    terminal.wait_for("Type F#, or :help");
    terminal.wait_for_last_line("work>");
    terminal.enter(&shows_a_pixel());
    terminal.wait_for("val it: unit = ()");
    terminal.wait_for_last_line("work>");
    assert_eq!(terminal.written().matches(&drawn).count(), 1);
    assert!(!terminal.screen().contains("has it]"), "{}", terminal.screen());
    terminal.enter(":transcript");
    terminal.wait_for("[image/png, 1×1");
    terminal.wait_for_last_line("work>");
    assert_eq!(terminal.written().matches(&drawn).count(), 2);
    drop(terminal);

    command.args(["eval", &shows_a_pixel()]).env("MAINSTAY_IMAGES", "iterm");
    let terminal = Terminal::run(&command);
    terminal.wait_for("val it: unit = ()");
    let written = terminal.written();
    assert!(
        written.contains(&format!("\u{1b}]1337;File=inline=1;size=70;preserveAspectRatio=1:{PIXEL}\u{7}"))
    );
}

#[test]
fn no_picture_is_written_where_that_is_off_or_there_is_no_terminal() {
    let world = World::scripted();
    let mut piped = world.command();
    let piped = piped.args(["eval", &shows_a_pixel()]).env("MAINSTAY_IMAGES", "kitty").output().unwrap();
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert!(piped.starts_with("[image/png, 1×1, ") && !piped.contains('\u{1b}'), "{piped:?}");
    let mut command = world.command();
    command.args(["session", "transcript"]).env("KITTY_WINDOW_ID", "1").env("TERM_PROGRAM", "iTerm.app");
    let terminal = Terminal::run(&command);
    terminal.wait_for("[image/png, 1×1");
    assert!(!terminal.written().contains("\u{1b}_G") && !terminal.written().contains("1337"));
}

#[test]
fn a_terminal_has_tables_and_formulas_of_python_as_text_and_its_figures_as_pictures() {
    let world = World::with_jupyter();
    let mut command = world.command();
    let code = "import pandas as pd, matplotlib.pyplot as plt
from IPython.display import Latex, display
display(Latex('$x^2$'))
plt.plot([1, 4]); plt.show()
pd.DataFrame({'city': ['Ulm', 'Bonn'], 'people': [126, 330]})";
    command.args(["eval", "--kind", "python3", code]).env("MAINSTAY_IMAGES", "kitty");
    let terminal = Terminal::run(&command);
    terminal.wait_for("330");
    assert!(terminal.written().contains("\u{1b}_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"));
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().skip_while(|line| *line != "$x^2$").collect();
    insta::assert_snapshot!(shown.join("\n").trim_end(), @r"
    $x^2$

       city  people
    0   Ulm     126
    1  Bonn     330
    ");
}

#[test]
fn a_traceback_has_its_colours_on_a_terminal_and_nowhere_else() {
    let world = World::with_jupyter();
    ok(world.run(["session", "new", "--name", "py", "--kind", "python3"]));
    let piped = world.run(["eval", "--session", "py", "def f(): 1/0\nf()"]);
    assert!(
        piped.stderr.contains("ZeroDivisionError: division by zero\n") && piped.stderr.contains("---> 2 f()"),
        "{piped:?}"
    );
    assert!(!piped.stderr.contains('\u{1b}'), "{piped:?}");
    let told = world.run(["events", "--session", "py"]).stdout
        + &ok(world.run(["export", "py", "--format", "ipynb"]));
    assert!(
        told.contains("ZeroDivisionError") && !told.contains("\\u001b") && !told.contains('\u{1b}'),
        "{told}"
    );
    let mut command = world.command();
    let terminal = Terminal::run(command.env_remove("NO_COLOR").env("TERM", "xterm-256color").args([
        "eval",
        "--session",
        "py",
        "f()",
    ]));
    terminal.wait_for("line 1, in f()");
    let written = terminal.written();
    assert_eq!(terminal.wait_for_end(), 1);
    let shown = written.split_once("division by zero").unwrap().1;
    assert!(shown.contains("\u{1b}[32m----> 1\u{1b}[0m f()"), "{written:?}");
}
