//! What a refresh of a session would run again, for a client that asks before it refreshes.

use mainstay_model::reload::FullReplayReason;
use mainstay_model::{Error, Seq, SessionId};
use tokio::sync::oneshot;

use super::Client;
use crate::reload::{Planned, plan_reload};
use crate::session::Request;
use crate::warm_up::what_to_replay;

/// What a refresh of a session would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloading {
    /// The submissions that would run again in the worker that is there, by the events that accepted them; or why a new worker would
    /// run all of them.
    pub in_place: Result<Vec<Seq>, FullReplayReason>,
    /// How many a rebuilding runs.
    pub of: u32,
}

impl Client {
    /// What a refresh of a session would do now.
    ///
    /// # Errors
    /// As [`Client::validity`].
    pub async fn reloading(&self, session: SessionId) -> Result<Reloading, Error> {
        let session = self.visible_session(session).await?;
        let shared = &self.engine().shared;
        let (reply, kernel) = oneshot::channel();
        let handle = self.engine().handle(session.id).await?;
        handle.send(Request::Kernel { reply }).await;
        let planned = match kernel.await.ok().flatten() {
            Some(kernel) => {
                plan_reload(shared.log.as_ref(), &shared.watch, &shared.limits, &session, kernel.as_ref())
                    .await?
            }
            None => Err(FullReplayReason::NoWorker),
        };
        Ok(match planned {
            Ok(Planned { items, of }) => {
                let in_place = items.into_iter().map(|part| part.item.requested).collect();
                Reloading { in_place: Ok(in_place), of }
            }
            Err(why) => {
                let replay = what_to_replay(shared.log.as_ref(), &session).await?;
                let of = u32::try_from(replay.items.len()).unwrap_or(u32::MAX);
                Reloading { in_place: Err(why), of }
            }
        })
    }
}
