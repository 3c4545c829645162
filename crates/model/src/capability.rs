//! What sessions can do, as whoever starts their runners declares it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::id::SessionKind;

/// One thing that a session can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Capability {
    /// It runs code, and can check, complete and explore it.
    Code,
    /// It has a conversation: it is given prompts, and takes turns. Such a session can be there where nothing can start it.
    Conversation,
    /// It finds and runs tests.
    Tests,
    /// It says what of some code could be written more plainly.
    Review,
    /// It has comms, in which front ends say something beside code. Source: Jupyter's messaging protocol.
    Comms,
    /// Its code may run in a project, which is built and loaded.
    Projects,
    /// Its code is calls of a program's tools, and nothing else: it is meant only where it is named.
    Calls,
}

impl Capability {
    /// All capabilities, in the order in which they are stored.
    pub const ALL: [Self; 7] =
        [Self::Code, Self::Conversation, Self::Tests, Self::Review, Self::Comms, Self::Projects, Self::Calls];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a session can do. It is declared when the session is created, and stays so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct Capabilities(u8);

impl Capabilities {
    /// What every kernel can do.
    pub const KERNEL: Self = Self(Capability::Code.bit());
    /// What every agent can do.
    pub const AGENT: Self = Self(Capability::Conversation.bit());

    /// These, and one more.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | capability.bit())
    }

    /// Whether this is one of them.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// Those of sessions of a kind that nobody has declared any for: they were created before runners did, or where nothing can start them.
    pub fn of_kind(kind: &SessionKind) -> Self {
        if kind.is_agent() {
            Self::AGENT
        } else if kind.is_fsharp() {
            Self::KERNEL.with(Capability::Tests).with(Capability::Review).with(Capability::Projects)
        } else {
            Self::KERNEL.with(Capability::Comms)
        }
    }
}

impl From<Vec<Capability>> for Capabilities {
    fn from(all: Vec<Capability>) -> Self {
        all.into_iter().fold(Self::default(), Self::with)
    }
}

impl From<Capabilities> for Vec<Capability> {
    fn from(capabilities: Capabilities) -> Self {
        Capability::ALL.into_iter().filter(|capability| capabilities.has(*capability)).collect()
    }
}

impl JsonSchema for Capabilities {
    fn schema_name() -> Cow<'static, str> {
        "Capabilities".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Capability>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_stored_by_name_and_read_back() {
        let fsharp = Capabilities::of_kind(&SessionKind::fsharp());
        let text = serde_json::to_string(&fsharp).unwrap();
        assert_eq!(text, r#"["code","tests","review","projects"]"#);
        assert_eq!(serde_json::from_str::<Capabilities>(&text).unwrap(), fsharp);
        for capability in Capability::ALL {
            let one = Capabilities::default().with(capability);
            let has: Vec<_> = Capability::ALL.into_iter().filter(|other| one.has(*other)).collect();
            assert_eq!(has, [capability]);
        }
    }
}
