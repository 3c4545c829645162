//! What the grant of a job does to it.

use std::collections::BTreeMap;

use mainstay_model::agent::{AgentState, Model};
use mainstay_model::command::{Answer, Delegate};
use mainstay_model::grant::{AskedOperation, Budget, Decimal, Grants, OperationKind, PatternLimits};
use mainstay_model::permission::Permission;
use mainstay_model::{
    AgentNotice, Command, Cost, Effect, Error, EventBody, Input, JobSpec, Message, Notice, Outcome, Part,
    PartRole, Prompt, RunnerNotice, SessionCommand, SessionKind, TokenUsage, WorkEnding,
};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use crate::decide::{SessionHistory, ready};
use crate::support::{ask_id, client, command_id, job_id, second};

pub(crate) const JOB: u128 = 50;

/// An agent, ready for work.
pub(crate) fn agent() -> SessionHistory {
    let mut story = SessionHistory::begin(SessionKind::pi());
    ready().into_iter().for_each(|step| story.take(step));
    story
}

pub(crate) fn grants(granted: &[(&str, &str)]) -> Grants {
    let granted = granted.iter().map(|(kind, pattern)| (*kind, [*pattern]));
    Grants::parse(granted, &PatternLimits::REQUEST).unwrap()
}

pub(crate) fn begin(story: &mut SessionHistory, work: JobSpec, grants: Grants) -> Result<(), Error> {
    let command = Command {
        grants: Some(Box::new(grants)),
        ..Command::new(command_id(50), client(), SessionCommand::Work(work))
    };
    let fingerprint = command.fingerprint(story.session.id);
    let fresh = Uuid::from_u128(JOB);
    let decision = story.decide(Input::Command { command, fingerprint, deadline: None, fresh })?;
    assert!(decision.effects.iter().any(|effect| matches!(effect, Effect::Work { is_bounded: true, .. })));
    story.carry(decision);
    Ok(())
}

pub(crate) fn turn() -> JobSpec {
    JobSpec::Turn { prompt: Prompt::text("go") }
}

/// What follows from something that the agent says, and is carried out.
pub(crate) fn hear(story: &mut SessionHistory, notice: RunnerNotice) -> Vec<Effect> {
    let decision = story.decide(Input::Notice(Notice::Runner(notice))).unwrap();
    let effects = decision.effects.clone();
    story.carry(decision);
    effects
}

pub(crate) fn says(story: &mut SessionHistory, dollars: f64) -> Vec<Effect> {
    let part = Part { role: PartRole::Assistant, text: "so".to_owned(), metadata: BTreeMap::new() };
    let usage = TokenUsage { cost: Cost::of_dollars(dollars), ..TokenUsage::default() };
    let message = Message { parts: vec![part], metadata: BTreeMap::new(), usage: Some(usage) };
    hear(story, RunnerNotice::Agent(AgentNotice::Message(message)))
}

fn uses(story: &mut SessionHistory, id: &str) -> Vec<Effect> {
    let model = Model {
        provider: "p".to_owned(),
        id: id.to_owned(),
        name: None,
        context_window: None,
        about: json!(null),
    };
    let state = AgentState { model: Some(model), ..AgentState::default() };
    hear(story, RunnerNotice::Agent(AgentNotice::State(state)))
}

fn failed(story: &SessionHistory) -> Option<Error> {
    match story.answers.get(command_id(50).as_str()) {
        Some(Outcome::Failed { error }) => Some(error.clone()),
        Some(Outcome::Done { .. }) | None => None,
    }
}

