//! The session as its events tell it: the projection that commands are decided against.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::eval::EvalResult;
use crate::event::{Event, EventBody, Source, WarmUpReason};
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, JobId, Seq, SessionId, SessionKind};
use crate::state::{SessionState, Transition, WaitReason, transition};

/// A session, folded from its events. What grows with the transcript is not kept here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Which.
    pub id: SessionId,
    /// What does its work.
    pub kind: SessionKind,
    /// What people call it.
    pub name: String,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The project it is for.
    pub project: Option<String>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// What it is doing.
    pub life: Life,
    /// Its newest event.
    pub last_seq: Seq,
    /// The event at which its definitions began: its creation or its last reset. Replay begins after it.
    pub definitions_since: Seq,
    /// How many evals were accepted.
    pub evals: u64,
    /// How many of them did not run to their end.
    pub failures: u64,
    /// The worker that is there, if one is.
    pub worker: Option<WorkerInfo>,
    /// When workers were lost, in a row; see [`crate::supervision`].
    pub losses: Vec<Timestamp>,
}

/// What a session is doing, with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Life {
    /// At rest.
    Uninitialized,
    /// A worker starts.
    WarmingUp {
        /// Why.
        reason: WarmUpReason,
    },
    /// Waits for code.
    Ready,
    /// Runs a job.
    Evaluating {
        /// Which.
        running: RunningJob,
    },
    /// A job waits for something from outside.
    Waiting {
        /// Which.
        running: RunningJob,
        /// For what.
        reason: WaitReason,
    },
    /// Broken until reset.
    Faulted {
        /// Why, for people.
        message: String,
    },
}

/// The job that runs, and whose command it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningJob {
    /// Which.
    pub job: JobId,
    /// The command that asked for it.
    pub command: CommandId,
    /// Who asked.
    pub source: Source,
    /// What the command said.
    pub fingerprint: CommandFingerprint,
    /// The event that accepted it.
    pub requested: Seq,
    /// When.
    pub requested_at: Timestamp,
    /// Whether someone asked for it to stop.
    pub cancel_requested: bool,
}

/// A worker that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerInfo {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// Its process id.
    pub pid: u32,
    /// Since when it is ready.
    pub ready_at: Timestamp,
}

impl Session {
    /// The session that its first event begins; none where the event is not a creation.
    pub fn begin(event: &Event) -> Option<Self> {
        let EventBody::SessionCreated { kind, name, working_directory, project } = &event.body else {
            return None;
        };
        Some(Self {
            id: event.session,
            kind: kind.clone(),
            name: name.clone(),
            working_directory: working_directory.clone(),
            project: project.clone(),
            created_at: event.at,
            last_activity: event.at,
            life: Life::Uninitialized,
            last_seq: event.seq,
            definitions_since: event.seq,
            evals: 0,
            failures: 0,
            worker: None,
            losses: Vec::new(),
        })
    }

