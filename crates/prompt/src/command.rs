//! What can be typed besides code, and how a line is read as a command of the [`table`]. [`super::actions`] carries them out.

mod arguments;
mod entry;
mod table;

use std::fmt;

use mainstay_model::SessionKind;

pub(crate) use self::entry::{ArgumentKind, Entry};
pub(crate) use self::table::{Command, table};

/// What is typed beside commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptLanguage {
    /// The prompt of an F# session.
    Fsharp,
    /// Code of another language.
    Foreign,
    /// What is said to an agent.
    Words,
}

impl PromptLanguage {
    /// What sessions of this kind take.
    pub(crate) fn of(kind: &SessionKind) -> Self {
        match kind.is_fsharp() {
            true => Self::Fsharp,
            false if kind.is_agent() => Self::Words,
            false => Self::Foreign,
        }
    }

    /// Whether it is run.
    pub(crate) const fn is_code(self) -> bool {
        match self {
            Self::Fsharp | Self::Foreign => true,
            Self::Words => false,
        }
    }
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    /// There is none of this name.
    Unknown {
        /// The command that was typed.
        name: String,
        /// The language of the prompt where it was typed.
        prompt_language: PromptLanguage,
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
            Self::Unknown { name, prompt_language } => {
                let names: Vec<_> = table(*prompt_language).map(|entry| entry.name).collect();
                write!(f, "there is no command `{name}`; there are {}", names.join(" "))
            }
            Self::Usage { usage } => write!(f, "type `{usage}`"),
        }
    }
}

/// The command of this name, which a slash may begin instead of the colon.
pub(crate) fn named(name: &str, prompt_language: PromptLanguage) -> Option<&'static Entry> {
    let bare = name.strip_prefix('/');
    let is_meant = |known: &str| known == name || bare.is_some() && known.strip_prefix(':') == bare;
    table(prompt_language)
        .find(|entry| is_meant(entry.name) || entry.aliases.iter().any(|alias| is_meant(alias)))
}

/// Reads a line as a command; none where it is code, or words. F# has no code that begins with a colon, and knows its own `#quit;;`. What
/// begins with a slash is a command only where there is one of that name: a comment does so too.
pub(crate) fn read(line: &str, prompt_language: PromptLanguage) -> Option<Result<Command, CommandError>> {
    let text = line.trim();
    let text = if text.starts_with('#') { text.trim_end_matches(';').trim_end() } else { text };
    if text.contains('\n') {
        return None;
    }
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match named(name, prompt_language) {
        // `#help "List.map"` asks F# itself.
        Some(_) if name.starts_with('#') && !argument.trim().is_empty() => None,
        Some(entry) => {
            let read = if entry.takes(argument) { (entry.read)(argument) } else { None };
            Some(read.ok_or_else(|| CommandError::Usage { usage: entry.usage() }))
        }
        None if name.starts_with(':') => {
            Some(Err(CommandError::Unknown { name: name.to_owned(), prompt_language }))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests;