fn check(story: &mut SessionHistory, kind: OperationKind, target: &str) -> Result<(), Error> {
    let operation = AskedOperation { kind, target: target.to_owned(), is_recursive: false };
    let checks = RunnerNotice::Checks { job: job_id(JOB), check: ask_id(7), operation };
    match hear(story, checks).as_slice() {
        [Effect::Answer { ask, answer }] if *ask == ask_id(7) => answer.clone().map(|_| ()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_that_has_spent_its_budget_is_stopped_and_answered_once() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[]).costing(Budget::parse(["USD:0.50"]).unwrap())).unwrap();
    assert_eq!(says(&mut story, 0.2), []);
    assert_eq!(says(&mut story, 0.299_999_999), []);
    assert_eq!(says(&mut story, 0.3), [Effect::Interrupt { job: job_id(JOB) }]);
    assert_eq!(failed(&story), Some(Error::BudgetExhausted { currency: "USD".to_owned() }));
    assert_eq!(says(&mut story, 0.3), [], "what it still says changes nothing");
    let ended = AgentNotice::Ended { job: job_id(JOB), ending: WorkEnding::Interrupted };
    hear(&mut story, RunnerNotice::Agent(ended));
    let kinds: Vec<&str> = story.events[3..].iter().map(|event| event.body.kind()).collect();
    assert_eq!(
        kinds,
        [
            "jobRequested",
            "messageAdded",
            "messageAdded",
            "messageAdded",
            "jobDenied",
            "messageAdded",
            "jobEnded"
        ]
    );
}

#[test]
fn a_job_ends_with_its_grant_or_at_its_deadline_whichever_comes_first() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[]).until(Some(second(9)))).unwrap();
    assert_eq!(story.session.running().unwrap().ends_by(), Some(second(9)));
    let decision = story.decide(Input::Notice(Notice::DeadlineReached { job: job_id(JOB) })).unwrap();
    assert_eq!(decision.effects, [Effect::Interrupt { job: job_id(JOB) }]);
    story.carry(decision);
    assert_eq!(failed(&story), Some(Error::GrantExpired { at: second(9) }));
}

#[test]
fn what_tools_are_about_to_do_is_checked_against_the_grant() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[("fs.read", "/work/**"), ("tool.call", "bash")])).unwrap();
    assert_eq!(check(&mut story, OperationKind::FS_READ, "/work/a/b"), Ok(()));
    assert_eq!(check(&mut story, OperationKind::TOOL_CALL, "bash"), Ok(()));
    for (kind, target) in [
        (OperationKind::FS_READ, "/work/../etc/passwd"),
        (OperationKind::FS_READ, "work/a"),
        (OperationKind::FS_WRITE, "/work/a"),
        (OperationKind::TOOL_CALL, "curl"),
    ] {
        let error = check(&mut story, kind, target).unwrap_err();
        assert!(matches!(error, Error::GrantDenied { .. }), "{target}: {error}");
        assert!(matches!(story.events.last().unwrap().body, EventBody::AgentNoted(_)), "it is told");
    }
    assert_eq!(failed(&story), None, "the agent may go on with something else");
}

#[test]
fn an_agent_uses_no_model_that_is_not_granted() {
    let mut story = agent();
    uses(&mut story, "dear");
    let refused = begin(&mut story, turn(), grants(&[("model.use", "p/cheap")])).unwrap_err();
    assert!(matches!(refused, Error::GrantDenied { .. }), "{refused}");
    assert_eq!(story.session.running(), None);
    uses(&mut story, "cheap");
    begin(&mut story, turn(), grants(&[("model.use", "p/cheap")])).unwrap();
    assert_eq!(uses(&mut story, "dear"), [Effect::Interrupt { job: job_id(JOB) }]);
    assert!(matches!(failed(&story), Some(Error::GrantDenied { .. })));
}

#[test]
fn a_command_of_a_shell_needs_the_shell() {
    let mut story = agent();
    let shell = || JobSpec::Shell { line: "ls".to_owned(), is_private: false };
    assert!(begin(&mut story, shell(), grants(&[("tool.call", "read")])).is_err());
    assert!(begin(&mut story, shell(), grants(&[("tool.call", "bash")])).is_ok());
}

#[test]
fn another_grant_makes_another_command() {
    let command = |grants: Option<Grants>| {
        let body = SessionCommand::Work(turn());
        let command = Command { grants: grants.map(Box::new), ..Command::new(command_id(1), client(), body) };
        command.fingerprint(agent().session.id)
    };
    let [none, one, other] = [None, Some(grants(&[])), Some(grants(&[("tool.call", "bash")]))].map(command);
    assert!(none != one && one != other && none != other);
}

