//! `get_eval_timeline`: what ran when, and how it ended.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::timeline::{Ended, Timeline, TimelineJob, concerns, is_request};
use mainstay_model::{Action, Error, Event, Seq, SessionId, Source, Timestamp};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// How many jobs an answer has where the client does not say it.
const USUAL: u32 = 20;
/// The most jobs in one answer.
const MOST: u32 = 200;
/// How many events are read at once.
const PAGE: usize = 512;
/// How many events are read at most: code may print much.
const READ: usize = 20 * PAGE;

/// Asks which jobs ran, and when.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetEvalTimeline {
    session_id: Option<String>,
    /// Only what began after this cursor; without it, the newest.
    since: Option<u64>,
    /// How many, 20 by default.
    count: Option<Within<1, MOST>>,
}

/// What ran, oldest first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimelineAnswer {
    session_id: String,
    evals: Vec<EvalLine>,
    /// Where to go on from.
    cursor: u64,
    /// Whether there may be more after the cursor.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// One eval, or turn of an agent.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct EvalLine {
    seq: u64,
    at: Timestamp,
    /// None while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    ending: &'static str,
    /// What its grant did not allow, where it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// How the code begins; none where it was withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl Tool for GetEvalTimeline {
    const NAME: &'static str = "get_eval_timeline";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "What ran in a session: when, how long, how it ended, by whom.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    type Answer = TimelineAnswer;

    async fn carry_out(self, call: &Call) -> Result<TimelineAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Events).await?;
        let newest = call.client().status(session).await?.session.last_seq;
        let count = Within::given(self.count, "count", USUAL)? as usize;
        let read = match self.since {
            Some(since) => Read::after(call, session, newest.min(Seq(since)), newest, count).await?,
            None => Read::newest(call, session, newest, count).await?,
        };
        let timeline = Timeline::of(&read.events);
        let ran = timeline.ran();
        let ran = match self.since {
            Some(_) => &ran[..ran.len().min(count)],
            None => &ran[ran.len().saturating_sub(count)..],
        };
        let has_all = read.is_whole && timeline.ran().last() == ran.last();
        let cursor = if has_all { newest } else { ran.last().map_or(read.end, |ran| ran.requested) };
        Ok(TimelineAnswer {
            session_id: session.short(),
            evals: ran.iter().map(EvalLine::from).collect(),
            cursor: cursor.0,
            more: !has_all,
        })
    }
}

/// The events of a timeline, as far as they were read.
struct Read {
    events: Vec<Event>,
    /// The last one that was looked at.
    end: Seq,
    /// Whether nothing came after it.
    is_whole: bool,
}

impl Read {
    /// From a cursor on, until there is one job more than wanted.
    async fn after(
        call: &Call,
        session: SessionId,
        cursor: Seq,
        newest: Seq,
        count: usize,
    ) -> Result<Self, Error> {
        let (mut events, mut end) = (Vec::new(), cursor);
        // One that has begun is read to its end.
        while end < newest
            && begun(&events) <= count
            && (end.0 - cursor.0 < READ as u64 || events.last().is_some_and(is_request))
        {
            let page = call.client().events(session, end, PAGE).await?;
            let Some(last) = page.last() else { break };
            end = last.seq;
            events.extend(page.into_iter().filter(concerns));
        }
        Ok(Self { events, end, is_whole: end >= newest })
    }

    /// Back from the newest, until there are as many jobs as wanted.
    async fn newest(call: &Call, session: SessionId, newest: Seq, count: usize) -> Result<Self, Error> {
        let (mut events, mut from) = (Vec::new(), newest.0);
        while from > 0 && begun(&events) < count && newest.0 - from < READ as u64 {
            let after = from.saturating_sub(PAGE as u64);
            let page = call.client().events(session, Seq(after), PAGE).await?;
            events.splice(0..0, page.into_iter().filter(|event| event.seq.0 <= from && concerns(event)));
            from = after;
        }
        Ok(Self { events, end: newest, is_whole: true })
    }
}

/// How many jobs begin in these.
fn begun(events: &[Event]) -> usize {
    events.iter().filter(|event| is_request(event)).count()
}

impl From<&TimelineJob> for EvalLine {
    fn from(ran: &TimelineJob) -> Self {
        let by = match &ran.source {
            Source::Client { name, .. } => Some(name.clone()),
            Source::Worker | Source::System => None,
        };
        Self {
            seq: ran.requested.0,
            // Nobody needs less than seconds of a moment.
            at: Timestamp::from_second(ran.started.as_second()).unwrap_or(ran.started),
            ms: ran.ended.map(|Ended { milliseconds, .. }| milliseconds),
            ending: ran.ending(),
            denied: ran.denied.as_ref().filter(|_| ran.ended.is_some()).map(ToString::to_string),
            by,
            file: ran.file.clone(),
            line: ran.line.clone(),
        }
    }
}

impl Answer for TimelineAnswer {}

impl Display for TimelineAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for EvalLine { seq, at, ms, ending, denied, by, file, line } in &self.evals {
            write!(f, "{seq} {at} {ending}")?;
            if let Some(why) = denied {
                write!(f, " ({why})")?;
            }
            if let Some(ms) = ms {
                write!(f, " in {ms} ms")?;
            }
            if let Some(by) = by {
                write!(f, " by {by}")?;
            }
            for text in [file, line].into_iter().flatten() {
                write!(f, ": {text}")?;
            }
            writeln!(f)?;
        }
        let more = if self.more { ", more follow" } else { "" };
        write!(f, "[session {}, cursor {}{more}]", self.session_id, self.cursor)
    }
}
