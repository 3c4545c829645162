//! The last events of streams, in memory, for clients that lost their connection. An event's id is its stream's and its number among all;
//! a stream's id is nobody's to guess. Where it is too much, the oldest of the session of the transport goes of which most is kept, so that
//! who says much costs others nothing. Whoever was not told all of it by then is told so, and never told only the rest.

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

/// What an event takes besides its text, about.
const EVENT_BYTES: usize = 256;

/// The buffer of events that a reconnecting client is sent again.
#[derive(Clone)]
pub(super) struct ReplayBuffer(Arc<Mutex<State>>);

struct State {
    streams: HashMap<String, StreamEvents>,
    /// What is kept of each session of the transport.
    sessions: HashMap<String, SessionStreams>,
    bytes: usize,
    /// What `bytes` may be.
    most_bytes: usize,
    /// Streams up to which those are known too that have not ended and of which nothing is kept: what is said later is still told.
    most_streams: usize,
    /// The number of the next event.
    next: u64,
}

/// What is kept of the streams of one session.
#[derive(Default)]
struct SessionStreams {
    /// Of each event the stream it is of, oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// What a stream tells.
#[derive(Default)]
struct StreamEvents {
    events: VecDeque<Event>,
    /// No reader was given an event with this number, or a later one.
    unread: u64,
    /// No event before this number is kept of what there was.
    kept_from: u64,
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
pub(super) struct UnknownEventId {
    id: String,
}

impl ReplayBuffer {
    /// So many bytes at most, and about so many streams.
    pub(super) fn new(most_bytes: usize, most_streams: usize) -> Self {
        let (streams, sessions) = (HashMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(State { streams, sessions, bytes: 0, most_bytes, most_streams, next: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What no reader of a stream was given yet, and what comes.
    pub(super) fn go_on(&self, stream: String) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        let mut state = self.state();
        let told = state.streams.entry(stream.clone()).or_default();
        let next = told.unread.max(told.kept_from);
        self.reader(stream, told, next).events()
    }

    /// What a stream tells after an event.
    ///
    /// # Errors
    /// [`UnknownEventId`].
    pub(super) fn after(
        &self,
        id: &str,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + use<>, UnknownEventId> {
        let mut state = self.state();
        let newest = state.next;
        let place = id.rsplit_once('/').and_then(|(stream, number)| {
            let number: u64 = number.parse().ok().filter(|number| *number < newest)?;
            let told = state.streams.get_mut(stream).filter(|told| number + 1 >= told.kept_from)?;
            Some((stream, told, number + 1))
        });
        let (stream, told, next) = place.ok_or_else(|| UnknownEventId { id: id.to_owned() })?;
        Ok(self.reader(stream.to_owned(), told, next).events())
    }

    /// Nothing more comes of a stream, and nothing of it is wanted.
    pub(super) fn forget(&self, stream: &str) {
        let mut state = self.state();
        let Some(told) = state.streams.remove(stream) else { return };
        let bytes = told.events.iter().map(|event| event.bytes).sum::<usize>();
        state.bytes -= bytes;
        let session = session_of(stream);
        if let Some(said) = state.sessions.get_mut(session) {
            said.bytes -= bytes;
            said.order.retain(|of| of != stream);
            if said.order.is_empty() {
                state.sessions.remove(session);
            }
        }
    }

    fn reader(&self, stream: String, told: &mut StreamEvents, next: u64) -> Reader {
        told.reader += 1;
        // Who read before is to see that it is not told any more.
        told.news.send_replace(());
        Reader { kept: self.clone(), stream, next, number: told.reader, news: told.news.subscribe() }
    }
}

impl State {
    fn keep(&mut self, stream: &str, event: &ServerSseMessage) -> String {
        let told = self.streams.entry(stream.to_owned()).or_default();
        let (number, bytes) = (self.next, size(event));
        let id = format!("{stream}/{number}");
        let mut message = event.clone();
        message.event_id = Some(id.clone());
        told.has_ended |= event.message.as_deref().is_some_and(is_answer);
        told.events.push_back(Event { number, message, bytes });
        told.news.send_replace(());
        let said = self.sessions.entry(session_of(stream).to_owned()).or_default();
        said.order.push_back(stream.to_owned());
        said.bytes += bytes;
        self.next += 1;
        self.bytes += bytes;
        while self.bytes > self.most_bytes && self.let_go() {}
        id
    }

    /// Lets go of the oldest event of the session of which most is kept; false where there is none.
    fn let_go(&mut self) -> bool {
        let Some((session, said)) = self.sessions.iter_mut().max_by_key(|(_, said)| said.bytes) else {
            return false;
        };
        let session = session.clone();
        let Some(oldest) = said.order.pop_front() else { return false };
        let are_many = self.streams.len() > self.most_streams;
        let Some(told) = self.streams.get_mut(&oldest) else { return true };
        if let Some(event) = told.events.pop_front() {
            self.bytes -= event.bytes;
            said.bytes -= event.bytes;
            told.kept_from = event.number + 1;
            // Who reads and was not told of it is to see that.
            told.news.send_replace(());
        }
        if said.order.is_empty() {
            self.sessions.remove(&session);
        }
        let is_given_up = are_many && told.news.receiver_count() == 0;
        if told.events.is_empty() && (told.has_ended || is_given_up) {
            self.streams.remove(&oldest);
        }
        true
    }
}

/// The session of the transport that a stream is of, by the form of `rmcp`'s ids.
fn session_of(stream: &str) -> &str {
    stream.split_once(':').map_or(stream, |(session, _)| session)
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
    kept: ReplayBuffer,
    stream: String,
    /// The number of the event to read next.
    next: u64,
    number: u64,
    news: watch::Receiver<()>,
}

/// What a reader finds.
enum NextEvent {
    Event(ServerSseMessage),
    NothingYet,
    End,
}

impl Reader {
    fn events(self) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        unfold(self, |mut reader| async move {
            loop {
                match reader.look() {
                    NextEvent::Event(event) => return Some((event, reader)),
                    NextEvent::NothingYet => reader.news.changed().await.ok()?,
                    NextEvent::End => return None,
                }
            }
        })
    }

    fn look(&mut self) -> NextEvent {
        self.news.mark_unchanged();
        let mut state = self.kept.state();
        let Some(told) = state.streams.get_mut(&self.stream) else { return NextEvent::End };
        // A client that has two connections would open this one anew for ever if it ended.
        let is_newest = told.reader == self.number;
        // What was let go of cannot be told, and what comes behind it is not told as if it were all: its client comes back, and hears so.
        if is_newest && self.next < told.kept_from {
            return NextEvent::End;
        }
        let index = told.events.partition_point(|event| event.number < self.next);
        match told.events.get(index) {
            Some(event) if is_newest => {
                self.next = event.number + 1;
                told.unread = told.unread.max(self.next);
                NextEvent::Event(event.message.clone())
            }
            Some(_) | None if told.has_ended => NextEvent::End,
            Some(_) | None => NextEvent::NothingYet,
        }
    }
}

#[async_trait::async_trait]
impl EventStore for ReplayBuffer {
    async fn store_event(
        &self,
        stream_id: &str,
        event: &ServerSseMessage,
    ) -> Result<String, EventStoreError> {
        Ok(self.state().keep(stream_id, event))
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
    fn try_next(stream: impl Stream<Item = ServerSseMessage>) -> Vec<String> {
        let mut stream = Box::pin(stream);
        let next = || stream.next().now_or_never().flatten();
        std::iter::from_fn(next).filter_map(|event| event.event_id).collect()
    }

    const SESSIONS: usize = 3;

    /// So many events of the least size.
    fn of_size(events: usize) -> ReplayBuffer {
        ReplayBuffer::new(events * size(&said()), 4096)
    }

    proptest! {
        #[test]
        fn all_after_an_event_is_told_in_order_or_none_of_it_and_who_says_little_is_told_all(
            said_on in prop::collection::vec((0..SESSIONS, 0..2_usize), 1..60),
            events in SESSIONS..40_usize,
        ) {
            let kept = of_size(events);
            let name = |(session, stream): &(usize, usize)| format!("s{session}:{stream}");
            let ids: Vec<String> = said_on.iter().map(|on| kept.state().keep(&name(on), &said())).collect();
            let bytes = kept.state().bytes;
            prop_assert_eq!(bytes, ids.len().min(events) * size(&said()));
            for (index, (last, on)) in ids.iter().zip(&said_on).enumerate() {
                let of_stream = |(id, other): (&String, _)| (other == on).then(|| id.clone());
                let expected: Vec<_> = ids[index + 1..].iter().zip(&said_on[index + 1..]).filter_map(of_stream).collect();
                let has_said = said_on.iter().filter(|(session, _)| *session == on.0).count();
                match kept.after(last) {
                    Ok(told) => prop_assert_eq!(try_next(told), expected),
                    Err(_) => prop_assert!(has_said > events / SESSIONS, "{} said little", last),
                }
            }
            for on in &said_on {
                kept.forget(&name(on));
            }
            let state = kept.state();
            prop_assert_eq!((state.bytes, state.sessions.len(), state.streams.len()), (0, 0, 0));
        }
    }

    #[test]
    fn who_was_not_told_what_was_let_go_of_is_not_told_the_rest() {
        let kept = of_size(2);
        let say = || kept.state().keep("it", &said());
        let first = say();
        let mut reader = Box::pin(kept.go_on("it".to_owned()));
        assert!(reader.next().now_or_never().flatten().is_some());
        let [second, third, fourth] = [say(), say(), say()];
        assert!(reader.next().now_or_never().unwrap().is_none(), "it ends");
        assert!(kept.after(&first).is_err());
        assert_eq!(try_next(kept.after(&second).unwrap()), [third.clone(), fourth.clone()]);
        assert_eq!(try_next(kept.after(&third).unwrap()), [fourth]);
    }

    #[test]
    fn what_was_told_to_nobody_waits_for_the_first_and_the_newest_reader_alone_is_told() {
        let kept = of_size(100);
        let say = || kept.state().keep("it", &said());
        let first = say();
        let mut early = Box::pin(kept.go_on("it".to_owned()));
        assert_eq!(early.next().now_or_never().flatten().unwrap().event_id, Some(first));
        let second = say();
        let late = kept.go_on("it".to_owned());
        assert!(early.next().now_or_never().is_none(), "it waits, and is told nothing");
        assert_eq!(try_next(late), [second]);
        kept.forget("it");
        assert!(early.next().now_or_never().unwrap().is_none(), "it ends with its session");
    }

    #[test]
    fn nothing_is_known_after_an_event_that_was_never_told() {
        let kept = of_size(100);
        kept.state().keep("it", &said());
        for id in ["", "it", "it/1", "it/-1", "other/0", "0"] {
            assert!(kept.after(id).is_err(), "{id}");
        }
        assert!(kept.after("it/0").is_ok());
    }
}