#[test]
fn people_are_asked_about_what_is_not_granted_where_the_grant_says_so() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[("fs.read", "/work/**")]).asking()).unwrap();
    assert_eq!(check(&mut story, OperationKind::FS_READ, "/work/a"), Ok(()), "what is granted is not asked");
    let wants = |number: u128, target: &str| RunnerNotice::Checks {
        job: job_id(JOB),
        check: ask_id(number),
        operation: AskedOperation {
            kind: OperationKind::TOOL_CALL,
            target: target.to_owned(),
            is_recursive: false,
        },
    };
    let mut answered = |number: u128, answer: &str| {
        assert_eq!(hear(&mut story, wants(number, "bash")), [], "it waits for an answer");
        let question = story.session.ask(ask_id(number)).unwrap().ask.question.clone();
        assert_eq!(Permission::operation(&question).unwrap().target, "bash");
        let body = SessionCommand::Answer(Answer::new(ask_id(number), json!(answer)));
        let command = Command::new(command_id(number as usize), client(), body);
        let fingerprint = command.fingerprint(story.session.id);
        let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
        let decision = story.decide(input).unwrap();
        let effects = decision.effects.clone();
        story.carry(decision);
        effects
    };
    let told = |number: u128, answer: &str| Effect::Answer { ask: ask_id(number), answer: Ok(json!(answer)) };
    assert_eq!(answered(60, "no"), [told(60, "no")]);
    assert_eq!(answered(61, "once"), [told(61, "once")]);
    assert_eq!(answered(62, "job"), [told(62, "job")]);
    assert_eq!(check(&mut story, OperationKind::TOOL_CALL, "bash"), Ok(()), "for the rest of the job");
    assert_eq!(hear(&mut story, wants(63, "curl")), [], "and nothing else");
    // Nobody's answer is no.
    let decision = story.decide(Input::Notice(Notice::AskOverdue { ask: ask_id(63) })).unwrap();
    assert_eq!(decision.effects, [told(63, "no")]);
}

#[test]
fn what_reads_all_below_a_folder_needs_a_grant_for_all_of_it() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[("fs.read", "/work/*")])).unwrap();
    let mut checked = |target: &str, is_recursive: bool| {
        let asked = AskedOperation { kind: OperationKind::FS_READ, target: target.to_owned(), is_recursive };
        let checks = RunnerNotice::Checks { job: job_id(JOB), check: ask_id(7), operation: asked };
        matches!(hear(&mut story, checks).as_slice(), [Effect::Answer { answer: Ok(_), .. }])
    };
    assert!(checked("/work/private", false));
    assert!(!checked("/work/private", true), "what is deeper is not granted");
    let mut story = agent();
    begin(&mut story, turn(), grants(&[("fs.read", "/work/**")])).unwrap();
    let asked = AskedOperation {
        kind: OperationKind::FS_READ,
        target: "/work/private".to_owned(),
        is_recursive: true,
    };
    let checks = RunnerNotice::Checks { job: job_id(JOB), check: ask_id(7), operation: asked };
    assert!(matches!(hear(&mut story, checks).as_slice(), [Effect::Answer { answer: Ok(_), .. }]));
}

#[test]
fn a_job_that_is_to_stop_is_granted_nothing_more_and_one_without_a_budget_does_not_begin() {
    let mut story = agent();
    let spent = grants(&[]).costing(Budget::parse(["USD:0"]).unwrap());
    let refused = begin(&mut story, turn(), spent).unwrap_err();
    assert_eq!(refused, Error::BudgetExhausted { currency: "USD".to_owned() });
    begin(&mut story, turn(), grants(&[("tool.call", "bash")]).until(Some(second(9)))).unwrap();
    let decision = story.decide(Input::Notice(Notice::DeadlineReached { job: job_id(JOB) })).unwrap();
    story.carry(decision);
    assert_eq!(check(&mut story, OperationKind::TOOL_CALL, "bash"), Err(Error::Cancelled));
}

