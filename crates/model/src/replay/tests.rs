//! Which submissions a replay runs, and what it reports of those whose result differs.

use std::time::Duration;

use super::*;
use crate::Timestamp;
use crate::diagnostic::{Diagnostic, Severity, TextPosition};
use crate::eval::{Binding, EvalResult, RaisedError, WorkerExit};
use crate::event::{Blame, CancelEnding, CompletedPart, Event, EventBody, Metadata, Source};
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, Position};
use crate::limits::Limits;
use crate::runner_notice::{JobEnding, JobReport};

fn session() -> SessionId {
    SessionId::from_uuid(uuid::Uuid::nil())
}

fn job(index: usize) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(index as u128))
}

fn event(body: EventBody) -> Event {
    let metadata = Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
    Event {
        session: session(),
        seq: Seq(1),
        position: Position(1),
        at: Timestamp::UNIX_EPOCH,
        metadata,
        body,
    }
}

fn requested(index: usize, code: &str) -> Event {
    let request = event(EventBody::EvalRequested {
        job: job(index),
        command: CommandId::from_uuid(job(index).as_uuid()),
        fingerprint: CommandFingerprint::of("", &code),
        key: None,
        deadline: None,
        grants: None,
        code: code.to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    });
    Event { seq: Seq(index as u64 + 1), ..request }
}

/// One completed eval a line: `!` changes state, `=` gives a value, `it` uses the last one.
fn list_of(evals: &[&str]) -> ReplayList {
    let mut list = ReplayList::default();
    for (index, eval) in evals.iter().enumerate() {
        let result = EvalResult {
            value_type: eval.contains('=').then(|| "int".to_owned()),
            uses_last: eval.contains("it"),
            ..EvalResult::default()
        };
        list.push(requested(index, eval));
        let changes_state = eval.contains('!');
        list.push(event(EventBody::EvalCompleted { job: job(index), result, changes_state, duration_ms: 0 }));
    }
    list
}

fn codes(list: ReplayList) -> Vec<String> {
    list.finish().items.into_iter().map(|item| item.code).collect()
}

fn replayed(evals: &[&str]) -> Vec<String> {
    codes(list_of(evals))
}

fn exited(blame: Option<Blame>) -> Event {
    let exit = WorkerExit::Signal(6);
    event(EventBody::WorkerExited { exit, attempt: 1, restart_after_ms: Some(1), reason: None, blame })
}

fn surely(index: usize) -> Option<Blame> {
    Some(Blame { job: job(index), is_sure: true })
}

fn maybe(index: usize) -> Option<Blame> {
    Some(Blame { job: job(index), is_sure: false })
}

#[test]
fn what_is_more_than_code_that_ran_silently_runs_alone() {
    let may = |change: fn(&mut ReplayItem)| {
        let mut item = list_of(&["a!"]).finish().items.remove(0);
        change(&mut item);
        item.may_run_together()
    };
    assert!(may(|_| ()));
    assert!(!may(|item| item.succeeded = false));
    assert!(!may(|item| item.was_silent = false));
    assert!(may(|item| item.file = Some("/a.fsx".to_owned())));
    assert!(!may(|item| item
        .asked
        .push(RecordedAsk { ask: AskId::from_uuid(uuid::Uuid::nil()), answer: Err(Error::Cancelled) })));
    assert!(!may(|item| item.code = "a".repeat(AHEAD_BYTES + 1)));
}

#[test]
fn what_only_looked_is_not_run_again_but_for_the_last_value() {
    assert_eq!(replayed(&["a!", "b=", "c=", "d!"]), ["a!", "c=", "d!"]);
    assert_eq!(replayed(&["a!", "b=", "c! ="]), ["a!", "c! ="]);
}

