//! Sessions that come and go, whoever brings them: every client of the protocol that may see one hears of it. Those that it brings itself it
//! hears of behind its answers, and so do its principal's others.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::{Client, DirectoryChange, DirectoryChangeKind, Engine};
use mainstay_model::{CommandId, Principal};
use serde_json::Value;
use tokio::sync::broadcast;

use super::daemon::PiDaemon;
use super::frames::session_frame;
use super::info::{info, name_of};

/// Changes that a connection may be behind with.
const BEHIND: usize = 4096;

/// A session has come, or gone, and who of the clients is told otherwise.
#[derive(Debug)]
pub(super) struct Change {
    change: DirectoryChange,
    is_told_by_command: bool,
}

/// What all connections hear of the directory.
pub(super) struct Directory {
    changes: broadcast::Sender<Arc<Change>>,
    /// The commands of clients of the protocol that change the directory, until it has changed.
    commands: Mutex<HashSet<(Principal, CommandId)>>,
    is_followed: Mutex<bool>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            changes: broadcast::channel(BEHIND).0,
            commands: Mutex::default(),
            is_followed: Mutex::default(),
        }
    }
}

impl Directory {
    /// The changes from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    /// A command that will be told with its answer, if it changes the directory.
    pub(super) fn expect(&self, principal: &Principal, command: &CommandId) {
        self.commands().insert((principal.clone(), command.clone()));
    }

    /// One that has changed nothing.
    pub(super) fn forget(&self, principal: &Principal, command: &CommandId) {
        self.commands().remove(&(principal.clone(), command.clone()));
    }

    fn commands(&self) -> std::sync::MutexGuard<'_, HashSet<(Principal, CommandId)>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that changes are heard of, as long as the daemon is there.
    pub(super) fn follow(daemon: &PiDaemon) {
        let shared = Arc::clone(&daemon.pi);
        let mut is_followed = shared.directory.is_followed.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_followed, true) {
            let (engine, shared) = (daemon.engine.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                if let Err(error) = shared.directory.pass_on(&engine).await {
                    tracing::debug!(%error, "the directory is not followed any more");
                }
                *shared.directory.is_followed.lock().unwrap_or_else(PoisonError::into_inner) = false;
            });
        }
    }

    async fn pass_on(&self, engine: &Engine) -> Result<(), mainstay_model::Error> {
        let mut directory = engine.directory().await?;
        loop {
            let change = directory.next().await?;
            let key = change.command.clone().map(|command| (change.principal.clone(), command));
            let is_told_by_command = key.is_some_and(|key| self.commands().remove(&key));
            // There may be nobody.
            self.changes.send(Arc::new(Change { change, is_told_by_command })).ok();
        }
    }
}

impl Change {
    /// What a client is told of it; none where it may not know, or is told by who did it.
    pub(super) async fn frame_for(&self, daemon: &PiDaemon, client: &Client) -> Option<Value> {
        let DirectoryChange { session, kind, principal, .. } = &self.change;
        if self.is_told_by_command && principal == client.principal() {
            return None;
        }
        // What cannot be read now is asked for by who wants to know.
        let session = client.seen_session(*session).await.ok().flatten()?;
        if !session.is_agent() {
            return None;
        }
        let gone = |name: &str| Some(session_frame("session_deleted", name, None));
        let name = name_of(&session, client.principal());
        match kind {
            DirectoryChangeKind::Created | DirectoryChangeKind::Loaded => {
                let info = info(daemon, client, &session).await.ok()?;
                Some(session_frame("session_created", &name, Some(&info)))
            }
            DirectoryChangeKind::Deleted if session.unloaded_at.is_some() => None,
            DirectoryChangeKind::Deleted => gone(&name),
            DirectoryChangeKind::Unloaded(alias) => {
                let alias = alias.as_deref().filter(|_| session.owner == *client.principal());
                gone(alias.unwrap_or(&session.id.to_string()))
            }
        }
    }
}
