//! How a client of dialect A observes jobs, whoever submitted them. Source: draft-arcp-01, 13.

use mainstay_arcp_protocol::a::control::Ack;
use mainstay_arcp_protocol::a::subscription::{Filter, Subscribe, SubscribeAccepted, Unsubscribe};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::{Error, SessionId, Timestamp};

use super::{A, errors, ids};
use crate::job_origin::{JobOrigin, trace_of_job};
use crate::job_outcome::JobState;
use crate::new_id::new_ulid;
use crate::observer::Observer;
use crate::session::Session;
use crate::stored_session::{Change, JobAtBase, StoredSession, ToldAtBase};
use crate::under_way::UnderWay;

impl Session<A> {
    /// Observes what a filter lets through.
    pub(super) async fn subscribe(&mut self, id: &str, subscribe: Subscribe) -> Result<(), Error> {
        let filter = subscribe.filter.unwrap_or(ANY);
        if let Some(hidden) = self.hidden_session(&filter).await? {
            let reason = format!("the session {hidden} is not there, or may not be observed");
            self.nack(id, errors::nack(ErrorCode::PermissionDenied, reason)).await;
            return Ok(());
        }
        let limit = self.settings.subscriptions;
        if self.teller.observers().len() >= limit {
            let error = Error::TooManyRequests { what: "subscriptions".to_owned(), limit };
            self.nack(id, errors::of_error(&error)).await;
            return Ok(());
        }
        let after = subscribe.since.and_then(|since| since.after_message_id);
        let since = match after.as_deref().map(ids::place_of) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                let reason = "`since` wants the id of a message that tells of a job, which begins with evt_";
                self.nack(id, errors::nack(ErrorCode::DataLoss, reason)).await;
                return Ok(());
            }
        };
        let observer =
            Observer { subscription: format!("sub_{}", new_ulid()), since: Timestamp::now(), filter };
        // The jobs that are under way are found once all before is told.
        self.reach_the_end().await?;
        let under_way = self.under_way_elsewhere().await?;
        let jobs = under_way.into_iter().filter_map(|job| observed(&observer, job)).collect();
        let subscription = observer.subscription.clone();
        match self.store_change(None, None, Change::Observed { observer, since, jobs }).await {
            Err(error @ Error::TooManyRequests { .. }) => {
                self.nack(id, errors::of_error(&error)).await;
                return Ok(());
            }
            stored => stored?,
        }
        self.answer(id, Message::SubscribeAccepted(SubscribeAccepted { subscription_id: subscription }))
            .await;
        self.apply_joins(self.position).await
    }

    /// A session that a filter names, and that this principal may not observe.
    async fn hidden_session(&self, filter: &Filter) -> Result<Option<String>, Error> {
        for name in filter.session_id.iter().flatten() {
            let is_seen = match name.parse::<SessionId>() {
                Ok(session) => self.client.seen_session(session).await?.is_some(),
                Err(_) => StoredSession::find(&self.client, name, Timestamp::now()).await?.is_some(),
            };
            if !is_seen {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    pub(super) async fn unsubscribe(
        &mut self,
        id: &str,
        named: Option<String>,
        unsubscribe: Unsubscribe,
    ) -> Result<(), Error> {
        let subscription = unsubscribe.subscription_id.or(named).unwrap_or_default();
        if !self.teller.observers().iter().any(|observer| observer.subscription == subscription) {
            let reason = format!("there is no subscription {subscription}");
            self.nack(id, errors::nack(ErrorCode::NotFound, reason)).await;
            return Ok(());
        }
        self.store_change(None, None, Change::ObserverEnded { subscription }).await?;
        self.apply_joins(self.position).await?;
        self.answer(id, Message::Ack(Ack { details: None })).await;
        Ok(())
    }
}

/// A filter that lets everything through.
const ANY: Filter = Filter {
    session_id: None,
    trace_id: None,
    job_id: None,
    stream_id: None,
    types: None,
    min_priority: None,
};

/// A job that is under way, as an observer takes it up that wants it.
fn observed(observer: &Observer, under_way: UnderWay) -> Option<JobAtBase> {
    let origin = under_way.origin().unwrap_or_else(|| JobOrigin {
        session: under_way.home.to_string(),
        trace: trace_of_job(&under_way.job),
        message: None,
    });
    let UnderWay { job, home, state, at, asks, .. } = under_way;
    observer.wants_job(&job, &origin).then(|| JobAtBase {
        job,
        home,
        is_own: false,
        asks,
        told: Some(ToldAtBase {
            has_begun: state == JobState::Runs,
            submitted_at: at,
            origin,
            last_seq: 0,
            last_text: None,
        }),
    })
}
