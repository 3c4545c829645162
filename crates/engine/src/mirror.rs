//! Results as you type. A mirror is a second worker of a session, with the same project and nothing of what the session has done: in it run
//! the texts that editors have not saved, and the tests that reach them. The session's own worker is never touched.
//!
//! A session has one mirror at most, from its first unsaved text on ([`task`]). Its texts are kept in memory alone ([`buffers`]): they are no
//! facts of the session. The process is in [`worker`].

mod buffers;
mod task;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use mainstay_model::{Action, BufferRun, Epoch, Error, SessionId, TestPolicy, UnsavedBuffer};
use tokio::sync::{mpsc, oneshot};

use self::task::{Mirror, Order};
use self::worker::Beginning;
use crate::engine::Engine;
use crate::session::Request;
use crate::sync::time::Instant;
use crate::sync::{Mutex, MutexGuard, task as tasks};

/// How unsaved texts are dealt with.
#[derive(Clone, Debug)]
pub struct BufferTerms {
    /// How many mirrors there may be. The one that was used least recently ends for another.
    pub mirrors: usize,
    /// How long a mirror stays without a text.
    pub idle: Duration,
    /// How long the tests of one text may take together.
    pub run: Duration,
    /// How long one of them may take.
    pub test: Duration,
    /// How much memory the machine must have available for a mirror. One that is there ends where it has less than half of it.
    pub memory_bytes: u64,
    /// How much memory the machine has available; none where that is not known.
    pub available_bytes: fn() -> Option<u64>,
    /// When tests of categories run.
    pub policies: BTreeMap<String, TestPolicy>,
}

impl Default for BufferTerms {
    fn default() -> Self {
        Self {
            mirrors: 2,
            idle: Duration::from_secs(600),
            run: Duration::from_secs(10),
            test: Duration::from_secs(5),
            memory_bytes: 0,
            available_bytes: || None,
            policies: BTreeMap::new(),
        }
    }
}

impl BufferTerms {
    /// Whether less memory is available. Where the machine does not tell, there is enough.
    fn has_less_than(&self, bytes: u64) -> bool {
        (self.available_bytes)().is_some_and(|available| available < bytes)
    }
}

/// A text of a source file that is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBuffer {
    /// The path of the file, absolute.
    pub path: String,
    /// The version of the text: of two, the higher one is newer.
    pub version: u64,
    /// The text.
    pub text: String,
}

/// The mirrors of all sessions.
#[derive(Default)]
pub(crate) struct Mirrors {
    terms: OnceLock<Arc<BufferTerms>>,
    of: Mutex<HashMap<SessionId, Entry>>,
}

struct Entry {
    orders: mpsc::UnboundedSender<Order>,
    used: Instant,
}

impl Mirrors {
    fn terms(&self) -> Arc<BufferTerms> {
        Arc::clone(self.terms.get_or_init(Arc::default))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to the mirror of a session, where there is one.
    fn of(&self, session: SessionId) -> Option<mpsc::UnboundedSender<Order>> {
        let mirrors = self.lock();
        mirrors.get(&session).map(|entry| entry.orders.clone()).filter(|orders| !orders.is_closed())
    }

    /// Notes that a mirror is used, or there from now on. Of too many the one ends that was used least recently.
    fn use_by(&self, session: SessionId, orders: mpsc::UnboundedSender<Order>, most: usize) {
        let mut mirrors = self.lock();
        mirrors.retain(|_, entry| !entry.orders.is_closed());
        mirrors.insert(session, Entry { orders, used: Instant::now() });
        while mirrors.len() > most {
            let oldest = mirrors.iter().filter(|(of, _)| **of != session).min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(session, _)| *session) else { return };
            // Its task ends with the way to it.
            mirrors.remove(&oldest);
        }
    }
}

impl Engine {
    /// Says how unsaved texts are dealt with, before the first comes.
    pub fn keep_buffers(&self, terms: BufferTerms) {
        if self.shared.mirrors.terms.set(Arc::new(terms)).is_err() {
            tracing::error!("how unsaved texts are dealt with was said too late");
        }
    }

