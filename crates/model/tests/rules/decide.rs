//! What follows from any sequence of commands and notices: the rules that hold at every step, and when all is done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_model::LastWords;
use mainstay_model::affordance::availability;
use mainstay_model::command;
use mainstay_model::decide::Identity;
use mainstay_model::replay::{Replay, ReplayList};
use mainstay_model::{
    Action, AgentNotice, ApplicationNotice, AskId, Availability, Blame, BuildReport, Command,
    CommandFingerprint, CommandId, CommandLine, Compaction, Deadline, Decision, Effect, Error, EvalResult,
    Event, EventBody, Input, JobEnding, JobId, JobKind, JobReport, JobSpec, Lease, LeaseId, Limits,
    LoadedProject, Notice, Origin, Outcome, OutputStream, Position, Question, QueuedCommand, References,
    Response, RunnerInfo, RunnerNotice, RunningJob, Seq, Session, SessionCommand, SessionKind, SessionState,
    Source, Startup, Swap, SwapObstacle, Timestamp, Version, WorkEnding, WrittenFile, decide,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::agents::{any_agent_notice, of_job};
use crate::support::{
    any_application, any_application_ending, any_comm, any_compaction, any_diagnostic, any_display, any_exit,
    any_question, any_raised, any_references, any_result, any_session, any_session_command, any_source,
    any_swap, any_text, any_value, ask_id, client, command_id, creation_of, job_id, second,
};

/// What is done to a session under test. Whose job a notice is about is settled when its turn comes.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Command(SessionCommand),
    /// A command that has to wait, with the version it wants.
    Queue(SessionCommand, Option<Version>),
    /// The turn of the first that waits has come.
    Turn,
    /// The first that waits is not to begin any more.
    Leave,
    DeadlineReached {
        of_running: bool,
    },
    /// The running job asks.
    Asks(Question),
    /// The first ask that waits is answered, with what may be no answer.
    Answer(serde_json::Value),
    /// Nobody answers the first ask that waits.
    AskOverdue,
    WarmedUp,
    WarmUpFailed,
    Output {
        of_running: bool,
    },
    OutputCut {
        of_running: bool,
    },
    Finished {
        of_running: bool,
        report: Box<JobReport>,
    },
    /// The project was built, or could not be.
    Built {
        of_running: bool,
        report: BuildReport,
    },
    /// The kernel has done what a front end told it for.
    CommTaken {
        of_running: bool,
    },
    Exited {
        exit: mainstay_model::WorkerExit,
        blame: Option<Blame>,
    },
    GraceExpired {
        of_running: bool,
    },
    JobLost {
        of_running: bool,
    },
    LookedAt(References),
    /// Sources were put into the worker, or were not.
    Swapped(Swap),
    /// The application runs, or runs no more.
    Application(ApplicationNotice),
    /// Files of the session's folder were written.
    Written(Vec<&'static str>),
    /// They were written in this second; each step takes one.
    WrittenIn(i64, Vec<&'static str>),
    /// The agent says something.
    Agent {
        of_running: bool,
        notice: AgentNotice,
    },
    Compacted(Compaction),
    Idle,
    DaemonLost,
    DaemonStopping,
}

/// A step whose job is settled.
enum TestInput {
    Command(SessionCommand),
    Queue(SessionCommand, Option<Version>),
    Turn,
    Leave,
    Notice(Notice),
}

impl Step {
    /// `first` is the first ask that waits, `fresh` names a new one.
    fn given(self, running: Option<JobId>, first: Option<AskId>, fresh: AskId) -> TestInput {
        let ask = first.unwrap_or(fresh);
        let job = |of_running| if of_running { running.unwrap_or(job_id(0)) } else { job_id(0) };
        TestInput::Notice(match self {
            Self::Command(body) => return TestInput::Command(body),
            Self::Queue(body, if_version) => return TestInput::Queue(body, if_version),
            Self::Turn => return TestInput::Turn,
            Self::Leave => return TestInput::Leave,
            Self::Answer(value) => {
                return TestInput::Command(SessionCommand::Answer(command::Answer::new(ask, value)));
            }
            Self::Asks(question) => {
                Notice::Runner(RunnerNotice::Asks { job: job(true), ask: fresh, question, timeout_ms: None })
            }
            Self::AskOverdue => Notice::AskOverdue { ask },
            Self::DeadlineReached { of_running } => Notice::DeadlineReached { job: job(of_running) },
            Self::WarmedUp => Notice::WarmedUp {
                runner: RunnerInfo {
                    kernel: "F# 10.0".to_owned(),
                    runtime: ".NET 10.0.1".to_owned(),
                    language: None,
                    pid: Some(1),
                    references: Some(References::new()),
                    startup: Some(Box::new(with_project())),
                },
                replayed: 0,
                diverged: Vec::new(),
                reload: Box::default(),
                restored: None,
                took: Duration::from_secs(1),
            },
            Self::WarmUpFailed => {
                Notice::WarmUpFailed { error: Error::KernelUnavailable { reason: "none".to_owned() } }
            }
            Self::Output { of_running } => Notice::Runner(RunnerNotice::Output {
                job: Some(job(of_running)),
                stream: OutputStream::Stdout,
                text: "x".to_owned(),
            }),
            Self::OutputCut { of_running } => Notice::OutputCut { job: job(of_running), limit: 1 },
            Self::Finished { of_running, report } => {
                Notice::Runner(RunnerNotice::Finished { job: job(of_running), report: *report })
            }
            Self::Built { of_running, report } => {
                Notice::Runner(RunnerNotice::Built { job: job(of_running), report })
            }
            Self::CommTaken { of_running } => {
                Notice::Runner(RunnerNotice::CommTaken { job: job(of_running) })
            }
            Self::Exited { exit, blame } => {
                let last_words =
                    blame.map(|blame| LastWords { blame, reason: None, diagnostics: Vec::new() });
                Notice::Runner(RunnerNotice::Exited { exit, last_words })
            }
            Self::GraceExpired { of_running } => Notice::GraceExpired { job: job(of_running) },
            Self::JobLost { of_running } => Notice::JobLost { job: job(of_running) },
            Self::LookedAt(found) => Notice::LookedAt { found },
            Self::Swapped(swap) => Notice::Swapped { swap },
            Self::Application(notice) => Notice::Runner(RunnerNotice::Application(notice)),
            Self::Written(files) => written(None, files),
            Self::WrittenIn(at, files) => written(Some(second(at)), files),
            Self::Agent { of_running, notice } => {
                Notice::Runner(RunnerNotice::Agent(of_job(notice, job(of_running))))
            }
            Self::Compacted(compaction) => Notice::Compacted(compaction),
            Self::Idle => Notice::Idle,
            Self::DaemonLost => Notice::DaemonLost,
            Self::DaemonStopping => Notice::DaemonStopping,
        })
    }
}

fn written(written: Option<Timestamp>, files: Vec<&str>) -> Notice {
    let file = |path: &str| WrittenFile { path: path.to_owned(), written };
    Notice::Written { files: files.into_iter().map(file).collect() }
}

/// What the project of a session under test is made of.
const SOURCES: [&str; 2] = ["/home/ada/demo/a.fs", "/home/ada/demo/b.fs"];

fn with_project() -> Startup {
    let sources = SOURCES.map(str::to_owned).to_vec();
    let project =
        LoadedProject { path: "/home/ada/demo/demo.fsproj".to_owned(), sources, ..LoadedProject::default() };
    Startup { project: Some(project), profiles: Vec::new(), ..Startup::default() }
}

fn any_written() -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(vec![SOURCES[0], SOURCES[1], "/elsewhere.fs"]), 0..3)
}

