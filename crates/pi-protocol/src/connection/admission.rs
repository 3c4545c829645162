//! Whether a command is carried out: it is one too many, comes too late, or was answered before.

use mainstay_engine::CommandStatus;
use mainstay_log::StoredOutcome;
use mainstay_model::{CommandId, Error, Outcome, Timestamp};

use super::Connection;
use super::outcome::fingerprint_of;
use crate::answer_cache::CachedAnswer;
use crate::command::PiCommand;
use crate::errors::{ErrorContext, said};
use crate::frames::{Phase, Response};
use mainstay_gateway::command::anonymous;

/// Places that are kept for what passes everything.
const URGENT: usize = 16;

impl Connection {
    /// Why a command is not looked at: it is one too many, or comes too late.
    pub(super) fn turned_away(&self, command: &PiCommand, under_way: usize) -> Option<Response> {
        if self.daemon.stop.is_cancelled() {
            return Some(self.refusal(command, &Error::DaemonStopping, None));
        }
        let limit = self.daemon.engine.limits().connection_requests;
        let places = if command.body.is_urgent() { limit.saturating_add(URGENT) } else { limit };
        (under_way >= places)
            .then(|| Error::TooManyRequests { what: "commands".to_owned(), limit })
            .map(|error| self.refusal(command, &error, None))
    }

    /// Counts a read for the rates that hold for commands: a session's reads have one of their own.
    pub(super) fn pass_read(&self, command: &PiCommand) -> Result<(), Error> {
        let (client, limits) = (&self.peer.client, self.daemon.engine.limits());
        if let Some(session) = &command.session {
            let limit = limits.session_commands_per_minute;
            self.daemon.pi.rates.pass_read(client.principal(), session, limit, Timestamp::now())?;
        }
        client.count_read()
    }

    pub(super) fn refusal(&self, command: &PiCommand, error: &Error, earlier: Option<&str>) -> Response {
        let id = command.id.as_ref().map(|id| id.as_str().to_owned());
        let about = ErrorContext { earlier, ..ErrorContext::of(command) };
        Response::failure(id, command.kind.as_str(), said(error, &about))
    }

    /// The answer to a command that was answered before, or whose id or key belongs to another.
    pub(super) async fn answered_before(&self, command: &PiCommand) -> Option<Response> {
        // A new connection wants to hear, whatever was answered to another one.
        if command.is_subscription() || self.daemon.stop.is_cancelled() {
            return None;
        }
        let before = self.daemon.pi.seen().before(self.peer.client.principal(), command);
        match (before, &command.id, &command.key) {
            (CachedAnswer::Answered(answer), ..) => Some(*answer),
            (CachedAnswer::Taken { by, is_key: true }, _, Some(key)) => {
                Some(self.refusal(command, &Error::KeyConflict { key: key.clone() }, Some(&by)))
            }
            (CachedAnswer::Taken { by, .. }, Some(id), _) => {
                Some(self.refusal(command, &Error::CommandConflict { command: id.clone() }, Some(&by)))
            }
            (CachedAnswer::New, Some(id), _) => self.refused_before(command, id).await,
            (CachedAnswer::New | CachedAnswer::Taken { .. }, ..) => None,
        }
    }

    /// The answer to a command that was refused before it reached a session, which the engine does not look for.
    pub(super) async fn refused_before(&self, command: &PiCommand, id: &CommandId) -> Option<Response> {
        let Ok(CommandStatus::Ended(stored)) = self.peer.client.command(id).await else { return None };
        let StoredOutcome { fingerprint, outcome, session, .. } = *stored;
        match outcome {
            Outcome::Failed { error } if session.is_none() && fingerprint == fingerprint_of(command) => {
                Some(Response { replayed: true, ..self.refusal(command, &error, None) })
            }
            Outcome::Failed { .. } | Outcome::Done { .. } if command.body.is_read() => {
                Some(self.refusal(command, &Error::CommandConflict { command: id.clone() }, None))
            }
            Outcome::Failed { .. } | Outcome::Done { .. } => None,
        }
    }

    /// Answers a command that is not carried out.
    pub(super) async fn answer_at_once(&self, command: &PiCommand, answer: &Response) {
        let id = command.id.clone().unwrap_or_else(anonymous);
        self.tell_phase(Phase::Finished, command, &id, Some(answer)).await;
        self.answer(answer).await;
    }
}
