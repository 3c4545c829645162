//! Calls that wait for their answers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::SinkExt;
use mainstay_model::{Error, Event, Live, Principal};
use mainstay_protocol::json_rpc::{Method, Outgoing, Version, line};
use mainstay_protocol::operations::{Attach, Attached, Listen, WarmUpNotice};
use mainstay_runner::Environment;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

use crate::receiver::{Answer, MessageSinks, PendingRequests, receive};
use crate::socket::reach;

/// A connection to the daemon.
pub struct Client {
    /// What is written to the daemon, a line a message.
    outgoing: mpsc::UnboundedSender<String>,
    /// Who waits for an answer; why the connection ended, once it has.
    waiting: PendingRequests,
    last_id: AtomicU64,
    warm_up: watch::Receiver<Option<WarmUpNotice>>,
    /// What is going on in sessions that are listened to, until someone takes it.
    live: Mutex<Option<mpsc::UnboundedReceiver<Live>>>,
    /// The daemon on the other side.
    pub daemon: Attached,
}

impl Client {
    /// Connects to the socket, shows the token, and gives the connection with the events of its subscriptions.
    ///
    /// # Errors
    /// [`Error::DaemonNotRunning`] where no daemon of this user listens; [`Error::Unauthorized`],
    /// [`Error::TooManyConnections`].
    pub async fn connect(
        socket: &Path,
        token: String,
        name: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        Self::connect_with(socket, token, name, None).await
    }

    /// The same for a client that has this in its environment, which the sessions that it creates get.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_with(
        socket: &Path,
        token: String,
        name: &str,
        environment: Option<Environment>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let (read, write) = reach(socket).await?.into_split();
        Self::over(read, write, Attach { token, name: name.to_owned(), environment }).await
    }

    /// The same over a stream that is connected to the daemon already. A client that is dropped drops the half to write; one whose half does not
    /// end the connection by that stays connected until the daemon ends it.
    ///
    /// # Errors
    /// [`Error::DaemonNotRunning`] where the stream ends; [`Error::Unauthorized`], [`Error::TooManyConnections`].
    pub async fn over(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        attach: Attach,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let waiting: PendingRequests = Arc::new(Mutex::new(Ok(HashMap::new())));
        let (events_in, events) = mpsc::unbounded_channel();
        let (warm_up_in, warm_up) = watch::channel(None);
        let (live_in, live) = mpsc::unbounded_channel();
        let sinks = MessageSinks {
            waiting: Arc::clone(&waiting),
            events: events_in,
            live: live_in,
            warm_up: warm_up_in,
        };
        tokio::spawn(receive(FramedRead::new(read, LinesCodec::new()), sinks));
        let (outgoing, lines) = mpsc::unbounded_channel();
        tokio::spawn(send(lines, FramedWrite::new(write, LinesCodec::new())));
        let mut client = Self {
            outgoing,
            waiting,
            last_id: AtomicU64::new(0),
            warm_up,
            live: Mutex::new(Some(live)),
            daemon: Attached { version: String::new(), pid: 0, principal: Principal::local() },
        };
        client.daemon = client.call(attach).await?;
        Ok((client, events))
    }

    /// Calls a method and waits for its answer. The request is on its way once the future was polled, and stays so where the future is dropped.
    ///
    /// # Errors
    /// What the daemon answers; as [`Client::lost`] where the connection ends.
    pub async fn call<M: Method>(&self, params: M) -> Result<M::Answer, Error> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let text = line(&Outgoing::Request { jsonrpc: Version::Two, id, method: M::NAME, params })?;
        let answer = self.expect(id)?;
        // Where nothing can be written any more, what the daemon said last is still to be read.
        self.outgoing.send(text).ok();
        let result = answer.await.map_err(|_| self.lost())??;
        serde_json::from_str(result.get()).map_err(|error| Error::BadRequest {
            reason: format!("the daemon's answer to {}: {error}", M::NAME),
        })
    }

    /// What was said last of how far a followed session is that is given its definitions back.
    pub fn warm_up(&self) -> watch::Receiver<Option<WarmUpNotice>> {
        let mut warm_up = self.warm_up.clone();
        warm_up.mark_changed();
        warm_up
    }

    /// Listens to a session: what is going on in it, in order. A connection listens once.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn listen(&self, session: String) -> Result<mpsc::UnboundedReceiver<Live>, Error> {
        self.call(Listen { session }).await?;
        let taken = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| Error::BadRequest { reason: "this connection listens already".to_owned() })
    }

    /// Why the connection ended: what the daemon said last, else that it does not run.
    pub fn lost(&self) -> Error {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_ref().err().cloned().unwrap_or(Error::DaemonNotRunning)
    }

    fn expect(&self, id: u64) -> Result<oneshot::Receiver<Answer>, Error> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = oneshot::channel();
        waiting.as_mut().map_err(|error| error.clone())?.insert(id, sender);
        Ok(receiver)
    }
}

