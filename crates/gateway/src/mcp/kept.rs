//! The last events of streams, in memory, for clients that lost their connection. An event's id is its stream's and its number among all;
//! a stream's id is nobody's to guess.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::Stream;
use futures::stream::unfold;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    EventStore, EventStoreError, EventStream, ServerSseMessage,
};
use thiserror::Error;
use tokio::sync::watch;

/// What is kept of all streams; the oldest events go first.
const KEPT_BYTES: usize = 16 * 1024 * 1024;
/// What an event takes besides its text, about.
const EVENT_BYTES: usize = 256;

/// Streams up to which those are known too that have not ended and of which nothing is kept: what is said later is still told.
const STREAMS: usize = 4096;

/// The events.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    streams: HashMap<String, Told>,
    /// Of each event the stream it is of, oldest first.
    order: VecDeque<String>,
    bytes: usize,
    /// The number of the next event.
    next: u64,
}

/// What a stream tells.
#[derive(Default)]
struct Told {
    events: VecDeque<Event>,
    /// No reader was given an event with this number, or a later one.
    unread: u64,
    /// The newest reader, which alone is told: a message goes to one connection.
    reader: u64,
    has_ended: bool,
    news: watch::Sender<()>,
}

struct Event {
    number: u64,
    message: ServerSseMessage,
    bytes: usize,
}

/// An id names no event, or one of a stream that is not known any more.
#[derive(Debug, Error)]
#[error("`{id}` is the id of no event that is kept")]
pub(super) struct NotKept {
    id: String,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What no reader of a stream was given yet, and what comes.
    pub(super) fn go_on(&self, stream: String) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        let mut state = self.state();
        let told = state.streams.entry(stream.clone()).or_default();
        let next = told.unread;
        self.reader(stream, told, next).events()
    }

    /// What a stream tells after an event.
    ///
    /// # Errors
    /// [`NotKept`].
    pub(super) fn after(
        &self,
        id: &str,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + use<>, NotKept> {
        let mut state = self.state();
        let newest = state.next;
        let place = id.rsplit_once('/').and_then(|(stream, number)| {
            let number: u64 = number.parse().ok().filter(|number| *number < newest)?;
            Some((stream, state.streams.get_mut(stream)?, number + 1))
        });
        let (stream, told, next) = place.ok_or_else(|| NotKept { id: id.to_owned() })?;
        Ok(self.reader(stream.to_owned(), told, next).events())
    }

    /// Nothing more comes of a stream, and nothing of it is wanted.
    pub(super) fn forget(&self, stream: &str) {
        let mut state = self.state();
        if let Some(told) = state.streams.remove(stream) {
            state.bytes -= told.events.iter().map(|event| event.bytes).sum::<usize>();
            state.order.retain(|of| of != stream);
        }
    }

    fn reader(&self, stream: String, told: &mut Told, next: u64) -> Reader {
        told.reader += 1;
        // Who read before is to see that it is not told any more.
        told.news.send_replace(());
        Reader { kept: self.clone(), stream, next, number: told.reader, news: told.news.subscribe() }
    }
}

impl State {
    fn keep(&mut self, stream: &str, event: &ServerSseMessage, limit: usize) -> String {
        let told = self.streams.entry(stream.to_owned()).or_default();
        let (number, bytes) = (self.next, size(event));
        let id = format!("{stream}/{number}");
        let mut message = event.clone();
        message.event_id = Some(id.clone());
        told.has_ended |= event.message.as_deref().is_some_and(is_answer);
        told.events.push_back(Event { number, message, bytes });
        told.news.send_replace(());
        self.order.push_back(stream.to_owned());
        self.next += 1;
        self.bytes += bytes;
        while self.bytes > limit && self.let_go() {}
        id
    }

    /// Lets go of the oldest event; false where there is none.
    fn let_go(&mut self) -> bool {
        let Some(oldest) = self.order.pop_front() else { return false };
        let are_many = self.streams.len() > STREAMS;
        let Some(told) = self.streams.get_mut(&oldest) else { return true };
        self.bytes -= told.events.pop_front().map_or(0, |event| event.bytes);
        let is_given_up = are_many && told.news.receiver_count() == 0;
        if told.events.is_empty() && (told.has_ended || is_given_up) {
            self.streams.remove(&oldest);
        }
        true
    }
}

fn size(event: &ServerSseMessage) -> usize {
    let text = event.message.as_ref().and_then(|message| serde_json::to_string(message).ok());
    EVENT_BYTES + text.map_or(0, |text| text.len())
}

/// Whether it ends the stream of its request.
fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

/// Who reads a stream.
struct Reader {
    kept: Kept,
    stream: String,
    /// The number of the event to read next.
    next: u64,
    number: u64,
    news: watch::Receiver<()>,
}

