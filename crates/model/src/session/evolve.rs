//! Applying events to a session. Every event is accepted: one that does not fit the state leaves it as it is.

use super::running_job::RunningJob;
use super::surroundings::Surroundings;
use super::{Activity, DIVERGENCES_KEPT, Parent, Rebuilt, Session, Waiting, WorkerInfo};
use crate::agent::{JobKind, JobSpec, WorkEnding};
use crate::ask::Raiser;
use crate::event::{Event, EventBody, Metadata, Source, WarmUpReason};
use crate::id::{JobId, Seq};
use crate::state::{SessionState, Transition, transition};
use crate::transcript::Transcript;

/// How many characters of a session's first input are its title.
const TITLE_CHARACTERS: usize = 60;

/// How code begins: its first line that is not blank, cut where it is long.
pub(crate) fn title(code: &str) -> Option<String> {
    let line = code.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARACTERS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

impl Session {
    /// The session that a whole sequence of events tells; none where it does not begin with a creation.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut session = Self::begin(events.next()?)?;
        events.for_each(|event| session.evolve(event));
        Some(session)
    }

    /// Takes in one more event. Total: an event that does not fit the state leaves it as it is.
    pub fn evolve(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.last_activity = self.last_activity.max(event.at);
        self.leave_lane(event);
        match &event.body {
            EventBody::SessionCreated { .. }
            | EventBody::SessionImported { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputDisplayed { .. }
            | EventBody::OutputCleared { .. }
            | EventBody::CommPublished { .. }
            | EventBody::OutputCut { .. }
            | EventBody::CommandDequeued { .. } => {}
            EventBody::SessionForked(point) => {
                self.transcript = Transcript::beginning_with(point.segments.clone());
                self.begins_with.clone_from(&point.replay);
                self.forked_from = Some(Parent { session: point.from, entries: point.entries });
                self.labels.clone_from(&point.labels);
            }
            EventBody::EntriesMerged(point) => {
                self.transcript.clone_from(&point.transcript);
                self.begins_with.clone_from(&point.replay);
                (self.definitions_since, self.merged_at) = (event.seq, Some(event.seq));
                self.version = self.version.next();
            }
            EventBody::CommandQueued(queued) => self.lane.push(Waiting {
                principal: event.metadata.source.principal(),
                command: queued.command.clone(),
                queued: event.seq,
            }),
            EventBody::AskRaised(ask) => self.ask_raised(ask, event),
            EventBody::AskEnded { ask, ending } => self.ask_ended(*ask, ending),
            EventBody::SessionRenamed { name } => {
                self.name.clone_from(name);
                self.version = self.version.next();
            }
            EventBody::WarmUpStarted { reason } => self.start_warm_up(*reason),
            EventBody::WarmUpCompleted { kernel, runtime, language, pid, diverged, startup, .. } => {
                self.language.clone_from(language);
                let project = startup.as_ref().and_then(|startup| startup.project.as_ref());
                let unbuilt = project.iter().flat_map(|project| &project.unbuilt);
                self.unbuilt.extend(unbuilt.map(|file| (file.clone(), event.seq)));
                self.startup.clone_from(startup);
                self.surroundings = event.metadata.environment.as_ref().map(|_| Surroundings {
                    runtime: runtime.clone(),
                    ..self.surroundings.take().unwrap_or_default()
                });
                if self.step(Transition::WarmUpCompleted, Activity::Ready) {
                    let diverged: Vec<_> = diverged.iter().take(DIVERGENCES_KEPT).cloned().collect();
                    self.rebuilt = (!diverged.is_empty()).then_some(Rebuilt { diverged, is_news: true });
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
                if self.step(change, Activity::Faulted { message: message.clone() }) {
                    self.worker = None;
                }
            }
            EventBody::SessionReset | EventBody::SessionHardReset => {
                self.definitions_since = event.seq;
                self.losses.clear();
                self.version = self.version.next();
            }
            EventBody::SessionStopped => {
                self.step(Transition::Stop, Activity::Uninitialized);
                self.worker = None;
                self.summary_is_new = false;
                self.losses.clear();
            }
            EventBody::SessionDeleted => {
                self.deleted_at = Some(event.at);
                self.title = None;
            }
            EventBody::SessionUnloaded { .. } => (self.alias, self.unloaded_at) = (None, Some(event.at)),
            EventBody::SessionLoaded { alias } => {
                self.alias.clone_from(alias);
                self.unloaded_at = None;
            }
            EventBody::WorkerExited { attempt: 0, .. } => self.worker = None,
            EventBody::WorkerExited { attempt, .. } => {
                self.worker = None;
                self.losses.push(event.at);
                let keep = usize::try_from(*attempt).unwrap_or(usize::MAX);
                let surplus = self.losses.len().saturating_sub(keep);
                self.losses.drain(..surplus);
            }
            EventBody::EvalRequested { job, command, fingerprint, key, deadline, withheld, code, .. } => {
                let running = RunningJob {
                    key: key.clone(),
                    deadline: *deadline,
                    withheld: *withheld,
                    ..RunningJob::begun(event, *job, command, fingerprint, JobKind::Eval)
                };
                self.start_job(running, Some(code));
            }
            EventBody::JobRequested { job, command, fingerprint, key, deadline, work } => {
                let running = RunningJob {
                    key: key.clone(),
                    deadline: *deadline,
                    ..RunningJob::begun(event, *job, command, fingerprint, work.kind())
                };
                let said = match work {
                    JobSpec::Turn { prompt } => Some(prompt.text.as_str()),
                    JobSpec::Compaction { .. }
                    | JobSpec::Shell { .. }
                    | JobSpec::Setting(_)
                    | JobSpec::Build
                    | JobSpec::Rebuild
                    | JobSpec::Comm(_) => None,
                };
                self.start_job(running, said);
            }
            EventBody::JobEnded { job, ending, .. } => self.work_ended(*job, ending),
            EventBody::MessageStreamed(_) | EventBody::AgentNoted(_) => {}
            EventBody::PromptQueued(queued) => {
                self.queue.push(queued.clone());
                self.version = self.version.next();
            }
            EventBody::QueueChanged { queue } => self.queue.clone_from(queue),
            EventBody::AgentChanged(state) => self.agent = Some((**state).clone()),
            EventBody::CancelRequested { job } => {
                if let Some(running) = self.running_mut(*job) {
                    running.cancel_requested = true;
                    self.version = self.version.next();
                }
            }
            EventBody::EvalTimedOut { job, .. } => {
                if let Some(running) = self.running_mut(*job) {
                    (running.cancel_requested, running.is_answered) = (true, true);
                }
            }
            EventBody::EvalCompleted { job, .. } => {
                if self.end_job(*job, Transition::EvalCompleted) {
                    self.version = self.version.next();
                }
            }
            EventBody::EvalFailed { job, changes_state, .. } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalFailed) {
                    self.failed(is_counted, *changes_state);
                }
            }
            EventBody::EvalCancelled { job, kept, .. } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalCancelled) {
                    self.failed(is_counted, kept.is_some());
                }
            }
            EventBody::EnvironmentChanged { references } => {
                let surroundings = self.surroundings.get_or_insert_default();
                surroundings.present = surroundings.present_with(references);
                surroundings.loaded.clone_from(references);
            }
            EventBody::AssembliesChanged { new, changed, .. } => {
                self.surroundings.get_or_insert_default().present.clone_from(new);
                // Whoever built it has built its sources.
                if changed.iter().filter_map(|name| new.get(name)).any(|now| self.is_of_project(now)) {
                    self.unbuilt.clear();
                }
            }
            EventBody::SourcesChanged { changed, in_build } => {
                let build = self.build_under_way().filter(|_| *in_build);
                let told = build.map_or(event.seq, |build| build.requested);
                self.unbuilt.extend(changed.iter().map(|file| (file.clone(), told)));
            }
            EventBody::MessageAdded(message) => {
                self.usage = self.usage.plus(message.usage.unwrap_or_default());
                self.messages += 1;
            }
            EventBody::TranscriptCompacted(_) => {
                // What its agent does in a job is part of the job.
                if event.metadata.source != Source::Worker {
                    self.version = self.version.next();
                    self.summary_is_new = self.is_agent() && self.running().is_some();
                }
            }
            EventBody::EntryLabeled { entry, label } => {
                self.labels.set(*entry, event.at, label.clone());
                self.version = self.version.next();
            }
            EventBody::EvalInterrupted { job } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalCancelled) {
                    self.failed(is_counted, false);
                }
            }
        }
    }

    /// A job begins; a turn, or an eval, with these words.
    fn start_job(&mut self, running: RunningJob, said: Option<&str>) {
        if !self.step(Transition::StartEval, Activity::Evaluating { running }) {
            return;
        }
        let Some(said) = said else { return };
        if self.evals == 0 {
            self.title = title(said);
        }
        self.evals += 1;
        if let Some(rebuilt) = &mut self.rebuilt {
            rebuilt.is_news = false;
        }
    }

    /// A job ended that is no eval. What was done has changed the session, whatever it was.
    fn work_ended(&mut self, job: JobId, ending: &WorkEnding) {
        let change = match ending {
            WorkEnding::Done { .. } => Transition::EvalCompleted,
            WorkEnding::Failed { .. } => Transition::EvalFailed,
            WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Transition::EvalCancelled,
        };
        let is_counted = self.runs_what_counts();
        let build = self.build_under_way().map(|build| (build.requested, build.requested_at));
        if !self.end_job(job, change) {
            return;
        }
        match (ending, build) {
            (WorkEnding::Done { .. }, Some((since, at))) => {
                self.unbuilt.retain(|_, told| *told > since);
                self.built = Some(at);
            }
            // What this build had is still not built, and the next time it is written may mend it: that is told.
            (_, Some((since, _))) => {
                for told in self.unbuilt.values_mut().filter(|told| **told <= since) {
                    *told = Seq::ZERO;
                }
            }
            (_, None) => {}
        }
        match ending {
            WorkEnding::Done { .. } => self.version = self.version.next(),
            WorkEnding::Failed { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => {
                self.failed(is_counted, false);
            }
        }
    }

    /// Whether what runs is an eval or a turn: those are counted, and those of them that fail.
    fn runs_what_counts(&self) -> bool {
        self.running().is_some_and(|running| match running.kind {
            JobKind::Eval | JobKind::Turn => true,
            JobKind::Compaction
            | JobKind::Shell
            | JobKind::Setting
            | JobKind::Build
            | JobKind::Rebuild
            | JobKind::Comm => false,
        })
    }

    /// A job did not run to its end; it may have changed the session all the same.
    fn failed(&mut self, is_counted: bool, changes_state: bool) {
        self.failures += u64::from(is_counted);
        if changes_state {
            self.version = self.version.next();
        }
    }

    /// A command that waited leaves the lane with the first event of its own.
    fn leave_lane(&mut self, event: &Event) {
        if self.lane.is_empty() {
            return;
        }
        let (principal, command) = if let EventBody::CommandDequeued { principal, command, .. } = &event.body
        {
            (principal, command)
        } else if let Metadata {
            source: Source::Client { principal, .. }, correlation: Some(command), ..
        } = &event.metadata
        {
            (principal, command)
        } else {
            return;
        };
        self.lane.retain(|waiting| waiting.command != *command || waiting.principal != *principal);
    }

    fn running_mut(&mut self, job: JobId) -> Option<&mut RunningJob> {
        match &mut self.life {
            Activity::Evaluating { running } | Activity::Waiting { running, .. } if running.job == job => {
                Some(running)
            }
            Activity::Evaluating { .. }
            | Activity::Waiting { .. }
            | Activity::Uninitialized
            | Activity::WarmingUp { .. }
            | Activity::Ready
            | Activity::Faulted { .. } => None,
        }
    }

    fn start_warm_up(&mut self, reason: WarmUpReason) {
        let change = match reason {
            WarmUpReason::Started => Transition::StartWarmUp,
            WarmUpReason::Reset => Transition::Reset,
            WarmUpReason::HardReset | WarmUpReason::Merged => Transition::HardReset,
            WarmUpReason::Refreshed
            | WarmUpReason::Cancelled
            | WarmUpReason::WorkerLost
            | WarmUpReason::DaemonLost => Transition::WorkerLost,
        };
        if self.step(change, Activity::WarmingUp { reason }) {
            self.worker = None;
            self.summary_is_new = false;
            if reason == WarmUpReason::Refreshed {
                self.version = self.version.next();
            }
        }
    }

    fn end_job(&mut self, job: JobId, change: Transition) -> bool {
        self.running().is_some_and(|running| running.job == job) && self.step(change, Activity::Ready)
    }

    /// Goes where the state machine allows it; says whether it did.
    pub(super) fn step(&mut self, change: Transition, next: Activity) -> bool {
        let allowed = transition(self.state(), change).is_ok();
        if allowed {
            self.life = next;
            let running = self.running().map(|running| running.job);
            self.asks.retain(|pending| match pending.ask.raiser {
                Raiser::Job { job } => running == Some(job),
                Raiser::Command { .. } => true,
            });
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something_and_short() {
        assert_eq!(title("\n  let rate = 2\nrate"), Some("let rate = 2".to_owned()));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"é".repeat(60)), Some("é".repeat(60)));
        assert_eq!(title(&"é".repeat(61)), Some("é".repeat(60) + "…"));
    }
}
