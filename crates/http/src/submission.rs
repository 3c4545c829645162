//! Commands: handed over, answered once they are accepted, or once they have ended where the client waits for that.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Client, ClientSubscription, Cursor};
use mainstay_model::{
    Admission, Answered, Command, CommandId, Error, EventFilter, Outcome, Response as Done, Seq,
    SessionCommand, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bare::{record, told};
use super::caller::Caller;
use super::media::Media;
use super::prefer::{Key, Prefer};
use mainstay_gateway::command::id_of;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::view::{eval_view, work_view};
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::view::{CommandState, CommandView, EvalView};
use mainstay_protocol::{Conditions, Sent};

/// What ends so quickly is refused in the answer.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// Under what name and conditions a command is sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Terms {
    /// The client's name for the command: sent again under it, it gets the first answer and is not carried out again.
    command_id: Option<CommandId>,
    /// Commands that must have succeeded before it begins.
    depends_on: Vec<CommandId>,
    /// The version that the session must have when it begins.
    if_version: Option<mainstay_model::Version>,
    /// How long it may take from its acceptance to its end, in milliseconds.
    timeout_ms: Option<u64>,
}

record!(Terms { command_id, depends_on, if_version, timeout_ms });

impl Terms {
    /// The client's name for the command.
    pub(super) const fn command_id(&self) -> Option<&CommandId> {
        self.command_id.as_ref()
    }

    /// With the key that stands in a header.
    pub(super) fn sent(self, Key(key): Key) -> Sent {
        let Self { command_id, depends_on, if_version, timeout_ms } = self;
        Sent { command: command_id, conditions: Conditions { key, depends_on, if_version, timeout_ms } }
    }
}

/// A command was accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Accepted {
    /// Its id: `GET /commands/{id}` has its outcome.
    pub(super) command_id: CommandId,
    /// The session that accepted the command.
    pub(super) session: SessionId,
    /// The events of the session after this one tell of it.
    pub(super) seq: Seq,
}

told!(Accepted { command_id, session, seq });

/// Hands a command over.
pub(super) async fn submit(
    caller: &Caller,
    session: SessionId,
    body: SessionCommand,
    sent: Sent,
    Prefer(wait): Prefer,
) -> Result<Response, Problem> {
    let client = &caller.client;
    let Sent { command, conditions } = sent;
    let Conditions { key, depends_on, if_version, timeout_ms } = conditions;
    let id = id_of(command)?;
    // Jobs wait for their turn, and start an idle session; all else is carried out now or refused.
    let is_job = matches!(body, SessionCommand::Eval(_) | SessionCommand::Work(_));
    let admission = if is_job { Admission::Queue } else { Admission::Now };
    let command = Command {
        key,
        admission,
        depends_on,
        if_version,
        timeout_ms,
        ..Command::new(id.clone(), client.source(), body)
    };
    if wait.is_none()
        && let Some(seq) = under_way(client, session, &id).await?
    {
        return Ok(Accepted { command_id: id, session, seq }.answer(caller.answers()));
    }
    // What was deleted is answered what it was answered before.
    let after = client.seen_session(session).await?.map_or(Seq::ZERO, |session| session.last_seq);
    let filter = EventFilter { correlation: Some(id.clone()), ..EventFilter::default() };
    let mut followed = client.follow(Cursor::Session { session, after }, filter).await.ok();
    let begun = client.begin(session, command).await?;
    let accepted = |seq| Accepted { command_id: id.clone(), session, seq };
    let mut ended = Box::pin(begun.ended());
    let seq = tokio::select! {
        biased;
        answered = &mut ended => {
            return answer(caller, session, &id, answered?, accepted(after), wait.is_some()).await;
        }
        seq = first(&mut followed) => Seq(seq.0.saturating_sub(1)),
    };
    let Some(limit) = wait else { return Ok(accepted(seq).answer(caller.answers())) };
    match tokio::time::timeout(limit, ended).await {
        Ok(answered) => answer(caller, session, &id, answered?, accepted(seq), true).await,
        // It goes on, and its client hears of it elsewhere.
        Err(_) => Ok(accepted(seq).answer(caller.answers())),
    }
}

/// Behind which event a command began that is sent again while it waits or runs; none where it does neither.
async fn under_way(client: &Client, session: SessionId, id: &CommandId) -> Result<Option<Seq>, Error> {
    let (principal, Some(stored)) = (client.principal(), client.seen_session(session).await?) else {
        return Ok(None);
    };
    let waits = stored.lane.iter().find(|waiting| waiting.principal == *principal && waiting.command == *id);
    let runs = stored.running().filter(|running| running.answers(principal, id));
    let first = waits.map(|waiting| waiting.queued).or(runs.map(|running| running.requested));
    Ok(first.map(|first| Seq(first.0.saturating_sub(1))))
}

/// The first event of a command: from then on it has exactly one outcome.
async fn first(followed: &mut Option<ClientSubscription>) -> Seq {
    match followed {
        Some(events) => match events.next().await {
            Ok(event) => event.seq,
            // The outcome says more.
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// What a client is told once the command has ended.
async fn answer(
    caller: &Caller,
    session: SessionId,
    id: &CommandId,
    answered: Answered,
    accepted: Accepted,
    waits: bool,
) -> Result<Response, Problem> {
    let Answered { outcome, version, is_replay } = answered;
    let response = match outcome {
        Outcome::Failed { error } => return Err(error.into()),
        Outcome::Done { response } => response,
    };
    let media = caller.answers();
    if !waits {
        return Ok(accepted.answer(media));
    }
    let client = &caller.client;
    let response = match response {
        Done::Evaluated(outcome) => {
            let view = eval_view(client, session, id.clone(), outcome).await?;
            media.answer(&EvalView { version, replayed: is_replay, ..view })
        }
        Done::Worked(outcome) => {
            let view = work_view(client, session, id.clone(), outcome).await?;
            media.answer(&WorkView { version, replayed: is_replay, ..view })
        }
        response @ (Done::Created { .. }
        | Done::Forked { .. }
        | Done::Merged { .. }
        | Done::Compacted { .. }
        | Done::Cancelling { .. }
        | Done::Withdrawn { .. }
        | Done::Answered { .. }
        | Done::Voted { .. }
        | Done::Recorded { .. }) => {
            let (command, session) = (id.clone(), Some(session));
            let (state, outcome) = (CommandState::Ended, Some(Outcome::Done { response }));
            media.answer(&CommandView { command, session, state, version: Some(version), outcome })
        }
    };
    Ok(waited(response))
}

/// Says that what the client preferred was done.
pub(super) fn waited(mut response: Response) -> Response {
    response.headers_mut().insert("preference-applied", HeaderValue::from_static("wait"));
    response
}

impl Accepted {
    /// The answer that says so.
    pub(super) fn answer(&self, media: Media) -> Response {
        let mut headers = HeaderMap::new();
        if let Ok(place) = HeaderValue::try_from(format!("/commands/{}", self.command_id)) {
            headers.insert(header::LOCATION, place);
        }
        (StatusCode::ACCEPTED, headers, media.answer(self)).into_response()
    }
}

/// An outcome that should not be.
pub(super) fn unexpected(outcome: &Outcome) -> Error {
    match outcome {
        Outcome::Failed { error } => error.clone(),
        Outcome::Done { response } => {
            Error::BadRequest { reason: format!("the command's outcome is {response:?}") }
        }
    }
}
