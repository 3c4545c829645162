//! Events: pages of them, subscriptions, and the notifications that carry them.

use mainstay_model::{Event, EventFilter, Live, Position, Seq, SessionId};
use mainstay_runner::WarmUpProgress;
use serde::{Deserialize, Serialize};

operations! {
    /// Sends what is going on in a session as `session/live` notifications, from now on and before events say it. Who reads too slowly
    /// misses some of them; events say it all.
    "session/listen" Listen {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Subscribed;

    /// A page of a session's events.
    "session/events" ListEvents {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those after this one.
        #[serde(default)]
        after: Seq,
        /// At most so many, at most 1000; a page of large events ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<Event>;

    /// A page of the events of all sessions, in the order of the log.
    "log/events" ListAllEvents {
        /// Those after this position.
        #[serde(default)]
        after_position: Position,
        /// At most so many, at most 1000; a page of large events ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<Event>;

    /// Sends every event after a cursor that the filter lets through as a `session/event` notification, then live ones, and of
    /// one session, as `session/warmUp`, how far it is while it is given its definitions back. With
    /// `session` the cursor is `after`, a seq of that session; without, it is `afterPosition`, and all sessions are meant.
    "session/subscribe" Follow {
        /// Its id, the end of it, or its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Those after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Seq>,
        /// Those after this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_position: Option<Position>,
        /// The events that are wanted.
        #[serde(flatten)]
        filter: EventFilter,
    } -> Subscribed;
}

impl Follow {
    /// All events of one session after a cursor.
    pub fn session(session: impl Into<String>, after: Seq) -> Self {
        let session = Some(session.into());
        Self { session, after: Some(after), after_position: None, filter: EventFilter::default() }
    }
}

/// The name of the notification that carries an event.
pub const EVENT_NOTIFICATION: &str = "session/event";

/// The name of the notification that carries a piece of what is going on.
pub const LIVE_NOTIFICATION: &str = "session/live";

/// A piece of what is going on in a session. It is stored nowhere: what it says is in an event sooner or later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveNotice {
    /// The session that produced the output.
    pub session: SessionId,
    /// The output that was not yet stored.
    #[serde(flatten)]
    pub live: Live,
}

/// The name of the notification that says how far a session is that is given its definitions back. Who follows one session
/// gets the newest of them, ten a second at most. It is stored nowhere: that a session is ready is an event.
pub const WARM_UP_NOTIFICATION: &str = "session/warmUp";

/// How far a session is that is given its definitions back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WarmUpNotice {
    /// The session that warms up.
    pub session: SessionId,
    /// How far; none once it is not given them any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<WarmUpProgress>,
}

/// The subscription that now runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// Its session; none where all are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}
