//! Permissions that people give a job for a time.

use mainstay_model::command::{Answer, ExtendLease, RevokeLease};
use mainstay_model::grant::{AskedOperation, Grants, Lease, LeaseTerms, OperationKind};
use mainstay_model::{
    Channel, Command, Effect, Error, EventBody, Input, LeaseId, Limits, Notice, Outcome, Principal, Response,
    RunnerNotice, SessionCommand, Source, Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::decide::SessionHistory;
use crate::grants::{JOB, agent, begin, hear, turn};
use crate::support::{ask_id, client, command_id, job_id};

const FILE: &str = "/work/a";

/// An agent with a job whose client is asked about everything.
fn asking() -> SessionHistory {
    let mut story = agent();
    begin(&mut story, turn(), Grants::default().asking()).unwrap();
    story
}

fn writes(story: &mut SessionHistory, ask: u128, target: &str) -> Vec<Effect> {
    let operation =
        AskedOperation { kind: OperationKind::FS_WRITE, target: target.to_owned(), is_recursive: false };
    hear(story, RunnerNotice::Checks { job: job_id(JOB), check: ask_id(ask), operation })
}

/// Whether a file is written without a question.
fn may_write(story: &mut SessionHistory, ask: u128, target: &str) -> bool {
    match writes(story, ask, target).as_slice() {
        [Effect::Answer { answer: Ok(_), .. }] => true,
        [] => {
            let overdue = Notice::AskOverdue { ask: ask_id(ask) };
            let decision = story.decide(Input::Notice(overdue)).unwrap();
            story.carry(decision);
            false
        }
        other => panic!("{other:?}"),
    }
}

fn send(story: &mut SessionHistory, number: usize, body: SessionCommand) -> Result<(), Error> {
    let command = Command::new(command_id(1_000 + number), client(), body);
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
    let decision = story.decide(input)?;
    story.carry(decision);
    match story.answers.get(command_id(1_000 + number).as_str()) {
        Some(Outcome::Done { response: Response::Recorded { .. } }) => Ok(()),
        other => panic!("{other:?}"),
    }
}

fn lease(ask: u128) -> LeaseId {
    LeaseId::from(ask_id(ask))
}

fn answer(ask: u128, value: &str, seconds: u64, pattern: Option<&str>) -> SessionCommand {
    let terms = LeaseTerms { duration_ms: seconds * 1_000, pattern: pattern.map(str::to_owned) };
    SessionCommand::Answer(Answer { lease: Some(terms), ..Answer::new(ask_id(ask), json!(value)) })
}

fn extend(ask: u128, seconds: Option<u64>) -> SessionCommand {
    let duration_ms = seconds.map(|seconds| seconds * 1_000);
    SessionCommand::ExtendLease(ExtendLease { lease: lease(ask), duration_ms })
}

fn revoke(ask: u128) -> SessionCommand {
    SessionCommand::RevokeLease(RevokeLease { lease: lease(ask), reason: "enough".to_owned() })
}

#[test]
fn an_answer_gives_a_permission_for_a_time_and_what_it_covers_is_not_asked_about() {
    let mut story = asking();
    story.steps = 100;
    assert_eq!(writes(&mut story, 1, FILE), [], "it waits for an answer");
    send(&mut story, 1, answer(1, "once", 60, Some("/work/**"))).unwrap();
    let given = story.events.last().unwrap();
    assert!(matches!(given.body, EventBody::LeaseChanged { .. }), "{given:?}");
    assert_eq!(given.metadata.source, client(), "it is known who gave it");
    assert_eq!(given.metadata.correlation, Some(command_id(50)), "it belongs to the job");
    assert!(may_write(&mut story, 2, FILE));
    assert!(may_write(&mut story, 3, "/work/b/c"));
    assert!(!may_write(&mut story, 4, "/etc/passwd"), "nothing else");
    story.steps = 159;
    assert!(may_write(&mut story, 5, FILE));
    story.steps = 160;
    assert!(!may_write(&mut story, 6, FILE), "the time is over, so it is asked about anew");
}

#[test]
fn a_permission_for_one_target_covers_no_other() {
    let mut story = asking();
    writes(&mut story, 1, "/work/*");
    send(&mut story, 1, answer(1, "once", 60, None)).unwrap();
    assert!(may_write(&mut story, 2, "/work/*"));
    assert!(!may_write(&mut story, 3, FILE), "a star in a name is no pattern");
}

#[test]
fn a_permission_that_is_revoked_is_asked_about_anew() {
    let mut story = asking();
    writes(&mut story, 1, FILE);
    send(&mut story, 1, answer(1, "once", 60, None)).unwrap();
    assert!(may_write(&mut story, 2, FILE));
    send(&mut story, 2, revoke(1)).unwrap();
    assert!(!may_write(&mut story, 3, FILE));
    let again = send(&mut story, 3, revoke(1)).unwrap_err();
    assert!(matches!(again, Error::InvalidArgument { .. }), "{again}");
}

#[test]
fn a_permission_is_extended_by_what_it_was_given_for_and_never_beyond_the_longest_time() {
    let mut story = asking();
    story.steps = 0;
    writes(&mut story, 1, FILE);
    send(&mut story, 1, answer(1, "once", 2_000, None)).unwrap();
    story.steps = 1_500;
    send(&mut story, 2, extend(1, Some(50_000))).unwrap();
    story.steps = 3_499;
    assert!(may_write(&mut story, 2, FILE));
    // An hour is the most that one is held for.
    send(&mut story, 3, extend(1, None)).unwrap();
    let beyond = send(&mut story, 4, extend(1, None)).unwrap_err();
    assert!(matches!(beyond, Error::GrantExceeded { .. }), "{beyond}");
    story.steps = 3_600;
    assert!(!may_write(&mut story, 3, FILE));
    let late = send(&mut story, 5, extend(1, None)).unwrap_err();
    assert!(matches!(late, Error::GrantExpired { .. }), "{late}");
}

#[test]
fn only_who_has_the_job_asks_for_more_time() {
    let mut story = asking();
    writes(&mut story, 1, FILE);
    send(&mut story, 1, answer(1, "once", 60, None)).unwrap();
    let other = Source::Client { principal: Principal::new("ada").unwrap(), name: "cli".to_owned() };
    let command = Command::new(command_id(9), other, extend(1, None));
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
    let refused = story.decide(input).unwrap_err();
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
}

#[test]
fn where_none_are_given_for_a_time_that_is_said() {
    let asked =
        AskedOperation { kind: OperationKind::FS_WRITE, target: FILE.to_owned(), is_recursive: false };
    let limits = Limits { lease_longest_ms: 0, ..Limits::default() };
    let terms = LeaseTerms { duration_ms: 60_000, pattern: None };
    let refused = Lease::new(asked, &terms, Timestamp::UNIX_EPOCH, &limits).unwrap_err();
    assert!(refused.to_string().contains("lease-longest-ms"), "{refused}");
}

#[test]
fn only_a_permission_is_given_for_a_time_and_only_for_what_was_asked() {
    let mut story = asking();
    writes(&mut story, 1, FILE);
    for wrong in [
        answer(1, "job", 60, None),
        answer(1, "no", 60, None),
        answer(1, "once", 0, None),
        answer(1, "once", 60, Some("/etc/**")),
        answer(1, "once", 60, Some("work/**")),
    ] {
        let refused = send(&mut story, 1, wrong).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    }
    send(&mut story, 1, answer(1, "once", 60, Some("/work/*"))).unwrap();
    assert!(may_write(&mut story, 2, FILE));
}

#[test]
fn a_job_leaves_its_permissions_to_no_other() {
    let mut story = asking();
    writes(&mut story, 1, FILE);
    send(&mut story, 1, answer(1, "once", 60, None)).unwrap();
    let held = story.session.running().unwrap().grants.clone().unwrap();
    assert_eq!(held.leases().len(), 1);
    assert!(held.narrow(&Grants::default()).unwrap().leases().is_empty(), "nor to a child");
}

#[test]
fn who_answered_by_which_way_is_kept() {
    let mut story = asking();
    writes(&mut story, 1, FILE);
    let channel = Some(Channel::new("ntfy:phone").unwrap());
    let body = SessionCommand::Answer(Answer { channel, ..Answer::new(ask_id(1), json!("no")) });
    send(&mut story, 1, body).unwrap();
    let ended = serde_json::to_value(&story.events.last().unwrap().body).unwrap();
    assert_eq!((&ended["kind"], &ended["body"]["channel"]), (&json!("askEnded"), &json!("ntfy:phone")));
    assert_eq!(ended["body"]["value"], Value::from("no"));
}

/// Something that happens to a lease, and how many seconds later.
#[derive(Clone, Debug)]
enum Step {
    Extend(u64),
    Revoke,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![(1..200_u64).prop_map(Step::Extend), Just(Step::Revoke), Just(Step::Wait)];
    prop::collection::vec((0..50_u64, step), 0..30)
}

proptest! {
    /// Whatever happens to a lease, the job may do what it covers exactly while it is held, and it is never held for longer than it was given
    /// for since the last extension, nor for longer than the limit since it was given.
    #[test]
    fn a_permission_is_held_exactly_as_long_as_it_was_given_for(seconds in 1..100_u64, steps in steps()) {
        let longest = Limits::default().lease_longest_ms / 1_000;
        let mut story = asking();
        let begin = story.steps as u64;
        writes(&mut story, 1, FILE);
        send(&mut story, 1, answer(1, "once", seconds, None)).unwrap();
        let (mut end, mut number) = (begin + seconds, 1);
        for (wait, step) in steps {
            story.steps += wait as usize;
            let now = story.steps as u64;
            number += 1;
            match step {
                Step::Extend(wanted) => {
                    let until = (now + wanted.min(seconds)).min(begin + longest);
                    let is_extended = now < end && until > end;
                    let extended = send(&mut story, number, extend(1, Some(wanted)));
                    prop_assert_eq!(extended.is_ok(), is_extended);
                    end = if is_extended { until } else { end };
                }
                Step::Revoke => {
                    let is_held = story.session.running().unwrap().grants.as_ref().unwrap().leases().len() == 1;
                    prop_assert_eq!(send(&mut story, number, revoke(1)).is_ok(), is_held);
                    end = 0;
                }
                Step::Wait => {}
            }
            let ask = number as u128 + 100;
            prop_assert_eq!(may_write(&mut story, ask, FILE), now < end);
        }
    }
}
