//! The signs of life of jobs. Source: draft-arcp-01, 10.3.

use mainstay_arcp_protocol::a::execution::{JobHeartbeat, JobState as WireState};
use mainstay_arcp_protocol::a::{Envelope, Message};

use super::A;
use super::translator::encoded;
use crate::job_outcome::JobState;
use crate::session::Session;

impl Session<A> {
    /// A sign of life of each job of the session that runs.
    pub(super) fn signs_of_life(&mut self) -> Vec<String> {
        let running: Vec<_> = self
            .fold
            .jobs()
            .filter(|(job, known)| known.is_own && (!known.state.is_terminal() || self.held.has(job)))
            .map(|(job, known)| {
                let state = live_state(known.state, self.fold.is_blocked(job));
                (job.clone(), state, known.origin.trace.clone())
            })
            .collect();
        self.dialect.heartbeats.retain(|job, _| running.iter().any(|(runs, ..)| runs == job));
        let deadline = self.dialect.terms.heartbeat * 2;
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        let mut frames = Vec::new();
        for (job, state, trace) in running {
            let sequence = self.dialect.heartbeats.entry(job.clone()).or_default();
            *sequence += 1;
            let heartbeat = JobHeartbeat { sequence: *sequence, deadline_ms, state };
            frames.push(encoded(&Envelope {
                job_id: Some(job.to_string()),
                trace_id: Some(trace),
                ..self.envelope(None, Message::JobHeartbeat(heartbeat))
            }));
        }
        frames
    }
}

/// How far a job is of which the end was not told yet.
const fn live_state(state: JobState, is_blocked: bool) -> WireState {
    match state {
        JobState::Waits => WireState::Queued,
        _ if is_blocked => WireState::Blocked,
        _ => WireState::Running,
    }
}
