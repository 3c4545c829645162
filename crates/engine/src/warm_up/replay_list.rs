//! Which submissions a replay runs, read from the log.

use mainstay_log::Log;
use mainstay_model::replay::{Replay, ReplayList};
use mainstay_model::{Error, Event, EventBody, Seq, Session, SessionId};

use crate::entries::events_of;

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// What must run again to rebuild a session: what the entries it began with come from, then its own.
pub(crate) async fn what_to_replay(log: &dyn Log, session: &Session) -> Result<Replay, Error> {
    let mut list = ReplayList::default();
    for segment in &session.inherited() {
        let (after, up_to) = events_of(log, *segment).await?;
        let is_wanted: fn(&Event) -> bool = if segment.kept { is_no_reset } else { |_| true };
        push_events(&mut list, log, segment.session, after, up_to, is_wanted).await?;
    }
    push_events(&mut list, log, session.id, session.definitions_since, Seq(u64::MAX), |_| true).await?;
    Ok(list.finish())
}

/// Adds the events of a session after `after`, up to `up_to`, read page by page so that a long session costs no memory for
/// its output.
async fn push_events(
    list: &mut ReplayList,
    log: &dyn Log,
    session: SessionId,
    mut after: Seq,
    up_to: Seq,
    is_wanted: fn(&Event) -> bool,
) -> Result<(), Error> {
    // A reset that a merge follows had dropped what was said before, not what was merged: the merge knew.
    let mut reset = None;
    while after < up_to {
        let page = log.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for event in page.into_iter().filter(|event| event.seq <= up_to && is_wanted(event)) {
            if !is_no_reset(&event) {
                reset = Some(event);
            } else if matches!(event.body, EventBody::EntriesMerged(_)) {
                reset = None;
            } else if event.body.job_part().is_some() {
                reset.take().into_iter().chain([event]).for_each(|event| list.push(event));
            } else {
                list.push(event);
            }
        }
    }
    reset.into_iter().for_each(|event| list.push(event));
    Ok(())
}

/// What was brought from a session is not dropped by its resets.
pub(crate) fn is_no_reset(event: &Event) -> bool {
    !matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset)
}
