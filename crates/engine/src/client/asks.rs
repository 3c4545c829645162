//! The asks that wait for an answer in the sessions that a client may see.

use mainstay_log::SessionFilter;
use mainstay_model::{Error, PendingAsk, Session};

use super::Client;

/// An ask that waits for an answer, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingAsk {
    /// The session that waits for the answer.
    pub session: Session,
    /// The ask that waits.
    pub pending: PendingAsk,
}

impl Client {
    /// The asks that wait for an answer, those of the most recently active session first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn asks(&self) -> Result<Vec<WaitingAsk>, Error> {
        let sessions = self.sessions(SessionFilter { asks: true, ..SessionFilter::default() }).await?;
        let asks = |mut session: Session| {
            let pending = std::mem::take(&mut session.asks);
            pending.into_iter().map(move |pending| WaitingAsk { session: session.clone(), pending })
        };
        Ok(sessions.into_iter().flat_map(asks).collect())
    }

    /// The ask that waits and has this id, or the end of it.
    ///
    /// # Errors
    /// [`Error::AskNotPending`], [`Error::StoreFailed`].
    pub async fn ask(&self, reference: &str) -> Result<WaitingAsk, Error> {
        let asks = self.asks().await?;
        let mut found = asks.into_iter().filter(|waiting| waiting.pending.ask.ask.answers_to(reference));
        match (found.next(), found.next()) {
            (Some(waiting), None) => Ok(waiting),
            (Some(_), Some(_)) => Err(Error::InvalidArgument {
                argument: "ask".to_owned(),
                reason: format!("`{reference}` is the end of several ids; give more digits"),
            }),
            (None, _) => Err(Error::AskNotPending { reference: reference.to_owned() }),
        }
    }
}
