//! Creating sessions: the work of the server's own lane. One creation after the other, so that one that is sent twice at once
//! happens once.

use std::path::Path;
use std::sync::PoisonError;

use mainstay_log::{Append, Epoch, NewEvent, SessionFilter, StoredOutcome};
use mainstay_model::command::{validate_alias, validate_session_name};
use mainstay_model::decide::{Answer, Identity};
use mainstay_model::exchange::Imported;
use mainstay_model::{
    Command, CommandFingerprint, CommandId, CreateSession, Error, EventBody, ForkPoint, ForkSession,
    Metadata, Outcome, RateScope, Response, Seq, Session, SessionCommand, SessionId, Source,
};
use tokio::sync::{Mutex, MutexGuard, Semaphore};
use uuid::Uuid;

use crate::claims::{Claim, key_of};
use crate::engine::Engine;
use crate::exchange::{ImportSession, imported_events, unplaced};
use crate::session::now;
use crate::sync::task;

/// The server's lane: one at a time, in the order in which they came, and so many waiting at most.
pub(crate) struct ServerLane {
    turn: Mutex<()>,
    places: Semaphore,
    limit: usize,
}

impl ServerLane {
    /// One in which so many may wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            turn: Mutex::default(),
            places: Semaphore::new(limit.saturating_add(1).min(Semaphore::MAX_PERMITS)),
            limit,
        }
    }

    /// How many wait or are carried out.
    pub(crate) fn len(&self) -> usize {
        self.limit.saturating_add(1).saturating_sub(self.places.available_permits())
    }

    async fn turn(&self) -> Result<Turn<'_>, Error> {
        let place = self.places.try_acquire().map_err(|_| Error::LaneFull { limit: self.limit })?;
        Ok(Turn { _turn: self.turn.lock().await, _place: place })
    }
}

struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _place: tokio::sync::SemaphorePermit<'a>,
}

/// What a session is to begin with.
pub(crate) enum Beginning {
    /// Nothing.
    Empty(CreateSession),
    /// Entries of another.
    Fork(ForkSession),
    /// Cells that were read from a file.
    Import(ImportSession),
}

impl Beginning {
    fn fingerprint(&self) -> CommandFingerprint {
        match self {
            Self::Empty(create) => CommandFingerprint::of("server", create),
            Self::Fork(fork) => CommandFingerprint::of("server", fork),
            Self::Import(ImportSession { create, imported }) => {
                CommandFingerprint::of("server", &(create, imported.hash.as_str()))
            }
        }
    }
}

impl Engine {
    /// Creates a session and starts it. Whoever waits for it may go: it is carried out all the same.
    pub(crate) async fn create(
        &self,
        id: CommandId,
        source: Source,
        beginning: Beginning,
    ) -> Result<Outcome, Error> {
        let engine = self.clone();
        let created = task::spawn(async move { engine.carry_out_creation(id, source, beginning).await });
        created.await.unwrap_or_else(|error| Err(Error::DaemonFailed { reason: error.to_string() }))
    }

    async fn carry_out_creation(
        &self,
        id: CommandId,
        source: Source,
        beginning: Beginning,
    ) -> Result<Outcome, Error> {
        let fingerprint = beginning.fingerprint();
        if let Some(stored) = self.shared.log.outcome(&source.principal(), &id).await? {
            return replayed(&id, &fingerprint, stored);
        }
        let _turn = self.shared.server_lane.turn().await?;
        // It may have been carried out while this waited for its turn.
        if let Some(stored) = self.shared.log.outcome(&source.principal(), &id).await? {
            return replayed(&id, &fingerprint, stored);
        }
        let (create, with) = match beginning {
            Beginning::Empty(create) => (create, With::Nothing),
            Beginning::Fork(fork) => {
                self.plan_fork(fork).await.map(|(create, point)| (create, With::Entries(point)))?
            }
            Beginning::Import(ImportSession { mut create, imported }) => {
                self.check_import(&imported)?;
                if create.name.is_none() {
                    create.name = Some(self.free_name(&imported.header.name).await?);
                }
                (create, With::Cells(imported))
            }
        };
        self.check_creation(&create, must_run(&create, &with))?;
        self.check_alias(&create, &source).await?;
        let session = SessionId::from_uuid(Uuid::now_v7());
        let identity =
            Identity { principal: source.principal(), command: id.clone(), key: None, fingerprint };
        let Some(_claim) = Claim::take(&self.shared.claims, key_of(&identity), session) else {
            return Err(Error::CommandConflict { command: id });
        };
        let response = match &with {
            With::Nothing | With::Cells(_) => Response::Created { session },
            With::Entries(ForkPoint { entries, asked, .. }) => {
                Response::Forked { session, entries: *entries, asked: *asked }
            }
        };
        let outcome = Outcome::Done { response };
        let answer = identity.answer(outcome.clone());
        let is_agent = create.kind.is_agent();
        let events = first_events(id, &source, session, create, with);
        self.append_creation(session, events, answer).await?;
        // An agent starts when it has something to do.
        if is_agent {
            return Ok(outcome);
        }
        let start = Command::new(CommandId::anonymous(Uuid::now_v7()), source, SessionCommand::Start);
        // The session is there, and that is the answer. One that cannot start now does so when it is used.
        if let Err(error) = self.submit(session, start).await {
            tracing::warn!(%session, %error, "a new session was not started");
        }
        Ok(outcome)
    }

