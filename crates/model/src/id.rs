//! Identities and counters. Each is a type of its own, so that one is never passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Error;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID; new ones are version 7, so that they sort by time.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID of the id.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }

            /// The last eight hexadecimal digits: the random end, since version 7 begins with the time.
            pub fn short(&self) -> String {
                let text = self.0.simple().to_string();
                text[text.len() - 8..].to_owned()
            }

            /// Whether `reference` names it: the UUID, or the last four or more hexadecimal digits of it.
            pub fn answers_to(&self, reference: &str) -> bool {
                let digits = reference.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
                digits.len() >= 4 && self.0.simple().to_string().ends_with(&digits)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// Names a session: a UUIDv7.
    SessionId
}

uuid_id! {
    /// Names one job, a long command running on a session's runner: a UUIDv7.
    JobId
}

uuid_id! {
    /// Names one ask: a UUID.
    AskId
}

uuid_id! {
    /// Names one lease, a permission that a job holds for a time: the UUID of the ask whose answer gave it.
    LeaseId
}

impl From<AskId> for LeaseId {
    fn from(ask: AskId) -> Self {
        Self(ask.0)
    }
}

uuid_id! {
    /// Names one runner, from its start to its end: a UUIDv7. The runner that is started in its place has another.
    RunnerId
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The place before the first one.
            pub const ZERO: Self = Self(0);

            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// An event's place in its session: 1, 2, 3, … without gaps. As a cursor: the last one seen, 0 before the first.
    Seq
}

counter! {
    /// An event's place in the whole log, over all sessions.
    Position
}

