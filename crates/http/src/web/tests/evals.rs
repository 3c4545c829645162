//! Cells of evals, and of what happens between jobs.

use super::*;

#[test]
fn an_eval_shows_its_code_what_it_printed_and_what_it_gave() {
    let mut story = SessionHistory::default();
    let job = story.eval("let x = \"<b>\"\nprintfn \"&\"; x");
    story.prints(job, "&\n<script>alert(1)</script>\n");
    let binding =
        Binding { name: "x".to_owned(), value_type: "string".to_owned(), value: Some("\"<b>\"".to_owned()) };
    let imported = Binding { name: "os".to_owned(), value_type: "module".to_owned(), value: None };
    story.completes(job, EvalResult { bindings: vec![imported, binding], ..value("\"<b>\"", "string") });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn an_eval_that_did_not_run_to_its_end_says_why() {
    let mut story = SessionHistory::default();
    let job = story.eval("x");
    let diagnostics = vec![remark(Severity::Error), remark(Severity::Hidden), remark(Severity::Warning)];
    story.fails(job, Failure::Rejected, EvalResult { diagnostics, ..EvalResult::default() });
    let job = story.eval("failwith \"no\"");
    let error = RaisedError {
        kind: "System.Exception".to_owned(),
        message: "no".to_owned(),
        stack: Some("at <f>".to_owned()),
        coloured_stack: Some("at \u{1b}[32m<f>\u{1b}[0m".to_owned()),
    };
    story.fails(job, Failure::Raised { error }, EvalResult::default());
    let job = story.eval("exit 3");
    story.fails(
        job,
        Failure::WorkerExited { exit: mainstay_model::WorkerExit::Code(3) },
        EvalResult::default(),
    );
    let job = story.eval("while true do ()");
    story.add(EventBody::CancelRequested { job, grace_ms: None });
    story.add(EventBody::EvalCancelled { job, ending: CancelEnding::Killed, kept: None, grace_ms: None });
    let job = story.eval("1");
    story.add(EventBody::EvalInterrupted { job });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn asks_and_what_happens_between_jobs_stand_on_a_line_each() {
    let mut story = SessionHistory::default();
    let created = json!({ "kind": "sessionCreated", "body": { "kind": "fsharp", "name": "n", "workingDirectory": "/w" } });
    story.add(serde_json::from_value(created).unwrap());
    let ready = json!({ "kernel": "F# 4.7", "runtime": ".NET 3.1", "pid": 1, "replayed": 2, "diverged": [7], "durationMs": 5 });
    story.add(serde_json::from_value(json!({ "kind": "warmUpCompleted", "body": ready })).unwrap());
    let job = story.eval("stdin.ReadLine()");
    let ask = AskId::from_uuid(uuid::Uuid::nil());
    let question = Question::text("<who> are you?");
    story.add(EventBody::AskRaised(Box::new(Ask {
        ask,
        raiser: Raiser::Job { job },
        question,
        deadline: None,
    })));
    story.add(EventBody::AskEnded {
        ask,
        ending: AskEnding::Answered { value: json!("<Ada>") },
        channel: None,
    });
    story.completes(job, value("\"<Ada>\"", "string"));
    story.add(EventBody::SessionReset);
    story.add(EventBody::OutputProduced { job: None, stream: OutputStream::Stdout, text: "late".to_owned() });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn what_code_left_running_prints_stands_in_its_own_cell_or_says_whose_it_is() {
    let late = |story: &mut SessionHistory, job: JobId| {
        let (job, text) = (Some(job), "<late>".to_owned());
        story.add(EventBody::OutputProduced { job, stream: OutputStream::Stdout, text });
    };
    let mut story = SessionHistory::default();
    let first = story.eval("first");
    story.completes(first, EvalResult::default());
    let second = story.eval("second");
    late(&mut story, first);
    story.completes(second, value("2", "int"));
    let shown = story.shown();
    let cells: Vec<_> = shown.split("first").nth(1).unwrap().split("second").collect();
    assert!(cells[0].contains("&lt;late&gt;") && !cells[1].contains("late"), "{shown}");

    late(&mut story, JobId::from_uuid(uuid::Uuid::max()));
    let shown = story.shown();
    assert!(shown.contains("printed by code that an earlier cell left running: &lt;late&gt;"), "{shown}");
}