fn any_report() -> impl Strategy<Value = JobReport> {
    let ending = prop_oneof![
        Just(JobEnding::Completed),
        Just(JobEnding::Rejected),
        any_raised().prop_map(JobEnding::Raised),
        (0_usize..4).prop_map(|kept| JobEnding::Interrupted { kept }),
    ];
    let references = option::weighted(0.2, any_references());
    (ending, any_result(), any::<bool>(), references).prop_map(
        |(ending, result, changes_state, references)| JobReport {
            ending,
            result,
            changes_state,
            took: Duration::from_millis(3),
            references,
        },
    )
}

fn any_build() -> impl Strategy<Value = BuildReport> {
    let built = prop_oneof![Just(Ok(())), any_text().prop_map(Err)];
    (built, vec(any_diagnostic(), 0..2)).prop_map(|(built, diagnostics)| BuildReport {
        built,
        diagnostics,
        by_warm_compiler: false,
    })
}

fn any_blame() -> impl Strategy<Value = Blame> {
    (1_u128..20, any::<bool>()).prop_map(|(job, is_sure)| Blame { job: job_id(job), is_sure })
}

fn any_step() -> impl Strategy<Value = Step> {
    let usually = || prop::bool::weighted(0.8);
    prop_oneof![
        12 => any_session_command().prop_map(Step::Command),
        3 => (any_session_command(), option::weighted(0.2, (0_u64..4).prop_map(Version)))
            .prop_map(|(body, version)| Step::Queue(body, version)),
        4 => Just(Step::Turn),
        1 => Just(Step::Leave),
        2 => usually().prop_map(|of_running| Step::DeadlineReached { of_running }),
        3 => any_question().prop_map(Step::Asks),
        2 => any_value().prop_map(Step::Answer),
        1 => Just(Step::AskOverdue),
        8 => Just(Step::WarmedUp),
        1 => Just(Step::WarmUpFailed),
        2 => usually().prop_map(|of_running| Step::Output { of_running }),
        1 => usually().prop_map(|of_running| Step::OutputCut { of_running }),
        6 => (usually(), any_report())
            .prop_map(|(of_running, report)| Step::Finished { of_running, report: Box::new(report) }),
        2 => (usually(), any_build()).prop_map(|(of_running, report)| Step::Built { of_running, report }),
        2 => usually().prop_map(|of_running| Step::CommTaken { of_running }),
        2 => (any_exit(), option::of(any_blame())).prop_map(|(exit, blame)| Step::Exited { exit, blame }),
        2 => usually().prop_map(|of_running| Step::GraceExpired { of_running }),
        1 => usually().prop_map(|of_running| Step::JobLost { of_running }),
        2 => any_references().prop_map(Step::LookedAt),
        1 => any_written().prop_map(Step::Written),
        1 => any_swap().prop_map(Step::Swapped),
        1 => any_application().prop_map(|one| Step::Application(ApplicationNotice::Started(one))),
        1 => any_application_ending().prop_map(|ending| Step::Application(ApplicationNotice::Ended(ending))),
        1 => (0_i64..40, any_written()).prop_map(|(at, files)| Step::WrittenIn(at, files)),
        4 => (usually(), any_agent_notice()).prop_map(|(of_running, notice)| Step::Agent { of_running, notice }),
        1 => any_compaction().prop_map(Step::Compacted),
        1 => Just(Step::Idle),
        1 => Just(Step::DaemonLost),
        1 => Just(Step::DaemonStopping),
    ]
}

/// A kernel's, or an agent's.
fn any_kind() -> impl Strategy<Value = SessionKind> {
    prop_oneof![Just(SessionKind::fsharp()), Just(SessionKind::pi())]
}

/// A session with everything that was decided for it.
pub(crate) struct SessionHistory {
    pub(crate) session: Session,
    pub(crate) events: Vec<Event>,
    pub(crate) answers: BTreeMap<String, Outcome>,
    /// The commands that were accepted.
    accepted: BTreeSet<CommandId>,
    pub(crate) steps: usize,
}

impl SessionHistory {
    pub(crate) fn begin(kind: SessionKind) -> Self {
        let events = vec![creation_of(kind)];
        let session = Session::begin(&events[0]).unwrap();
        Self { session, events, answers: BTreeMap::new(), accepted: BTreeSet::new(), steps: 0 }
    }

