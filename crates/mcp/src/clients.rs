//! The clients that people use, as they treat what they are answered: one table. What each row says was seen on the wire
//! (docs/conformance.md). Whoever is not in it is taken for a program, and gets what works everywhere.

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};

use super::text::TEXT_BYTES;

/// The form in which results are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Results {
    /// Text and pictures alone, for models.
    Text,
    /// Structured results as well, by the tool's output schema, for programs.
    Structured,
}

/// The member of a request's `_meta` that says in what form it wants results, by the name of one.
pub const RESULTS: &str = "mainstay/results";

impl Results {
    /// Its name, as settings and requests have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Structured => "structured",
        }
    }

    /// The form of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Text, Self::Structured].into_iter().find(|form| form.name() == name)
    }
}

/// How a client treats what it is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientProfile {
    /// How the name begins that it gives itself.
    name: &'static str,
    /// The form of results that its model sees once and whole; by the protocol's version where none is given.
    results: Option<Results>,
    /// How long a call waits that does not say it.
    pub(super) wait: Duration,
    /// The longest that a call may wait, so that the client does not give it up.
    pub(super) longest_wait: Duration,
    /// When it gives a call up of itself, and cancels it as if its user had.
    pub(super) gives_up: Option<Duration>,
    /// How much of one answer's text reaches its model whole, in bytes.
    pub(super) text_bytes: usize,
    /// Whether its model is told at once of tools that are marked so, and has to look for others.
    pub(super) loads_what_is_marked: bool,
}

/// What each of the clients below shows its model whole, in bytes.
const MODEL_BYTES: usize = 10_000;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The habits that a client is taken to have that is not among those below: a program, which reads all it is given.
const UNKNOWN: ClientProfile = ClientProfile {
    name: "",
    results: None,
    wait: seconds(50),
    longest_wait: seconds(3600),
    gives_up: None,
    text_bytes: 4 * TEXT_BYTES,
    loads_what_is_marked: false,
};

/// The clients that are known, each with what of it was seen on the wire.
const KNOWN: [ClientProfile; 5] = [
    // Where there is a structured result it drops the content, pictures too. It gives up after 300 s whatever it hears, earlier where its user
    // says so, in the very words with which it cancels for its user. GPT-6 calls tools from scripts, and after 30 s reads that its script runs, and nothing of
    // what Mainstay says. Of a model that it does not know it cuts the middle from 11,000 characters on, of others from 40,000.
    ClientProfile {
        name: "codex",
        results: Some(Results::Text),
        wait: seconds(25),
        longest_wait: seconds(280),
        gives_up: Some(seconds(300)),
        text_bytes: MODEL_BYTES,
        ..UNKNOWN
    },
    // It drops the text where there is a structured result. Its model knows names alone, and searches for the rest, but for what is marked.
    ClientProfile {
        name: "claude-code",
        results: Some(Results::Text),
        wait: seconds(120),
        longest_wait: seconds(600),
        text_bytes: MODEL_BYTES,
        loads_what_is_marked: true,
        ..UNKNOWN
    },
    // It gives up after 60 s of silence; whatever it hears counts. Of more than 2,000 lines it shows the first, and of an error all.
    ClientProfile {
        name: "opencode",
        results: Some(Results::Text),
        wait: seconds(50),
        longest_wait: seconds(280),
        text_bytes: MODEL_BYTES,
        ..UNKNOWN
    },
    // Of an error it shows text and structured result, one behind the other, however long.
    ClientProfile {
        name: "gemini-cli",
        results: Some(Results::Text),
        wait: seconds(120),
        longest_wait: seconds(280),
        gives_up: Some(seconds(600)),
        text_bytes: MODEL_BYTES,
        ..UNKNOWN
    },
    // It shows text and structured result, one behind the other, of an error twice.
    ClientProfile {
        name: "qwen-cli",
        results: Some(Results::Text),
        wait: seconds(120),
        longest_wait: seconds(280),
        gives_up: Some(seconds(300)),
        text_bytes: MODEL_BYTES,
        ..UNKNOWN
    },
];

impl ClientProfile {
    /// Those of the client that calls itself so.
    pub(super) fn of(name: &str) -> &'static Self {
        KNOWN.iter().find(|habits| name.starts_with(habits.name)).unwrap_or(&UNKNOWN)
    }

    /// The form of results for it, where nobody asks for one: structured for programs by the versions that have output schemas.
    pub(super) fn results(&self, version: Option<&ProtocolVersion>) -> Results {
        self.results.unwrap_or_else(|| match version {
            Some(version) if version.as_str() >= ProtocolVersion::V_2025_06_18.as_str() => {
                Results::Structured
            }
            Some(_) | None => Results::Text,
        })
    }

    /// Whether a call that its client cancelled after this time, for this reason, was given up at a limit, and not by a person.
    pub(super) fn is_given_up(&self, reason: Option<&str>, after: Duration) -> bool {
        let says_so = |reason: &str| {
            let reason = reason.to_lowercase();
            ["timed out", "timeout"].iter().any(|words| reason.contains(words))
        };
        let is_at_limit = |limit: Duration| after + Duration::from_secs(1) >= limit;
        reason.is_some_and(says_so) || self.gives_up.is_some_and(is_at_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_how_its_name_begins() {
        for name in [
            "codex-mcp-client",
            "claude-code",
            "opencode",
            "gemini-cli-mcp-client",
            "qwen-cli-mcp-client-mainstay",
        ] {
            assert_eq!(
                ClientProfile::of(name).results(Some(&ProtocolVersion::V_2025_06_18)),
                Results::Text,
                "{name}"
            );
        }
        assert_eq!(ClientProfile::of("mcp"), &UNKNOWN);
    }

    #[test]
    fn programs_get_structured_results_where_their_version_has_them() {
        let of = |version: Option<ProtocolVersion>| ClientProfile::of("it").results(version.as_ref());
        assert_eq!(of(Some(ProtocolVersion::V_2025_11_25)), Results::Structured);
        assert_eq!(of(Some(ProtocolVersion::V_2025_06_18)), Results::Structured);
        assert_eq!(of(Some(ProtocolVersion::V_2025_03_26)), Results::Text);
        assert_eq!(of(None), Results::Text);
    }

    #[test]
    fn who_gives_up_at_a_limit_is_told_from_who_cancels() {
        let habits = ClientProfile::of("opencode");
        let soon = Duration::from_secs(3);
        assert!(habits.is_given_up(Some("McpError: MCP error -32001: Request timed out"), soon));
        assert!(
            ClientProfile::of("codex")
                .is_given_up(Some("MCP request cancelled by caller"), Duration::from_secs(300))
        );
        assert!(
            !ClientProfile::of("codex")
                .is_given_up(Some("MCP request cancelled by caller"), Duration::from_secs(50))
        );
        assert!(!habits.is_given_up(Some("AbortError: This operation was aborted"), soon));
        assert!(!ClientProfile::of("it").is_given_up(None, Duration::from_secs(900)));
    }

    #[test]
    fn no_client_waits_longer_than_its_patience() {
        for habits in KNOWN.iter().chain([&UNKNOWN]) {
            assert!(habits.wait <= habits.longest_wait, "{habits:?}");
            assert!(habits.gives_up.is_none_or(|limit| habits.longest_wait < limit), "{habits:?}");
        }
    }
}
