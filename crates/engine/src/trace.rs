//! Traces: what becomes of a command, as spans, from its arrival to the commit of its outcome.
//!
//! A span goes along with what it is about, since tasks and threads pass that on: in the request to the session's task, beside the accepted
//! command, in the commit and in the append. Nothing is kept of a command that nobody traces. No span has code, text or names of principals.

use std::collections::HashMap;
use std::fmt::Display;

use mainstay_log::NewEvent;
use mainstay_log::trace::{TARGET, ended};
use mainstay_model::decide::Answer;
use mainstay_model::{
    Action, CommandId, Error, JobEnd, JobId, Metadata, Outcome, Session, SessionId, SessionKind,
};
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::claims::CommandKey;

/// A command on its way, and the step that it is at.
#[derive(Debug)]
pub(crate) struct CommandTrace {
    span: Span,
    step: Span,
}

impl CommandTrace {
    /// A command that has come in, and is being admitted.
    pub(crate) fn arrived(parent: &Span, session: SessionId, command: &CommandId, action: Action) -> Self {
        Self::begun(parent, session, command, action)
    }

    /// A command that is to create a session.
    pub(crate) fn creates(parent: &Span, session: SessionId, command: &CommandId) -> Self {
        Self::begun(parent, session, command, "create")
    }

    fn begun(parent: &Span, session: SessionId, command: &CommandId, action: impl Display) -> Self {
        let span = info_span!(
            target: TARGET,
            parent: parent,
            "command",
            mainstay.session = %session,
            mainstay.command = %command,
            mainstay.action = %action,
            mainstay.replayed = Empty,
            "error.type" = Empty,
            otel.status_code = Empty,
        );
        let step = match span.is_disabled() {
            true => Span::none(),
            false => info_span!(target: TARGET, parent: &span, "admission"),
        };
        Self { span, step }
    }

    /// What is done for it is part of this.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Records that the command was accepted.
    pub(crate) fn accepted(&mut self) {
        self.step = Span::none();
    }

    /// It is not carried out.
    pub(crate) fn refused(self, error: &Error) {
        failed(&self.span, error);
        self.end();
    }

    /// It was there before: whoever sent it has, or will have, the first one's outcome.
    pub(crate) fn replayed(self) {
        self.span.record("mainstay.replayed", true);
        self.end();
    }

    /// It has its outcome.
    pub(crate) fn end(self) {
        drop(self.step);
        ended(&self.span);
    }

    /// The span of an append that is made for it.
    pub(crate) fn commit(&self, events: usize, outcomes: usize) -> Span {
        commit(&self.span, events, outcomes)
    }
}

/// The accepted commands of one session that are traced, and its job.
#[derive(Default)]
pub(crate) struct Traces {
    commands: HashMap<CommandKey, CommandTrace>,
    job: Option<JobTrace>,
}

struct JobTrace {
    job: JobId,
    command: CommandKey,
    span: Span,
    /// The worker has it.
    worker: Span,
}

/// What is traced of one commit: ended, in this order, once all of it is durable.
#[derive(Default)]
pub(crate) struct CommitTrace {
    spans: Vec<Span>,
}

impl Traces {
    /// A command is accepted.
    pub(crate) fn accepted(&mut self, key: CommandKey, mut trace: CommandTrace) {
        trace.accepted();
        if !trace.span.is_disabled() {
            self.commands.insert(key, trace);
        }
    }

    /// A command waits for its turn.
    pub(crate) fn waits(&mut self, key: &CommandKey) {
        if let Some(trace) = self.commands.get_mut(key) {
            trace.step = info_span!(target: TARGET, parent: &trace.span, "lane");
        }
    }

    /// Its turn has come.
    pub(crate) fn has_turn(&mut self, key: &CommandKey) {
        if let Some(trace) = self.commands.get_mut(key) {
            trace.step = Span::none();
        }
    }

    /// An accepted command is refused after all.
    pub(crate) fn refused(&mut self, key: &CommandKey, error: &Error) {
        if let Some(trace) = self.commands.remove(key) {
            trace.refused(error);
        }
    }