/// What a reader finds.
enum Found {
    Event(ServerSseMessage),
    NothingYet,
    End,
}

impl Reader {
    fn events(self) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        unfold(self, |mut reader| async move {
            loop {
                match reader.look() {
                    Found::Event(event) => return Some((event, reader)),
                    Found::NothingYet => reader.news.changed().await.ok()?,
                    Found::End => return None,
                }
            }
        })
    }

    fn look(&mut self) -> Found {
        self.news.mark_unchanged();
        let mut state = self.kept.state();
        let Some(told) = state.streams.get_mut(&self.stream) else { return Found::End };
        // A client that has two connections would open this one anew for ever if it ended.
        let is_newest = told.reader == self.number;
        // What was let go of cannot be told.
        let index = told.events.partition_point(|event| event.number < self.next);
        match told.events.get(index) {
            Some(event) if is_newest => {
                self.next = event.number + 1;
                told.unread = told.unread.max(self.next);
                Found::Event(event.message.clone())
            }
            Some(_) | None if told.has_ended => Found::End,
            Some(_) | None => Found::NothingYet,
        }
    }
}

#[async_trait::async_trait]
impl EventStore for Kept {
    async fn store_event(
        &self,
        stream_id: &str,
        event: &ServerSseMessage,
    ) -> Result<String, EventStoreError> {
        Ok(self.state().keep(stream_id, event, KEPT_BYTES))
    }

    async fn replay_events_after(&self, last_event_id: &str) -> Result<EventStream, EventStoreError> {
        Ok(Box::pin(self.after(last_event_id)?))
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use proptest::prelude::*;
    use rmcp::model::{ServerNotification, ToolListChangedNotification};

    use super::*;

    fn said() -> ServerSseMessage {
        let notification =
            ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default());
        ServerSseMessage::from_message(ServerJsonRpcMessage::notification(notification))
    }

    /// The ids of what a stream has at hand.
    fn at_hand(stream: impl Stream<Item = ServerSseMessage>) -> Vec<String> {
        let mut stream = Box::pin(stream);
        let next = || stream.next().now_or_never().flatten();
        std::iter::from_fn(next).filter_map(|event| event.event_id).collect()
    }

    proptest! {
        #[test]
        fn all_that_is_kept_after_an_event_is_told_in_order_and_no_more_is_kept_than_may_be(
            said_on in prop::collection::vec(0..3_usize, 1..60),
            events in 1..40_usize,
            after in any::<prop::sample::Index>(),
        ) {
            let kept = Kept::default();
            let limit = events * size(&said());
            let ids: Vec<String> = (said_on.iter())
                .map(|stream| kept.state().keep(&format!("s{stream}"), &said(), limit))
                .collect();
            prop_assert!(kept.state().bytes <= limit);
            prop_assert_eq!(kept.state().order.len(), ids.len().min(events));
            let last = after.get(&ids);
            let index = ids.iter().position(|id| id == last).unwrap();
            let stream = last.split('/').next().unwrap();
            let of_stream = |id: &&String| id.split('/').next() == Some(stream);
            let oldest = ids.len().saturating_sub(events);
            let expected: Vec<String> = ids[oldest.max(index + 1)..].iter().filter(of_stream).cloned().collect();
            prop_assert_eq!(at_hand(kept.after(last).unwrap()), expected);
            for stream in 0..3 {
                kept.forget(&format!("s{stream}"));
            }
            let state = kept.state();
            prop_assert_eq!((state.bytes, state.order.len(), state.streams.len()), (0, 0, 0));
        }
    }

    #[test]
    fn what_was_told_to_nobody_waits_for_the_first_and_the_newest_reader_alone_is_told() {
        let kept = Kept::default();
        let say = || kept.state().keep("it", &said(), KEPT_BYTES);
        let first = say();
        let mut early = Box::pin(kept.go_on("it".to_owned()));
        assert_eq!(early.next().now_or_never().flatten().unwrap().event_id, Some(first));
        let second = say();
        let late = kept.go_on("it".to_owned());
        assert!(early.next().now_or_never().is_none(), "it waits, and is told nothing");
        assert_eq!(at_hand(late), [second]);
        kept.forget("it");
        assert!(early.next().now_or_never().unwrap().is_none(), "it ends with its session");
    }

    #[test]
    fn nothing_is_known_after_an_event_that_was_never_told() {
        let kept = Kept::default();
        kept.state().keep("it", &said(), KEPT_BYTES);
        for id in ["", "it", "it/1", "it/-1", "other/0", "0"] {
            assert!(kept.after(id).is_err(), "{id}");
        }
        assert!(kept.after("it/0").is_ok());
    }
}
