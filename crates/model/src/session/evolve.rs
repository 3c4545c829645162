//! Applying events to a session. Every event is accepted: one that does not fit the state leaves it as it is.

use super::jobs::prompt_of;
use super::surroundings::Surroundings;
use super::{Activity, Parent, Session, Waiting, WorkerInfo};
use crate::Timestamp;
use crate::agent::QueuedPrompt;
use crate::ask::Raiser;
use crate::entry::Origin;
use crate::event::{Event, EventBody, ForkPoint, MergePoint, Metadata, Source};
use crate::id::{CommandId, Seq};
use crate::message::Message;
use crate::state::{Transition, transition};
use crate::transcript::Transcript;
use crate::vote::Vote;

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
        let ran = self.running().map(|running| running.job);
        if let Some(running) = self.running_job_mut() {
            running.account(&event.body);
        }
        self.apply(event);
        self.note_for_application(event);
        self.note_for_tasks(ran, &event.body);
    }

    /// Takes in what an event says for itself.
    fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::SessionCreated { .. }
            | EventBody::SessionImported { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputDisplayed { .. }
            | EventBody::OutputCleared { .. }
            | EventBody::CommPublished { .. }
            | EventBody::OutputCut { .. }
            | EventBody::CommandDequeued { .. }
            | EventBody::MessageStreamed(_)
            | EventBody::AgentNoted(_)
            | EventBody::ApplicationStarted(_)
            | EventBody::ApplicationEnded(_)
            | EventBody::JobHandedOver { .. } => {}
            EventBody::SessionForked(point) => self.begin_as_fork(point),
            EventBody::EntriesMerged(point) => self.merge(point, event.seq),
            EventBody::CommandQueued(queued) => self.enter_lane(queued.command.clone(), event),
            EventBody::AskRaised(ask) => self.ask_raised(ask, event),
            EventBody::AskVoted { ask, value, channel, lease, .. } => {
                let (value, channel, lease) = (value.clone(), channel.clone(), lease.clone());
                self.ask_voted(*ask, Vote { source: event.metadata.source.clone(), value, channel, lease });
            }
            EventBody::AskEnded { ask, ending, .. } => self.ask_ended(*ask, ending),
            EventBody::SessionRenamed { name } => {
                self.name.clone_from(name);
                self.version = self.version.next();
            }
            EventBody::WarmUpStarted { reason } => self.start_warm_up(*reason),
            EventBody::WarmUpCompleted { .. } => self.warmed_up(event),
            EventBody::SessionFaulted { message } => self.record_fault(message),
            EventBody::SessionReset | EventBody::SessionHardReset => self.drop_definitions(event.seq),
            EventBody::SessionStopped => self.stop(),
            EventBody::SessionDeleted => (self.deleted_at, self.title) = (Some(event.at), None),
            EventBody::SessionUnloaded { .. } => (self.alias, self.unloaded_at) = (None, Some(event.at)),
            EventBody::SessionLoaded { alias } => (self.alias, self.unloaded_at) = (alias.clone(), None),
            EventBody::WorkerExited { attempt, .. } => self.lose_worker(*attempt, event.at),
            EventBody::EvalRequested { code, .. } => self.start_job(event, Some(code)),
            EventBody::JobRequested { work, .. } => self.start_job(event, prompt_of(work)),
            EventBody::JobEnded { job, ending, .. } => self.work_ended(*job, ending),
            EventBody::PromptQueued(queued) => self.queue_prompt(queued),
            EventBody::QueueChanged { queue } => self.queue.clone_from(queue),
            EventBody::AgentChanged(state) => self.agent = Some((**state).clone()),
            EventBody::CancelRequested { job, grace_ms } => self.request_cancel(*job, *grace_ms),
            EventBody::EvalTimedOut { job, .. } | EventBody::JobDenied { job, .. } => self.time_out(*job),
            EventBody::LeaseChanged { job, lease, change } => {
                self.change_lease(*job, *lease, change, event.at)
            }
            EventBody::JobDelegated { job, child, grants, .. } => {
                self.delegate(event.seq, *job, child, grants.as_deref())
            }
            EventBody::DelegationEnded { job, child, .. } => self.end_delegation(*job, child),
            EventBody::EvalCompleted { job, .. } => self.complete_eval(*job),
            EventBody::EvalFailed { job, changes_state, .. } => {
                self.end_in_vain(*job, Transition::EvalFailed, *changes_state);
            }
            EventBody::EvalCancelled { job, kept, .. } => {
                self.end_in_vain(*job, Transition::EvalCancelled, kept.is_some());
            }
            EventBody::EvalInterrupted { job } => self.end_in_vain(*job, Transition::EvalCancelled, false),
            EventBody::EnvironmentChanged { references } => self.change_environment(references),
            EventBody::AssembliesChanged { new, changed, .. } => self.change_assemblies(new, changed),
            EventBody::SourcesChanged { changed, in_build } => {
                self.change_sources(changed, *in_build, event.seq);
            }
            EventBody::SourcesSwapped(swap) => self.swap_sources(swap, event.seq),
            EventBody::MessageAdded(message) => self.add_message(message),
            EventBody::TranscriptCompacted(_) => self.compact(&event.metadata.source),
            EventBody::EntryLabeled { entry, label } => self.label(*entry, event.at, label.as_deref()),
        }
    }

    fn warmed_up(&mut self, event: &Event) {
        let EventBody::WarmUpCompleted { kernel, runtime, language, pid, diverged, startup, .. } =
            &event.body
        else {
            return;
        };
        self.language.clone_from(language);
        self.take_startup(startup.as_deref(), event.seq);
        self.surroundings = event.metadata.environment.as_ref().map(|_| Surroundings {
            runtime: runtime.clone(),
            ..self.surroundings.take().unwrap_or_default()
        });
        let (kernel, runtime) = (kernel.clone(), runtime.clone());
        let worker = WorkerInfo { kernel, runtime, pid: *pid, ready_at: event.at };
        self.complete_warm_up(worker, diverged);
    }

    fn begin_as_fork(&mut self, point: &ForkPoint) {
        self.transcript = Transcript::beginning_with(point.segments.clone());
        self.begins_with.clone_from(&point.replay);
        self.forked_from = Some(Parent { session: point.from, entries: point.entries });
        self.labels.clone_from(&point.labels);
    }

    fn merge(&mut self, point: &MergePoint, at: Seq) {
        self.transcript.clone_from(&point.transcript);
        self.begins_with.clone_from(&point.replay);
        (self.definitions_since, self.merged_at) = (at, Some(at));
        self.version = self.version.next();
    }

    fn drop_definitions(&mut self, at: Seq) {
        self.definitions_since = at;
        self.losses.clear();
        self.version = self.version.next();
    }

    /// Takes in a compaction. One that its agent makes in a job is part of the job, and changes nothing by itself.
    fn compact(&mut self, source: &Source) {
        if *source != Source::Worker {
            self.version = self.version.next();
            self.summary_is_new = self.is_agent() && self.running().is_some();
        }
    }

    fn label(&mut self, entry: Origin, at: Timestamp, label: Option<&str>) {
        self.labels.set(entry, at, label.map(str::to_owned));
        self.version = self.version.next();
    }

    fn add_message(&mut self, message: &Message) {
        self.usage = self.usage.plus(message.usage.unwrap_or_default());
        self.messages += 1;
    }

    fn queue_prompt(&mut self, queued: &QueuedPrompt) {
        self.queue.push(queued.clone());
        self.version = self.version.next();
    }

    fn enter_lane(&mut self, command: CommandId, event: &Event) {
        let principal = event.metadata.source.principal();
        self.lane.push(Waiting { principal, command, queued: event.seq });
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
