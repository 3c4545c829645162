//! One connection: requests in, answers and events out, each request on its own so that none waits for another.

use std::io::Cursor;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use mainstay_model::{Error, Principal, Source};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::codec::{FramedParts, FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use super::api::{Attach, AttachMcp, Attached, EVENT_NOTIFICATION, Method, Subscribe};
use super::codec::{Outgoing, Request, Version, line};
use super::dispatch::{dispatch, params};
use super::server::Daemon;

/// Messages that wait for a slow client; then its requests and subscriptions wait.
const OUTBOX: usize = 64;

/// Serves one connection until the client goes. When the daemon stops it stays open to the last moment, so that its end
/// tells clients that the daemon is gone.
pub(super) async fn serve(stream: UnixStream, daemon: Daemon) {
    let (read, write) = stream.into_split();
    let limit = daemon.engine.limits().message_bytes;
    let mut requests = FramedRead::new(read, LinesCodec::new_with_max_length(limit));
    let mut answers = FramedWrite::new(write, LinesCodec::new());
    match attach(&mut requests, &mut answers, &daemon).await {
        Some(Attachment::Rpc(source)) => serve_rpc(requests, answers, daemon, source).await,
        Some(Attachment::Mcp { working_directory }) => {
            // What the client sent right after its token has been read already.
            let FramedParts { io, read_buf, .. } = requests.into_parts();
            let read = Cursor::new(read_buf).chain(io);
            crate::mcp::serve_stream(read, answers.into_inner(), daemon, working_directory).await;
        }
        None => {}
    }
}

/// What a connection turned out to be.
enum Attachment {
    Rpc(Source),
    Mcp { working_directory: Option<String> },
}

/// Waits for the token; anything else ends the connection.
async fn attach(
    requests: &mut FramedRead<OwnedReadHalf, LinesCodec>,
    answers: &mut FramedWrite<OwnedWriteHalf, LinesCodec>,
    daemon: &Daemon,
) -> Option<Attachment> {
    let request: Request = match requests.next().await? {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(request) => request,
            Err(error) => {
                let bad = Error::BadRequest { reason: error.to_string() };
                answers.send(failure(&Value::Null, bad)).await.ok();
                return None;
            }
        },
        Err(error) => {
            answers.send(failure(&Value::Null, unreadable(&error))).await.ok();
            return None;
        }
    };
    let id = request.id.clone().unwrap_or(Value::Null);
    let attachment = match request.method.as_str() {
        Attach::NAME => {
            params::<Attach>(&request).map(|attach| (attach.token, Attachment::Rpc(client(attach.name))))
        }
        AttachMcp::NAME => params::<AttachMcp>(&request)
            .map(|AttachMcp { token, working_directory }| (token, Attachment::Mcp { working_directory })),
        _ => Err(Error::Unauthorized),
    };
    let attachment = attachment.and_then(|(token, attachment)| {
        if crate::http::same_secret(&token, &daemon.token) {
            Ok(attachment)
        } else {
            Err(Error::Unauthorized)
        }
    });
    match attachment {
        Ok(attachment) => {
            let attached = Attached {
                version: daemon.version.to_owned(),
                pid: std::process::id(),
                principal: Principal::local(),
            };
            answers.send(answer(&id, Ok(attached))).await.ok()?;
            Some(attachment)
        }
        Err(error) => {
            answers.send(failure(&id, error)).await.ok();
            None
        }
    }
}

fn client(name: String) -> Source {
    Source::Client {
        principal: Principal::local(),
        name: name.chars().filter(|c| !c.is_control()).take(64).collect(),
    }
}

async fn serve_rpc(
    mut requests: FramedRead<OwnedReadHalf, LinesCodec>,
    mut answers: FramedWrite<OwnedWriteHalf, LinesCodec>,
    daemon: Daemon,
    source: Source,
) {
    let (outbox, mut outgoing) = mpsc::channel::<String>(OUTBOX);
    let writer = tokio::spawn(async move {
        while let Some(text) = outgoing.recv().await {
            if answers.send(text).await.is_err() {
                return;
            }
        }
    });
    let connection = Arc::new(Connection { daemon, source, outbox });
    let mut under_way = JoinSet::new();
    loop {
        let text = tokio::select! {
            text = requests.next() => text,
            Some(_) = under_way.join_next(), if !under_way.is_empty() => continue,
        };
        match text {
            Some(Ok(text)) => {
                let connection = Arc::clone(&connection);
                under_way.spawn(async move { connection.serve(&text).await });
            }
            Some(Err(error @ LinesCodecError::MaxLineLengthExceeded)) => {
                connection.send(failure(&Value::Null, unreadable(&error))).await;
            }
            Some(Err(LinesCodecError::Io(_))) | None => break,
        }
    }
    // What is under way as a command goes on in its session; only the waiting for it ends here.
    under_way.shutdown().await;
    drop(connection);
    writer.await.ok();
}

struct Connection {
    daemon: Daemon,
    source: Source,
    outbox: mpsc::Sender<String>,
}

impl Connection {
    async fn serve(&self, text: &str) {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let bad = Error::BadRequest { reason: error.to_string() };
                return self.send(failure(&Value::Null, bad)).await;
            }
        };
        let id = request.id.clone().unwrap_or(Value::Null);
        if request.method == Subscribe::NAME {
            return self.subscribe(&id, &request).await;
        }
        let answer = match dispatch(&self.daemon, &self.source, &request).await {
            Ok(result) => line(&Outgoing::Answer { jsonrpc: Version::Two, id: &id, result }),
            Err(error) => Ok(failure(&id, error)),
        };
        self.send(answer.unwrap_or_else(|error| failure(&id, error))).await;
    }

    /// Answers, then sends events until the client goes.
    async fn subscribe(&self, id: &Value, request: &Request) {
        let engine = &self.daemon.engine;
        let subscribed = match params::<Subscribe>(request) {
            Ok(subscribe) => {
                engine.resolve(&subscribe.session).await.map(|session| (session, subscribe.after))
            }
            Err(error) => Err(error),
        };
        let (session, after) = match subscribed {
            Ok(subscribed) => subscribed,
            Err(error) => return self.send(failure(id, error)).await,
        };
        let mut subscription = engine.subscribe(session, after);
        self.send(answer(id, Ok(super::api::Subscribed { session }))).await;
        while let Ok(event) = subscription.next().await {
            let notification = Outgoing::Notification {
                jsonrpc: Version::Two,
                method: EVENT_NOTIFICATION,
                params: event.as_ref(),
            };
            let Ok(text) = line(&notification) else { return };
            if self.outbox.send(text).await.is_err() {
                return;
            }
        }
    }

    async fn send(&self, text: String) {
        // The client may be gone.
        self.outbox.send(text).await.ok();
    }
}

fn answer<T: serde::Serialize>(id: &Value, result: Result<T, Error>) -> String {
    let text = match result {
        Ok(result) => line(&Outgoing::Answer { jsonrpc: Version::Two, id, result }),
        Err(error) => return failure(id, error),
    };
    text.unwrap_or_else(|error| failure(id, error))
}

fn failure(id: &Value, error: Error) -> String {
    let failure: Outgoing<'_, ()> = Outgoing::Failure { jsonrpc: Version::Two, id, error: error.into() };
    line(&failure).unwrap_or_default()
}

fn unreadable(error: &LinesCodecError) -> Error {
    let reason = match error {
        LinesCodecError::MaxLineLengthExceeded => {
            "the message is longer than `message-bytes` allows".to_owned()
        }
        LinesCodecError::Io(error) => error.to_string(),
    };
    Error::BadRequest { reason }
}