    pub(crate) fn take(&mut self, step: Step) {
        self.steps += 1;
        let running = self.session.running().map(|running| running.job);
        let first = self.session.asks.first().map(|pending| pending.ask.ask);
        match step.given(running, first, ask_id(self.steps as u128)) {
            TestInput::Queue(body, if_version) => self.queue(body, if_version),
            TestInput::Turn => {
                if let Some(queued) = self.next_in_lane() {
                    let QueuedCommand { command, if_version, body, .. } = queued;
                    self.command(Command { if_version, ..Command::new(command, client(), body) }, true);
                }
            }
            TestInput::Leave => {
                if let Some(queued) = self.next_in_lane() {
                    let QueuedCommand { command, key, fingerprint, .. } = queued;
                    let principal = client().principal();
                    let identity = Identity { principal, command: command.clone(), key, fingerprint };
                    let leave = Input::Leave { identity, error: Error::Cancelled };
                    let decision = self.decide(leave).expect("nothing keeps a command in the lane");
                    self.carry(decision);
                    assert!(self.answers.contains_key(command.as_str()), "it is answered");
                }
            }
            TestInput::Command(body) => {
                self.command(Command::new(command_id(self.steps), client(), body), false)
            }
            TestInput::Notice(notice) => {
                let decision = self.decide(Input::Notice(notice)).expect("a notice is never refused");
                self.carry(decision);
            }
        }
    }

    fn queue(&mut self, body: SessionCommand, if_version: Option<Version>) {
        let command = command_id(self.steps);
        let queued = QueuedCommand {
            fingerprint: CommandFingerprint::of("s", &body),
            key: None,
            depends_on: Vec::new(),
            if_version,
            deadline: None,
            grants: None,
            body,
            command: command.clone(),
        };
        self.accepted.insert(command.clone());
        let decision = self.decide(Input::Queue { source: client(), queued: Box::new(queued) }).unwrap();
        self.carry(decision);
        assert!(self.session.waits(&client().principal(), &command));
    }

    /// The first command that waits, whose state may offer it by now.
    fn next_in_lane(&self) -> Option<QueuedCommand> {
        let next = self.session.lane.first()?;
        match &self.events[usize::try_from(next.queued.0).unwrap() - 1].body {
            EventBody::CommandQueued(queued) => Some((**queued).clone()),
            other => panic!("{other:?} queues nothing"),
        }
    }

    fn command(&mut self, command: Command, has_waited: bool) {
        let (state, action) = (self.session.state(), command.body.action());
        let misses = misses(&self.session, &client(), &command.body);
        let (id, fresh) = (command.id.clone(), Uuid::from_u128(self.steps as u128));
        let fingerprint = CommandFingerprint::of("s", &command.body);
        let ends_later = matches!(action, Action::Eval | Action::Prompt | Action::Rebuild | Action::Ask);
        let wants_other = command.if_version.is_some_and(|version| version != self.session.version);
        let version = self.session.version;
        match self.decide(Input::Command { command, fingerprint, deadline: None, fresh }) {
            Ok(decision) => {
                assert_ne!(availability(state, action), Availability::Refused, "{action} in {state}");
                self.accepted.insert(id.clone());
                if ends_later && !wants_other {
                    assert!(decision.outcomes.is_empty(), "it has not ended yet");
                } else {
                    assert!(
                        decision.outcomes.iter().any(|answer| answer.command == id),
                        "{action} is answered at once"
                    );
                }
                self.carry(decision);
                assert!(!self.session.waits(&client().principal(), &id), "it has left the lane");
                if wants_other {
                    assert!(matches!(
                        &self.answers[id.as_str()],
                        Outcome::Failed { error: Error::VersionMismatch { .. } }
                    ));
                    assert_eq!(self.session.version, version, "it has changed nothing");
                }
            }
            Err(_) if has_waited => {}
            Err(Error::NotRunning { .. } | Error::AskNotPending { .. } | Error::AnswerInvalid { .. }) => {
                assert!(misses, "only a cancel or an answer can miss");
            }
            Err(Error::InvalidArgument { argument, .. }) if argument == "lease" => {
                assert!(misses, "nobody asked for a permission");
            }
            Err(Error::InvalidArgument { argument, .. }) if argument == "session" => {
                assert!(misses, "only a turn pauses");
            }
            Err(Error::NotElevated { .. }) => assert!(misses, "such a job can be trusted with more"),
            Err(Error::Cancelled) => {
                let running = self.session.running();
                assert!(running.is_some_and(|running| running.cancel_requested), "nothing is to stop");
            }
            Err(Error::SessionNotFound { .. } | Error::SessionExists { .. }) => {
                assert!(misses, "it is loaded, or was unloaded before");
            }
            Err(Error::NotOfKind { .. }) => assert!(!action.is_of(self.session.capabilities())),
            Err(Error::TooManyAsks { limit }) => assert_eq!(self.session.asks.len(), limit),
            Err(error) => {
                assert_eq!(availability(state, action), Availability::Refused, "{action} in {state}");
                assert_eq!(error, self.session.refusal(action));
                assert!(
                    !matches!(action, Action::HardReset | Action::Stop),
                    "the escape hatches are always open"
                );
            }
        }
    }

    pub(crate) fn decide(&self, input: Input) -> Result<Decision, Error> {
        decide(&self.session, input, second(self.steps as i64), &Limits::default())
    }

    pub(crate) fn carry(&mut self, decision: Decision) {
        let before = self.session.state();
        for (metadata, body) in decision.events {
            let seq = self.session.last_seq.next();
            let at = second(self.steps as i64);
            let event =
                Event { session: self.session.id, seq, position: Position(seq.0), at, metadata, body };
            self.session.evolve(&event);
            assert_fits(&self.session, &event);
            self.events.push(event);
        }
        assert_sensible(before, &self.session, &decision.effects);
        for answer in decision.outcomes {
            if let Outcome::Done { response: Response::Evaluated(outcome) } = &answer.outcome {
                self.assert_points_at_its_events(outcome.job, outcome.requested, outcome.completed);
            } else if let Outcome::Done { response: Response::Worked(outcome) } = &answer.outcome {
                self.assert_points_at_its_events(outcome.job, outcome.requested, outcome.completed);
            }
            let earlier = self.answers.insert(answer.command.to_string(), answer.outcome);
            assert_eq!(earlier, None, "a command has one outcome");
        }
    }

