//! What clients may ask for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::affordance::Action;
use crate::agent::{Prompt, QueuedPrompt, Work};
use crate::ask::{Question, validate_answer};
use crate::command_line::CommandLine;
use crate::entry::Origin;
use crate::error::Error;
use crate::event::{MergePoint, Source};
use crate::fingerprint::CommandFingerprint;
use crate::id::{AskId, CommandId, IdempotencyKey, SessionId, SessionKind, Version};
use crate::label::validate_label;
use crate::limits::Limits;
use crate::project::ProjectChoice;
use crate::transcript::{Segment, total};

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
    /// What is asked.
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
            body,
        }
    }

    /// What it says, without what only matters for its delivery: its id and key, whether it may wait, and for how long. Code that is
    /// withheld does not count: a hash of a secret that can be guessed tells it.
    pub fn fingerprint(&self, session: SessionId) -> CommandFingerprint {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Said<'a> {
            #[serde(flatten)]
            body: &'a SessionCommand,
            #[serde(skip_serializing_if = "<[CommandId]>::is_empty")]
            depends_on: &'a [CommandId],
            #[serde(skip_serializing_if = "Option::is_none")]
            if_version: Option<Version>,
        }
        let said =
            Said { body: &self.body.said(), depends_on: &self.depends_on, if_version: self.if_version };
        CommandFingerprint::of(&session.to_string(), &said)
    }

    /// As [`Command::fingerprint`], of an answer that is a secret: the answer does not count.
    pub fn fingerprint_without_answer(&self, session: SessionId) -> CommandFingerprint {
        match self.body {
            SessionCommand::Answer { ask, .. } => {
                let body = SessionCommand::Answer { ask, value: serde_json::Value::Null };
                Self { body, ..self.clone() }.fingerprint(session)
            }
            _ => self.fingerprint(session),
        }
    }

    /// Whether it takes its turn in the session's serial lane. What does not passes a running job at once.
    pub fn is_serial(&self) -> bool {
        self.body.is_serial() || !self.depends_on.is_empty()
    }

    /// Checks what can be checked without the session.
    ///
    /// # Errors
    /// As [`SessionCommand::validate`]; [`Error::DependsOnItself`], and [`Error::InvalidArgument`] for too many
    /// dependencies or a timeout of nothing.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        validate_dependencies(&self.id, &self.depends_on, limits)?;
        if self.timeout_ms == Some(0) {
            let reason = "it must be at least 1".to_owned();
            return Err(Error::InvalidArgument { argument: "timeoutMs".to_owned(), reason });
        }
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
    /// It waits in the session's lane, behind those before it, until the state offers it. A session at rest is started.
    Queue,
}

