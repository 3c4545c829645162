//! The commands of the past, as the log tells them: accepted, begun, ended. Source: protocols/pi.md, `get_command_history`.

use std::path::Path;

use mainstay_engine::Client;
use mainstay_model::agent::Setting;
use mainstay_model::{
    Action, Delivery, Error, Event, EventBody, JobSpec, Position, Seq, SessionCommand, SessionId, Source,
    WorkEnding,
};
use serde_json::{Value, json};

use super::command::HistoryQuery;
use super::decode::HISTORY;
use super::info::{find, name_of};

/// Entries, where it is not said how many.
const USUAL: u64 = 100;
/// Events that are looked through, from the newest back.
const LOOKED_THROUGH: u64 = 200_000;
/// Events that are read at once.
const PAGE: u64 = 1000;

/// Reads it, the newest first.
pub(super) async fn read(client: &Client, home: &Path, query: &HistoryQuery) -> Result<Value, Error> {
    let limit = query.limit.unwrap_or(USUAL);
    let mut back = ReverseEvents::begin(client, query).await?;
    let mut entries: Vec<Value> = Vec::new();
    'all: while let Some(page) = back.page(client).await? {
        for event in page.iter().rev() {
            let Some(entry) = entry(client, event).await? else { continue };
            if is_before(query, &entry) {
                break 'all;
            }
            let is_known = entries.last().is_some_and(|last| is_same_step(last, &entry));
            if is_known || !is_wanted(query, &entry) {
                continue;
            }
            entries.push(named(client, event.session, entry).await?);
            if entries.len() as u64 > limit {
                break 'all;
            }
        }
    }
    let is_truncated = entries.len() as u64 > limit || back.is_given_up();
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

/// Goes through events from the newest back.
struct ReverseEvents {
    /// The session whose events they are; none for those of all.
    session: Option<SessionId>,
    /// The newest that was not looked at yet.
    newest: u64,
    left: u64,
}

impl ReverseEvents {
    async fn begin(client: &Client, query: &HistoryQuery) -> Result<Self, Error> {
        let session = match &query.session {
            Some(name) => Some(find(client, name).await?),
            None => None,
        };
        let newest = match session {
            Some(session) => client.status(session).await?.session.last_seq.0,
            None => client.last_position().await?.0,
        };
        Ok(Self { session, newest, left: LOOKED_THROUGH })
    }

    /// Whether there are more that were not looked at.
    const fn is_given_up(&self) -> bool {
        self.left == 0 && self.newest > 0
    }

    /// The page before, in order; none before the first, and where enough was looked through.
    async fn page(&mut self, client: &Client) -> Result<Option<Vec<Event>>, Error> {
        if self.newest == 0 || self.left == 0 {
            return Ok(None);
        }
        let count = PAGE.min(self.newest).min(self.left);
        let (newest, after) = (self.newest, self.newest - count);
        (self.newest, self.left) = (after, self.left - count);
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        let mut page = match self.session {
            Some(session) => client.events(session, Seq(after), limit).await?,
            None => client.all_events(Position(after), limit).await?,
        };
        let place = |event: &Event| match self.session {
            Some(_) => event.seq.0,
            None => event.position.0,
        };
        page.retain(|event| place(event) <= newest);
        Ok(Some(page))
    }
}