    fn assert_points_at_its_events(&self, of: JobId, requested: Seq, completed: Seq) {
        let at = |seq: Seq| &self.events[usize::try_from(seq.0).unwrap() - 1].body;
        match at(requested) {
            EventBody::EvalRequested { job, .. } | EventBody::JobRequested { job, .. } => {
                assert_eq!(*job, of)
            }
            other => panic!("{other:?} is no request"),
        }
        assert_eq!(at(completed).job_end().map(|(job, _)| job), Some(of));
    }

    /// What must be replayed, found the long way round: by looking for the end of each request.
    fn definitions(&self) -> Vec<Again> {
        let is_reset =
            |event: &&Event| matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset);
        let since = self.events.iter().filter(is_reset).map(|event| event.seq).max().unwrap_or(Seq::ZERO);
        let requests = self.events.iter().filter(|event| event.seq > since);
        requests.filter_map(|event| self.definition(event)).collect()
    }

    fn definition(&self, request: &Event) -> Option<Again> {
        let EventBody::EvalRequested { job, code, .. } = &request.body else { return None };
        let mut ends =
            self.events.iter().filter(|event| event.body.job_end().is_some_and(|(of, _)| of == *job));
        let end = ends.next()?;
        let (code, succeeded) = match &end.body {
            EventBody::EvalCompleted { changes_state: true, .. } => (code.as_str(), true),
            EventBody::EvalFailed { changes_state: true, .. } => (code.as_str(), false),
            EventBody::EvalCancelled { kept: Some(kept), .. } => (code.get(..kept.bytes)?, true),
            _ => return None,
        };
        let blames = |event: &&Event| match event.body {
            EventBody::WorkerExited { blame: Some(blame), .. } => blame.job == *job,
            _ => false,
        };
        let is_sure = |event: &Event| {
            matches!(event.body, EventBody::WorkerExited { blame: Some(Blame { is_sure: true, .. }), .. })
        };
        let blamed: Vec<&Event> = self.events.iter().filter(blames).collect();
        let later = |event: &&&Event| event.seq > end.seq;
        // What is surely blamed after its end, or blamed again.
        let ended_worker = blamed.iter().filter(later).any(|event| is_sure(event))
            || blamed.len() > 1 && blamed.iter().filter(later).count() > 0;
        (!ended_worker).then(|| (request.seq, code.to_owned(), succeeded))
    }
}

/// A submission that runs again: its request, its code, and whether it ran to its end.
type Again = (Seq, String, bool);

/// Whether a cancel takes back what its principal asks, which it may in every state.
fn takes_back_an_ask(session: &Session, source: &Source, body: &SessionCommand) -> bool {
    match body {
        SessionCommand::Cancel(command::Cancel { target: Some(target), .. }) => {
            session.ask_of(&source.principal(), target).is_some()
        }
        _ => false,
    }
}

/// The lease of this name that a job holds.
fn held(running: &RunningJob, lease: LeaseId) -> Option<&Lease> {
    running.grants.as_ref()?.leases().get(&lease)
}

/// Whether this is a cancel of a command that neither runs nor asks, or an answer to nothing that is asked.
fn misses(session: &Session, source: &Source, body: &SessionCommand) -> bool {
    match (body, session.running()) {
        (SessionCommand::Cancel(command::Cancel { target: Some(target), .. }), Some(running)) => {
            let principal = source.principal();
            !running.answers(&principal, target) && session.ask_of(&principal, target).is_none()
        }
        (SessionCommand::Decline(command::Decline { ask }), _) => {
            session.ask(*ask).is_none_or(|pending| pending.ask.question.is_guidance())
        }
        // Nothing that is asked here is a permission.
        (SessionCommand::Answer(command::Answer { ask, value, lease, .. }), _) => {
            let pending = session.ask(*ask);
            lease.is_some() || pending.is_none_or(|pending| pending.ask.question.check(value).is_err())
        }
        (SessionCommand::RevokeLease(command::RevokeLease { lease, .. }), running) => {
            running.and_then(|running| held(running, *lease)).is_none()
        }
        (SessionCommand::ExtendLease(command::ExtendLease { lease, duration_ms }), running) => {
            let own = running.filter(|running| running.source.principal() == source.principal());
            let is_of_several =
                |running: &RunningJob| running.grants.as_ref()?.quorum().filter(|quorum| *quorum > 1);
            own.and_then(is_of_several).is_some()
                || own
                    .and_then(|running| held(running, *lease))
                    .is_none_or(|held| held.extension(*duration_ms, second(0), &Limits::default()).is_err())
        }
        (SessionCommand::Pause(_), running) => {
            running.is_some_and(|running| running.cancel_requested || running.kind != JobKind::Turn)
        }
        (SessionCommand::Delegate(delegate), running) => running.is_none_or(|running| {
            let principal = source.principal();
            !running.answers(&principal, &delegate.parent)
                || running.cancel_requested
                || running.grants.is_some()
        }),
        (SessionCommand::HandOver(command::HandOver { target, .. }), running) => {
            let principal = source.principal();
            let running = running.filter(|running| !running.is_answered);
            !running.is_some_and(|running| running.answers(&principal, target))
                && !session.waits(&principal, target)
        }
        (SessionCommand::Elevate(command::Elevate { target, .. }), running) => {
            running.is_none_or(|running| {
                !running.answers(&source.principal(), target)
                    || running.cancel_requested
                    || running.kind != JobKind::Turn
                    || running.grants.is_none()
            })
        }
        (SessionCommand::Work(JobSpec::Build | JobSpec::Rebuild), _) => session.project.is_none(),
        (SessionCommand::Unload(command::Unload { alias }), _) => {
            session.unloaded_at.is_some() || alias.is_some() && *alias != session.alias
        }
        (SessionCommand::Load(_), _) => session.unloaded_at.is_none(),
        _ => false,
    }
}

/// What an eval does with the last value.
struct Value {
    is_used: bool,
    is_given: bool,
}

impl SessionHistory {
    /// The evals that ended since the last reset, by the seq of their request.
    fn evals(&self) -> BTreeMap<Seq, Value> {
        let mut evals = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.seq > self.session.definitions_since) {
            let (result, succeeded) = match &event.body {
                EventBody::EvalCompleted { result, .. } => (result, true),
                EventBody::EvalFailed { result, .. } => (result, false),
                _ => continue,
            };
            let is_given = succeeded && result.value_type.is_some();
            let request = event.metadata.causation.expect("an end knows its request");
            evals.insert(request, Value { is_used: result.uses_last, is_given });
        }
        evals
    }
}