#[test]
fn a_value_that_a_definition_used_is_brought_back_in_its_place_with_all_it_came_from() {
    assert_eq!(replayed(&["a=", "b=", "c= it", "d! it", "e="]), ["b=", "c= it", "d! it", "e="]);
    assert_eq!(replayed(&["a=", "b!", "c! it"]), ["a=", "b!", "c! it"]);
    assert_eq!(replayed(&["a=", "b! =", "c! it"]), ["b! =", "c! it"]);
    assert_eq!(replayed(&["a=", "b! it", "c=", "d! it"]), ["a=", "b! it", "c=", "d! it"]);
}

#[test]
fn what_ended_a_worker_is_left_out_and_named() {
    let mut list = list_of(&["a!", "b!", "c=", "d!"]);
    for blame in [None, surely(1), surely(2), surely(1), surely(9)] {
        list.push(exited(blame));
    }
    let replay = list.finish();
    assert_eq!(replay.left_out, [(session(), Seq(2)), (session(), Seq(3))]);
    let codes: Vec<_> = replay.items.into_iter().map(|item| item.code).collect();
    assert_eq!(codes, ["a!", "d!"]);
}

#[test]
fn what_may_have_ended_a_worker_is_left_out_the_second_time() {
    let codes_after = |blames: &[Option<Blame>]| {
        let mut list = list_of(&["a!", "b!"]);
        blames.iter().for_each(|blame| list.push(exited(*blame)));
        codes(list)
    };
    assert_eq!(codes_after(&[maybe(1)]), ["a!", "b!"]);
    assert_eq!(codes_after(&[maybe(1), maybe(0)]), ["a!", "b!"]);
    assert_eq!(codes_after(&[maybe(1), None, maybe(1)]), ["a!"]);
    assert_eq!(codes_after(&[maybe(1), surely(0)]), ["b!"]);
}

#[test]
fn of_cancelled_code_the_part_that_had_run_is_run_again() {
    let cancelled = |kept: Option<usize>| {
        let kept = kept.map(|bytes| CompletedPart { bytes, bindings: Vec::new() });
        let mut list = list_of(&["a!"]);
        list.push(requested(1, "let é = 1;; spin ()"));
        list.push(event(EventBody::EvalCancelled {
            job: job(1),
            ending: CancelEnding::Yielded,
            kept,
            grace_ms: None,
        }));
        codes(list)
    };
    assert_eq!(cancelled(Some(12)), ["a!", "let é = 1;;"]);
    assert_eq!(cancelled(None), ["a!"]);
    for no_part in [5, 1000] {
        assert_eq!(cancelled(Some(no_part)), ["a!"], "{no_part}");
    }
}

#[test]
fn the_last_value_that_cancelled_code_may_have_used_is_brought_back() {
    let mut list = list_of(&["a="]);
    list.push(requested(1, "b it;; spin ()"));
    list.push(event(EventBody::EvalCancelled {
        job: job(1),
        ending: CancelEnding::Yielded,
        kept: Some(CompletedPart { bytes: 6, bindings: Vec::new() }),
        grace_ms: None,
    }));
    assert_eq!(codes(list), ["a=", "b it;;"]);
}

fn result(value: &str) -> EvalResult {
    let binding = |name: &str, value: &str| Binding {
        name: name.to_owned(),
        value_type: "int".to_owned(),
        value: Some(value.to_owned()),
    };
    EvalResult { bindings: vec![binding("x", value), binding("y", "2")], ..EvalResult::default() }
}

#[test]
fn a_value_of_the_part_that_is_kept_is_compared_as_well() {
    let mut list = ReplayList::default();
    list.push(requested(0, "code;; spin ()"));
    let kept = Some(CompletedPart { bytes: 6, bindings: result("1").bindings });
    list.push(event(EventBody::EvalCancelled {
        job: job(0),
        ending: CancelEnding::Yielded,
        kept,
        grace_ms: None,
    }));
    let ending = JobEnding::Completed;
    let report = JobReport {
        ending,
        result: result("7"),
        changes_state: true,
        took: Duration::ZERO,
        references: None,
    };
    let divergence = list.finish().items[0].divergence(session(), report, &Limits::default()).unwrap();
    assert_eq!(divergence.kind, values(&["x"], &[("x", "7")]));
}

