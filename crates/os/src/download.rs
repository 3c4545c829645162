//! Runs a program that brings files into a folder, and tells how much has arrived.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::command::{self, CommandError};
use crate::folder::size_of;

/// How often progress is told.
const TICK: Duration = Duration::from_secs(1);

/// Receives progress as it happens. It is called from the task that does the work, so it must not block.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// One step of installing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process does the same work; its result will be used.
    Waiting,
    /// It is being fetched; repeated about once a second.
    Installing {
        /// Time since that was begun.
        elapsed: Duration,
        /// How many bytes are on disk so far. The total is not known.
        bytes: u64,
    },
}

/// How a download is run.
#[derive(Debug, Clone, Copy)]
pub struct Download<'a> {
    /// The folder it fills. What the program prints goes to the file `log` in it.
    pub folder: &'a Path,
    /// How long it may take.
    pub limit: Duration,
    /// How long it may bring nothing.
    pub stall_limit: Option<Duration>,
}

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The program did not do its work.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// No bytes arrived for too long.
    #[error("nothing arrived for {} s", .limit.as_secs())]
    Stalled {
        /// How long it may.
        limit: Duration,
    },
}

impl Download<'_> {
    /// Runs `command` to its end. About once a second `on_progress` hears for how long it runs, and how many bytes are in the
    /// folder.
    ///
    /// # Errors
    /// [`DownloadError`].
    pub async fn run(
        &self,
        command: &mut Command,
        on_progress: &(dyn Fn(Duration, u64) + Send + Sync),
    ) -> Result<(), DownloadError> {
        let start = Instant::now();
        let log = self.folder.join("log");
        let running = command::run(command, &log, self.limit);
        tokio::pin!(running);
        let mut ticks = interval_at(start + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut bytes, mut grown) = (0, start);
        loop {
            tokio::select! {
                ended = &mut running => return Ok(ended?),
                _ = ticks.tick() => {}
            }
            let now = self.bytes().await;
            if now != bytes {
                (bytes, grown) = (now, Instant::now());
            } else if let Some(limit) = self.stall_limit.filter(|limit| grown.elapsed() > *limit) {
                return Err(DownloadError::Stalled { limit });
            }
            on_progress(start.elapsed(), bytes);
        }
    }

    async fn bytes(&self) -> u64 {
        let folder = self.folder.to_owned();
        spawn_blocking(move || size_of(&folder)).await.unwrap_or_default()
    }
}
