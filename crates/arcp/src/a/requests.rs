//! What a client of dialect A asks in its session. Source: draft-arcp-01, 6.2 and 6.3, 9, 10.4, 14 and 19.

use mainstay_arcp_protocol::a::control::{
    Ack, Cancel, CancelAccepted, CancelTarget, Nack, Pong, Resume as WireResume,
};
use mainstay_arcp_protocol::a::execution::ToolInvoke;
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message};
use mainstay_model::{CommandId, Error, Timestamp};
use serde_json::{Value, json};

use super::quorum::Extensions;
use super::schedules::Asked;
use super::{A, Resume, capabilities, closing, errors, human, ids, quorum};
use crate::fold_place::Reached;
use crate::job_cancellation::CancelResult;
use crate::session::{Served, Session};
use crate::submissions::Submit;

/// Why nothing is stopped that has ended.
pub(super) const ALREADY_TERMINAL: &str = "already_terminal";
/// Why nothing is stopped that another session has.
pub(super) const NOT_YOURS: &str = "not_yours";

impl Session<A> {
    /// Does what a client asks; says how the serving ends where it does.
    pub(super) async fn request(&mut self, frame: Envelope) -> Result<Option<Served>, Error> {
        let Envelope { id, session_id, trace_id, correlation_id, idempotency_key: key, message, .. } = frame;
        if !matches!(message, Message::Ping(_) | Message::Pong(_)) {
            // A client that wants to be told what it missed says so first.
            self.dialect.held_until = None;
        }
        let is_of_another = session_id.as_ref().is_some_and(|named| *named != self.stored.id);
        if is_of_another && !matches!(message, Message::Resume(_)) {
            let reason = format!("this connection has the session {}", self.stored.id);
            let step = "Leave `session_id` out, or send it over the connection that has that session.";
            self.nack(&id, errors::nack(ErrorCode::InvalidArgument, reason, step)).await;
            return Ok(None);
        }
        if quorum::begins_jobs(&message) {
            let asked = Asked { message: id, trace: trace_id, key, parent: frame.job_id };
            return self.begin_job(asked, message, frame.extensions.as_ref()).await;
        }
        if let Some(response) = human::answer_in(&message) {
            self.answer_ask(&id, correlation_id, response).await?;
            return Ok(None);
        }
        match message {
            Message::Ping(ping) => self.answer(&id, Message::Pong(Pong { nonce: ping.nonce })).await,
            // That it came is what counts.
            Message::Pong(_) | Message::Ack(_) | Message::Nack(_) => {}
            Message::SessionClose(close) => return self.close(&id, close).await,
            Message::Cancel(cancel) => return self.cancel(&id, cancel).await,
            Message::Interrupt(interrupt) if self.has("interrupt") => self.interrupt(&id, interrupt).await?,
            Message::AgentHandoff(handoff) if self.has(capabilities::HANDOFF) => {
                self.hand_off(&id, frame.job_id, handoff).await?;
            }
            Message::Resume(resume) => return self.resume(id, session_id, resume).await,
            Message::CheckpointCreate(_) if self.has("checkpoints") => self.checkpoint(&id).await,
            Message::Subscribe(subscribe) if self.has("subscriptions") => {
                self.subscribe(&id, subscribe).await?;
            }
            Message::Unsubscribe(unsubscribe) if self.has("subscriptions") => {
                self.unsubscribe(&id, frame.subscription_id, unsubscribe).await?;
            }
            Message::Backpressure(wish) => self.slow_down(&id, frame.stream_id, wish).await?,
            Message::ArtifactPut(_) | Message::ArtifactFetch(_) | Message::ArtifactRelease(_)
                if self.has("artifacts") =>
            {
                self.artifact_request(&id, message).await?;
            }
            Message::LeaseRefresh(_) | Message::LeaseRevoked(_) if self.has("permissions") => {
                self.change_lease(&id, message).await?;
            }
            Message::PermissionRequest(request) if self.has("permissions") => {
                self.request_permission(&id, frame.job_id, request).await?;
            }
            Message::SessionAuthenticate(authenticate) => {
                return self.authenticate(id, &authenticate.auth).await;
            }
            other => self.nack(&id, unserved(&other)).await,
        }
        Ok(None)
    }

