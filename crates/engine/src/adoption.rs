//! Runners that have outlived the daemon that started them: found for a session whose task is brought up, with what they are to be
//! given again.

use std::time::Duration;

use mainstay_model::{
    AskEnding, AskId, Epoch, Error, Event, EventBody, Raiser, Seq, Session, SessionState, TakenNotices,
};
use mainstay_runner::{AskAnswer, StartedRunner, StoredProgress, Submission};

use crate::engine::Engine;
use crate::sync::time::timeout;
use crate::worker::Order;

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// A runner that a session's task goes on with.
pub(crate) struct AdoptedRunner {
    pub(crate) started: StartedRunner,
    /// Which of its notices are taken already.
    pub(crate) taken: TakenNotices,
    /// The running job and what it was answered. It is given again, since nobody knows whether it came there.
    pub(crate) given: Vec<Order>,
}

impl Engine {
    /// Adopts the runner of a session that is as the log has it, where it lives and its session can go on with it. One that the
    /// session cannot go on with is ended.
    pub(crate) async fn adopt(
        &self,
        session: &Session,
        epoch: Epoch,
    ) -> Result<Option<AdoptedRunner>, Error> {
        // A runner in a warm-up may have only a part of the session's definitions.
        match session.state() {
            SessionState::Ready | SessionState::Evaluating | SessionState::Waiting(_) => {}
            SessionState::Uninitialized | SessionState::WarmingUp | SessionState::Faulted => return Ok(None),
        }
        let Some(factory) = self.shared.factory_of(&session.kind) else { return Ok(None) };
        let Some(taken) = self.shared.log.taken(session.id).await? else { return Ok(None) };
        let limit_ms = self.shared.limits.query_ms;
        let spec = self.shared.runner_spec(session, epoch);
        let found = timeout(
            Duration::from_millis(limit_ms),
            factory.adopt(&spec, StoredProgress { taken, last_seq: session.last_seq }),
        )
        .await;
        let started = match found.unwrap_or(Err(Error::Timeout { limit_ms })) {
            Ok(Some(found)) => found.started,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(session = %session.id, %error, "a runner that lives could not be adopted");
                return Ok(None);
            }
        };
        // Notices that it has forgotten since were acknowledged, and so led to nothing that is to be stored.
        let is_of_session = started.id == taken.runner;
        match self.given_to_job(session).await? {
            Some(given) if is_of_session => Ok(Some(AdoptedRunner { started, taken, given })),
            Some(_) | None => {
                tracing::warn!(session = %session.id, "a session cannot go on with its runner, which is ended");
                started.runner.process().kill();
                Ok(None)
            }
        }
    }

    /// What the running job was given: itself, and the answers to its asks. None where a part of that is stored nowhere, since it was
    /// withheld or a secret: then nobody could keep it out of what the job puts out, either.
    async fn given_to_job(&self, session: &Session) -> Result<Option<Vec<Order>>, Error> {
        let mut given = GivenToJob::default();
        let Some(running) = session.running() else { return Ok(Some(given.orders)) };
        if running.withheld {
            return Ok(None);
        }
        let mut after = Seq(running.requested.0.saturating_sub(1));
        loop {
            let page = self.shared.log.events(session.id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok((!given.has_secrets).then_some(given.orders)) };
            after = last.seq;
            page.into_iter().for_each(|event| given.follow(event));
        }
    }
}

/// What a job was given, by its events.
#[derive(Default)]
struct GivenToJob {
    orders: Vec<Order>,
    /// What the job asked that was not answered yet.
    asked: Vec<AskId>,
    /// Whether it was given what is stored nowhere.
    has_secrets: bool,
}

impl GivenToJob {
    fn follow(&mut self, event: Event) {
        let requested = event.seq;
        match event.body {
            EventBody::EvalRequested { job, code, file, command_line, .. } => {
                let submission = Submission { job, code, file, command_line, is_withheld: false };
                self.orders.push(Order::Run { submission, requested });
            }
            EventBody::JobRequested { job, work, .. } => {
                self.orders.push(Order::Work { job, work, requested });
            }
            EventBody::AskRaised(ask) if matches!(ask.raiser, Raiser::Job { .. }) => self.asked.push(ask.ask),
            EventBody::AskEnded { ask, ending } if self.asked.contains(&ask) => {
                self.has_secrets |= ending == AskEnding::Withheld;
                self.orders.push(Order::Answer(AskAnswer::open(ask, ending.answer())));
            }
            _ => {}
        }
    }
}
