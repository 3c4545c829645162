//! What to do next about an error, in commands of the command line, where the error's own words name none.

use mainstay_model::Error;

/// What someone at the command line does next: one sentence.
pub fn next_step(error: &Error) -> String {
    let command = match error {
        Error::SessionNotFound { .. } => "List the sessions with `mainstay session list`.",
        Error::NotOfKind { kind, .. } if kind.is_agent() => {
            "Prompt it: `mainstay prompt --session`, or at its prompt: `mainstay --session`."
        }
        Error::NotOfKind { .. } => {
            "Send it code: `mainstay eval --session`, or at its prompt: `mainstay --session`."
        }
        Error::TooManySessions { .. } => "Stop one with `mainstay session stop`, or raise `live-sessions`.",
        Error::AskNotPending { .. } => {
            "It has been answered, has ended, or never was; `mainstay ask list` has those that wait."
        }
        Error::AnswerInvalid { .. } => "Answer as the ask's schema wants; `mainstay ask list --json` has it.",
        Error::TooManyAsks { .. } => "Answer some of them with `mainstay ask answer`, or raise `asks`.",
        Error::RunnerUnavailable { .. } => {
            return format!("{} `mainstay status` says how it stands.", error.next_step());
        }
        Error::CommandNotFound { .. } => "Check the id; `mainstay events --json` has it as `correlation`.",
        Error::StoreLocked => "Use the daemon that runs, or stop it with `mainstay stop`.",
        Error::DaemonStopping => {
            "Try again in a moment; `mainstay` starts a new daemon. A command that waited for its turn is kept, and carried out then."
        }
        Error::DaemonNotRunning => "Start it with `mainstay -d`.",
        Error::DaemonVersionMismatch { .. } => {
            "`mainstay upgrade` has it go on as this program; what runs goes on."
        }
        Error::PortTaken { .. } => "Choose another with `--port` or `--pi-port`; 0 takes any free one.",
        error => return error.next_step(),
    };
    command.to_owned()
}
