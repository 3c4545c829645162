//! How a client of dialect A slows the streams of jobs down. Source: draft-arcp-01, 11.2.

use mainstay_arcp_protocol::a::control::{Ack, Backpressure};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::Error;

use super::{A, errors};
use crate::held_jobs::Haste;
use crate::pacing::Rate;
use crate::session::Session;

impl Session<A> {
    /// Tells a stream as fast as its reader wants it from now on, for as long as the connection lasts.
    pub(super) async fn slow_down(
        &mut self,
        id: &str,
        stream: Option<String>,
        wish: Backpressure,
    ) -> Result<(), Error> {
        let prefixes = self.stream_prefixes();
        let is_of_job = |stream: &str| prefixes.iter().any(|prefix| stream.starts_with(prefix.as_str()));
        let is_told = |stream: &str| is_of_job(stream) && !self.stored.cancelled_streams.has(stream);
        let Some(stream) = stream.filter(|stream| is_told(stream)) else {
            let reason = "the stream_id names no stream of a job that is told of in this session";
            let step = "Name the `stream_id` of a `stream.open` whose job has not ended.";
            self.nack(id, errors::nack(ErrorCode::NotFound, reason, step)).await;
            return Ok(());
        };
        self.held.pacing.retain(is_of_job);
        let rate = Rate { chunks: wish.desired_rate_per_second, bytes: wish.buffer_remaining_bytes };
        match self.held.pacing.set(&stream, rate) {
            true => self.answer(id, Message::Ack(Ack { details: None })).await,
            false => {
                let reason = "too many streams of this connection are slowed down";
                let step = "End another limit with `backpressure {}`.";
                self.nack(id, errors::nack(ErrorCode::ResourceExhausted, reason, step)).await;
            }
        }
        self.tell_held(Haste::WhenDue).await
    }

    /// How the names of the streams begin that may still be told.
    fn stream_prefixes(&self) -> Vec<String> {
        let told = self.fold.jobs();
        let is_told = told.filter(|(job, known)| !known.state.is_terminal() || self.held.has(job));
        is_told.map(|(job, _)| super::news::stream_prefix(job)).collect()
    }
}
