//! What a client follows: the events of the sessions that it may see, and what goes on in one of them before events say it.

use std::sync::Arc;

use mainstay_model::{Error, Event, EventBody, EventFilter, Live, Rights, Seq, SessionId};

use super::Client;
use super::access::not_found;
use crate::hub::{Cursor, Listener, Subscription};
use crate::presence::Following;

impl Client {
    /// Every event of a session after a cursor, then live ones.
    ///
    /// # Errors
    /// As [`Client::follow`].
    pub async fn subscribe(&self, session: SessionId, after: Seq) -> Result<ClientSubscription, Error> {
        self.follow(Cursor::Session { session, after }, EventFilter::default()).await
    }

    /// The events after a cursor that the filter lets through and that may be seen, then live ones. While it lasts, the client
    /// is attached to the session.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where the session may not be seen, [`Error::StoreFailed`].
    pub async fn follow(&self, cursor: Cursor, filter: EventFilter) -> Result<ClientSubscription, Error> {
        let following = match cursor {
            Cursor::Session { session, .. } => {
                self.must_see(session).await?;
                self.presence.follows(Some(session))
            }
            Cursor::Log { .. } => self.presence.follows(None),
        };
        let subscription = self.engine.follow(cursor, filter);
        Ok(ClientSubscription {
            subscription,
            held: None,
            was_deleted: false,
            client: self.clone(),
            _following: following,
        })
    }

    /// Listens to what is going on in a session, before events say it.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where the session may not be seen, [`Error::StoreFailed`].
    pub async fn listen(&self, session: SessionId) -> Result<LiveSubscription, Error> {
        self.must_see(session).await?;
        let listener = self.engine.listen(session);
        Ok(LiveSubscription { listener, session, client: self.clone() })
    }
}

/// What a client listens to.
pub struct LiveSubscription {
    listener: Listener,
    session: SessionId,
    client: Client,
}

impl LiveSubscription {
    /// The next piece of what is going on; waits for it. Who is slow misses some: events have all. None once the session may not be seen
    /// any more, or the daemon goes down.
    pub async fn next(&mut self) -> Option<Arc<Live>> {
        let live = self.listener.next().await?;
        let is_seen = self.client.sees(self.session).await.unwrap_or_default();
        is_seen.then_some(live)
    }
}

/// What a client follows: events of the sessions that it sees now, whatever they were called then.
pub struct ClientSubscription {
    subscription: Subscription,
    /// What came last, while it is not known whether it may be seen: the future may be dropped then.
    held: Option<Arc<Event>>,
    /// Whether the last event deleted its session.
    was_deleted: bool,
    client: Client,
    _following: Following,
}

impl ClientSubscription {
    /// The next event that may be seen. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::DaemonStopping`], [`Error::StoreFailed`]; [`Error::SessionNotFound`] once the session that is followed may be seen
    /// no more, or was deleted.
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        loop {
            if let (true, Cursor::Session { session, .. }) = (self.is_over(), self.subscription.cursor()) {
                return Err(not_found(session));
            }
            let event = match self.held.take() {
                Some(event) => event,
                None => self.subscription.next().await?,
            };
            self.held = Some(Arc::clone(&event));
            let is_seen = self.client.sees(event.session).await?;
            self.held = None;
            if is_seen {
                self.was_deleted = matches!(event.body, EventBody::SessionDeleted);
                return Ok(event);
            }
            if let Cursor::Session { session, .. } = self.subscription.cursor() {
                return Err(not_found(session));
            }
        }
    }

    /// The next event, where nothing has to be read or asked for it.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        if self.client.access.rights != Rights::All || self.held.is_some() || self.is_over() {
            return None;
        }
        let event = self.subscription.try_next()?;
        self.was_deleted = matches!(event.body, EventBody::SessionDeleted);
        Some(event)
    }

    /// Whether it follows a session that was deleted: nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.was_deleted && matches!(self.cursor(), Cursor::Session { .. })
    }

    /// Where it has got to: what to go on from.
    pub fn cursor(&self) -> Cursor {
        self.subscription.cursor()
    }
}
