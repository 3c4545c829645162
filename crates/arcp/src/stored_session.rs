//! What is stored of a session, so that its client can resume it, also under the next daemon.
//!
//! It is where the fold of the session's jobs begins, and what the session subscribed to. All else is in the log.

use jiff::SignedDuration;
use mainstay_engine::Client;
use mainstay_log::ResumableConnection;
use mainstay_model::{CommandId, Error, Position, SessionId, Timestamp};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The name of the protocol among the stored connections.
pub(crate) const PROTOCOL: &str = "arcp";

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredSession {
    /// The name of the session.
    #[serde(skip)]
    pub(crate) id: String,
    /// When the session was opened.
    #[serde(skip)]
    pub(crate) opened_at: Timestamp,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Base {
    /// The last event before it.
    pub(crate) position: Position,
    /// The number of the last message before it.
    pub(crate) seq: u64,
    /// The jobs that are told of further.
    pub(crate) jobs: Vec<JobAtBase>,
}

/// A place in the fold from which it may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(crate) submitted_at: Timestamp,
    pub(crate) trace: String,
    /// The number of the last message about it.
    pub(crate) last_seq: u64,
    /// What an agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<String>,
}

/// A change of what a session is told of, beside the jobs that it submits: another's job, or one of its own that had ended when it was submitted
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Join {
    /// The event behind which the change was made.
    pub(crate) at: Position,
    pub(crate) job: CommandId,
    pub(crate) change: Change,
}

/// What became of a job for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    },
    /// The session is told no more of it.
    Left,
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
    After {
        /// The place of the event.
        position: Position,
        /// The number of the message among those of the event.
        index: u16,
    },
    /// Only how it ended, where it has.
    End,
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

impl StoredSession {
    /// A session that begins here, and the token for it.
    pub(crate) fn open(
        id: String,
        client: String,
        features: Vec<String>,
        chunk_bytes: usize,
        since: Position,
        now: Timestamp,
    ) -> (Self, ResumeToken) {
        let token = ResumeToken::random();
        let stored = Self {
            id,
            opened_at: now,
            token: ResumeToken::hash(&token.0),
            previous_token: None,
            client,
            features,
            chunk_bytes,
            base: Base { position: since, seq: 0, jobs: Vec::new() },
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
        Ok(live.and_then(Self::of))
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

    /// Notes that the client has the newest token; false where that was known.
    pub(crate) fn has_newest_token(&mut self) -> bool {
        self.previous_token.take().is_some()
    }

    /// Where the fold begins for a client that has the messages up to this number.
    pub(crate) fn mark_for(&self, seq: u64) -> Mark {
        let resumed_at = self.resumed_at.as_ref().filter(|mark| mark.base.seq <= seq);
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
