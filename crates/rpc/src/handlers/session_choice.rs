//! The session that a folder, a kind, a project or a name means: finding it, and creating it where there is none.

use std::time::Duration;

use mainstay_engine::SessionChoice;
use mainstay_gateway::command::anonymous;
use mainstay_model::{CreateSession, Error, Outcome, Response, Session, SessionId, SessionState};
use mainstay_protocol::view::SessionView;

use super::call::{Call, unexpected};
use mainstay_protocol::operations::{FindSession, OpenSession, Opened, Search};

pub(crate) async fn find(call: Call, asked: FindSession) -> Result<SessionView, Error> {
    let search = asked.search.wanted()?;
    let place = match &search.working_directory {
        Some(folder) => format!("folder {folder}"),
        None => "any folder".to_owned(),
    };
    match call.client.find_session(&search, &call.daemon.kind_resolver).await? {
        Some(session) => call.view(session.id).await,
        None => Err(Error::SessionNotFound { reference: place }),
    }
}

pub(crate) async fn open(call: Call, asked: OpenSession) -> Result<Opened, Error> {
    let OpenSession { session, search, even_unready, timeout_ms } = asked;
    match choose(&call, session, search.clone()).await? {
        SessionChoice::Found(found) => found_one(&call, &found, timeout_ms).await,
        SessionChoice::New(create) => {
            let CreateSession { kind, working_directory, .. } = &create;
            let kinds = &call.daemon.kind_resolver;
            if !even_unready && !kinds.is_ready(&call.client, kind, working_directory).await {
                let CreateSession { kind, working_directory, .. } = create;
                return Ok(Opened::Unready { kind, working_directory });
            }
            let turn = call.client.creation_turn().await;
            // Another client may have created it since.
            match choose(&call, None, search).await? {
                SessionChoice::Found(found) => found_one(&call, &found, timeout_ms).await,
                SessionChoice::New(create) => {
                    let session = created(&call, create).await?;
                    drop(turn);
                    Ok(Opened::Created { session: Box::new(in_use(&call, session, timeout_ms).await?) })
                }
            }
        }
    }
}

async fn found_one(call: &Call, found: &Session, timeout_ms: Option<u64>) -> Result<Opened, Error> {
    let was_idle = matches!(found.state(), SessionState::Uninitialized | SessionState::WarmingUp);
    Ok(Opened::Found { session: Box::new(in_use(call, found.id, timeout_ms).await?), was_idle })
}

async fn choose(call: &Call, reference: Option<String>, search: Search) -> Result<SessionChoice, Error> {
    match call.optional(reference).await? {
        Some(session) => Ok(SessionChoice::Found(Box::new(call.client.status(session).await?.session))),
        None => call.client.choose_session(search.wanted()?, &call.daemon.kind_resolver).await,
    }
}

/// A session as it is, once it is brought into use where that is wanted.
async fn in_use(call: &Call, session: SessionId, timeout_ms: Option<u64>) -> Result<SessionView, Error> {
    if let Some(limit) = timeout_ms {
        call.client.bring_into_use(session, Duration::from_millis(limit)).await?;
    }
    call.view(session).await
}

async fn created(call: &Call, create: CreateSession) -> Result<SessionId, Error> {
    match call.client.create(anonymous(), create).await? {
        Outcome::Done { response: Response::Created { session } } => Ok(session),
        outcome => Err(unexpected(&outcome)),
    }
}