/// Which eval's value each of those that use the last one finds, when they run in this order.
fn last_values(order: impl Iterator<Item = Seq>, evals: &BTreeMap<Seq, Value>) -> BTreeMap<Seq, Option<Seq>> {
    let mut last = None;
    let mut found = BTreeMap::new();
    for eval in order {
        let Value { is_used, is_given } = evals[&eval];
        if is_used {
            found.insert(eval, last);
        }
        if is_given {
            last = Some(eval);
        }
    }
    found
}

/// A decided event is one that the session takes in, not one that it ignores.
fn assert_fits(after: &Session, event: &Event) {
    let expected = match &event.body {
        EventBody::WarmUpStarted { .. } => SessionState::WarmingUp,
        EventBody::SessionFaulted { .. } => SessionState::Faulted,
        EventBody::SessionStopped => SessionState::Uninitialized,
        EventBody::EvalRequested { .. } | EventBody::JobRequested { .. } => SessionState::Evaluating,
        EventBody::WarmUpCompleted { .. }
        | EventBody::EvalCompleted { .. }
        | EventBody::EvalFailed { .. }
        | EventBody::EvalCancelled { .. }
        | EventBody::EvalInterrupted { .. }
        | EventBody::JobEnded { .. } => SessionState::Ready,
        EventBody::CancelRequested { job, .. } => {
            assert!(after.running().is_some_and(|running| running.job == *job && running.cancel_requested));
            return;
        }
        _ => return,
    };
    assert_eq!(after.state(), expected, "{:?}", event.body);
}

fn assert_sensible(before: SessionState, after: &Session, effects: &[Effect]) {
    let starts = |effect: &&Effect| {
        matches!(effect, Effect::StartWorker { .. } | Effect::ResetWorker | Effect::Reload)
    };
    for effect in effects {
        match effect {
            Effect::Run { job, .. } | Effect::Work { job, .. } => {
                assert_eq!(before, SessionState::Ready, "code runs only in a session that waits for it");
                assert!(after.running().is_some_and(|running| running.job == *job));
            }
            Effect::Interrupt { job } => {
                assert!(
                    after.running().is_some_and(|running| running.job == *job && running.cancel_requested)
                );
            }
            Effect::StartWorker { .. } | Effect::ResetWorker | Effect::Reload => {
                assert_eq!(after.state(), SessionState::WarmingUp)
            }
            Effect::Answer { ask, .. } => {
                assert_eq!(after.ask(*ask), None, "what is answered waits no longer")
            }
            Effect::Pause { job, ask } => {
                assert!(after.running().is_some_and(|running| running.job == *job));
                assert!(after.ask(*ask).is_some_and(|pending| pending.is_of_job(*job)));
            }
            Effect::Steer { queued } => assert!(after.queue.contains(queued), "what it is to hear is known"),
            Effect::KillWorker => assert!(!after.state().is_busy() && after.state() != SessionState::Ready),
        }
    }
    assert!(effects.iter().filter(starts).count() <= 1, "one worker at most: {effects:?}");
    if after.state() == SessionState::WarmingUp && before != SessionState::WarmingUp {
        assert!(effects.iter().any(|effect| starts(&effect)), "what warms up has a worker coming");
    }
    if matches!(after.state(), SessionState::Faulted | SessionState::Uninitialized) && before != after.state()
    {
        assert!(
            effects.contains(&Effect::KillWorker),
            "what neither works nor warms up leaves no worker behind"
        );
    }
}

fn failed_build() -> BuildReport {
    BuildReport { built: Err("it has an error".to_owned()), diagnostics: Vec::new(), by_warm_compiler: false }
}

/// How a session becomes idle.
fn any_rest() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Command(SessionCommand::Stop)),
        Just(Step::Command(SessionCommand::HardReset)),
        Just(Step::DaemonStopping),
        Just(Step::DaemonLost),
        Just(lost()),
        any_report().prop_map(|report| Step::Finished { of_running: true, report: Box::new(report) }),
    ]
}

