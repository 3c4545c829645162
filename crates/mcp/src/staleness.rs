//! What a session's results rest on and is not any more as the session has it: said in every answer that shows some of them.

use std::fmt::{Display, Formatter};

use mainstay_engine::RefreshOutlook;
use mainstay_model::{Error, SessionId};
use serde::Serialize;

use super::call::Call;
use super::names::Names;
use super::rebuild::HardResetSession;
use super::refresh::RefreshSession;

/// What has changed since a session took it in.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Staleness {
    /// The names of files that have another content now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
    /// The names of files that are not there any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    /// What of its project no build has taken in, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    unbuilt: Option<String>,
    #[serde(skip)]
    names: Names,
}

impl Staleness {
    /// None where the session has all as it is now.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`].
    pub(super) async fn of(call: &Call, session: SessionId) -> Result<Option<Self>, Error> {
        let RefreshOutlook { changed, gone, is_outdated: _ } = call.client().outlook(session).await?;
        let session = call.client().status(session).await?.session;
        let unbuilt = session.unbuilt_words();
        let is_stale = !changed.is_empty() || !gone.is_empty() || unbuilt.is_some();
        Ok(is_stale.then(|| Self { changed, gone, unbuilt, names: call.names() }))
    }
}

impl Display for Staleness {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { changed, gone, unbuilt, names } = self;
        let mut lines = Vec::new();
        if !changed.is_empty() {
            let refresh = names.of::<RefreshSession>();
            lines.push(format!(
                "stale: the session has {} as it was before it changed; call {refresh}",
                changed.join(", ")
            ));
        }
        if !gone.is_empty() {
            lines.push(format!("stale: the session has {}, which is gone", gone.join(", ")));
        }
        if let Some(unbuilt) = unbuilt {
            let rebuild = names.of::<HardResetSession>();
            lines.push(format!("stale: {unbuilt}; call {rebuild} with rebuild and keep"));
        }
        f.write_str(&lines.join("\n"))
    }
}
