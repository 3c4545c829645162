//! Creating, forking and importing sessions.

use mainstay_model::{
    Answered, Capabilities, CommandId, CreateSession, Error, ForkSession, Outcome, SessionKind,
};

use super::Client;
use crate::creation::{Creation, CreationSource};
use crate::engine::AcceptedCommand;
use crate::import_export::ImportSession;

impl Client {
    /// What sessions of a kind can do that are created here, as the one who starts their runners declares it.
    pub fn capabilities_of(&self, kind: &SessionKind) -> Capabilities {
        self.engine.shared.capabilities_of(kind)
    }

    /// Creates a session and starts it.
    ///
    /// # Errors
    /// [`Error::KernelUnknown`], [`Error::InvalidArgument`], [`Error::TooManySessions`], [`Error::CommandConflict`],
    /// [`Error::RateLimited`], [`Error::RunnerUnavailable`], [`Error::StoreFailed`].
    pub async fn create(&self, id: CommandId, create: CreateSession) -> Result<Outcome, Error> {
        self.create_with(id, CreationSource::Empty(create)).await
    }

    /// Creates a session that begins with entries of another, and has its values once it is ready. The other goes on as it was.
    ///
    /// # Errors
    /// As [`Client::create`]; [`Error::SessionNotFound`], [`Error::InvalidArgument`] where the other has not so many entries.
    pub async fn fork(&self, id: CommandId, fork: ForkSession) -> Result<Outcome, Error> {
        self.create_with(id, CreationSource::Fork(fork)).await
    }

    /// Creates a session with what was read from a file, and has its values once it is ready.
    ///
    /// # Errors
    /// As [`Client::create`]; what is wrong with the form of its code.
    pub async fn import(&self, id: CommandId, import: ImportSession) -> Result<Outcome, Error> {
        self.create_with(id, CreationSource::Import(import)).await
    }

    async fn create_with(&self, id: CommandId, beginning: CreationSource) -> Result<Outcome, Error> {
        let begun = self.begin_creation(Creation::new(id, beginning)).await?;
        Ok(self.created(begun).await?.outcome)
    }

    /// Hands over what is to create a session, under conditions. From then on others may depend on it; [`Client::created`] has what comes of
    /// it, which for an earlier creation with the same id or key is its stored outcome.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::CommandConflict`], [`Error::KeyConflict`], [`Error::SessionNotFound`], [`Error::StoreFailed`].
    pub async fn begin_creation(&self, creation: Creation) -> Result<AcceptedCommand, Error> {
        self.must_write("create a session")?;
        if let CreationSource::Fork(fork) = &creation.beginning {
            self.must_see(fork.from).await?;
        }
        self.engine.begin_creation(self.source(), creation, self.environment.clone(), &self.trace).await
    }

    /// What came of a creation; waits for that.
    ///
    /// # Errors
    /// As [`Client::create`], [`Client::fork`] and [`Client::import`]; [`Error::DependsOnItself`], and why what it depends on has not
    /// succeeded.
    pub async fn created(&self, begun: AcceptedCommand) -> Result<Answered, Error> {
        begun.ended().await.map_err(|error| self.without_reasons(error))
    }
}
