//! Changes of a configuration, from text to text: Mainstay's entry is set or taken out, and all else stays, comments
//! and layout included; only an object that stood on one line and gets a member is laid out on several.

use std::fmt::{self, Display, Formatter};

use super::{json, toml};

/// What Mainstay is called among the servers of an agent.
pub(super) const NAME: &str = "mainstay";
/// What its arguments are.
pub(super) const ARGUMENTS: [&str; 1] = ["mcp"];

/// The form of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, perhaps with comments.
    Json {
        /// The member that has the servers.
        servers: &'static str,
        /// How a server is described.
        layout: Layout,
        /// The member of a server that, when true, has its tools called without a question; where the client has one.
        trust: Option<&'static str>,
    },
    /// TOML, as Codex has it.
    Toml {
        /// The table that has the servers.
        servers: &'static str,
        /// The variables of the environment that the client passes on to Mainstay; it withholds what is not named.
        passed: &'static [&'static str],
    },
}

impl Form {
    /// Whether the client can be told to call the tools of one server without asking.
    pub(super) fn has_approval(self) -> bool {
        match self {
            Self::Json { trust, .. } => trust.is_some(),
            Self::Toml { .. } => true,
        }
    }
}

/// How JSON describes a server that is a program and speaks over its standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `command`, `args` and `env`, with `"type": "stdio"`.
    Typed,
    /// The same without a type.
    Untyped,
    /// One list `command` and `environment`, with `"type": "local"`.
    Local,
}

impl Layout {
    /// The member with the variables of the environment that the server gets.
    pub(super) const fn environment(self) -> &'static str {
        match self {
            Self::Typed | Self::Untyped => "env",
            Self::Local => "environment",
        }
    }
}

/// How Mainstay is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The program that the client starts.
    pub(super) command: String,
    /// What `MAINSTAY_HOME` says, where the user's own is not meant.
    pub(super) home: Option<String>,
    /// Whether the client is told to call every tool without asking. An entry that says so keeps it.
    pub(super) approved: bool,
}

/// What is to become of the entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    /// It is to say this.
    Set(&'a Entry),
    /// It is to go.
    Remove,
}

/// Why a configuration is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditError {
    /// Nobody can read it.
    Unreadable {
        /// What is wrong where.
        reason: String,
    },
    /// What should have members has none.
    NotAnObject {
        /// What it is called.
        name: String,
    },
    /// What should be a list is none.
    NotAList {
        /// What it is called.
        name: String,
    },
    /// A member is there twice, and which one counts is up to its reader.
    Twice {
        /// What it is called.
        name: String,
    },
    /// It cannot be written again as it was.
    Lossy,
}

impl Display for EditError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
            Self::NotAnObject { name } => write!(f, "{name} has no members"),
            Self::NotAList { name } => write!(f, "{name} is no list"),
            Self::Twice { name } => write!(f, "{name} is there twice"),
            Self::Lossy => f.write_str("the rest of it could not be kept byte for byte"),
        }
    }
}

/// The configuration after a change; the same text where there is nothing to change.
///
/// # Errors
/// [`EditError`], where the configuration is to be left alone.
pub(super) fn edit(form: Form, text: &str, change: Change<'_>) -> Result<String, EditError> {
    match form {
        Form::Json { servers, layout, trust } => json::edit(servers, layout, trust, text, change),
        Form::Toml { servers, passed } => toml::edit(servers, passed, text, change),
    }
}

#[cfg(test)]
mod tests;