/// What is asked of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "command", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SessionCommand {
    /// Run code.
    Eval {
        /// The code.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The command line that the code is given; without it, the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_line: Option<CommandLine>,
        /// The entry it is brought from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Whether it, and what comes of it, is stored nowhere.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        withheld: bool,
    },
    /// Have something done that is no code: by an agent, or a rebuild.
    Work(Work),
    /// Say something to an agent that works. It hears it when it can; what was said so is no job of its own.
    Steer(QueuedPrompt),
    /// Stop a job, or take back a command that waits for its turn.
    Cancel {
        /// Whose end is wanted: a command of the same principal. Without it, the job that runs, whoever asked for it; where none does yet,
        /// the first command that waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<CommandId>,
    },
    /// Drop the definitions, keep the worker.
    Reset,
    /// Drop the definitions and the worker.
    HardReset,
    /// Keep the definitions, and run them again against the files that are there now: where only scripts changed, those that depend on
    /// them, in the worker that is there.
    Refresh {
        /// Drop the worker: a new one runs all of them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        all: bool,
    },
    /// Start a worker for a session at rest.
    Start,
    /// Put the session to rest.
    Stop,
    /// Delete it. What other sessions begin with stays there for them. Source: seed 004, "delete".
    Delete,
    /// Put it to rest and release its alias, so that another session can have it. Nothing is lost: it can be loaded again.
    Unload {
        /// The alias that it must have; none where its client calls it by its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<String>,
    },
    /// Have it back after it was unloaded.
    Load {
        /// The alias that it gets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<String>,
    },
    /// Give it another name.
    Rename {
        /// The new one.
        name: String,
    },
    /// Put entries of another session into the transcript.
    Merge {
        /// Which, and where.
        point: Box<MergePoint>,
        /// The version of the session for which that was found out.
        planned: Version,
    },
    /// Have a summary stand for the beginning of the transcript.
    Compact {
        /// The entries it stands for.
        covers: Vec<Segment>,
        /// How many were asked for, where that would have parted what belongs together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u64>,
        /// The summary.
        summary: String,
    },
    /// Give an entry of the transcript a label, or take it off.
    Label {
        /// Its index in the transcript, as it was asked for.
        index: u64,
        /// The entry that stood there.
        entry: Origin,
        /// What to call it; none to take that off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Ask whoever is attached; the answer is this command's outcome.
    Ask(Question),
    /// Answer an ask.
    Answer {
        /// Which.
        ask: AskId,
        /// What its schema wants.
        value: serde_json::Value,
    },
    /// End an ask without an answer: whoever asked is told that nobody answers.
    Decline {
        /// Which.
        ask: AskId,
    },
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
    /// The other session.
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

impl SessionCommand {
    /// The action whose availability decides whether this is admitted.
    pub const fn action(&self) -> Action {
        match self {
            Self::Eval { .. } => Action::Eval,
            Self::Work(Work::Comm(_)) => Action::Comm,
            Self::Work(Work::Build | Work::Rebuild) => Action::Rebuild,
            Self::Work(
                Work::Turn { .. } | Work::Compaction { .. } | Work::Shell { .. } | Work::Setting(_),
            ) => Action::Prompt,
            Self::Steer(_) => Action::Steer,
            Self::Cancel { .. } => Action::Cancel,
            Self::Reset => Action::Reset,
            Self::HardReset => Action::HardReset,
            Self::Refresh { .. } => Action::Refresh,
            Self::Start => Action::Start,
            Self::Stop | Self::Unload { .. } => Action::Stop,
            Self::Merge { .. } => Action::Merge,
            Self::Delete => Action::Delete,
            Self::Rename { .. } | Self::Load { .. } => Action::Rename,
            Self::Compact { .. } => Action::Compact,
            Self::Label { .. } => Action::Label,
            Self::Ask(_) => Action::Ask,
            Self::Answer { .. } | Self::Decline { .. } => Action::Answer,
        }
    }

    /// Whether it takes its turn in the session's serial lane, whatever it depends on.
    const fn is_serial(&self) -> bool {
        match self {
            Self::Eval { .. } | Self::Work(_) | Self::Reset | Self::Refresh { .. } => true,
            Self::Steer(_)
            | Self::Cancel { .. }
            | Self::HardReset
            | Self::Start
            | Self::Stop
            | Self::Delete
            | Self::Unload { .. }
            | Self::Load { .. }
            | Self::Rename { .. }
            | Self::Merge { .. }
            | Self::Compact { .. }
            | Self::Label { .. }
            | Self::Ask(_)
            | Self::Answer { .. }
            | Self::Decline { .. } => false,
        }
    }

    /// Whether it must not be stored.
    pub const fn is_withheld(&self) -> bool {
        match self {
            Self::Eval { withheld, .. } => *withheld,
            Self::Work(_)
            | Self::Steer(_)
            | Self::Cancel { .. }
            | Self::Reset
            | Self::HardReset
            | Self::Refresh { .. }
            | Self::Start
            | Self::Stop
            | Self::Delete
            | Self::Unload { .. }
            | Self::Load { .. }
            | Self::Rename { .. }
            | Self::Merge { .. }
            | Self::Compact { .. }
            | Self::Label { .. }
            | Self::Ask(_)
            | Self::Answer { .. }
            | Self::Decline { .. } => false,
        }
    }

    /// What a fingerprint of it is of: of what is withheld nothing, of a command line its arguments, and of a merge, a summary and a label what was asked for, whatever that comes to.
    fn said(&self) -> Cow<'_, Self> {
        match self {
            Self::Eval { withheld: true, .. } => {
                let (code, file, command_line, origin) = (String::new(), None, None, None);
                Cow::Owned(Self::Eval { code, file, command_line, origin, withheld: true })
            }
            Self::Eval { code, file, command_line: Some(line), origin, withheld: false } => {
                let (code, file, command_line) = (code.clone(), file.clone(), line.asked());
                Cow::Owned(Self::Eval { code, file, command_line, origin: *origin, withheld: false })
            }
            Self::Merge { point, .. } => {
                Cow::Owned(Self::Merge { point: Box::new(point.asked()), planned: Version::ZERO })
            }
            Self::Eval { command_line: None, withheld: false, .. }
            | Self::Work(_)
            | Self::Steer(_)
            | Self::Cancel { .. }
            | Self::Reset
            | Self::HardReset
            | Self::Refresh { .. }
            | Self::Start
            | Self::Stop
            | Self::Delete
            | Self::Unload { .. }
            | Self::Load { .. }
            | Self::Rename { .. }
            | Self::Ask(_)
            | Self::Answer { .. }
            | Self::Decline { .. } => Cow::Borrowed(self),
            Self::Compact { covers, asked, summary } => Cow::Owned(Self::Compact {
                covers: Vec::new(),
                asked: Some(asked.unwrap_or_else(|| total(covers))),
                summary: summary.clone(),
            }),
            Self::Label { index, label, .. } => {
                // Where the entry came to be follows from its index.
                let entry = Origin { session: SessionId::from_uuid(uuid::Uuid::nil()), number: 0 };
                Cow::Owned(Self::Label { index: *index, entry, label: label.clone() })
            }
        }
    }

    /// Checks what can be checked without the session.
    ///
    /// # Errors
    /// [`Error::CodeTooLarge`], [`Error::CodeInvalid`], or [`Error::InvalidArgument`] for a name, a summary, a label, a question or an
    /// answer.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        match self {
            Self::Eval { code, command_line, .. } => {
                validate_code(code, limits)?;
                command_line.as_ref().map_or(Ok(()), |line| line.validate(limits))
            }
            Self::Work(work) => validate_work(work, limits),
            Self::Steer(queued) => validate_prompt(&queued.prompt, limits),
            Self::Rename { name } => validate_session_name(name),
            Self::Compact { summary, .. } => validate_summary(summary, limits),
            Self::Label { label: Some(label), .. } => validate_label(label, limits),
            Self::Ask(question) => question.validate(limits),
            // How large it may be depends on what is asked, too.
            Self::Answer { value, .. } => validate_answer(value, limits),
            Self::Cancel { .. }
            | Self::Reset
            | Self::HardReset
            | Self::Refresh { .. }
            | Self::Start
            | Self::Stop
            | Self::Merge { .. }
            | Self::Label { label: None, .. }
            | Self::Decline { .. }
            | Self::Delete
            | Self::Unload { .. }
            | Self::Load { alias: None } => Ok(()),
            Self::Load { alias: Some(alias) } => validate_alias(alias),
        }
    }
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

