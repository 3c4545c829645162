//! Jobs that are trusted with more for a time.

use mainstay_model::command::{Answer, Elevate, Eval, ExtendLease};
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::grant::{AskedOperation, Grants, Lease, LeaseTerms, OperationKind};
use mainstay_model::{
    AskEnding, Command, Effect, Error, EventBody, Input, LeaseId, Limits, Notice, Principal, Question,
    RunnerNotice, SessionCommand, SessionKind, Source, TrustRefusal,
};
use serde_json::json;
use uuid::Uuid;

use crate::decide::{SessionHistory, ready};
use crate::grants::{JOB, agent, begin, hear, turn};
use crate::support::{ask_id, client, command_id, job_id};

/// The ask that asks for an elevation.
const ASK: u128 = 9;

fn bounded() -> SessionHistory {
    let mut story = agent();
    begin(&mut story, turn(), Grants::default()).unwrap();
    story
}

fn elevation() -> Elevation {
    Elevation {
        level: TrustLevel::Trusted,
        kind: OperationKind::FS_WRITE,
        pattern: "/work/**".to_owned(),
        duration_ms: 60_000,
        reason: Some("the \"build\" writes there".to_owned()),
        asker: None,
    }
}

fn send(
    story: &mut SessionHistory,
    number: usize,
    by: Source,
    body: SessionCommand,
) -> Result<Vec<Effect>, Error> {
    body.validate(&Limits::default())?;
    let command = Command::new(command_id(1_000 + number), by, body);
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(ASK) };
    let decision = story.decide(input)?;
    let effects = decision.effects.clone();
    story.carry(decision);
    Ok(effects)
}

fn elevate(story: &mut SessionHistory, number: usize, elevation: Elevation) -> Result<Vec<Effect>, Error> {
    let body = SessionCommand::Elevate(Elevate { target: command_id(50), elevation });
    send(story, number, client(), body)
}

fn answer(value: &str, lease: Option<LeaseTerms>) -> SessionCommand {
    SessionCommand::Answer(Answer { lease, ..Answer::new(ask_id(ASK), json!(value)) })
}

fn may_write(story: &mut SessionHistory, check: u128, target: &str) -> bool {
    let operation =
        AskedOperation { kind: OperationKind::FS_WRITE, target: target.to_owned(), is_recursive: false };
    let heard = hear(story, RunnerNotice::Checks { job: job_id(JOB), check: ask_id(check), operation });
    matches!(heard.as_slice(), [Effect::Answer { answer: Ok(_), .. }])
}

fn lease(story: &SessionHistory) -> Option<Lease> {
    let held = story.session.running()?.grants.as_deref()?;
    held.leases().get(&LeaseId::from(ask_id(ASK))).cloned()
}

