//! Errors in pi-server's words. Its clients compare them: they are part of the protocol. Source: protocols/pi.md, "Error strings".

use super::command::PiCommand;
use mainstay_model::{Error, RateScope, Version};

/// What is known of the command that failed.
pub(super) struct ErrorContext<'a> {
    /// The `type` field of the command that failed.
    pub(super) kind: &'a str,
    /// Its session, as its client calls it.
    pub(super) session: Option<&'a str>,
    /// The `type` of the command that has its id or key, where that is known.
    pub(super) earlier: Option<&'a str>,
    /// The version that it wanted of its session.
    pub(super) if_version: Option<Version>,
}

impl<'a> ErrorContext<'a> {
    /// What is known of a command by itself.
    pub(super) fn of(command: &'a PiCommand) -> Self {
        Self {
            kind: &command.kind,
            session: command.session.as_deref(),
            earlier: None,
            if_version: command.if_version,
        }
    }

    /// Where nothing is known.
    pub(super) const fn nothing() -> Self {
        Self { kind: "command", session: None, earlier: None, if_version: None }
    }
}

/// Whether a command that is refused so was admitted, so that the refusal is its outcome. One that was not may be sent again.
pub(super) const fn is_outcome(error: &Error) -> bool {
    !matches!(
        error,
        Error::RateLimited { .. }
            | Error::TooManyCommands { .. }
            | Error::TooManyRequests { .. }
            | Error::TooManyOutcomes { .. }
            | Error::LaneFull { .. }
            | Error::DaemonStopping
            | Error::CommandConflict { .. }
            | Error::KeyConflict { .. }
            | Error::StoreFailed { .. }
            | Error::StoreLocked
            | Error::SessionOwned
    )
}

/// What a client is told.
pub(super) fn said(error: &Error, about: &ErrorContext<'_>) -> String {
    let ErrorContext { kind, session, earlier, if_version } = about;
    let named = |reference: &str| session.unwrap_or(reference).to_owned();
    let earlier = earlier.unwrap_or("another command");
    match error {
        Error::SessionNotFound { reference } => match if_version {
            Some(version) => format!("Session {} not found for ifSessionVersion={version}", named(reference)),
            None => format!("Session {} not found", named(reference)),
        },
        Error::SessionExists { reference } => format!("Session {reference} already exists"),
        Error::TooManySessions { limit } => format!("Session limit reached ({limit} sessions)"),
        Error::RateLimited { scope: RateScope::Session, limit, .. } => {
            format!("Rate limit exceeded ({limit} commands/minute)")
        }
        Error::RateLimited { scope: RateScope::Server, limit, .. } => {
            format!("Global rate limit exceeded ({limit} commands/minute)")
        }
        Error::TooManyCommands { .. } | Error::LaneFull { .. } => {
            "Server busy - too many concurrent commands. Please retry.".to_owned()
        }
        Error::TooManyRequests { limit, .. } => {
            format!("Too many pending commands for this connection (max {limit})")
        }
        Error::DaemonStopping => "Server is shutting down".to_owned(),
        Error::CommandConflict { command } => {
            format!("Conflicting id '{command}': previously used for '{earlier}', now used for '{kind}'")
        }
        Error::KeyConflict { key } => {
            format!(
                "Conflicting idempotencyKey '{key}': previously used for '{earlier}', now used for '{kind}'"
            )
        }
        Error::TimedOut { limit_ms } | Error::Timeout { limit_ms } => {
            format!("Command '{kind}' timed out after {limit_ms}ms")
        }
        Error::DependencyUnknown { dependency } => format!("Dependency '{dependency}' is unknown"),
        Error::DependencyFailed { dependency, reason } => {
            format!("Dependency '{dependency}' failed: {reason}")
        }
        Error::DependencyInLane { dependency } => format!(
            "Dependency '{dependency}' is queued in the same lane and cannot be awaited from this command"
        ),
        Error::DependsOnItself { command } => format!("Command '{command}' cannot depend on itself"),
        Error::VersionMismatch { expected, actual } => {
            format!("Session version mismatch: expected {expected}, got {actual}")
        }
        Error::AskNotPending { reference } => format!("No pending UI request with id {reference}"),
        error => format!("{error}. {}", error.next_step()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_upstreams() {
        let about =
            ErrorContext { kind: "prompt", session: Some("main"), earlier: Some("abort"), if_version: None };
        let id = |text: &str| mainstay_model::CommandId::new(text).unwrap();
        let errors = [
            Error::SessionNotFound { reference: "x".to_owned() },
            Error::SessionExists { reference: "main".to_owned() },
            Error::TooManySessions { limit: 100 },
            Error::RateLimited { scope: RateScope::Session, limit: 100, retry_after_ms: 5 },
            Error::RateLimited { scope: RateScope::Server, limit: 1000, retry_after_ms: 5 },
            Error::TooManyCommands { limit: 10_000 },
            Error::TooManyRequests { what: "requests".to_owned(), limit: 100 },
            Error::DaemonStopping,
            Error::CommandConflict { command: id("c") },
            Error::TimedOut { limit_ms: 300_000 },
            Error::DependencyUnknown { dependency: id("d") },
            Error::DependencyFailed { dependency: id("d"), reason: "no".to_owned() },
            Error::DependencyInLane { dependency: id("d") },
            Error::DependsOnItself { command: id("c") },
            Error::VersionMismatch { expected: Version(3), actual: Version(4) },
            Error::AskNotPending { reference: "r".to_owned() },
        ];
        insta::assert_snapshot!(errors.map(|error| said(&error, &about)).join("\n"), @"
        Session main not found
        Session main already exists
        Session limit reached (100 sessions)
        Rate limit exceeded (100 commands/minute)
        Global rate limit exceeded (1000 commands/minute)
        Server busy - too many concurrent commands. Please retry.
        Too many pending commands for this connection (max 100)
        Server is shutting down
        Conflicting id 'c': previously used for 'abort', now used for 'prompt'
        Command 'prompt' timed out after 300000ms
        Dependency 'd' is unknown
        Dependency 'd' failed: no
        Dependency 'd' is queued in the same lane and cannot be awaited from this command
        Command 'c' cannot depend on itself
        Session version mismatch: expected 3, got 4
        No pending UI request with id r
        ");
    }
}
