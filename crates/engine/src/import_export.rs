//! Export and import: a session's cells page by page, and a session made of such cells.

use mainstay_formats::exchange::{
    Collector, ExportCursor, ExportedEvent, Header, Imported, Item, PlacedEvent, placed,
};
use mainstay_log::NewEvent;
use mainstay_model::command::validate_code;
use mainstay_model::label::validate_label;
use mainstay_model::transcript::total;
use mainstay_model::{
    CreateSession, Error, Event, EventBody, Metadata, Segment, Seq, Session, SessionId, Source,
};

use crate::client::Client;
use crate::clock::now;
use crate::engine::Engine;
use crate::entries::{end_of, events_of};
use crate::warm_up::is_no_reset;

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// A part of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPage {
    /// What the file begins with.
    pub header: Header,
    /// The items of the page, in order.
    pub items: Vec<Item>,
    /// Where the next part begins; none behind the last.
    pub next: Option<ExportCursor>,
}

impl Client {
    /// The items of a session's export from a cursor on, at least one and about `limit` bytes of them.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn export(
        &self,
        session: SessionId,
        cursor: ExportCursor,
        limit: usize,
    ) -> Result<ExportPage, Error> {
        let session = self.visible_session(session).await?;
        let all = self.engine().segments_of(&session).await?;
        let segments = session.transcript.inherited();
        // Behind them its own events count to the last: a reset may be behind the last entry.
        let own = session.transcript.own(session.id, total(&all));
        let merged_at = session.merged_at.unwrap_or(Seq::ZERO);
        let header = Header::new(
            session.name.clone(),
            session.kind.clone(),
            session.language.clone(),
            session.working_directory.clone(),
            session.project.clone(),
        );
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut at = cursor;
        while let Some((of, after, up_to)) = self.stretch(own, merged_at, segments, at.segment).await? {
            if at.after.is_none() && is_dropped_before(&session, segments, at.segment) {
                items.push(Item::Reset { at: session.created_at });
            }
            let mut collector = Collector::new(session.kind.clone());
            let mut after = at.after.unwrap_or(after).max(after);
            while after < up_to {
                let page = self.engine().events(of, after, PAGE).await?;
                let Some(last) = page.last() else { break };
                after = last.seq;
                let is_brought = segments.get(at.segment).is_some_and(|segment| segment.kept);
                let is_wanted = |event: &&Event| event.seq <= up_to && (!is_brought || is_no_reset(event));
                for event in page.iter().filter(is_wanted) {
                    let Some(item) = collector.push(event) else { continue };
                    let item = item.in_file(&all, at.entries);
                    at.entries += item.entries();
                    bytes += serde_json::to_string(&item).map_or(0, |json| json.len());
                    items.push(item);
                    if bytes >= limit {
                        let next = Some(ExportCursor { after: Some(event.seq), ..at });
                        return Ok(ExportPage { header, items, next });
                    }
                }
            }
            at = ExportCursor { segment: at.segment + 1, after: None, entries: at.entries };
        }
        items.extend(session.labels.placed(&all).into_iter().map(|(entry, label)| Item::Label {
            at: label.at,
            entry,
            label: label.text.clone(),
        }));
        Ok(ExportPage { header, items, next: None })
    }

    /// The events that a segment comes from: of which session, after which, up to which. Behind the inherited segments come all other
    /// events of the session itself.
    async fn stretch(
        &self,
        own: Segment,
        merged_at: Seq,
        inherited: &[Segment],
        index: usize,
    ) -> Result<Option<(SessionId, Seq, Seq)>, Error> {
        match inherited.get(index) {
            Some(segment) => {
                let (after, up_to) = events_of(self.engine().shared.log.as_ref(), *segment).await?;
                Ok(Some((segment.session, after, up_to)))
            }
            None if index == inherited.len() => {
                let after = end_of(self.engine().shared.log.as_ref(), own.session, own.from).await?;
                Ok(Some((own.session, after.max(merged_at), Seq(u64::MAX))))
            }
            None => Ok(None),
        }
    }
}

/// Whether what comes before a segment was dropped before the session began, and the segment was not.
fn is_dropped_before(session: &Session, inherited: &[Segment], index: usize) -> bool {
    if session.merged_at.is_some() {
        let dropped = total(inherited).saturating_sub(total(&session.begins_with));
        return dropped > 0 && total(inherited.get(..index).unwrap_or(inherited)) == dropped;
    }
    let counts =
        |segment: &Segment| session.begins_with.iter().any(|begins| begins.session == segment.session);
    let Some(before) = index.checked_sub(1).and_then(|before| inherited.get(before)) else { return false };
    !counts(before) && inherited.get(index).is_none_or(counts)
}

/// A client's request for a session with what was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSession {
    /// How it is created. Its kind is the file's.
    pub create: CreateSession,
    /// The session as read from a file.
    pub imported: Imported,
}

impl Engine {
    /// Refuses what no client could have said here.
    pub(crate) fn check_import(&self, imported: &Imported) -> Result<(), Error> {
        let now = now();
        for (item, line) in imported.items.iter().zip(2..) {
            let is_later = match item {
                Item::Cell { events, .. } => events.iter().any(|said| said.at > now),
                Item::Message { event, .. } => event.at > now,
                Item::Reset { at } | Item::Label { at, .. } => *at > now,
                Item::End { .. } => false,
            };
            if is_later {
                let reason = "it is later than this machine's clock".to_owned();
                return Err(Error::ImportInvalid { line, reason });
            }
            match item {
                Item::Cell { events, .. } => {
                    for ExportedEvent { body, .. } in events {
                        if let EventBody::EvalRequested { code, .. } = body {
                            validate_code(code, &self.shared.limits)?;
                        }
                    }
                }
                Item::Label { label, .. } => validate_label(label, &self.shared.limits)?,
                Item::Message { .. } | Item::Reset { .. } | Item::End { .. } => {}
            }
        }
        let labels = imported.items.iter().filter(|item| matches!(item, Item::Label { .. })).count();
        let limit = self.shared.limits.labels;
        if labels > limit {
            let reason = format!("it has {labels} labels; `labels` allows {limit}");
            return Err(Error::InvalidArgument { argument: "file".to_owned(), reason });
        }
        Ok(())
    }
}

/// The events of what was read, of which the first gets this seq. They are the importer's: a file does not say whose they were.
pub(crate) fn imported_events(
    items: Vec<Item>,
    session: SessionId,
    first: Seq,
    source: &Source,
) -> Vec<NewEvent> {
    let event = |PlacedEvent { at, causation, body }| NewEvent {
        at,
        metadata: Metadata { source: source.clone(), correlation: None, causation, environment: None },
        body,
    };
    placed(items, session, first).into_iter().map(event).collect()
}

/// Events as they are folded before they have a place in the log.
pub(crate) fn unplaced(session: SessionId, events: &[NewEvent]) -> Vec<Event> {
    (1..)
        .zip(events)
        .map(|(seq, NewEvent { at, metadata, body })| Event {
            session,
            seq: Seq(seq),
            position: mainstay_model::Position::ZERO,
            at: *at,
            metadata: metadata.clone(),
            body: body.clone(),
        })
        .collect()
}
