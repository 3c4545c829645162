//! One connection: requests in, answers and events out, each request on its own so that none waits for another.

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use mainstay_engine::{Client, FollowedWarmUp, LiveSubscription};
use mainstay_model::{Error, Limits, SessionId};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use super::dispatch::dispatch;
use super::follow::follow;
use super::handlers::call::Call;
use super::trace;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::local_socket::{LocalStream, unreadable};
use mainstay_protocol::json_rpc::{Method, Outgoing, Request, Version, answer, failure, line, params};
use mainstay_protocol::operations::{
    AnswerAsk, CancelSession, EVENT_NOTIFICATION, Follow, LIVE_NOTIFICATION, Listen, LiveNotice, Nothing,
    PauseSession, SteerSession, Subscribed, WARM_UP_NOTIFICATION, WarmUpNotice,
};

/// Messages that wait for a slow client; then its requests and subscriptions wait.
const OUTBOX: usize = 64;
/// Places that are kept for what passes everything: one who has filled all others can still cancel and answer.
const URGENT: usize = 16;

/// Serves one connection until the client goes, or its credentials have expired. When the daemon stops it stays open until all is answered, so that its end
/// tells clients that the daemon is gone.
pub(super) async fn serve(stream: LocalStream, daemon: Daemon, client: Client, admission: &Admission) {
    let (read, write) = stream;
    let limit = daemon.engine.limits().message_bytes;
    let mut requests = FramedRead::new(read, LinesCodec::new_with_max_length(limit));
    let mut answers = FramedWrite::new(write, LinesCodec::new());
    let (outbox, mut outgoing) = mpsc::channel::<String>(OUTBOX);
    let writer = tokio::spawn(async move {
        while let Some(text) = outgoing.recv().await {
            if answers.send(text).await.is_err() {
                return;
            }
        }
    });
    let connection = Arc::new(Connection { daemon: Arc::new(daemon), client, outbox });
    let mut tasks = Tasks::default();
    loop {
        let text = tokio::select! {
            text = requests.next() => text,
            Some(_) = tasks.under_way.join_next() => continue,
            Some(ended) = tasks.subscriptions.join_next() => match ended {
                // Without its events the client would wait for ever; a new connection goes on where this one ends.
                Ok(Err(error)) => {
                    connection.send(failure(&Value::Null, error)).await;
                    break;
                }
                Ok(Ok(())) | Err(_) => continue,
            },
            () = admission.expired() => {
                connection.send(failure(&Value::Null, Error::Unauthorized)).await;
                break;
            }
            () = connection.daemon.stopped.cancelled() => {
                tasks.finish().await;
                break;
            }
        };
        match text {
            Some(Ok(text)) => tasks.begin(&connection, &text).await,
            Some(Err(error @ LinesCodecError::MaxLineLengthExceeded)) => {
                connection.send(failure(&Value::Null, unreadable(&error))).await;
            }
            Some(Err(LinesCodecError::Io(_))) | None => break,
        }
    }
    // A clone may still wait for an answer that nobody will read.
    connection.client.leave();
    // What is under way as a command goes on in its session; only the waiting for it ends here.
    drop(tasks);
    drop(connection);
    writer.await.ok();
}

/// What a connection has asked for and has not got yet.
#[derive(Default)]
struct Tasks {
    under_way: JoinSet<()>,
    /// Each ends with an error where its events cannot be read.
    subscriptions: JoinSet<Result<(), Error>>,
}

impl Tasks {
    async fn begin(&mut self, connection: &Arc<Connection>, text: &str) {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let bad = Error::BadRequest { reason: error.to_string() };
                return connection.send(failure(&Value::Null, bad)).await;
            }
        };
        let id = request.id.clone().unwrap_or(Value::Null);
        let connection = Arc::clone(connection);
        if let Err(error) = self.admit(&request.method, connection.daemon.engine.limits()) {
            connection.send(failure(&id, error)).await;
        } else if request.method == Follow::NAME {
            self.subscriptions.spawn(async move { connection.subscribe(&id, &request).await });
        } else if request.method == Listen::NAME {
            self.subscriptions.spawn(async move { connection.listen(&id, &request).await });
        } else {
            self.under_way.spawn(async move { connection.serve(&id, &request).await });
        }
    }

    /// Refuses what is too much for one connection.
    fn admit(&self, method: &str, limits: &Limits) -> Result<(), Error> {
        let is_urgent =
            [CancelSession::NAME, AnswerAsk::NAME, SteerSession::NAME, PauseSession::NAME].contains(&method);
        let (what, under_way, limit) = if [Follow::NAME, Listen::NAME].contains(&method) {
            ("subscriptions", self.subscriptions.len(), limits.connection_subscriptions)
        } else {
            ("requests", self.under_way.len(), limits.connection_requests)
        };
        let places = if is_urgent { limit.saturating_add(URGENT) } else { limit };
        if under_way < places {
            return Ok(());
        }
        Err(Error::TooManyRequests { what: what.to_owned(), limit })
    }

    /// Waits until all is answered and every event sent.
    async fn finish(&mut self) {
        while self.under_way.join_next().await.is_some() {}
        while self.subscriptions.join_next().await.is_some() {}
    }
}

