//! The sockets of a kernel: what comes in on each, and the one voice that answers.

use std::sync::Arc;

use bytes::Bytes;
use mainstay_kernel::jupyter::comm;
use mainstay_kernel::jupyter::connection::{Channel, Connection};
use mainstay_kernel::jupyter::wire::{Header, Key, Message};
use mainstay_model::{CommMessage, Error};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;
use zeromq::{
    PubSocket, RepSocket, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketRecv, SocketSend,
};

/// The messages that arrive on the channels.
pub(super) type Incoming = mpsc::UnboundedReceiver<Message>;

/// All channels of a kernel, bound to their ports.
pub(super) struct Channels {
    pub(super) voice: Arc<IoPub>,
    pub(super) shell: Incoming,
    pub(super) control: Incoming,
    pub(super) stdin: Incoming,
}

/// What the kernel says.
pub(super) struct IoPub {
    key: Key,
    /// What names this kernel to its front ends.
    session: String,
    shell: Mutex<RouterSendHalf>,
    control: Mutex<RouterSendHalf>,
    stdin: Mutex<RouterSendHalf>,
    iopub: Mutex<PubSocket>,
}

impl Channels {
    /// Opens what the connection file names.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where a place is taken.
    pub(super) async fn bind(connection: &Connection) -> Result<Self, Error> {
        let key = Key::new(&connection.key);
        let at = |channel| connection.endpoint(channel);
        tokio::spawn(echo(bound::<RepSocket>(&at(Channel::Heartbeat)).await?));
        let iopub = bound::<PubSocket>(&at(Channel::Iopub)).await?;
        let (shell_out, shell) = bound::<RouterSocket>(&at(Channel::Shell)).await?.split();
        let (control_out, control) = bound::<RouterSocket>(&at(Channel::Control)).await?.split();
        let (stdin_out, stdin) = bound::<RouterSocket>(&at(Channel::Stdin)).await?.split();
        let voice = IoPub {
            key: key.clone(),
            session: Uuid::new_v4().simple().to_string(),
            shell: Mutex::new(shell_out),
            control: Mutex::new(control_out),
            stdin: Mutex::new(stdin_out),
            iopub: Mutex::new(iopub),
        };
        let take = |half| taken(half, key.clone());
        Ok(Self { voice: Arc::new(voice), shell: take(shell), control: take(control), stdin: take(stdin) })
    }
}

async fn bound<S: Socket>(endpoint: &str) -> Result<S, Error> {
    let mut socket = S::new();
    let failed = |error: zeromq::ZmqError| Error::WorkerFailed {
        reason: format!("the socket `{endpoint}` cannot be opened: {error}"),
    };
    socket.bind(endpoint).await.map_err(failed)?;
    Ok(socket)
}

/// Says back what comes: the front end sees that the kernel is there.
async fn echo(mut heartbeat: RepSocket) {
    while let Ok(beat) = heartbeat.recv().await {
        if heartbeat.send(beat).await.is_err() {
            return;
        }
    }
}

/// Messages as they come; what is none, or not signed as it must be, is dropped.
fn taken(mut half: RouterRecvHalf, key: Key) -> Incoming {
    let (messages, incoming) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok(frames) = half.recv().await {
            match Message::decode(frames, &key) {
                Ok(message) => {
                    if messages.send(message).is_err() {
                        return;
                    }
                }
                Err(error) => tracing::warn!(%error, "a front end said something that is not understood"),
            }
        }
    });
    incoming
}

impl IoPub {
    /// Answers a request on the channel it came by; gives the answer's id.
    pub(super) async fn reply(
        &self,
        channel: Channel,
        request: &Message,
        kind: &str,
        content: &Value,
    ) -> String {
        let mut message = self.message(Some(request), kind, content);
        message.identities.clone_from(&request.identities);
        let half = match channel {
            Channel::Control => &self.control,
            Channel::Stdin => &self.stdin,
            Channel::Shell | Channel::Iopub | Channel::Heartbeat => &self.shell,
        };
        let id = message.header.msg_id.clone();
        // A front end that is gone needs no answer.
        if let Err(error) = half.lock().await.send(message.encode(&self.key)).await {
            tracing::debug!(%error, kind, "an answer could not be sent");
        }
        id
    }

    /// Says something to all front ends, because of a request where there is one.
    pub(super) async fn publish(&self, request: Option<&Message>, kind: &str, content: &Value) {
        self.publish_message(self.message(request, kind, content)).await;
    }

    /// Passes on to all front ends what the session's kernel says to them beside code.
    pub(super) async fn pass_on(&self, request: Option<&Message>, message: &CommMessage) {
        let mut message = comm::written(Header::new("", &self.session), message);
        message.parent = parent(request);
        self.publish_message(message).await;
    }

    async fn publish_message(&self, mut message: Message) {
        let kind = message.header.msg_type.clone();
        message.identities = vec![Bytes::from(format!("kernel.{}.{kind}", self.session))];
        if let Err(error) = self.iopub.lock().await.send(message.encode(&self.key)).await {
            tracing::debug!(%error, kind, "nothing could be published");
        }
    }

    fn message(&self, request: Option<&Message>, kind: &str, content: &Value) -> Message {
        let message = Message::new(Header::new(kind, &self.session), content);
        Message { parent: parent(request), ..message }
    }
}

/// What says that a message is because of a request.
fn parent(request: Option<&Message>) -> Bytes {
    match request {
        // A header is text alone, so it can be written.
        Some(request) => Bytes::from(serde_json::to_vec(&request.header).unwrap_or_default()),
        None => Bytes::from_static(b"{}"),
    }
}
