//! What came of cells, as a notebook has it.

use mainstay_formats::exchange::{ExportedEvent, Item, Kernel, Outputs};
use mainstay_model::{
    Bundle, CommandFingerprint, Diagnostic, Display, DisplayId, EvalResult, EventBody, Failure, RaisedError,
    SessionKind, Severity, TextPosition,
};
use serde_json::{Value, json};

use crate::support::{command_id, job_id, second};

/// A cell, by its number.
fn cell(number: usize, code: &str, rest: Vec<EventBody>) -> Item {
    let requested = EventBody::EvalRequested {
        job: job_id(1),
        command: command_id(number),
        fingerprint: CommandFingerprint::from_stored("f".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        code: code.to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    };
    let said = |body| ExportedEvent { at: second(1), body };
    Item::Cell { entries: Vec::new(), events: [requested].into_iter().chain(rest).map(said).collect() }
}

fn shows(id: &str, is_update: bool, text: &str) -> EventBody {
    let display = Display {
        id: DisplayId::new(id).ok(),
        is_value: false,
        is_update,
        is_in_place: false,
        data: Bundle::plain(text.to_owned()),
    };
    EventBody::OutputDisplayed { job: Some(job_id(1)), display: Box::new(display) }
}

fn gives(display: &str) -> EventBody {
    let result = EvalResult { display: display.to_owned(), ..EvalResult::default() };
    EventBody::EvalCompleted { job: job_id(1), result, changes_state: false, duration_ms: 1 }
}

fn fails(failure: Failure, diagnostics: Vec<Diagnostic>) -> EventBody {
    let result = EvalResult { diagnostics, ..EvalResult::default() };
    EventBody::EvalFailed { job: job_id(1), failure, result, changes_state: true, duration_ms: 1 }
}

fn raises(message: &str, stack: Option<&str>) -> EventBody {
    let stack = stack.map(str::to_owned);
    let error = RaisedError {
        kind: "ValueError".to_owned(),
        message: message.to_owned(),
        stack,
        coloured_stack: None,
    };
    fails(Failure::Raised { error }, Vec::new())
}

/// The outputs of each of these cells in a session of this kind.
fn outputs(kind: &str, cells: Vec<Item>) -> Vec<Value> {
    let kernel = Kernel::of(&SessionKind::new(kind).unwrap(), None);
    let outputs = Outputs::of(&kernel, &cells);
    (0..cells.len()).map(|number| json!(outputs.of_command(&command_id(number), 7).unwrap())).collect()
}

/// The texts of what these cells showed.
fn texts(kind: &str, cells: Vec<Item>) -> Vec<Vec<String>> {
    let text = |output: &Value| output["data"]["text/plain"][0].as_str().unwrap().to_owned();
    let of_cell = |cell: &Value| cell.as_array().unwrap().iter().map(text).collect();
    outputs(kind, cells).iter().map(of_cell).collect()
}

#[test]
fn what_a_later_cell_updates_stands_where_it_was_shown() {
    let cells = || {
        vec![
            cell(0, "", vec![shows("bar", false, "0 %"), shows("bar", true, "50 %"), gives("")]),
            cell(1, "", vec![shows("bar", true, "100 %"), gives("")]),
            cell(2, "", vec![shows("twin", false, "a"), shows("twin", false, "b"), gives("")]),
        ]
    };
    assert_eq!(texts("python3", cells()), [vec!["100 %"], vec![], vec!["b", "b"]]);
    // In F# what is shown under a name takes the place of what the cell showed under it, and no other cell's.
    let named = || vec![shows("bar", false, "0 %"), shows("bar", false, "100 %"), gives("")];
    let cells = vec![cell(0, "", named()), cell(1, "", vec![shows("bar", false, "new"), gives("")])];
    assert_eq!(texts("fsharp", cells), [["100 %"], ["new"]]);
}

#[test]
fn what_a_cell_took_back_is_none_of_its_outputs() {
    let cleared = || EventBody::OutputCleared { job: job_id(1), is_replaced: false };
    let cells = vec![
        cell(0, "", vec![shows("a", false, "1"), cleared(), shows("b", false, "2"), gives("")]),
        cell(1, "", vec![shows("c", false, "3"), cleared(), gives("")]),
    ];
    assert_eq!(texts("python3", cells), [vec!["2"], vec![]]);
}

#[test]
fn a_value_is_its_text_alone() {
    let value = outputs("python3", vec![cell(0, "x", vec![gives("a\nb\n")])]);
    assert_eq!(
        value[0][0],
        json!({ "output_type": "execute_result", "execution_count": 7, "data": { "text/plain": ["a\n", "b"] }, "metadata": {} })
    );
}

#[test]
fn an_error_is_told_whole() {
    let told = |kind: &str, event: EventBody| {
        let output = &outputs(kind, vec![cell(0, "x = = 1", vec![event])])[0][0];
        let lines: Vec<&str> =
            output["traceback"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        format!("{} {}\n{}\n", output["ename"], output["evalue"], lines.join("\n"))
    };
    let frames = "Cell In[7], line 1\n----> 1 f()\n";
    let chained =
        "KeyError                Traceback (most recent call last)\nCell In[6], line 1\n\nThe above …";
    let at = TextPosition { line: 1, column: 5 };
    let wrong = Diagnostic {
        severity: Severity::Error,
        code: "SyntaxError".to_owned(),
        message: "invalid syntax".to_owned(),
        file: None,
        start: at,
        end: at,
    };
    insta::assert_snapshot!([
        told("python3", raises("no", Some(frames))),
        told("python3", raises("no", Some(chained))),
        told("python3", raises("one\ntwo", Some("Cell In[7]\nValueError: one\ntwo"))),
        told("python3", raises("no", None)),
        told("python3", fails(Failure::Rejected, vec![wrong])),
        told("fsharp", raises("no", Some("   at F()"))),
    ].join("\n"), @r#"
    "ValueError" "no"
    ---------------------------------------------------------------------------
    ValueError                                Traceback (most recent call last)
    Cell In[7], line 1
    ----> 1 f()
    ValueError: no

    "ValueError" "no"
    ---------------------------------------------------------------------------
    KeyError                Traceback (most recent call last)
    Cell In[6], line 1

    The above …
    ValueError: no

    "ValueError" "one\ntwo"
    ---------------------------------------------------------------------------
    ValueError                                Traceback (most recent call last)
    Cell In[7]
    ValueError: one
    two

    "ValueError" "no"
    ValueError: no

    "SyntaxError" "invalid syntax"
      Cell In[7], line 1
        x = = 1
            ^
    SyntaxError: invalid syntax

    "ValueError" "no"
    ValueError: no
       at F()
    "#);
}
