//! What is stored of a session, so that its client can resume it, also under the next daemon.
//!
//! It is where the fold of the session's jobs begins, and what the session subscribed to. All else is in the log.

use jiff::SignedDuration;
use mainstay_arcp_protocol::Dialect;
use mainstay_engine::Client;
use mainstay_log::ResumableConnection;
use mainstay_model::{AskId, CommandId, Error, Position, Seq, SessionId, Timestamp};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::job_origin::JobOrigin;
use crate::live_sessions::LiveSessions;
use crate::new_id::new_ulid;
use crate::observer::Observer;
use crate::settings::NAME_CHARS;

/// The name of the protocol among the stored connections.
pub(crate) const PROTOCOL: &str = "arcp";

/// The version of what is told of an event, and so of the numbers. A session that was told by another version is not resumed.
pub(crate) const FOLD_VERSION: u32 = 1;

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
    /// Which jobs of others it was told of from where on, in order, as far as that is behind the base.
    #[serde(default)]
    pub(crate) joins: Vec<Join>,
    /// Whether its client closed it.
    #[serde(default)]
    pub(crate) is_closed: bool,
}

/// A place in the fold of a session's jobs, with what the fold knows there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Base {
    /// The last event before it.
    pub(crate) position: Position,
    /// The number of the last message before it.
    pub(crate) seq: u64,
    /// The jobs that are told of further.
    pub(crate) jobs: Vec<JobAtBase>,
    /// Those who observe jobs from here on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) observers: Vec<Observer>,
}

/// How many messages a session had been told up to a place. Where the fold counts others there when the log is read again, events have vanished,
/// or are seen no more, and its numbers are not those that the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    pub(crate) position: Position,
    /// The joins that the fold had come to.
    pub(crate) joined: usize,
    pub(crate) seq: u64,
}

/// What a client has of what its session was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// All messages up to this number.
    Seq(u64),
    /// All messages there are.
    All,
    /// All up to this message, whose place may be known.
    Message { id: String, place: Option<Place> },
}

impl Reached {
    /// Whether the client surely has all that was told up to this place in the fold.
    fn is_behind(&self, base: &Base) -> bool {
        match self {
            Self::Seq(seq) => base.seq <= *seq,
            Self::All => true,
            Self::Message { place, .. } => place.is_some_and(|place| base.position < place.position),
        }
    }
}

/// A place in the fold from which it may begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mark {
    pub(crate) base: Base,
    /// The joins that the fold has come to.
    pub(crate) joined: usize,
}

/// A job that has not ended at a place in the fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobAtBase {
    pub(crate) job: CommandId,
    /// The session of the engine in which it runs.
    pub(crate) home: SessionId,
    /// Whether this session submitted it.
    pub(crate) is_own: bool,
    /// What it asks, and is not answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asks: Vec<AskId>,
    /// What was told of it; none where it was only joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<ToldAtBase>,
}

/// What was told of a job before a place in the fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToldAtBase {
    /// Whether it has begun to run.
    pub(crate) has_begun: bool,
    /// Whether it is work that an agent may think about, and no code.
    #[serde(default)]
    pub(crate) is_conversation: bool,
    pub(crate) submitted_at: Timestamp,
    pub(crate) origin: JobOrigin,
    /// The number of the last message about it.
    pub(crate) last_seq: u64,
    /// What an agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_text: Option<String>,
}

/// A change of what a session is told of, beside the jobs that it submits: another's job, or one of its own that had ended when it was submitted
/// again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Join {
    /// The event behind which the change was made.
    pub(crate) at: Position,
    /// The job that it is about; none where it is about an observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<CommandId>,
    /// The message that asked for it, which may come twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    pub(crate) change: Change,
}

/// What became of a job for a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Change {
    /// The session is told of the job from there on.
    Joined {
        /// The session of the engine in which the job runs.
        home: SessionId,
        /// What is told of what happened before.
        history: History,
        /// Whether the session submitted the job too.
        is_own: bool,
        /// Whether the job ran already.
        #[serde(default)]
        has_begun: bool,
        /// As what the session is told of it, where that is its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<ToldAtBase>,
    },
    /// The session is told no more of it.
    Left,
    /// The session is told of all jobs that an observer wants, from there on.
    Observed {
        observer: Observer,
        /// The place of the message behind which it begins, where that was before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Place>,
        /// The jobs that were under way then.
        jobs: Vec<JobUnderWay>,
    },
    /// A subscription of an observer has ended.
    ObserverEnded { subscription: String },
}

/// A job that was under way when a session began to be told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobUnderWay {
    pub(crate) job: CommandId,
    /// The session of the engine that has it.
    pub(crate) home: SessionId,
    /// The event that accepted it, or that began it.
    pub(crate) from: Seq,
}

/// What is told of what happened to a job before it was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum History {
    /// Nothing of it is told.
    Nothing,
    /// All of it is told.
    All,
    /// What was told after this message of the event at this place is told.
    After(Place),
    /// Only how it ended, where it has.
    End,
}

/// The place of a message: an event, and the number of the message among those of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) index: u16,
}

/// A token that lets its holder resume a session.
pub(crate) struct ResumeToken(pub(crate) String);

impl ResumeToken {
    /// A new token of 192 random bits.
    fn random() -> Self {
        let mut bytes = [0; 24];
        rand::rng().fill_bytes(&mut bytes);
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("rt_{digits}"))
    }

    fn hash(shown: &str) -> String {
        blake3::Hasher::new_derive_key("mainstay arcp resume token 1")
            .update(shown.as_bytes())
            .finalize()
            .to_hex()
            .to_string()
    }
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

    /// Removes the sessions of the client's principal that were opened first and that nobody has, so that there is room for one more.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(crate) async fn make_room(
        client: &Client,
        live: &LiveSessions,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
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
        self.base = base;
    }

    /// Has the fold begin here, whatever was before.
    pub(crate) fn begin_anew(&mut self, base: Base) {
        (self.base, self.joins, self.resumed_at, self.counted) = (base, Vec::new(), None, None);
    }

    /// Those who observe jobs once all changes are made.
    pub(crate) fn observers(&self) -> Vec<Observer> {
        let mut observers = self.base.observers.clone();
        for join in &self.joins {
            match &join.change {
                Change::Observed { observer, .. } => observers.push(observer.clone()),
                Change::ObserverEnded { subscription } => {
                    observers.retain(|observer| observer.subscription != *subscription);
                }
                Change::Joined { .. } | Change::Left => {}
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

/// Compares two hashes in a time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differ = |all: u8, (a, b): (u8, u8)| all | (a ^ b);
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, differ) == 0
}
