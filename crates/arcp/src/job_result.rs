//! The result of a job that has ended, read from the log.

use mainstay_model::{CommandId, Error, Position, SessionId, Timestamp};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::feed::Feed;
use crate::job_news::JobNews;
use crate::job_outcome::JobOutcome;
use crate::session::Session;

impl<D: Dialect> Session<D> {
    /// The result of a job of this principal that did what it was to do, and when it ended; none of any other, and where it was deleted.
    pub(crate) async fn result_of(
        &self,
        job: &CommandId,
        home: SessionId,
    ) -> Result<Option<(Value, Timestamp)>, Error> {
        let history = match self.end_of(job, home, Position(u64::MAX)).await {
            Err(Error::SessionNotFound { .. }) => return Ok(None),
            history => history?,
        };
        let mut feed = Feed::new(String::new(), self.client.principal().clone());
        feed.join(job.clone(), home, true, true);
        let mut last_text = None;
        for event in &history {
            for news in feed.take(event).into_iter().flat_map(|told| told.news) {
                match news {
                    JobNews::Said(text) => last_text = Some(text),
                    JobNews::Ended(end) => {
                        return Ok(match JobOutcome::of(&end, last_text) {
                            JobOutcome::Done(value) => Some((value, event.at)),
                            JobOutcome::Failed(_) => None,
                        });
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}