    /// Has a job begin, now or later.
    async fn begin_job(
        &mut self,
        asked: Asked,
        message: Message,
        extensions: Option<&Extensions>,
    ) -> Result<Option<Served>, Error> {
        let is_agreed = self.has(capabilities::QUORUM);
        let grants = match quorum::wanted_in(&message, extensions, is_agreed) {
            // A session that has the extension is one that is asked.
            Ok(quorum) => self.asking_grants().map(|grants| Box::new(grants.wanting(quorum))),
            Err(nack) => {
                self.nack(&asked.message, nack).await;
                return Ok(None);
            }
        };
        let Asked { message: id, trace, key, parent } = asked;
        let submitted = |agent, input| Submit {
            message: id.clone(),
            trace: trace.clone(),
            agent,
            version: None,
            input,
            key: key.clone(),
            timeout_ms: None,
            grants,
            delegation: None,
        };
        match message {
            Message::JobSchedule(schedule) => {
                self.schedule(Asked { message: id, trace, key, parent }, schedule).await;
            }
            _ if self.dialect.closing.is_some() => {
                let reason = "the session is being closed, and takes no further jobs";
                let nack = errors::nack(ErrorCode::FailedPrecondition, reason, closing::STEP);
                self.nack(&id, nack).await;
            }
            Message::ToolInvoke(ToolInvoke { tool, arguments }) => {
                let input = Value::Object(arguments.unwrap_or_default());
                self.submit(submitted(tool, input)).await?;
            }
            Message::AgentDelegate(delegate) => {
                let submit = submitted(delegate.target.clone(), Value::Null);
                self.delegate(submit, parent, delegate).await?;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Stops a job, the session with all of its jobs, or what is told of a stream.
    async fn cancel(&mut self, id: &str, cancel: Cancel) -> Result<Option<Served>, Error> {
        let Cancel { target, target_id, deadline_ms, .. } = cancel;
        let accepted = Message::CancelAccepted(CancelAccepted { deadline_ms });
        if target == CancelTarget::Job && self.cancel_schedule(id, &target_id).await? {
            return Ok(None);
        }
        let refused = match target {
            CancelTarget::Job => match CommandId::new(target_id) {
                Ok(job) => self.cancel_job(&job, deadline_ms).await?,
                Err(_) => CancelResult::Unknown,
            },
            CancelTarget::Session if target_id == self.stored.id => {
                self.answer(id, accepted).await;
                return self.evict(id).await;
            }
            CancelTarget::Stream => {
                self.cancel_stream(id, target_id, deadline_ms).await?;
                return Ok(None);
            }
            CancelTarget::Session => {
                let reason = "over this connection no session is cancelled but its own";
                let step = "Send it over the connection that has the other session.";
                let nack = errors::nack(ErrorCode::FailedPrecondition, reason, step);
                self.refuse_cancel(id, "not_cancellable", nack).await;
                return Ok(None);
            }
        };
        let (reason, nack) = match refused {
            CancelResult::Begun => {
                self.answer(id, accepted).await;
                return Ok(None);
            }
            CancelResult::Ended => (ALREADY_TERMINAL, errors::job_has_ended()),
            CancelResult::NotOwn => (NOT_YOURS, not_yours("the job")),
            CancelResult::Unknown => ("no_such_job", errors::no_such_job()),
            CancelResult::Refused(error) => (error.code().0, errors::of_error(&error)),
        };
        self.refuse_cancel(id, reason, nack).await;
        Ok(None)
    }

    pub(super) async fn refuse_cancel(&self, id: &str, reason: &str, nack: Nack) {
        self.answer(id, Message::CancelRefused(errors::cancel_refused(reason, nack))).await;
    }

    /// Goes on from where the client says, in this session or in another.
    async fn resume(
        &mut self,
        id: String,
        session: Option<String>,
        resume: WireResume,
    ) -> Result<Option<Served>, Error> {
        let session = session.unwrap_or_else(|| self.stored.id.clone());
        let WireResume { after_message_id, checkpoint_id, .. } = resume;
        let reached = match (after_message_id, checkpoint_id) {
            (Some(message), _) => ids::reached(&message),
            (None, Some(checkpoint)) => ids::reached_checkpoint(&checkpoint),
            // From the beginning, as far as that is there.
            (None, None) => Some(Reached::Seq(self.stored.base.seq)),
        };
        let Some(reached) = reached else {
            let reason = "this runtime has no such message, so it cannot say what came after it";
            self.nack(&id, errors::nack(ErrorCode::DataLoss, reason, super::RESUME_STEP)).await;
            return Ok(None);
        };
        self.dialect.resume = Some(Resume { message: id, session, reached });
        Ok(Some(Served::Resumes))
    }

    /// Names the place at which the session is.
    async fn checkpoint(&self, id: &str) {
        let checkpoint = ids::of_checkpoint(self.reached(), Timestamp::now());
        let details = json!({ "checkpoint_id": checkpoint });
        self.answer(id, Message::Ack(Ack { details: Some(details) })).await;
    }
}

/// Why nothing is done about a message.
fn unserved(message: &Message) -> Nack {
    if matches!(message, Message::SessionOpen(_)) {
        let step = "Send what the session is to do, or open another over a connection of its own.";
        return errors::nack(ErrorCode::FailedPrecondition, "the session is open already", step);
    }
    let reason = format!("{} is not asked of this runtime in this session", message.kind().name());
    let step = "See which `capabilities` `session.accepted` has; open a session with those that are missing.";
    errors::nack(ErrorCode::Unimplemented, reason, step)
}

/// The refusal to stop what another session has.
pub(super) fn not_yours(what: &str) -> Nack {
    let reason = format!("another session has {what}");
    let step = "Cancel it through the session that has it, or have that session hand it over.";
    errors::nack(ErrorCode::PermissionDenied, reason, step)
}
