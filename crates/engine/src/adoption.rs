//! Runners that have outlived the daemon that started them: found for a session whose task is brought up, with what they are to be
//! given again.

use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{
    Ask, AskEnding, AskId, Epoch, Error, Event, EventBody, NoticeNumber, Raiser, RunningJob, Seq, Session,
    SessionState, TakenNotices,
};
use mainstay_runner::{
    AskAnswer, FoundRunner, GivenToRunner, RunnerFactory, RunnerSpec, StoredProgress, Submission,
};

use serde_json::Value;

use crate::engine::Engine;
use crate::inherited::AdoptedRunner;
use crate::named_prompts::NamedPrompts;
use crate::output::PutOutSoFar;
use crate::sync::time::timeout;
use crate::worker::Order;

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// What a job hears whose secret answer is lost.
const SECRET_IS_LOST: &str =
    "it was a secret, which is stored nowhere, and is lost with the daemon that had it; ask again";

impl Engine {
    /// Adopts the runner of a session that is as the log has it, where it lives and its session can go on with it. One that the
    /// session cannot go on with is ended before this is done, so that no start meets it.
    ///
    /// Whoever has claimed a session is its owner under the newest epoch that the store has, until somebody else claims it. So a runner
    /// that cannot be adopted is ended only while the store still says so: it is of nobody else. Where the store has a newer epoch,
    /// somebody else has claimed the session since, and the runner is theirs to adopt or to end. Where the runner alone knows a newer
    /// one, the store was restored from a backup, and no owner will ever claim the session under what the runner has obeyed.
    ///
    /// # Errors
    /// [`Error::SessionOwned`] where another owner has the session by now, [`Error::StoreFailed`].
    pub(crate) async fn adopt(
        &self,
        session: &Session,
        epoch: Epoch,
    ) -> Result<Option<AdoptedRunner>, Error> {
        let Some(factory) = self.shared.factory_of(&session.kind) else { return Ok(None) };
        let spec = self.shared.runner_spec(session, epoch);
        let adopted = match self.shared.log.taken(session.id).await? {
            Some(taken) if may_have_runner(session.state()) => {
                self.find_left(factory, &spec, session, taken).await?
            }
            Some(_) | None => None,
        };
        if adopted.is_none() {
            self.end_left(factory, &spec).await;
        }
        Ok(adopted)
    }

    async fn find_left(
        &self,
        factory: &Arc<dyn RunnerFactory>,
        spec: &RunnerSpec,
        session: &Session,
        taken: TakenNotices,
    ) -> Result<Option<AdoptedRunner>, Error> {
        let limit_ms = self.shared.limits.query_ms;
        let stored = StoredProgress { taken, last_seq: session.last_seq };
        let found = timeout(Duration::from_millis(limit_ms), factory.adopt(spec, stored)).await;
        match found.unwrap_or(Err(Error::Timeout { limit_ms })) {
            // Notices that it has forgotten since were acknowledged, and so led to nothing that is to be stored.
            Ok(Some(found)) if found.started.id == taken.runner => {
                self.go_on_with(session, taken, found).await.map(Some)
            }
            Ok(Some(found)) => {
                tracing::warn!(session = %session.id, "a runner that lives is not the session's last one, and is ended");
                found.started.runner.process().kill();
                Ok(None)
            }
            Ok(None) => Ok(None),
            Err(error) => {
                if self.shared.log.newest_epoch(session.id).await? != Some(spec.epoch) {
                    return Err(Error::SessionOwned);
                }
                tracing::warn!(session = %session.id, %error, "a runner that lives could not be adopted, and is ended");
                Ok(None)
            }
        }
    }

    /// Ends the runner that an earlier daemon left, where there is one.
    async fn end_left(&self, factory: &Arc<dyn RunnerFactory>, spec: &RunnerSpec) {
        let limit = Duration::from_millis(self.shared.limits.worker_start_ms);
        if timeout(limit, factory.end_left(spec)).await.is_err() {
            tracing::error!(session = %spec.session, "the runner that an earlier daemon left could not be ended in time");
        }
    }

    /// What the session goes on with: the runner, and what the running job was given last.
    async fn go_on_with(
        &self,
        session: &Session,
        taken: TakenNotices,
        found: FoundRunner,
    ) -> Result<AdoptedRunner, Error> {
        let FoundRunner { started, given: known, is_gone } = found;
        let is_lost = session.running().is_some_and(|job| job.withheld && !known.jobs.contains(&job.job));
        let (given, put_out) = match is_lost {
            true => (Vec::new(), PutOutSoFar::default()),
            false => self.given_to_job(session, &known, taken.up_to).await?,
        };
        Ok(AdoptedRunner {
            started,
            taken,
            given,
            put_out,
            secrets: known.secrets,
            is_gone,
            is_job_lost: is_lost,
        })
    }

