//! `get_recent_events`: what happened in a session, each event one short line, from a cursor on.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error, Event, Seq, Source, Validity};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::needs::Works;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// How many events an answer has where the client does not say it.
const USUAL: u32 = 20;
/// The most events in one answer.
const MOST: u32 = 200;
/// How much of an event's text is shown, in bytes.
const TEXT_BYTES: usize = 240;

/// Asks for the newest events.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetRecentEvents {
    pub(super) session_id: Option<String>,
    /// Only those after this cursor; without it, the newest.
    pub(super) since: Option<u64>,
    /// How many, 20 by default.
    pub(super) count: Option<Within<1, MOST>>,
}

/// The events, from the oldest on.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventsAnswer {
    session_id: String,
    /// Where to go on from.
    cursor: u64,
    events: Vec<EventLine>,
    /// Whether there are more after the cursor.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// One event in one line.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventLine {
    seq: u64,
    kind: &'static str,
    /// Which client caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How far it still holds, where not surely.
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<&'static str>,
}

impl Tool for GetRecentEvents {
    const NAME: &'static str = "get_recent_events";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ListEvents>()];
    const SEED_NAME: Option<&'static str> = Some("get_recent_fsi_events");
    const DESCRIPTION: &'static str = "What happened in a session, also by others: events after a cursor.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    type Answer = EventsAnswer;

    async fn carry_out(self, call: &Call) -> Result<EventsAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Events).await?;
        let newest = call.client().status(session).await?.session.last_seq;
        let count = Within::given(self.count, "count", USUAL)? as usize;
        let after = match self.since {
            Some(since) => newest.min(Seq(since)),
            None => Seq(newest.0.saturating_sub(count as u64)),
        };
        let events = call.client().events(session, after, count).await?;
        let seqs: Vec<Seq> = events.iter().map(|event| event.seq).collect();
        let validities = call.client().validities(session, &seqs).await?;
        let cursor = events.last().map_or(after, |event| event.seq);
        Ok(EventsAnswer {
            session_id: session.short(),
            cursor: cursor.0,
            events: events.into_iter().zip(validities).map(EventLine::new).collect(),
            more: cursor < newest,
        })
    }
}

impl EventLine {
    fn new((event, validity): (Event, Option<Validity>)) -> Self {
        let text = beginning(&event.body.describe().text(), TEXT_BYTES);
        let by = match event.metadata.source {
            Source::Client { name, .. } => Some(name),
            Source::Worker | Source::System => None,
        };
        Self {
            seq: event.seq.0,
            kind: event.body.kind(),
            by,
            text: (!text.is_empty()).then_some(text),
            validity: validity.filter(|validity| !validity.is_valid()).map(Validity::name),
        }
    }
}

impl Answer for EventsAnswer {}

impl Display for EventsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for EventLine { seq, kind, by, text, validity } in &self.events {
            write!(f, "{seq} {kind}")?;
            if let Some(validity) = validity {
                write!(f, " ({validity})")?;
            }
            if let Some(by) = by {
                write!(f, " by {by}")?;
            }
            match text {
                Some(text) => writeln!(f, ": {text}")?,
                None => writeln!(f)?,
            }
        }
        let more = if self.more { ", more follow" } else { "" };
        write!(f, "[session {}, cursor {}{more}]", self.session_id, self.cursor)
    }
}