    fn check_creation(&self, create: &CreateSession, must_run: bool) -> Result<(), Error> {
        let shared = &self.shared;
        if must_run {
            shared.must_serve(&create.kind)?;
        }
        if let Some(name) = &create.name {
            validate_session_name(name)?;
        }
        let folder = Path::new(&create.working_directory);
        // What is only read keeps the folder it ran in, wherever that was.
        if !folder.is_absolute() || must_run && !folder.is_dir() {
            return Err(Error::InvalidArgument {
                argument: "workingDirectory".to_owned(),
                reason: format!("`{}` must be the absolute path of a folder that is there", folder.display()),
            });
        }
        if !create.kind.is_agent() {
            if shared.live.available_permits() == 0 {
                return Err(Error::TooManySessions { limit: shared.limits.live_sessions });
            }
            shared.breakers.check(&create.kind)?;
        }
        shared.check_outcomes()?;
        let limit = shared.limits.commands_per_minute;
        let limited = |retry_after_ms| Error::RateLimited { scope: RateScope::Server, limit, retry_after_ms };
        shared.rate.lock().unwrap_or_else(PoisonError::into_inner).pass(now()).map_err(limited)
    }

    /// Refuses an alias that another session of the same owner has, or that could be taken for something else.
    async fn check_alias(&self, create: &CreateSession, source: &Source) -> Result<(), Error> {
        let Some(alias) = &create.alias else { return Ok(()) };
        validate_alias(alias)?;
        let filter = SessionFilter { alias: Some(alias.clone()), ..SessionFilter::default() };
        let owner = source.principal();
        match self.sessions(filter).await?.iter().any(|session| session.owner == owner) {
            true => Err(Error::SessionExists { reference: alias.clone() }),
            false => Ok(()),
        }
    }

    /// Appends a session's first events.
    async fn append_creation(
        &self,
        session: SessionId,
        events: Vec<NewEvent>,
        answer: Answer,
    ) -> Result<(), Error> {
        let Some(projection) = Session::fold(&unplaced(session, &events)) else {
            return Err(Error::BadRequest { reason: "a session begins with its creation".to_owned() });
        };
        let append = Append {
            session,
            epoch: Epoch::FIRST,
            first: Seq(1),
            events,
            outcomes: vec![answer],
            version: projection.version,
            projection,
        };
        let events = self.shared.log.append(append).await?;
        self.shared.count_outcomes(1);
        self.shared.hub.publish(session, events);
        Ok(())
    }
}

/// What a session is created with, once it is known.
enum With {
    Nothing,
    Entries(ForkPoint),
    Cells(Imported),
}

/// A session's first events: its creation, and what it is created with.
fn first_events(
    id: CommandId,
    source: &Source,
    session: SessionId,
    create: CreateSession,
    with: With,
) -> Vec<NewEvent> {
    let metadata =
        Metadata { source: source.clone(), correlation: Some(id), causation: None, environment: None };
    let new = |body| NewEvent { at: now(), metadata: metadata.clone(), body };
    let mut events = vec![new(created(create))];
    match with {
        With::Nothing => {}
        With::Entries(point) => events.push(new(EventBody::SessionForked(point))),
        With::Cells(Imported { items, hash, .. }) => {
            events.push(new(EventBody::SessionImported { hash }));
            events.extend(imported_events(items, session, Seq(3), source));
        }
    }
    events
}

fn created(create: CreateSession) -> EventBody {
    let CreateSession { kind, working_directory, project, name, alias } = create;
    let name = name.unwrap_or_else(|| folder_name(&working_directory));
    EventBody::SessionCreated { kind, name, working_directory, project, alias }
}

fn replayed(
    command: &CommandId,
    fingerprint: &CommandFingerprint,
    stored: StoredOutcome,
) -> Result<Outcome, Error> {
    if stored.fingerprint == *fingerprint {
        Ok(stored.outcome)
    } else {
        Err(Error::CommandConflict { command: command.clone() })
    }
}

/// The name of a session that was given none: its folder's, as far as that can be a name.
fn folder_name(path: &str) -> String {
    let folder = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let name: String = folder.chars().filter(|c| !c.is_control()).take(120).collect();
    if name.trim().is_empty() { "session".to_owned() } else { name }
}

/// Whether what does its work, and its folder, must be here. An agent's conversation that has a beginning can be read where it
/// cannot go on.
fn must_run(create: &CreateSession, with: &With) -> bool {
    match with {
        With::Nothing => true,
        With::Entries(_) | With::Cells(_) => !create.kind.is_agent(),
    }
}