proptest! {
    #[test]
    fn what_a_runner_says_is_read_back_as_it_was(
        step in any_step(),
        shown in (any_display(), any_comm(), any::<bool>()),
    ) {
        let (display, message, is_replaced) = shown;
        let (job, display) = (job_id(1), Box::new(display));
        let mut said = vec![
            RunnerNotice::Display { job: Some(job), display },
            RunnerNotice::Comm { job: None, message: Box::new(message) },
            RunnerNotice::Cleared { job, is_replaced },
        ];
        if let TestInput::Notice(Notice::Runner(notice)) = step.given(Some(job), None, ask_id(1)) {
            said.push(notice);
        }
        for notice in said {
            let text = serde_json::to_string(&notice).unwrap();
            prop_assert_eq!(serde_json::from_str::<RunnerNotice>(&text).unwrap(), notice, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_accepted_command_has_one_outcome_once_nothing_runs(
        kind in any_kind(),
        steps in vec(any_step(), 0..60),
        rest in any_rest(),
    ) {
        let mut story = SessionHistory::begin(kind);
        steps.into_iter().for_each(|step| story.take(step));
        // Only an eval ends as an eval does.
        let kind = story.session.running().map(|running| running.kind);
        story.take(match (rest, kind) {
            (Step::Finished { .. }, Some(JobKind::Build | JobKind::Rebuild)) => {
                Step::Built { of_running: true, report: failed_build() }
            }
            (
                Step::Finished { .. },
                Some(JobKind::Turn | JobKind::Compaction | JobKind::Shell | JobKind::Setting),
            ) => lost(),
            (Step::Finished { .. }, Some(JobKind::Comm)) => Step::CommTaken { of_running: true },
            (rest, _) => rest,
        });
        prop_assert_eq!(story.session.running(), None);
        for command in &story.accepted {
            let waits = story.session.waits(&client().principal(), command);
            let asks = story.session.ask_of(&client().principal(), command).is_some();
            prop_assert!(story.answers.contains_key(command.as_str()) != (waits || asks), "{} has no outcome, or waits with one", command);
        }
        prop_assert_eq!(Session::fold(&story.events), Some(story.session));
    }

    #[test]
    fn a_deleted_session_leaves_nothing_unanswered_and_nothing_follows_in_it(
        kind in any_kind(),
        steps in vec(any_step(), 0..40),
        later in any_step(),
    ) {
        let mut story = SessionHistory::begin(kind);
        steps.into_iter().for_each(|step| story.take(step));
        // The engine turns away what waits first.
        while !story.session.lane.is_empty() {
            story.take(Step::Leave);
        }
        story.take(Step::Command(SessionCommand::Delete));
        for command in &story.accepted {
            prop_assert!(story.answers.contains_key(command.as_str()), "{} has no outcome", command);
        }
        let SessionHistory { session, events, .. } = story;
        prop_assert_eq!((session.state(), session.asks.len()), (SessionState::Uninitialized, 0));
        prop_assert_eq!(&events.last().unwrap().body, &EventBody::SessionDeleted);
        let decide = |input| decide(&session, input, second(99), &Limits::default());
        match later.given(None, None, ask_id(9)) {
            TestInput::Command(body) => {
                let fingerprint = CommandFingerprint::of("s", &body);
                let command = Command::new(command_id(999), client(), body);
                let command = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
                prop_assert_eq!(decide(command), Err(Error::SessionNotFound { reference: session.id.to_string() }));
            }
            TestInput::Notice(notice) => prop_assert_eq!(decide(Input::Notice(notice)), Ok(Decision::default())),
            TestInput::Queue(..) | TestInput::Turn | TestInput::Leave => {}
        }
    }

    #[test]
    fn an_unloaded_session_leaves_nothing_unanswered_and_no_alias_and_all_else_is_there_when_it_is_loaded(
        kind in any_kind(),
        steps in vec(any_step(), 0..40),
    ) {
        let mut story = SessionHistory::begin(kind);
        steps.into_iter().for_each(|step| story.take(step));
        while !story.session.lane.is_empty() {
            story.take(Step::Leave);
        }
        // Whether it was unloaded on the way.
        story.take(Step::Command(SessionCommand::Load(command::Load { alias: Some("main".to_owned()) })));
        let before = story.session.clone();
        story.take(Step::Command(SessionCommand::Unload(command::Unload { alias: Some("another".to_owned()) })));
        prop_assert_eq!(story.session.unloaded_at, None, "it is called otherwise");
        story.take(Step::Command(SessionCommand::Unload(command::Unload { alias: None })));
        for command in &story.accepted {
            prop_assert!(story.answers.contains_key(command.as_str()), "{} has no outcome", command);
        }
        let unloaded = story.session.clone();
        prop_assert_eq!((unloaded.state(), unloaded.asks.len()), (SessionState::Uninitialized, 0));
        prop_assert!(unloaded.unloaded_at.is_some() && unloaded.alias.is_none());
        prop_assert_eq!(
            &story.events.last().unwrap().body,
            &EventBody::SessionUnloaded { alias: before.alias.clone() }
        );
        let name = Some("again".to_owned());
        story.take(Step::Command(SessionCommand::Load(command::Load { alias: name.clone() })));
        let loaded = story.session.clone();
        prop_assert_eq!((&loaded.alias, loaded.unloaded_at), (&name, None));
        prop_assert_eq!(
            (&loaded.name, &loaded.transcript, loaded.definitions_since, &loaded.labels),
            (&before.name, &before.transcript, before.definitions_since, &before.labels)
        );
        story.take(Step::Command(SessionCommand::Load(command::Load { alias: Some("other".to_owned()) })));
        prop_assert_eq!(&story.session.alias, &name, "what is loaded is not loaded again");
        prop_assert_eq!(Session::fold(&story.events), Some(story.session));
    }

    #[test]
    fn what_is_replayed_is_what_changed_the_session_since_its_last_reset(steps in vec(any_step(), 0..80)) {
        let mut story = SessionHistory::begin(SessionKind::fsharp());
        steps.into_iter().for_each(|step| story.take(step));
        let since = story.session.definitions_since;
        let mut list = ReplayList::default();
        story.events.iter().filter(|event| event.seq > since).for_each(|event| list.push(event.clone()));
        let Replay { items, left_out, withheld: _ } = list.finish();
        let again = items.iter().map(|item| (item.requested, item.code.clone(), item.succeeded));
        let definitions = story.definitions();
        let (changed, others): (Vec<Again>, Vec<Again>) = again.partition(|again| definitions.contains(again));
        prop_assert_eq!(changed, definitions);
        prop_assert!(others.iter().all(|(_, _, succeeded)| *succeeded), "others are there for their value: {:?}", others);
        if !left_out.is_empty() {
            // Their values are gone, and those of all that used them.
            return Ok(());
        }

        let evals = story.evals();
        let at_first = last_values(evals.keys().copied(), &evals);
        let whole: Vec<Seq> =
            items.iter().map(|item| item.requested).filter(|eval| evals.contains_key(eval)).collect();
        for (eval, last) in last_values(whole.iter().copied(), &evals) {
            prop_assert_eq!(last, at_first[&eval], "{} finds another value than the first time", eval);
        }
        let last_given = |evals: Vec<Seq>| evals.into_iter().rfind(|eval| story.evals()[eval].is_given);
        prop_assert_eq!(last_given(whole), last_given(evals.keys().copied().collect()), "the last value is another");
    }

    #[test]
    fn a_session_of_any_shape_refuses_a_command_or_decides_and_never_refuses_a_notice(
        session in any_session(),
        source in any_source(),
        step in any_step(),
    ) {
        let first = session.asks.first().map(|pending| pending.ask.ask);
        match step.given(session.running().map(|running| running.job), first, ask_id(9)) {
            TestInput::Command(body) => {
                let fingerprint = CommandFingerprint::of("s", &body);
                let is_offered = availability(session.state(), body.action()) != Availability::Refused
                    || takes_back_an_ask(&session, &source, &body);
                let refused = !is_offered || !body.action().is_of(session.capabilities()) || misses(&session, &source, &body);
                let command = Command::new(command_id(1), source, body);
                let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(9) };
                prop_assert_eq!(decide(&session, input, second(0), &Limits::default()).is_err(), refused);
            }
            TestInput::Queue(..) | TestInput::Turn | TestInput::Leave => {}
            TestInput::Notice(notice) => {
                prop_assert!(decide(&session, Input::Notice(notice), second(0), &Limits::default()).is_ok());
            }
        }
    }
}

/// A session in which `steps` were taken, all of them possible.
fn after(steps: impl IntoIterator<Item = Step>) -> SessionHistory {
    let mut story = SessionHistory::begin(SessionKind::fsharp());
    steps.into_iter().for_each(|step| story.take(step));
    story
}

fn lost() -> Step {
    Step::Exited { exit: mainstay_model::WorkerExit::Unknown, blame: None }
}

fn eval() -> Step {
    Step::Command(SessionCommand::Eval(command::Eval {
        code: "1".to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    }))
}

pub(crate) fn ready() -> [Step; 2] {
    [Step::Command(SessionCommand::Start), Step::WarmedUp]
}

#[test]
fn a_kernel_whose_code_cannot_see_arguments_is_given_none() {
    let mut story = SessionHistory::begin(SessionKind::new("bash").unwrap());
    ready().into_iter().for_each(|step| story.take(step));
    let line = CommandLine { script: "a.sh".to_owned(), arguments: vec!["x".to_owned()] };
    let (code, command_line) = ("1".to_owned(), Some(line));
    let body =
        SessionCommand::Eval(command::Eval { code, file: None, command_line, origin: None, withheld: false });
    let command = Command::new(command_id(50), client(), body);
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(50) };
    assert!(matches!(story.decide(input), Err(Error::InvalidArgument { .. })));
}

#[test]
fn the_job_of_a_stopping_daemon_was_cut_off_and_nobody_cancelled_it() {
    let story = after(ready().into_iter().chain([eval(), Step::DaemonStopping]));
    let kinds: Vec<&str> = story.events.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds[4..], ["evalInterrupted", "sessionStopped"]);
}

