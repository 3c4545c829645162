//! Loading sessions that were unloaded: by the session itself, in the server's own lane, so that no other gets the alias meanwhile.

use mainstay_log::KeyScope;
use mainstay_model::command;
use mainstay_model::command::validate_dependencies;
use mainstay_model::decide::Identity;
use mainstay_model::{Answered, Command, Error, SessionCommand, SessionId};
use tracing::Span;

use crate::engine::{AcceptedCommand, Engine};
use crate::sync::task;

impl Engine {
    /// Has a session back that was unloaded. Whoever waits for it may go: it is carried out all the same.
    pub(crate) fn begin_load(&self, session: SessionId, command: Command, parent: &Span) -> AcceptedCommand {
        let (engine, parent) = (self.clone(), parent.clone());
        AcceptedCommand::by(task::spawn(async move { engine.load(session, command, &parent).await }))
    }

    async fn load(&self, session: SessionId, mut command: Command, parent: &Span) -> Result<Answered, Error> {
        validate_dependencies(&command.id, &command.depends_on, &self.shared.limits)?;
        // In the session's lane it would keep the server's waiting for whatever runs there.
        let depends_on = std::mem::take(&mut command.depends_on);
        let identity = Identity::of(&command, command.fingerprint(session));
        self.wait_for(&identity, session, depends_on).await?;
        let _turn = self.shared.single_process.server_lane.turn().await?;
        let log = &self.shared.log;
        let before = match (log.outcome(&identity.principal, &identity.command).await?, &identity.key) {
            (None, Some(key)) => {
                log.outcome_of_key(&identity.principal, KeyScope::Session(session), key).await?
            }
            (before, _) => before,
        };
        if let (None, SessionCommand::Load(command::Load { alias: Some(alias) })) = (before, &command.body) {
            let owner = self.stored(session).await?.owner;
            self.check_alias(alias, &owner).await?;
        }
        self.begin(session, command, parent).await?.ended().await
    }
}
