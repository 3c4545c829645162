//! How a client of dialect A observes jobs, whoever submitted them. Source: draft-arcp-01, 13.

use mainstay_arcp_protocol::a::control::Ack;
use mainstay_arcp_protocol::a::subscription::{Filter, Subscribe, SubscribeAccepted, Unsubscribe};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::{Error, Position, SessionId, Timestamp};

use super::{A, errors, ids};
use crate::event_delivery::PAGE;
use crate::message_id::ulid_of_hash;
use crate::observer::Observer;
use crate::session::Session;
use crate::session_change::{Change, JobUnderWay};
use crate::stored_session::StoredSession;

impl Session<A> {
    /// Observes what a filter lets through.
    pub(super) async fn subscribe(&mut self, id: &str, subscribe: Subscribe) -> Result<(), Error> {
        let filter = subscribe.filter.unwrap_or_default();
        if let Some(hidden) = self.hidden_session(&filter).await? {
            let reason = format!("the session {hidden} is not there, or may not be observed");
            let step = "Name sessions that this principal may see, or none to observe all of those.";
            self.nack(id, errors::nack(ErrorCode::PermissionDenied, reason, step)).await;
            return Ok(());
        }
        if let Err(reason) = check(&filter) {
            let step = "Subscribe with fewer or shorter values; several subscriptions may have the rest.";
            self.nack(id, errors::nack(ErrorCode::InvalidArgument, reason, step)).await;
            return Ok(());
        }
        let after = subscribe.since.and_then(|since| since.after_message_id);
        let since = match after.as_deref().map(ids::place_of) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                let reason = "`since` wants the id of a message that tells of a job, which begins with evt_";
                let step = "Subscribe from such a message on, or without `since`.";
                self.nack(id, errors::nack(ErrorCode::DataLoss, reason, step)).await;
                return Ok(());
            }
        };
        // The same message makes the same subscription, however often it comes.
        let subscription = subscription_of(&self.stored.id, id);
        if !self.has_changed_by(id) {
            let limit = self.settings.observers;
            if self.fold.observers().len() >= limit {
                let error = Error::TooManyRequests { what: "subscriptions".to_owned(), limit };
                self.nack(id, errors::of_error(&error)).await;
                return Ok(());
            }
            let observer = Observer { subscription: subscription.clone(), since: Timestamp::now(), filter };
            let jobs = self.under_way_here(&observer).await?;
            let observed = Change::Observed { observer, since, jobs };
            self.store_change_here(Some(id), observed).await?;
        }
        self.answer(id, Message::SubscribeAccepted(SubscribeAccepted { subscription_id: subscription }))
            .await;
        self.apply_joins(self.position).await
    }

    /// Ends the subscriptions where their client lies further behind than it may. Source: draft-arcp-01, 13.4.
    pub(super) async fn close_slow_observers(&mut self) -> Result<(), Error> {
        let (lag, looked_at) = (self.settings.observer_lag, self.dialect.lag_looked_at);
        let is_held_back = self.dialect.held_until.is_some();
        // Each event need not be looked at.
        let is_soon = self.position.0 < looked_at.0.saturating_add((lag / 4).max(1));
        if lag == 0 || is_held_back || is_soon || self.fold.observers().is_empty() {
            return Ok(());
        }
        self.dialect.lag_looked_at = self.position;
        let newest = self.client.last_position().await?;
        if newest.0.saturating_sub(self.position.0) <= lag || !self.lies_behind(newest, lag).await? {
            return Ok(());
        }
        let ended_at = Timestamp::now();
        let observers = self.fold.observers().iter().map(|observer| observer.subscription.clone());
        for subscription in observers.collect::<Vec<_>>() {
            let after = ids::behind(self.position, ended_at);
            let ended = Change::ObserverOverflowed { subscription, after, ended_at };
            self.store_change_here(None, ended).await?;
        }
        self.apply_joins(self.position).await
    }

    /// Whether there are more events behind the session than so many that its client may see. Others do not count, and where there are none but those
    /// the session has come to the newest.
    async fn lies_behind(&mut self, newest: Position, lag: u64) -> Result<bool, Error> {
        let (mut after, mut seen) = (self.position, 0_u64);
        loop {
            let page = self.client.all_events(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            seen = seen.saturating_add(page.len() as u64);
            if seen > lag {
                return Ok(true);
            }
        }
        if seen == 0 {
            self.position = newest;
            self.note_whole();
        }
        Ok(false)
    }

    /// The jobs that an observer wants and that are under way where the session is in the log, once it is at the end.
    async fn under_way_here(&mut self, observer: &Observer) -> Result<Vec<JobUnderWay>, Error> {
        let mut jobs: Vec<JobUnderWay> = Vec::new();
        for _ in 0..LISTED_AT_MOST {
            self.reach_the_end().await?;
            let found = self.under_way_elsewhere().await?;
            jobs.extend(found.into_iter().filter(|job| job.is_wanted_by(observer)).map(JobUnderWay::from));
            // What ended between the two would be missing.
            if self.client.last_position().await? == self.position {
                break;
            }
        }
        jobs.dedup_by(|one, other| one.job == other.job);
        Ok(jobs)
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
        if !self.fold.observers().iter().any(|observer| observer.subscription == subscription) {
            let reason = format!("there is no subscription {subscription}");
            let step = "Name a `subscription_id` that `subscribe.accepted` gave this session.";
            self.nack(id, errors::nack(ErrorCode::NotFound, reason, step)).await;
            return Ok(());
        }
        self.store_change(None, Change::ObserverEnded { subscription }).await?;
        self.apply_joins(self.position).await?;
        self.answer(id, Message::Ack(Ack { details: None })).await;
        Ok(())
    }
}

/// How often the jobs that are under way are listed for an observer where something happens meanwhile.
const LISTED_AT_MOST: usize = 5;
/// How many values a filter may have.
const VALUES: usize = 64;
/// How long a value of a filter may be, in characters.
const VALUE_CHARS: usize = 256;

/// What is wrong with a filter by itself.
fn check(filter: &Filter) -> Result<(), String> {
    let Filter { session_id, trace_id, job_id, stream_id, types, min_priority: _ } = filter;
    let values: Vec<_> =
        [session_id, trace_id, job_id, stream_id, types].into_iter().flatten().flatten().collect();
    let is_too_long = values.iter().any(|value| value.chars().count() > VALUE_CHARS);
    match values.len() > VALUES || is_too_long {
        true => Err(format!("a filter may have {VALUES} values of at most {VALUE_CHARS} characters")),
        false => Ok(()),
    }
}

/// The name of the subscription that a message of a session makes.
fn subscription_of(session: &str, message: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("mainstay arcp subscription id 1");
    hasher.update(session.as_bytes()).update(b"/").update(message.as_bytes());
    format!("sub_{}", ulid_of_hash(&hasher))
}
