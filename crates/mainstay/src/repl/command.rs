//! What can be typed besides code: the table of commands, and how a line is read as one of them. [`super::actions`] carries them out.

use std::fmt;

/// How many events `:events` shows unless told otherwise.
const EVENTS_SHOWN: u64 = 20;

/// A command, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the commands and keys.
    Help,
    /// List the sessions.
    Sessions,
    /// Attach to another session.
    Switch(String),
    /// Drop the definitions.
    Reset,
    /// Drop the definitions and the worker.
    HardReset,
    /// Show the session and the daemon.
    Status,
    /// Show the last events.
    Events(u64),
    /// Create a session and attach to it.
    New(Option<String>),
    /// Give the session another name.
    Rename(String),
    /// List what waits for an answer.
    Asks,
    /// Answer an ask.
    Answer {
        /// Its id, or the end of it.
        ask: String,
        /// The answer, as it was typed.
        text: String,
    },
    /// Stop the code that runs, whoever runs it.
    Cancel,
    /// Run a file.
    Load(String),
    /// Leave.
    Quit,
}

/// A row of the table.
pub(super) struct Entry {
    /// With its colon.
    pub(super) name: &'static str,
    /// Other names.
    pub(super) aliases: &'static [&'static str],
    /// What follows it.
    pub(super) argument: &'static str,
    /// What it does.
    pub(super) about: &'static str,
    read: fn(&str) -> Option<Command>,
}

/// Every command, as `:help` lists them.
pub(super) const TABLE: &[Entry] = &[
    entry(":help", &[":h", ":?", "#help"], "", "show the commands and keys", |_| Some(Command::Help)),
    entry(":sessions", &[], "", "list the sessions", |_| Some(Command::Sessions)),
    entry(":switch", &[], "SESSION", "attach to another session: its name, or the end of its id", |text| {
        given(text).map(Command::Switch)
    }),
    entry(":new", &[], "[NAME]", "create a session in this folder and attach to it", |text| {
        Some(Command::New(given(text)))
    }),
    entry(":rename", &[], "NAME", "give the session another name", |text| given(text).map(Command::Rename)),
    entry(":load", &[], "FILE", "run a file", |text| given(text).map(Command::Load)),
    entry(":asks", &[], "", "list what waits for an answer", |_| Some(Command::Asks)),
    entry(":answer", &[], "ASK TEXT", "answer an ask: its id, or the end of it", |line| {
        let (ask, text) = line.trim_start().split_once(char::is_whitespace)?;
        Some(Command::Answer { ask: ask.to_owned(), text: given(text)? })
    }),
    entry(":cancel", &[], "", "stop the code that runs, whoever runs it", |_| Some(Command::Cancel)),
    entry(":reset", &[], "", "drop the session's definitions", |_| Some(Command::Reset)),
    entry(":hard-reset", &[], "", "drop them, and the worker with them", |_| Some(Command::HardReset)),
    entry(":status", &[], "", "show the session and the daemon", |_| Some(Command::Status)),
    entry(":events", &[], "[N]", "show what happened last", |text| match given(text) {
        None => Some(Command::Events(EVENTS_SHOWN)),
        Some(count) => count.parse().ok().map(Command::Events),
    }),
    entry(":quit", &[":q", ":exit", "#quit", "#q"], "", "leave; the session goes on", |_| {
        Some(Command::Quit)
    }),
];

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: &'static str,
    about: &'static str,
    read: fn(&str) -> Option<Command>,
) -> Entry {
    Entry { name, aliases, argument, about, read }
}

impl Entry {
    /// How it is typed.
    pub(super) fn usage(&self) -> String {
        format!("{} {}", self.name, self.argument).trim_end().to_owned()
    }
}

fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandError {
    /// There is none of this name.
    Unknown {
        /// What was typed.
        name: String,
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
            Self::Unknown { name } => {
                let names: Vec<_> = TABLE.iter().map(|entry| entry.name).collect();
                write!(f, "there is no command `{name}`; there are {}", names.join(" "))
            }
            Self::Usage { usage } => write!(f, "type `{usage}`"),
        }
    }
}

/// Reads a line as a command; none where it is code. F# has no code that begins with a colon, and knows its own `#quit;;`.
pub(super) fn read(line: &str) -> Option<Result<Command, CommandError>> {
    let text = line.trim();
    let text = if text.starts_with('#') { text.trim_end_matches(';').trim_end() } else { text };
    if text.contains('\n') {
        return None;
    }
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match TABLE.iter().find(|entry| entry.name == name || entry.aliases.contains(&name)) {
        Some(entry) => {
            Some((entry.read)(argument).ok_or_else(|| CommandError::Usage { usage: entry.usage() }))
        }
        None if name.starts_with(':') => Some(Err(CommandError::Unknown { name: name.to_owned() })),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(line: &str) -> Command {
        read(line).unwrap().unwrap()
    }

    #[test]
    fn a_command_is_its_name_and_the_rest_of_the_line() {
        assert_eq!(done(":switch my session "), Command::Switch("my session".to_owned()));
        assert_eq!(done(":new"), Command::New(None));
        assert_eq!(done(":new two"), Command::New(Some("two".to_owned())));
        assert_eq!(done(":events"), Command::Events(20));
        assert_eq!(done(":events 3"), Command::Events(3));
        let (ask, text) = ("a1b2".to_owned(), "yes, please".to_owned());
        assert_eq!(done(":answer  a1b2  yes, please "), Command::Answer { ask, text });
        assert_eq!(done("  :load a b.fsx"), Command::Load("a b.fsx".to_owned()));
    }

    #[test]
    fn aliases_and_the_directives_of_fsharp_interactive_are_commands_too() {
        for line in [":q", ":quit", "#quit;;", "#quit", "#q;;"] {
            assert_eq!(done(line), Command::Quit);
        }
        for line in [":h", ":help", "#help;;"] {
            assert_eq!(done(line), Command::Help);
        }
    }

    #[test]
    fn everything_else_is_code() {
        for line in ["1 + 1", "#r \"a.dll\"", "#time;;", "", "let x : int = 1", "x\n:quit"] {
            assert_eq!(read(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let usage = |usage: &str| Some(Err(CommandError::Usage { usage: usage.to_owned() }));
        assert_eq!(read(":switch"), usage(":switch SESSION"));
        assert_eq!(read(":answer a1b2 "), usage(":answer ASK TEXT"));
        assert_eq!(read(":events many"), usage(":events [N]"));
    }

    #[test]
    fn an_unknown_command_is_told_what_there_is() {
        insta::assert_snapshot!(read(":swich x").unwrap().unwrap_err(), @"there is no command `:swich`; there are :help :sessions :switch :new :rename :load :asks :answer :cancel :reset :hard-reset :status :events :quit");
    }
}
