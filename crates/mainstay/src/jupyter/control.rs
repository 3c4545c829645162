//! What a front end asks without waiting behind code that runs: to interrupt it, to end.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_home::Home;
use mainstay_kernel::jupyter::connection::Channel;
use mainstay_kernel::jupyter::wire::Message;
use mainstay_model::Error;
use mainstay_protocol::Sent;
use mainstay_protocol::json_rpc::Method;
use mainstay_protocol::operations::{CancelSession, GetSession, ResetSession, StopSession};
use mainstay_terminal_client::connect::connect_again;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Running;
use super::channels::{Incoming, IoPub};
use super::content::ShutdownRequest;
use super::session_binding::{CLIENT, SessionBinding};

/// How long an interrupt waits for the request to end that often follows it.
const BEFORE_THE_END: Duration = Duration::from_millis(150);

/// What serves these requests.
pub(super) struct Control {
    home: Home,
    session: String,
    is_of_client: bool,
    running: Running,
    voice: Arc<IoPub>,
    info: Value,
}

impl Control {
    pub(super) fn new(home: Home, seat: &SessionBinding, running: Running, voice: Arc<IoPub>) -> Self {
        let (session, is_of_client, info) = (seat.session(), seat.is_of_client(), seat.info());
        Self { home, session, is_of_client, running, voice, info }
    }

    /// Serves requests until one asks for the end.
    pub(super) async fn serve(self, mut requests: Incoming) {
        let mut next = None;
        while let Some(request) = match next.take() {
            Some(request) => Some(request),
            None => requests.recv().await,
        } {
            if request.header.msg_type == "interrupt_request" {
                next = timeout(BEFORE_THE_END, requests.recv()).await.ok().flatten();
                // It ends, and what runs goes on: who shuts a kernel down interrupts it first.
                if next.as_ref().is_some_and(ends) {
                    self.voice.reply(Channel::Control, &request, "interrupt_reply", &said(Ok(()))).await;
                    continue;
                }
            }
            self.voice.publish(Some(&request), "status", &json!({ "execution_state": "busy" })).await;
            let ends = self.answer(&request).await;
            self.voice.publish(Some(&request), "status", &json!({ "execution_state": "idle" })).await;
            if ends {
                return;
            }
        }
    }

    /// Answers one; says whether it is the last.
    async fn answer(&self, request: &Message) -> bool {
        let kind = request.header.msg_type.as_str();
        let (content, ends) = match kind {
            "kernel_info_request" => (self.info.clone(), false),
            "interrupt_request" => (said(self.cancel().await), false),
            "shutdown_request" => {
                let restart = request.read::<ShutdownRequest>().is_ok_and(|asked| asked.restart);
                let answer = if restart { self.forget().await } else { self.leave().await };
                let mut content = said(answer);
                content["restart"] = json!(restart);
                (content, true)
            }
            _ => {
                tracing::debug!(kind, "a front end asks for what there is not");
                return false;
            }
        };
        let reply = kind.replace("_request", "_reply");
        self.voice.reply(Channel::Control, request, &reply, &content).await;
        if ends {
            self.voice.publish(Some(request), &reply, &content).await;
        }
        ends
    }

    /// Stops the code that this front end has asked for; never somebody else's.
    async fn cancel(&self) -> Result<(), Error> {
        let target = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(target) = target else { return Ok(()) };
        let cancel = CancelSession {
            session: self.session.clone(),
            target: Some(target),
            grace_ms: None,
            sent: Sent::default(),
        };
        match self.call(cancel).await {
            // It has just ended.
            Ok(_) | Err(Error::NotRunning { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A kernel that is started again has no definitions.
    async fn forget(&self) -> Result<(), Error> {
        self.cancel().await?;
        let reset = ResetSession { session: self.session.clone(), hard: true, sent: Sent::default() };
        self.call(reset).await.map(drop)
    }

    /// A session that nobody else finds is stopped when its client is done, with all that was said in it. What still runs, runs on.
    async fn leave(&self) -> Result<(), Error> {
        if !self.is_of_client {
            return Ok(());
        }
        let session = self.session.clone();
        match self.call(GetSession { session: session.clone() }).await?.state.as_str() {
            "Ready" => self.call(StopSession { session, sent: Sent::default() }).await.map(drop),
            _ => Ok(()),
        }
    }

    async fn call<M: Method>(&self, method: M) -> Result<M::Answer, Error> {
        connect_again(&self.home, CLIENT).await?.client.call(method).await
    }
}

/// Whether it asks for the end of this kernel, and for no new one.
fn ends(request: &Message) -> bool {
    request.header.msg_type == "shutdown_request"
        && request.read::<ShutdownRequest>().is_ok_and(|asked| !asked.restart)
}

fn said(answer: Result<(), Error>) -> Value {
    match answer {
        Ok(()) => json!({ "status": "ok" }),
        Err(error) => super::execution::failure(&error),
    }
}
