//! Commits that another handle of a shared store made, noticed by asking the database every now and then.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use mainstay_model::{Error, Position};
use tokio::time::sleep;

use super::writer::Writer;

/// How often the database is asked.
const POLL: Duration = Duration::from_millis(20);

/// The newest position after each change that another handle has made, until the store is closed.
pub(super) fn by_others(writer: &Arc<Writer>) -> BoxStream<'static, Position> {
    let first = Feed { writer: Arc::downgrade(writer), version: None };
    stream::unfold(first, |mut feed| async move { feed.next().await.map(|newest| (newest, feed)) }).boxed()
}

struct Feed {
    /// Held no longer than for the question, lest it keep the store open.
    writer: Weak<Writer>,
    /// The database's version as it was seen last.
    version: Option<i64>,
}

impl Feed {
    /// The newest position after the next change; none once the store is closed.
    async fn next(&mut self) -> Option<Position> {
        loop {
            let asked = self.ask()?;
            match asked.await {
                Ok((version, newest)) => {
                    if self.version.replace(version) != Some(version) {
                        return Some(newest);
                    }
                }
                Err(error) => tracing::warn!(%error, "commits of others may be seen late"),
            }
            sleep(POLL).await;
        }
    }

    /// The database's version, which differs once another connection than the writer's has changed it, and the newest position.
    fn ask(&self) -> Option<impl Future<Output = Result<(i64, Position), Error>> + use<>> {
        let asked = self.writer.upgrade()?.submit(0, |statements| {
            let version = statements.get("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
            let newest: i64 = statements
                .get("SELECT coalesce(max(position), 0) FROM event")?
                .query_row((), |row| row.get(0))?;
            Ok((version, Position(newest.unsigned_abs())))
        });
        Some(asked)
    }
}
