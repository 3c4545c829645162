//! What a connection has under way: it takes each frame, hands commands over in the order in which they come, and hears of sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mainstay_model::Error;
use serde_json::Value;
use tokio::task::JoinSet;

use super::session_events::SessionEvents;
use super::{Connection, Incoming};
use crate::command::{Body, PiCommand};
use crate::decode::{Invalid, decode};
use crate::frames::Response;
use crate::queries::session_of;
use crate::shared::HeldCommand;
use mainstay_gateway::command::anonymous;

/// What a connection waits for.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) under_way: JoinSet<()>,
    /// The sessions whose events it hears, by what its client calls them.
    sessions: HashMap<String, SessionEvents>,
}

impl Tasks {
    pub(super) async fn take(&mut self, connection: &Arc<Connection>, frame: Incoming) {
        let limit = connection.daemon.engine.limits().message_bytes;
        let unreadable = |error: String| Response::failure(None, "unknown", error);
        let frame = match frame {
            Incoming::Frame(text) if text.len() > limit => Err(text.len()),
            Incoming::TooLarge(bytes) => Err(bytes),
            Incoming::Frame(text) => Ok(text),
            Incoming::Nothing => return,
            Incoming::NoText => {
                return connection.answer(&unreadable("a frame must be UTF-8 text".to_owned())).await;
            }
        };
        let text = match frame {
            Ok(text) => text,
            Err(bytes) => {
                connection.daemon.pi.rates.too_large();
                let error = format!("Message size {bytes} exceeds limit {limit}");
                return connection.answer(&unreadable(error)).await;
            }
        };
        let frame: Value = match serde_json::from_str(&text) {
            Ok(frame) => frame,
            Err(error) => return connection.answer(&unreadable(format!("Invalid JSON: {error}"))).await,
        };
        match decode(&frame) {
            Ok(command) => self.begin(connection, command).await,
            Err(Invalid { id, kind, errors }) => {
                let kind = kind.unwrap_or_else(|| "unknown".to_owned());
                let error = format!("Validation failed: {errors}");
                connection.answer(&Response::failure(id, kind, error)).await;
            }
        }
    }

    async fn begin(&mut self, connection: &Arc<Connection>, command: PiCommand) {
        if let Some(answer) = connection.answered_before(&command).await {
            return connection.answer_at_once(&command, &answer).await;
        }
        if let Some(refusal) = connection.turned_away(&command, self.under_way.len()) {
            return connection.answer(&refusal).await;
        }
        connection.daemon.pi.commands.fetch_add(1, Ordering::Relaxed);
        let id = command.id.clone().unwrap_or_else(anonymous);
        let command = Arc::new(command);
        if command.body.is_read()
            && let Err(error) = connection.pass_read(&command)
        {
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if command.depends_on.contains(&id) {
            let error = Error::DependsOnItself { command: id.clone() };
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if let Body::SwitchSession { after, is_cumulative } = command.body
            && let Some(name) = command.session.clone()
            && let Err(error) = self.hear(connection, name, after, is_cumulative).await
        {
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if command.body.is_read() {
            // From here on others may depend on it.
            let reading = connection.peer.client.begin_read(&id);
            let connection = Arc::clone(connection);
            self.under_way.spawn(async move { connection.read(&command, &id, reading).await });
            return;
        }
        connection.set_out(&command, &id);
        if command.body.changes_directory() {
            connection.daemon.pi.directory.expect(connection.peer.client.principal(), &id);
        }
        let told = command.session.as_ref().and_then(|name| self.sessions.get(name));
        let told = told.map(|hearing| hearing.told.clone());
        let connection = Arc::clone(connection);
        // What it depends on, or its session, may be on its way.
        if connection.must_be_held(&command, &id).await {
            let held = HeldCommand::new(
                &connection.daemon.pi,
                (connection.peer.client.principal().clone(), id.clone()),
            );
            self.under_way.spawn(async move { connection.hold(&command, &id, held, told).await });
            return;
        }
        // In the order in which they came.
        let handed_over = connection.call(&command, &id).hand_over().await;
        match handed_over {
            Ok(_) => {
                self.under_way
                    .spawn(async move { connection.carry_on(&command, &id, handed_over, told).await });
            }
            Err(_) => connection.carry_on(&command, &id, handed_over, told).await,
        }
    }
}

impl Tasks {
    /// Hears of a session's events, unless they are heard of already and nothing else of them is wanted.
    async fn hear(
        &mut self,
        connection: &Arc<Connection>,
        name: String,
        after: Option<u64>,
        is_cumulative: bool,
    ) -> Result<(), Error> {
        let session = session_of(&connection.peer.client, &name).await?;
        let heard = self.sessions.get(&name).filter(|hearing| !hearing.task.is_finished());
        // One that was unloaded has left its name to another.
        let is_heard = heard.is_some_and(|hearing| hearing.session == session.id);
        if after.is_some() || is_cumulative || !is_heard {
            let hearing = connection.hear(&name, session, after, is_cumulative).await?;
            self.sessions.insert(name, hearing);
        }
        Ok(())
    }
}
