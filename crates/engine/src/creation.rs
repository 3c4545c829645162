//! Creating sessions: the work of the server's own lane. One creation after the other, so that one that is sent twice at once
//! happens once.

use std::path::Path;

use futures::FutureExt;
use futures::future::BoxFuture;
use mainstay_formats::exchange::Imported;
use mainstay_log::trace::ended;
use mainstay_log::{Append, Epoch, KeyScope, NewEvent, SessionFilter, StoredOutcome};
use mainstay_model::command::{validate_alias, validate_dependencies, validate_session_name};
use mainstay_model::decide::{Answer, Identity};
use mainstay_model::{
    Answered, Capabilities, Capability, ChosenProject, Command, CommandFingerprint, CommandId, CreateSession,
    Error, EventBody, ForkPoint, ForkSession, IdempotencyKey, Metadata, Outcome, Principal, Response, Seq,
    Session, SessionCommand, SessionId, Source, Version,
};
use serde::Serialize;
use tracing::Span;
use uuid::Uuid;

use crate::claims::{Claim, key_of};
use crate::clock::now;
use crate::dependencies::{Dependant, all_succeeded};
use crate::engine::{AcceptedCommand, Engine};
use crate::import_export::{ImportSession, imported_events, unplaced};
use crate::naming::Numbering;
use crate::sync::task;
use crate::trace::CommandTrace;
use mainstay_runner::Environment;

/// A session that is asked for.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The client's name for the command.
    pub id: CommandId,
    /// The client's name for what it wants done once. It counts for creations only; another id that comes with it is not remembered.
    pub key: Option<IdempotencyKey>,
    /// Commands of the same principal that must have succeeded before.
    pub depends_on: Vec<CommandId>,
    /// What the session is to begin with.
    pub beginning: CreationSource,
}

/// A creation, and who asks for it.
struct CreationRequest {
    source: Source,
    creation: Creation,
    /// What its creator has in its environment, where that is said.
    environment: Option<Environment>,
}

/// What a session is to begin with.
#[derive(Clone, Debug)]
pub enum CreationSource {
    /// A session without entries.
    Empty(CreateSession),
    /// A session that begins with entries of another.
    Fork(ForkSession),
    /// Cells that were read from a file.
    Import(ImportSession),
}

impl Creation {
    /// One that depends on nothing.
    pub fn new(id: CommandId, beginning: CreationSource) -> Self {
        Self { id, key: None, depends_on: Vec::new(), beginning }
    }

    fn identity(&self, principal: Principal) -> Identity {
        Identity {
            principal,
            command: self.id.clone(),
            key: self.key.clone(),
            fingerprint: self.fingerprint(),
        }
    }

    fn fingerprint(&self) -> CommandFingerprint {
        match &self.beginning {
            CreationSource::Empty(create) => self.fingerprint_of(create),
            CreationSource::Fork(fork) => self.fingerprint_of(fork),
            CreationSource::Import(ImportSession { create, imported }) => {
                self.fingerprint_of(&(create, imported.hash.as_str()))
            }
        }
    }

    fn fingerprint_of(&self, said: &impl Serialize) -> CommandFingerprint {
        match self.depends_on.as_slice() {
            [] => CommandFingerprint::of("server", said),
            depends_on => CommandFingerprint::of("server", &(said, depends_on)),
        }
    }
}

