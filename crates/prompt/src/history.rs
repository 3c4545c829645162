//! What was submitted at prompts, as the editor looks at it.
//!
//! The arrow keys walk through the lines of this folder. A search goes on to those of all other folders behind the last of them.

use std::sync::{Mutex, PoisonError};

use mainstay_model::Content;
use reedline::{
    CommandLineSearch, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchDirection,
    SearchFilter, SearchQuery,
};
use tokio::runtime::Handle;

use crate::history_cache::{HERE, HistoryCache, Line, Order, Place};

/// Named by the queries of hints, which come with every key.
const HINTS: HistorySessionId = HistorySessionId::new(1);

/// The lines that this client knows.
pub(crate) struct SharedHistory {
    history: HistoryCache,
    runtime: Handle,
    /// What was given last: the same is not given twice in a row.
    given: Mutex<Option<String>>,
}

impl SharedHistory {
    /// The lines of `history`, which may have to ask on `runtime`.
    pub(crate) fn new(history: HistoryCache, runtime: Handle) -> Self {
        Self { history, runtime, given: Mutex::default() }
    }

    fn next(&self, query: &SearchQuery) -> Option<HistoryItem> {
        let SearchQuery { direction, start_id, filter, .. } = query;
        let order = match direction {
            SearchDirection::Backward => Order::Back,
            SearchDirection::Forward => Order::Forth,
        };
        let is_hint = filter.session == Some(HINTS);
        if !is_hint && start_id.is_none() {
            self.history.wait();
        }
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let given = given.filter(|_| start_id.is_some());
        let is_wanted = |place: Place, line: &Line| {
            (place >= HERE || goes_everywhere(filter))
                && matches(line, filter)
                && !(is_hint && matches!(line.content, Content::Object { .. }))
                && !given.as_ref().is_some_and(|given| says(line, given))
        };
        let mut start = start_id.map(|id| id.0);
        loop {
            let (place, line) = self.history.find(start, order, is_wanted)?;
            match self.history.whole(place, &line, &self.runtime) {
                Some(text) => {
                    if !is_hint {
                        self.history.show(place);
                        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
                    }
                    let mut item = HistoryItem::from_command_line(text);
                    item.id = Some(HistoryItemId(place));
                    return Some(item);
                }
                // A large line that cannot be had now: its beginning alone would be something else.
                None => start = Some(place),
            }
        }
    }
}

/// Whether lines of other folders are looked at too.
fn goes_everywhere(filter: &SearchFilter) -> bool {
    matches!(filter.command_line, Some(CommandLineSearch::Substring(_)))
}

fn matches(line: &Line, filter: &SearchFilter) -> bool {
    let text = line.content.beginning();
    match &filter.command_line {
        None => true,
        Some(CommandLineSearch::Prefix(begun)) => text.starts_with(begun),
        Some(CommandLineSearch::Substring(part)) => text.contains(part),
        Some(CommandLineSearch::Exact(whole)) => text == whole,
    }
}

/// Whether a line says this.
fn says(line: &Line, text: &str) -> bool {
    match &line.content {
        Content::Text(line) => line == text,
        Content::Object { bytes, preview, .. } => text.len() as u64 == *bytes && text.starts_with(preview),
    }
}

impl History for SharedHistory {
    /// The prompt keeps what is submitted; the editor need not.
    fn save(&mut self, mut item: HistoryItem) -> Result<HistoryItem> {
        item.id = Some(HistoryItemId(Place::MAX));
        Ok(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        let found = self.history.find(Some(id.0.saturating_sub(1)), Order::Forth, |_, _| true);
        let text = found.and_then(|(place, line)| self.history.whole(place, &line, &self.runtime));
        Ok(HistoryItem::from_command_line(text.unwrap_or_default()))
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        Ok(i64::from(self.next(&query).is_some()))
    }

    /// The editor asks for one at a time.
    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        Ok(self.next(&query).into_iter().collect())
    }

