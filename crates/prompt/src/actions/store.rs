//! Commands about the store: statistics, collection, backups.

use std::path::Path;

use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{GetSessionStatistics, GetStoreStatistics};
use mainstay_protocol::view::StatisticsView;
use mainstay_terminal::note;
use mainstay_terminal_client::statistics::{session_statistics, store_statistics};
use mainstay_terminal_client::store::{back_up, backup_text, collect, collected_text};

use crate::prompt_loop::PromptLoop;

impl PromptLoop {
    pub(super) async fn stats(&self, session: Option<String>) -> Result<(), Error> {
        let is_of_all = session.is_none();
        let found = self.statistics(session.unwrap_or_else(|| self.link.reference())).await?;
        print!("{}", session_statistics(&found, Timestamp::now()));
        if is_of_all {
            let all = self.link.client.call(GetStoreStatistics {}).await?;
            print!("\n{}", store_statistics(&all));
        }
        Ok(())
    }

    pub(super) async fn statistics(&self, session: String) -> Result<StatisticsView, Error> {
        self.link.client.call(GetSessionStatistics { session }).await
    }

    /// Removes what deleted sessions have left, until Ctrl-C.
    pub(super) async fn collect(&mut self) -> Result<(), Error> {
        tokio::select! {
            collected = collect(&self.link.client) => print!("{}", collected_text(&collected?)),
            _ = self.interrupts.recv() => note("the rest is left for another time"),
        }
        Ok(())
    }

    pub(super) async fn back_up(&mut self, folder: &Path) -> Result<(), Error> {
        tokio::select! {
            made = back_up(&self.link.client, folder) => {
                let (made, folder) = made?;
                println!("{}", backup_text(&made, &folder));
            }
            _ = self.interrupts.recv() => note("it goes on without you, and is whole once its manifest is there"),
        }
        Ok(())
    }
}
