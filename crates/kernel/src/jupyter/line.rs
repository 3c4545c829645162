//! The line to a kernel: what is said to it, and who waits for which answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mainstay_model::ask::END_OF_INPUT;
use mainstay_model::{AskId, CommMessage, Error};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;
use zeromq::{DealerSendHalf, SocketSend};

use super::comm;
use super::execution::{Execution, HELPER, Report};
use super::sockets::failed;
use super::wire::{Header, Key, Message};

/// One kernel process, as it is spoken to.
pub(super) struct Line {
    key: Key,
    session: String,
    shell: tokio::sync::Mutex<DealerSendHalf>,
    control: tokio::sync::Mutex<DealerSendHalf>,
    stdin: tokio::sync::Mutex<DealerSendHalf>,
    /// Where the kernel answers while it runs code, as far as it does.
    subshell: Mutex<Option<String>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Message>>>,
    running: Mutex<Option<Execution>>,
    /// What its code asked: the header of each request.
    asked: Mutex<HashMap<AskId, Bytes>>,
}

/// The halves of the sockets that send messages to the kernel.
pub(super) struct Senders {
    pub(super) shell: DealerSendHalf,
    pub(super) control: DealerSendHalf,
    pub(super) stdin: DealerSendHalf,
}

impl Line {
    pub(super) fn new(key: Key, session: String, Senders { shell, control, stdin }: Senders) -> Self {
        Self {
            key,
            session,
            shell: tokio::sync::Mutex::new(shell),
            control: tokio::sync::Mutex::new(control),
            stdin: tokio::sync::Mutex::new(stdin),
            subshell: Mutex::default(),
            waiting: Mutex::default(),
            running: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    pub(super) const fn key(&self) -> &Key {
        &self.key
    }

    /// The code that runs, where some does.
    pub(super) fn running(&self) -> MutexGuard<'_, Option<Execution>> {
        lock(&self.running)
    }

    pub(super) fn answers_beside(&self, subshell: String) {
        *lock(&self.subshell) = Some(subshell);
    }

    /// Runs code for a job.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the kernel takes no more messages.
    pub(super) async fn execute(&self, execution: Execution, code: &str, keeps: bool) -> Result<(), Error> {
        let content = json!({
            "code": code,
            "silent": false,
            "store_history": keeps,
            "user_expressions": {},
            "allow_stdin": true,
            "stop_on_error": false,
        });
        let message = self.message("execute_request", &execution.id, &content);
        *self.running() = Some(execution);
        self.send(&self.shell, message).await
    }

    /// Passes on what a front end says, as a job.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the kernel takes no more messages.
    pub(super) async fn take_comm(&self, execution: Execution, message: &CommMessage) -> Result<(), Error> {
        let header = Header { msg_id: execution.id.clone(), ..Header::new("", &self.session) };
        *self.running() = Some(execution);
        self.send(&self.shell, comm::written(header, message)).await
    }

    /// Has the kernel's helper say something, while nothing else runs or beside it.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &str) -> Result<T, Error> {
        told(&self.ask("execute_request", &silent("", json!({ HELPER: call }))).await?)
    }

    /// Has the kernel's helper do something to the session, while nothing else runs.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot, or something runs.
    pub(super) async fn call_alone<T: DeserializeOwned>(&self, call: &str) -> Result<T, Error> {
        if self.running().is_some() {
            return Err(failed("it runs code"));
        }
        let (message, answer) = self.expected("execute_request", &silent("", json!({ HELPER: call })));
        self.send(&self.shell, message).await?;
        told(&answer.await.map_err(|_| failed("it ended before it answered"))?)
    }

    /// Runs code without a trace.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it fails.
    pub(super) async fn run_silently(&self, code: &str) -> Result<(), Error> {
        let reply = self.ask("execute_request", &silent(code, json!({}))).await?;
        let value: Value = reply.read().map_err(|error| failed(&error.to_string()))?;
        match value["status"].as_str() {
            Some("ok") => Ok(()),
            _ => Err(failed(value["evalue"].as_str().unwrap_or("it did not run"))),
        }
    }

    /// Asks the kernel's helper what became of code that failed; the answer comes as that to any request.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the kernel takes no more messages.
    pub(super) async fn ask_for_report(&self, call: &str) -> Result<oneshot::Receiver<Message>, Error> {
        let (message, answer) = self.expected("execute_request", &silent("", json!({ HELPER: call })));
        self.send(&self.shell, message).await?;
        Ok(answer)
    }

