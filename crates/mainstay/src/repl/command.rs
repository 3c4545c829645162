//! What can be typed besides code, and how a line is read as a command of the [`table`]. [`super::actions`] carries them out.

mod arguments;
mod table;

use std::fmt;
use std::path::PathBuf;

use mainstay_model::{QueuedPrompt, SessionKind, Setting, ThinkingLevel};

use crate::commands::export::Destination;
use crate::commands::merge::Entries;

pub(super) use self::table::{ArgumentKind, Entry, table};

/// What is typed beside commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptLanguage {
    /// The prompt of an F# session.
    Fsharp,
    /// Code of another language.
    Foreign,
    /// What is said to an agent.
    Words,
}

impl PromptLanguage {
    /// What sessions of this kind take.
    pub(super) fn of(kind: &SessionKind) -> Self {
        match kind.is_fsharp() {
            true => Self::Fsharp,
            false if kind.is_agent() => Self::Words,
            false => Self::Foreign,
        }
    }

    /// Whether it is run.
    pub(super) const fn is_code(self) -> bool {
        match self {
            Self::Fsharp | Self::Foreign => true,
            Self::Words => false,
        }
    }
}

/// A command of the prompt, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the commands and keys.
    Help,
    /// List the sessions of the daemon.
    Sessions,
    /// Show which sessions were forked off which.
    Lineage,
    /// Attach to another session.
    Switch(String),
    /// Delete a session; this one where it does not say.
    Delete(Option<String>),
    /// Drop the definitions of the session.
    Reset,
    /// Drop the definitions and the worker.
    HardReset,
    /// Run a notebook, or a script in cells.
    Run(String),
    /// Build its project, and begin afresh with that.
    Rebuild {
        /// Whether the definitions run again.
        keep: bool,
    },
    /// Run the definitions again against what is there now.
    Refresh {
        /// All of them, in a new worker.
        all: bool,
    },
    /// Show the session alone.
    SessionInfo,
    /// Show the session and the daemon.
    Status,
    /// Show the last events.
    Events(u64),
    /// Create a session and attach to it.
    New(Option<String>),
    /// Create a session that begins where this one is, and attach to it.
    Fork {
        /// With so many entries, from the first; all where it does not say.
        entries: Option<u64>,
        /// What people call it.
        name: Option<String>,
        /// With what there was before the last reset.
        before_reset: bool,
    },
    /// Run cells of another session in this one.
    Merge {
        /// The session to merge from.
        from: String,
        /// Which entries of its transcript.
        entries: Entries,
        /// Put them behind the first so many instead of running them at the end.
        at: Option<u64>,
    },
    /// Show the transcript, from the entry with this number on.
    Transcript(u64),
    /// Show what a namespace, module or type holds.
    Explore(String),
    /// Find what is loaded by a part of its name.
    Find(String),
    /// Show what is bound.
    Values,
    /// Run tests; those with this in their names, where it says.
    Test(Option<String>),
    /// Find entries of all sessions by the words in them.
    Search(String),
    /// Show what was submitted at prompts in this folder.
    History(Vec<String>),
    /// Give the session another name.
    Rename(String),
    /// List what waits for an answer.
    Asks,
    /// Answer an ask that waits.
    Answer {
        /// Its id, or the end of it.
        ask: String,
        /// The answer, as it was typed.
        text: String,
    },
    /// Stop the code that runs, whoever runs it.
    Cancel,
    /// Run a file in the session.
    Load(String),
    /// Run this directive of the language.
    Directive(String),
    /// Write the session to a file, or show it.
    Export(Destination),
    /// Make a session of a file and attach to it.
    Import(PathBuf),
    /// Have a summary stand for the beginning of the transcript.
    Compact {
        /// For the entries before the one with this number; for all where it does not say.
        before: Option<u64>,
        /// The summary that replaces the older entries.
        summary: String,
    },
    /// Have the agent shorten what it is shown, and heed this in doing so.
    Shorten(Option<String>),
    /// Say something to the agent while it works.
    Steer(QueuedPrompt),
    /// Show what the agent has still to hear.
    Queue,
    /// Show what a tool gave, whole: the last one, or that of the entry with this number.
    Output(Option<u64>),
    /// Have the agent go on with another model; show which there are, where it does not say.
    Model(Option<Setting>),
    /// Have it think harder, or less; show how hard, where it does not say.
    Thinking(Option<ThinkingLevel>),
    /// Give an entry a label, or take it off.
    Label {
        /// The number of the entry.
        entry: u64,
        /// What to call it; none to take that off.
        label: Option<String>,
    },
    /// List the labels of the session.
    Labels,
    /// Show what is stored; of this session and of all, where it does not say of which.
    Stats(Option<String>),
    /// Remove what deleted sessions have left.
    Gc,
    /// Write all that is stored into a folder.
    Backup(PathBuf),
    /// Leave the prompt, not the session.
    Quit,
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandError {
    /// There is none of this name.
    Unknown {
        /// The command that was typed.
        name: String,
        /// The language of the prompt where it was typed.
        tongue: PromptLanguage,
    },
    /// What follows it is missing, or not of its form.
    Usage {
        /// How it is typed.
        usage: String,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, tongue } => {
                let names: Vec<_> = table(*tongue).map(|entry| entry.name).collect();
                write!(f, "there is no command `{name}`; there are {}", names.join(" "))
            }
            Self::Usage { usage } => write!(f, "type `{usage}`"),
        }
    }
}

/// The command of this name, which a slash may begin instead of the colon.
pub(super) fn named(name: &str, tongue: PromptLanguage) -> Option<&'static Entry> {
    let bare = name.strip_prefix('/');
    let is_meant = |known: &str| known == name || bare.is_some() && known.strip_prefix(':') == bare;
    table(tongue).find(|entry| is_meant(entry.name) || entry.aliases.iter().any(|alias| is_meant(alias)))
}

/// Reads a line as a command; none where it is code, or words. F# has no code that begins with a colon, and knows its own `#quit;;`. What
/// begins with a slash is a command only where there is one of that name: a comment does so too.
pub(super) fn read(line: &str, tongue: PromptLanguage) -> Option<Result<Command, CommandError>> {
    let text = line.trim();
    let text = if text.starts_with('#') { text.trim_end_matches(';').trim_end() } else { text };
    if text.contains('\n') {
        return None;
    }
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match named(name, tongue) {
        // `#help "List.map"` asks F# itself.
        Some(_) if name.starts_with('#') && !argument.trim().is_empty() => None,
        Some(entry) => {
            let read = if entry.takes(argument) { (entry.read)(argument) } else { None };
            Some(read.ok_or_else(|| CommandError::Usage { usage: entry.usage() }))
        }
        None if name.starts_with(':') => Some(Err(CommandError::Unknown { name: name.to_owned(), tongue })),
        None => None,
    }
}

#[cfg(test)]
mod tests;
