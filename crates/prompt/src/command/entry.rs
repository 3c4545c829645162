//! A row of the table of commands: how it is typed, and where it is known.

use super::PromptLanguage;
use super::table::Command;

/// A row of the table.
pub(crate) struct Entry {
    /// The name, with its colon.
    pub(crate) name: &'static str,
    /// Other names of the command.
    pub(crate) aliases: &'static [&'static str],
    /// The argument, as the help shows it.
    pub(crate) argument: &'static str,
    /// What the command does, for the help.
    pub(crate) about: &'static str,
    /// What follows it first, as far as that can be proposed.
    pub(crate) first: ArgumentKind,
    known: CommandScope,
    pub(super) read: fn(&str) -> Option<Command>,
}

/// Where a command is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandScope {
    Everywhere,
    ToCode,
    ToFsharp,
    ToAgents,
}

/// What follows a command first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    /// Nothing, or what nobody can know.
    Free,
    /// The name of another session.
    Session,
    /// Another session, and then numbers of its entries.
    EntriesOf,
    /// The number of an entry of this session.
    Entry,
    /// The number of an entry that a tool gave.
    ToolResult,
    /// The path of a script.
    Script,
    /// A session that was written to a file.
    SessionFile,
    /// A file of any kind.
    File,
    /// The path of a folder.
    Folder,
}

/// A row whose command is known everywhere, and whose argument nobody can propose.
pub(super) const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: &'static str,
    about: &'static str,
    read: fn(&str) -> Option<Command>,
) -> Entry {
    Entry { name, aliases, argument, about, first: ArgumentKind::Free, known: CommandScope::Everywhere, read }
}

impl Entry {
    /// How it is typed.
    pub(crate) fn usage(&self) -> String {
        format!("{} {}", self.name, self.argument).trim_end().to_owned()
    }

    /// Whether this could be its argument: a command that knows none has none, and an option that it does not know is no name.
    pub(super) fn takes(&self, argument: &str) -> bool {
        let argument = argument.trim();
        let is_option = argument.starts_with("--");
        let takes_words =
            ["TEXT", "WORD", "INSTRUCTIONS", "ARGUMENT"].iter().any(|words| self.argument.contains(words));
        argument.is_empty()
            || !self.argument.is_empty() && (!is_option || takes_words || self.argument.contains("--"))
    }

    pub(super) const fn first(self, first: ArgumentKind) -> Self {
        Self { first, ..self }
    }

    pub(super) const fn only(self, known: CommandScope) -> Self {
        Self { known, ..self }
    }

    pub(super) const fn is_known(&self, prompt_language: PromptLanguage) -> bool {
        match self.known {
            CommandScope::Everywhere => true,
            CommandScope::ToCode => prompt_language.is_code(),
            CommandScope::ToFsharp => matches!(prompt_language, PromptLanguage::Fsharp),
            CommandScope::ToAgents => matches!(prompt_language, PromptLanguage::Words),
        }
    }
}