fn validate_work(work: &Work, limits: &Limits) -> Result<(), Error> {
    match work {
        Work::Turn { prompt } => validate_prompt(prompt, limits),
        Work::Shell { line, .. } => validate_code(line, limits),
        Work::Compaction { instructions } => {
            instructions.as_deref().map_or(Ok(()), |instructions| validate_code(instructions, limits))
        }
        Work::Comm(message) => message.validate(limits),
        Work::Setting(_) | Work::Build | Work::Rebuild => Ok(()),
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

fn validate_summary(summary: &str, limits: &Limits) -> Result<(), Error> {
    let invalid = |reason| Err(Error::InvalidArgument { argument: "summary".to_owned(), reason });
    let (bytes, limit) = (summary.len(), limits.code_bytes);
    if summary.trim().is_empty() {
        return invalid("it says nothing".to_owned());
    }
    if bytes > limit {
        return invalid(format!("it has {bytes} bytes; `code-bytes` allows {limit}"));
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
    fn other_arguments_make_another_command_and_another_spelling_of_the_script_does_not() {
        let fingerprint = |line: Option<(&str, &str)>| {
            let command_line = line.map(|(script, argument)| {
                let arguments = argument.split_whitespace().map(str::to_owned).collect();
                CommandLine { script: script.to_owned(), arguments }
            });
            let file = Some("/home/ada/a.fsx".to_owned());
            let code = "1".to_owned();
            CommandFingerprint::of(
                "",
                &SessionCommand::Eval { code, file, command_line, origin: None, withheld: false }.said(),
            )
        };
        assert_eq!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("./a.fsx", "x"))));
        assert_ne!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("a.fsx", "y"))));
        assert_ne!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("a.fsx", ""))));
        assert_eq!(fingerprint(Some(("a.fsx", ""))), fingerprint(None));
    }

    #[test]
    fn code_over_the_limit_is_refused_and_code_at_the_limit_is_not() {
        let limits = Limits { code_bytes: 4, ..Limits::default() };
        assert_eq!(validate_code("1234", &limits), Ok(()));
        assert_eq!(validate_code("12345", &limits), Err(Error::CodeTooLarge { bytes: 5, limit: 4 }));
    }
}
