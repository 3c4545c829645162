//! Transcripts: reading, labelling, merging, compacting and searching their entries.

use super::call::{Call, unexpected};
use super::page::{PAGE_LIMIT, page};
use mainstay_engine::Merge;
use mainstay_gateway::command::id_of;
use mainstay_gateway::view::{found_view, merge_view};
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Error, Label, Outcome, Response, SessionCommand, command};
use mainstay_protocol::operations::{
    CompactSession, Compacted, InsertEntries, Inserted, LabelEntry, ListEntries, ListLabels, MergeSession,
    SearchEntries,
};
use mainstay_protocol::view::{EntryView, FoundView, LabelView, MergeView, SessionView};

/// Entries in one page at most that are read whole: each may be as large as what an eval may print.
const WHOLE_ENTRIES: usize = 16;
/// Found entries in one answer, where it is not said how many.
const FOUND_DEFAULT: usize = 20;
/// Found entries in one answer at most.
const FOUND_LIMIT: usize = 100;

pub(crate) async fn entries(call: Call, asked: ListEntries) -> Result<Vec<EntryView>, Error> {
    let ListEntries { session, from, limit, full } = asked;
    let session = call.resolve(&session).await?;
    let limit = |most: usize| limit.unwrap_or(most).min(most);
    let entries = match full {
        true => call.client.whole_entries(session, from, limit(WHOLE_ENTRIES)).await?,
        false => call.client.entries(session, from, limit(PAGE_LIMIT)).await?,
    };
    let validities = call.client.validities_of_entries(&entries).await?;
    let labels = call.client.labels_of(session, &entries).await?;
    let view = |((placed, validity), label)| EntryView { placed, validity, label };
    page(entries.into_iter().zip(validities).zip(labels).map(view).collect())
}

pub(crate) async fn merge(call: Call, merge: MergeSession) -> Result<MergeView, Error> {
    let MergeSession { session, command, from, entries } = merge;
    let (session, from) = (call.resolve(&session).await?, call.resolve(&from).await?);
    let merged = call.client.merge(session, id_of(command)?, Merge { from, entries }).await?;
    merge_view(&call.client, session, merged).await
}

pub(crate) async fn insert(call: Call, insert: InsertEntries) -> Result<Inserted, Error> {
    let InsertEntries { session, command, from, entries, at } = insert;
    let (session, from) = (call.resolve_known(&session).await?, call.resolve_known(&from).await?);
    let merge = Merge { from, entries };
    let mainstay_engine::Inserted { entries, at, asked } =
        call.client.insert(session, id_of(command)?, merge, at).await?;
    Ok(Inserted { session: call.view(session).await?, entries, at, asked })
}

pub(crate) async fn compact(call: Call, compact: CompactSession) -> Result<Compacted, Error> {
    let CompactSession { session, before, summary, sent } = compact;
    let session = call.resolve(&session).await?;
    let is_known = match &sent.command {
        Some(command) => call.client.answered_before(command).await?,
        None => false,
    };
    let body = match is_known {
        // What it came to then is not looked at.
        true => {
            SessionCommand::Compact(command::Compact { covers: Vec::new(), asked: Some(before), summary })
        }
        false => call.client.compaction(session, before, summary).await?,
    };
    match call.submit(session, body, sent).await? {
        Outcome::Done { response: Response::Compacted { entries, asked, .. } } => {
            Ok(Compacted { session: call.view(session).await?, entries, asked })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn search(call: Call, search: SearchEntries) -> Result<Vec<FoundView>, Error> {
    let SearchEntries { words, session, working_directory, kind, roles, since, until, offset, limit } =
        search;
    let words = Words::parse(&words)?;
    let id = call.optional(session).await?;
    let sessions = SessionFilter { id, working_directory, kind, ..SessionFilter::default() };
    let limit = limit.unwrap_or(FOUND_DEFAULT).min(FOUND_LIMIT);
    let filter = EntryFilter { words, roles, sessions, since, until, offset, limit };
    let found = call.client.search(filter).await?;
    Ok(found.into_iter().map(found_view).collect())
}

pub(crate) async fn label(call: Call, asked: LabelEntry) -> Result<SessionView, Error> {
    let LabelEntry { session, entry, label, sent } = asked;
    let found = call.resolve(&session).await?;
    let body = call.client.labeling(found, entry, label).await?;
    call.change(&found.to_string(), body, sent).await
}

pub(crate) async fn labels(call: Call, asked: ListLabels) -> Result<Vec<LabelView>, Error> {
    let labels = call.client.labels(call.resolve(&asked.session).await?).await?.into_iter();
    let view = |(index, label): (u64, Label)| LabelView { index, label: label.text, at: label.at };
    Ok(labels.map(view).collect())
}