impl Engine {
    /// Accepts what is to create a session, unless it was accepted before. Whoever waits for it may go: it is carried out all the same.
    pub(crate) async fn begin_creation(
        &self,
        source: Source,
        creation: Creation,
        environment: Option<Environment>,
        parent: &Span,
    ) -> Result<AcceptedCommand, Error> {
        let identity = creation.identity(source.principal());
        let session = SessionId::from_uuid(Uuid::now_v7());
        let claims = &self.shared.single_process.claims;
        loop {
            if let Some(answered) = self.created_before(&identity).await? {
                return Ok(AcceptedCommand::at_once(answered));
            }
            if let Some(claim) = Claim::take(claims, key_of(&identity), session) {
                let engine = self.clone();
                let mut trace = CommandTrace::creates(parent, session, &creation.id);
                return Ok(AcceptedCommand::by(task::spawn(async move {
                    let _claim = claim;
                    // It may have been carried out before the id was taken.
                    let answered = match engine.created_before(&identity).await? {
                        Some(answered) => Ok(answered),
                        None => {
                            let asked = CreationRequest { source, creation, environment };
                            engine.carry_out_creation(session, asked, identity, &mut trace).await
                        }
                    };
                    match &answered {
                        Ok(_) => trace.end(),
                        Err(error) => trace.refused(error),
                    }
                    answered
                })));
            }
            // Under way: the outcome says whether it is the same.
            match claims.end_of(&key_of(&identity)) {
                Some(end) if self.is_being_created(&identity).await? => {
                    let engine = self.clone();
                    return Ok(AcceptedCommand::by(task::spawn(async move {
                        end.reached().await;
                        engine.answer_creation(source, creation, environment).await
                    })));
                }
                // Of a session that is there; it may have been created meanwhile.
                Some(_) => {
                    let answered = self.created_before(&identity).await?;
                    return answered
                        .map(AcceptedCommand::at_once)
                        .ok_or(Error::CommandConflict { command: creation.id });
                }
                None => {}
            }
        }
    }

