//! What code shows: the forms that values have, their order among what is printed, and what showing does not do.

use mainstay_model::{Display, Form};

use super::*;

/// What a job put out, in order.
#[derive(Debug, PartialEq)]
pub(super) enum Out {
    Printed(String),
    Shown(Display),
}

impl Session {
    /// Runs code to its end; gives what it put out.
    pub(super) async fn outputs(&mut self, code: &str) -> (Vec<Out>, JobReport) {
        let job = self.submit(code).await;
        let mut outputs = Vec::new();
        loop {
            match soon(self.worker.notices.recv()).await.unwrap() {
                RunnerNotice::Output { text, .. } => match outputs.last_mut() {
                    Some(Out::Printed(printed)) => printed.push_str(&text),
                    Some(Out::Shown(_)) | None => outputs.push(Out::Printed(text)),
                },
                RunnerNotice::Display { job: of, display } => {
                    assert_eq!(of, Some(job));
                    outputs.push(Out::Shown(*display));
                }
                RunnerNotice::Finished { report, .. } => return (outputs, report),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The one display of code that ran to its end.
    pub(super) async fn display(&mut self, code: &str) -> Display {
        let (mut outputs, report) = self.outputs(code).await;
        assert_eq!(report.ending, JobEnding::Completed, "{:?}", report.result.diagnostics);
        match (outputs.pop(), outputs.as_slice()) {
            (Some(Out::Shown(display)), []) => display,
            other => panic!("{code}: {other:?}"),
        }
    }

    /// The display of a value that nobody asked to be shown; none where it has no other forms.
    async fn value_display(&mut self, code: &str) -> Option<Display> {
        let (mut outputs, report) = self.outputs(code).await;
        assert_eq!(report.ending, JobEnding::Completed, "{:?}", report.result.diagnostics);
        match (outputs.pop(), outputs.as_slice()) {
            (None, []) => None,
            (Some(Out::Shown(display)), []) if display.is_value => Some(display),
            other => panic!("{code}: {other:?}"),
        }
    }
}

fn form<'a>(display: &'a Display, kind: &str) -> &'a str {
    match display.data.form(kind) {
        Some(Form::Text(text)) => text,
        Some(Form::Binary(bytes)) => bytes.as_str(),
        other => panic!("{kind}: {other:?} of {:?}", display.data.kinds()),
    }
}

fn json_form(display: &Display, kind: &str) -> Value {
    match display.data.form(kind) {
        Some(Form::Json(value)) => value.clone(),
        other => panic!("{kind}: {other:?} of {:?}", display.data.kinds()),
    }
}

const PEOPLE: &str = "type Person = { Name: string; Age: int; Height: float option }
let people = [ { Name = \"Ada <b>\"; Age = 36; Height = Some 1.65 }; { Name = \"Grace\"; Age = 85; Height = None } ]";

/// One session for all of it: none of these depends on what the others define.
#[tokio::test]
async fn what_is_shown_has_the_forms_of_its_kind() {
    let mut session = Session::start().await;
    records_are_a_table(&mut session).await;
    tuples_maps_dictionaries_and_data_tables_are_tables(&mut session).await;
    cells_that_are_wide_or_long_leave_the_columns_straight(&mut session).await;
    numbers_are_a_line(&mut session).await;
    bytes_of_a_picture_are_the_picture(&mut session).await;
    markup_is_shown_as_what_it_is(&mut session).await;
    anything_is_shown_under_its_mime_type(&mut session).await;
    charts_are_described_and_drawn(&mut session).await;
    a_lazy_sequence_is_looked_at_only_when_it_is_shown_and_not_to_its_end(&mut session).await;
    a_display_has_the_name_it_was_given(&mut session).await;
    what_is_too_large_for_a_message_is_left_out_and_named(&mut session).await;
}

async fn records_are_a_table(session: &mut Session) {
    session.eval(PEOPLE).await;
    let shown = session.display("Mainstay.display people").await;
    assert!(!shown.is_value);
    insta::assert_snapshot!(shown.data.text(), @"
    Name     Age  Height
    ───────  ───  ──────
    Ada <b>   36    1.65
    Grace     85
    ");
    insta::assert_snapshot!(form(&shown, "text/html"), @"<table><thead><tr><th>Name</th><th>Age</th><th>Height</th></tr></thead><tbody><tr><td>Ada &lt;b&gt;</td><td>36</td><td>1.65</td></tr><tr><td>Grace</td><td>85</td><td></td></tr></tbody></table>");
    insta::assert_snapshot!(json_form(&shown, "application/vnd.dataresource+json"), @r#"{"data":[{"Age":36,"Height":1.65,"Name":"Ada <b>"},{"Age":85,"Height":null,"Name":"Grace"}],"schema":{"fields":[{"name":"Name","type":"string"},{"name":"Age","type":"integer"},{"name":"Height","type":"number"}]}}"#);
    let value = session.value_display("people").await.unwrap();
    assert_eq!(value, Display { is_value: true, ..shown });
}

async fn tuples_maps_dictionaries_and_data_tables_are_tables(session: &mut Session) {
    session.eval(PEOPLE).await;
    let readonly = session.display("Mainstay.display (dict [ 1, 2 ])").await;
    assert_eq!(readonly.data.text(), "Key  Value\n───  ─────\n  1      2");
    assert_eq!(session.value_display("dict [ 1, 2 ]").await, None, "its type may do anything");
    for (code, text) in [
        ("[| 1, \"one\"; 2, null |]", "Item1  Item2\n─────  ─────\n    1  one\n    2"),
        ("Map.ofList [ \"a\", 1.5; \"b\", nan ]", "Key  Value\n───  ─────\na      1.5\nb      NaN"),
        ("Map.ofList [ 1, (true, 'x') ]", "Key  Item1  Item2\n───  ─────  ─────\n  1  true   x"),
        (
            "dict [ 1, [ 1; 2 ] ] |> System.Collections.Generic.Dictionary",
            "Key  Value\n───  ──────\n  1  [1; 2]",
        ),
        (
            "[ {| Id = System.Guid.Empty.ToByteArray().Length; Of = Some people.Head.Name |} ]",
            "Id  Of\n──  ───────\n16  Ada <b>",
        ),
        (
            "let t = new System.Data.DataTable() in t.Columns.Add(\"N\", typeof<int>) |> ignore; t.Rows.Add(box 3) |> ignore; t.Rows.Add([| box System.DBNull.Value |]) |> ignore; t",
            "N\n─\n3\n",
        ),
        ("([] : (int * string) list)", "Item1  Item2\n─────  ─────"),
    ] {
        let value = session.value_display(code).await;
        assert_eq!(
            value.map(|value| value.data.text().trim_end_matches(' ').to_owned()).as_deref(),
            Some(text),
            "{code}"
        );
    }
}

async fn cells_that_are_wide_or_long_leave_the_columns_straight(session: &mut Session) {
    let rows = "[ \"漢字\", 1; \"e\\u0301\\n\", 2; String.replicate 50 \"🙂\", 3 ]";
    let shown = session.display(&format!("Mainstay.display {rows}")).await;
    insta::assert_snapshot!(shown.data.text(), @"
    Item1                                    Item2
    ───────────────────────────────────────  ─────
    漢字                                         1
    é⏎                                           2
    🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂…      3
    ");
}

async fn numbers_are_a_line(session: &mut Session) {
    let shown = session.value_display("[ 1; 5; 2; 8; 3 ]").await.unwrap();
    assert_eq!(shown.data.text(), "▁▅▂█▃  5 numbers, 1 to 8");
    assert!(form(&shown, "image/svg+xml").starts_with("<svg "));
    let text = async |session: &mut Session, code: &str| session.display(code).await.data.text().to_owned();
    assert_eq!(text(session, "Mainstay.display [| 0.5; nan; 2.5 |]").await, "▁·█  3 numbers, 0.5 to 2.5");
    assert_eq!(text(session, "Mainstay.display [ 7L; 7L ]").await, "▄▄  2 numbers, 7 to 7");
    let many = text(session, "Mainstay.display (Array.init 20000 id)").await;
    assert!(many.ends_with("  the first 10000 numbers, 0 to 9999"), "{many}");
    assert_eq!(session.value_display("[ 1; 2; 3 ]").await, None, "so few are read as quickly");
}

async fn bytes_of_a_picture_are_the_picture(session: &mut Session) {
    let png = "[| 0x89uy; 0x50uy; 0x4Euy; 0x47uy |]";
    let shown = session.value_display(png).await.unwrap();
    assert_eq!((form(&shown, "image/png"), shown.data.text()), ("iVBORw==", "[image/png, 4 bytes]"));
    let shown = session.display(&format!("Mainstay.image {png} |> Mainstay.display")).await;
    assert_eq!(form(&shown, "image/png"), "iVBORw==");
    let svg = "System.Text.Encoding.UTF8.GetBytes \" <svg/>\"";
    assert_eq!(form(&session.value_display(svg).await.unwrap(), "image/svg+xml"), " <svg/>");
    assert_eq!(session.value_display("[| 1uy; 2uy; 3uy; 4uy; 5uy; 6uy |]").await, None);
    let (_, report) = session.outputs("Mainstay.image [| 1uy |]").await;
    assert!(matches!(report.ending, JobEnding::Raised(_)));
}

async fn markup_is_shown_as_what_it_is(session: &mut Session) {
    for (code, kind, text) in [
        ("Mainstay.html \"<b>\"", "text/html", "<b>"),
        ("Mainstay.svg \"<svg/>\"", "image/svg+xml", "<svg/>"),
        ("Mainstay.markdown \"**b**\"", "text/markdown", "**b**"),
    ] {
        assert_eq!(form(&session.display(&format!("Mainstay.display ({code})")).await, kind), text);
        assert_eq!(form(&session.value_display(code).await.unwrap(), kind), text);
    }
    session.eval("type Page() = interface Mainstay.IHtml with member _.Html = \"<p>\"").await;
    assert_eq!(form(&session.display("Mainstay.display (Page())").await, "text/html"), "<p>");
    assert_eq!(
        session.value_display("Page()").await,
        None,
        "what a value says of itself is code of the session"
    );
    assert_eq!(session.display("Mainstay.display \"plain\"").await.data.text(), "plain");
    assert_eq!(session.display("Mainstay.display (Some 3)").await.data.text(), "Some 3");
}

async fn anything_is_shown_under_its_mime_type(session: &mut Session) {
    let map = "Mainstay.mime \"application/geo+json\" \"{\\\"type\\\": \\\"Point\\\"}\"";
    let shown = session.value_display(map).await.unwrap();
    assert_eq!(json_form(&shown, "application/geo+json"), serde_json::json!({"type": "Point"}));
    let shown = session.value_display("Mainstay.mime \"text/x-plan\" \"1. go\"").await.unwrap();
    assert_eq!(form(&shown, "text/x-plan"), "1. go");
    for wrong in ["Mainstay.mime \"html\" \"<b>\"", "Mainstay.mime \"application/json\" \"{\""] {
        let (_, report) = session.outputs(wrong).await;
        assert!(matches!(report.ending, JobEnding::Raised(_)), "{wrong}: {report:?}");
    }
}

#[tokio::test]
async fn what_packages_made_to_be_looked_at_is_shown_by_conventions() {
    let mut session = Session::start().await;
    let refer =
        "#r \"nuget: Plotly.NET, 6.0.0\"\n#r \"nuget: Deedle, 8.1.0\"\n#r \"nuget: Giraffe.ViewEngine\"";
    session.defines(refer).await;
    session.defines("open Plotly.NET\nopen Deedle\nopen Giraffe.ViewEngine").await;

    let chart = session.value_display("Chart.Line(x = [ 1; 2 ], y = [ 3; 4 ])").await.unwrap();
    let figure = json_form(&chart, "application/vnd.plotly.v1+json");
    assert_eq!(figure["data"][0]["type"], "scatter", "{figure}");

    session
        .defines(
            "let prices = frame [ \"a\" => series [ 1 => 1.0; 2 => 2.5 ]; \"b\" => series [ 1 => 3.0 ] ]",
        )
        .await;
    let frame = session.value_display("prices").await.unwrap();
    insta::assert_snapshot!(frame.data.text(), @r"
    Key    a  b
    ───  ───  ─
      1    1  3
      2  2.5
    ");
    let series = session.value_display("prices.[\"a\"]").await.unwrap();
    insta::assert_snapshot!(series.data.text(), @r"
    Key  Value
    ───  ─────
      1      1
      2    2.5
    ");

    let node = session.value_display("p [] [ str \"a < b\" ]").await.unwrap();
    assert_eq!(form(&node, "text/html"), "<p>a &lt; b</p>");
}

async fn charts_are_described_and_drawn(session: &mut Session) {
    let chart =
        "{ Mainstay.line [ 1 .. 5 ] [ 1; 5; 2; 8; 3 ] with Title = \"a < b\"; X = \"time\"; Y = \"speed\" }";
    let shown = session.value_display(chart).await.unwrap();
    assert_eq!(shown.data.text(), "a < b (line chart): 5 points, 1 to 8\n▁▅▂█▃");
    insta::assert_snapshot!(json_form(&shown, "application/vnd.vegalite.v5+json"), @r#"{"$schema":"https://vega.github.io/schema/vega-lite/v5.json","data":{"values":[{"x":1,"y":1},{"x":2,"y":5},{"x":3,"y":2},{"x":4,"y":8},{"x":5,"y":3}]},"encoding":{"x":{"field":"x","title":"time","type":"quantitative"},"y":{"field":"y","title":"speed","type":"quantitative"}},"mark":"line","title":"a < b"}"#);
    insta::assert_snapshot!(form(&shown, "image/svg+xml").replace('>', ">\n"), @r##"
    <svg xmlns="http://www.w3.org/2000/svg" class="mainstay-plot" width="640" height="360" viewBox="0 0 640 360" role="img" fill="currentColor" font-family="system-ui, sans-serif" font-size="12">
    <title>
    a &lt; b</title>
    <style>
    .mainstay-plot{color:#444}@media (prefers-color-scheme:dark){.mainstay-plot{color:#ccc}}</style>
    <line x1="64" y1="312" x2="624" y2="312" stroke="currentColor" stroke-opacity="0.15"/>
    <text x="56" y="316" text-anchor="end">
    0</text>
    <line x1="64" y1="243" x2="624" y2="243" stroke="currentColor" stroke-opacity="0.15"/>
    <text x="56" y="247" text-anchor="end">
    2</text>
    <line x1="64" y1="174" x2="624" y2="174" stroke="currentColor" stroke-opacity="0.15"/>
    <text x="56" y="178" text-anchor="end">
    4</text>
    <line x1="64" y1="105" x2="624" y2="105" stroke="currentColor" stroke-opacity="0.15"/>
    <text x="56" y="109" text-anchor="end">
    6</text>
    <line x1="64" y1="36" x2="624" y2="36" stroke="currentColor" stroke-opacity="0.15"/>
    <text x="56" y="40" text-anchor="end">
    8</text>
    <line x1="64" y1="312" x2="64" y2="316" stroke="currentColor" stroke-opacity="0.6"/>
    <text x="64" y="330" text-anchor="middle">
    1</text>
    <line x1="204" y1="312" x2="204" y2="316" stroke="currentColor" stroke-opacity="0.6"/>
    <text x="204" y="330" text-anchor="middle">
    2</text>
    <line x1="344" y1="312" x2="344" y2="316" stroke="currentColor" stroke-opacity="0.6"/>
    <text x="344" y="330" text-anchor="middle">
    3</text>
    <line x1="484" y1="312" x2="484" y2="316" stroke="currentColor" stroke-opacity="0.6"/>
    <text x="484" y="330" text-anchor="middle">
    4</text>
    <line x1="624" y1="312" x2="624" y2="316" stroke="currentColor" stroke-opacity="0.6"/>
    <text x="624" y="330" text-anchor="middle">
    5</text>
    <line x1="64" y1="312" x2="624" y2="312" stroke="currentColor" stroke-opacity="0.6"/>
    <line x1="64" y1="36" x2="64" y2="312" stroke="currentColor" stroke-opacity="0.6"/>
    <polyline points="64,277.5 204,139.5 344,243 484,36 624,208.5" fill="none" stroke="#3b82c4" stroke-width="2" stroke-linejoin="round"/>
    <circle cx="64" cy="277.5" r="2.5" fill="#3b82c4"/>
    <circle cx="204" cy="139.5" r="2.5" fill="#3b82c4"/>
    <circle cx="344" cy="243" r="2.5" fill="#3b82c4"/>
    <circle cx="484" cy="36" r="2.5" fill="#3b82c4"/>
    <circle cx="624" cy="208.5" r="2.5" fill="#3b82c4"/>
    <text x="320" y="20" text-anchor="middle" font-size="14" font-weight="bold">
    a &lt; b</text>
    <text x="344" y="352" text-anchor="middle">
    time</text>
    <text x="14" y="174" text-anchor="middle" transform="rotate(-90 14 174)">
    speed</text>
    </svg>
    "##);
    let bars = session.display("Mainstay.bar [ \"a\"; \"b\" ] [ 1.5; -2.0 ] |> Mainstay.display").await;
    insta::assert_snapshot!(json_form(&bars, "application/vnd.vegalite.v5+json")["data"], @r#"{"values":[{"x":"a","y":1.5},{"x":"b","y":-2}]}"#);
    assert_eq!(form(&bars, "image/svg+xml").matches("<rect ").count(), 2);
    let points = session.display("Mainstay.scatter [ 1.0; 2.0; nan ] [ 3; 4; 5 ] |> Mainstay.display").await;
    assert_eq!(form(&points, "image/svg+xml").matches("<circle ").count(), 2);
    let large = session.display("Mainstay.line [ 1; 2 ] [ 0.0; 2e9 ] |> Mainstay.display").await;
    assert!(form(&large, "image/svg+xml").contains(">1.5e9</text>"));
    let none = session.display("Mainstay.display (Mainstay.line ([] : int list) ([] : int list))").await;
    assert!(form(&none, "image/svg+xml").ends_with("</svg>"));
}

#[tokio::test]
async fn displays_stand_where_they_were_shown() {
    let mut session = Session::start().await;
    let code = "for i in 1 .. 50 do
    printf \"<%d>\" i
    Mainstay.display (string i)";
    let (outputs, _) = session.outputs(code).await;
    let text = |out: &Out| match out {
        Out::Printed(text) => text.clone(),
        Out::Shown(display) => display.data.text().to_owned(),
    };
    let expected: Vec<String> = (1..=50).flat_map(|i| [format!("<{i}>"), i.to_string()]).collect();
    assert_eq!(outputs.iter().map(text).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn showing_changes_no_state_unless_it_runs_code() {
    let mut session = Session::start().await;
    session.eval(PEOPLE).await;
    session.eval("let mutable looked = 0\nlet lazies = seq { looked <- looked + 1; yield 1; yield 2 }").await;
    for pure in [
        "Mainstay.display people",
        "people |> Mainstay.display",
        "Mainstay.displayAs \"table\" people",
        "Mainstay.html \"<b>\"",
        "Mainstay.display (Mainstay.line [ 1; 2 ] [ 3; 4 ])",
        "{ Mainstay.bar [ 1 ] [ 2 ] with Title = \"t\" }",
        "Mainstay.maxRows",
    ] {
        let (_, report) = session.outputs(pure).await;
        assert_eq!((report.ending, report.changes_state), (JobEnding::Completed, false), "{pure}");
    }
    let bare = "type Bare() =
    interface System.Collections.IEnumerable with
        member _.GetEnumerator() = looked <- looked + 1; ([] :> System.Collections.IEnumerable).GetEnumerator()";
    assert_eq!(session.eval(bare).await.report.ending, JobEnding::Completed);
    session.eval("let bare = Bare()").await;
    for impure in [
        "Mainstay.display bare",
        "Mainstay.display lazies",
        "Mainstay.line lazies lazies",
        "Mainstay.maxRows <- 5",
    ] {
        assert!(session.outputs(impure).await.1.changes_state, "{impure}");
    }
}

async fn a_lazy_sequence_is_looked_at_only_when_it_is_shown_and_not_to_its_end(session: &mut Session) {
    session.eval("let mutable looked = 0\nlet endless = Seq.initInfinite (fun i -> looked <- looked + 1; i, string i)").await;
    session.eval("let rows = { 0 .. 3 }").await;
    assert_eq!(session.value_display("endless").await, None);
    session.eval("looked <- 0").await;
    let shown = session.display("Mainstay.display endless").await;
    assert!(shown.data.text().ends_with("99  99\n… the first 100 rows"), "{}", shown.data.text());
    assert_eq!(session.value("looked").await, "101");
    session.eval("Mainstay.maxRows <- 2").await;
    let shown = session.display("Mainstay.display [ for i in 1 .. 3 -> i, i, i ]").await;
    assert!(shown.data.text().ends_with("\n… 2 of 3 rows"), "{}", shown.data.text());
    session.worker.runner.kernel().unwrap().reset().await.unwrap();
    assert_eq!(session.value("Mainstay.maxRows").await, "100", "a reset restores it");
    assert_eq!(session.display("Mainstay.display \"there\"").await.data.text(), "there");
}

async fn a_display_has_the_name_it_was_given(session: &mut Session) {
    let id = async |session: &mut Session, code: &str| session.display(code).await.id.map(String::from);
    assert_eq!(id(session, "Mainstay.displayAs \"bar\" 1").await.as_deref(), Some("bar"));
    assert_eq!(id(session, "Mainstay.displayAs \"a bar\" 1").await.as_deref(), Some("a bar"));
    for no_name in ["", "a\\nb", "x\" |> String.replicate 257 |> (+) \""] {
        let (outputs, report) = session.outputs(&format!("1 |> Mainstay.displayAs (\"{no_name}\")")).await;
        assert!(outputs.is_empty() && matches!(report.ending, JobEnding::Raised(_)), "{no_name}");
    }
}

#[tokio::test]
async fn nothing_of_the_module_is_the_sessions_own() {
    let mut session = Session::start().await;
    let (outputs, report) = session.outputs("let display = 3").await;
    assert_eq!((outputs.len(), report.result.bindings.len(), report.references), (0, 1, None));
    assert_eq!(session.value("display").await, "3");
    assert_eq!(
        session.value("typeof<Mainstay.Rich>.Assembly.GetType \"MainstayDisplay.Host\" |> isNull").await,
        "false"
    );
    let (_, report) = session.outputs("MainstayDisplay.Host.restore ()").await;
    assert_eq!(report.ending, JobEnding::Rejected);
}

async fn what_is_too_large_for_a_message_is_left_out_and_named(session: &mut Session) {
    let shown = session.display("Mainstay.display (Mainstay.html (String.replicate 9000000 \"é\"))").await;
    assert_eq!(shown.data.kinds(), ["text/plain"]);
    insta::assert_snapshot!(shown.data.text(), @"[text/html left out: it is too large to be sent, 9000000 bytes]");
    assert_eq!(session.value("1 + 1").await, "2");
}
