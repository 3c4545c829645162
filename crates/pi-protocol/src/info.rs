//! Sessions as the protocol has them, and what its clients call them. Source: protocols/pi.md, "SessionInfo".

use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Principal, Session, SessionId};
use serde_json::{Value, json};

use super::daemon::PiDaemon;
use super::session_path;

/// What a principal's clients call a session: their own as they called it, another's by its id.
pub(super) fn name_of(session: &Session, principal: &Principal) -> String {
    let alias = session.alias.clone().filter(|_| session.owner == *principal);
    alias.unwrap_or_else(|| session.id.to_string())
}

/// The session that clients call so: an agent's that is loaded, by the alias that this principal gave it or by its whole id.
pub(super) async fn find(client: &Client, name: &str) -> Result<SessionId, Error> {
    let not_found = || Error::SessionNotFound { reference: name.to_owned() };
    let loaded = SessionFilter { loaded: true, ..SessionFilter::default() };
    let filter = SessionFilter { alias: Some(name.to_owned()), ..loaded.clone() };
    let mut found = client.sessions(filter).await?;
    found.retain(|session| session.owner == *client.principal());
    if let Ok(id) = name.parse::<SessionId>() {
        let filter = SessionFilter { id: Some(id), ..loaded };
        found.extend(client.sessions(filter).await?);
    }
    found.retain(|session| session.is_agent());
    found.first().map(|session| session.id).ok_or_else(not_found)
}

/// The sessions of agents that are seen and loaded, the most recently active first.
pub(super) async fn agents(client: &Client) -> Result<Vec<Session>, Error> {
    agents_of(client, SessionFilter { loaded: true, ..SessionFilter::default() }).await
}

/// The sessions of agents that are seen, loaded or not, the most recently active first.
pub(super) async fn stored_agents(client: &Client) -> Result<Vec<Session>, Error> {
    agents_of(client, SessionFilter::default()).await
}

async fn agents_of(client: &Client, filter: SessionFilter) -> Result<Vec<Session>, Error> {
    let mut sessions = client.sessions(filter).await?;
    sessions.retain(|session| session.is_agent());
    Ok(sessions)
}

/// What is said of a session.
pub(super) async fn info(daemon: &PiDaemon, client: &Client, session: &Session) -> Result<Value, Error> {
    let state = daemon.engine.agent_state(session);
    let mut info = json!({
        "sessionId": name_of(session, client.principal()),
        "sessionFile": session_path::of(&daemon.home, session.id).display().to_string(),
        "thinkingLevel": state.thinking,
        "isStreaming": session.state().is_busy(),
        "messageCount": daemon.pi.counts.of(client, session).await?,
        "createdAt": session.created_at,
    });
    // It has a name of its own once someone gave it one.
    if session.alias.as_ref() != Some(&session.name) {
        info["sessionName"] = session.name.as_str().into();
    }
    if let Some(model) = state.model {
        info["model"] = match model.about.is_object() {
            true => model.about,
            false => {
                let mut known = json!({ "id": model.id, "provider": model.provider });
                if let Some(window) = model.context_window {
                    known["contextWindow"] = window.into();
                }
                known
            }
        };
    }
    Ok(info)
}

/// What is said of each of these.
pub(super) async fn infos(
    daemon: &PiDaemon,
    client: &Client,
    sessions: &[Session],
) -> Result<Vec<Value>, Error> {
    let mut infos = Vec::with_capacity(sessions.len());
    for session in sessions {
        match info(daemon, client, session).await {
            Ok(info) => infos.push(info),
            // It went meanwhile.
            Err(Error::SessionNotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}

/// How much of what its model can be shown is taken; null where that is not known.
pub(super) fn context_usage(session: &Session) -> Value {
    let state = session.agent.as_ref();
    let Some(window) = state.and_then(|state| state.model.as_ref()).and_then(|model| model.context_window)
    else {
        return Value::Null;
    };
    let tokens = state.and_then(|state| state.context_tokens);
    let percent = tokens.map(|tokens| tokens as f64 * 100.0 / window.max(1) as f64);
    json!({ "tokens": tokens, "contextWindow": window, "percent": percent })
}
