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
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::commands::mcp::clients::McpClient::{self, *};

    const CLIENTS: [McpClient; 9] =
        [ClaudeCode, ClaudeDesktop, VsCode, Cursor, Zed, Codex, Gemini, Opencode, QwenCode];

    fn ours() -> Entry {
        Entry { command: "/usr/bin/mainstay".to_owned(), home: None, approved: false }
    }

    fn elsewhere() -> Entry {
        Entry { command: "/opt/mainstay".to_owned(), home: Some("/srv/it".to_owned()), approved: false }
    }

    fn set(client: McpClient, text: &str, entry: &Entry) -> Result<String, EditError> {
        edit(client.form(), text, Change::Set(entry))
    }

    /// The same with a form of Codex that passes only two variables on, for tests that show the whole.
    fn set_shortly(client: McpClient, text: &str, entry: &Entry) -> String {
        let form = match client.form() {
            Form::Toml { servers, .. } => Form::Toml { servers, passed: &["DOTNET_ROOT", "NUGET_PACKAGES"] },
            form @ Form::Json { .. } => form,
        };
        edit(form, text, Change::Set(entry)).unwrap()
    }

    fn remove(client: McpClient, text: &str) -> Result<String, EditError> {
        edit(client.form(), text, Change::Remove)
    }

    #[test]
    fn each_client_gets_its_own_form_from_nothing() {
        let mut all = String::new();
        for client in CLIENTS {
            writeln!(all, "== {}\n{}", client.name(), set_shortly(client, "", &elsewhere())).unwrap();
        }
        insta::assert_snapshot!(all, @r#"
        == claude-code
        {
          "mcpServers": {
            "mainstay": {
              "type": "stdio",
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == claude-desktop
        {
          "mcpServers": {
            "mainstay": {
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == vscode
        {
          "servers": {
            "mainstay": {
              "type": "stdio",
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == cursor
        {
          "mcpServers": {
            "mainstay": {
              "type": "stdio",
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == zed
        {
          "context_servers": {
            "mainstay": {
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == codex
        [mcp_servers.mainstay]
        command = "/opt/mainstay"
        args = ["mcp"]
        env = { MAINSTAY_HOME = "/srv/it" }
        env_vars = [
            "DOTNET_ROOT",
            "NUGET_PACKAGES",
        ]
        tool_timeout_sec = 3600

        == gemini
        {
          "mcpServers": {
            "mainstay": {
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == opencode
        {
          "mcp": {
            "mainstay": {
              "type": "local",
              "command": ["/opt/mainstay", "mcp"],
              "environment": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }

        == qwen-code
        {
          "mcpServers": {
            "mainstay": {
              "command": "/opt/mainstay",
              "args": ["mcp"],
              "env": {
                "MAINSTAY_HOME": "/srv/it"
              }
            }
          }
        }
        "#);
    }

    /// A configuration with another server and comments, as its users write it.
    fn written(client: McpClient) -> String {
        match client.form() {
            Form::Toml { .. } => "# mine\nmodel = \"o3\" # fast\n\n[mcp_servers.other] # theirs\ncommand = 'npx'\nargs = [ \"-y\",\n  \"other\", ]\n\n[tui]\nnotifications = true\n".to_owned(),
            Form::Json { servers, .. } => format!("// mine\n{{\n    \"theme\": \"dark\", // at night\n    \"{servers}\": {{\n        /* theirs */\n        \"other\": {{ \"command\": \"npx\", \"args\": [\"-y\", \"other\"] }}, // the end\n    }},\n    \"last\": [1,2 , 3]\n}}\n"),
        }
    }

    #[test]
    fn what_else_is_there_stays_comments_included() {
        let mut all = String::new();
        for client in [VsCode, Zed, Codex] {
            writeln!(all, "== {}\n{}", client.name(), set_shortly(client, &written(client), &ours()))
                .unwrap();
        }
        insta::assert_snapshot!(all, @r#"
        == vscode
        // mine
        {
            "theme": "dark", // at night
            "servers": {
                /* theirs */
                "other": { "command": "npx", "args": ["-y", "other"] }, // the end
                "mainstay": {
                    "type": "stdio",
                    "command": "/usr/bin/mainstay",
                    "args": ["mcp"]
                },
            },
            "last": [1,2 , 3]
        }

        == zed
        // mine
        {
            "theme": "dark", // at night
            "context_servers": {
                /* theirs */
                "other": { "command": "npx", "args": ["-y", "other"] }, // the end
                "mainstay": {
                    "command": "/usr/bin/mainstay",
                    "args": ["mcp"]
                },
            },
            "last": [1,2 , 3]
        }

        == codex
        # mine
        model = "o3" # fast

        [mcp_servers.other] # theirs
        command = 'npx'
        args = [ "-y",
          "other", ]

        [mcp_servers.mainstay]
        command = "/usr/bin/mainstay"
        args = ["mcp"]
        env_vars = [
            "DOTNET_ROOT",
            "NUGET_PACKAGES",
        ]
        tool_timeout_sec = 3600

        [tui]
        notifications = true
        "#);
    }

    #[test]
    fn an_entry_that_is_there_is_brought_up_to_date_and_keeps_what_else_it_says() {
        let mut all = String::new();
        let mut check = |client, text: &str| {
            let now = set_shortly(client, text, &ours());
            writeln!(all, "== {}\n{now}", McpClient::name(client)).unwrap();
            assert_eq!(set_shortly(client, &now, &ours()), now);
        };
        check(
            ClaudeCode,
            "{\n  \"mcpServers\": {\n    \"mainstay\": {\n      \"command\": \"mainstay\", // by hand\n      \"args\": [ \"mcp\" ],\n      \"alwaysAllow\": [\"get_status\"],\n      \"env\": {\"MAINSTAY_HOME\": \"/old\", \"RUST_LOG\": \"info\"}\n    }\n  }\n}\n",
        );
        check(
            Opencode,
            "{\n  \"mcp\": {\n    \"mainstay\": { \"type\": \"local\", \"command\": [\"mainstay\"], \"enabled\": false }\n  }\n}\n",
        );
        check(Codex, "[mcp_servers]\nmainstay = { command = 'mainstay', args = [ 'mcp' ] } # by hand\n");
        check(
            Codex,
            "[mcp_servers.mainstay]\ncommand = \"mainstay\" # by hand\nargs = [ 'mcp' ]\nenabled = false # for now\nstartup_timeout_sec = 20\ntool_timeout_sec = 60.0\nenv_vars = [\"MINE\", { name = \"NUGET_PACKAGES\", source = \"local\" }]\n[mcp_servers.mainstay.env]\nMAINSTAY_HOME = \"/old\"\nRUST_LOG = \"info\"\n",
        );
        insta::assert_snapshot!(all, @r#"
        == claude-code
        {
          "mcpServers": {
            "mainstay": {
              "command": "/usr/bin/mainstay", // by hand
              "args": [ "mcp" ],
              "alwaysAllow": ["get_status"],
              "env": { "RUST_LOG": "info"},
              "type": "stdio"
            }
          }
        }

        == opencode
        {
          "mcp": {
            "mainstay": { "type": "local", "command": ["/usr/bin/mainstay", "mcp"], "enabled": true }
          }
        }

        == codex
        [mcp_servers]
        mainstay = { command = "/usr/bin/mainstay", args = [ 'mcp' ] , env_vars = [
            "DOTNET_ROOT",
            "NUGET_PACKAGES",
        ], tool_timeout_sec = 3600 } # by hand

        == codex
        [mcp_servers.mainstay]
        command = "/usr/bin/mainstay" # by hand
        args = [ 'mcp' ]
        enabled = true # for now
        startup_timeout_sec = 20
        tool_timeout_sec = 3600
        env_vars = ["MINE", { name = "NUGET_PACKAGES", source = "local" }, "DOTNET_ROOT"]
        [mcp_servers.mainstay.env]
        RUST_LOG = "info"
        "#);
    }

    #[test]
    fn an_approval_is_written_where_the_client_has_one_and_stays() {
        let approved = Entry { approved: true, ..ours() };
        let mut all = String::new();
        for client in [Codex, Gemini, QwenCode] {
            let with = set_shortly(client, "", &approved);
            assert_eq!(set_shortly(client, &with, &ours()), with, "an entry that says so keeps it");
            writeln!(all, "== {}\n{with}", client.name()).unwrap();
        }
        for client in [ClaudeCode, ClaudeDesktop, VsCode, Cursor, Zed, Opencode] {
            assert!(!client.form().has_approval());
        }
        insta::assert_snapshot!(all, @r#"
        == codex
        [mcp_servers.mainstay]
        command = "/usr/bin/mainstay"
        args = ["mcp"]
        env_vars = [
            "DOTNET_ROOT",
            "NUGET_PACKAGES",
        ]
        tool_timeout_sec = 3600
        default_tools_approval_mode = "approve"

        == gemini
        {
          "mcpServers": {
            "mainstay": {
              "command": "/usr/bin/mainstay",
              "args": ["mcp"],
              "trust": true
            }
          }
        }

        == qwen-code
        {
          "mcpServers": {
            "mainstay": {
              "command": "/usr/bin/mainstay",
              "args": ["mcp"],
              "trust": true
            }
          }
        }
        "#);
    }

    #[test]
    fn what_was_put_in_is_taken_out_again() {
        for client in CLIENTS {
            let text = written(client);
            assert_eq!(remove(client, &text).unwrap(), text, "there is nothing to take out");
            assert_eq!(remove(client, "").unwrap(), "");
            let with = set(client, &text, &elsewhere()).unwrap();
            assert_eq!(remove(client, &with).unwrap(), text);
        }
    }

    #[test]
    fn what_cannot_be_read_or_understood_is_left_alone() {
        let refused = |client, text| set(client, text, &ours()).unwrap_err().to_string();
        insta::assert_debug_snapshot!(
            [
                refused(ClaudeCode, "{\"mcpServers\": {"),
                refused(ClaudeCode, "{'mcpServers': {}}"),
                refused(ClaudeCode, "[]"),
                refused(Zed, "{\"context_servers\": []}"),
                refused(Zed, "{\"context_servers\": {}, \"context_servers\": {}}"),
                refused(Gemini, "{\"mcpServers\": {\"mainstay\": \"off\"}}"),
                refused(Opencode, "{\"mcp\": {\"mainstay\": {\"environment\": 1}}}"),
                refused(Codex, "model = "),
                refused(Codex, "[mcp_servers.mainstay]\nenv_vars = 1\n"),
                refused(Codex, "mcp_servers = 3\n"),
                refused(Codex, "model = 1\r\n[a]\r\nb = 2\r\n"),
            ],
            @r#"
        [
            "it cannot be read: Unterminated object on line 1 column 16",
            "it cannot be read: Single-quoted strings are not allowed on line 1 column 2",
            "the whole has no members",
            "`context_servers` has no members",
            "`context_servers` is there twice",
            "`mainstay` has no members",
            "`environment` has no members",
            "it cannot be read: string values must be quoted, expected literal string on line 1",
            "`env_vars` is no list",
            "`mcp_servers` has no members",
            "the rest of it could not be kept byte for byte",
        ]
        "#
        );
    }

    /// Spaces, line ends and comments, as they stand between what counts.
    fn trivia() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec![" ", "\n", "\t", "// a \"}{\n", "/* , */"]), 0..3)
            .prop_map(|parts| parts.concat())
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf =
            prop::sample::select(vec!["1", "-2.5e3", "null", "true", "\"x\\\"}\"", "\"// é\"", "[]", "{}"]);
        leaf.prop_map(str::to_owned).prop_recursive(3, 16, 4, |inner| {
            let items = prop::collection::vec((trivia(), inner.clone(), trivia()), 1..4);
            let list = items.prop_map(|items| {
                let items: Vec<String> = items.into_iter().map(|(a, b, c)| a + &b + &c).collect();
                format!("[{}]", items.join(","))
            });
            prop_oneof![list, members("k", inner, false)]
        })
    }

    /// An object with members of different names, perhaps with a comma behind the last.
    fn members(
        name: &'static str,
        value: impl Strategy<Value = String> + 'static,
        may_be_empty: bool,
    ) -> impl Strategy<Value = String> {
        let member = (trivia(), trivia(), value, trivia());
        let least = usize::from(!may_be_empty);
        (prop::collection::vec(member, least..4), any::<bool>(), trivia()).prop_map(
            move |(found, comma, end)| {
                let found: Vec<String> = (found.into_iter().enumerate())
                    .map(|(index, (a, b, value, c))| format!("{a}\"{name}{index}\"{b}:{value}{c}"))
                    .collect();
                let comma = if comma && !found.is_empty() { "," } else { "" };
                format!("{{{}{comma}{end}}}", found.join(","))
            },
        )
    }

    /// A configuration: with servers, or without any.
    fn configuration() -> impl Strategy<Value = String> {
        let servers = members("server", value(), true);
        (trivia(), members("k", value(), false), prop::option::of((trivia(), servers)), trivia()).prop_map(
            |(begin, others, servers, end)| {
                let others = match servers {
                    Some((between, servers)) => {
                        format!("{{{between}\"mcpServers\":{servers},{}", &others[1..])
                    }
                    None => others,
                };
                begin + &others + &end
            },
        )
    }

    /// Whether all that is written of a text is in another, in its order. An object on one line is laid out on several.
    fn is_within(text: &str, other: &str) -> bool {
        let mut rest = other.chars();
        text.chars().filter(|wanted| !wanted.is_whitespace()).all(|wanted| rest.any(|found| found == wanted))
    }

    fn data(text: &str) -> serde_json::Value {
        jsonc_parser::cst::CstRootNode::parse(text, &Default::default()).unwrap().to_serde_value().unwrap()
    }

    proptest! {
        #[test]
        fn whatever_is_there_stays(text in configuration()) {
            let with = set(Cursor, &text, &ours()).unwrap();
            prop_assert!(is_within(&text, &with), "{text}\n==\n{with}");
            prop_assert_eq!(&set(Cursor, &with, &ours()).unwrap(), &with);
            let mut expected = data(&text);
            expected["mcpServers"][NAME] =
                serde_json::json!({ "type": "stdio", "command": "/usr/bin/mainstay", "args": ["mcp"] });
            prop_assert_eq!(&data(&with), &expected);
            expected["mcpServers"].as_object_mut().unwrap().remove(NAME);
            prop_assert_eq!(data(&remove(Cursor, &with).unwrap()), expected);
        }

        #[test]
        fn whatever_a_file_says_it_is_changed_rightly_or_left_alone(text in "[\\[\\]{}\"':,=#/*a-z0-9 .\\n\\r\u{feff}]{0,40}") {
            for client in [Cursor, Codex] {
                if let Ok(with) = set(client, &text, &ours()) {
                    prop_assert!(is_within(&text, &with), "{text:?} {with:?}");
                    prop_assert_eq!(&set(client, &with, &ours()).unwrap(), &with);
                }
            }
        }
    }
}
