//! The connection to a session: calls, and every event of it once.

use std::sync::Arc;

use mainstay_client::Client;
use mainstay_model::{Error, Event, EventBody, Live, Seq};
use mainstay_protocol::operations::Follow;
use mainstay_protocol::view::SessionView;
use tokio::sync::mpsc;

use crate::connect::Connection;

/// What is heard of a session.
pub enum SessionUpdate {
    /// An event of the session.
    Event(Event),
    /// What is going on.
    Live(Live),
}

/// A session as this client sees it.
pub struct Link {
    /// Sends requests to the daemon.
    pub client: Arc<Client>,
    /// The session when it was last asked for, with the name it has now.
    pub session: SessionView,
    events: mpsc::UnboundedReceiver<Event>,
    /// What is going on before events say it; none of a kernel.
    live: Option<mpsc::UnboundedReceiver<Live>>,
    seen: Seq,
    is_lost: bool,
    is_deleted: bool,
}

impl Link {
    /// Follows a session from what has happened up to now.
    pub async fn open(connection: Connection, session: SessionView) -> Result<Self, Error> {
        let seen = session.last_seq;
        Self::resume(connection, session, seen).await
    }

    /// Follows a session from the last event that was seen.
    pub async fn resume(connection: Connection, session: SessionView, seen: Seq) -> Result<Self, Error> {
        let reference = session.session.to_string();
        connection.client.call(Follow::session(reference.clone(), seen)).await?;
        let live = match session.is_agent() {
            true => Some(connection.client.listen(reference).await?),
            false => None,
        };
        Ok(Self {
            client: Arc::new(connection.client),
            session,
            events: connection.events,
            live,
            seen,
            is_lost: false,
            is_deleted: false,
        })
    }

    /// The next event; none once the connection is lost. Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.hear().await? {
                SessionUpdate::Event(event) => return Some(event),
                // Events say it too.
                SessionUpdate::Live(_) => {}
            }
        }
    }

    /// What is heard next; nothing once the connection is lost. Dropping the future loses nothing.
    pub async fn hear(&mut self) -> Option<SessionUpdate> {
        tokio::select! {
            biased;
            event = self.events.recv() => self.take(event).map(SessionUpdate::Event),
            Some(live) = next_live(&mut self.live) => Some(SessionUpdate::Live(live)),
        }
    }

    fn take(&mut self, event: Option<Event>) -> Option<Event> {
        match &event {
            Some(event) => {
                self.seen = event.seq;
                if let EventBody::SessionRenamed { name } = &event.body {
                    self.session.name.clone_from(name);
                }
                if let EventBody::WarmUpCompleted { language: Some(language), .. } = &event.body {
                    self.session.language = Some(language.clone());
                }
                self.is_deleted |= matches!(event.body, EventBody::SessionDeleted);
            }
            None => self.is_lost = true,
        }
        event
    }

    /// The newest event that was seen.
    pub fn seen(&self) -> Seq {
        self.seen
    }

    /// Whether the connection is lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the session was deleted.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// How the session is named in calls.
    pub fn reference(&self) -> String {
        self.session.session.to_string()
    }
}

async fn next_live(live: &mut Option<mpsc::UnboundedReceiver<Live>>) -> Option<Live> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether an error says that the daemon is gone.
pub fn is_loss(error: &Error) -> bool {
    matches!(error, Error::DaemonNotRunning | Error::DaemonStopping)
}
