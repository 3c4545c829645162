//! The files of `docs/schema` are what the types say; what is read is what was written, and anything else is refused.

use std::path::PathBuf;

use mainstay_model::{Error, Event, Session, Timestamp};
use mainstay_runner::Completions;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::agents::Say;
use super::super::commands::{AnswerAsk, Cancel, Exec, Load, MergeFrom, Rename};
use super::super::create::{Create, Fork};
use super::super::diagnostics::{Check, Complete};
use super::super::signals::{
    self, AnySignals, CompletionsSignal, CompletionsSignals, DiagnosticsSignals, EventSignals, Frame,
};
use super::super::submission::{Accepted, Terms};
use super::fuzz_invariants::check_bodies;
use super::{Decode, Encode, Schema, document, message, read};
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::view::{CommandView, ErrorView, EvalView, MergeView, SessionView};

/// Set, the files are written instead of compared.
const UPDATE: &str = "MAINSTAY_UPDATE_SCHEMAS";

const SESSION: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const JOB: &str = "01890a5d-ac96-774b-bcce-b30209000001";

fn must_be_in_docs(name: &str, written: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, written).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == written,
        "docs/schema/{name} is not what the types say; `{UPDATE}=1 cargo xtask test -- -p mainstay-http --lib` writes it"
    );
}

#[test]
fn the_schema_is_the_one_in_docs() {
    must_be_in_docs("mainstay.bare", &document());
}

#[test]
fn the_vectors_are_those_in_docs() {
    let vectors: Vec<Value> = frames().into_iter().chain(answers()).chain(bodies()).collect();
    must_be_in_docs("vectors.json", &(serde_json::to_string_pretty(&vectors).unwrap() + "\n"));
}

/// One message, in both of its forms.
fn vector<T: Encode + Serialize>(told: &T) -> Value {
    vector_of(T::shape(&mut Schema::default()), &serde_json::to_value(told).unwrap(), &message(told))
}

fn vector_of(kind: String, json: &Value, bare: &[u8]) -> Value {
    let hex: String = bare.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "type": kind, "json": json, "bare": hex })
}

fn of_json<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn event(seq: u64, kind: &str, body: Value) -> Event {
    let mut event = json!({
        "session": SESSION, "seq": seq, "position": 1000 + seq, "at": "2026-11-22T20:00:00.000001Z",
        "source": { "client": { "principal": "local", "name": "nvim" } }, "correlation": "c-1", "kind": kind,
    });
    if !body.is_null() {
        event["body"] = body;
    }
    of_json(event)
}

fn created() -> Event {
    let body = json!({ "kind": "fsharp", "name": "demo", "workingDirectory": "/src/demo", "project": "/src/demo/demo.fsproj" });
    event(1, "sessionCreated", body)
}

fn diagnostics() -> Value {
    json!([{
        "severity": "error", "code": "FS0039", "message": "`x` is not defined",
        "start": { "line": 1, "column": 1 }, "end": { "line": 1, "column": 2 },
    }])
}