#[test]
fn a_job_is_told_to_stop_before_it_hears_that_nobody_answers() {
    let mut story = after(ready().into_iter().chain([eval(), Step::Asks(Question::text("Name?"))]));
    let [ask] = story.session.asks.as_slice() else { panic!("{:?}", story.session.asks) };
    let (ask, job) = (ask.ask.ask, story.session.running().unwrap().job);
    let body = SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None });
    let command = Command::new(command_id(50), client(), body);
    let fingerprint = command.fingerprint(story.session.id);
    let input = Input::Command { command, fingerprint, deadline: None, fresh: Uuid::from_u128(50) };
    let decision = story.decide(input).unwrap();
    let refusal = Effect::Answer { ask, answer: Err(Error::Cancelled) };
    assert_eq!(decision.effects, [Effect::Interrupt { job }, refusal]);
    story.carry(decision);
}

#[test]
fn a_command_that_takes_too_long_is_answered_once_and_its_late_end_is_an_event() {
    let mut story = after(ready());
    let command = Command::new(
        command_id(50),
        client(),
        SessionCommand::Eval(command::Eval {
            code: "1".to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }),
    );
    let fingerprint = command.fingerprint(story.session.id);
    let deadline = Some(Deadline::after(second(0), 5_000));
    let decision =
        story.decide(Input::Command { command, fingerprint, deadline, fresh: Uuid::from_u128(50) }).unwrap();
    story.carry(decision);
    let decision = story.decide(Input::Notice(Notice::DeadlineReached { job: job_id(50) })).unwrap();
    assert_eq!(decision.effects, [Effect::Interrupt { job: job_id(50) }]);
    story.carry(decision);
    let timed_out = Outcome::Failed { error: Error::TimedOut { limit_ms: 5_000 } };
    assert_eq!(story.answers[command_id(50).as_str()], timed_out);
    story.take(Step::DeadlineReached { of_running: true });
    let version = story.session.version;
    let report = JobReport {
        ending: JobEnding::Interrupted { kept: 0 },
        result: EvalResult::default(),
        changes_state: true,
        took: Duration::from_secs(6),
        references: None,
    };
    story.take(Step::Finished { of_running: true, report: Box::new(report) });
    let kinds: Vec<&str> = story.events.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds[3..], ["evalRequested", "evalTimedOut", "evalCancelled"]);
    assert_eq!((story.session.state(), story.session.version), (SessionState::Ready, version));
}

#[test]
fn what_changes_the_session_moves_its_version_and_nothing_else_does() {
    let mut story = after(ready());
    let mut versions = Vec::new();
    let report = |ending, changes_state| Step::Finished {
        of_running: true,
        report: Box::new(JobReport {
            ending,
            result: EvalResult::default(),
            changes_state,
            took: Duration::ZERO,
            references: None,
        }),
    };
    for step in [
        eval(),
        report(JobEnding::Completed, false),
        eval(),
        report(JobEnding::Rejected, false),
        eval(),
        // Its first half had run.
        report(JobEnding::Rejected, true),
        Step::Command(SessionCommand::Rename(command::Rename { name: "other".to_owned() })),
        Step::Command(SessionCommand::Compact(command::Compact {
            covers: Vec::new(),
            asked: None,
            summary: "So far.".to_owned(),
        })),
        Step::Command(SessionCommand::Label(command::Label {
            index: 0,
            entry: Origin { session: story.session.id, number: 0 },
            label: Some("good".to_owned()),
        })),
        Step::Command(SessionCommand::Stop),
        Step::Command(SessionCommand::Start),
        Step::WarmedUp,
        Step::Command(SessionCommand::Reset),
    ] {
        story.take(step);
        versions.push(story.session.version.0);
    }
    assert_eq!(versions, [0, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 5, 6]);
}