    /// What is queued for an agent, with the events that queued it: those of the running turn, or of any where none runs.
    pub(crate) async fn prompts_in(&self, session: &Session) -> Result<NamedPrompts, Error> {
        let mut prompts = NamedPrompts::default();
        if session.queue.is_empty() {
            return Ok(prompts);
        }
        let mut after = session.running().map_or(Seq::ZERO, |running| running.requested);
        loop {
            let page = self.shared.log.events(session.id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(|event| prompts.take_in(event.seq, &event.body));
        }
        prompts.keep(session.last_seq, &session.queue);
        Ok(prompts)
    }

    /// What the running job is given again: itself, unless its code is withheld and so stored nowhere, and the answers that the runner
    /// does not have. Nobody knows whether the job came there; of what comes twice, the runner heeds the first. Beside it, how much is
    /// stored of what the job has put out.
    async fn given_to_job(
        &self,
        session: &Session,
        known: &GivenToRunner,
        taken: NoticeNumber,
    ) -> Result<(Vec<Order>, PutOutSoFar), Error> {
        let mut put_out = PutOutSoFar::default();
        let Some(running) = session.running() else { return Ok((Vec::new(), put_out)) };
        let mut given = GivenToJob::new(&known.unanswered);
        let mut after = Seq(running.requested.0.saturating_sub(1));
        loop {
            let page = self.shared.log.events(session.id, after, PAGE).await?;
            let Some(last) = page.last() else {
                let lost =
                    known.checks.iter().filter(|(_, notice)| *notice <= taken).map(|(check, _)| *check);
                given.answer_lost_checks(lost, session.last_seq);
                return Ok((given.with_refusals(running, session.last_seq), put_out));
            };
            after = last.seq;
            page.iter().for_each(|event| put_out.take_in(running.job, &event.body));
            page.into_iter().for_each(|event| given.follow(event));
        }
    }
}

/// Whether a session in this state may go on with a runner. One in a warm-up may have only a part of the session's definitions.
fn may_have_runner(state: SessionState) -> bool {
    match state {
        SessionState::Ready | SessionState::Evaluating | SessionState::Waiting(_) => true,
        SessionState::Uninitialized | SessionState::WarmingUp | SessionState::Faulted => false,
    }
}

/// What a job was given, by its events.
struct GivenToJob<'a> {
    orders: Vec<Order>,
    /// What the job asked, by the log.
    asked: Vec<AskId>,
    /// Those of it that people are asked since it was to pause, of which the runner may not have heard.
    pauses: Vec<AskId>,
    /// What the job asked to which the runner has no answer.
    unanswered: &'a [AskId],
}

impl<'a> GivenToJob<'a> {
    const fn new(unanswered: &'a [AskId]) -> Self {
        Self { orders: Vec::new(), asked: Vec::new(), pauses: Vec::new(), unanswered }
    }

    /// Answers checks that the daemon before had heard, and whose answers are lost with it: a check that was granted has left nothing in the log.
    fn answer_lost_checks(&mut self, checks: impl Iterator<Item = AskId>, last: Seq) {
        let reason = "the daemon was lost before it said whether this is granted; it may be tried again";
        for check in checks.filter(|check| !self.asked.contains(check)).collect::<Vec<_>>() {
            let answer = AskAnswer::open(check, Err(Error::WorkerFailed { reason: reason.to_owned() }));
            self.orders.push(Order::Answer { answer, ended: last });
        }
    }

    /// With what a job hears whose every ask is refused, on those that the log does not know.
    fn with_refusals(mut self, running: &RunningJob, last: Seq) -> Vec<Order> {
        let refusal = match running {
            RunningJob { withheld: true, .. } => Error::Withheld { what: "ask".to_owned() },
            RunningJob { cancel_requested: true, .. } => Error::Cancelled,
            _ => return self.orders,
        };
        let refused = self.unanswered.iter().filter(|ask| !self.asked.contains(ask));
        let refused = refused.map(|ask| AskAnswer::open(*ask, Err(refusal.clone())));
        self.orders.extend(refused.map(|answer| Order::Answer { answer, ended: last }));
        self.orders
    }

    fn follow(&mut self, event: Event) {
        let requested = event.seq;
        match event.body {
            EventBody::EvalRequested { withheld: true, .. } => {}
            EventBody::EvalRequested { job, code, file, command_line, .. } => {
                let submission = Submission { job, code, file, command_line, is_withheld: false };
                self.orders.push(Order::Run { submission, requested });
            }
            EventBody::JobRequested { job, work, grants, .. } => {
                self.orders.push(Order::Work { job, work, is_bounded: grants.is_some(), requested });
            }
            EventBody::AskRaised(asked) => {
                let Ask { ask, raiser: Raiser::Job { job }, question, .. } = *asked else { return };
                self.asked.push(ask);
                if question.is_guidance() {
                    self.pauses.push(ask);
                    self.orders.push(Order::Pause { job, ask, raised: requested });
                }
            }
            EventBody::AskEnded { ask, ending, .. }
                if self.pauses.contains(&ask)
                    || self.asked.contains(&ask) && self.unanswered.contains(&ask) =>
            {
                let answer = AskAnswer::open(ask, kept_answer(&ending));
                self.orders.push(Order::Answer { answer, ended: requested });
            }
            _ => {}
        }
    }
}

/// The answer as far as the log has it. A secret that the runner was not given is nowhere.
fn kept_answer(ending: &AskEnding) -> Result<Value, Error> {
    match ending {
        AskEnding::Withheld => Err(Error::AnswerInvalid { reason: SECRET_IS_LOST.to_owned() }),
        AskEnding::Answered { .. }
        | AskEnding::Defaulted { .. }
        | AskEnding::TimedOut { .. }
        | AskEnding::Cancelled => ending.answer(),
    }
}
