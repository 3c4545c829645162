//! The threads that read, each with a connection of its own. They see what is committed and never wait for the writer.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use mainstay_model::Error;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{failed, open};

const THREADS: usize = 4;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The way to the threads. Dropped, it waits for them to end.
pub(super) struct Readers {
    queue: Option<Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Starts the threads. The writer's connection must be open.
    pub(super) fn start(database: &Path) -> Result<Self, Error> {
        let (queue, queued) = channel();
        let queued = Arc::new(Mutex::new(queued));
        let mut readers = Self { queue: Some(queue), threads: Vec::with_capacity(THREADS) };
        for number in 0..THREADS {
            let connection = open::reader(database)?;
            let queued = Arc::clone(&queued);
            let thread = thread::Builder::new()
                .name(format!("log-reader-{number}"))
                .spawn(move || serve(&connection, &queued))
                .map_err(failed)?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// What `read` gives, from one of the connections.
    pub(super) async fn run<T, R>(&self, read: R) -> Result<T, Error>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        if let Some(queue) = &self.queue {
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
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
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