    /// The session that a whole sequence of events tells; none where it does not begin with a creation.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut session = Self::begin(events.next()?)?;
        events.for_each(|event| session.evolve(event));
        Some(session)
    }

    /// Its state.
    pub fn state(&self) -> SessionState {
        match &self.life {
            Life::Uninitialized => SessionState::Uninitialized,
            Life::WarmingUp { .. } => SessionState::WarmingUp,
            Life::Ready => SessionState::Ready,
            Life::Evaluating { .. } => SessionState::Evaluating,
            Life::Waiting { reason, .. } => SessionState::Waiting(*reason),
            Life::Faulted { .. } => SessionState::Faulted,
        }
    }

    /// The job that runs.
    pub fn running(&self) -> Option<&RunningJob> {
        match &self.life {
            Life::Evaluating { running } | Life::Waiting { running, .. } => Some(running),
            Life::Uninitialized | Life::WarmingUp { .. } | Life::Ready | Life::Faulted { .. } => None,
        }
    }

    /// Takes in one more event. Total: an event that does not fit the state leaves it as it is.
    pub fn evolve(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.last_activity = self.last_activity.max(event.at);
        match &event.body {
            EventBody::SessionCreated { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputCut { .. } => {}
            EventBody::SessionRenamed { name } => self.name.clone_from(name),
            EventBody::WarmUpStarted { reason } => self.start_warm_up(*reason),
            EventBody::WarmUpCompleted { kernel, runtime, pid, .. } => {
                if self.step(Transition::WarmUpCompleted, Life::Ready) {
                    self.worker = Some(WorkerInfo {
                        kernel: kernel.clone(),
                        runtime: runtime.clone(),
                        pid: *pid,
                        ready_at: event.at,
                    });
                }
            }
            EventBody::SessionFaulted { message } => {
                let change = match self.state() {
                    SessionState::WarmingUp => Transition::WarmUpFailed,
                    SessionState::Uninitialized
                    | SessionState::Ready
                    | SessionState::Evaluating
                    | SessionState::Waiting(_)
                    | SessionState::Faulted => Transition::GiveUp,
                };
                if self.step(change, Life::Faulted { message: message.clone() }) {
                    self.worker = None;
                }
            }
            EventBody::SessionReset | EventBody::SessionHardReset => {
                self.definitions_since = event.seq;
                self.losses.clear();
            }
            EventBody::SessionStopped => {
                self.step(Transition::Stop, Life::Uninitialized);
                self.worker = None;
                self.losses.clear();
            }
            EventBody::WorkerExited { attempt, .. } => {
                self.worker = None;
                self.losses.push(event.at);
                let keep = usize::try_from(*attempt).unwrap_or(usize::MAX);
                let surplus = self.losses.len().saturating_sub(keep);
                self.losses.drain(..surplus);
            }
            EventBody::EvalRequested { job, command, fingerprint, .. } => {
                let running = RunningJob {
                    job: *job,
                    command: command.clone(),
                    source: event.metadata.source.clone(),
                    fingerprint: fingerprint.clone(),
                    requested: event.seq,
                    requested_at: event.at,
                    cancel_requested: false,
                };
                if self.step(Transition::StartEval, Life::Evaluating { running }) {
                    self.evals += 1;
                }
            }
            EventBody::CancelRequested { job } => {
                if let Life::Evaluating { running } | Life::Waiting { running, .. } = &mut self.life
                    && running.job == *job
                {
                    running.cancel_requested = true;
                }
            }
            EventBody::EvalCompleted { job, .. } => {
                self.end_job(*job, Transition::EvalCompleted);
            }
            EventBody::EvalFailed { job, .. } => {
                if self.end_job(*job, Transition::EvalFailed) {
                    self.failures += 1;
                }
            }
            EventBody::EvalCancelled { job, .. } | EventBody::EvalInterrupted { job } => {
                if self.end_job(*job, Transition::EvalCancelled) {
                    self.failures += 1;
                }
            }
        }
    }

    fn start_warm_up(&mut self, reason: WarmUpReason) {
        let change = match reason {
            WarmUpReason::Started => Transition::StartWarmUp,
            WarmUpReason::Reset => Transition::Reset,
            WarmUpReason::HardReset => Transition::HardReset,
            WarmUpReason::Cancelled | WarmUpReason::WorkerLost | WarmUpReason::DaemonLost => {
                Transition::WorkerLost
            }
        };
        if self.step(change, Life::WarmingUp { reason }) {
            self.worker = None;
        }
    }

    fn end_job(&mut self, job: JobId, change: Transition) -> bool {
        self.running().is_some_and(|running| running.job == job) && self.step(change, Life::Ready)
    }

    /// Goes where the state machine allows it; says whether it did.
    fn step(&mut self, change: Transition, next: Life) -> bool {
        let allowed = transition(self.state(), change).is_ok();
        if allowed {
            self.life = next;
        }
        allowed
    }
}

/// One submission to run again so that a new worker has the session's definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayItem {
    /// The event that accepted it.
    pub requested: Seq,
    /// The code.
    pub code: String,
    /// The file whose text it is.
    pub file: Option<String>,
    /// Whether it ran to its end the first time.
    pub succeeded: bool,
}

