//! What was submitted at prompts, as far as this client knows it: a copy in memory, so that no key waits for the daemon, and
//! what is still to be sent there. [`super::history`] shows it to the editor.
//!
//! Lines go to the daemon in the background. One that could not be sent is tried again with the next connection, and goes into a
//! file where the client leaves before: the next client sends it. A line has a name of its own, so that it is kept once.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_model::{Content, Error, HistoryLine, HistoryPage, LineNumber, NewLine, SessionId, Timestamp};
use mainstay_rpc::api::{AddHistory, GetHistory, ListHistory};
use mainstay_rpc::client::Client;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use crate::home::{self, Home};
use crate::link::is_loss;
use crate::terminal::note;

/// How long the editor stands still for news of other terminals, when they are asked for.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long it stands still for the whole of a large line.
const LARGE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that leaves waits until its lines are sent.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How many lines are sent at once.
const TOGETHER: usize = 256;

/// The place of a line in the order in which it is found: lines of this folder are behind all others.
pub(super) type Place = i64;
/// Where the lines of this folder begin.
pub(super) const HERE: Place = 1 << 62;
/// Where those begin that have no number yet.
const UNSENT: Place = 1 << 61;

/// The copy, shared by the editor and the task that keeps it up to date.
#[derive(Clone)]
pub(super) struct HistoryCache {
    shared: Arc<Shared>,
}

struct Shared {
    known: Mutex<CachedHistory>,
    /// The daemon was asked, and has answered or is not there.
    answered: Condvar,
    /// The same, for tasks.
    round_ended: Notify,
    /// Something is to be sent or asked for.
    work: Notify,
    /// The line that was found last is of another folder.
    is_elsewhere: Arc<AtomicBool>,
    /// Where lines go that could not be sent.
    unsent_file: PathBuf,
}

#[derive(Default)]
struct CachedHistory {
    folder: String,
    lines: BTreeMap<Place, Line>,
    /// The newest line that the daemon has listed.
    listed: LineNumber,
    unsent: VecDeque<Unsent>,
    /// How many lines were queued.
    queued: Place,
    client: Option<Arc<Client>>,
    /// How often the daemon was to be asked, and up to which of these times it was.
    asked: u64,
    answered: u64,
    /// Files to be removed once all that was read from them is sent, as they were then.
    taken_over: Vec<(PathBuf, Vec<u8>)>,
}

/// A line of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    number: Option<LineNumber>,
    folder: Option<String>,
    /// The text of the line, or its beginning.
    pub(super) content: Content,
}

/// A line that the daemon does not have yet.
struct Unsent {
    line: NewLine,
    /// Where it stands until then: its place without the folder.
    place: Place,
    /// It was read from a file.
    is_of_file: bool,
}

/// Which of two lines is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The next newer line.
    Back,
    /// The next older line.
    Forth,
}

impl HistoryCache {
    /// An empty copy, and what earlier clients could not send or kept in a file of their own. The task that fills it runs as
    /// long as the runtime.
    pub(super) fn open(home: &Home) -> Self {
        let recall = Self::empty(home.unsent_history_file());
        recall.take_over(&home.old_history_file(), old_lines);
        recall.take_over(&home.unsent_history_file(), unsent_lines);
        tokio::spawn(keep_up(recall.clone()));
        recall
    }

