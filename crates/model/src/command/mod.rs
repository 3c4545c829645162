//! What clients may ask for: the commands of a session, each in a file of its own, and the requests for new sessions.

mod answer;
mod ask;
mod cancel;
mod compact;
mod delegate;
mod delete;
mod elevate;
mod eval;
mod hand_over;
mod hard_reset;
mod label;
mod lease;
mod load;
mod merge;
mod pause;
mod refresh;
mod rename;
mod request;
mod reset;
mod start;
mod steer;
mod stop;
mod unload;
mod work;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::affordance::Action;
use crate::agent::{JobSpec, Prompt, QueuedPrompt};
use crate::ask::Question;
use crate::error::Error;
use crate::event::Source;
use crate::fingerprint::CommandFingerprint;
use crate::grant::Grants;
use crate::id::{CommandId, IdempotencyKey, SessionId, SessionKind, Version};
use crate::limits::Limits;
use crate::project::ProjectChoice;
use crate::vote::validate_quorum;

pub use self::answer::{Answer, Decline};
pub use self::cancel::Cancel;
pub use self::compact::Compact;
pub use self::delegate::Delegate;
pub use self::elevate::Elevate;
pub use self::eval::Eval;
pub use self::hand_over::HandOver;
pub use self::label::Label;
pub use self::lease::{ExtendLease, RevokeLease};
pub use self::load::Load;
pub use self::merge::Merge;
pub use self::pause::Pause;
pub use self::refresh::Refresh;
pub use self::rename::Rename;
pub(crate) use self::request::{Accepted, Decided, Request};
pub use self::request::{Ends, Lane, Rules};
pub use self::unload::Unload;

/// A client's request to change a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The client's name for it; the same id always gets the same answer.
    pub id: CommandId,
    /// The client's name for what it wants done once, whatever id it sends it under.
    pub key: Option<IdempotencyKey>,
    /// Who asks, and through what.
    pub source: Source,
    /// What to do where the session's state does not offer it yet.
    pub admission: Admission,
    /// Commands of the same principal that must have succeeded before this one begins.
    pub depends_on: Vec<CommandId>,
    /// The version that the session must have when this begins.
    pub if_version: Option<Version>,
    /// How long it may take from its acceptance to its end, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// What its job may do at most, until when, and at what cost; none where nothing bounds it.
    pub grants: Option<Box<Grants>>,
    /// What the command asks for.
    pub body: SessionCommand,
}

impl Command {
    /// A command that is carried out at once or refused, and depends on nothing.
    pub fn new(id: CommandId, source: Source, body: SessionCommand) -> Self {
        Self {
            id,
            key: None,
            source,
            admission: Admission::Now,
            depends_on: Vec::new(),
            if_version: None,
            timeout_ms: None,
            grants: None,
            body,
        }
    }

    /// What it says, without what only matters for its delivery: its id and key, whether it may wait, and for how long. Code that is
    /// withheld does not count: a hash of a secret that can be guessed tells it.
    pub fn fingerprint(&self, session: SessionId) -> CommandFingerprint {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Fingerprinted<'a> {
            #[serde(flatten)]
            body: &'a SessionCommand,
            #[serde(skip_serializing_if = "<[CommandId]>::is_empty")]
            depends_on: &'a [CommandId],
            #[serde(skip_serializing_if = "Option::is_none")]
            if_version: Option<Version>,
            #[serde(skip_serializing_if = "Option::is_none")]
            grants: Option<&'a Grants>,
        }
        let said = Fingerprinted {
            body: &self.body.fingerprinted(),
            depends_on: &self.depends_on,
            if_version: self.if_version,
            grants: self.grants.as_deref(),
        };
        CommandFingerprint::of(&session.to_string(), &said)
    }

    /// As [`Command::fingerprint`], of an answer that is a secret: the answer does not count.
    pub fn fingerprint_without_answer(&self, session: SessionId) -> CommandFingerprint {
        match &self.body {
            SessionCommand::Answer(answer) => {
                let body =
                    SessionCommand::Answer(Answer { value: serde_json::Value::Null, ..answer.clone() });
                Self { body, ..self.clone() }.fingerprint(session)
            }
            _ => self.fingerprint(session),
        }
    }

    /// Whether it takes its turn in the session's serial lane. What does not passes a running job at once.
    pub fn is_serial(&self) -> bool {
        self.body.rules().lane == Lane::Serial || !self.depends_on.is_empty()
    }

    /// Checks what can be checked without the session.
    ///
    /// # Errors
    /// As [`SessionCommand::validate`]; [`Error::DependsOnItself`], and [`Error::InvalidArgument`] for too many
    /// dependencies, a timeout of nothing, or a quorum that cannot be.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        validate_dependencies(&self.id, &self.depends_on, limits)?;
        if self.timeout_ms == Some(0) {
            let reason = "it must be at least 1".to_owned();
            return Err(Error::InvalidArgument { argument: "timeoutMs".to_owned(), reason });
        }
        validate_quorum(self.grants.as_deref().and_then(Grants::quorum), limits)?;
        self.body.validate(limits)
    }
}

