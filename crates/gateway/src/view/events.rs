//! Reading the events of a job.

use mainstay_engine::Client;
use mainstay_model::{Error, Event, Seq, SessionId};

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// Reads the events of a job: those after the one that accepted it, and before the one that ended it.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn for_each_between(
    client: &Client,
    session: SessionId,
    requested: Seq,
    completed: Seq,
    mut take: impl FnMut(&Event),
) -> Result<(), Error> {
    let mut after = requested;
    while after.next() < completed {
        let page = client.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        page.iter().filter(|event| event.seq < completed).for_each(&mut take);
    }
    Ok(())
}
