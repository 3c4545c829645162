//! What must be known to go on in the middle of a session: all of the turn that runs there, however long it is.

use mainstay_engine::Client;
use mainstay_model::{AgentState, Error, EventBody, Seq, Session};

use super::events::EventEncoder;

/// Events that are read at once.
const PAGE: u64 = 1000;

/// Tells what happens in a session after an event. Its agent goes on as `state` says, or will begin so.
pub(super) async fn teller(
    client: &Client,
    session: &Session,
    state: AgentState,
    after: Seq,
    is_cumulative: bool,
) -> Result<EventEncoder, Error> {
    let mut read = before_job(client, session, after).await?;
    let queue = if read == session.last_seq { session.queue.clone() } else { Vec::new() };
    let mut teller = EventEncoder::of(Some(state), queue).cumulative(is_cumulative);
    while read < after {
        let page = client.events(session.id, read, at_once(after.0 - read.0)).await?;
        let Some(last) = page.last() else { break };
        read = last.seq;
        page.iter().for_each(|event| drop(teller.tell(event)));
    }
    Ok(teller)
}

/// The event before the job that ran at an event; the event itself where none did.
async fn before_job(client: &Client, session: &Session, at: Seq) -> Result<Seq, Error> {
    match session.running() {
        Some(running) if running.requested <= at => return Ok(before(running.requested)),
        None if at == session.last_seq => return Ok(at),
        Some(_) | None => {}
    }
    // That job has ended since: it is looked for.
    let mut newest = at.0;
    while newest > 0 {
        let older = newest.saturating_sub(PAGE);
        let page = client.events(session.id, Seq(older), at_once(newest - older)).await?;
        for event in page.iter().rev() {
            if let EventBody::JobRequested { .. } = event.body {
                return Ok(before(event.seq));
            }
            if let EventBody::JobEnded { .. } = event.body {
                return Ok(at);
            }
        }
        newest = older;
    }
    Ok(at)
}

const fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

fn at_once(events: u64) -> usize {
    usize::try_from(events.min(PAGE)).unwrap_or(usize::MAX)
}
