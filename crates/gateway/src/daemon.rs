//! The daemon as its protocols see it: the engine, who may come in, and when it stops.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_engine::{Engine, KindResolver};
use mainstay_model::{Error, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Kinds;
use crate::authorities::Authorities;
use crate::browser::Links;
use crate::tokens::{TokenHash, Tokens};

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
    /// What the daemons of this home are known by, as `sha256:` and hexadecimal digits: clients may pin it. It is no secret.
    pub fingerprint: Arc<str>,
    /// The loopback port it listens on.
    pub port: u16,
    /// By which names other machines reach this, where it is the daemon as they see it.
    pub remote: Option<Arc<Authorities>>,
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
    /// Whether the daemon begins anew once it has ended.
    pub begins_anew: Arc<BeginsAnew>,
}

/// The fingerprint of the daemons of a home with this identity. Source: draft-arcp-01, 8.3.
pub fn fingerprint_of(identity: &str) -> Arc<str> {
    format!("sha256:{}", String::from(TokenHash::of(identity))).into()
}

/// Whether a daemon begins anew once it has ended, as far as it was told. To stop counts for more than to begin anew.
#[derive(Debug, Default)]
pub struct BeginsAnew {
    wanted: Mutex<EndWanted>,
    /// Cancelled when it is asked to begin anew.
    is_asked: CancellationToken,
}

#[derive(Debug, Default)]
struct EndWanted {
    how: Option<HowToEnd>,
    /// Whether it ends so by now.
    is_decided: bool,
}

#[derive(Clone, Debug)]
enum HowToEnd {
    Stops,
    /// As this program, its own where none is named.
    BeginsAnew(Option<PathBuf>),
}

impl BeginsAnew {
    fn wanted(&self) -> MutexGuard<'_, EndWanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides it, where that is not done yet: returns whether the daemon begins anew, and as which program where another than its own was named.
    pub fn decide(&self) -> Option<Option<PathBuf>> {
        let mut wanted = self.wanted();
        wanted.is_decided = true;
        match &wanted.how {
            Some(HowToEnd::BeginsAnew(program)) => Some(program.clone()),
            Some(HowToEnd::Stops) | None => None,
        }
    }
}

impl Daemon {
    /// The daemon as other machines see it, which reach it so: nobody there is the user that it runs as.
    pub(crate) fn for_others(&self, reached: Authorities) -> Self {
        let tokens = Arc::new(self.tokens.for_others());
        Self { tokens, remote: Some(Arc::new(reached)), ..self.clone() }
    }

    /// By which names and at which port it is reached.
    pub fn authorities(&self) -> Authorities {
        match &self.remote {
            Some(reached) => reached.as_ref().clone(),
            None => Authorities::loopback(self.port),
        }
    }

    /// Ends the daemon, which begins anew as a program, its own where none is named. What was asked first counts.
    pub fn restart(&self, program: Option<PathBuf>) {
        let mut wanted = self.begins_anew.wanted();
        if !wanted.is_decided {
            wanted.how.get_or_insert(HowToEnd::BeginsAnew(program));
        }
        self.begins_anew.is_asked.cancel();
    }

    /// Waits until the daemon is asked to stop or to begin anew. It takes connections still in the latter case, until `stop` is cancelled.
    pub async fn asked_to_end(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.begins_anew.is_asked.cancelled() => {}
        }
    }

    /// Ends the daemon, which does not begin anew, even where it was told so before.
    ///
    /// # Errors
    /// [`Error::DaemonStopping`] where it is about to begin anew already: what comes of that is to be stopped.
    pub fn stop(&self) -> Result<(), Error> {
        let mut wanted = self.begins_anew.wanted();
        match &wanted.how {
            Some(HowToEnd::BeginsAnew(_)) if wanted.is_decided => return Err(Error::DaemonStopping),
            Some(_) | None => wanted.how = Some(HowToEnd::Stops),
        }
        self.stop.cancel();
        Ok(())
    }

    /// Stops every session, or lets their runners go where the daemon begins anew, and answers what waited for that.
    pub async fn shut_down(&self) {
        if self.begins_anew.decide().is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_was_told_to_begin_anew_can_be_told_to_stop_until_it_is_decided() {
        let told = BeginsAnew::default();
        told.wanted().how = Some(HowToEnd::BeginsAnew(None));
        assert_eq!(told.decide(), Some(None));
        let stopped = BeginsAnew::default();
        stopped.wanted().how = Some(HowToEnd::Stops);
        assert_eq!(stopped.decide(), None);
        assert_eq!(BeginsAnew::default().decide(), None, "a signal ended it");
    }
}
