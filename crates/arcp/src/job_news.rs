//! What an event of the log says of a job, whatever the dialect. Pure and without state: one event at a time.

use mainstay_model::agent::Note;
use mainstay_model::event::CancelEnding;
use mainstay_model::grant::{Amounts, Grants, LeaseChange};
use mainstay_model::message::{PartRole, TokenUsage};
use mainstay_model::tool_call::Progress;
use mainstay_model::{
    Ask, AskEnding, AskId, Channel, CommandId, Display, Error, EvalEnd, EvalResult, Event, EventBody,
    Failure, JobPart, LeaseId, OutputStream, Principal, Source, WorkEnding,
};
use serde_json::Value;

/// A thing that happened to a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobNews<'a> {
    /// The job waits for its turn in its session.
    Waits,
    /// The job began to run.
    Began,
    /// Its code printed text.
    Printed { stream: OutputStream, text: &'a str },
    /// Its code showed something.
    Displayed(&'a Display),
    /// Its code says how much is done, which is also shown.
    Progressed { progress: Progress, display: &'a Display },
    /// What it prints further is left out.
    OutputCut,
    /// An agent thought this.
    Thought(&'a str),
    /// An agent said this.
    Said(&'a str),
    /// An agent called a tool.
    ToolCalled { call: &'a str, tool: &'a str, arguments: Value },
    /// A tool answered an agent.
    ToolAnswered { call: &'a str, text: &'a str, is_error: bool },
    /// A model was used.
    Used { usage: TokenUsage, model: Option<&'a str> },
    /// Something else happened to an agent.
    Noted(&'a Note),
    /// The job asks whoever is attached.
    Asked(&'a Ask),
    /// Somebody answered an ask of the job, and so many more must answer the same.
    Voted { ask: AskId, missing: u32, by: Option<Answerer<'a>> },
    /// An ask of the job ended. Where somebody answered: who, and by which way.
    AskEnded { ask: AskId, ending: &'a AskEnding, by: Option<Answerer<'a>> },
    /// What it may do for a time changed.
    LeaseChanged { lease: LeaseId, change: &'a LeaseChange },
    /// It gave a task to another agent, which this job carries out.
    Delegated { child: &'a CommandId, agent: &'a str, grants: Option<&'a Grants> },
    /// A task that it gave has ended, and left this of what went with it.
    TaskEnded { unspent: &'a Amounts },
    /// One session of ARCP handed it over to another.
    HandedOver { from: &'a str, to: &'a str },
    /// Someone asked for it to stop.
    Cancelling,
    /// The job came to its end.
    Ended(JobEnd<'a>),
}

/// Who answered, and by which way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answerer<'a> {
    pub(crate) principal: Principal,
    /// The way that the client named, else the client's name.
    pub(crate) way: &'a str,
}

impl Answerer<'_> {
    /// Who answered, for those of a principal: of itself it is told by which way, and of others who it was, too.
    pub(crate) fn told_to(&self, principal: &Principal) -> String {
        let Self { principal: answered, way } = self;
        if answered == principal { (*way).to_owned() } else { format!("{answered} ({way})") }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobEnd<'a> {
    /// Its code ran to its end.
    Evaluated(&'a EvalResult),
    /// Its code did not run to its end.
    Failed { failure: &'a Failure, result: &'a EvalResult },
    /// An agent, or a build, did what was asked.
    Done(&'a Value),
    /// An agent, or a build, failed.
    NotDone(&'a str),
    /// It was told to stop.
    Cancelled(CancelEnding),
    /// It was told to stop within so many milliseconds, did not, and its worker was killed.
    Overdue(u64),
    /// It took longer than it may, so many milliseconds.
    TimedOut(u64),
    /// Its grant does not allow what it did, or has ended.
    Denied(&'a Error),
    /// Its worker, or the machine, was lost.
    Interrupted,
    /// It never began; none of a reason where it had nothing to do.
    Left(Option<&'a Error>),
}

/// The tokens that a model was used for, by what they were. The kinds are those of draft-arcp-01, 17.3.1.
pub(crate) fn tokens_of(usage: &TokenUsage) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0)
}

/// What an event says of the job that its command asked for, in order.
pub(crate) fn news_of(event: &Event) -> Vec<JobNews<'_>> {
    match &event.body {
        EventBody::CommandQueued(_) => vec![JobNews::Waits],
        EventBody::CommandDequeued { error, .. } => vec![JobNews::Ended(JobEnd::Left(error.as_ref()))],
        EventBody::JobRequested { .. } => vec![JobNews::Began],
        EventBody::JobEnded { grace_ms: Some(grace_ms), .. }
        | EventBody::EvalCancelled { grace_ms: Some(grace_ms), .. } => {
            vec![JobNews::Ended(JobEnd::Overdue(*grace_ms))]
        }
        EventBody::JobEnded { ending, .. } => vec![JobNews::Ended(work_end(ending))],
        EventBody::EvalTimedOut { limit_ms, .. } => vec![JobNews::Ended(JobEnd::TimedOut(*limit_ms))],
        EventBody::JobDenied { error, .. } => vec![JobNews::Ended(JobEnd::Denied(error))],
        EventBody::JobDelegated { child, agent, grants, .. } => {
            vec![JobNews::Delegated { child, agent, grants: grants.as_deref() }]
        }
        EventBody::DelegationEnded { unspent, .. } => vec![JobNews::TaskEnded { unspent }],
        EventBody::JobHandedOver { from, to, .. } => vec![JobNews::HandedOver { from, to }],
        EventBody::LeaseChanged { lease, change, .. } => {
            vec![JobNews::LeaseChanged { lease: *lease, change }]
        }
        EventBody::MessageAdded(message) => {
            let model = message.metadata.get("model").and_then(Value::as_str);
            let used = message.usage.map(|usage| JobNews::Used { usage, model });
            message.parts.iter().filter_map(part_news).chain(used).collect()
        }
        EventBody::AgentNoted(note) => vec![JobNews::Noted(note)],
        EventBody::AskRaised(ask) => vec![JobNews::Asked(ask)],
        EventBody::AskVoted { ask, missing, channel, .. } => {
            vec![JobNews::Voted { ask: *ask, missing: *missing, by: answerer(event, channel.as_ref()) }]
        }
        EventBody::AskEnded { ask, ending, channel } => {
            vec![JobNews::AskEnded { ask: *ask, ending, by: answerer(event, channel.as_ref()) }]
        }
        body => body.job_part().and_then(|(_, part)| eval_news(part)).into_iter().collect(),
    }
}

/// Who answered; none where nobody did.
fn answerer<'a>(event: &'a Event, channel: Option<&'a Channel>) -> Option<Answerer<'a>> {
    match &event.metadata.source {
        Source::Client { principal, name } => {
            let way = channel.map_or(name.as_str(), Channel::as_str);
            Some(Answerer { principal: principal.clone(), way })
        }
        Source::Worker | Source::System => None,
    }
}

fn eval_news(part: JobPart<'_>) -> Option<JobNews<'_>> {
    Some(match part {
        JobPart::Requested { .. } => JobNews::Began,
        JobPart::Printed { stream, text } => JobNews::Printed { stream, text },
        JobPart::Displayed(display) => match Progress::of(&display.data) {
            Some(progress) => JobNews::Progressed { progress, display },
            None => JobNews::Displayed(display),
        },
        JobPart::Cleared => return None,
        JobPart::OutputCut => JobNews::OutputCut,
        JobPart::CancelRequested => JobNews::Cancelling,
        // Are read of their events.
        JobPart::TimedOut | JobPart::Denied(_) => return None,
        JobPart::Ended(end) => JobNews::Ended(match end {
            EvalEnd::Completed { result } => JobEnd::Evaluated(result),
            EvalEnd::Failed { failure, result } => JobEnd::Failed { failure, result },
            EvalEnd::Cancelled(ending) => JobEnd::Cancelled(ending),
            EvalEnd::Interrupted => JobEnd::Interrupted,
        }),
    })
}

fn work_end(ending: &WorkEnding) -> JobEnd<'_> {
    match ending {
        WorkEnding::Done { value, .. } => JobEnd::Done(value),
        WorkEnding::Failed { message, .. } => JobEnd::NotDone(message),
        WorkEnding::Cancelled { by } => JobEnd::Cancelled(*by),
        WorkEnding::Interrupted => JobEnd::Interrupted,
    }
}

fn part_news(part: &mainstay_model::message::Part) -> Option<JobNews<'_>> {
    match part.role {
        PartRole::Assistant => Some(JobNews::Said(&part.text)),
        PartRole::Thinking => Some(JobNews::Thought(&part.text)),
        PartRole::ToolCall => {
            let arguments = serde_json::from_str(&part.text).unwrap_or(Value::Null);
            let tool = part.metadata.get(mainstay_model::message::TOOL).and_then(Value::as_str);
            Some(JobNews::ToolCalled { call: part.call_id()?, tool: tool.unwrap_or("tool"), arguments })
        }
        PartRole::ToolResult => {
            let is_error = part.metadata.get(mainstay_model::message::IS_ERROR) == Some(&Value::Bool(true));
            Some(JobNews::ToolAnswered { call: part.call_id()?, text: &part.text, is_error })
        }
        // What it was asked is its input.
        PartRole::System | PartRole::User => None,
    }
}