    /// The worker is given a job of the session.
    pub(crate) fn job_begins(&mut self, session: &Session, job: JobId) {
        let Some(running) = session.running().filter(|_| !self.commands.is_empty()) else { return };
        let command = (running.source.principal(), running.command.clone());
        let Some(trace) = self.commands.get(&command) else { return };
        let span = info_span!(
            target: TARGET,
            parent: &trace.span,
            "job",
            mainstay.session = %session.id,
            mainstay.job = %job,
            mainstay.kind = %session.kind,
            mainstay.ending = Empty,
            otel.status_code = Empty,
        );
        let worker = worker(&span, job, &session.kind);
        self.job = Some(JobTrace { job, command, span, worker });
    }

    /// The worker has said that it is done.
    pub(crate) fn worker_is_done(&mut self) {
        if let Some(job) = &mut self.job {
            job.worker = Span::none();
        }
    }

    /// What an append is made for: the span it goes under, and those that end with it.
    pub(crate) fn commit(&mut self, events: &[NewEvent], outcomes: &[Answer]) -> (Span, CommitTrace) {
        if self.commands.is_empty() && self.job.is_none() {
            return (Span::none(), CommitTrace::default());
        }
        let commit = match self.cause(events, outcomes) {
            Some(cause) => commit(cause, events.len(), outcomes.len()),
            None => Span::none(),
        };
        let mut spans = vec![commit.clone()];
        spans.extend(self.ended_job(events));
        spans.extend(outcomes.iter().filter_map(|answer| self.ended_command(answer)));
        (commit, CommitTrace { spans })
    }

    /// The job or the command that these are of.
    fn cause(&self, events: &[NewEvent], outcomes: &[Answer]) -> Option<&Span> {
        let answered = outcomes.first().map(|answer| (answer.principal.clone(), answer.command.clone()));
        // What a worker says is the daemon's doing, and yet of its job's command.
        let of_job = |id: &CommandId| self.job.as_ref().filter(|job| job.command.1 == *id);
        let of_event = |event: &NewEvent| {
            let Metadata { source, correlation, .. } = &event.metadata;
            let command = correlation.clone()?;
            let principal = of_job(&command).map(|job| job.command.0.clone());
            Some((principal.unwrap_or_else(|| source.principal()), command))
        };
        let key = answered.or_else(|| events.iter().find_map(of_event))?;
        match self.job.as_ref().filter(|job| job.command == key) {
            Some(job) => Some(&job.span),
            None => self.commands.get(&key).map(|trace| &trace.span),
        }
    }

    fn ended_job(&mut self, events: &[NewEvent]) -> Option<Span> {
        let (job, end) = events.iter().find_map(|event| event.body.job_end())?;
        let JobTrace { span, worker, .. } = self.job.take_if(|traced| traced.job == job)?;
        drop(worker);
        let (ending, is_error) = match end {
            JobEnd::Completed => ("completed", false),
            JobEnd::Failed => ("failed", true),
            JobEnd::Cancelled(_) => ("cancelled", false),
            JobEnd::Interrupted => ("interrupted", true),
        };
        span.record("mainstay.ending", ending);
        if is_error {
            span.record("otel.status_code", "ERROR");
        }
        Some(span)
    }

    fn ended_command(&mut self, answer: &Answer) -> Option<Span> {
        let key = (answer.principal.clone(), answer.command.clone());
        let CommandTrace { span, step } = self.commands.remove(&key)?;
        drop(step);
        match &answer.outcome {
            Outcome::Done { .. } => {}
            Outcome::Failed { error } => failed(&span, error),
        }
        Some(span)
    }
}

impl CommitTrace {
    /// All of it is durable.
    pub(crate) fn ended(self) {
        self.spans.iter().for_each(ended);
    }

    /// None of it is there.
    pub(crate) fn failed(self, error: &Error) {
        self.spans.iter().for_each(|span| failed(span, error));
        self.ended();
    }
}

fn commit(parent: &Span, events: usize, outcomes: usize) -> Span {
    info_span!(
        target: TARGET,
        parent: parent,
        "commit",
        mainstay.events = events,
        mainstay.outcomes = outcomes,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

fn worker(job: &Span, id: JobId, kind: &SessionKind) -> Span {
    info_span!(target: TARGET, parent: job, "worker", mainstay.job = %id, mainstay.kind = %kind)
}

fn failed(span: &Span, error: &Error) {
    span.record("error.type", error.code().0);
    span.record("otel.status_code", "ERROR");
}
