//! Reading back: the last cells of a session up to a place in its events. What is read are windows of events, longer ones where a window
//! begins in the middle of a job.

use std::collections::BTreeSet;

use mainstay_engine::Client;
use mainstay_model::{Error, Event, EventBody, JobId, Seq, SessionId};

use super::page::Page;

/// How many events are read back at first.
const WINDOW: u64 = 1_000;
/// How many events are read from the log at once.
const READ: usize = 512;

/// The earlier cells that were read from the log.
pub(super) struct EarlierCells {
    pub(super) page: Page,
    /// Whether there are events before it.
    pub(super) has_before: bool,
}

/// The last cells as they were once this event had happened.
///
/// # Errors
/// As [`Client::events`].
pub(super) async fn up_to(client: &Client, session: SessionId, last: Seq) -> Result<EarlierCells, Error> {
    read(client, session, last).await
}

/// The last cells that began before this event, with all that came of them.
///
/// # Errors
/// As [`Client::events`].
pub(super) async fn before(client: &Client, session: SessionId, first: Seq) -> Result<EarlierCells, Error> {
    let mut at = Seq(first.0.saturating_sub(1));
    let EarlierCells { mut page, has_before } = read(client, session, at).await?;
    while page.open_cells().next().is_some() {
        let events = client.events(session, at, READ).await?;
        let Some(newest) = events.last() else { break };
        at = newest.seq;
        events.iter().for_each(|event| page.take(event));
    }
    Ok(EarlierCells { page, has_before })
}

async fn read(client: &Client, session: SessionId, last: Seq) -> Result<EarlierCells, Error> {
    let mut window = WINDOW;
    loop {
        let from = Seq(last.0.saturating_sub(window));
        let mut page = Page::default();
        let mut begun = BTreeSet::new();
        let mut is_whole = true;
        let mut at = from;
        while at < last {
            let events = client.events(session, at, READ).await?;
            let Some(newest) = events.last() else { break };
            at = newest.seq;
            for event in events.iter().filter(|event| event.seq <= last) {
                is_whole &= is_of_begun(event, &mut begun);
                page.take(event);
            }
        }
        if is_whole || from == Seq::ZERO {
            return Ok(EarlierCells { page, has_before: from > Seq::ZERO });
        }
        window = window.saturating_mul(4);
    }
}

/// Whether the job that an event is of has begun among those that were read.
fn is_of_begun(event: &Event, begun: &mut BTreeSet<JobId>) -> bool {
    if let EventBody::EvalRequested { job, .. } | EventBody::JobRequested { job, .. } = &event.body {
        begun.insert(*job);
    }
    let job = match &event.body {
        EventBody::MessageStreamed(delta) => Some(delta.job),
        body => body.job_part().map(|(job, _)| job).or(body.job_end().map(|(job, _)| job)),
    };
    job.is_none_or(|job| begun.contains(&job))
}
