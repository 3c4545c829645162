//! Collections: what deleted sessions leave that no other session refers to is removed, some rows at a time.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Where a collection goes on. The beginning is its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "stage", rename_all = "camelCase")]
pub enum Collection {
    /// What deleted sessions said and did.
    Sessions {
        /// After the session of this number in the tables.
        after: i64,
    },
    /// What the outcomes of their commands say.
    Outcomes {
        /// After this principal's command.
        after: Option<(String, String)>,
    },
    /// Files of objects that are none any more.
    Files {
        /// Which of the 256 shelves.
        shelf: u8,
    },
}

impl Default for Collection {
    fn default() -> Self {
        Self::Sessions { after: 0 }
    }
}

/// The counts of what a collection removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// How many events were removed.
    pub events: u64,
    /// How many entries that stood nowhere else.
    pub entries: u64,
    /// How many objects were removed.
    pub objects: u64,
    /// Of how many outcomes all but that the session is gone.
    pub outcomes: u64,
    /// About how many bytes all of it took.
    pub bytes: u64,
}

impl Collected {
    /// Whether nothing was removed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Collected {
    fn add_assign(&mut self, other: Self) {
        let Self { events, entries, objects, outcomes, bytes } = other;
        self.events += events;
        self.entries += entries;
        self.objects += objects;
        self.outcomes += outcomes;
        self.bytes += bytes;
    }
}
