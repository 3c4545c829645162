//! What follows from what an agent says, and how jobs end that are no evals.

use super::{Draft, Effect, Identity, of, of_job};
use crate::agent::{AgentNotice, Delivery, JobSpec, Prompt, QueuedPrompt, WorkEnding, WorkOutcome};
use crate::command::Accepted;
use crate::error::Error;
use crate::event::{EventBody, Metadata, Source};
use crate::id::JobId;
use crate::message::Compaction;
use crate::outcome::{Outcome, Response};
use crate::session::RunningJob;
use crate::supervision::elapsed_ms;
use crate::transcript::Segment;

impl Draft<'_> {
    /// A runner is given something to do that is no code.
    pub(crate) fn request(&mut self, accepted: Accepted, work: JobSpec) -> Result<(), Error> {
        let Accepted { metadata, identity, deadline, grants, fresh } = accepted;
        let (Identity { command, key, fingerprint, principal: _ }, job) = (identity, JobId::from_uuid(fresh));
        self.check_work(grants.as_deref(), &work)?;
        self.effect(Effect::Work { job, work: work.clone(), is_bounded: grants.is_some() });
        let requested = EventBody::JobRequested { job, command, fingerprint, key, deadline, grants, work };
        self.record(metadata, requested);
        Ok(())
    }

    pub(super) fn agent_notice(&mut self, notice: AgentNotice) {
        let body = match notice {
            AgentNotice::Ended { job, ending } => {
                if let Some(running) = self.running(job) {
                    self.work_ended(&running, Source::Worker, ending);
                }
                return;
            }
            AgentNotice::Said(delta) => match self.running(delta.job) {
                Some(_) => EventBody::MessageStreamed(delta),
                None => return,
            },
            AgentNotice::Message(message) if message.parts.is_empty() => return,
            AgentNotice::Message(message) => EventBody::MessageAdded(Box::new(message)),
            AgentNotice::Queue(waiting) => match self.still_waiting(waiting) {
                queue if queue == self.session.queue => return,
                queue => EventBody::QueueChanged { queue },
            },
            AgentNotice::State(state) if self.session.agent.as_ref() == Some(&state) => return,
            AgentNotice::State(state) => EventBody::AgentChanged(Box::new(state)),
            AgentNotice::Noted(note) => EventBody::AgentNoted(note),
            // Which entries these are has to be looked up first; what a tool gives is in its result.
            AgentNotice::Compacted { .. } | AgentNotice::ToolOutput { .. } => return,
        };
        let metadata = self.of_agent();
        let denied = self.not_granted(&body);
        self.record(metadata, body);
        if let Some((running, error)) = denied {
            self.deny(&running, error);
        }
    }

    /// The agent shortened what it is shown.
    pub(super) fn agent_compacted(&mut self, compaction: Compaction) {
        if compaction.covers.iter().all(Segment::is_empty) {
            return;
        }
        let metadata = self.of_agent();
        self.record(metadata, EventBody::TranscriptCompacted(Box::new(compaction)));
    }

    /// What an agent says while it works is of its job.
    fn of_agent(&self) -> Metadata {
        match self.session.running() {
            Some(running) => of_job(Source::Worker, running),
            None => of(Source::Worker),
        }
    }

    /// What the agent says it has still to hear, as it was said to it. What it has of its own accord has no pictures.
    fn still_waiting(&self, waiting: Vec<(Delivery, String)>) -> Vec<QueuedPrompt> {
        let mut known = self.session.queue.clone();
        let mut as_said = |(hears, text): (Delivery, String)| {
            let is_it = |queued: &QueuedPrompt| queued.hears == hears && queued.prompt.text == text;
            match known.iter().position(is_it) {
                Some(index) => known.remove(index),
                None => QueuedPrompt { prompt: Prompt::text(text), hears },
            }
        };
        waiting.into_iter().map(&mut as_said).collect()
    }

    /// The source brought the end about.
    pub(super) fn work_ended(&mut self, running: &RunningJob, source: Source, ending: WorkEnding) {
        self.work_ended_within(running, source, ending, None);
    }

    /// The same, where a cancel gave the job so many milliseconds to stop in vain.
    pub(super) fn work_ended_within(
        &mut self,
        running: &RunningJob,
        source: Source,
        ending: WorkEnding,
        grace_ms: Option<u64>,
    ) {
        let job = running.job;
        self.drop_asks(job);
        let duration_ms = elapsed_ms(running.requested_at, self.now);
        let body = EventBody::JobEnded { job, ending: ending.clone(), duration_ms, grace_ms };
        let is_alive = source == Source::Worker;
        let completed = self.record(of_job(source, running), body);
        if !running.is_answered {
            let requested = running.requested;
            let outcome = WorkOutcome { job, requested, completed, ending, duration_ms };
            let response = Response::Worked(outcome);
            self.answer(Identity::of_running(running), Outcome::Done { response });
        }
        if self.session.summary_is_new && is_alive {
            self.begin_with_transcript(of(Source::System));
        }
    }
}
