//! What was submitted at prompts, as far as this client knows it: a copy in memory, so that no key waits for the daemon, and
//! what is still to be sent there. [`super::history`] shows it to the editor.
//!
//! Lines go to the daemon in the background. One that could not be sent is tried again with the next connection, and goes into a
//! file where the client leaves before: the next client sends it. A line has a name of its own, so that it is kept once.

mod exchange;
mod files;
mod lines;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_client::Client;
#[cfg(test)]
use mainstay_model::HistoryLine;
use mainstay_model::{Content, Error, NewLine, SessionId, Timestamp};
use mainstay_protocol::operations::GetHistory;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use self::exchange::keep_up;
use self::files::{old_lines, unsent_lines};
use self::lines::CachedHistory;
use mainstay_home::Home;
use mainstay_terminal::note;

pub(crate) use self::lines::Line;

/// How long the editor stands still for news of other terminals, when they are asked for.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long it stands still for the whole of a large line.
const LARGE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that leaves waits until its lines are sent.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The place of a line in the order in which it is found: lines of this folder are behind all others.
pub(crate) type Place = i64;
/// Where the lines of this folder begin.
pub(crate) const HERE: Place = 1 << 62;
/// The copy, shared by the editor and the task that keeps it up to date.
#[derive(Clone)]
pub(crate) struct HistoryCache {
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

/// Which of two lines is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The next newer line.
    Back,
    /// The next older line.
    Forth,
}

impl HistoryCache {
    /// An empty copy, and what earlier clients could not send or kept in a file of their own. The task that fills it runs as
    /// long as the runtime.
    pub(crate) fn open(home: &Home) -> Self {
        let history = Self::empty(home.unsent_history_file());
        history.take_over(&home.old_history_file(), old_lines);
        history.take_over(&home.unsent_history_file(), unsent_lines);
        tokio::spawn(keep_up(history.clone()));
        history
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
    pub(crate) fn is_elsewhere(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.is_elsewhere)
    }

    /// Goes on in this folder, with this daemon or without one, and asks it for what other terminals added.
    pub(crate) fn go_on(&self, folder: &str, client: Option<Arc<Client>>) {
        let mut known = self.shared.lock();
        known.enter(folder);
        known.client = client;
        known.asked += 1;
        self.shared.work.notify_one();
    }

    /// Adds a line to the history.
    pub(crate) fn add(&self, text: &str, session: SessionId) {
        let mut known = self.shared.lock();
        let (id, at, folder) = (Uuid::now_v7(), Timestamp::now(), Some(known.folder.clone()));
        known.queue(NewLine { id, at, folder, session: Some(session), text: text.to_owned() }, false);
        known.asked += 1;
        self.shared.work.notify_one();
    }

    /// The first line in an order that is wanted: from `start` on, that one left out, or from the end.
    pub(crate) fn find(
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
    pub(crate) fn wait(&self) {
        let is_behind = |known: &mut CachedHistory| known.client.is_some() && known.answered < known.asked;
        // What is known without it will do.
        drop(self.shared.answered.wait_timeout_while(self.shared.lock(), PATIENCE, is_behind));
    }

    /// All that a line says; none where it cannot be had now. It must not be called by a task.
    pub(crate) fn whole(&self, place: Place, line: &Line, runtime: &Handle) -> Option<String> {
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
    pub(crate) fn show(&self, place: Place) {
        self.shared.is_elsewhere.store(place < HERE, Ordering::SeqCst);
    }

    /// Waits a moment until all is sent, and writes the rest into a file.
    pub(crate) async fn finish(&self) {
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
        if text.is_empty() {
            Ok(())
        } else {
            mainstay_home::append_private(&self.unsent_file, text.as_bytes())
        }
    }
}

/// Whether what was submitted is to be stored nowhere: one line that begins with a blank.
pub(crate) fn is_secret(text: &str) -> bool {
    text.starts_with(' ') && !text.trim_end().contains('\n')
}

#[cfg(test)]
impl HistoryCache {
    /// A copy of these lines, without a daemon.
    pub(crate) fn of(folder: &str, lines: Vec<HistoryLine>) -> Self {
        let history = Self::empty(PathBuf::new());
        history.go_on(folder, None);
        history.shared.lock().list(lines);
        history
    }
}

#[cfg(test)]
mod tests;
