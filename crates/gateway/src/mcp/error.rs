//! The one table from errors to MCP.
//!
//! Whatever the engine refuses or fails at is an answer of the tool, marked as an error, since then the model reads it and
//! can do better. Errors of the protocol are left for what no tool saw: a tool that does not exist, arguments not of its
//! form ([`super::tool`]).

use std::fmt::{Display, Formatter};

use mainstay_model::{Action, Error, SessionState};
use rmcp::ErrorData;
use serde::Serialize;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::eval::SendFsharpCode;
use super::events::GetRecentFsiEvents;
use super::explore::ExploreType;
use super::lifecycle::{HardResetFsiSession, ResetFsiSession, StopSession};
use super::query::{CheckFsharpCode, GetCompletions};
use super::status::GetFsiStatus;
use super::tool::Tool;
use crate::http::problem::status_of;
use crate::view::fault;

/// Why a call was refused or failed, and what to do.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Stable: `mainstay explain CODE` says more.
    code: String,
    message: String,
    /// The tools the session offers instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    offered: Vec<&'static str>,
    next_step: String,
}

impl Display for ErrorAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, code, message, offered, next_step } = self;
        write!(f, "{code}: {message}. {next_step}")?;
        if !offered.is_empty() {
            write!(f, "\noffered: {}", offered.join(", "))?;
        }
        match session_id {
            Some(session) => write!(f, "\n[session {session}]"),
            None => Ok(()),
        }
    }
}

/// The answer to a call that met an error.
pub(super) async fn explain(call: &Call<'_>, error: &Error) -> ErrorAnswer {
    let mut message = error.to_string();
    if let (Error::NotOffered { state: SessionState::Faulted, .. }, Some(session)) = (error, call.session())
        && let Ok(status) = call.client().status(session).await
        && let Some(fault) = fault(&status.session)
    {
        message = format!("{message}: {}", fault.trim_end_matches('.'));
    }
    ErrorAnswer {
        session_id: call.session().map(|session| session.short()),
        code: error.code().to_string(),
        message,
        offered: tool_names(&error.offered()),
        next_step: next_step(error),
    }
}

/// What was refused or failed, and what to do, in one text.
pub(super) fn in_words(error: &Error) -> String {
    format!("{}: {error}. {}", error.code(), next_step(error))
}

/// The protocol's error for what is not a tool's: there no answer can say it.
pub(super) fn of_protocol(error: &Error) -> ErrorData {
    let words = in_words(error);
    match status_of(error).is_server_error() {
        true => ErrorData::internal_error(words, None),
        false => ErrorData::invalid_params(words, None),
    }
}

/// The tools for what a session offers.
pub(super) fn tool_names(actions: &[Action]) -> Vec<&'static str> {
    actions.iter().filter_map(|action| tool_name(*action)).collect()
}

const fn tool_name(action: Action) -> Option<&'static str> {
    match action {
        Action::Cancel => Some(CancelEval::NAME),
        // Running code starts a session at rest.
        Action::Eval | Action::Start => Some(SendFsharpCode::NAME),
        Action::Check => Some(CheckFsharpCode::NAME),
        Action::Complete => Some(GetCompletions::NAME),
        Action::Events => Some(GetRecentFsiEvents::NAME),
        Action::Status => Some(GetFsiStatus::NAME),
        Action::Reset => Some(ResetFsiSession::NAME),
        Action::Refresh => None,
        Action::HardReset => Some(HardResetFsiSession::NAME),
        Action::Stop => Some(StopSession::NAME),
        Action::Answer => Some(AnswerAsk::NAME),
        Action::Prompt | Action::Steer => None,
        Action::Explore => Some(ExploreType::NAME),
        Action::Rename | Action::Compact | Action::Label | Action::Merge | Action::Delete | Action::Ask => {
            None
        }
    }
}

/// What an agent does next: in its tools where it has one for it, in the words for everyone where it has not.
fn next_step(error: &Error) -> String {
    match error {
        Error::SessionNotFound { .. } | Error::SessionAmbiguous { .. } => {
            "Take an id from list_sessions.".into()
        }
        Error::NotOffered { state, .. } => match state {
            SessionState::Uninitialized => "Call send_fsharp_code: it starts the session.".into(),
            SessionState::WarmingUp => "Call get_fsi_status with waitSeconds until it is Ready.".into(),
            SessionState::Evaluating => {
                "Call get_fsi_status with waitSeconds until the code has ended, or cancel_eval.".into()
            }
            SessionState::Faulted => "Call stop_session, then send_fsharp_code: that keeps its definitions. reset_fsi_session drops them.".into(),
            SessionState::Waiting(_) => "Call get_fsi_status for what it asks, then answer_ask; or cancel_eval.".into(),
            SessionState::Ready => error.next_step(),
        },
        Error::TooManySessions { .. } => "Call stop_session for one that is not needed.".into(),
        Error::KernelUnknown { kind } if !kind.is_agent() => "Leave `kind` out for F#.".into(),
        Error::KernelUnknown { .. } => error.next_step(),
        Error::WorkerFailed { .. } => "Call stop_session, then send_fsharp_code.".into(),
        Error::Timeout { .. } => "Try again; cancel_eval if code that runs starves the session.".into(),
        Error::SessionStopped => "Send it again: that starts the session.".into(),
        Error::InvalidTransition { .. }
        | Error::NotOfKind { .. }
        | Error::SessionExists { .. }
        | Error::SessionOwned
        | Error::Withheld { .. }
        | Error::LaneFull { .. }
        | Error::TooManyConnections { .. }
        | Error::CommandConflict { .. }
        | Error::NotRunning { .. }
        | Error::AskNotPending { .. }
        | Error::AnswerInvalid { .. }
        | Error::NotPermitted { .. }
        | Error::TooManyAsks { .. }
        | Error::TooManyOutcomes { .. }
        | Error::TooManyRequests { .. }
        | Error::RunnerUnavailable { .. }
        | Error::CommandNotFound { .. }
        | Error::KeyConflict { .. }
        | Error::DependencyUnknown { .. }
        | Error::DependencyFailed { .. }
        | Error::DependencyInLane { .. }
        | Error::DependencyCycle { .. }
        | Error::DependencyPending { .. }
        | Error::DependsOnItself { .. }
        | Error::VersionMismatch { .. }
        | Error::TimedOut { .. }
        | Error::RateLimited { .. }
        | Error::TooManyCommands { .. }
        | Error::Cancelled
        | Error::CodeTooLarge { .. }
        | Error::MessageTooLarge { .. }
        | Error::CodeInvalid { .. }
        | Error::InvalidArgument { .. }
        | Error::KernelUnavailable { .. }
        | Error::StoreFailed { .. }
        | Error::StoreNewer { .. }
        | Error::StoreLocked
        | Error::ObjectDamaged { .. }
        | Error::EntryDamaged { .. }
        | Error::ImportInvalid { .. }
        | Error::NotebookInvalid { .. }
        | Error::ObjectNotFound { .. }
        | Error::DaemonStopping
        | Error::DaemonNotRunning
        | Error::DaemonVersionMismatch { .. }
        | Error::PortTaken { .. }
        | Error::DaemonFailed { .. }
        | Error::Unauthorized
        | Error::ForbiddenOrigin { .. }
        | Error::BadRequest { .. } => error.next_step(),
    }
}