/// Writes lines until nobody can give more, or nothing can be written any more. The callers do not write: one that is not polled, as in the branch of
/// a `select!`, would be in the middle of its line, and those that are polled there would wait for it.
async fn send(
    mut lines: mpsc::UnboundedReceiver<String>,
    mut outgoing: FramedWrite<impl AsyncWrite + Unpin, LinesCodec>,
) {
    while let Some(line) = lines.recv().await {
        if outgoing.send(line).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_protocol::operations::{GetLink, Nothing, StopDaemon};
    use serde_json::{Value, json};
    use tokio::io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    };

    use super::*;

    /// The daemon's end of a stream.
    struct Daemon {
        requests: Lines<BufReader<ReadHalf<DuplexStream>>>,
        answers: WriteHalf<DuplexStream>,
    }

    impl Daemon {
        /// Connects a client, which takes this daemon for one of process 7.
        async fn attach() -> (Client, Self) {
            let (ours, theirs) = duplex(4096);
            let (read, answers) = split(theirs);
            let mut daemon = Self { requests: BufReader::new(read).lines(), answers };
            let attach = Attach { token: "secret".to_owned(), name: "test".to_owned(), environment: None };
            let (read, write) = split(ours);
            let (attached, ()) = tokio::join!(Client::over(read, write, attach), async {
                let request = daemon.request().await;
                assert_eq!(
                    (&request["method"], &request["params"]["token"]),
                    (&json!("client/attach"), &json!("secret"))
                );
                let attached = Attached { version: "1".to_owned(), pid: 7, principal: Principal::local() };
                daemon.say(json!({ "id": request["id"], "result": attached })).await;
            });
            (attached.unwrap().0, daemon)
        }

        async fn request(&mut self) -> Value {
            serde_json::from_str(&self.requests.next_line().await.unwrap().unwrap()).unwrap()
        }

        async fn say(&mut self, mut message: Value) {
            message["jsonrpc"] = json!("2.0");
            self.answers.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn each_call_gets_its_own_answer_in_whatever_order_they_come() {
        let (client, mut daemon) = Daemon::attach().await;
        assert_eq!(client.daemon.pid, 7);
        let (link, stopped, ()) =
            tokio::join!(client.call(GetLink { session: None }), client.call(StopDaemon {}), async {
                let (first, second) = (daemon.request().await, daemon.request().await);
                assert_eq!([&first["method"], &second["method"]], ["daemon/link", "daemon/stop"]);
                daemon.say(json!({ "id": second["id"], "result": {} })).await;
                daemon.say(json!({ "id": first["id"], "result": { "url": "http://there" } })).await;
            });
        assert_eq!((link.unwrap().url.as_str(), stopped.unwrap()), ("http://there", Nothing {}));
    }

    #[tokio::test]
    async fn a_call_that_is_not_polled_holds_no_other_up() {
        let (client, mut daemon) = Daemon::attach().await;
        let long = client.call(GetLink { session: Some("x".repeat(100_000)) });
        let mut long = std::pin::pin!(long);
        assert!(futures::poll!(&mut long).is_pending());
        let (stopped, ()) = tokio::join!(client.call(StopDaemon {}), async {
            let (first, second) = (daemon.request().await, daemon.request().await);
            assert_eq!([&first["method"], &second["method"]], ["daemon/link", "daemon/stop"]);
            daemon.say(json!({ "id": second["id"], "result": {} })).await;
            daemon.say(json!({ "id": first["id"], "result": { "url": "http://there" } })).await;
        });
        assert_eq!(stopped.unwrap(), Nothing {});
        assert_eq!(long.await.unwrap().url, "http://there");
    }

    #[tokio::test]
    async fn who_waits_is_told_the_last_words_of_a_daemon_that_goes() {
        let (client, mut daemon) = Daemon::attach().await;
        let (stopped, ()) = tokio::join!(client.call(StopDaemon {}), async {
            daemon.request().await;
            daemon.say(json!({ "id": null, "error": { "code": -32600, "message": "too long" } })).await;
            drop(daemon);
        });
        assert_eq!(stopped, Err(Error::BadRequest { reason: "too long".to_owned() }));
        assert_eq!(client.call(StopDaemon {}).await, Err(client.lost()));
    }
}
