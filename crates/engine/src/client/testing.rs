//! What is known of a session's tests without running any: how they ended when they last ran, and which lines of its project they reach.

use mainstay_model::{Coverage, Error, ReachedLines, RecordedRuns, Seq, SessionId};
use mainstay_runner::query::KernelQuery;

use super::Client;
use crate::measuring::ToMeasure;
use crate::mirror::Stage;

/// A worker that tells no mark of its code measures nothing.
const TOO_OLD: &str = "the session's worker is of an older version of Mainstay, which measures no lines: give it another with `mainstay session rebuild`";
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
    /// Whether the lines that the tests run are to be measured first, where they are not known of the code as it is.
    pub measure: bool,
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

    /// Waits for the end of a measurement of the lines that the session's tests run, where one goes on.
    pub async fn wait_for_measurement(&self, session: SessionId) {
        self.engine.wait_for_measurement(session).await;
    }

    /// Which lines of a session's project its tests reach, and how these ended. Where they are to be measured, the tests run in a process beside the
    /// session's; by the settings they do so in the background where somebody asks.
    ///
    /// # Errors
    /// As [`Client::query`], [`Client::events`] and [`Client::put_buffer`].
    pub async fn coverage(&self, session: SessionId, asked: CoverageQuestion) -> Result<Coverage, Error> {
        let CoverageQuestion { file, name, measure } = asked;
        let in_detail = file.is_some() || name.is_some();
        let runs = self.test_runs(session).await?;
        let query = KernelQuery::Coverage { file, name, since: runs.marks() };
        let mut reached = self.query(session, query.clone()).await?.coverage()?;
        let is_measured = |reached: &ReachedLines| reached.tests.iter().all(|tests| tests.is_measured);
        let mut measuring = false;
        match (ToMeasure::of(&reached), measure) {
            _ if is_measured(&reached) => {}
            (Some(what), true) => {
                self.engine.measure(session, what).await?;
                reached = self.query(session, query).await?.coverage()?;
            }
            (None, true) => return Err(Error::MirrorUnavailable { reason: TOO_OLD.to_owned() }),
            (Some(what), false) => match self.engine.measure_in_background(session, what) {
                Stage::UnderWay => measuring = true,
                Stage::Failed(reason) => {
                    reached.notes.push(format!("the tests could not be measured: {reason}"))
                }
                Stage::Due | Stage::Done => {}
            },
            (None, false) => {}
        }
        Ok(Coverage { measuring, ..Coverage::of(reached, &runs.history(), in_detail) })
    }
}
