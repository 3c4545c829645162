//! The one table from errors to MCP.
//!
//! Whatever the engine refuses or fails at is an answer of the tool, marked as an error, since then the model reads it and
//! can do better; so are arguments that are not of the tool's form. Errors of the protocol are left for what is no tool's: one that does
//! not exist ([`super::tools`]).

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::{availability, remedy};
use mainstay_model::{Action, Availability, Capabilities, Error, SessionState};
use rmcp::ErrorData;
use serde::Serialize;

use super::call::Call;
use super::eval::SendCode;
use super::kinds;
use super::lifecycle::ResetSession;
use super::listed::Listed;
use super::names::Names;
use super::offer::Offered;
use super::rebuild::HardResetSession;
use super::status::GetStatus;
use mainstay_gateway::problem::status_of;

/// Why a call was refused or failed, and what to do.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Stable: `mainstay explain CODE` says more.
    code: String,
    message: String,
    /// The tools that the session offers instead.
    #[serde(skip_serializing_if = "Offered::is_empty")]
    offered: Offered,
    /// What would make the refused thing possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Remedy>,
    next_step: String,
}

/// When a session would do what it refuses.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Remedy {
    action: Action,
    /// The states in which it is done.
    states: Vec<&'static str>,
    how: &'static str,
}

impl Remedy {
    fn of(error: &Error, tools: &[Listed]) -> Option<Self> {
        let Error::NotOffered { action, state, .. } = error else { return None };
        let is_done = |state: &SessionState| {
            availability(*state, *action) != Availability::Refused
                || tools.iter().any(|tool| tool.needs.works.does(*action, *state))
        };
        let states = SessionState::ALL.into_iter().filter(is_done).map(SessionState::name).collect();
        Some(Self { action: *action, states, how: remedy(*state, *action) })
    }
}

impl Display for ErrorAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, code, message, offered, remedy: _, next_step } = self;
        write!(f, "{code}: {message}. {next_step}")?;
        if !offered.is_empty() {
            write!(f, "\noffered: {offered}")?;
        }
        match session_id {
            Some(session) => write!(f, "\n[session {session}]"),
            None => Ok(()),
        }
    }
}

/// The answer to a call that met an error.
pub(super) async fn explain(call: &Call, error: &Error) -> ErrorAnswer {
    // Where only this session's kernel lacks it, what is offered to its kind would name it.
    let is_of_kernel =
        matches!(error, Error::NotOfKind { action, kind } if action.is_of(Capabilities::of_kind(kind)));
    let is_refused = is_refused_by_session(error) && !is_of_kernel;
    let session = match call.session() {
        Some(session) => call.client().status(session).await.ok().map(|status| status.session),
        None if is_refused => call.meant().session().await.unwrap_or_default(),
        None => None,
    };
    let kind = match &session {
        Some(session) => session.kind.clone(),
        None => call.meant().kind().await,
    };
    let names = call.names();
    let named = call.session().or_else(|| session.as_ref().map(|session| session.id));
    ErrorAnswer {
        session_id: named.map(|session| session.short()),
        code: error.code().to_string(),
        message: error.to_string(),
        offered: match is_refused {
            true => Offered::now(call, session.as_ref(), &kind),
            false => Offered::nothing(),
        },
        remedy: Remedy::of(error, call.tools()),
        next_step: match error {
            Error::DaemonStopping => what_is_kept(call).await,
            Error::KernelUnknown { kind } if !kind.is_agent() => kinds::instead_of(call, kind).await,
            error => next_step_in(error, names),
        },
    }
}

/// What to do about a call that a daemon was stopped under: what waits for its turn is kept, and what was not begun is not.
async fn what_is_kept(call: &Call) -> String {
    let id = call.under_way().command();
    match call.client().command(id).await {
        Ok(_) => format!(
            "It is kept, and carried out once the session is used again: do not send it again, call get_result with id {id}."
        ),
        Err(_) => "Nothing of it has run: send it again, which starts a new daemon.".to_owned(),
    }
}

