//! What an agent goes on from: its conversation as the transcript has it, and which of its entries a summary of its own stands for.

use std::collections::BTreeMap;

use mainstay_log::Log;
use mainstay_model::transcript::{context, slice};
use mainstay_model::{Compaction, Error, Role, Segment, Session, TranscriptEntry};
use serde_json::Value;

use crate::entries::{entries_of, segments_of, text_of};
use crate::units::whole_beginning_of;
use mainstay_runner::Conversation;

/// What the agent of a session goes on from, once all that was said is in the log.
pub(crate) async fn conversation_of(log: &dyn Log, session: &Session) -> Result<Conversation, Error> {
    let segments = segments_of(log, session).await?;
    let entries = entries_of(log, &segments).await?;
    let mut shown = Vec::new();
    for placed in context(&entries).into_iter().filter(|placed| session.shows(placed)) {
        shown.push((placed.clone(), text_of(log, placed).await?));
    }
    Ok(Conversation { entries: shown, state: session.agent.clone(), name: session.name.clone() })
}

/// How many entries are before the last so many. Summaries stand between what was said, and are none of it.
fn before_last(entries: &[TranscriptEntry], kept: u64) -> u64 {
    let said = entries.iter().enumerate().rev().filter(|(_, placed)| placed.entry.role != Role::Summary);
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    match kept.checked_sub(1) {
        None => entries.len() as u64,
        Some(first) => said.skip(first).map(|(index, _)| index as u64).next().unwrap_or_default(),
    }
}

/// The compaction in which a summary stands for all that an agent is shown but the last `kept` entries.
pub(crate) async fn compaction_of(
    log: &dyn Log,
    session: &Session,
    summary: String,
    kept: u64,
    metadata: BTreeMap<String, Value>,
) -> Result<Compaction, Error> {
    let segments = segments_of(log, session).await?;
    let before = before_last(&entries_of(log, &segments).await?, kept);
    let entries = whole_beginning_of(log, &segments, before).await?;
    let covers: Vec<Segment> = slice(&segments, 0..entries);
    Ok(Compaction { covers, summary, metadata })
}