#[test]
fn a_bounded_job_does_for_a_time_what_somebody_trusts_it_with() {
    let mut story = bounded();
    story.steps = 100;
    assert_eq!(elevate(&mut story, 1, elevation()).unwrap(), []);
    let pending = story.session.ask(ask_id(ASK)).unwrap();
    assert_eq!(pending.elevation(), Some(elevation()));
    insta::assert_snapshot!(pending.ask.question.prompt, @r#"May this job be `trusted` with `fs.write` of `/work/**` for 60 s? `local` asks for it. The reason given: "the \"build\" writes there". Only who may do everything answers."#);
    assert!(!may_write(&mut story, 1, "/work/a"), "nobody has answered");
    let effects = send(&mut story, 2, client(), answer("once", None)).unwrap();
    assert_eq!(effects, [], "the job did not ask, and is told nothing");
    assert_eq!(lease(&story).unwrap().level(), Some(TrustLevel::Trusted));
    assert!(may_write(&mut story, 2, "/work/a") && !may_write(&mut story, 3, "/etc/passwd"));
    let more =
        SessionCommand::ExtendLease(ExtendLease { lease: LeaseId::from(ask_id(ASK)), duration_ms: None });
    story.steps = 120;
    let refused = send(&mut story, 3, client(), more).unwrap_err();
    assert_eq!(refused, Error::TrustRefused { refusal: TrustRefusal::Extension }, "it is asked for anew");
    story.steps = 159;
    assert!(may_write(&mut story, 4, "/work/a"));
    story.steps = 160;
    assert!(!may_write(&mut story, 5, "/work/a"));
}

#[test]
fn nobody_gives_more_than_was_asked_for_and_no_answer_is_no() {
    let mut story = bounded();
    story.steps = 100;
    let long = Elevation { duration_ms: u64::MAX, ..elevation() };
    elevate(&mut story, 1, long).unwrap();
    let wide = LeaseTerms { duration_ms: 1, pattern: Some("/**".to_owned()) };
    let refused = send(&mut story, 2, client(), answer("once", Some(wide))).unwrap_err();
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    let no = LeaseTerms { duration_ms: 1, pattern: None };
    let refused = send(&mut story, 3, client(), answer("no", Some(no))).unwrap_err();
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    send(&mut story, 4, client(), answer("once", None)).unwrap();
    assert_eq!(lease(&story).unwrap().duration_ms(), Limits::default().lease_longest_ms);

    let mut story = bounded();
    elevate(&mut story, 1, elevation()).unwrap();
    let decision = story.decide(Input::Notice(Notice::AskOverdue { ask: ask_id(ASK) })).unwrap();
    assert_eq!(decision.effects, []);
    story.carry(decision);
    let EventBody::AskEnded { ending, .. } = &story.events.last().unwrap().body else { panic!() };
    assert_eq!(*ending, AskEnding::Defaulted { value: json!("no") });
    assert_eq!(lease(&story), None);
}

#[test]
fn where_several_must_agree_an_elevation_is_as_short_as_each_of_them_gives_it() {
    let mut story = agent();
    begin(&mut story, turn(), Grants::default().wanting(Some(2))).unwrap();
    elevate(&mut story, 1, elevation()).unwrap();
    let bob = Source::Client { principal: Principal::new("bob").unwrap(), name: "cli".to_owned() };
    let short = LeaseTerms { duration_ms: 5_000, pattern: Some("/work/**".to_owned()) };
    send(&mut story, 2, bob, answer("once", Some(short))).unwrap();
    assert_eq!(lease(&story), None);
    send(&mut story, 3, client(), answer("once", None)).unwrap();
    assert_eq!(
        (lease(&story).unwrap().duration_ms(), lease(&story).unwrap().resource()),
        (5_000, "/work/**")
    );
}

#[test]
fn what_cannot_be_elevated_is_refused() {
    let refused = |elevation, story: &mut SessionHistory| elevate(story, 1, elevation).unwrap_err();
    let mut story = bounded();
    let privileged = Elevation { level: TrustLevel::Privileged, ..elevation() };
    let privileged = refused(privileged, &mut story);
    assert_eq!(privileged, Error::TrustRefused { refusal: TrustRefusal::Privileged });
    for wrong in [
        Elevation { level: TrustLevel::Constrained, ..elevation() },
        Elevation { pattern: "work".to_owned(), ..elevation() },
        Elevation { duration_ms: 0, ..elevation() },
        Elevation { reason: Some("x".repeat(1_001)), ..elevation() },
    ] {
        let refused = refused(wrong.clone(), &mut story);
        assert!(matches!(refused, Error::InvalidArgument { .. }), "{wrong:?}: {refused}");
    }
    let other = Source::Client { principal: Principal::new("bob").unwrap(), name: "cli".to_owned() };
    let body = SessionCommand::Elevate(Elevate { target: command_id(50), elevation: elevation() });
    let refused_to_another = send(&mut story, 1, other, body).unwrap_err();
    assert!(matches!(refused_to_another, Error::NotRunning { .. }), "it is the job of another");
    assert!(matches!(refused(elevation(), &mut agent()), Error::NotRunning { .. }));
    let code = Eval { code: "1".to_owned(), file: None, command_line: None, withheld: false, origin: None };
    for (kind, body, grants) in [
        (SessionKind::fsharp(), SessionCommand::Eval(code), Some(Box::default())),
        (SessionKind::pi(), SessionCommand::Work(turn()), None),
    ] {
        let mut story = SessionHistory::begin(kind);
        ready().into_iter().for_each(|step| story.take(step));
        let command = Command { grants, ..Command::new(command_id(50), client(), body) };
        let fingerprint = command.fingerprint(story.session.id);
        let fresh = Uuid::from_u128(JOB);
        let input = Input::Command { command, fingerprint, deadline: None, fresh };
        let decision = story.decide(input).unwrap();
        story.carry(decision);
        let refused = refused(elevation(), &mut story);
        assert!(matches!(refused, Error::NotElevated { .. }), "{refused}");
    }
}

#[test]
fn what_a_worker_asks_is_no_elevation_whatever_it_says() {
    let mut story = bounded();
    let question = elevation().question(&Principal::local(), None);
    let question = Question { prompt: "Is it nice?".to_owned(), ..question };
    hear(&mut story, RunnerNotice::Asks { job: job_id(JOB), ask: ask_id(ASK), question, timeout_ms: None });
    assert_eq!(story.session.ask(ask_id(ASK)).unwrap().elevation(), None);
    let effects = send(&mut story, 1, client(), answer("once", None)).unwrap();
    assert!(matches!(effects.as_slice(), [Effect::Answer { .. }]), "its job is told");
    assert_eq!(lease(&story), None);
}