#[test]
fn what_is_saved_and_does_not_run_is_told_with_its_reason_until_it_does() {
    let [a, b] = SOURCES;
    let swap = |file: &str, reason: Option<&str>| {
        let obstacle = reason.map(|reason| SwapObstacle {
            file: file.to_owned(),
            code: "shape".to_owned(),
            name: "Item".to_owned(),
            line: 3,
            reason: reason.to_owned(),
        });
        let files = [(file.to_owned(), String::new())].into();
        Step::Swapped(Swap { files, obstacles: obstacle.into_iter().collect(), ..Swap::default() })
    };
    // A save of the one that the other does not go with.
    let elsewhere = |step: Step| {
        let Step::Swapped(mut swap) = step else { unreachable!() };
        swap.files = [(a.to_owned(), String::new())].into();
        Step::Swapped(swap)
    };
    let build = Step::Command(SessionCommand::Work(JobSpec::Build));
    let built = Step::Built {
        of_running: true,
        report: BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false },
    };
    let mut story = after(ready());
    for (step, words) in [
        (elsewhere(swap(b, Some("it has the name"))), Some("a.fs; Item (b.fs:3): it has the name")),
        (swap(a, None), None),
        (swap(b, Some("Item\nchanged")), Some("b.fs; Item changed (b.fs:3)")),
        (swap(a, None), Some("b.fs; Item changed (b.fs:3)")),
        (swap(b, Some("it has an error")), Some("b.fs; Item (b.fs:3): it has an error")),
        (swap(b, None), None),
        (swap(b, Some("it changed")), Some("b.fs; Item (b.fs:3): it changed")),
        (build, Some("b.fs; Item (b.fs:3): it changed")),
        (built, None),
        (Step::WarmedUp, None),
        (Step::Written(vec![b]), Some("b.fs")),
    ] {
        story.take(step);
        let words = words.map(|words| format!("saved and not what runs: {words}"));
        assert_eq!(story.session.unbuilt_words(), words);
    }
}

#[test]
fn what_was_written_is_told_once_until_a_build_has_it_or_fails() {
    let [a, b] = SOURCES;
    let build = || Step::Command(SessionCommand::Work(JobSpec::Build));
    let built = |built| Step::Built {
        of_running: true,
        report: BuildReport { built, diagnostics: Vec::new(), by_warm_compiler: false },
    };
    let mut story = after(ready());
    let mut told = Vec::new();
    for step in [
        Step::Written(vec![a, "/elsewhere.fs"]),
        Step::Written(vec![a]),
        build(),
        // The compiler may have read it before.
        Step::Written(vec![a, b]),
        Step::Written(vec![b]),
        built(Ok(())),
        Step::WarmedUp,
        build(),
        built(Err("it has an error".to_owned())),
        Step::Written(vec![b]),
        Step::Written(vec![b]),
        build(),
        built(Ok(())),
        Step::WarmedUp,
    ] {
        story.take(step);
        told.push(
            story.session.unbuilt.keys().map(|file| &file[file.len() - 4..]).collect::<Vec<_>>().join(" "),
        );
    }
    let both = "a.fs b.fs";
    let expected = ["a.fs", "a.fs", "a.fs", both, both, both, both, both, both, both, both, both, "", ""];
    assert_eq!(told, expected);
    let events = story.events.iter().filter(|event| event.body.kind() == "sourcesChanged").count();
    assert_eq!(events, 3, "what may mend a build that failed is told again");
}

#[test]
fn what_was_written_before_a_build_began_is_built_by_it_whenever_that_is_noticed() {
    let [a, b] = SOURCES;
    let build = || Step::Command(SessionCommand::Work(JobSpec::Build));
    let built = |built| Step::Built {
        of_running: true,
        report: BuildReport { built, diagnostics: Vec::new(), by_warm_compiler: false },
    };
    let unbuilt = |steps: Vec<Step>| {
        let mut story = after(ready());
        let began = i64::try_from(story.steps).unwrap() + 1;
        story.take(build());
        for step in steps {
            let step = match step {
                Step::WrittenIn(at, files) => Step::WrittenIn(began + at, files),
                step => step,
            };
            story.take(step);
        }
        story.session.unbuilt.keys().map(|file| &file[file.len() - 4..]).collect::<Vec<_>>().join(" ")
    };
    let seen_in_build =
        |result| vec![Step::WrittenIn(-1, vec![a]), Step::WrittenIn(1, vec![b]), built(result)];
    assert_eq!(unbuilt(seen_in_build(Ok(()))), "b.fs");
    assert_eq!(unbuilt(seen_in_build(Err("it has an error".to_owned()))), "a.fs b.fs");
    let seen_after =
        vec![built(Ok(())), Step::WarmedUp, Step::WrittenIn(-1, vec![a]), Step::WrittenIn(1, vec![b])];
    assert_eq!(unbuilt(seen_after), "b.fs");
}

#[test]
fn a_build_that_was_cancelled_drops_nothing_also_where_it_was_done_by_then() {
    for work in [JobSpec::Rebuild, JobSpec::Build] {
        let report = BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false };
        let story = after(ready().into_iter().chain([
            Step::Command(SessionCommand::Work(work)),
            Step::Command(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })),
            Step::Built { of_running: true, report },
        ]));
        assert_eq!(story.session.state(), SessionState::Ready);
        let ended = story.events.last().unwrap();
        let is_cancelled =
            matches!(&ended.body, EventBody::JobEnded { ending: WorkEnding::Cancelled { .. }, .. });
        assert!(is_cancelled, "{ended:?}");
    }
}

#[test]
fn a_second_cancel_is_answered_and_recorded_once() {
    let cancel = || Step::Command(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None }));
    let story = after(ready().into_iter().chain([eval(), cancel(), cancel()]));
    let cancels = story.events.iter().filter(|event| event.body.kind() == "cancelRequested").count();
    assert_eq!((cancels, story.answers.len()), (1, 3), "the start and both cancels are answered");
}

#[test]
fn a_reset_forgets_the_losses_before_it() {
    let lost = || [lost(), Step::WarmedUp];
    for reset in [SessionCommand::Reset, SessionCommand::HardReset] {
        let losses = ready().into_iter().chain((0..6).flat_map(|_| lost()));
        let mut story = after(losses);
        assert_eq!(story.session.state(), SessionState::Faulted);
        [Step::Command(reset), Step::WarmedUp].into_iter().chain(lost()).for_each(|step| story.take(step));
        assert_eq!(story.session.state(), SessionState::Ready);
    }
}
