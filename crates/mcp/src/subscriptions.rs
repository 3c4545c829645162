//! Telling clients that what they read has changed: one task a resource that is followed, at most one word in [`PAUSE`] each. The
//! tasks end with the connection, or the request, that they are of.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use mainstay_engine::{Client, ClientSubscription, Cursor};
use mainstay_model::{Error, EventBody, EventFilter, Position, Seq, SessionId};
#[expect(deprecated, reason = "clients of the older protocols say it")]
use rmcp::model::LoggingLevel;
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::logging::{Log, Threshold};
use super::resources::uri::{Address, Part};

/// The most resources that one connection, or one request, follows.
pub(super) const MOST: usize = 64;
/// How many events of a session are read back at most, to find those since a position.
const READ_BACK: u64 = 256;
/// The least time between two words of the same resource.
const PAUSE: Duration = Duration::from_millis(250);

/// What a connection follows.
#[derive(Default)]
pub(super) struct Subscriptions {
    /// By address, as it was given.
    resources: Mutex<BTreeMap<String, AbortOnDropHandle<()>>>,
    list: Mutex<Option<AbortOnDropHandle<()>>>,
    /// With the lowest level that is logged.
    log: tokio::sync::Mutex<Option<(AbortOnDropHandle<()>, Threshold)>>,
    accepted: Mutex<Accepted>,
}

/// The requests to listen that were accepted, and are not followed yet. The SDK acknowledges a request before it is followed, so what
/// changes in between must be told too.
#[derive(Default)]
struct Accepted {
    requests: usize,
    /// The newest position that was published when the first of them was accepted.
    since: Option<Position>,
}

impl Subscriptions {
    /// Follows a resource until it is let go of. One that is followed already is not followed twice.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`], and those of [`Subscribable::of`].
    pub(super) async fn follow(
        &self,
        client: &Client,
        (uri, address): (&str, &Address),
        tell: NotifyChange,
    ) -> Result<(), Error> {
        let followable = Subscribable::of(client, address, None).await?;
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        resources.retain(|_, task| !task.is_finished());
        if resources.len() >= MOST && !resources.contains_key(uri) {
            return Err(Error::TooManyRequests {
                what: "resources that are followed".to_owned(),
                limit: MOST,
            });
        }
        resources
            .entry(uri.to_owned())
            .or_insert_with(|| AbortOnDropHandle::new(tokio::spawn(followable.tell_of_changes(tell))));
        Ok(())
    }

    /// A request to listen is accepted, while this is the newest position that was published.
    pub(super) fn accept(&self, published: Option<Position>) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.requests += 1;
        accepted.since = accepted.since.or(published);
    }

    /// A request that was accepted is followed from now on. Returns the position since which changes are to be told.
    pub(super) fn listen(&self) -> Option<Position> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let since = accepted.since;
        accepted.requests = accepted.requests.saturating_sub(1);
        if accepted.requests == 0 {
            accepted.since = None;
        }
        since
    }

    /// Lets go of a resource.
    pub(super) fn let_go(&self, uri: &str) {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Follows the list of resources, once.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(super) async fn follow_list(&self, client: &Client, tell: NotifyChange) -> Result<(), Error> {
        let followable = Subscribable::list(client, None).await?;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.is_none() {
            *list = Some(AbortOnDropHandle::new(tokio::spawn(followable.tell_of_changes(tell))));
        }
        Ok(())
    }
}

/// How a client's log level is set and served.
impl Subscriptions {
    /// Logs from this level on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    #[expect(deprecated, reason = "clients of the older protocols say it")]
    pub(super) async fn follow_log(
        &self,
        client: &Client,
        peer: &Peer<RoleServer>,
        level: LoggingLevel,
    ) -> Result<(), Error> {
        let mut log = self.log.lock().await;
        if let Some((_, threshold)) = &*log {
            *threshold.lock().unwrap_or_else(PoisonError::into_inner) = level;
            return Ok(());
        }
        let threshold = Threshold::new(Mutex::new(level));
        let begun = Log::begin(client, peer, Threshold::clone(&threshold)).await?;
        *log = Some((AbortOnDropHandle::new(tokio::spawn(begun.follow())), threshold));
        Ok(())
    }
}

