//! Sessions of which nothing but their events' places matters.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstay_log::{Append, Epoch, NewEvent};
use mainstay_model::{
    Event, EventBody, Metadata, Position, Seq, Session, SessionId, SessionKind, Source, Timestamp,
};
use tokio::sync::{oneshot, watch};
use tracing::Span;
use uuid::Uuid;

use super::memory_log::MemoryLog;
use crate::commit::CommitReceivers;
use crate::retry::Retry;
use crate::session::Ending;
use crate::sync::atomic::AtomicU64;

pub(super) fn session(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn append(session: SessionId, first: Seq, events: u64) -> Append {
    let (at, projection) = (Timestamp::UNIX_EPOCH, projection(session));
    let events = (0..events).map(|_| NewEvent { at, metadata: nobody(), body: body() }).collect();
    let (epoch, outcomes, version) = (Epoch::FIRST, Vec::new(), projection.version);
    let (taken, trace) = (None, Span::none());
    Append { session, epoch, first, events, outcomes, version, projection, taken, trace }
}

pub(super) fn projection(session: SessionId) -> Session {
    let (seq, position, at) = (Seq(1), Position(1), Timestamp::UNIX_EPOCH);
    Session::begin(&Event { session, seq, position, at, metadata: nobody(), body: body() }).unwrap()
}

fn nobody() -> Metadata {
    Metadata { source: Source::System, correlation: None, causation: None, environment: None }
}

/// What happens is of no matter here.
fn body() -> EventBody {
    let (name, working_directory) = (String::new(), String::new());
    EventBody::SessionCreated {
        kind: SessionKind::fsharp(),
        name,
        working_directory,
        project: None,
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    }
}

impl CommitReceivers {
    /// There is no task that hears.
    pub(super) fn by_nobody(before: Arc<Session>) -> Self {
        let (visible, through, failed) =
            (watch::channel(before).0, watch::channel(0).0, oneshot::channel().0);
        // One more than a test sends.
        let on_their_way = Arc::new(AtomicU64::new(u64::MAX / 2));
        Self { visible, on_their_way, durable: Arc::default(), through, failed, ending: Ending::default() }
    }
}

impl Retry {
    /// There is no store in which anything is tried again.
    pub(super) fn never() -> Self {
        Self::new(Weak::<MemoryLog>::new(), Duration::ZERO)
    }
}