    /// A request, and its answer.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the kernel is busy and can answer nothing meanwhile, or ends before it answers.
    pub(super) async fn ask(&self, kind: &str, content: &Value) -> Result<Message, Error> {
        let subshell = lock(&self.subshell).clone();
        if subshell.is_none() && self.running().is_some() {
            return Err(failed("it runs code, and answers nothing else until that has ended"));
        }
        let (mut message, answer) = self.expected(kind, content);
        message.header.subshell_id = subshell;
        self.send(&self.shell, message).await?;
        answer.await.map_err(|_| failed("it ended before it answered"))
    }

    /// A request that waits behind nothing, and its answer.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the kernel ends before it answers.
    pub(super) async fn command(&self, kind: &str, content: &Value) -> Result<Message, Error> {
        let (message, answer) = self.expected(kind, content);
        self.send(&self.control, message).await?;
        answer.await.map_err(|_| failed("it ended before it answered"))
    }

    /// Says something of no importance to it, whose answer nobody waits for.
    pub(super) async fn wake(&self) {
        let message = self.message("kernel_info_request", &new_id(), &json!({}));
        if let Err(error) = self.send(&self.shell, message).await {
            tracing::debug!(%error, "a kernel could not be woken");
        }
    }

    /// Notes what code asks.
    pub(super) fn is_asked(&self, ask: AskId, request: &Message) {
        // A header is text alone, so it can be written.
        let header = serde_json::to_vec(&request.header).unwrap_or_default();
        lock(&self.asked).insert(ask, Bytes::from(header));
    }

    /// Answers what code asked. Without a value that is the end of its input.
    pub(super) async fn answer(&self, ask: AskId, value: Option<&str>) {
        let Some(request) = lock(&self.asked).remove(&ask) else { return };
        let content = json!({ "value": value.unwrap_or(END_OF_INPUT) });
        let message = Message { parent: request, ..self.message("input_reply", &new_id(), &content) };
        if let Err(error) = self.send(&self.stdin, message).await {
            tracing::warn!(%error, "an answer could not be sent");
        }
    }

    /// Passes an answer on to who waits for it; gives it back where nobody does.
    pub(super) fn answered(&self, message: Message) -> Option<Message> {
        let waiting = message.parent_id().and_then(|id| lock(&self.waiting).remove(&id));
        match waiting {
            // Who asked may have given up.
            Some(waiting) => waiting.send(message).err().and(None),
            None => Some(message),
        }
    }

    /// Nobody is answered any more.
    pub(super) fn abandon(&self) {
        lock(&self.waiting).clear();
    }

    fn expected(&self, kind: &str, content: &Value) -> (Message, oneshot::Receiver<Message>) {
        let id = new_id();
        let (answer, receiver) = oneshot::channel();
        lock(&self.waiting).insert(id.clone(), answer);
        (self.message(kind, &id, content), receiver)
    }

    fn message(&self, kind: &str, id: &str, content: &Value) -> Message {
        request(&self.session, kind, id, content)
    }

    async fn send(&self, socket: &tokio::sync::Mutex<DealerSendHalf>, message: Message) -> Result<(), Error> {
        let sent = socket.lock().await.send(message.encode(&self.key)).await;
        sent.map_err(|error| failed(&format!("it takes no more messages: {error}")))
    }
}

/// Asks a kernel that comes up what it is.
///
/// # Errors
/// [`Error::WorkerFailed`] where it takes no messages.
pub(super) async fn ask_for_info(shell: &mut impl SocketSend, key: &Key, session: &str) -> Result<(), Error> {
    let message = request(session, "kernel_info_request", &new_id(), &json!({}));
    let sent = shell.send(message.encode(key)).await;
    sent.map_err(|error| failed(&format!("it takes no messages: {error}")))
}

fn request(session: &str, kind: &str, id: &str, content: &Value) -> Message {
    let header = Header { msg_id: id.to_owned(), ..Header::new(kind, session) };
    Message::new(header, content)
}

/// What a kernel's helper tells in an answer to a silent request.
fn told<T: DeserializeOwned>(reply: &Message) -> Result<T, Error> {
    let reply: Value = reply.read().map_err(|error| failed(&error.to_string()))?;
    let expression = &reply["user_expressions"][HELPER];
    match expression["data"].get("application/json") {
        Some(said) => T::deserialize(said).map_err(|error| failed(&error.to_string())),
        None => {
            let why = expression["evalue"].as_str().unwrap_or("no answer");
            Err(failed(&format!("its helper cannot tell: {why}")))
        }
    }
}

/// The report in an answer to a silent request.
pub(super) fn report_of(reply: &Message) -> Option<Report> {
    told(reply).ok()
}

fn silent(code: &str, expressions: Value) -> Value {
    json!({
        "code": code,
        "silent": true,
        "store_history": false,
        "user_expressions": expressions,
        "allow_stdin": false,
        "stop_on_error": false,
    })
}

pub(super) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