    fn empty(unsent_file: PathBuf) -> Self {
        let shared = Shared {
            known: Mutex::default(),
            answered: Condvar::new(),
            round_ended: Notify::new(),
            work: Notify::new(),
            is_elsewhere: Arc::default(),
            unsent_file,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the line that was found last is of another folder.
    pub(super) fn is_elsewhere(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.is_elsewhere)
    }

    /// Goes on in this folder, with this daemon or without one, and asks it for what other terminals added.
    pub(super) fn go_on(&self, folder: &str, client: Option<Arc<Client>>) {
        let mut known = self.shared.lock();
        known.enter(folder);
        known.client = client;
        known.asked += 1;
        self.shared.work.notify_one();
    }

    /// Adds a line to the history.
    pub(super) fn add(&self, text: &str, session: SessionId) {
        let mut known = self.shared.lock();
        let (id, at, folder) = (Uuid::now_v7(), Timestamp::now(), Some(known.folder.clone()));
        known.queue(NewLine { id, at, folder, session: Some(session), text: text.to_owned() }, false);
        known.asked += 1;
        self.shared.work.notify_one();
    }

    /// The first line in an order that is wanted: from `start` on, that one left out, or from the end.
    pub(super) fn find(
        &self,
        start: Option<Place>,
        order: Order,
        is_wanted: impl Fn(Place, &Line) -> bool,
    ) -> Option<(Place, Line)> {
        let known = self.shared.lock();
        let is_wanted = |(place, line): &(&Place, &Line)| is_wanted(**place, line);
        let found = match order {
            Order::Back => known.lines.range(..start.unwrap_or(Place::MAX)).rev().find(is_wanted),
            Order::Forth => known.lines.range(start.map_or(0, |start| start + 1)..).find(is_wanted),
        };
        found.map(|(place, line)| (*place, line.clone()))
    }

    /// Waits a moment for what the daemon was asked for. It must not be called by a task.
    pub(super) fn wait(&self) {
        let is_behind = |known: &mut CachedHistory| known.client.is_some() && known.answered < known.asked;
        // What is known without it will do.
        drop(self.shared.answered.wait_timeout_while(self.shared.lock(), PATIENCE, is_behind));
    }

    /// All that a line says; none where it cannot be had now. It must not be called by a task.
    pub(super) fn whole(&self, place: Place, line: &Line, runtime: &Handle) -> Option<String> {
        let (number, client) = match (&line.content, line.number) {
            (Content::Text(text), _) => return Some(text.clone()),
            (Content::Object { .. }, number) => (number?, self.shared.lock().client.clone()?),
        };
        let asked = async { timeout(LARGE_PATIENCE, client.call(GetHistory { number })).await };
        let text = runtime.block_on(asked).ok()?.ok()?.text;
        if let Some(line) = self.shared.lock().lines.get_mut(&place) {
            line.content = Content::Text(text.clone());
        }
        Some(text)
    }

    /// Says of which folder the line is that is shown.
    pub(super) fn show(&self, place: Place) {
        self.shared.is_elsewhere.store(place < HERE, Ordering::SeqCst);
    }

    /// Waits a moment until all is sent, and writes the rest into a file.
    pub(super) async fn finish(&self) {
        let sent = async {
            loop {
                let round_ended = self.shared.round_ended.notified();
                let is_done = |known: &CachedHistory| known.client.is_none() || known.unsent.is_empty();
                if is_done(&self.shared.lock()) {
                    return;
                }
                round_ended.await;
            }
        };
        // Where the time is over, the file gets it.
        timeout(LAST_WORDS, sent).await.ok();
        if self.shared.write_unsent().is_err() {
            note("what was typed last could not be kept in the history");
        }
    }

    /// What was read is sent; the file goes once it is.
    fn take_over(&self, file: &Path, read: fn(&str) -> Vec<NewLine>) {
        let Ok(bytes) = std::fs::read(file) else { return };
        let mut known = self.shared.lock();
        read(&String::from_utf8_lossy(&bytes)).into_iter().for_each(|line| known.queue(line, true));
        known.taken_over.push((file.to_owned(), bytes));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, CachedHistory> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_unsent(&self) -> Result<(), Error> {
        let known = self.lock();
        let unsent = known.unsent.iter().filter(|unsent| !unsent.is_of_file);
        let text: String = unsent.filter_map(|unsent| serde_json::to_string(&unsent.line).ok()).fold(
            String::new(),
            |mut text, line| {
                text.push_str(&line);
                text.push('\n');
                text
            },
        );
        if text.is_empty() { Ok(()) } else { home::append_private(&self.unsent_file, text.as_bytes()) }
    }
}

impl CachedHistory {
    /// Those of this folder, and those of no folder, come first from now on.
    fn enter(&mut self, folder: &str) {
        if self.folder == folder {
            return;
        }
        self.folder = folder.to_owned();
        let lines = std::mem::take(&mut self.lines);
        for (place, line) in lines {
            self.insert(place & !HERE, line);
        }
    }

    /// Takes a line in; `place` is without the folder.
    fn insert(&mut self, place: Place, line: Line) {
        let is_here = line.folder.as_ref().is_none_or(|folder| *folder == self.folder);
        self.lines.insert(if is_here { place | HERE } else { place }, line);
    }

    fn remove(&mut self, place: Place) -> Option<Line> {
        self.lines.remove(&(place | HERE)).or_else(|| self.lines.remove(&place))
    }

    fn queue(&mut self, line: NewLine, is_of_file: bool) {
        let place = UNSENT + self.queued;
        self.queued += 1;
        let (folder, content) = (line.folder.clone(), Content::Text(line.text.clone()));
        self.insert(place, Line { number: None, folder, content });
        self.unsent.push_back(Unsent { line, place, is_of_file });
    }

    /// The daemon has the first so many of the lines that wait, under these numbers.
    fn sent(&mut self, numbers: &[LineNumber]) {
        for number in numbers {
            let Some(Unsent { place, .. }) = self.unsent.pop_front() else { return };
            if let Some(line) = self.remove(place) {
                self.insert(numbered(*number), Line { number: Some(*number), ..line });
            }
        }
    }

    /// The daemon will never take the first line that waits.
    fn refused(&mut self) {
        self.unsent.pop_front();
    }

    fn list(&mut self, lines: Vec<HistoryLine>) {
        for HistoryLine { number, folder, content, at: _, session: _ } in lines {
            self.listed = self.listed.max(number);
            if !self.has_whole(number) {
                self.insert(numbered(number), Line { number: Some(number), folder, content });
            }
        }
    }

    /// Whether all that a line says is known.
    fn has_whole(&self, number: LineNumber) -> bool {
        let place = numbered(number);
        let there = self.lines.get(&(place | HERE)).or_else(|| self.lines.get(&place));
        there.is_some_and(|line| matches!(line.content, Content::Text(_)))
    }

    /// The files whose lines are all sent.
    fn done_files(&mut self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.unsent.iter().any(|unsent| unsent.is_of_file) {
            true => Vec::new(),
            false => std::mem::take(&mut self.taken_over),
        }
    }
}

fn numbered(number: LineNumber) -> Place {
    Place::try_from(number.0).unwrap_or(UNSENT - 1)
}

/// Sends and asks, whenever there is something to do.
async fn keep_up(recall: HistoryCache) {
    let shared = &recall.shared;
    loop {
        shared.work.notified().await;
        let (asked, client) = {
            let known = shared.lock();
            (known.asked, known.client.clone())
        };
        if let Some(client) = client {
            // Where the daemon is lost, the next connection goes on.
            if let Ok(()) = send(shared, &client).await {
                drop(list(shared, &client).await);
            }
        }
        let mut known = shared.lock();
        known.answered = known.answered.max(asked);
        drop(known);
        shared.answered.notify_all();
        shared.round_ended.notify_waiters();
    }
}

/// Sends what waits, oldest first.
async fn send(shared: &Shared, client: &Client) -> Result<(), Error> {
    let mut together = TOGETHER;
    loop {
        let lines: Vec<_> =
            shared.lock().unsent.iter().take(together).map(|unsent| unsent.line.clone()).collect();
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match client.call(AddHistory { lines }).await {
            Ok(added) => shared.lock().sent(&added.numbers),
            Err(error) if is_loss(&error) => return Err(error),
            Err(error @ Error::StoreFailed { .. }) => return Err(error),
            Err(_) if count > 1 => together = 1,
            // Its session may be gone since.
            Err(Error::SessionNotFound { .. }) => {
                if let Some(first) = shared.lock().unsent.front_mut() {
                    first.line.session = None;
                }
            }
            Err(_) => shared.lock().refused(),
        }
    }
    for (file, bytes) in shared.lock().done_files() {
        // Another client may have added to it.
        if std::fs::read(&file).is_ok_and(|found| found == bytes) {
            std::fs::remove_file(&file).ok();
        }
    }
    Ok(())
}

/// Asks for what is new; for all, where lines were removed.
async fn list(shared: &Shared, client: &Client) -> Result<(), Error> {
    let after = shared.lock().listed;
    let extent = list_after(shared, client, after).await?.extent;
    let has_all = {
        let mut known = shared.lock();
        let is_numbered = |line: &Line, number: fn(LineNumber, LineNumber) -> bool| {
            line.number.is_some_and(|found| number(found, extent.oldest))
        };
        known.lines.retain(|_, line| !is_numbered(line, |found, oldest| found < oldest));
        let numbered = known.lines.values().filter(|line| line.number.is_some()).count();
        let has_all = numbered as u64 == extent.lines;
        if !has_all {
            known.lines.retain(|_, line| line.number.is_none());
            known.listed = LineNumber::default();
        }
        has_all
    };
    if !has_all {
        list_after(shared, client, LineNumber::default()).await?;
    }
    Ok(())
}

/// Takes in all lines after one; gives the first page.
async fn list_after(shared: &Shared, client: &Client, after: LineNumber) -> Result<HistoryPage, Error> {
    let page = |before| {
        let after = Some(after);
        client.call(ListHistory {
            folder: None,
            session: None,
            words: Vec::new(),
            before,
            after,
            limit: None,
        })
    };
    let first = page(None).await?;
    let mut lines = first.lines.clone();
    while let Some(oldest) = lines.last().map(|line| line.number) {
        shared.lock().list(lines);
        lines = page(Some(oldest)).await?.lines;
    }
    Ok(first)
}

/// The lines of the file in which earlier versions kept them: one a line, with the line ends of blocks written out.
fn old_lines(text: &str) -> Vec<NewLine> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !is_secret(line)).enumerate();
    let line = |(index, line): (usize, &str)| NewLine {
        // The same for each client that reads the file, so that it is kept once.
        id: Uuid::from_u64_pair(index as u64, home::hash(line.as_bytes())),
        at: Timestamp::now(),
        folder: None,
        session: None,
        text: line.replace("<\\n>", "\n"),
    };
    lines.map(line).collect()
}