/// Collects what must run again, from the events after [`Session::definitions_since`], in order.
///
/// Only submissions that ended and changed the session's state count, those whose value one of these uses (`it`), and the one
/// that gave the last value of all. One that was cancelled or cut off does not: it may never end, and what it had done up to
/// there is not known.
#[derive(Debug, Default)]
pub struct ReplayList {
    pending: Option<(JobId, ReplayItem)>,
    /// Every submission that may have to run again; none where one turned out not to.
    candidates: Vec<Option<ReplayItem>>,
    /// Which of them give the present value of `it`: the submission that gave it, behind those whose value that one used. They
    /// are there for nothing else.
    last_value: Vec<usize>,
}

impl ReplayList {
    /// Takes in the next event.
    pub fn push(&mut self, event: Event) {
        match event.body {
            EventBody::EvalRequested { job, code, file, .. } => {
                self.pending = Some((job, ReplayItem { requested: event.seq, code, file, succeeded: false }));
            }
            EventBody::EvalCompleted { job, result, changes_state, .. } => {
                self.end(job, changes_state, true, &result);
            }
            EventBody::EvalFailed { job, result, changes_state, .. } => {
                self.end(job, changes_state, false, &result)
            }
            EventBody::EvalCancelled { job, .. } | EventBody::EvalInterrupted { job } => {
                self.end(job, false, false, &EvalResult::default());
            }
            EventBody::SessionReset | EventBody::SessionHardReset => *self = Self::default(),
            EventBody::SessionCreated { .. }
            | EventBody::SessionRenamed { .. }
            | EventBody::WarmUpStarted { .. }
            | EventBody::WarmUpCompleted { .. }
            | EventBody::SessionFaulted { .. }
            | EventBody::SessionStopped
            | EventBody::WorkerExited { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputCut { .. }
            | EventBody::CancelRequested { .. } => {}
        }
    }

    /// What must run again.
    pub fn into_items(self) -> Vec<ReplayItem> {
        self.candidates.into_iter().flatten().collect()
    }

    fn end(&mut self, job: JobId, changes_state: bool, succeeded: bool, result: &EvalResult) {
        let Some((_, item)) = self.pending.take_if(|(pending, _)| *pending == job) else { return };
        let gives_value = succeeded && result.value_type.is_some();
        if !changes_state && !gives_value {
            return;
        }
        if changes_state && result.uses_last {
            // What gave the value is there for good now.
            self.last_value.clear();
        }
        if gives_value && !result.uses_last {
            self.forget_last_value();
        }
        if !changes_state {
            self.last_value.push(self.candidates.len());
        } else if gives_value {
            self.last_value.clear();
        }
        self.candidates.push(Some(ReplayItem { succeeded, ..item }));
    }

    /// Another value took the place of the last one, which nothing needs any more.
    fn forget_last_value(&mut self) {
        for index in self.last_value.drain(..) {
            self.candidates[index] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Metadata;
    use crate::id::Position;

    /// One completed eval a line: `!` changes state, `=` gives a value, `it` uses the last one.
    fn replayed(evals: &[&str]) -> Vec<String> {
        let mut list = ReplayList::default();
        for (index, eval) in evals.iter().enumerate() {
            let job = JobId::from_uuid(uuid::Uuid::from_u128(index as u128));
            let result = EvalResult {
                value_type: eval.contains('=').then(|| "int".to_owned()),
                uses_last: eval.contains("it"),
                ..EvalResult::default()
            };
            list.push(event(EventBody::EvalRequested {
                job,
                command: CommandId::from_uuid(job.as_uuid()),
                fingerprint: CommandFingerprint::of("", eval),
                code: (*eval).to_owned(),
                file: None,
            }));
            list.push(event(EventBody::EvalCompleted {
                job,
                result,
                changes_state: eval.contains('!'),
                duration_ms: 0,
            }));
        }
        list.into_items().into_iter().map(|item| item.code).collect()
    }

    fn event(body: EventBody) -> Event {
        let metadata =
            Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
        Event {
            session: SessionId::from_uuid(uuid::Uuid::nil()),
            seq: Seq(1),
            position: Position(1),
            at: Timestamp::UNIX_EPOCH,
            metadata,
            body,
        }
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
}