/// Checks what a command depends on.
///
/// # Errors
/// [`Error::DependsOnItself`], and [`Error::InvalidArgument`] where it is too many.
pub fn validate_dependencies(id: &CommandId, depends_on: &[CommandId], limits: &Limits) -> Result<(), Error> {
    if depends_on.contains(id) {
        return Err(Error::DependsOnItself { command: id.clone() });
    }
    if depends_on.len() > limits.dependencies {
        let reason = format!("it names {}; {} may be", depends_on.len(), limits.dependencies);
        return Err(Error::InvalidArgument { argument: "dependsOn".to_owned(), reason });
    }
    Ok(())
}

/// What happens to a command that the session's state does not offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Admission {
    /// It is refused at once, with what is offered.
    #[default]
    Now,
    /// It waits in the session's lane, behind those before it, until the state offers it. An idle session is started.
    Queue,
}

/// What is asked of a session. Each has a file of its own here, with its rules and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "command", rename_all = "camelCase")]
pub enum SessionCommand {
    /// Run code in the session.
    Eval(Eval),
    /// Have something done that is no code: by an agent, or a rebuild.
    Work(JobSpec),
    /// Say something to an agent that works. It hears it when it can; what was said so is no job of its own.
    Steer(QueuedPrompt),
    /// Have an agent pause in its turn, and ask how to go on.
    Pause(Pause),
    /// Stop a job, or take back a command that waits for its turn.
    Cancel(Cancel),
    /// Drop the definitions, keep the worker.
    Reset,
    /// Drop the definitions and the worker.
    HardReset,
    /// Keep the definitions, and run them again against the files that are there now.
    Refresh(Refresh),
    /// Start a worker for an idle session.
    Start,
    /// End the worker of the session.
    Stop,
    /// Delete the session for good.
    Delete,
    /// End the worker and release the session's alias.
    Unload(Unload),
    /// Have the session back after it was unloaded.
    Load(Load),
    /// Give the session another name.
    Rename(Rename),
    /// Put entries of another session into the transcript.
    Merge(Merge),
    /// Have a summary stand for the beginning of the transcript.
    Compact(Compact),
    /// Give an entry of the transcript a label, or take it off.
    Label(Label),
    /// Ask whoever is attached; the answer is this command's outcome.
    Ask(Question),
    /// Answer an ask that waits.
    Answer(Answer),
    /// End an ask without an answer.
    Decline(Decline),
    /// Have the running job hold a permission for longer.
    ExtendLease(ExtendLease),
    /// Take a permission back from the running job.
    RevokeLease(RevokeLease),
    /// Have the running job give a task to another agent, with a part of what it may do.
    Delegate(Delegate),
    /// Have another session of ARCP hold a job that waits or runs.
    HandOver(HandOver),
    /// Ask whether the running job may do more than its grant for a time.
    Elevate(Elevate),
}

impl SessionCommand {
    /// What is known of it: its rules, its checks, and what follows from it.
    pub(crate) fn request(&self) -> &dyn Request {
        match self {
            Self::Eval(request) => request,
            Self::Work(request) => request,
            Self::Steer(request) => request,
            Self::Pause(request) => request,
            Self::Cancel(request) => request,
            Self::Reset => &reset::Reset,
            Self::HardReset => &hard_reset::HardReset,
            Self::Refresh(request) => request,
            Self::Start => &start::Start,
            Self::Stop => &stop::Stop,
            Self::Delete => &delete::Delete,
            Self::Unload(request) => request,
            Self::Load(request) => request,
            Self::Rename(request) => request,
            Self::Merge(request) => request,
            Self::Compact(request) => request,
            Self::Label(request) => request,
            Self::Ask(request) => request,
            Self::Answer(request) => request,
            Self::Decline(request) => request,
            Self::ExtendLease(request) => request,
            Self::RevokeLease(request) => request,
            Self::Delegate(request) => request,
            Self::HandOver(request) => request,
            Self::Elevate(request) => request,
        }
    }