/// Says that something has changed; whether someone still hears it.
pub(super) type NotifyChange = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// What can be followed, from where it was found on.
pub(super) struct Subscribable {
    events: ClientSubscription,
    concerns: Relevance,
}

/// Which events change what is followed.
#[derive(Clone, Copy)]
enum Relevance {
    /// Which sessions there are, and what they are called.
    List,
    /// Also what they do.
    Sessions,
    Part(Part),
}

impl Subscribable {
    /// What has this address: its changes since a position, else from now on.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where its session may not be seen, [`Error::StoreFailed`].
    pub(super) async fn of(
        client: &Client,
        address: &Address,
        since: Option<Position>,
    ) -> Result<Self, Error> {
        match address {
            Address::Sessions => Self::all(client, Relevance::Sessions, since).await,
            Address::Session { session, part } => {
                let session = client.resolve(session).await?;
                let last = client.status(session).await?.session.last_seq;
                let after = match since {
                    Some(since) => last_before(client, session, last, since).await?,
                    None => last,
                };
                let events = client.subscribe(session, after).await?;
                Ok(Self { events, concerns: Relevance::Part(*part) })
            }
        }
    }

    /// The list of resources: its changes since a position, else from now on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(super) async fn list(client: &Client, since: Option<Position>) -> Result<Self, Error> {
        Self::all(client, Relevance::List, since).await
    }

    async fn all(client: &Client, concerns: Relevance, since: Option<Position>) -> Result<Self, Error> {
        let after = match since {
            Some(since) => since,
            None => client.last_position().await?,
        };
        let events = client.follow(Cursor::Log { after }, EventFilter::default()).await?;
        Ok(Self { events, concerns })
    }

    /// Says each change, several in a short time once, until what is followed is gone or nobody hears it.
    pub(super) async fn tell_of_changes(mut self, tell: NotifyChange) {
        let (mut has_changed, mut next) = (false, Instant::now());
        loop {
            tokio::select! {
                () = sleep_until(next), if has_changed => {
                    if !tell().await {
                        return;
                    }
                    (has_changed, next) = (false, Instant::now() + PAUSE);
                }
                event = self.events.next() => match event {
                    Ok(event) => has_changed |= self.concerns.are(&event.body),
                    // That it is gone is a change.
                    Err(_) => {
                        tell().await;
                        return;
                    }
                },
            }
        }
    }
}

/// The last event of a session up to a position. Where it is further back than is read, one that is older than that.
async fn last_before(
    client: &Client,
    session: SessionId,
    last: Seq,
    position: Position,
) -> Result<Seq, Error> {
    let oldest = Seq(last.0.saturating_sub(READ_BACK));
    let events = client.events(session, oldest, usize::try_from(READ_BACK).unwrap_or(usize::MAX)).await?;
    let before = events.iter().rev().find(|event| event.position <= position);
    Ok(before.map_or(oldest, |event| event.seq))
}

impl Relevance {
    fn are(self, body: &EventBody) -> bool {
        let is_output = matches!(body, EventBody::OutputProduced { .. } | EventBody::MessageStreamed(_));
        match self {
            Self::List => matches!(
                body,
                EventBody::SessionCreated { .. }
                    | EventBody::SessionRenamed { .. }
                    | EventBody::SessionDeleted
            ),
            Self::Part(Part::Events { .. }) => true,
            Self::Sessions | Self::Part(Part::Status) => !is_output,
            Self::Part(Part::Transcript { .. } | Part::Cell { .. } | Part::Diagnostics) => {
                body.job_end().is_some()
                    || matches!(
                        body,
                        EventBody::MessageAdded(_)
                            | EventBody::TranscriptCompacted(_)
                            | EventBody::EntriesMerged(_)
                            | EventBody::SessionReset
                            | EventBody::SessionHardReset
                            | EventBody::SessionDeleted
                    )
            }
        }
    }
}