/// What `/eval` tells something of.
fn events_of_jobs() -> Vec<Event> {
    let fingerprint = "0".repeat(64);
    let result = json!({
        "value": "3", "valueType": "int", "bindings": [{ "name": "a", "valueType": "int", "value": "3" }],
        "diagnostics": diagnostics(),
    });
    let forms = json!({ "text/plain": "it", "image/png": "iVBORw==", "application/json": { "a": [1] } });
    let part = json!({ "role": "toolCall", "text": "{\"code\":\"1\"}", "metadata": { "call": "t1", "isError": false } });
    vec![
        event(
            7,
            "evalRequested",
            json!({ "job": JOB, "command": "c-1", "fingerprint": fingerprint, "code": "let a = 3", "file": "/a.fsx" }),
        ),
        event(8, "outputProduced", json!({ "job": JOB, "stream": "stdout", "text": "hé\n" })),
        event(9, "outputDisplayed", json!({ "job": JOB, "id": "plot", "isValue": true, "data": forms })),
        event(
            300,
            "evalCompleted",
            json!({ "job": JOB, "result": result, "changesState": true, "durationMs": 12 }),
        ),
        event(
            301,
            "evalFailed",
            json!({
                "job": JOB, "failure": { "cause": "raised", "error": { "kind": "System.Exception", "message": "x" } },
                "result": {}, "changesState": false, "durationMs": 20_000,
            }),
        ),
        event(
            302,
            "messageStreamed",
            json!({
                "job": JOB, "message": 0, "part": 1, "role": "toolCall", "offset": 200, "text": "{", "tool": { "call": "t1", "tool": "sh" },
            }),
        ),
        event(
            303,
            "messageAdded",
            json!({
                "parts": [part], "metadata": { "model": "m" }, "usage": { "input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4 },
            }),
        ),
        event(
            304,
            "jobEnded",
            json!({ "job": JOB, "ending": "failed", "message": "no more", "durationMs": 1 }),
        ),
    ]
}

fn frames() -> Vec<Value> {
    let session =
        Session::fold(&[created(), event(2, "warmUpStarted", json!({ "reason": "started" }))]).unwrap();
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let completions: Completions = of_json(
        json!({ "items": [{ "label": "name", "kind": "value", "detail": "string" }], "start": { "line": 1, "column": 3 } }),
    );
    let files = json!({ "/a.fsx": diagnostics(), "": null });
    let jobs = events_of_jobs();
    let mut told: Vec<(Option<u64>, AnySignals<'_>)> = vec![
        (Some(2), AnySignals::Status(signals::status(&session, Some(1 << 30), Some(12), now))),
        (Some(0), AnySignals::Eval(signals::idle(mainstay_model::Seq(0), now))),
        (None, AnySignals::Diagnostics(DiagnosticsSignals { diagnostics: of_json(files) })),
        (None, AnySignals::Completions(CompletionsSignals { completions: None })),
        (
            None,
            AnySignals::Completions(CompletionsSignals {
                completions: Some(CompletionsSignal { command_id: of_json(json!("c-1")), completions }),
            }),
        ),
    ];
    told.extend(
        jobs.iter().map(|event| (Some(event.seq.0), AnySignals::Eval(signals::eval(event).unwrap()))),
    );
    let mut events = [created(), event(3, "sessionReset", Value::Null)];
    events[1].metadata.source = mainstay_model::Source::Worker;
    told.extend(events.iter().map(|event| (Some(event.seq.0), AnySignals::Event(EventSignals { event }))));
    told.iter().map(|(id, signals)| vector(&Frame { id: *id, signals })).collect()
}

fn answers() -> Vec<Value> {
    let eval = json!({
        "session": SESSION, "command": "c-1", "seq": 9, "success": false, "ending": "raised", "value": null, "type": null,
        "stdout": "hé\n", "stderr": "", "displays": [{ "printedBefore": 2, "data": { "text/plain": "it" } }],
        "diagnostics": diagnostics(), "error": { "kind": "System.Exception", "message": "x" }, "durationMs": 12, "version": 3,
    });
    let work = json!({
        "session": SESSION, "command": "c-2", "seq": 9, "success": true, "ending": "done", "reason": "end-turn", "text": "Yes.",
        "value": { "a": 1 }, "usage": { "input": 1 }, "durationMs": 12,
    });
    let refused = json!({ "index": 4, "error": ErrorView::from(Error::Cancelled) });
    let recorded = json!({ "outcome": "done", "response": { "response": "recorded", "seq": 4 } });
    let session = json!({
        "session": SESSION, "shortId": "099a8057", "name": "demo", "kind": "fsharp", "state": "Ready", "offered": ["eval", "hardReset"],
        "workingDirectory": "/src", "createdAt": "2026-11-22T20:00:00Z", "lastActivity": "2026-11-22T20:00:01.5Z", "lastSeq": 3,
        "evals": 0, "failures": 0, "forkedFrom": { "session": JOB, "entries": 2 }, "waiting": ["c-9"],
        "worker": { "kernel": "F# 9.0", "runtime": ".NET 9.0", "pid": 4711, "usage": { "residentBytes": 1, "cpuMs": 2 } },
    });
    vec![
        vector(&Accepted {
            command_id: of_json(json!("c-1")),
            session: of_json(json!(SESSION)),
            seq: of_json(json!(7)),
        }),
        vector(&of_json::<EvalView>(eval.clone())),
        vector(&of_json::<WorkView>(work)),
        vector(&of_json::<CommandView>(
            json!({ "command": "c-1", "session": SESSION, "state": "ended", "version": 2, "outcome": recorded }),
        )),
        vector(&of_json::<MergeView>(
            json!({ "success": false, "ran": [{ "index": 2, "eval": eval }], "refused": refused, "notRun": [6, 8] }),
        )),
        vector(&of_json::<SessionView>(session)),
    ]
}

fn body<T: Decode + DeserializeOwned + Encode>(json: Value) -> Value {
    let said: T = of_json(json.clone());
    vector_of(T::shape(&mut Schema::default()), &json, &message(&said))
}

fn bodies() -> Vec<Value> {
    let terms = json!({ "commandId": "c-1", "dependsOn": ["a", "b"], "ifVersion": 300, "timeoutMs": 60_000 });
    let with = |mut own: Value| {
        own.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        own
    };
    vec![
        body::<Exec>(json!({ "code": "1 + 1" })),
        body::<Exec>(with(json!({ "code": "let é = 1", "file": "/a.fsx" }))),
        body::<Load>(with(json!({ "file": "/a.fsx" }))),
        body::<Cancel>(with(json!({ "target": "c-0" }))),
        body::<Terms>(terms.clone()),
        body::<Rename>(json!({ "name": "demo" })),
        body::<Say>(json!({ "text": "Go on.", "atEnd": true })),
        body::<MergeFrom>(json!({ "from": "other", "entries": [[0, 2], [4, 300]], "commandId": "c-1" })),
        body::<Check>(json!({ "code": "x", "file": "/a.fsx", "commandId": "c-1" })),
        body::<Complete>(json!({ "code": "x", "line": 1, "column": 2 })),
        body::<Create>(
            json!({ "kind": "fsharp", "workingDirectory": "/src", "name": "demo", "dependsOn": ["a"] }),
        ),
        body::<Fork>(json!({ "entries": 4, "name": "copy" })),
        body::<AnswerAsk>(with(json!({ "value": { "yes": [true, 1.5, "é"] } }))),
        body::<AnswerAsk>(json!({ "decline": true })),
    ]
}

fn id() -> impl Strategy<Value = String> {
    "[a-zé:]{1,12}".prop_filter("the server's own", |id| !id.starts_with("anon:"))
}

prop_compose! {
    fn exec()(
        code in ".{0,300}",
        file in proptest::option::of(".{0,9}"),
        command_id in proptest::option::of(id()),
        depends_on in proptest::collection::vec(id(), 0..4),
        if_version in any::<Option<u64>>(),
        timeout_ms in any::<Option<u64>>(),
    ) -> Value {
        json!({
            "code": code, "file": file, "commandId": command_id, "dependsOn": depends_on, "ifVersion": if_version,
            "timeoutMs": timeout_ms,
        })
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_the_same(said in exec(), entries in proptest::collection::vec(any::<(u64, u64)>(), 0..9)) {
        let exec: Exec = of_json(said);
        let again: Exec = read(&message(&exec)).unwrap();
        prop_assert_eq!(format!("{:?}", again), format!("{:?}", exec));
        let merge: MergeFrom = of_json(json!({ "from": "x", "entries": entries }));
        let again: MergeFrom = read(&message(&merge)).unwrap();
        prop_assert_eq!(format!("{:?}", again), format!("{:?}", merge));
    }

    #[test]
    fn a_message_that_is_cut_off_or_goes_on_is_refused(said in exec(), cut in any::<proptest::sample::Index>(), more in any::<u8>()) {
        let mut bytes = message(&of_json::<Exec>(said));
        prop_assert!(read::<Exec>(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(more);
        prop_assert!(read::<Exec>(&bytes).is_err());
    }

    #[test]
    fn whatever_bytes_there_are_they_are_refused_or_read_as_they_stand(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        check_bodies(&bytes);
    }

    #[test]
    fn a_message_that_was_damaged_is_refused_or_read_as_it_stands(said in exec(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = message(&of_json::<Exec>(said));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check_bodies(&bytes);
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let refused = |bytes: &[u8]| read::<Cancel>(bytes).unwrap_err().to_string();
    insta::assert_debug_snapshot!(
        [
            refused(&[]),
            refused(&[3]),
            refused(&[1, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a']),
            refused(&[1, 1, b' ', 0, 0, 0, 0]),
            refused(&[0, 0, 0, 0, 0, 0]),
        ],
        @r#"
    [
        "it ends too soon, at byte 0",
        "3 is no bool, at byte 0",
        "4294967295 are to follow, which is more than there are, at byte 6",
        "command id is not valid: it must have 1 to 256 bytes of text without white space or control characters, at byte 3",
        "1 bytes too many, at byte 5",
    ]
    "#
    );
    assert!(read::<AnswerAsk>(&[2, b'{', b'x', 0, 0, 0, 0, 0]).is_err());
}
