use mainstay_model::JobEnding;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A conversation with a worker that offers `quote`, and `search` in two versions.
struct Talk {
    conversation: Conversation,
    now: Duration,
}

impl Talk {
    fn begin() -> Self {
        let conversation = Conversation::begin("secret".to_owned(), 1, 100);
        Self { conversation, now: Duration::ZERO }
    }

    fn welcomed() -> Self {
        let mut talk = Self::begin();
        talk.take();
        let agents = json!(["quote", { "name": "search", "versions": ["1", "2"], "default": "2" }]);
        let welcome = json!({
            "runtime": { "name": "pricing", "version": "3" }, "session_id": "s", "resume_token": "t",
            "resume_window_sec": 0, "accepted_at": "2026-01-01T00:00:00Z",
            "capabilities": { "encodings": ["json"], "features": ["heartbeat"], "agents": agents },
        });
        assert_eq!(talk.hear(None, "session.welcome", welcome), [Output::Ready]);
        talk
    }

    fn take(&mut self) -> Vec<Output> {
        self.conversation.take()
    }

    fn line(&mut self, line: &str) -> Vec<Output> {
        self.now += Duration::from_millis(1);
        self.conversation.hear(line, self.now, Timestamp::UNIX_EPOCH);
        self.take()
    }

    fn hear(&mut self, job: Option<&str>, kind: &str, payload: Value) -> Vec<Output> {
        let envelope = json!({ "arcp": "1.1", "id": "m", "type": kind, "job_id": job, "payload": payload });
        self.line(&envelope.to_string())
    }

    fn run(&mut self, code: &str) -> (JobId, Vec<Output>) {
        let job = JobId::from_uuid(uuid::Uuid::from_u128(7));
        self.conversation.run(job, code, self.now);
        (job, self.take())
    }

    /// Has `quote` run until it has been accepted as `j`.
    fn running(&mut self) -> JobId {
        let (job, _) = self.run("quote {}");
        assert_eq!(self.hear(None, "job.accepted", accepted("j")), []);
        job
    }

    /// So many milliseconds pass.
    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    fn event(&mut self, kind: &str, body: Value) -> Vec<Output> {
        self.hear(Some("j"), "job.event", json!({ "kind": kind, "ts": "2026-01-01T00:00:00Z", "body": body }))
    }
}

fn accepted(job: &str) -> Value {
    json!({ "job_id": job, "agent": "quote", "accepted_at": "2026-01-01T00:00:00Z" })
}

/// The messages that the worker is told, by type and payload.
fn sent(outputs: &[Output]) -> Vec<(String, Value)> {
    let message = |output: &Output| match output {
        Output::Send(line) => {
            let message: Value = serde_json::from_str(line).unwrap();
            Some((message["type"].as_str().unwrap().to_owned(), message["payload"].clone()))
        }
        _ => None,
    };
    outputs.iter().filter_map(message).collect()
}

/// The one end that is told.
fn end(outputs: &[Output]) -> (JobEnding, EvalResult) {
    match outputs {
        [Output::Tell(RunnerNotice::Finished { report, .. })] => {
            assert!(!report.changes_state, "no call runs again");
            (report.ending.clone(), report.result.clone())
        }
        other => panic!("no end alone: {other:?}"),
    }
}

fn raised(outputs: &[Output]) -> (String, String) {
    match end(outputs).0 {
        JobEnding::Raised(error) => (error.kind, error.message),
        other => panic!("not raised: {other:?}"),
    }
}

#[test]
fn the_worker_is_greeted_and_shown_the_token() {
    let greeting = sent(&Talk::begin().take());
    let [(kind, hello)] = greeting.as_slice() else { panic!("{greeting:?}") };
    assert_eq!(kind, "session.hello");
    assert_eq!(hello["auth"], json!({ "scheme": "bearer", "token": "secret" }));
    let refused =
        Talk::begin().hear(None, "session.error", json!({ "code": "UNAUTHENTICATED", "message": "no" }));
    assert!(refused.contains(&Output::Refused("UNAUTHENTICATED: no".to_owned())), "{refused:?}");
}

#[test]
fn a_call_gives_what_its_tool_gives() {
    let mut talk = Talk::welcomed();
    let (_, told) = talk.run("search@1 {\"text\": \"a\"}");
    assert_eq!(
        sent(&told),
        [("job.submit".to_owned(), json!({ "agent": "search@1", "input": { "text": "a" } }))]
    );
    talk.hear(None, "job.accepted", accepted("j"));
    assert_eq!(talk.hear(Some("other"), "job.result", json!({ "final_status": "success", "result": 1 })), []);
    let result = json!({ "final_status": "success", "result": { "found": [1, 2] } });
    let (ending, result) = end(&talk.hear(Some("j"), "job.result", result));
    assert_eq!(ending, JobEnding::Completed);
    assert_eq!(result.tool_value(), Some(json!({ "found": [1, 2] })));
    assert_eq!(talk.conversation.job(), None);
}