/// Whether it is the session, as it is, that refuses: what it offers instead is said with that.
const fn is_refused_by_session(error: &Error) -> bool {
    matches!(
        error,
        Error::NotOffered { .. }
            | Error::NotOfKind { .. }
            | Error::NotPermitted { .. }
            | Error::TrustRefused { .. }
            | Error::NotRunning { .. }
            | Error::AskNotPending { .. }
    )
}

/// What was refused or failed, and what to do, in one text.
pub(super) fn in_words(error: &Error) -> String {
    format!("{}: {error}. {}", error.code(), next_step_in(error, Names::Neutral))
}

/// The protocol's error for what is not a tool's: there no answer can say it.
pub(super) fn of_protocol(error: &Error) -> ErrorData {
    let words = in_words(error);
    match status_of(error).is_server_error() {
        true => ErrorData::internal_error(words, None),
        false => ErrorData::invalid_params(words, None),
    }
}

/// What an agent does next: in its tools where it has one for it, in the words for everyone where it has not.
pub(super) fn next_step_in(error: &Error, names: Names) -> String {
    let (send, status) = (names.of::<SendCode>(), names.of::<GetStatus>());
    match error {
        Error::SessionNotFound { .. } | Error::SessionAmbiguous { .. } => {
            "Take an id from list_sessions.".into()
        }
        Error::NotOffered { kind, .. } if kind.is_agent() => error.next_step(),
        Error::NotOffered { action, state, .. } => match state {
            SessionState::Uninitialized => format!("Call {send}: it starts the session."),
            SessionState::WarmingUp => format!("Call {status} with wait until it is Ready."),
            SessionState::Evaluating => {
                format!("Call {status} with wait until the code has ended, or cancel_eval.")
            }
            SessionState::Faulted if *action == Action::Rebuild => {
                let reset = names.of::<HardResetSession>();
                format!(
                    "Call {reset} without rebuild, then with it: either drops its definitions. Where that faults it again, \
                     build the project outside of Mainstay first."
                )
            }
            SessionState::Faulted => format!(
                "Call stop_session, then {send}: that keeps its definitions. {} drops them.",
                names.of::<ResetSession>()
            ),
            SessionState::Waiting(_) => {
                format!("Call {status} for what it asks, then answer_ask; or cancel_eval.")
            }
            SessionState::Ready => error.next_step(),
        },
        Error::TooManySessions { .. } => "Call stop_session for one that is not needed.".into(),
        Error::WorkerFailed { .. } => format!("Call stop_session, then {send}."),
        Error::Timeout { .. } => "Try again; cancel_eval if code that runs starves the session.".into(),
        Error::SessionStopped => "Send it again: that starts the session.".into(),
        Error::CommandNotFound { .. } => {
            "Its result was told, or its daemon is gone: get_eval_timeline says what ran in the session."
                .into()
        }
        Error::NotOfKind { kind, .. } if kind.is_agent() => error.next_step(),
        Error::NotOfKind { action: Action::Explore, .. } => {
            format!("Its kernel does not list what its code defined: print what you need with {send}.")
        }
        Error::NotOfKind { action: Action::Check, .. } => {
            format!("Its kernel checks no code before it runs: {send} says what is wrong with it.")
        }
        Error::NotOfKind { .. } => format!("{send} runs code there; do it with that."),
        Error::AskNotPending { .. } => {
            format!("It has been answered, has ended, or never was; {status} has those that wait.")
        }
        Error::AnswerInvalid { .. } => format!("Answer as the ask's schema wants; {status} has it."),
        Error::TooManyAsks { .. } => "Answer some of them with answer_ask, or raise `asks`.".into(),
        Error::RunnerUnavailable { retry_after_ms, .. } => {
            format!("Mend that, and send it again in {retry_after_ms} ms; diagnose says more.")
        }
        error => error.next_step(),
    }
}