    fn update(&mut self, _: HistoryItemId, _: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        Ok(())
    }

    fn delete(&mut self, _: HistoryItemId) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        Some(HINTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{HistoryLine, LineNumber};

    /// A history of these lines: each with the folder it is of, none where that is not known.
    fn of(lines: &[(Option<&str>, &str)]) -> SharedHistory {
        let history = HistoryCache::of("/here", numbered(lines));
        SharedHistory::new(history, tokio::runtime::Runtime::new().unwrap().handle().clone())
    }

    fn numbered(lines: &[(Option<&str>, &str)]) -> Vec<HistoryLine> {
        let line = |(number, (folder, text)): (u64, &(Option<&str>, &str))| HistoryLine {
            number: LineNumber(number),
            at: mainstay_model::Timestamp::UNIX_EPOCH,
            folder: folder.map(str::to_owned),
            session: None,
            content: Content::of((*text).to_owned()).0,
        };
        (1..).zip(lines).map(line).collect()
    }

    const HERE: Option<&str> = Some("/here");
    const THERE: Option<&str> = Some("/there");

    /// What is found, one after the other, until there is nothing more.
    fn walk(history: &SharedHistory, filter: fn() -> SearchFilter) -> Vec<String> {
        let mut found = Vec::new();
        let mut start_id = None;
        loop {
            let query = SearchQuery { start_id, ..SearchQuery::last_with_search(filter()) };
            let Some(item) = history.search(query).unwrap().pop() else { return found };
            start_id = item.id;
            found.push(item.command_line);
        }
    }

    fn containing(part: &str) -> SearchFilter {
        SearchFilter::from_text_search(CommandLineSearch::Substring(part.to_owned()), None)
    }

    #[test]
    fn arrows_walk_this_folders_lines_and_those_of_no_folder() {
        let history = of(&[(None, "old"), (HERE, "1"), (THERE, "2"), (HERE, "3"), (HERE, "3")]);
        assert_eq!(walk(&history, || SearchFilter::anything(None)), ["3", "1", "old"]);
        let begun = || SearchFilter::from_text_search(CommandLineSearch::Prefix("o".to_owned()), None);
        assert_eq!(walk(&history, begun), ["old"]);
    }

    #[test]
    fn a_search_goes_on_in_other_folders_behind_the_last_of_this_one() {
        let history = of(&[(HERE, "a 1"), (THERE, "a 2"), (HERE, "a 3"), (THERE, "a 4"), (HERE, "b")]);
        assert_eq!(walk(&history, || containing("a ")), ["a 3", "a 1", "a 4", "a 2"]);
        let elsewhere = history.history.is_elsewhere();
        assert!(elsewhere.load(std::sync::atomic::Ordering::SeqCst));
        history.search(SearchQuery::last_with_search(containing("b"))).unwrap();
        assert!(!elsewhere.load(std::sync::atomic::Ordering::SeqCst));
    }

    #[test]
    fn the_way_forth_is_the_way_back() {
        let history = of(&[(HERE, "1"), (THERE, "2"), (HERE, "3")]);
        let query = |start_id, direction| SearchQuery {
            start_id,
            direction,
            ..SearchQuery::last_with_search(SearchFilter::anything(None))
        };
        let newest = history.search(query(None, SearchDirection::Backward)).unwrap().pop().unwrap();
        let older = history.search(query(newest.id, SearchDirection::Backward)).unwrap().pop().unwrap();
        assert_eq!(older.command_line, "1");
        assert_eq!(history.search(query(older.id, SearchDirection::Forward)).unwrap().pop(), Some(newest));
    }

    #[test]
    fn a_hint_is_never_the_beginning_of_a_large_line() {
        let large = "let large = 1\n".repeat(2000);
        let history = of(&[(HERE, "let small = 1"), (HERE, &large)]);
        let hint = SearchQuery::last_with_prefix("let".to_owned(), history.session());
        assert_eq!(history.search(hint).unwrap().pop().unwrap().command_line, "let small = 1");
    }
}