    /// Carries out what is to create a session, or gives what came of it before.
    fn answer_creation(
        self,
        source: Source,
        creation: Creation,
        environment: Option<Environment>,
    ) -> BoxFuture<'static, Result<Answered, Error>> {
        async move { self.begin_creation(source, creation, environment, &Span::none()).await?.ended().await }
            .boxed()
    }

    /// Whether a command that is under way is to create a session: then that session is not there yet.
    async fn is_being_created(&self, identity: &Identity) -> Result<bool, Error> {
        match self.shared.single_process.claims.holder(&key_of(identity)) {
            Some(holder) => Ok(self.shared.log.session(holder).await?.is_none()),
            None => Ok(true),
        }
    }

    /// What came of it, where it came before: under its id, else under its key.
    async fn created_before(&self, identity: &Identity) -> Result<Option<Answered>, Error> {
        let Identity { principal, command, key, fingerprint } = identity;
        let log = &self.shared.log;
        let answered = |stored: StoredOutcome| Answered {
            outcome: stored.outcome,
            version: stored.version,
            is_replay: true,
        };
        // An id of our own was never there before.
        let stored = if command.is_anonymous() { None } else { log.outcome(principal, command).await? };
        match (stored, key) {
            (Some(stored), _) if stored.fingerprint == *fingerprint => Ok(Some(answered(stored))),
            (Some(_), _) => Err(Error::CommandConflict { command: command.clone() }),
            (None, None) => Ok(None),
            (None, Some(key)) => match log.outcome_of_key(principal, KeyScope::Creations, key).await? {
                Some(stored) if stored.fingerprint == *fingerprint => Ok(Some(answered(stored))),
                Some(_) => Err(Error::KeyConflict { key: key.clone() }),
                None => Ok(None),
            },
        }
    }

    async fn carry_out_creation(
        &self,
        session: SessionId,
        asked: CreationRequest,
        identity: Identity,
        trace: &mut CommandTrace,
    ) -> Result<Answered, Error> {
        let CreationRequest { source, creation, environment } = asked;
        let Creation { id, depends_on, beginning, .. } = creation;
        validate_dependencies(&id, &depends_on, &self.shared.limits)?;
        self.wait_for(&identity, session, depends_on).await?;
        let _turn = self.shared.single_process.server_lane.turn().await?;
        // Another with its key may have had the turn before.
        if let Some(answered) = self.created_before(&identity).await? {
            return Ok(answered);
        }
        let environment = match (environment, &beginning) {
            (Some(environment), _) => environment,
            // Where its creator says nothing, a fork has its parent's, which is nobody else's to have.
            (None, CreationSource::Fork(fork))
                if self.stored(fork.from).await?.owner == source.principal() =>
            {
                self.shared.environments.of(fork.from)
            }
            (None, _) => Environment::default(),
        };
        let (mut create, with) = self.plan(beginning, &source.principal()).await?;
        let capabilities = self.shared.capabilities_of(&create.kind);
        let must_run = must_run(capabilities, &with);
        self.check_creation(&create, must_run)?;
        if must_run {
            self.shared.must_find(&create.kind, Path::new(&create.working_directory), &environment).await?;
        }
        let owner = source.principal();
        let place = (&owner, create.working_directory.as_str());
        let name = match (&create.alias, &create.name) {
            (Some(_), _) => None,
            (None, Some(name)) => Some(name.clone()),
            (None, None) => {
                let name = folder_name(&create.working_directory);
                Some(self.free_name(&name, place, Numbering::Anew).await?)
            }
        };
        if let Some(alias) = &create.alias {
            self.check_alias(alias, &owner).await?;
        }
        // Nobody is renamed to it until it is there.
        let _name = match &name {
            Some(name) => Some(self.take_name(name, place, session).await?),
            None => None,
        };
        create.name = name.or(create.name);
        let project = self.shared.project_of(&create).await?;
        // A fork has its parent's, whatever the settings say by now.
        if !matches!(with, InitialContent::Entries(_)) {
            create.arguments = self.shared.arguments_of(&create)?;
        }
        let response = match &with {
            InitialContent::Nothing | InitialContent::Cells(_) => Response::Created { session },
            InitialContent::Entries(ForkPoint { entries, asked, .. }) => {
                Response::Forked { session, entries: *entries, asked: *asked }
            }
        };
        let outcome = Outcome::Done { response };
        let answer = identity.answer(outcome.clone());
        let is_agent = capabilities.has(Capability::Conversation);
        let events = first_events(id, &source, session, (create, project, capabilities), with);
        // Before the session is there: whoever starts it finds it.
        if !environment.is_empty() {
            self.shared.environments.keep(session, environment).await;
        }
        let appended = self.append_creation(session, events, answer, trace).await;
        let version = appended.inspect_err(|_| self.shared.environments.forget(session))?;
        // An agent starts when it has something to do.
        if !is_agent {
            self.start_created(session, source, trace).await;
        }
        Ok(Answered { outcome, version, is_replay: false })
    }

    /// Waits until what a creation depends on has succeeded.
    pub(crate) async fn wait_for(
        &self,
        identity: &Identity,
        session: SessionId,
        depends_on: Vec<CommandId>,
    ) -> Result<(), Error> {
        if depends_on.is_empty() {
            return Ok(());
        }
        let limit_ms = self.shared.limits.dependency_wait_ms;
        let dependant = Dependant { key: key_of(identity), session, depends_on, limit_ms };
        all_succeeded(&dependant, &self.shared.single_process.claims, self.shared.log.as_ref()).await
    }

    /// What a session is created as for this owner, and with.
    async fn plan(
        &self,
        beginning: CreationSource,
        owner: &Principal,
    ) -> Result<(CreateSession, InitialContent), Error> {
        match beginning {
            CreationSource::Empty(create) => Ok((create, InitialContent::Nothing)),
            CreationSource::Fork(fork) => {
                let (create, point) = self.plan_fork(fork, owner).await?;
                Ok((create, InitialContent::Entries(point)))
            }
            CreationSource::Import(ImportSession { mut create, imported }) => {
                self.check_import(&imported)?;
                if create.name.is_none() {
                    let place = (owner, create.working_directory.as_str());
                    let name = self.free_name(&imported.header.name, place, Numbering::GoesOn).await?;
                    create.name = Some(name);
                }
                Ok((create, InitialContent::Cells(imported)))
            }
        }
    }

    /// The session is there, and that is the answer. One that cannot start now does so when it is used.
    async fn start_created(&self, session: SessionId, source: Source, trace: &CommandTrace) {
        let start = Command::new(CommandId::anonymous(Uuid::now_v7()), source, SessionCommand::Start);
        let started = match self.begin(session, start, trace.span()).await {
            Ok(begun) => begun.ended().await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            tracing::warn!(%session, %error, "a new session was not started");
        }
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
        if !self.shared.capabilities_of(&create.kind).has(Capability::Conversation) {
            if shared.live.available_permits() == 0 {
                return Err(Error::TooManySessions { limit: shared.limits.live_sessions });
            }
            shared.breakers.check(&create.kind)?;
        }
        shared.single_process.outcomes.check()?;
        shared.single_process.rate.pass()
    }

    /// Refuses an alias that another session of the same owner has, or that could be taken for something else.
    pub(crate) async fn check_alias(&self, alias: &str, owner: &Principal) -> Result<(), Error> {
        validate_alias(alias)?;
        let filter = SessionFilter { alias: Some(alias.to_owned()), ..SessionFilter::default() };
        match self.sessions(filter).await?.iter().any(|session| session.owner == *owner) {
            true => Err(Error::SessionExists { reference: alias.to_owned() }),
            false => Ok(()),
        }
    }

    /// Appends a session's first events; gives its version then.
    async fn append_creation(
        &self,
        session: SessionId,
        events: Vec<NewEvent>,
        answer: Answer,
        trace: &mut CommandTrace,
    ) -> Result<Version, Error> {
        let Some(projection) = Session::fold(&unplaced(session, &events)) else {
            return Err(Error::BadRequest { reason: "a session begins with its creation".to_owned() });
        };
        let version = projection.version;
        trace.accepted();
        let span = trace.commit(events.len(), 1);
        let append = Append {
            session,
            epoch: Epoch::FIRST,
            first: Seq(1),
            events,
            outcomes: vec![answer],
            version,
            projection,
            taken: None,
            trace: span.clone(),
        };
        let events = self.unless_stopping(|| self.shared.log.append(append))?.await?;
        ended(&span);
        self.shared.single_process.outcomes.add(1);
        self.shared.hub.publish(session, events);
        Ok(version)
    }
}

