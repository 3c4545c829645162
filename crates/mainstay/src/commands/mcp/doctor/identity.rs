//! What each client says of itself when it connects, and which variables of its environment Mainstay gets from it.

use std::ffi::{OsStr, OsString};

use serde_json::{Value, json};

use crate::commands::mcp::clients::McpClient;

/// A client, as a server sees it.
pub(super) struct Identity {
    /// The program whose presence on the path says that the client is installed; absent for one that has none there.
    pub(super) program: Option<&'static str>,
    /// The name in `clientInfo.name`.
    pub(super) name: &'static str,
    /// The version in `clientInfo.version`.
    pub(super) version: &'static str,
    /// The version of the protocol that it asks for.
    pub(super) protocol: &'static str,
    /// What it offers to servers.
    pub(super) capabilities: Value,
    /// What it passes on.
    pub(super) passes: PassedVariables,
}

/// Which variables of its environment a client passes on to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassedVariables {
    /// Every variable is passed on.
    All,
    /// These, and those that the entry names.
    Only(&'static [&'static str]),
    /// All but those whose names contain one of these words: they may be secrets.
    AllBut(&'static [&'static str]),
}

/// The version of the protocol that has no handshake: what a client says of itself goes along with each request.
pub(super) const NEWEST: &str = "2026-07-28";
/// What Codex passes on to every server.
const CODEX: [&str; 11] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    "__CF_USER_TEXT_ENCODING",
    "LANG",
    "LC_ALL",
    "TERM",
    "TMPDIR",
    "TZ",
];
/// What the protocol's SDK for TypeScript passes on where its user says nothing else.
const SDK: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
/// What Gemini CLI takes for a secret.
const SECRETS: [&str; 10] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "AUTH", "CREDENTIAL", "CREDS", "PRIVATE", "CERT"];

impl Identity {
    /// What a request says of the client, where the version has requests say that.
    pub(super) fn of_request(&self) -> Option<Value> {
        (self.protocol == NEWEST).then(|| {
            json!({
                "io.modelcontextprotocol/protocolVersion": self.protocol,
                "io.modelcontextprotocol/clientInfo": self.info(),
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            })
        })
    }

    /// Its name and version.
    pub(super) fn info(&self) -> Value {
        json!({ "name": self.name, "version": self.version })
    }

    /// That of a client, as it was in November 2026. Versions change often; what Mainstay does goes by the name. Those of Claude Code, Codex, Gemini CLI,
    /// opencode and Qwen Code were seen on the wire; each other row names where it is from.
    pub(super) fn of(client: McpClient) -> Self {
        let of = |program, name, version, protocol, capabilities, passes| Self {
            program,
            name,
            version,
            protocol,
            capabilities,
            passes,
        };
        let roots = || json!({ "roots": { "listChanged": true } });
        let forms = || json!({ "roots": { "listChanged": true }, "elicitation": { "form": {}, "url": {} } });
        match client {
            McpClient::ClaudeCode => {
                of(Some("claude"), "claude-code", "2.1.332", NEWEST, forms(), PassedVariables::All)
            }
            // Logs of it in conikeec/mcpr#13 (name, version, capabilities) and anthropics/claude-ai-mcp#77 (protocol).
            McpClient::ClaudeDesktop => {
                of(None, "claude-ai", "0.1.0", "2025-11-25", json!({}), PassedVariables::Only(&SDK))
            }
            // microsoft/vscode, mcpServerRequestHandler.ts: the product's long name and version, and the newest protocol, which microsoft/vscode#308766 shows.
            McpClient::VsCode => {
                of(Some("code"), "Visual Studio Code", "1.120.0", "2025-11-25", forms(), PassedVariables::All)
            }
            // apify/mcp-client-capabilities, which collects what clients send.
            McpClient::Cursor => of(
                Some("cursor"),
                "cursor-vscode",
                "1.0.0",
                "2025-06-18",
                json!({ "roots": {}, "elicitation": {} }),
                PassedVariables::All,
            ),
            // zed-industries/zed, crates/context_server: context_server.rs (name), types.rs (protocol), protocol.rs (no capabilities).
            McpClient::Zed => of(Some("zed"), "Zed", "0.1.0", "2025-03-26", json!({}), PassedVariables::All),
            McpClient::Codex => of(
                Some("codex"),
                "codex-mcp-client",
                "0.169.0",
                "2025-06-18",
                json!({ "elicitation": { "form": {}, "url": {} } }),
                PassedVariables::Only(&CODEX),
            ),
            McpClient::Gemini => of(
                Some("gemini"),
                "gemini-cli-mcp-client",
                "0.61.0",
                "2025-06-18",
                roots(),
                PassedVariables::AllBut(&SECRETS),
            ),
            McpClient::Opencode => of(
                Some("opencode"),
                "opencode",
                "1.18.33",
                "2025-11-25",
                json!({ "roots": {} }),
                PassedVariables::All,
            ),
            McpClient::QwenCode => of(
                Some("qwen"),
                "qwen-cli-mcp-client-mainstay",
                "0.0.1",
                "2025-11-25",
                json!({ "roots": {} }),
                PassedVariables::All,
            ),
        }
    }
}

impl PassedVariables {
    /// Whether a variable gets to a server whose entry names `more` of them.
    pub(super) fn has(self, name: &OsStr, more: &[String]) -> bool {
        let is_named = more.iter().any(|more| name == more.as_str());
        is_named
            || match self {
                Self::All => true,
                Self::Only(names) => names.iter().any(|passed| name == *passed),
                Self::AllBut(words) => {
                    let name = name.to_string_lossy().to_uppercase();
                    !words.iter().any(|word| name.contains(word))
                }
            }
    }

    /// The environment of a server: what is passed on of `ours`, and what the entry sets.
    pub(super) fn environment(
        self,
        ours: impl Iterator<Item = (OsString, OsString)>,
        more: &[String],
        set: impl Iterator<Item = (String, String)>,
    ) -> Vec<(OsString, OsString)> {
        let set = set.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        ours.filter(|(name, _)| self.has(name, more)).chain(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(client: McpClient, more: &[&str]) -> Vec<String> {
        let ours = ["PATH", "NUGET_PACKAGES", "MAINSTAY_TOKEN", "LANG"];
        let ours = ours.into_iter().map(|name| (OsString::from(name), OsString::from("ours")));
        let more: Vec<String> = more.iter().map(|name| (*name).to_owned()).collect();
        let set = [("MAINSTAY_HOME".to_owned(), "/srv".to_owned())];
        let passed = Identity::of(client).passes.environment(ours, &more, set.into_iter());
        passed.into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn each_client_passes_on_what_it_does() {
        let all = ["PATH", "NUGET_PACKAGES", "MAINSTAY_TOKEN", "LANG", "MAINSTAY_HOME"];
        assert_eq!(names(McpClient::Opencode, &[]), all);
        assert_eq!(names(McpClient::Codex, &[]), ["PATH", "LANG", "MAINSTAY_HOME"]);
        assert_eq!(
            names(McpClient::Codex, &["NUGET_PACKAGES"]),
            ["PATH", "NUGET_PACKAGES", "LANG", "MAINSTAY_HOME"]
        );
        assert_eq!(names(McpClient::Gemini, &[]), ["PATH", "NUGET_PACKAGES", "LANG", "MAINSTAY_HOME"]);
        assert_eq!(names(McpClient::ClaudeDesktop, &[]), ["PATH", "MAINSTAY_HOME"]);
    }
}
