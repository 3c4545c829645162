//! Configurations of every client before and after a change. Any configuration at all is in [`any_configuration`].

mod any_configuration;

use std::fmt::Write;

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
#[allow(clippy::too_many_lines, reason = "most of it is a snapshot")]
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
        writeln!(all, "== {}\n{}", client.name(), set_shortly(client, &written(client), &ours())).unwrap();
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