    /// The rules by which it is admitted.
    pub fn rules(&self) -> Rules {
        self.request().rules()
    }

    /// The action whose availability decides whether it is admitted.
    pub fn action(&self) -> Action {
        self.rules().action
    }

    /// Whether it must not be stored.
    pub const fn is_withheld(&self) -> bool {
        matches!(self, Self::Eval(Eval { withheld: true, .. }))
    }

    /// The form of which its fingerprint is made.
    fn fingerprinted(&self) -> Cow<'_, Self> {
        self.request().fingerprinted().map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// Checks what can be checked without the session.
    ///
    /// # Errors
    /// [`Error::CodeTooLarge`], [`Error::CodeInvalid`], or [`Error::InvalidArgument`] for a name, a summary, a label, a question or an
    /// answer.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        self.request().validate(limits)
    }
}

/// A client's request for a new session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    /// What does its work.
    pub kind: SessionKind,
    /// The folder its code runs in, absolute.
    pub working_directory: String,
    /// The project it is for.
    #[serde(default, skip_serializing_if = "ProjectChoice::is_of_folder")]
    pub project: ProjectChoice,
    /// What the compiler of its language is told besides what the settings say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// What people call it; by default the folder's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its creator calls it, until it is unloaded: it is found by that as by its id. No other of the same owner that is there has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// A client's request for a session that begins with entries of another, and has its values. Source: seed 004, "Fork Session".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkSession {
    /// The session to be forked.
    pub from: SessionId,
    /// How many entries of its transcript, from the first; all that are there where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// What people call it; by default the other's name, numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With what there was before its last reset, instead of a number of entries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_reset: bool,
}

/// Checks code before it goes anywhere: its size, and that it has no NUL.
///
/// # Errors
/// [`Error::CodeTooLarge`] or [`Error::CodeInvalid`].
pub fn validate_code(code: &str, limits: &Limits) -> Result<(), Error> {
    if code.len() > limits.code_bytes {
        return Err(Error::CodeTooLarge { bytes: code.len(), limit: limits.code_bytes });
    }
    match code.find('\0') {
        Some(offset) => Err(Error::CodeInvalid { reason: format!("it has a NUL at byte {offset}") }),
        None => Ok(()),
    }
}

fn validate_prompt(prompt: &Prompt, limits: &Limits) -> Result<(), Error> {
    validate_code(&prompt.text, limits)?;
    let (bytes, limit) = (prompt.images.iter().map(|image| image.data.len()).sum(), limits.code_bytes);
    if bytes > limit {
        return Err(Error::CodeTooLarge { bytes, limit });
    }
    Ok(())
}

/// Checks what people want to call a session.
///
/// # Errors
/// [`Error::InvalidArgument`] when it is empty, longer than 120 characters, or has control characters.
pub fn validate_session_name(name: &str) -> Result<(), Error> {
    if name.trim().is_empty() || name.chars().count() > 120 || name.chars().any(char::is_control) {
        return Err(Error::InvalidArgument {
            argument: "name".to_owned(),
            reason: "it must have 1 to 120 characters, none of them a control character".to_owned(),
        });
    }
    Ok(())
}

/// Checks what a creator wants to call a session for good. Source: protocols/pi.md, "Limits".
///
/// # Errors
/// [`Error::InvalidArgument`] when it is empty, longer than 256 characters, or has others than ASCII letters, digits, `_`, `.` and `-`.
pub fn validate_alias(alias: &str) -> Result<(), Error> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if alias.is_empty() || alias.len() > 256 || !alias.chars().all(is_known) {
        return Err(Error::InvalidArgument {
            argument: "alias".to_owned(),
            reason: "it must have 1 to 256 characters, each an ASCII letter, a digit, `_`, `.` or `-`"
                .to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_named_with_its_place() {
        let error = validate_code("let x = \"\0\"", &Limits::default()).unwrap_err();
        assert_eq!(error, Error::CodeInvalid { reason: "it has a NUL at byte 9".to_owned() });
    }

    #[test]
    fn code_over_the_limit_is_refused_and_code_at_the_limit_is_not() {
        let limits = Limits { code_bytes: 4, ..Limits::default() };
        assert_eq!(validate_code("1234", &limits), Ok(()));
        assert_eq!(validate_code("12345", &limits), Err(Error::CodeTooLarge { bytes: 5, limit: 4 }));
    }
}
