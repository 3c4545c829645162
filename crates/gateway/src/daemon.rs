//! The daemon as its protocols see it: the engine, who may come in, and when it stops.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mainstay_engine::{Engine, KindResolver};
use mainstay_model::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Kinds;
use crate::browser::Links;
use crate::tokens::Tokens;

/// How long what is left to answer may take once every session is idle.
pub const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What every connection needs to know of the daemon.
#[derive(Clone)]
pub struct Daemon {
    /// The engine that runs the sessions.
    pub engine: Engine,
    /// The secrets clients show.
    pub tokens: Arc<Tokens>,
    /// The links that let a browser in.
    pub links: Arc<Links>,
    /// The version of the daemon.
    pub version: &'static str,
    /// The loopback port it listens on.
    pub port: u16,
    /// The ports on which one protocol is served alone, by the protocol's name.
    pub own_ports: Arc<BTreeMap<&'static str, u16>>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The home folder of the daemon.
    pub home: Arc<Path>,
    /// Which kind a folder is for, and which kinds one kernel runs.
    pub kind_resolver: KindResolver,
    /// The kinds of sessions that are known here.
    pub kinds: Kinds,
    /// Cancelled when the daemon is asked to stop.
    pub stop: CancellationToken,
    /// Cancelled when every session is idle: connections end once what they asked is answered.
    pub stopped: CancellationToken,
    /// The connections and requests that the end of the daemon waits for.
    pub answering: TaskTracker,
    /// Set where the daemon begins anew once it has ended: as which program, where another than its own was named.
    pub begins_anew: Arc<OnceLock<Option<PathBuf>>>,
}

impl Daemon {
    /// Ends the daemon, which begins anew as a program, its own where none is named. What was asked first counts.
    pub fn restart(&self, program: Option<PathBuf>) {
        self.begins_anew.set(program).ok();
        self.stop.cancel();
    }

    /// Stops every session, or lets their runners go where the daemon begins anew, and answers what waited for that.
    pub async fn shut_down(&self) {
        if self.begins_anew.get().is_some() {
            // Who waits is answered by the next daemon.
            return self.engine.let_go().await;
        }
        self.engine.shut_down().await;
        self.stopped.cancel();
        self.answering.close();
        if tokio::time::timeout(LAST_ANSWERS, self.answering.wait()).await.is_err() {
            tracing::warn!(left = self.answering.len(), "connections are cut: their clients do not read");
        }
    }
}
