//! Keeping and reading the lines that principals typed.

use async_trait::async_trait;
use mainstay_model::{Content, Error, HistoryPage, LineNumber, NewLine, Principal};

use super::{SqliteLog, history};
use crate::{HistoryFilter, PromptHistory};

#[async_trait]
impl PromptHistory for SqliteLog {
    async fn add_history(
        &self,
        principal: &Principal,
        mut line: NewLine,
        keep: Option<u64>,
    ) -> Result<LineNumber, Error> {
        let (content, large) = Content::of(std::mem::take(&mut line.text));
        let object = match large {
            Some(bytes) => Some(self.objects.keep(bytes).await?),
            None => None,
        };
        let row = history::LineRow { principal: principal.clone(), line, content, object, keep };
        self.writer.submit(row.bytes(), move |statements| row.store(statements)).await
    }

    async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error> {
        self.readers.run(move |connection| history::page(connection, &filter)).await
    }

    async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error> {
        self.writer.submit(0, move |statements| history::remove(statements, &filter)).await
    }
}
