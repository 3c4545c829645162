//! Code that still runs though the connection which sent it has left, such as an endless loop of an agent that was killed. The first answer
//! on a connection says so: whoever comes next would else find a session that is busy, and not know why.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Session, Timestamp};

use crate::view::Orphaned;

/// Among how many live sessions such code is looked for.
const LOOKED_AT: usize = 100;

/// Whether a connection has been told.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstAnswer(Arc<AtomicBool>);

impl FirstAnswer {
    /// Whether this is the first answer; from now on none is.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// What still runs in a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    session: String,
    by: String,
    seconds: i64,
}

impl Orphan {
    fn of(client: &Client, session: &Session, now: Timestamp) -> Option<Self> {
        let Orphaned { by, requested_at } = Orphaned::seen_by(client, session)?;
        let seconds = now.duration_since(requested_at).as_secs().max(0);
        Some(Self { session: session.id.short(), by, seconds })
    }
}

impl Display for Orphan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session, by, seconds } = self;
        write!(
            f,
            "note: code that {by} sent {seconds} s ago still runs in session {session}, and its client is gone; cancel_eval with \
             sessionId {session} stops it"
        )
    }
}

/// What still runs in the sessions of a folder, or in all where none is known, as far as the client may stop it.
pub(super) async fn orphans(client: &Client, folder: Option<String>) -> Result<Vec<Orphan>, Error> {
    let filter = SessionFilter {
        working_directory: folder,
        live: true,
        limit: Some(LOOKED_AT),
        ..SessionFilter::default()
    };
    let (sessions, now) = (client.sessions(filter).await?, Timestamp::now());
    let driven = sessions.iter().filter(|session| client.drives(session));
    Ok(driven.filter_map(|session| Orphan::of(client, session, now)).collect())
}
