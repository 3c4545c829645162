//! What a front end says to a session's kernel beside code, such as that a slider was moved.

use std::sync::PoisonError;

use mainstay_kernel::jupyter::comm;
use mainstay_kernel::jupyter::wire::Message;
use mainstay_model::{Admission, CommMessage, CommStep, CommandId, Error, JobSpec, OutputStream};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CancelSession, DoWork, ListComms};
use mainstay_protocol::view::agent::WorkView;
use mainstay_terminal_client::link::is_loss;
use mainstay_terminal_client::own_asks::OwnAsks;
use serde_json::{Value, json};

use super::content::CommInfoRequest;
use super::shell::{Shell, command_of, read};

impl Shell {
    /// Has the kernel take what a front end says. There is no answer to it: what follows is published, also that it was refused.
    pub(super) async fn take_comm(&mut self, request: &Message) {
        let message = match comm::read(request) {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(error) => return tracing::warn!(%error, "a front end said something that is not understood"),
        };
        let command = command_of(request);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(command.clone());
        let taken = self.pass_on(request, &message, &command).await;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let Err(error) = taken else { return };
        match message.step {
            // So it learns that nobody here knows its target.
            CommStep::Open { .. } => {
                let close = CommMessage {
                    step: CommStep::Close,
                    data: json!({}),
                    metadata: Value::Null,
                    buffers: Vec::new(),
                    ..message
                };
                self.voice.pass_on(Some(request), &close).await;
            }
            CommStep::Say | CommStep::Close => {
                let text =
                    format!("{error} [{}]\n  {}\n", error.code(), mainstay_terminal::next_step(&error));
                self.print(request, OutputStream::Stderr, &text).await;
            }
        }
    }

    /// Once, however often the daemon goes meanwhile.
    async fn pass_on(
        &mut self,
        request: &Message,
        message: &CommMessage,
        command: &CommandId,
    ) -> Result<(), Error> {
        loop {
            match self.follow_comm(request, message, command).await {
                Err(error) if is_loss(&error) => self.seat.reconnect().await?,
                taken => return taken,
            }
        }
    }

    async fn follow_comm(
        &mut self,
        request: &Message,
        message: &CommMessage,
        command: &CommandId,
    ) -> Result<(), Error> {
        let client = self.seat.client();
        let work = client.call(DoWork {
            session: self.seat.session(),
            work: JobSpec::Comm(Box::new(message.clone())),
            admission: Admission::Queue,
            sent: Sent::named(command.clone()),
        });
        tokio::pin!(work);
        let mut asks = OwnAsks::default();
        let done: WorkView = loop {
            tokio::select! {
                done = &mut work => break done?,
                event = self.seat.next(), if !self.seat.is_lost() => {
                    let Some(event) = event else { continue };
                    asks.observe(&event, command);
                    self.hear(request, &event, command).await;
                    // Who says something beside code is not asked.
                    if asks.open().is_some() {
                        self.stop(command).await;
                    }
                }
            }
        };
        while self.seat.seen() < done.seq {
            let Some(event) = self.seat.next().await else { break };
            self.hear(request, &event, command).await;
        }
        Ok(())
    }

    async fn hear(&mut self, request: &Message, event: &mainstay_model::Event, command: &CommandId) {
        match event.metadata.correlation.as_ref() == Some(command) {
            true => self.tell(request, event).await,
            false => self.overhear(event).await,
        }
    }

    /// Stops what this front end has asked for, where it still runs.
    pub(super) async fn stop(&self, command: &CommandId) {
        let cancel = CancelSession {
            session: self.seat.session(),
            target: Some(command.clone()),
            grace_ms: None,
            sent: Sent::default(),
        };
        // Where it cannot be stopped, it waits for somebody else's answer.
        if let Err(error) = self.seat.client().call(cancel).await {
            tracing::warn!(%error, "what asks could not be stopped");
        }
    }

    pub(super) async fn comms(&mut self, request: &Message) -> Result<Value, Error> {
        let CommInfoRequest { target_name } = read(request)?;
        let comms = self.seat.call(ListComms { session: self.seat.session(), target: target_name }).await?;
        let named = |(comm, target)| (String::from(comm), json!({ "target_name": target }));
        let comms: serde_json::Map<String, Value> = comms.into_iter().map(named).collect();
        Ok(json!({ "status": "ok", "comms": comms }))
    }
}