fn values(names: &[&str], now: &[(&str, &str)]) -> DivergenceKind {
    DivergenceKind::Values {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        now: now.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

/// What is said of code that gave `before` and then ends as `ending` with `after`.
fn divergence(before: EvalResult, ending: JobEnding, after: EvalResult) -> Option<DivergenceKind> {
    let mut list = ReplayList::default();
    list.push(requested(0, "code"));
    list.push(event(EventBody::EvalCompleted {
        job: job(0),
        result: before,
        changes_state: true,
        duration_ms: 0,
    }));
    let report =
        JobReport { ending, result: after, changes_state: true, took: Duration::ZERO, references: None };
    let limits = Limits { value_bytes: 40, ..Limits::default() };
    list.finish().items[0].divergence(session(), report, &limits).map(|divergence| divergence.kind)
}

#[test]
fn a_value_that_differs_is_named_and_one_that_is_the_same_is_not() {
    let completed = JobEnding::Completed;
    assert_eq!(divergence(result("1"), completed.clone(), result("1")), None);
    assert_eq!(divergence(result("1"), completed.clone(), result("7")), Some(values(&["x"], &[("x", "7")])));
    assert_eq!(
        divergence(result("1"), completed.clone(), EvalResult::default()),
        Some(values(&["x", "y"], &[]))
    );
    let last = |value: &str| EvalResult {
        value: Some(value.to_owned()),
        value_type: Some("int".to_owned()),
        ..EvalResult::default()
    };
    assert_eq!(divergence(last("1"), completed, last("2\n")), Some(values(&["it"], &[("it", "2")])));
}

#[test]
fn what_fails_now_is_told_with_what_it_failed_with() {
    let fails = |ending, result| divergence(EvalResult::default(), ending, result).unwrap();
    let because = |error: &str| DivergenceKind::Ending { error: Some(error.to_owned()) };
    let raised = JobEnding::Raised(RaisedError {
        kind: "Oops".to_owned(),
        message: "no\n  more".to_owned(),
        stack: None,
        coloured_stack: None,
    });
    assert_eq!(fails(raised, EvalResult::default()), because("Oops: no more"));
    let place = TextPosition { line: 1, column: 1 };
    let diagnostic = |severity, code: &str, message: &str| Diagnostic {
        severity,
        code: code.to_owned(),
        message: message.to_owned(),
        start: place,
        end: place,
        file: None,
    };
    let diagnostics = vec![
        diagnostic(Severity::Warning, "W1", "old"),
        diagnostic(Severity::Error, "NU1101", "no such package"),
    ];
    let rejected = EvalResult { diagnostics, ..EvalResult::default() };
    let failed = fails(JobEnding::Rejected, rejected);
    assert_eq!(failed, because("NU1101 no such package"));
    let told = Divergence { requested: Seq(3), session: None, kind: failed }.to_string();
    assert_eq!(told, "#3 failed: NU1101 no such package");
    assert_eq!(fails(JobEnding::Rejected, EvalResult::default()), DivergenceKind::Ending { error: None });
}

#[test]
fn a_divergence_that_was_written_as_a_bare_request_is_read() {
    let read: Divergence = serde_json::from_str("4").unwrap();
    assert_eq!(
        read,
        Divergence { requested: Seq(4), session: None, kind: DivergenceKind::Ending { error: None } }
    );
}

#[test]
fn numbers_of_submissions_and_what_was_cut_make_no_difference() {
    let of = |text: &str| divergence(result("<fun:f@12-1>"), JobEnding::Completed, result(text));
    assert_eq!(of("<fun:f@9>"), None);
    assert!(of("<fun:g@9>").is_some());
    let of = |text: &str| divergence(result("FSI_0004+T é"), JobEnding::Completed, result(text));
    assert_eq!(of("FSI_0002+T é"), None);
    let long = |end: &str| result(&format!("{}{end}", "1".repeat(50)));
    let kept = long("a").cut(40);
    assert_eq!(divergence(kept, JobEnding::Completed, long("b")), None);
}