/// What an event tells of a command of a client's.
async fn entry(client: &Client, event: &Event) -> Result<Option<Value>, Error> {
    let Some(command) = &event.metadata.correlation else { return Ok(None) };
    let (phase, kind, success) = match &event.body {
        EventBody::CommandQueued(queued) => ("command_accepted", type_of(&queued.body), None),
        EventBody::JobRequested { work, .. } => ("command_started", type_of_work(work), None),
        EventBody::JobEnded { ending, .. } => {
            let kind = type_of_end(client, event).await?;
            ("command_finished", kind, Some(succeeded(kind, ending)))
        }
        body => match (&event.metadata.source, type_of_fact(body)) {
            // What is refused is no event.
            (Source::Client { .. }, Some(kind)) => ("command_finished", kind, Some(true)),
            (Source::Client { .. }, None) | (Source::Worker | Source::System, _) => return Ok(None),
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
    if let Some(success) = success {
        entry["success"] = success.into();
    }
    Ok(Some(entry))
}

/// An entry, with its session as its client calls it.
async fn named(client: &Client, session: SessionId, mut entry: Value) -> Result<Value, Error> {
    let name = match client.status(session).await {
        Ok(status) => name_of(&status.session, client.principal()),
        // It was deleted.
        Err(Error::SessionNotFound { .. }) => session.to_string(),
        Err(error) => return Err(error),
    };
    entry["laneKey"] = format!("session:{name}").into();
    entry["sessionId"] = name.into();
    Ok(entry)
}

/// Of the job that has ended: the event that began it says so.
async fn type_of_end(client: &Client, event: &Event) -> Result<&'static str, Error> {
    let began = event.metadata.causation.and_then(|began| began.0.checked_sub(1));
    let began = match began {
        Some(before) => client.events(event.session, Seq(before), 1).await,
        None => Ok(Vec::new()),
    };
    let began = match began {
        // It was deleted.
        Err(Error::SessionNotFound { .. }) => Vec::new(),
        began => began?,
    };
    Ok(match began.first().map(|began| &began.body) {
        Some(EventBody::JobRequested { work, .. }) => type_of_work(work),
        Some(_) | None => "prompt",
    })
}

fn type_of(command: &SessionCommand) -> &'static str {
    match command {
        SessionCommand::Work(work) => type_of_work(work),
        SessionCommand::Steer(queued) => type_of_words(queued.hears),
        SessionCommand::Cancel(_) => "abort",
        SessionCommand::Reset => "new_session",
        SessionCommand::Delete | SessionCommand::Unload(_) => "delete_session",
        SessionCommand::Load(_) => "load_session",
        SessionCommand::Rename(_) => "set_session_name",
        SessionCommand::Compact(_) => "compact",
        SessionCommand::Answer(_) | SessionCommand::Decline(_) => "extension_ui_response",
        // By its own name: the pi protocol has none for it.
        _ => command.action().name(),
    }
}

const fn type_of_work(work: &JobSpec) -> &'static str {
    match work {
        JobSpec::Turn { .. } => "prompt",
        JobSpec::Compaction { .. } => "compact",
        JobSpec::Shell { .. } => "bash",
        JobSpec::Setting(setting) => match setting {
            Setting::Model { .. } => "set_model",
            Setting::NextModel { .. } => "cycle_model",
            Setting::Thinking { .. } => "set_thinking_level",
            Setting::NextThinking => "cycle_thinking_level",
            Setting::AutoCompaction { .. } => "set_auto_compaction",
            Setting::AutoRetry { .. } => "set_auto_retry",
        },
        JobSpec::Build | JobSpec::Rebuild => Action::Rebuild.name(),
        JobSpec::Comm(_) => work.kind().name(),
    }
}

/// Whether the command was answered that it succeeded: an abort is what was wanted of all but a compaction.
fn succeeded(kind: &str, ending: &WorkEnding) -> bool {
    match ending {
        WorkEnding::Done { .. } => true,
        WorkEnding::Cancelled { .. } => kind != "compact",
        WorkEnding::Failed { .. } | WorkEnding::Interrupted => false,
    }
}

/// The command that such an event carries out; none of what follows from a command, or begins a job.
const fn type_of_fact(fact: &EventBody) -> Option<&'static str> {
    Some(match fact {
        EventBody::SessionCreated { .. } => "create_session",
        EventBody::SessionImported { .. } | EventBody::SessionLoaded { .. } => "load_session",
        EventBody::SessionForked(_) => "fork",
        EventBody::SessionDeleted | EventBody::SessionUnloaded { .. } => "delete_session",
        EventBody::SessionRenamed { .. } => "set_session_name",
        EventBody::SessionReset => "new_session",
        EventBody::PromptQueued(queued) => type_of_words(queued.hears),
        EventBody::CancelRequested { .. } => "abort",
        EventBody::AskVoted { .. } | EventBody::AskEnded { .. } => "extension_ui_response",
        EventBody::TranscriptCompacted(_) => "compact",
        EventBody::EntriesMerged(_) => Action::Merge.name(),
        EventBody::SessionHardReset => Action::HardReset.name(),
        EventBody::SessionStopped => Action::Stop.name(),
        EventBody::EntryLabeled { .. } => Action::Label.name(),
        _ => return None,
    })
}

const fn type_of_words(hears: Delivery) -> &'static str {
    match hears {
        Delivery::Steer => "steer",
        Delivery::FollowUp => "follow_up",
    }
}

/// Whether both say the same of a command: a session that is forked is created by the same.
fn is_same_step(one: &Value, other: &Value) -> bool {
    ["commandId", "phase"].iter().all(|field| one[field] == other[field])
}

/// Whether it, and all before it, is too old.
fn is_before(query: &HistoryQuery, entry: &Value) -> bool {
    let at = entry["recordedAt"].as_u64().unwrap_or_default();
    query.from.is_some_and(|from| at < from)
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
