//! Code that still runs though the connection which sent it has left, such as an endless loop of an agent that was killed, and what has ended
//! since then, told to nobody. The first answer on a connection says so: whoever comes next would else find a session that is busy, or changed,
//! and not know why.

use std::fmt::{Display, Formatter};

use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Session, Source, Timestamp};

use super::call::Call;
use super::get_result::GetResult;
use super::names::Names;
use super::running_calls::RunningCall;
use mainstay_gateway::view::orphaned_view;
use mainstay_protocol::view::Orphaned;

/// Among how many live sessions such code is looked for.
const LOOKED_AT: usize = 100;

/// How many ends are told of at most.
const ENDED: usize = 5;

/// What was left behind in a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Orphan {
    /// The call is still running.
    Running {
        /// The session of the call.
        session: String,
        /// What its client called itself.
        by: String,
        /// How many seconds it has run.
        seconds: i64,
    },
    /// It has ended, and nobody was told.
    Ended {
        /// The session of the call.
        session: String,
        /// What its client called itself.
        by: String,
        /// The tool that was called.
        tool: String,
        /// The id for `get_result`.
        id: String,
        /// Whether it did what it was for.
        success: bool,
    },
}

impl Orphan {
    fn running(client: &Client, session: &Session, now: Timestamp) -> Option<Self> {
        let Orphaned { by, requested_at } = orphaned_view(client, session)?;
        let seconds = now.duration_since(requested_at).as_secs().max(0);
        Some(Self::Running { session: session.id.short(), by, seconds })
    }

    async fn ended(client: &Client, call: &RunningCall, folder: Option<&str>) -> Option<Self> {
        let session = client.status(call.session()?).await.ok()?.session;
        let Source::Client { name, .. } = call.source() else { return None };
        let is_here = folder.is_none_or(|folder| session.working_directory == folder);
        is_here.then(|| Self::Ended {
            session: session.id.short(),
            by: name.clone(),
            tool: call.tool.clone(),
            id: call.command().to_string(),
            success: matches!(call.end(), Some(Ok(result)) if result.is_error != Some(true)),
        })
    }
}

impl Display for Orphan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running { session, by, seconds } => write!(
                f,
                "note: code that {by} sent {seconds} s ago still runs in session {session}, and its client is gone; cancel_eval with \
                 sessionId {session} stops it"
            ),
            Self::Ended { session, by, tool, id, success } => {
                let ending = if *success { "ok" } else { "failed" };
                let get_result = Names::Neutral.of::<GetResult>();
                write!(
                    f,
                    "note: {tool} of {by}, whose client is gone, has ended in session {session}, {ending}: {get_result} {id} tells it"
                )
            }
        }
    }
}

/// What the first answer on a connection says of code that others left behind; nothing in any later one.
pub(super) async fn left_behind(call: &Call) -> Vec<Orphan> {
    // Requests that stand each for itself would all be the first.
    let server = call.server();
    if (call.is_of_newest() && !server.is_connection()) || !server.first_answer.take() {
        return Vec::new();
    }
    // The answer itself does not depend on it.
    orphans(call).await.unwrap_or_default()
}

/// What was left behind in the sessions of the client's folder, or in all where none is known: what still runs, as far as the client may
/// stop it, and what of its principal has ended untold.
async fn orphans(call: &Call) -> Result<Vec<Orphan>, Error> {
    let client = call.client();
    let mut orphans = Vec::new();
    for left in call.calls().left_by_gone(client.principal()) {
        if orphans.len() < ENDED && call.is_in_turn(&left.tool) {
            orphans.extend(Orphan::ended(client, &left, call.folder()).await);
        }
    }
    let filter = SessionFilter {
        working_directory: call.folder().map(str::to_owned),
        live: true,
        limit: Some(LOOKED_AT),
        ..SessionFilter::default()
    };
    let (sessions, now) = (client.sessions(filter).await?, Timestamp::now());
    let driven = sessions.iter().filter(|session| client.drives(session));
    orphans.extend(driven.filter_map(|session| Orphan::running(client, session, now)));
    Ok(orphans)
}
