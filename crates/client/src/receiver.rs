//! What comes from the daemon: answers to whoever waits for them, and the notifications of subscriptions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use mainstay_model::{Error, Event, Live};
use mainstay_protocol::json_rpc::Incoming;
use mainstay_protocol::operations::{
    EVENT_NOTIFICATION, LIVE_NOTIFICATION, LiveNotice, WARM_UP_NOTIFICATION, WarmUpNotice,
};
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::codec::{FramedRead, LinesCodec};

/// The answer to a request, unread.
pub(crate) type Answer = Result<Box<RawValue>, Error>;

/// Who waits for the answer to which request; why the connection ended, once it has.
pub(crate) type PendingRequests = Arc<Mutex<Result<HashMap<u64, oneshot::Sender<Answer>>, Error>>>;

/// Where what the daemon says goes.
pub(crate) struct MessageSinks {
    pub(crate) waiting: PendingRequests,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) live: mpsc::UnboundedSender<Live>,
    pub(crate) warm_up: watch::Sender<Option<WarmUpNotice>>,
}

/// Reads answers and events until the connection ends; then nobody is left waiting.
pub(crate) async fn receive(
    mut incoming: FramedRead<impl AsyncRead + Unpin, LinesCodec>,
    sinks: MessageSinks,
) {
    let MessageSinks { waiting, events, live, warm_up } = sinks;
    let mut last_words = None;
    while let Some(Ok(text)) = incoming.next().await {
        let Ok(message) = serde_json::from_str::<Incoming>(&text) else { continue };
        last_words = None;
        match message {
            Incoming { method: Some(method), params: Some(params), .. } if method == EVENT_NOTIFICATION => {
                if let Ok(event) = serde_json::from_str(params.get()) {
                    // Nobody may be listening to events.
                    events.send(event).ok();
                }
            }
            Incoming { method: Some(method), params: Some(params), .. } if method == LIVE_NOTIFICATION => {
                if let Ok(notice) = serde_json::from_str::<LiveNotice>(params.get()) {
                    live.send(notice.live).ok();
                }
            }
            Incoming { method: Some(method), params: Some(params), .. } if method == WARM_UP_NOTIFICATION => {
                if let Ok(notice) = serde_json::from_str(params.get()) {
                    warm_up.send_replace(Some(notice));
                }
            }
            Incoming { id: Some(id), result, error, .. } => {
                let answer = match (result, error) {
                    (_, Some(failure)) => Err(failure.into()),
                    (Some(result), None) => Ok(result),
                    (None, None) => {
                        Err(Error::BadRequest { reason: "an answer without a result".to_owned() })
                    }
                };
                let asker = waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .as_mut()
                    .ok()
                    .and_then(|all| all.remove(&id));
                if let Some(asker) = asker {
                    asker.send(answer).ok();
                }
            }
            Incoming { error: Some(failure), .. } => {
                let error = failure.into();
                fail_all(&waiting, &error);
                last_words = Some(error);
            }
            Incoming { .. } => {}
        }
    }
    let ended = Err(last_words.unwrap_or(Error::DaemonNotRunning));
    *waiting.lock().unwrap_or_else(PoisonError::into_inner) = ended;
}

/// An error that names no request concerns every one.
fn fail_all(waiting: &PendingRequests, error: &Error) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, asker) in waiting.iter_mut().flat_map(HashMap::drain) {
        asker.send(Err(error.clone())).ok();
    }
}