fn unsent_lines(text: &str) -> Vec<NewLine> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Whether what was submitted is to be stored nowhere: one line that begins with a blank.
pub(super) fn is_secret(text: &str) -> bool {
    text.starts_with(' ') && !text.trim_end().contains('\n')
}

#[cfg(test)]
impl HistoryCache {
    /// A copy of these lines, without a daemon.
    pub(super) fn of(folder: &str, lines: Vec<HistoryLine>) -> Self {
        let recall = Self::empty(PathBuf::new());
        recall.go_on(folder, None);
        recall.shared.lock().list(lines);
        recall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(recall: &HistoryCache) -> Vec<String> {
        let known = recall.shared.lock();
        known.lines.values().map(|line| line.content.beginning().to_owned()).collect()
    }

    fn session() -> SessionId {
        SessionId::from_uuid(Uuid::nil())
    }

    #[test]
    fn one_line_that_begins_with_a_blank_is_secret_and_a_block_is_not() {
        assert!([" x", "  let x = 1", " x\n"].iter().all(|text| is_secret(text)));
        assert!(!["x", "", "    let x = 1\n    x", "x\n y"].iter().any(|text| is_secret(text)));
    }

    #[test]
    fn a_line_is_there_at_once_and_once_under_its_number() {
        let recall = HistoryCache::of("/here", Vec::new());
        recall.add("1", session());
        recall.add("2", session());
        assert_eq!(texts(&recall), ["1", "2"]);
        recall.shared.lock().sent(&[LineNumber(7)]);
        assert_eq!(texts(&recall), ["1", "2"]);
        assert_eq!(recall.shared.lock().unsent.len(), 1);
    }

    #[test]
    fn another_folder_has_its_own_lines_behind_those_of_the_others() {
        let recall = HistoryCache::of("/here", Vec::new());
        recall.add("1", session());
        recall.go_on("/there", None);
        recall.add("2", session());
        assert_eq!(texts(&recall), ["1", "2"]);
        recall.go_on("/here", None);
        assert_eq!(texts(&recall), ["2", "1"]);
    }

    #[test]
    fn lines_that_no_daemon_took_are_sent_by_the_next_client() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("unsent");
        let recall = HistoryCache::empty(file.clone());
        recall.go_on("/here", None);
        recall.add("let x =\n    1", session());
        recall.shared.write_unsent().unwrap();
        let next = HistoryCache::empty(file.clone());
        next.take_over(&file, unsent_lines);
        assert_eq!(texts(&next), ["let x =\n    1"]);
        next.shared.write_unsent().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1, "they are in the file once");
    }

    #[test]
    fn lines_of_the_former_file_keep_their_names_and_line_ends_and_secrets_are_left_out() {
        let text = "1 + 1\nlet x =<\\n>    1\n\n hidden\n1 + 1\n";
        let lines = old_lines(text);
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["1 + 1", "let x =\n    1", "1 + 1"]);
        let ids =
            |lines: &[NewLine]| lines.iter().map(|line| line.id).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(ids(&lines).len(), 3);
        assert_eq!(ids(&old_lines(text)), ids(&lines));
    }
}
