//! What becomes of a kernel's messages: notices, results, and ends of jobs.

use bytes::Bytes;
use mainstay_model::{Diagnostic, DisplayId, Severity, TextPosition};
use serde_json::{Value, json};

use super::ending::stacks_of;
use super::output::plain;
use super::*;
use crate::jupyter::wire::Header;

fn job() -> JobId {
    "019a0000-0000-7000-8000-000000000001".parse().unwrap()
}

fn execution(code: &str) -> Execution {
    Execution::new(job(), code)
}

fn message(msg_type: &str, content: &Value) -> Message {
    let text = String::new;
    let header = Header {
        msg_id: text(),
        msg_type: msg_type.to_owned(),
        session: text(),
        username: text(),
        date: text(),
        version: text(),
        subshell_id: None,
    };
    let mut message = Message::new(header, content);
    message.parent = Bytes::from_static(br#"{"msg_id":"1"}"#);
    message
}

fn heard(execution: &mut Execution, msg_type: &str, content: &Value) -> Vec<RunnerNotice> {
    execution.hear(&message(msg_type, content)).unwrap()
}

fn reply(content: Value) -> ExecuteReply {
    serde_json::from_value(content).unwrap()
}

fn report(execution: Execution) -> JobReport {
    match execution.finish().pop() {
        Some(RunnerNotice::Finished { job: of, report }) if of == job() => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_over_when_the_reply_and_all_that_is_published_are_there() {
    let idle = json!({ "execution_state": "idle" });
    for reply_first in [true, false] {
        let mut execution = execution("1");
        heard(&mut execution, "status", &json!({ "execution_state": "busy" }));
        if !reply_first {
            heard(&mut execution, "status", &idle);
        } else {
            execution.replied(reply(json!({ "status": "ok" })));
        }
        assert!(!execution.is_over());
        if reply_first {
            heard(&mut execution, "status", &idle);
        } else {
            execution.replied(reply(json!({ "status": "ok" })));
        }
        assert!(execution.is_over());
    }
}

#[test]
fn a_value_is_shown_besides_where_it_has_other_forms() {
    let plain = |text: &str| json!({ "data": { "text/plain": text }, "metadata": {}, "execution_count": 1 });
    let rich = json!({ "data": { "text/plain": "\u{1b}[33m<t>\u{1b}[39m", "text/html": "<b>" }, "execution_count": 1 });
    let mut execution = execution("x");
    assert_eq!(heard(&mut execution, "execute_result", &rich), []);
    let notices = execution.finish();
    let [RunnerNotice::Display { display, .. }, RunnerNotice::Finished { report, .. }] = &notices[..] else {
        panic!("{notices:?}")
    };
    assert!(display.is_value);
    assert_eq!((report.result.value.as_deref(), report.result.display.as_str()), (Some("<t>"), "<t>\n"));
    let mut execution = self::execution("1\n2");
    assert_eq!(heard(&mut execution, "execute_result", &plain("1")), []);
    let shown = heard(&mut execution, "execute_result", &plain("2"));
    let [RunnerNotice::Display { display, .. }] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((display.is_value, display.data.text()), (false, "1"), "each but the last is shown");
    assert_eq!(self::report(execution).result.value.as_deref(), Some("2"));
}

#[test]
fn a_value_stands_before_what_is_shown_after_it() {
    let value = json!({ "data": { "text/plain": "<Axes: >" }, "execution_count": 1 });
    let figure = json!({ "data": { "text/plain": "<Figure>" } });
    let mut execution = execution("frame.plot()");
    assert_eq!(heard(&mut execution, "execute_result", &value), []);
    let shown = heard(&mut execution, "display_data", &figure);
    let [RunnerNotice::Display { display: first, .. }, RunnerNotice::Display { display: second, .. }] =
        &shown[..]
    else {
        panic!("{shown:?}")
    };
    assert_eq!((first.data.text(), first.is_value, first.is_in_place), ("<Axes: >", true, true));
    assert_eq!((second.data.text(), second.is_value), ("<Figure>", false));
    assert!(!heard(&mut execution, "display_data", &figure).contains(&shown[0]), "once");
    let result = report(execution).result;
    assert_eq!((result.value.as_deref(), result.display.as_str()), (Some("<Axes: >"), ""));
}

#[test]
fn an_error_that_the_reply_does_not_name_is_the_one_that_was_published() {
    let mut execution = execution("thing");
    let error = json!({ "ename": "ValueError", "evalue": "boom", "traceback": ["at 2", "ValueError: boom"] });
    let value = json!({ "data": { "text/plain": "<Thing>" }, "execution_count": 1 });
    heard(&mut execution, "error", &error);
    heard(&mut execution, "execute_result", &value);
    execution.replied(reply(
        json!({ "status": "error", "ename": "NoneType", "evalue": "None", "traceback": ["at 2"] }),
    ));
    let notices = execution.finish();
    let [RunnerNotice::Display { display, .. }, RunnerNotice::Finished { report, .. }] = &notices[..] else {
        panic!("{notices:?}")
    };
    assert!(display.is_in_place && display.data.text() == "<Thing>");
    let JobEnding::Raised(raised) = &report.ending else { panic!("{report:?}") };
    assert_eq!(
        (raised.kind.as_str(), raised.message.as_str(), raised.stack.as_deref()),
        ("ValueError", "boom", Some("at 2"))
    );
    assert_eq!(report.result.value.as_deref(), Some("<Thing>"));
}

#[test]
fn code_that_reads_without_a_word_asks_with_the_line_that_it_has_begun() {
    let mut execution = execution("input()");
    let mut print = |stream: &str, text: &str| {
        let printed = json!({ "name": stream, "text": text });
        heard(&mut execution, "stream", &printed);
    };
    print("stdout", "one\nName");
    print("stderr", "told");
    print("stdout", "? ");
    assert_eq!([execution.takes_input(), execution.takes_input()], [Some("Name? ".to_owned()), None]);
}

#[test]
fn a_display_keeps_its_name_for_what_updates_it() {
    let mut execution = execution("x");
    for kind in ["display_data", "update_display_data"] {
        let content = json!({ "data": { "text/plain": "1" }, "metadata": { "isolated": true },
            "transient": { "display_id": "bar" } });
        let shown = heard(&mut execution, kind, &content).remove(0);
        let RunnerNotice::Display { display, .. } = shown else { panic!("{shown:?}") };
        assert_eq!(display.data.metadata()["isolated"], true);
        assert_eq!((display.id, display.is_update), (DisplayId::new("bar").ok(), kind != "display_data"));
    }
}

#[test]
fn what_is_not_known_to_change_nothing_counts_as_a_change() {
    let pure = json!({ "status": "ok", "payload": [
        { "source": HELPER, "report": { "isPure": true, "valueType": "int" } } ] });
    let unknown = json!({ "status": "ok" });
    let raised = json!({ "status": "error", "ename": "E", "evalue": "no" });
    for (code, content, changes) in [
        ("1", &pure, false),
        ("1", &unknown, true),
        ("1", &raised, true),
        ("# mainstay: pure\nx.head()", &unknown, false),
        ("  // mainstay: pure", &raised, false),
        ("#| mainstay: stateful\n1", &pure, true),
        ("# mainstay: whatever", &unknown, true),
        ("print('# mainstay: pure')", &unknown, true),
        ("\n# mainstay: pure", &unknown, false),
        ("x = 1\n# mainstay: pure", &unknown, true),
    ] {
        let mut execution = execution(code);
        execution.replied(reply(content.clone()));
        assert_eq!(report(execution).changes_state, changes, "{code} {content}");
    }
}

#[test]
fn an_error_ends_code_as_what_it_is() {
    let error = json!({ "status": "error", "ename": "KeyboardInterrupt", "evalue": "",
        "traceback": ["----", "\u{1b}[0;31mKeyboardInterrupt\u{1b}[0m   Traceback (most recent call last)", "at 1",
            "KeyboardInterrupt: "] });
    let failed = |prepare: &dyn Fn(&mut Execution)| {
        let mut execution = execution("1");
        prepare(&mut execution);
        execution.replied(reply(error.clone()));
        report(execution).ending
    };
    let JobEnding::Raised(raised) = failed(&|_| ()) else { panic!("it raised") };
    assert_eq!((raised.stack.as_deref(), raised.coloured_stack.as_deref()), (Some("at 1"), None));
    let interrupted = |execution: &mut Execution| assert!(!execution.interrupt(), "its code does not run");
    assert_eq!(failed(&interrupted), JobEnding::Interrupted { kept: 0 });
    let start = TextPosition { line: 1, column: 1 };
    let rejected = Diagnostic {
        severity: Severity::Error,
        code: "SyntaxError".to_owned(),
        message: "invalid syntax".to_owned(),
        file: None,
        start,
        end: start,
    };
    let told = Report { rejected: Some(rejected), ..Report::default() };
    let mut execution = execution("1 +");
    execution.replied(reply(error.clone()));
    execution.reported(Some(told));
    let report = report(execution);
    assert_eq!((report.ending, report.changes_state), (JobEnding::Rejected, false));
    assert_eq!(report.result.diagnostics.len(), 1);
}

#[test]
fn a_stack_keeps_its_colours_beside_the_plain_text() {
    let stacks = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        stacks_of(&lines, "E", "no")
    };
    let both = |plain: &str, coloured: Option<&str>| (Some(plain.to_owned()), coloured.map(str::to_owned));
    let title = "\u{1b}[31mE\u{1b}[39m       Traceback (most recent call last)";
    let told =
        ["\u{1b}[31m-----\u{1b}[39m", title, "at \u{1b}[32m1\u{1b}[0m\nat 2\n", "\u{1b}[31mE\u{1b}[39m: no"];
    assert_eq!(stacks(&told), both("at 1\nat 2", Some("at \u{1b}[32m1\u{1b}[0m\nat 2")));
    assert_eq!(stacks(&["at 1", "E: no"]), both("at 1", None));
    let helper = "File \u{1b}[32m<mainstay>:384\u{1b}[39m, in f()";
    assert_eq!(stacks(&["at 1", helper, "E: no"]), both("at 1", None), "nothing of the helper");
    assert_eq!(stacks(&["\u{1b}[31mE\u{1b}[39m: no"]), (None, None));
    assert_eq!(stacks(&["at \u{1b}[1", "2m", "3"]), both("at \n3", None));
}

#[test]
fn what_a_kernel_wants_to_be_paged_is_shown_and_an_exit_is_known() {
    let mut execution = execution("x?");
    let shown = execution.replied(reply(json!({ "status": "ok", "payload": [
        { "source": "page", "data": { "text/plain": "Docstring: none" }, "start": 0 },
        { "source": "ask_exit", "keepkernel": false },
    ] })));
    assert!(
        matches!(&shown[..], [RunnerNotice::Display { display, .. }] if display.data.text().starts_with("Doc"))
    );
    assert_eq!(execution.exits(), Some(Exit { code: 0, is_own: true }));
    let code = |keepkernel: Value| {
        let asks = json!({ "source": "ask_exit", "keepkernel": keepkernel });
        let mut execution = self::execution("exit(4)");
        execution.replied(reply(json!({ "status": "ok", "payload": [asks] })));
        execution.exits().map(|exit| (exit.code, exit.is_own))
    };
    assert_eq!(code(json!(4)), Some((4, false)));
    assert_eq!(code(json!("no")), Some((1, false)));
}

#[test]
fn what_is_to_go_with_the_next_output_goes_then_and_only_then() {
    let cleared = |is_replaced| [RunnerNotice::Cleared { job: job(), is_replaced }];
    let clear =
        |execution: &mut Execution, waits: bool| heard(execution, "clear_output", &json!({ "wait": waits }));
    assert_eq!(clear(&mut execution("1"), false), cleared(false));
    let update = json!({ "data": { "text/plain": "1" }, "transient": { "display_id": "bar" } });
    let text = json!({ "name": "stdout", "text": "1" });
    let value = json!({ "data": { "text/plain": "1" }, "execution_count": 1 });
    let error = json!({ "ename": "E", "evalue": "", "traceback": [] });
    for (kind, content) in
        [("stream", &text), ("display_data", &update), ("execute_result", &value), ("error", &error)]
    {
        let mut execution = execution("1");
        assert_eq!(clear(&mut execution, true), []);
        let updated = heard(&mut execution, "update_display_data", &update);
        assert!(matches!(&updated[..], [RunnerNotice::Display { .. }]), "an update puts nothing out");
        assert_eq!(heard(&mut execution, kind, content)[..1], cleared(true), "{kind}");
        assert!(!heard(&mut execution, kind, content).contains(&cleared(true)[0]), "{kind} once");
    }
}

#[test]
fn what_a_front_end_says_is_over_when_the_kernel_is_idle_again() {
    let mut execution = Execution::of_comm(job());
    assert!(execution.is_expected() && !execution.is_over());
    heard(&mut execution, "status", &json!({ "execution_state": "busy" }));
    assert!(!execution.is_expected() && !execution.is_over());
    let said = heard(&mut execution, "comm_msg", &json!({ "comm_id": "1", "data": { "a": 1 } }));
    assert!(matches!(&said[..], [RunnerNotice::Comm { job: Some(_), message }] if message.data["a"] == 1));
    heard(&mut execution, "status", &json!({ "execution_state": "idle" }));
    assert!(execution.is_over());
    assert_eq!(execution.finish(), [RunnerNotice::CommTaken { job: job() }]);
}

#[test]
fn escapes_go_and_text_stays() {
    for (text, expected) in
        [("\u{1b}[31mred\u{1b}[0m", "red"), ("a[0]", "a[0]"), ("\u{1b}[38;5;", ""), ("é\u{1b}[1mü", "éü")]
    {
        assert_eq!(plain(text), expected);
    }
}

#[test]
fn what_is_no_such_message_is_an_error_and_not_a_panic() {
    let mut execution = execution("1");
    for kind in ["stream", "display_data", "execute_result", "status", "clear_output", "comm_open"] {
        assert!(execution.hear(&message(kind, &json!([1]))).is_err(), "{kind}");
    }
    assert_eq!(execution.hear(&message("debug_event", &json!([1]))), Ok(Vec::new()));
}

#[test]
fn a_kernel_is_told_once_to_stop_and_not_before_its_code_runs() {
    let mut execution = execution("1");
    assert!(!execution.interrupt());
    assert!(!execution.takes_interrupt());
    assert!(!execution.is_expected(), "its turn may come");
    heard(&mut execution, "execute_input", &json!({ "code": "1", "execution_count": 1 }));
    assert!(execution.takes_interrupt());
    assert!(!execution.takes_interrupt());
    assert!(execution.interrupt(), "asked again, it is told again");
    heard(&mut execution, "status", &json!({ "execution_state": "idle" }));
    assert!(execution.is_expected(), "a kernel may drop what it was to run");
}
