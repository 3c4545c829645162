//! Between the model and the columns. Where a value is JSON, it is as the model writes it.

use mainstay_model::{
    CommandFingerprint, CommandId, Error, Event, EventBody, Metadata, NoticeNumber, Outcome, Position,
    RunnerId, Seq, Session, SessionId, TakenNotices, Timestamp, Version,
};
use rusqlite::Row;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::failure::{failed, reason_of};
use crate::{NewEvent, StoredOutcome};

/// In place of a session's number, where the key of a command counts that creates one: no session has this number.
pub(super) const CREATIONS: i64 = 0;

/// An event's own columns; its session and place come beside them.
pub(super) struct EventRow {
    pub(super) at: i64,
    pub(super) kind: &'static str,
    pub(super) body: Option<String>,
    pub(super) source: String,
    pub(super) correlation: Option<String>,
    pub(super) causation: Option<i64>,
    pub(super) environment: Option<String>,
}

impl EventRow {
    /// An event as columns.
    pub(super) fn encode(event: &NewEvent) -> Result<Self, Error> {
        let Metadata { source, correlation, causation, environment } = &event.metadata;
        Ok(Self {
            at: event.at.as_microsecond(),
            kind: event.body.kind(),
            body: encode_body(&event.body)?,
            source: to_json(source)?,
            correlation: correlation.as_ref().map(|command| command.as_str().to_owned()),
            causation: causation.map(|seq| integer(seq.0)),
            environment: environment.as_ref().map(to_json).transpose()?,
        })
    }

    /// Whether the columns `position, seq, at, kind, body, source, correlation, causation, environment` are those of this event.
    pub(super) fn is_in(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let Self { at, kind, body, source, correlation, causation, environment } = self;
        let is_text = |column, text: Option<&String>| {
            Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()? == text.map(String::as_str))
        };
        Ok(row.get::<_, i64>(2)? == *at
            && row.get_ref(3)?.as_str()? == *kind
            && is_text(4, body.as_ref())?
            && is_text(5, Some(source))?
            && is_text(6, correlation.as_ref())?
            && row.get::<_, Option<i64>>(7)? == *causation
            && is_text(8, environment.as_ref())?)
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        const FIXED: usize = 64;
        let texts = [&self.body, &self.correlation, &self.environment];
        FIXED + self.source.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}

/// Reads the columns `position, seq, at, kind, body, source, correlation, causation, environment`. An event that cannot be
/// read is named.
pub(super) fn decode_event(session: SessionId, row: &Row<'_>) -> Result<Event, Error> {
    let seq = Seq(counter(row, 1)?);
    decode_event_at(session, seq, row).map_err(|error| {
        let kind = text(row, 3).unwrap_or("?");
        let reason = reason_of(error);
        let reason = format!("event {seq} of session {session}, of kind `{kind}`, cannot be read: {reason}");
        Error::StoreFailed { reason }
    })
}

/// The same, where whoever asks knows which event it is.
pub(super) fn decode_event_at(session: SessionId, seq: Seq, row: &Row<'_>) -> Result<Event, Error> {
    let metadata = Metadata {
        source: from_json(text(row, 5)?)?,
        correlation: optional_text(row, 6)?.map(CommandId::new).transpose()?,
        causation: row.get::<_, Option<i64>>(7).map_err(failed)?.map(|seq| Seq(seq.unsigned_abs())),
        environment: optional_text(row, 8)?.map(from_json).transpose()?,
    };
    let body = decode_body(text(row, 3)?, optional_text(row, 4)?)?;
    Ok(Event { session, seq, position: Position(counter(row, 0)?), at: moment(row, 2)?, metadata, body })
}

/// Reads the columns `fingerprint, response, version, session`.
pub(super) fn decode_outcome(row: &Row<'_>) -> Result<StoredOutcome, Error> {
    let fingerprint = CommandFingerprint::from_stored(text(row, 0)?.to_owned());
    let version = Version(counter(row, 2)?);
    let session = row.get_ref(3).map_err(failed)?.as_blob_or_null().map_err(failed)?;
    let session = session.map(Uuid::from_slice).transpose().map_err(failed)?.map(SessionId::from_uuid);
    Ok(StoredOutcome { fingerprint, outcome: from_json::<Outcome>(text(row, 1)?)?, version, session })
}

/// A projection as it is stored: what changes with every event has columns of its own, so that the rest need not be
/// written with it.
pub(super) fn encode_projection(session: &Session) -> Result<String, Error> {
    to_json(&Session { last_seq: Seq::ZERO, last_activity: session.created_at, ..session.clone() })
}

/// Reads the columns `projection, last_seq, last_activity`, from the first of them on.
pub(super) fn decode_session(row: &Row<'_>, first: usize) -> Result<Session, Error> {
    let stored: Session = from_json(text(row, first)?)?;
    let (last_seq, last_activity) = (Seq(counter(row, first + 1)?), moment(row, first + 2)?);
    Ok(Session { last_seq, last_activity, ..stored })
}

/// Reads the columns `number, last_seq`.
pub(super) fn decode_head(row: &Row<'_>) -> Result<(i64, Seq), Error> {
    Ok((row.get(0).map_err(failed)?, Seq(counter(row, 1)?)))
}

/// Reads the column `position`.
pub(super) fn decode_position(row: &Row<'_>) -> Result<Position, Error> {
    counter(row, 0).map(Position)
}

/// Reads the column of a count.
pub(super) fn decode_count(row: &Row<'_>) -> Result<usize, Error> {
    counter(row, 0).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Reads a count from this column.
pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

/// Reads a session's id from this column.
pub(super) fn decode_session_id(row: &Row<'_>, column: usize) -> Result<SessionId, Error> {
    let bytes = row.get_ref(column).map_err(failed)?.as_blob().map_err(failed)?;
    Uuid::from_slice(bytes).map(SessionId::from_uuid).map_err(failed)
}

/// Reads the columns `runner, notice`.
pub(super) fn decode_taken(row: &Row<'_>) -> Result<TakenNotices, Error> {
    let runner = row.get_ref(0).and_then(|value| Ok(value.as_blob()?)).map_err(failed)?;
    let runner = Uuid::from_slice(runner).map(RunnerId::from_uuid).map_err(failed)?;
    Ok(TakenNotices { runner, up_to: NoticeNumber(counter(row, 1)?) })
}

/// A count as SQLite keeps integers. No log gets near to where this cuts.
pub(super) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A value as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(failed)
}

fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(failed)
}

/// How the model writes an event's body.
#[derive(Deserialize)]
struct Tagged<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

fn encode_body(body: &EventBody) -> Result<Option<String>, Error> {
    let json = to_json(body)?;
    let tagged: Tagged<'_> = serde_json::from_str(&json).map_err(failed)?;
    Ok(tagged.body.map(|body| body.get().to_owned()))
}

fn decode_body(kind: &str, body: Option<&str>) -> Result<EventBody, Error> {
    let kind = to_json(&kind)?;
    match body {
        Some(body) => from_json(&format!(r#"{{"kind":{kind},"body":{body}}}"#)),
        None => from_json(&format!(r#"{{"kind":{kind}}}"#)),
    }
}

fn moment(row: &Row<'_>, column: usize) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(row.get(column).map_err(failed)?).map_err(failed)
}

fn counter(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    row.get::<_, i64>(column).map(i64::unsigned_abs).map_err(failed)
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Error> {
    row.get_ref(column).map_err(failed)?.as_str().map_err(failed)
}

fn optional_text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Error> {
    row.get_ref(column).map_err(failed)?.as_str_or_null().map_err(failed)
}
