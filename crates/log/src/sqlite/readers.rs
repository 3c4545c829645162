//! The threads that read, each with a connection of its own. They see what is committed and never wait for the writer. One
//! of them only looks things up that a command waits for, and so never waits behind a long read.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use mainstay_model::Error;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::failed;
use super::known::KnownOutcomes;
use super::open;

const THREADS: usize = 4;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The way to the threads. Dropped, it waits for them to end.
pub(super) struct Readers {
    queues: Option<Queues>,
    threads: Vec<JoinHandle<()>>,
}

struct Queues {
    /// Reads of every kind.
    reads: Sender<Read>,
    /// A few rows by their key.
    lookups: Sender<Read>,
}

impl Readers {
    /// Starts the threads. The writer's connection must be open.
    pub(super) fn start(database: &Path) -> Result<Self, Error> {
        let (reads, queued) = channel();
        let (lookups, looked_up) = channel();
        let mut readers =
            Self { queues: Some(Queues { reads, lookups }), threads: Vec::with_capacity(THREADS + 1) };
        let queued = Arc::new(Mutex::new(queued));
        let own = (0..THREADS).map(|number| (format!("log-reader-{number}"), Arc::clone(&queued)));
        let lookups = ("log-lookups".to_owned(), Arc::new(Mutex::new(looked_up)));
        for (name, queued) in own.chain([lookups]) {
            let connection = open::reader(database)?;
            let thread = thread::Builder::new()
                .name(name)
                .spawn(move || serve(&connection, &queued))
                .map_err(failed)?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Begins to take in what has an outcome; until that is done, whatever is asked for is looked up.
    pub(super) fn load(&self, known: Arc<KnownOutcomes>) {
        let read: Read = Box::new(move |connection| {
            if let Err(error) = known.load(connection) {
                tracing::warn!(%error, "every command is looked up in the store");
            }
        });
        if let Some(queues) = &self.queues {
            // Where the threads have stopped, nothing is asked any more.
            queues.reads.send(read).ok();
        }
    }

    /// What `read` gives, from one of the connections.
    pub(super) async fn run<T, R>(&self, read: R) -> Result<T, Error>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        answered_by(self.queues.as_ref().map(|queues| &queues.reads), read).await
    }

    /// The same of a read of a few rows by their key, which waits for no others.
    pub(super) async fn look_up<T, R>(&self, read: R) -> Result<T, Error>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        answered_by(self.queues.as_ref().map(|queues| &queues.lookups), read).await
    }
}

async fn answered_by<T, R>(queue: Option<&Sender<Read>>, read: R) -> Result<T, Error>
where
    T: Send + 'static,
    R: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    if let Some(queue) = queue {
        let read: Read = Box::new(move |connection| {
            // A caller that has gone wants no answer.
            if !reply.is_closed() {
                let _ = reply.send(read(connection));
            }
        });
        queue.send(read).map_err(|_| stopped())?;
    }
    answer.await.unwrap_or_else(|_| Err(stopped()))
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queues = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a reader of the log died");
            }
        }
    }
}

fn serve(connection: &Connection, queued: &Mutex<Receiver<Read>>) {
    loop {
        let next = queued.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else { return };
        read(connection);
    }
}

fn stopped() -> Error {
    Error::StoreFailed { reason: "its readers have stopped".to_owned() }
}