struct Connection {
    daemon: Arc<Daemon>,
    client: Client,
    outbox: mpsc::Sender<String>,
}

impl Connection {
    async fn serve(&self, id: &Value, request: &Request) {
        let span = trace::Call::begin(&request.method);
        let call = Call { daemon: Arc::clone(&self.daemon), client: span.client(&self.client) };
        let answered = dispatch(call, request).await;
        span.answered(&answered);
        self.answer(id, answered).await;
    }

    /// Answers, then sends events until the client goes or the daemon stops.
    async fn subscribe(&self, id: &Value, request: &Request) -> Result<(), Error> {
        let followed = match params::<Follow>(request) {
            Ok(wanted) => follow(&self.client, wanted).await,
            Err(error) => Err(error),
        };
        let (subscribed, mut subscription, mut warm_up) = match followed {
            Ok(followed) => followed,
            Err(error) => {
                self.answer::<Nothing>(id, Err(error)).await;
                return Ok(());
            }
        };
        self.answer(id, Ok(subscribed)).await;
        loop {
            let notification = tokio::select! {
                event = subscription.next() => match event {
                    Ok(event) => notification(EVENT_NOTIFICATION, event.as_ref())?,
                    Err(Error::DaemonStopping) => return Ok(()),
                    Err(error) => return Err(error),
                },
                notice = next_notice(&mut warm_up) => notification(WARM_UP_NOTIFICATION, notice)?,
            };
            if self.outbox.send(notification).await.is_err() || subscription.is_over() {
                return Ok(());
            }
        }
    }

    /// Answers, then passes on what is going on, until the client goes, may not see the session any more, or the daemon stops.
    async fn listen(&self, id: &Value, request: &Request) -> Result<(), Error> {
        let (session, mut listened) = match self.heard(request).await {
            Ok(listening) => listening,
            Err(error) => {
                self.answer::<Nothing>(id, Err(error)).await;
                return Ok(());
            }
        };
        self.answer(id, Ok(Subscribed { session: Some(session) })).await;
        while let Some(live) = listened.next().await {
            let notice = LiveNotice { session, live: live.as_ref().clone() };
            if self.outbox.send(notification(LIVE_NOTIFICATION, notice)?).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn heard(&self, request: &Request) -> Result<(SessionId, LiveSubscription), Error> {
        let session = self.client.resolve(&params::<Listen>(request)?.session).await?;
        Ok((session, self.client.listen(session).await?))
    }

    /// Answers a request. A daemon that begins anew refuses nothing because of that: the next daemon is asked the same, and answers.
    async fn answer<T: serde::Serialize>(&self, id: &Value, answered: Result<T, Error>) {
        if matches!(answered, Err(Error::DaemonStopping)) {
            self.daemon.engine.unless_letting_go().await;
        }
        self.send(answer(id, answered)).await;
    }

    async fn send(&self, text: String) {
        // The client may be gone.
        self.outbox.send(text).await.ok();
    }
}

fn notification(method: &str, params: impl serde::Serialize) -> Result<String, Error> {
    line(&Outgoing::Notification { jsonrpc: Version::Two, method, params })
}

/// What is next to be said of how far a session is; nothing where all sessions are followed.
async fn next_notice(warm_up: &mut Option<FollowedWarmUp>) -> WarmUpNotice {
    match warm_up {
        Some(followed) => WarmUpNotice { session: followed.session(), progress: followed.next().await },
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_who_has_filled_a_connection_can_still_cancel_and_answer() {
        let limits = Limits { connection_requests: 2, connection_subscriptions: 1, ..Limits::default() };
        let mut tasks = Tasks::default();
        let refused =
            |tasks: &Tasks, method: &str| tasks.admit(method, &limits).err().map(|error| error.to_string());
        tasks.under_way.spawn(std::future::pending());
        assert_eq!(refused(&tasks, "session/eval"), None);
        tasks.under_way.spawn(std::future::pending());
        insta::assert_snapshot!(refused(&tasks, "session/eval").unwrap(), @"2 requests of this connection are under way already");
        for urgent in
            [CancelSession::NAME, AnswerAsk::NAME, SteerSession::NAME, PauseSession::NAME, Follow::NAME]
        {
            assert_eq!(refused(&tasks, urgent), None, "{urgent}");
        }
        tasks.subscriptions.spawn(std::future::pending());
        insta::assert_snapshot!(refused(&tasks, Follow::NAME).unwrap(), @"1 subscriptions of this connection are under way already");
        assert!(refused(&tasks, Listen::NAME).is_some());
        (0..URGENT).for_each(|_| drop(tasks.under_way.spawn(std::future::pending())));
        assert!(refused(&tasks, CancelSession::NAME).is_some(), "these places are limited too");
    }
}