counter! {
    /// How many commands have changed a session: evals that ran to their end or changed it before, cancels, resets, other names. A client that
    /// read it can have a command refused where someone was quicker. Source: protocol page pi, "ifSessionVersion".
    Version
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $allowed:expr, $pattern:expr, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let description = concat!("At most ", $max, " bytes of ", $form, ".");
                schemars::json_schema!({
                    "type": "string", "minLength": 1, "maxLength": $max, "pattern": $pattern, "description": description,
                })
            }
        }

        impl $name {
            /// The longest one, in bytes.
            pub const MAX_BYTES: usize = $max;

            /// Checks and wraps `text`.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] when it is empty, too long, or has a character that is not allowed.
            pub fn new(text: impl Into<String>) -> Result<Self, Error> {
                let text = text.into();
                let allowed: fn(char) -> bool = $allowed;
                if text.is_empty() || text.len() > Self::MAX_BYTES || !text.chars().all(allowed) {
                    return Err(Error::InvalidArgument {
                        argument: $what.to_owned(),
                        reason: format!("it must have 1 to {} bytes of {}", Self::MAX_BYTES, $form),
                    });
                }
                Ok(Self(text))
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

// The patterns, as JSON Schema has them, of texts whose characters `is_visible`, `is_printable` and `is_name_char` take.
const VISIBLE: &str = r"^[^\s\u0000-\u001f\u007f-\u009f]+$";
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
const NAME: &str = "^[A-Za-z0-9._:-]+$";

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control()
}

fn is_printable(c: char) -> bool {
    !c.is_control()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-')
}

name! {
    /// The client's name for a command, unique for its principal. The same id always gets the same answer.
    CommandId, "command id", 256, is_visible, VISIBLE, "text without white space or control characters"
}

name! {
    /// A client's name for what it wants done once in a session, whatever id it sends it under: scoped by principal and
    /// session. Source: protocol page pi, "idempotencyKey".
    IdempotencyKey, "idempotency key", 256, is_visible, VISIBLE, "text without white space or control characters"
}

name! {
    /// What code calls something it displays, so that a later display can stand for it.
    DisplayId, "display id", 256, is_printable, PRINTABLE, "text without control characters"
}

name! {
    /// What a kernel and its front ends call a comm, a line between them beside code.
    CommId, "comm id", 256, is_printable, PRINTABLE, "text without control characters"
}

name! {
    /// By which way a person answered, as the client says that passed the answer on: `ntfy:phone`. Nothing vouches for it. Source: ARCP draft 01, 12.3.
    Channel, "channel", 200, is_printable, PRINTABLE, "text without control characters"
}

name! {
    /// Who asks: the holder of a token. `local` is whoever may read the daemon's token file.
    Principal, "principal", 64, is_name_char, NAME, "letters, digits, or . _ : -"
}

name! {
    /// What does a session's work: `fsharp`, the name of a Jupyter kernel, or of an agent.
    SessionKind, "kind", 64, is_name_char, NAME, "letters, digits, or . _ : -"
}

impl CommandId {
    /// How the ids begin that the server gives to commands whose clients gave none. No client may give one.
    pub const ANONYMOUS: &str = "anon:";

    /// The id of a command whose client gave none; `number` is a version 7 UUID, so that they sort by time.
    pub fn anonymous(number: Uuid) -> Self {
        Self(format!("{}{}", Self::ANONYMOUS, number.simple()))
    }

    /// Whether it is one of the server's own.
    pub fn is_anonymous(&self) -> bool {
        self.0.starts_with(Self::ANONYMOUS)
    }

    /// The id of a command that is carried out for this one, by its number.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it would be too long.
    pub fn part(&self, number: u64) -> Result<Self, Error> {
        Self::new(format!("{self}.{number}"))
    }

    /// Whether it is the id of a command that is carried out for `whole`.
    pub fn is_part_of(&self, whole: &Self) -> bool {
        let number = self.0.strip_prefix(whole.as_str()).and_then(|rest| rest.strip_prefix('.'));
        number.is_some_and(|number| number.parse::<u64>().is_ok())
    }

    /// Checks an id that a client gave its command.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is one of the server's own.
    pub fn check_given(&self) -> Result<(), Error> {
        if self.is_anonymous() {
            let reason = format!("ids that begin with `{}` are the server's own", Self::ANONYMOUS);
            return Err(Error::InvalidArgument { argument: "command id".to_owned(), reason });
        }
        Ok(())
    }
}

impl Principal {
    /// The holder of the daemon's own token.
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

impl SessionKind {
    /// Returns the kind of an F# session.
    pub fn fsharp() -> Self {
        Self("fsharp".to_owned())
    }

    /// Whether it is an F# REPL.
    pub fn is_fsharp(&self) -> bool {
        *self == Self::fsharp()
    }

    /// Returns the kind of an agent's session.
    pub fn agent() -> Self {
        Self("agent".to_owned())
    }

    /// A conversation of pi, the coding agent.
    pub fn pi() -> Self {
        Self("pi".to_owned())
    }

    /// Whether it is an agent's conversation: such a session can be there, idle, where nothing can start it.
    pub fn is_agent(&self) -> bool {
        [Self::agent(), Self::pi()].contains(self)
    }
}

impl CommandId {
    /// An id for a command whose client gave none.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid.hyphenated().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_command_is_told_from_other_commands() {
        let id = |text: &str| CommandId::new(text).unwrap();
        assert_eq!(id("m").part(12), Ok(id("m.12")));
        let parts =
            ["m.1", "m.12", "m", "m.", "m.x", "m1", "n.1", "m.1.1"].map(|text| id(text).is_part_of(&id("m")));
        assert_eq!(parts, [true, true, false, false, false, false, false, false]);
        assert!(id(&"m".repeat(CommandId::MAX_BYTES)).part(1).is_err());
    }

    #[test]
    fn a_session_answers_to_its_uuid_and_to_the_end_of_it() {
        let id: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        assert_eq!(id.short(), "099a8057");
        assert!(id.answers_to("01890a5d-ac96-774b-bcce-b302099a8057"));
        assert!(id.answers_to("099A8057"));
        assert!(!id.answers_to("057"));
        assert!(!id.answers_to("01890a5d"));
    }

    #[test]
    fn names_refuse_what_could_be_mistaken() {
        assert!(SessionKind::new("py:3.a_B-2").is_ok());
        for bad in ["", "a b", "a\n", "é", &"x".repeat(65)] {
            assert!(SessionKind::new(bad).is_err(), "{bad:?}");
        }
        assert!(CommandId::new("é/{1}").is_ok());
        for bad in ["", "a b", "a\n", "a\u{7}", "\u{a0}", &"x".repeat(257)] {
            assert!(CommandId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_client_gives_an_id_of_the_servers() {
        let ours = CommandId::anonymous(Uuid::nil());
        assert_eq!(ours.as_str(), "anon:00000000000000000000000000000000");
        assert!(ours.check_given().is_err());
        assert_eq!(CommandId::new("anon").unwrap().check_given(), Ok(()));
    }
}
