//! Results as you type. A mirror is a second worker of a session, with the same project and nothing of what the session has done: in it run
//! the texts that editors have not saved, and the tests that reach them. The session's own worker is never touched.
//!
//! A session has one mirror at most, from its first unsaved text on ([`task`]). Its texts are kept in memory alone ([`buffers`]): they are no
//! facts of the session. The process is in [`worker`]. Who may send texts is said elsewhere ([`crate::unsaved`]). Which lines tests run is
//! measured in another such process ([`measuring`]).

mod buffers;
mod measuring;
mod task;
mod terms;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError};

use mainstay_model::{BufferRun, Error, Session, SessionId, UnsavedBuffer};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::measuring::{Measurements, Stage};
use self::task::{Mirror, Order};
pub use self::terms::BufferTerms;
pub(crate) use self::worker::Beginning;
use crate::sync::time::Instant;
use crate::sync::{Mutex, MutexGuard, task as tasks};

/// A text of a source file that is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBuffer {
    /// The path of the file, absolute.
    pub path: String,
    /// The version of the text: of two, the higher one is newer.
    pub version: u64,
    /// The whole text of the file.
    pub text: String,
}

/// The mirrors of all sessions.
#[derive(Default)]
pub(crate) struct Mirrors {
    terms: OnceLock<Arc<BufferTerms>>,
    of: Mutex<HashMap<SessionId, Entry>>,
}

struct Entry {
    way: MirrorHandle,
    used: Instant,
}

/// The way to a mirror. Its task ends with the last of them.
#[derive(Clone)]
pub(crate) struct MirrorHandle(mpsc::UnboundedSender<Order>);

impl Mirrors {
    pub(crate) fn terms(&self) -> Arc<BufferTerms> {
        Arc::clone(self.terms.get_or_init(Arc::default))
    }

    /// Says how unsaved texts are dealt with; says whether it is not too late for that.
    pub(crate) fn set_terms(&self, terms: BufferTerms) -> bool {
        self.terms.set(Arc::new(terms)).is_ok()
    }

    /// The way to the mirror of a session, where there is one.
    pub(crate) fn of(&self, session: SessionId) -> Option<MirrorHandle> {
        let mirrors = self.lock();
        mirrors.get(&session).map(|entry| entry.way.clone()).filter(|way| !way.0.is_closed())
    }

    /// Begins the mirror of a session. Its process starts with its first text.
    pub(crate) fn begin(beginning: Beginning, visible: watch::Receiver<Arc<Session>>) -> MirrorHandle {
        let (orders, ordered) = mpsc::unbounded_channel();
        tasks::spawn(Mirror::new(beginning, visible, ordered).run());
        MirrorHandle(orders)
    }

    /// The way to the mirror of a session that is about to be used: to the one that is there, or to one that is begun. Of too many the one ends that
    /// was used least recently.
    pub(crate) fn used(
        &self,
        session: SessionId,
        most: usize,
        begin: impl FnOnce() -> MirrorHandle,
    ) -> MirrorHandle {
        let mut mirrors = self.lock();
        mirrors.retain(|_, entry| !entry.way.0.is_closed());
        let way = mirrors.remove(&session).map_or_else(begin, |entry| entry.way);
        mirrors.insert(session, Entry { way: way.clone(), used: Instant::now() });
        while mirrors.len() > most {
            let oldest = mirrors.iter().filter(|(of, _)| **of != session).min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(session, _)| *session) else { break };
            mirrors.remove(&oldest);
        }
        way
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process of a session's worker.
fn process_of(session: &Session) -> Option<u32> {
    session.worker.as_ref().and_then(|worker| worker.pid)
}

impl MirrorHandle {
    /// Runs the tests that reach what a text has otherwise than the saved file.
    pub(crate) async fn put(self, buffer: NewBuffer) -> Result<BufferRun, Error> {
        let NewBuffer { path, version, text } = buffer;
        let ended = |_| Error::WorkerFailed { reason: "the mirror of the session ended".to_owned() };
        self.ask(|reply| Order::Put { path, version, text, reply })
            .await
            .unwrap_or_else(|gone| Err(ended(gone)))
    }

    /// Throws the text of a file away, where it is there.
    pub(crate) async fn discard(self, path: String) {
        self.ask(|reply| Order::Discard { path, reply }).await.ok();
    }

    /// Which texts there are.
    pub(crate) async fn list(self) -> Vec<UnsavedBuffer> {
        self.ask(|reply| Order::List { reply }).await.unwrap_or_default()
    }

    /// Files were saved, with these texts.
    pub(crate) fn saved(self, files: Vec<(String, Option<String>)>) {
        self.0.send(Order::Saved { files }).ok();
    }

    /// Waits for an answer, and keeps nobody there meanwhile.
    async fn ask<T>(
        self,
        order: impl FnOnce(oneshot::Sender<T>) -> Order,
    ) -> Result<T, oneshot::error::RecvError> {
        let (reply, answer) = oneshot::channel();
        // Where it ends just now, so does the reply.
        self.0.send(order(reply)).ok();
        drop(self);
        answer.await
    }
}