/// Has the job give a task to another agent, and returns what the other may do.
pub(crate) fn delegate(
    story: &mut SessionHistory,
    number: usize,
    kinds: &[OperationKind],
) -> Result<Grants, Error> {
    let body = SessionCommand::Delegate(Delegate {
        parent: command_id(50),
        child: command_id(2_000 + number),
        agent: "pi".to_owned(),
        inherits: kinds.to_vec(),
    });
    let command = Command::new(command_id(1_000 + number), client(), body);
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
    let decision = story.decide(input)?;
    story.carry(decision);
    match &story.events.last().unwrap().body {
        EventBody::JobDelegated { grants: Some(grants), .. } => Ok((**grants).clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_gives_another_a_part_of_what_it_may_do_and_spends_what_that_may_cost() {
    let mut story = agent();
    let held = grants(&[("fs.read", "/work/**"), ("tool.call", "bash"), ("agent.delegate", "pi")]);
    let held = held.until(Some(second(90))).costing(Budget::parse(["USD:8"]).unwrap());
    begin(&mut story, turn(), held).unwrap();
    let left = |story: &SessionHistory| {
        let held = story.session.running().unwrap().grants.clone().unwrap();
        held.budget().all_remaining().map(|amount| amount.to_string()).collect::<Vec<_>>()
    };
    let given = delegate(&mut story, 1, &[OperationKind::FS_READ]).unwrap();
    assert_eq!(given.capabilities().keys().collect::<Vec<_>>(), [&OperationKind::FS_READ]);
    assert_eq!((given.expires_at(), left(&story)), (Some(second(90)), vec!["USD:4".to_owned()]));
    assert_eq!(given.budget().granted().next().unwrap().to_string(), "USD:4");
    delegate(&mut story, 2, &[]).unwrap();
    assert_eq!(left(&story), ["USD:2"], "two cannot spend the same");
    let beyond = delegate(&mut story, 3, &[OperationKind::FS_WRITE]).unwrap_err();
    assert!(matches!(beyond, Error::GrantExceeded { .. }), "{beyond}");
    assert_eq!(left(&story), ["USD:2"]);
}

#[test]
fn a_job_that_may_not_delegate_or_does_not_run_gives_nothing() {
    let mut story = agent();
    let refused = delegate(&mut story, 1, &[]).unwrap_err();
    assert!(matches!(refused, Error::NotRunning { .. }), "{refused}");
    begin(&mut story, turn(), grants(&[("fs.read", "/work/**")])).unwrap();
    let refused = delegate(&mut story, 2, &[OperationKind::FS_READ]).unwrap_err();
    assert!(matches!(refused, Error::GrantDenied { .. }), "{refused}");
    let decision = story.decide(Input::Notice(Notice::DeadlineReached { job: job_id(JOB) })).unwrap();
    story.carry(decision);
}

#[test]
fn people_are_asked_about_what_a_delegated_job_does_where_they_are_about_its_parent() {
    let mut story = agent();
    begin(&mut story, turn(), grants(&[("fs.read", "/work/**")]).asking()).unwrap();
    let given = delegate(&mut story, 1, &[OperationKind::FS_READ, OperationKind::FS_WRITE]).unwrap();
    assert!(given.asks());
    assert_eq!(given.capabilities().keys().collect::<Vec<_>>(), [&OperationKind::FS_READ]);
}

proptest! {
    /// However often a job gives tasks to others, all of them together may cost no more than it might, and each may do no more.
    #[test]
    fn what_is_given_to_others_is_never_more_than_what_was_held(spent in 0..500_u64, times in 0..6_usize) {
        let mut story = agent();
        let held = grants(&[("fs.read", "/work/**"), ("agent.delegate", "*")]);
        begin(&mut story, turn(), held.costing(Budget::parse(["USD:5.01"]).unwrap())).unwrap();
        says(&mut story, spent as f64 / 100.0);
        let mut all = Decimal::reported(&(spent as f64 / 100.0).to_string()).unwrap();
        for number in 0..times {
            let held = story.session.running().unwrap().grants.clone().unwrap();
            let Ok(given) = delegate(&mut story, number, &[OperationKind::FS_READ]) else { break };
            prop_assert!(held.narrow(&given).is_ok(), "it is a subset");
            all = all.plus(given.budget().all_remaining().next().unwrap().value);
        }
        prop_assert!(all <= Decimal::reported("5.01").unwrap());
    }
}
