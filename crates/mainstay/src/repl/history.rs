//! What was typed, across sessions and terminals.

use std::path::Path;

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

/// How many entries are kept.
const CAPACITY: usize = 10_000;

/// A file of entries, written with each of them, so that a crash loses none and other terminals see them with their next.
#[derive(Debug)]
pub(super) struct SharedHistory {
    file: FileBackedHistory,
}

impl SharedHistory {
    /// The history in a file; one that ends with the client where the file cannot be used.
    ///
    /// # Errors
    /// None in practice: the capacity is sound.
    pub(super) fn open(file: &Path) -> Result<Self> {
        let file = FileBackedHistory::with_file(CAPACITY, file.to_owned());
        Ok(Self { file: file.or_else(|_| FileBackedHistory::new(CAPACITY))? })
    }
}

impl History for SharedHistory {
    /// The empty line that ended a block is no part of the entry.
    fn save(&mut self, mut item: HistoryItem) -> Result<HistoryItem> {
        item.command_line.truncate(item.command_line.trim_end().len());
        let saved = self.file.save(item)?;
        self.file.sync()?;
        Ok(saved)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.file.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.file.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.file.search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        self.file.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.file.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.file.delete(id)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.file.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.file.session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reedline::SearchDirection;

    fn entries(history: &SharedHistory) -> Vec<String> {
        let all = SearchQuery::everything(SearchDirection::Forward, None);
        history.search(all).unwrap().into_iter().map(|item| item.command_line).collect()
    }

    #[test]
    fn an_entry_is_there_for_the_next_client_at_once_and_without_its_last_empty_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let mut one = SharedHistory::open(&file).unwrap();
        one.save(HistoryItem::from_command_line("let f x =\n    x\n    ")).unwrap();
        let two = SharedHistory::open(&file).unwrap();
        assert_eq!(entries(&two), ["let f x =\n    x"]);
    }

    #[test]
    fn a_client_keeps_the_entries_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let (mut one, mut two) = (SharedHistory::open(&file).unwrap(), SharedHistory::open(&file).unwrap());
        one.save(HistoryItem::from_command_line("1")).unwrap();
        two.save(HistoryItem::from_command_line("2")).unwrap();
        assert_eq!(entries(&two), ["1", "2"]);
        drop((one, two));
        assert_eq!(entries(&SharedHistory::open(&file).unwrap()), ["1", "2"]);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = SharedHistory::open(folder.path()).unwrap();
        history.save(HistoryItem::from_command_line("1")).unwrap();
        assert_eq!(entries(&history), ["1"]);
    }
}
