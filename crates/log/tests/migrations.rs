//! A store that an older version wrote is read as it was, and goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::path::Path;

use mainstay_log::{
    Append, Epoch, Log, NewEvent, ObjectHash, SessionFilter, SqliteLog, SqliteOptions, StoredOutcome,
};
use mainstay_model::decide::Answer;
use mainstay_model::{CommandId, Event, Position, Seq, Version};
use rusqlite::{Connection, Params, params};
use serde::Serialize;
use serde_json::Value;
use support::{Line, answer, output, samples};

mod support;

#[tokio::test]
async fn a_store_of_version_1_comes_with_all_that_is_in_it() {
    let home = tempfile::tempdir().unwrap();
    let old = Version1::create(&home.path().join("mainstay.db"));
    let mut lines = [3, 1, 2].map(Line::new);
    let mut events = [const { Vec::new() }; 3];
    let mut answers = Vec::new();
    for (line, events) in lines.iter_mut().zip(&mut events) {
        events.extend(old.append(&line.create()));
    }
    for turn in 0..40 {
        let line = &mut lines[turn % 3];
        let mut append = line.append(vec![output(format!("turn {turn}")), output("")]);
        append.outcomes.push(answer(&format!("turn-{turn}"), line.last_seq()));
        answers.extend(append.outcomes.clone());
        events[turn % 3].extend(old.append(&append));
    }
    let mut append = lines[1].append(samples::bodies());
    for (event, metadata) in append.events.iter_mut().zip(samples::metadata().into_iter().cycle()) {
        event.metadata = metadata;
    }
    events[1].extend(old.append(&append));
    old.0.execute("UPDATE session SET epoch = 3 WHERE id = ?1", [id(&append)]).unwrap();
    let object = ObjectHash::of(&[1, 2, 3]);
    old.insert("INSERT INTO object VALUES (?1, 3, x'010203')", [object.as_str()]);
    drop(old);

    let log = SqliteLog::open(home.path(), &SqliteOptions::default()).unwrap();
    for (line, events) in lines.iter().zip(&events) {
        assert_eq!(log.events(line.id, Seq::ZERO, usize::MAX).await.as_ref(), Ok(events));
        assert_eq!(log.events(line.id, Seq(5), 3).await.unwrap(), events[5..8]);
        assert_eq!(log.session(line.id).await.unwrap(), line.session);
        let name = &line.session.as_ref().unwrap().name;
        assert!(log.resolve(name).await.unwrap().contains(&line.id));
    }
    assert_eq!(log.sessions(SessionFilter::default()).await.unwrap().len(), 3);
    for Answer { principal, command, fingerprint, outcome, key: _ } in answers {
        let stored = StoredOutcome { fingerprint, outcome, version: Version::ZERO, session: None };
        assert_eq!(log.outcome(&principal, &command).await, Ok(Some(stored)));
    }
    assert_eq!(log.object(&object).await, Ok(vec![1, 2, 3]));

    assert_eq!(log.claim(lines[1].id).await, Ok(Epoch(4)));
    lines[1].epoch = Epoch(4);
    for (line, events) in lines.iter_mut().zip(&mut events) {
        let last = events.last().unwrap().position;
        let answered = log.append(line.append(vec![output("and on")])).await.unwrap();
        assert!(answered[0].position > last);
        events.extend(answered);
        assert_eq!(log.events(line.id, Seq::ZERO, usize::MAX).await.as_ref(), Ok(&*events));
        assert_eq!(log.session(line.id).await.unwrap(), line.session);
    }
}

/// A store as version 1 wrote it.
struct Version1(Connection);

impl Version1 {
    fn create(database: &Path) -> Self {
        let connection = Connection::open(database).unwrap();
        connection.execute_batch(include_str!("../src/sqlite/schema/1.sql")).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        Self(connection)
    }

    fn append(&self, append: &Append) -> Vec<Event> {
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

    fn insert(&self, sql: &str, values: impl Params) -> i64 {
        self.0.prepare_cached(sql).unwrap().insert(values).unwrap()
    }
}

fn id(append: &Append) -> [u8; 16] {
    append.session.as_uuid().into_bytes()
}

fn number(seq: Seq) -> i64 {
    seq.0.cast_signed()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}
