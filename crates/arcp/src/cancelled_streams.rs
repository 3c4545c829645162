//! The streams that the client of a session cancelled: it is told no more of them, though their jobs go on. Pure. Source: draft-arcp-01, 10.4.
//!
//! They are part of what is stored of the session, and no event: the job and all other sessions have nothing to do with it. What is told of other
//! streams keeps its numbers.

use std::collections::BTreeMap;

use mainstay_model::CommandId;
use serde::{Deserialize, Serialize};

/// How many streams a session may have cancelled.
pub(crate) const MOST_STREAMS: usize = 1000;

/// The cancelled streams of a session, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CancelledStreams {
    streams: BTreeMap<String, CancelledStream>,
}

/// What is known of a cancelled stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledStream {
    /// The job that has the stream.
    pub(crate) job: CommandId,
    /// The request that cancelled it, so that the same message is answered in the same way.
    pub(crate) request: CommandId,
}

impl CancelledStreams {
    /// Whether no stream is cancelled.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// How a stream was cancelled; none where it was not.
    pub(crate) fn get(&self, stream: &str) -> Option<&CancelledStream> {
        self.streams.get(stream)
    }

    /// Whether a stream is cancelled.
    pub(crate) fn has(&self, stream: &str) -> bool {
        self.streams.contains_key(stream)
    }

    /// Notes that a stream is cancelled; false where there are too many. Where there is no room, those are forgotten whose job is told of no more.
    pub(crate) fn add(
        &mut self,
        stream: String,
        cancelled: CancelledStream,
        is_told: impl Fn(&CommandId) -> bool,
    ) -> bool {
        if self.streams.len() >= MOST_STREAMS {
            self.streams.retain(|_, known| is_told(&known.job));
        }
        let has_room = self.streams.len() < MOST_STREAMS;
        if has_room {
            self.streams.insert(stream, cancelled);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CommandId {
        CommandId::new(text).unwrap()
    }

    #[test]
    fn only_so_many_streams_are_cancelled_and_those_of_ended_jobs_make_room() {
        let mut streams = CancelledStreams::default();
        let cancelled = |job: &str| CancelledStream { job: id(job), request: id("m") };
        for number in 0..MOST_STREAMS {
            let job = if number == 0 { "ended" } else { "runs" };
            assert!(streams.add(format!("s{number}"), cancelled(job), |_| false));
        }
        assert!(!streams.add("more".to_owned(), cancelled("runs"), |_| true));
        assert!(streams.has("s0") && !streams.has("more"));
        assert!(streams.add("more".to_owned(), cancelled("runs"), |job| *job != id("ended")));
        assert!(!streams.has("s0") && streams.has("s1"));
        assert_eq!(streams.get("more"), Some(&cancelled("runs")));
        let stored = serde_json::to_value(&streams).unwrap();
        assert_eq!(serde_json::from_value::<CancelledStreams>(stored).unwrap(), streams);
    }
}
