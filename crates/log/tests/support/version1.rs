//! A store as version 1 wrote it.

use std::path::Path;

use mainstay_log::{Append, NewEvent};
use mainstay_model::decide::Answer;
use mainstay_model::{CommandId, Event, Position, Seq};
use rusqlite::{Connection, Params, params};
use serde::Serialize;
use serde_json::Value;

/// A store as version 1 wrote it.
pub struct Version1(pub Connection);

impl Version1 {
    pub fn create(database: &Path) -> Self {
        let connection = Connection::open(database).unwrap();
        connection.execute_batch(include_str!("../../src/sqlite/schema/1.sql")).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        Self(connection)
    }

    pub fn append(&self, append: &Append) -> Vec<Event> {
        let Append { events, outcomes, projection, .. } = append;
        // This gives the session another row than before, so that rows and sessions are numbered with gaps.
        let session = "REPLACE INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10)";
        self.insert(
            session,
            params![
                id(append),
                projection.name,
                projection.kind.as_str(),
                projection.state().name(),
                projection.working_directory,
                projection.project,
                projection.created_at.as_microsecond(),
                projection.last_activity.as_microsecond(),
                number(projection.last_seq),
                json(projection)
            ],
        );
        for Answer { principal, command, fingerprint, outcome, key: _ } in outcomes {
            self.insert(
                "INSERT INTO outcome VALUES (?1, ?2, ?3, ?4)",
                params![principal.as_str(), command.as_str(), fingerprint.as_str(), json(outcome)],
            );
        }
        (append.first.0..)
            .zip(events)
            .map(|(seq, event)| self.append_event(append, Seq(seq), event))
            .collect()
    }

    fn append_event(&self, append: &Append, seq: Seq, event: &NewEvent) -> Event {
        let NewEvent { at, metadata, body } = event.clone();
        let position = self.insert(
            "INSERT INTO event (session, seq, at, kind, body, source, correlation, causation, environment)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                id(append),
                number(seq),
                at.as_microsecond(),
                body.kind(),
                serde_json::to_value(&body).unwrap().get("body").map(Value::to_string),
                json(&metadata.source),
                metadata.correlation.as_ref().map(CommandId::as_str),
                metadata.causation.map(number),
                metadata.environment.as_ref().map(json)
            ],
        );
        Event {
            session: append.session,
            seq,
            position: Position(position.unsigned_abs()),
            at,
            metadata,
            body,
        }
    }

    pub fn insert(&self, sql: &str, values: impl Params) -> i64 {
        self.0.prepare_cached(sql).unwrap().insert(values).unwrap()
    }
}

pub fn id(append: &Append) -> [u8; 16] {
    append.session.as_uuid().into_bytes()
}

fn number(seq: Seq) -> i64 {
    seq.0.cast_signed()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}