/// What a session is created with, once it is known.
enum InitialContent {
    Nothing,
    Entries(ForkPoint),
    Cells(Imported),
}

/// A session's first events: its creation, and what it is created with.
fn first_events(
    id: CommandId,
    source: &Source,
    session: SessionId,
    (create, project, capabilities): (CreateSession, ChosenProject, Capabilities),
    with: InitialContent,
) -> Vec<NewEvent> {
    let metadata =
        Metadata { source: source.clone(), correlation: Some(id), causation: None, environment: None };
    let new = |body| NewEvent { at: now(), metadata: metadata.clone(), body };
    let mut events = vec![new(created(create, project, capabilities))];
    match with {
        InitialContent::Nothing => {}
        InitialContent::Entries(point) => events.push(new(EventBody::SessionForked(point))),
        InitialContent::Cells(Imported { items, hash, .. }) => {
            events.push(new(EventBody::SessionImported { hash }));
            events.extend(imported_events(items, session, Seq(3), source));
        }
    }
    events
}

fn created(create: CreateSession, project: ChosenProject, capabilities: Capabilities) -> EventBody {
    let CreateSession { kind, working_directory, project: _, arguments, name, alias } = create;
    let (project, passed_over) = project.into_parts();
    let name = name.unwrap_or_else(|| folder_name(&working_directory));
    // What is usual of the kind is not said.
    let capabilities = Some(capabilities).filter(|declared| *declared != Capabilities::of_kind(&kind));
    EventBody::SessionCreated {
        kind,
        name,
        working_directory,
        project,
        passed_over,
        arguments,
        alias,
        capabilities,
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
fn must_run(capabilities: Capabilities, with: &InitialContent) -> bool {
    match with {
        InitialContent::Nothing => true,
        InitialContent::Entries(_) | InitialContent::Cells(_) => !capabilities.has(Capability::Conversation),
    }
}