#[test]
fn what_is_no_call_never_reaches_the_worker() {
    for (code, says) in [
        ("6 * 7", "no JSON"),
        ("quote {", "not whole"),
        ("price {}", "there is no tool price; there are quote, search"),
        ("search@3 {}", "the tool search has no version 3; there are 1, 2"),
        ("quote@2", "the tool quote has no version 2; it has only version 1"),
    ] {
        let mut talk = Talk::welcomed();
        let (_, told) = talk.run(code);
        let (ending, result) = end(&told);
        assert_eq!(ending, JobEnding::Rejected, "{code}");
        assert!(result.diagnostics[0].message.contains(says), "{code}: {:?}", result.diagnostics);
        assert_eq!(talk.conversation.diagnose(code), result.diagnostics);
    }
}

#[test]
fn what_happens_is_told_and_what_a_tool_prints_is_shown() {
    let mut talk = Talk::welcomed();
    let job = talk.running();
    let printed = |outputs: Vec<Output>| match outputs.as_slice() {
        [Output::Tell(RunnerNotice::Output { job: Some(of), stream, text })] if *of == job => {
            (*stream, text.clone())
        }
        other => panic!("{other:?}"),
    };
    let stdout = |text: &str| (OutputStream::Stdout, text.to_owned());
    assert_eq!(printed(talk.line("debug: here")), stdout("debug: here\n"));
    for json in ["[1, 2]", r#"{"level": "info"}"#, r#"{"id": "x", "type": "y"}"#] {
        assert_eq!(printed(talk.line(json)), stdout(&format!("{json}\n")));
    }
    assert_eq!(talk.line(r#"{"arcp": "1.1", "id": "x", "type": "y"}"#), [], "it is an envelope");
    assert_eq!(printed(talk.event("log", json!({ "level": "info", "message": "a" }))), stdout("a\n"));
    let trouble = printed(talk.event("log", json!({ "level": "error", "message": "b" })));
    assert_eq!(trouble, (OutputStream::Stderr, "b\n".to_owned()));
    assert_eq!(
        printed(talk.event("metric", json!({ "name": "n", "value": 2, "unit": "ms" }))),
        stdout("n: 2 ms\n")
    );
    // An event that cannot be read is passed over, as is one of a call that is not this one.
    assert_eq!(talk.event("tool_call", json!({ "tool_call_id": 1 })), []);
    let other =
        json!({ "kind": "log", "ts": "2026-01-01T00:00:00Z", "body": { "level": "info", "message": "c" } });
    assert_eq!(talk.hear(Some("k"), "job.event", other), []);
}

#[test]
fn how_much_is_done_is_shown_in_one_place() {
    let mut talk = Talk::welcomed();
    talk.running();
    let progress = |current: u32| json!({ "current": current, "total": 3, "units": "files", "message": "m" });
    let shown = |told: &[Output]| match told {
        [Output::Tell(RunnerNotice::Display { display, .. })] => (**display).clone(),
        other => panic!("{other:?}"),
    };
    let first = shown(&talk.event("progress", progress(0)));
    // One of many steps waits until it is due, or until the end.
    assert_eq!(talk.event("progress", progress(1)), []);
    talk.pass(100);
    let second = shown(&talk.event("progress", progress(2)));
    assert_eq!(talk.event("progress", progress(3)), []);
    let ended = talk.hear(Some("j"), "job.result", json!({ "final_status": "success" }));
    let [last, rest @ ..] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!(shown(std::slice::from_ref(last)).data.text(), "3 of 3 files: m");
    assert_eq!(end(rest).0, JobEnding::Completed);
    assert_eq!((first.is_update, second.is_update), (false, true));
    assert_eq!(first.id, second.id);
    assert_eq!(second.data.text(), "2 of 3 files: m");
    assert_eq!(Progress::of(&second.data).unwrap().current, 2.into());
}

#[test]
fn a_call_that_is_told_to_stop_is_interrupted_whenever_it_is_told() {
    for is_accepted in [false, true] {
        let mut talk = Talk::welcomed();
        talk.run("quote {}");
        if is_accepted {
            talk.hear(None, "job.accepted", accepted("j"));
        }
        talk.conversation.interrupt();
        let told = match is_accepted {
            true => talk.take(),
            false => {
                assert_eq!(talk.take(), []);
                talk.hear(None, "job.accepted", accepted("j"))
            }
        };
        assert_eq!(sent(&told)[0].0, "job.cancel");
        let ended = match is_accepted {
            true => {
                talk.hear(Some("j"), "job.error", json!({ "final_status": "cancelled", "code": "CANCELLED" }))
            }
            false => talk.hear(Some("j"), "job.result", json!({ "final_status": "cancelled" })),
        };
        assert_eq!(end(&ended).0, JobEnding::Interrupted { kept: 0 });
    }
}

#[test]
fn a_call_that_fails_says_why() {
    let error = json!({ "final_status": "error", "code": "OUT_OF_STOCK", "message": "none left" });
    let of = |kind: &str, payload: Value| {
        let mut talk = Talk::welcomed();
        talk.running();
        raised(&talk.hear(Some("j"), kind, payload))
    };
    let pair = |kind: &str, message: &str| (kind.to_owned(), message.to_owned());
    assert_eq!(of("job.error", error.clone()), pair("OUT_OF_STOCK", "none left"));
    assert_eq!(of("job.result", json!({ "final_status": "timed_out" })).0, "TIMEOUT");
    assert_eq!(of("job.result", json!({ "final_status": "cancelled" })).0, "CANCELLED");
    assert_eq!(of("job.result", json!({ "final_status": "what" })).0, "PROTOCOL");
    let large = of("job.result", json!({ "final_status": "success", "result": "x".repeat(100) }));
    assert_eq!(large, pair("RESULT_NOT_TAKEN", &too_large(100)));
    // What the worker does not accept fails with its words.
    let mut talk = Talk::welcomed();
    talk.run("quote {}");
    let refusal = json!({ "code": "INVALID_REQUEST", "message": "no such input" });
    assert_eq!(raised(&talk.hear(None, "session.error", refusal)), pair("INVALID_REQUEST", "no such input"));
}

#[test]
fn a_result_in_parts_is_put_together() {
    let mut talk = Talk::welcomed();
    talk.running();
    for (number, data) in ["one ", "two"].into_iter().enumerate() {
        let part = json!({
            "result_id": "r", "chunk_seq": number, "data": data, "encoding": "utf8", "more": number == 0,
        });
        assert_eq!(talk.event("result_chunk", part), []);
    }
    let result = json!({ "final_status": "success", "result_id": "r", "result_size": 7 });
    let ended = talk.hear(Some("j"), "job.result", result.clone());
    assert_eq!(end(&ended).1.tool_value(), Some(json!("one two")));
    let mut none = Talk::welcomed();
    none.running();
    assert_eq!(raised(&none.hear(Some("j"), "job.result", result.clone())).0, "RESULT_NOT_TAKEN");
    let mut unread = Talk::welcomed();
    unread.running();
    unread.event("result_chunk", json!({ "encoding": "gzip" }));
    assert_eq!(raised(&unread.hear(Some("j"), "job.result", result)).0, "RESULT_NOT_TAKEN");
}

#[test]
fn what_comes_of_one_call_is_never_anothers() {
    let mut talk = Talk::welcomed();
    talk.running();
    let done = json!({ "final_status": "success" });
    end(&talk.hear(Some("j"), "job.result", done.clone()));
    let (_, told) = talk.run("quote {}");
    let message: Value = match told.as_slice() {
        [Output::Send(line)] => serde_json::from_str(line).unwrap(),
        other => panic!("{other:?}"),
    };
    // What comes late of the call before, and of its cancel, is not meant for this one.
    assert_eq!(talk.hear(None, "session.error", json!({ "code": "JOB_NOT_FOUND" })), []);
    let other = json!({ "code": "INVALID_REQUEST", "details": { "request_id": "another" } });
    assert_eq!(talk.hear(None, "session.error", other), []);
    assert_eq!(talk.hear(None, "job.accepted", accepted("j")), []);
    assert_eq!(talk.hear(Some("j"), "job.result", json!({ "final_status": "nothing" })), []);
    let mut wrong = accepted("k");
    wrong["request_id"] = json!("another");
    assert_eq!(talk.hear(None, "job.accepted", wrong), []);
    let mut right = accepted("k");
    right["request_id"] = message["id"].clone();
    assert_eq!(talk.hear(None, "job.accepted", right), []);
    assert_eq!(end(&talk.hear(Some("k"), "job.result", done)).0, JobEnding::Completed);
}

#[test]
fn a_worker_may_say_no_more_than_the_draft_wants() {
    let mut talk = Talk::begin();
    talk.take();
    let welcome = json!({
        "arcp": "1.1", "id": "m", "type": "session.welcome", "session_id": "s",
        "payload": {
            "runtime": { "name": "x", "version": "1" }, "resume_token": "t", "resume_window_sec": 600,
            "heartbeat_interval_sec": 1, "capabilities": { "encodings": ["json"], "agents": ["quote"] },
        },
    });
    assert_eq!(talk.line(&welcome.to_string()), [Output::Ready]);
    assert_eq!(talk.conversation.beat_interval(), Duration::from_millis(500));
    talk.run("quote");
    assert_eq!(talk.hear(None, "job.accepted", json!({ "job_id": "j" })), []);
    let done = talk.hear(Some("j"), "job.result", json!({ "final_status": "success", "result": 1 }));
    assert_eq!(end(&done).1.tool_value(), Some(json!(1)));
    talk.run("quote");
    assert_eq!(raised(&talk.hear(None, "job.accepted", json!({}))).0, "PROTOCOL");
}

#[test]
fn a_call_that_its_worker_never_took_says_so() {
    let mut talk = Talk::welcomed();
    talk.run("quote");
    talk.conversation.gone(talk.now);
    assert_eq!(raised(&talk.take()).0, "UNAVAILABLE");
    talk.running();
    talk.conversation.gone(talk.now);
    assert_eq!(talk.take(), [], "what it has taken may have had effects");
    talk.conversation.cannot_hear(10, 5, talk.now);
    let told = talk.take();
    assert_eq!(raised(&told[..1]).0, "PROTOCOL");
    assert_eq!(told[1..], [Output::Kill]);
}

#[test]
fn an_idle_worker_that_does_not_answer_is_ended_and_a_busy_one_is_left_alone() {
    let mut talk = Talk::welcomed();
    assert_eq!(talk.conversation.beat_interval(), BEAT);
    for _ in 0..BEATS_MISSED {
        talk.conversation.beat(Timestamp::UNIX_EPOCH);
        assert_eq!(sent(&talk.take())[0].0, "session.ping");
    }
    talk.hear(None, "session.pong", json!({ "ping_nonce": "n", "received_at": "2026-01-01T00:00:00Z" }));
    for _ in 0..BEATS_MISSED {
        talk.conversation.beat(Timestamp::UNIX_EPOCH);
        assert_eq!(sent(&talk.take())[0].0, "session.ping");
    }
    talk.conversation.beat(Timestamp::UNIX_EPOCH);
    assert_eq!(talk.take(), [Output::Kill]);
    let mut busy = Talk::welcomed();
    busy.running();
    for _ in 0..2 * BEATS_MISSED {
        busy.conversation.beat(Timestamp::UNIX_EPOCH);
        assert_eq!(sent(&busy.take())[0].0, "session.ping", "the worker is to hear of its client");
    }
    let ping = json!({ "nonce": "n", "sent_at": "2026-01-01T00:00:00Z" });
    assert_eq!(sent(&busy.hear(None, "session.ping", ping))[0].1["ping_nonce"], "n");
}

#[test]
fn a_name_is_completed_where_the_cursor_is_in_it() {
    let at = |code: &str, column| name_at(code, TextPosition { line: 1, column });
    assert_eq!(at("  qu", 5), Some((TextPosition { line: 1, column: 3 }, "qu".to_owned())));
    assert_eq!(at("", 1), Some((TextPosition { line: 1, column: 1 }, String::new())));
    assert_eq!(at("quote {", 8), None);
}

proptest! {
    /// Whatever a worker writes, a call ends once.
    #[test]
    fn no_call_ends_twice(lines in prop::collection::vec(line(), 0..12)) {
        let mut talk = Talk::welcomed();
        talk.run("quote {}");
        let outputs: Vec<Output> = lines.iter().flat_map(|line| talk.line(line)).collect();
        let ends = outputs.iter().filter(|output| matches!(output, Output::Tell(RunnerNotice::Finished { .. })));
        let has_ended = talk.conversation.job().is_none();
        prop_assert_eq!(ends.count(), usize::from(has_ended));
    }
}

fn line() -> impl Strategy<Value = String> {
    let message = |kind: &str, job: Option<&str>, payload: Value| {
        json!({ "arcp": "1.1", "id": "m", "type": kind, "job_id": job, "payload": payload }).to_string()
    };
    let status = |status: &str| json!({ "final_status": status, "code": "CANCELLED" });
    prop_oneof![
        ".*",
        Just(message("job.accepted", None, accepted("j"))),
        Just(message("job.accepted", None, accepted("k"))),
        Just(message("job.result", Some("j"), status("success"))),
        Just(message("job.result", Some("j"), status("nothing"))),
        Just(message("job.error", Some("j"), status("cancelled"))),
        Just(message("job.error", Some("k"), status("error"))),
        Just(message("session.error", None, json!({ "code": "X" }))),
        Just(message("session.welcome", None, json!({}))),
    ]
}
