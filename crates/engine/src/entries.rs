//! Reading transcripts: the entries that segments of sessions stand for.

use mainstay_log::Log;
use mainstay_model::{Content, Error, Segment, Seq, Session, SessionId, TranscriptEntry};

/// All that an entry says.
pub(crate) async fn text_of(log: &dyn Log, placed: &TranscriptEntry) -> Result<String, Error> {
    match &placed.entry.content {
        Content::Text(text) => Ok(text.clone()),
        Content::Object { object, .. } => {
            let bytes = log.object(object).await?;
            let TranscriptEntry { session, number, .. } = *placed;
            String::from_utf8(bytes).map_err(|_| Error::EntryDamaged { session, number })
        }
    }
}

/// The entries that these stand for.
pub(crate) async fn entries_of(log: &dyn Log, segments: &[Segment]) -> Result<Vec<TranscriptEntry>, Error> {
    let mut entries = Vec::new();
    for Segment { session, from, to, .. } in segments {
        let wanted = to.saturating_sub(*from);
        let limit = usize::try_from(wanted).unwrap_or(usize::MAX);
        let found = log.own_entries(*session, *from, limit).await?;
        if found.len() as u64 != wanted {
            return Err(Error::EntryDamaged { session: *session, number: from + found.len() as u64 });
        }
        entries.extend(found);
    }
    Ok(entries)
}

/// What a session's transcript consists of now.
pub(crate) async fn segments_of(log: &dyn Log, session: &Session) -> Result<Vec<Segment>, Error> {
    let own = log.count_own_entries(session.id).await?;
    Ok(session.transcript.segments(session.id, own))
}

/// The events of a segment's session that lie behind the entry before it, up to its last entry: after the first of the two, up
/// to the second. A reset behind the entry before it is among them.
pub(crate) async fn events_of(log: &dyn Log, segment: Segment) -> Result<(Seq, Seq), Error> {
    let Segment { session, from, to, kept } = segment;
    let after = match kept {
        // What stood before them may be gone.
        true => Seq(first_of(log, session, from).await?.0.saturating_sub(1)),
        false => end_of(log, session, from).await?,
    };
    Ok((after, end_of(log, session, to).await?))
}

/// The first event of an entry.
async fn first_of(log: &dyn Log, session: SessionId, number: u64) -> Result<Seq, Error> {
    match log.own_entries(session, number, 1).await?.pop() {
        Some(placed) if placed.number == number => Ok(placed.first),
        Some(_) | None => Err(Error::EntryDamaged { session, number }),
    }
}

/// The last event of a session's first so many entries; the beginning where there are none.
pub(crate) async fn end_of(log: &dyn Log, session: SessionId, entries: u64) -> Result<Seq, Error> {
    let Some(number) = entries.checked_sub(1) else { return Ok(Seq::ZERO) };
    match log.own_entries(session, number, 1).await?.pop() {
        Some(placed) if placed.number == number => Ok(placed.last),
        Some(_) | None => Err(Error::EntryDamaged { session, number }),
    }
}
