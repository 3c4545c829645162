//! How a client of dialect A says that it wants no more of a stream. Its job goes on, and all others are told of the stream as before. Source:
//! draft-arcp-01, 10.4.

use mainstay_arcp_protocol::a::control::{CancelAccepted, Nack};
use mainstay_arcp_protocol::a::stream::StreamError;
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message};
use mainstay_model::{CommandId, Error};

use super::news::stream_of;
use super::requests::ALREADY_TERMINAL;
use super::translator::{WHOLE_JOB, encoded};
use super::{A, errors};
use crate::cancelled_streams::{CancelledStream, MOST_STREAMS};
use crate::held_jobs::Haste;
use crate::message_fold::ToldJob;
use crate::pacing::Rate;
use crate::session::Session;

/// Why a stream is not cancelled: in one word, and for people.
type Refused = (&'static str, Nack);

impl Session<A> {
    /// Tells no more of a stream in this session, also over other connections and under the next daemon.
    pub(super) async fn cancel_stream(
        &mut self,
        id: &str,
        stream: String,
        deadline_ms: Option<u64>,
    ) -> Result<(), Error> {
        let request = self.command_of(id)?;
        let known = self.stored.cancelled_streams.get(&stream);
        // The same message is answered in the same way, however often it comes.
        let cancelled = match known.filter(|known| known.request == request) {
            Some(known) => Ok(known.job.clone()),
            None => self.note_cancelled(&stream, request).await?,
        };
        let job = match cancelled {
            Ok(job) => job,
            Err((reason, nack)) => {
                self.refuse_cancel(id, reason, nack).await;
                return Ok(());
            }
        };
        self.answer(id, Message::CancelAccepted(CancelAccepted { deadline_ms })).await;
        self.break_off(id, job, stream).await;
        // What comes behind it in its job waits for it no more.
        self.tell_held(Haste::WhenDue).await
    }

    /// Stores that a stream is cancelled, before its client is told so; gives its job.
    async fn note_cancelled(
        &mut self,
        stream: &str,
        request: CommandId,
    ) -> Result<Result<CommandId, Refused>, Error> {
        let job = match self.job_of_open_stream(stream) {
            Ok(job) => job,
            Err(refused) => return Ok(Err(refused)),
        };
        let cancelled = CancelledStream { job: job.clone(), request };
        let is_told = |job: &CommandId| self.fold.job(job).is_some();
        if !self.stored.cancelled_streams.add(stream.to_owned(), cancelled, is_told) {
            let reason =
                format!("this session has cancelled {MOST_STREAMS} streams of jobs that it is told of");
            let step = "Cancel a job that nobody needs, or have another session observe it.";
            return Ok(Err(("too_many", errors::nack(ErrorCode::ResourceExhausted, reason, step))));
        }
        self.held.pacing.set(stream, Rate { chunks: None, bytes: None });
        self.store().await?;
        Ok(Ok(job))
    }

    /// The job of a stream that is told of in this session and has not ended.
    fn job_of_open_stream(&self, stream: &str) -> Result<CommandId, Refused> {
        if self.stored.cancelled_streams.has(stream) {
            return Err(has_ended());
        }
        // A stream with the bytes of a display is told whole at once, unless it is slowed down.
        if let Some(job) = self.held.job_of_stream(stream) {
            return Ok(job.clone());
        }
        let has_it = |job: &CommandId, known: &ToldJob| {
            WHOLE_JOB
                .into_iter()
                .any(|kind| self.fold.translator.has_stream(known, kind) && stream_of(job, kind) == stream)
        };
        let found = self.fold.jobs().find(|(job, known)| has_it(job, known) && self.follows(job, known));
        match found {
            Some((job, known)) if !known.state.is_terminal() || self.held.has(job) => Ok(job.clone()),
            Some(_) => Err(has_ended()),
            None => {
                let reason = "the session is told of no open stream of this name";
                let step = "Name the `stream_id` of a `stream.open` that no `stream.close` followed.";
                Err(("no_such_stream", errors::nack(ErrorCode::NotFound, reason, step)))
            }
        }
    }

    /// Whether the session holds a job, or observes it.
    fn follows(&self, job: &CommandId, known: &ToldJob) -> bool {
        let observers = self.fold.observers();
        known.is_own || observers.iter().any(|observer| observer.wants_job(job, &known.origin, known.home))
    }

    /// Says that nothing more of a stream is told.
    async fn break_off(&self, id: &str, job: CommandId, stream: String) {
        let message = "the client cancelled the stream; the job goes on".to_owned();
        let error = Message::StreamError(StreamError { code: ErrorCode::Cancelled, message });
        let envelope = Envelope {
            trace_id: self.fold.job(&job).map(|known| known.origin.trace.clone()),
            job_id: Some(job.to_string()),
            stream_id: Some(stream),
            ..self.envelope(Some(id), error)
        };
        self.send_frame(encoded(&envelope)).await;
    }
}

/// The refusal to cancel a stream of which nothing more is told.
fn has_ended() -> Refused {
    let step = "Go on without it; the other streams of its job are told until they are closed.";
    (ALREADY_TERMINAL, errors::nack(ErrorCode::FailedPrecondition, "the stream has ended", step))
}
