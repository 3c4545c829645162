//! What is known of a session's tests without running any: how they ended when they last ran, and which lines of its project they reach.

use mainstay_model::{Coverage, Error, RecordedRuns, Seq, SessionId};
use mainstay_runner::query::KernelQuery;

use super::Client;

/// How many events are read at once.
const PAGE: usize = 512;
/// How many events are read at most: code may print much.
const READ: u64 = 20 * PAGE as u64;

/// Which lines are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageQuestion {
    /// The file, or the end of its path.
    pub file: Option<String>,
    /// The declaration, or the end of its name.
    pub name: Option<String>,
}

impl Client {
    /// The newest runs of tests of a session: at most 20, and none before its last 10,240 events.
    ///
    /// # Errors
    /// As [`Client::events`].
    pub async fn test_runs(&self, session: SessionId) -> Result<RecordedRuns, Error> {
        let newest = self.status(session).await?.session.last_seq;
        let (mut pages, mut from, mut runs) = (Vec::new(), newest.0, 0);
        while from > 0 && runs < RecordedRuns::KEPT && newest.0 - from < READ {
            let after = from.saturating_sub(PAGE as u64);
            let mut page = self.events(session, Seq(after), PAGE).await?;
            page.retain(|event| event.seq.0 <= from);
            runs += page.iter().filter(|event| RecordedRuns::run_of(event).is_some()).count();
            pages.push(page);
            from = after;
        }
        Ok(RecordedRuns::of(pages.iter().rev().flatten()))
    }

    /// Which lines of a session's project its tests reach, and how these ended.
    ///
    /// # Errors
    /// As [`Client::query`] and [`Client::events`].
    pub async fn coverage(&self, session: SessionId, asked: CoverageQuestion) -> Result<Coverage, Error> {
        let CoverageQuestion { file, name } = asked;
        let in_detail = file.is_some() || name.is_some();
        let runs = self.test_runs(session).await?;
        let query = KernelQuery::Coverage { file, name, since: runs.marks() };
        let reached = self.query(session, query).await?.coverage()?;
        Ok(Coverage::of(reached, &runs.history(), in_detail))
    }
}