    /// Runs the tests that reach what an unsaved text has otherwise than the saved file.
    pub(crate) async fn put_buffer(&self, session: SessionId, buffer: NewBuffer) -> Result<BufferRun, Error> {
        let NewBuffer { path, version, text } = buffer;
        mainstay_model::command::validate_code(&text, &self.shared.limits)?;
        if !std::path::Path::new(&path).is_absolute() {
            let reason = format!("`{path}` must be absolute");
            return Err(Error::InvalidArgument { argument: "path".to_owned(), reason });
        }
        let orders = self.mirror(session).await?;
        let (reply, result) = oneshot::channel();
        // Where it ends just now, so does the reply.
        orders.send(Order::Put { path, version, text, reply }).ok();
        drop(orders);
        let ended = || Error::WorkerFailed { reason: "the mirror of the session ended".to_owned() };
        result.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Throws an unsaved text away, where it is there.
    pub(crate) async fn discard_buffer(&self, session: SessionId, path: String) {
        let Some(orders) = self.shared.mirrors.of(session) else { return };
        let (reply, done) = oneshot::channel();
        orders.send(Order::Discard { path, reply }).ok();
        drop(orders);
        done.await.ok();
    }

    /// The unsaved texts of a session.
    pub(crate) async fn buffers(&self, session: SessionId) -> Vec<UnsavedBuffer> {
        let Some(orders) = self.shared.mirrors.of(session) else { return Vec::new() };
        let (reply, listed) = oneshot::channel();
        orders.send(Order::List { reply }).ok();
        drop(orders);
        listed.await.unwrap_or_default()
    }

    /// Files that a session depends on were written: where they are as an unsaved text was, that is thrown away.
    pub(crate) async fn buffers_saved(&self, session: SessionId, paths: Vec<String>) {
        let Some(orders) = self.shared.mirrors.of(session) else { return };
        let mut files = Vec::new();
        for path in paths {
            let text = tokio::fs::read(&path).await.ok().map(|bytes| text_of(&bytes));
            files.push((path, text));
        }
        orders.send(Order::Saved { files }).ok();
    }

    /// The way to the mirror of a session, which is there from then on. The session must have a worker whose code tests may reach.
    async fn mirror(&self, session: SessionId) -> Result<mpsc::UnboundedSender<Order>, Error> {
        let shared = &self.shared;
        let terms = shared.mirrors.terms();
        if terms.mirrors == 0 {
            let reason = "`mirrors` in `[tests]` is 0, so unsaved texts are not run".to_owned();
            return Err(Error::KernelUnavailable { reason });
        }
        self.request(session, |reply| Request::Offers { action: Action::Test, reply }).await??;
        let orders = match shared.mirrors.of(session) {
            Some(orders) => orders,
            None => {
                if terms.has_less_than(terms.memory_bytes) {
                    let reason = "memory is short (`mirror-memory-bytes` in `[tests]`)".to_owned();
                    return Err(Error::KernelUnavailable { reason });
                }
                let visible = self.handle(session).await?.visible;
                let about = Arc::clone(&visible.borrow());
                let Some(factory) = shared.factory_of(&about.kind).cloned() else {
                    return Err(Error::KernelUnknown { kind: about.kind.clone() });
                };
                let beginning = Beginning {
                    factory,
                    spec: shared.runner_spec(&about, Epoch(0)),
                    limits: shared.limits.clone(),
                    starts: Arc::clone(&shared.starts),
                    terms: Arc::clone(&terms),
                };
                let (orders, ordered) = mpsc::unbounded_channel();
                tasks::spawn(Mirror::new(beginning, visible, ordered).run());
                orders
            }
        };
        shared.mirrors.use_by(session, orders.clone(), terms.mirrors);
        Ok(orders)
    }
}

/// What a file says, as editors have it: without the mark of its encoding.
fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}
