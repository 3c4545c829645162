//! What is stored of a session, so that its client can resume it, also under the next daemon.
//!
//! It is where the fold of the session's jobs begins, and what the session subscribed to. All else is in the log.

use jiff::SignedDuration;
use mainstay_arcp_protocol::Dialect;
use mainstay_engine::Client;
use mainstay_log::ResumableConnection;
use mainstay_model::{Error, Position, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cancelled_streams::CancelledStreams;
use crate::fold_place::{Base, Counted, Mark, Reached};
use crate::late_spans::LateSpans;
use crate::live_sessions::LiveSessions;
use crate::new_id::new_ulid;
use crate::observer::Observer;
use crate::resume_token::{ResumeToken, is_same};
use crate::session_change::{Change, Join};
use crate::settings::NAME_CHARS;

/// The name of the protocol among the stored connections.
pub(crate) const PROTOCOL: &str = "arcp";

/// The version of what is told of an event, and so of the numbers. A session that was told by another version is not resumed.
pub(crate) const FOLD_VERSION: u32 = 2;

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredSession {
    /// The name of the session.
    #[serde(skip)]
    pub(crate) id: String,
    /// When the session was opened.
    #[serde(skip)]
    pub(crate) opened_at: Timestamp,
    /// The dialect that its client speaks.
    pub(crate) dialect: Dialect,
    /// The version of what is told of an event.
    fold_version: u32,
    /// How many messages there were up to a place that the fold had come to.
    #[serde(default)]
    pub(crate) counted: Option<Counted>,
    /// The hash of the token with which it can be resumed.
    token: String,
    /// The hash of the token before, while it is not known that the client has the newer one: a connection may be lost on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_token: Option<String>,
    /// What the client calls itself.
    pub(crate) client: String,
    /// The features that both sides have. They stay as they were when it was opened: what is told, and so its numbers, depends on them.
    pub(crate) features: Vec<String>,
    /// The largest part of a result, in bytes, for the same reason.
    pub(crate) chunk_bytes: usize,
    /// Where the fold of its jobs begins: at the latest behind what the client has acknowledged.
    pub(crate) base: Base,
    /// Where it may begin for a client that has as much as when it resumed last. It need not have: what is not acknowledged may be wanted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resumed_at: Option<Mark>,
    /// The changes of what it is told of, in order, as far as they are behind the base.
    #[serde(default)]
    pub(crate) joins: Vec<Join>,
    /// Which messages were told later than others of higher numbers.
    #[serde(default, skip_serializing_if = "LateSpans::is_empty")]
    pub(crate) late: LateSpans,
    /// The streams of which its client wants to be told no more.
    #[serde(default, skip_serializing_if = "CancelledStreams::is_empty")]
    pub(crate) cancelled_streams: CancelledStreams,
    /// Whether its client closed it.
    #[serde(default)]
    pub(crate) is_closed: bool,
}

/// What a client opens a session with.
pub(crate) struct Opening {
    /// What the client calls itself.
    pub(crate) client: String,
    /// The features that both sides have.
    pub(crate) features: Vec<String>,
    /// The largest part of a result, in bytes.
    pub(crate) chunk_bytes: usize,
    /// The event behind which it begins.
    pub(crate) since: Position,
}

impl StoredSession {
    /// A session of a client that begins here, and the token for it.
    pub(crate) fn open(dialect: Dialect, opening: Opening, now: Timestamp) -> (Self, ResumeToken) {
        let Opening { client, features, chunk_bytes, since } = opening;
        let token = ResumeToken::random();
        let base = Base { position: since, seq: 0, jobs: Vec::new(), observers: Vec::new() };
        let stored = Self {
            id: format!("sess_{}", new_ulid()),
            opened_at: now,
            dialect,
            fold_version: FOLD_VERSION,
            counted: None,
            token: ResumeToken::hash(&token.0),
            previous_token: None,
            client: client.chars().take(NAME_CHARS).collect(),
            features,
            chunk_bytes,
            base,
            resumed_at: None,
            joins: Vec::new(),
            late: LateSpans::default(),
            cancelled_streams: CancelledStreams::default(),
            is_closed: false,
        };
        (stored, token)
    }

    /// The session of this name of the client's principal; none where it cannot be resumed at this moment.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(crate) async fn find(client: &Client, id: &str, now: Timestamp) -> Result<Option<Self>, Error> {
        let found = client.stored_connection(id).await?;
        let live = found.filter(|found| found.protocol == PROTOCOL && found.expires_at > now);
        Ok(live.and_then(Self::of).filter(|stored| stored.fold_version == FOLD_VERSION))
    }

    /// Removes the sessions of the client's principal that were opened first and that nobody has, so that there is room for more. There may be a tenth
    /// more than allowed, since not each that is opened looks at all others.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(crate) async fn make_room(
        client: &Client,
        live: &LiveSessions,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(_turn) = live.turn_to_look(limit / 10).await else { return Ok(()) };
        let newest_first = client.stored_connections(PROTOCOL).await?;
        let current = newest_first.into_iter().filter(|connection| connection.expires_at > now);
        for connection in current.skip(limit.saturating_sub(1)) {
            if !live.has(&connection.id) {
                client.store_connection(ResumableConnection { expires_at: now, ..connection }).await?;
            }
        }
        Ok(())
    }

    /// Of what the store has.
    pub(crate) fn of(stored: ResumableConnection) -> Option<Self> {
        let ResumableConnection { id, opened_at, state, .. } = stored;
        let session: Self = serde_json::from_value(state).ok()?;
        Some(Self { id, opened_at, ..session })
    }

    /// Whether this is a token with which it can be resumed. It takes the same time wherever they differ.
    pub(crate) fn is_token(&self, shown: &str) -> bool {
        let shown = ResumeToken::hash(shown);
        let is_it = |token: &String| is_same(token, &shown);
        is_it(&self.token) | self.previous_token.as_ref().is_some_and(is_it)
    }

    /// A token in the place of the one that was shown, which is good until the client is known to have the new one.
    pub(crate) fn rotate(&mut self, shown: &str) -> ResumeToken {
        let token = ResumeToken::random();
        self.previous_token = Some(ResumeToken::hash(shown));
        self.token = ResumeToken::hash(&token.0);
        token
    }

    /// A token in the place of those before.
    pub(crate) fn new_token(&mut self) -> ResumeToken {
        let token = ResumeToken::random();
        (self.token, self.previous_token) = (ResumeToken::hash(&token.0), None);
        token
    }

    /// Notes that the client has the newest token; false where that was known.
    pub(crate) fn has_newest_token(&mut self) -> bool {
        self.previous_token.take().is_some()
    }

    /// Where the fold begins for a client that has so much.
    pub(crate) fn mark_for(&self, reached: &Reached) -> Mark {
        let resumed_at = self.resumed_at.as_ref().filter(|mark| reached.is_behind(&mark.base));
        resumed_at.cloned().unwrap_or_else(|| Mark { base: self.base.clone(), joined: 0 })
    }

    /// Has the fold begin at this mark for all clients: what is before it was acknowledged.
    pub(crate) fn advance(&mut self, Mark { base, joined }: Mark) {
        self.joins.drain(..joined);
        self.resumed_at = self
            .resumed_at
            .take()
            .filter(|mark| mark.base.seq > base.seq)
            .map(|mark| Mark { joined: mark.joined - joined, ..mark });
        self.late.forget(base.seq);
        self.base = base;
    }

    /// Has the fold begin here, whatever was before.
    pub(crate) fn begin_anew(&mut self, base: Base) {
        (self.base, self.joins, self.resumed_at, self.counted) = (base, Vec::new(), None, None);
        self.late = LateSpans::default();
    }

    /// Those who observe jobs once all changes are made.
    pub(crate) fn observers(&self) -> Vec<Observer> {
        let mut observers = self.base.observers.clone();
        for join in &self.joins {
            match &join.change {
                Change::Observed { observer, .. } => observers.push(observer.clone()),
                Change::ObserverEnded { subscription } | Change::ObserverOverflowed { subscription, .. } => {
                    observers.retain(|observer| observer.subscription != *subscription);
                }
                Change::Joined { .. } | Change::Left { .. } => {}
            }
        }
        observers
    }

    /// Stores it, to be resumed for so long.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(crate) async fn store(
        &self,
        client: &Client,
        now: Timestamp,
        window: SignedDuration,
    ) -> Result<(), Error> {
        let connection = ResumableConnection {
            id: self.id.clone(),
            principal: client.principal().clone(),
            protocol: PROTOCOL.to_owned(),
            opened_at: self.opened_at,
            expires_at: now.checked_add(window).unwrap_or(Timestamp::MAX),
            state: json!(self),
        };
        client.store_connection(connection).await
    }
}
