//! The commands of the past, as the log tells them: accepted, begun, ended. Source: protocols/pi.md, `get_command_history`.

use std::path::Path;

use mainstay_engine::Client;
use mainstay_model::{Error, Event, EventBody, Position, Seq, Source, Work};
use serde_json::{Value, json};

use super::command::HistoryQuery;
use super::decode::HISTORY;
use super::info::{find, name_of};

/// Entries, where it is not said how many.
const USUAL: u64 = 100;
/// Events that are looked through, from the newest back.
const LOOKED_THROUGH: u64 = 20_000;
/// Events that are read at once.
const PAGE: usize = 1000;

/// Reads it, the newest first.
pub(super) async fn read(client: &Client, home: &Path, query: &HistoryQuery) -> Result<Value, Error> {
    let limit = query.limit.unwrap_or(USUAL);
    let mut entries = Vec::new();
    for event in events(client, query).await?.iter().rev() {
        let Some(mut entry) = entry(event) else { continue };
        if !is_wanted(query, &entry) {
            continue;
        }
        let name = match client.status(event.session).await {
            Ok(status) => name_of(&status.session, client.principal()),
            // It was deleted.
            Err(Error::SessionNotFound { .. }) => event.session.to_string(),
            Err(error) => return Err(error),
        };
        entry["laneKey"] = format!("session:{name}").into();
        entry["sessionId"] = name.into();
        entries.push(entry);
        if entries.len() as u64 > limit {
            break;
        }
    }
    let is_truncated = entries.len() as u64 > limit;
    entries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(json!({
        "enabled": true,
        "initialized": true,
        "initState": "ready",
        "journalPath": home.join("store").display().to_string(),
        "schemaVersion": 1,
        "filters": filters(query),
        "returned": entries.len(),
        "entries": entries,
        "truncated": is_truncated,
        "maxItemsReturned": limit,
        "maxItemsAllowed": HISTORY,
    }))
}

/// The newest events that may tell of them, in order.
async fn events(client: &Client, query: &HistoryQuery) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    if let Some(name) = &query.session {
        let session = find(client, name).await?;
        let newest = client.status(session).await?.session.last_seq.0;
        let mut after = Seq(newest.saturating_sub(LOOKED_THROUGH));
        loop {
            let page = client.events(session, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(events) };
            after = last.seq;
            events.extend(page);
        }
    }
    let mut after = Position(client.last_position().await?.0.saturating_sub(LOOKED_THROUGH));
    loop {
        let page = client.all_events(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(events) };
        after = last.position;
        events.extend(page);
    }
}

/// What an event tells of a command of a client's.
fn entry(event: &Event) -> Option<Value> {
    let command = event.metadata.correlation.as_ref()?;
    let (phase, kind) = match &event.body {
        EventBody::CommandQueued(queued) => ("command_accepted", queued.body.action().name()),
        EventBody::JobRequested { work, .. } => ("command_started", kind_of(work)),
        EventBody::JobEnded { .. } => ("command_finished", "job"),
        body => match &event.metadata.source {
            Source::Client { .. } => ("command_finished", body.kind()),
            Source::Worker | Source::System => return None,
        },
    };
    let mut entry = json!({
        "recordedAt": event.at.as_millisecond(),
        "phase": phase,
        "commandId": command,
        "commandType": kind,
        "laneSequence": event.seq,
        "explicitId": !command.is_anonymous(),
    });
    if let EventBody::JobRequested { fingerprint, .. } = &event.body {
        entry["fingerprint"] = fingerprint.as_str().into();
    }
    if let EventBody::JobEnded { ending, .. } = &event.body {
        entry["success"] = matches!(ending, mainstay_model::WorkEnding::Done { .. }).into();
    }
    Some(entry)
}

const fn kind_of(work: &Work) -> &'static str {
    match work {
        Work::Turn { .. } => "prompt",
        Work::Compaction { .. } => "compact",
        Work::Shell { .. } => "bash",
        Work::Setting(_) => "setting",
    }
}

fn is_wanted(query: &HistoryQuery, entry: &Value) -> bool {
    let at = entry["recordedAt"].as_u64().unwrap_or_default();
    query.command.as_ref().is_none_or(|command| entry["commandId"] == command.as_str())
        && query.from.is_none_or(|from| at >= from)
        && query.to.is_none_or(|to| at <= to)
}

fn filters(query: &HistoryQuery) -> Value {
    let mut filters = json!({});
    let texts = [("sessionIdFilter", &query.session), ("commandId", &query.command)];
    for (name, value) in texts {
        if let Some(value) = value {
            filters[name] = value.as_str().into();
        }
    }
    for (name, value) in [("fromTimestamp", query.from), ("toTimestamp", query.to)] {
        if let Some(value) = value {
            filters[name] = value.into();
        }
    }
    filters
}
