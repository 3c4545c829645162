//! The agents that can be told of Mainstay: where each keeps the servers it starts, and in which form.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mainstay_model::Error;

use super::edit::{Form, Kind};

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum McpClient {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop, which has no configuration of a project
    ClaudeDesktop,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Cursor
    Cursor,
    /// Zed
    Zed,
    /// Codex; it reads a project's configuration once you trust the project
    Codex,
    /// Gemini CLI
    Gemini,
}

/// For whom it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Scope {
    /// You, in every project
    User,
    /// Everyone who works in this folder and has `mainstay` on the path
    Project,
}

/// Where the files of a user and of a project lie.
#[derive(Debug)]
pub(super) struct Places {
    /// The user's home.
    pub(super) home: PathBuf,
    /// Where programs keep their configuration: `~/.config`, or what `XDG_CONFIG_HOME` says.
    pub(super) config: PathBuf,
    /// The same for programs made of a browser: `~/Library/Application Support` on macOS, else as `config`.
    pub(super) applications: PathBuf,
    /// What `CODEX_HOME` says, else `~/.codex`.
    pub(super) codex: PathBuf,
    /// The folder of the project.
    pub(super) project: PathBuf,
}

impl Places {
    /// Those of this process.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a home.
    pub(super) fn of_process(project: PathBuf) -> Result<Self, Error> {
        let named = |variable: &str| {
            std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
        };
        let home = named("HOME").ok_or_else(|| Error::InvalidArgument {
            argument: "HOME".to_owned(),
            reason: "it names no folder; agents keep your configuration there".to_owned(),
        })?;
        let config = named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let applications = match cfg!(target_os = "macos") {
            true => home.join("Library/Application Support"),
            false => config.clone(),
        };
        let codex = named("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
        Ok(Self { home, config, applications, codex, project })
    }
}

impl McpClient {
    /// What people call it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// What the command line calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Zed => "zed",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The form of its file, as the named page of its documentation has it.
    pub(super) fn form(self) -> Form {
        let json = |servers, kind| Form::Json { servers, kind };
        match self {
            // code.claude.com/docs/en/mcp: without a type it is stdio; `claude mcp add` writes one.
            Self::ClaudeCode => json("mcpServers", Kind::Written),
            // modelcontextprotocol.io/docs/develop/connect-local-servers
            Self::ClaudeDesktop => json("mcpServers", Kind::Absent),
            // code.visualstudio.com/docs/copilot/reference/mcp-configuration: the type is required.
            Self::VsCode => json("servers", Kind::Written),
            // cursor.com/docs/context/mcp
            Self::Cursor => json("mcpServers", Kind::Written),
            // zed.dev/docs/ai/mcp
            Self::Zed => json("context_servers", Kind::Absent),
            // developers.openai.com/codex/mcp
            Self::Codex => Form::Toml { servers: "mcp_servers" },
            // geminicli.com/docs/tools/mcp-server
            Self::Gemini => json("mcpServers", Kind::Absent),
        }
    }

    /// Its file; the pages are those of [`Self::form`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it has none for this scope.
    pub(super) fn file(self, scope: Scope, places: &Places) -> Result<PathBuf, Error> {
        let Places { home, config, applications, codex, project } = places;
        let under = |folder: &Path, name: &str| Ok(folder.join(name));
        match (self, scope) {
            (Self::ClaudeCode, Scope::User) => under(home, ".claude.json"),
            (Self::ClaudeCode, Scope::Project) => under(project, ".mcp.json"),
            (Self::ClaudeDesktop, Scope::User) => under(applications, "Claude/claude_desktop_config.json"),
            (Self::ClaudeDesktop, Scope::Project) => Err(Error::InvalidArgument {
                argument: "--scope".to_owned(),
                reason: "Claude Desktop has one configuration for all projects; leave the scope out"
                    .to_owned(),
            }),
            (Self::VsCode, Scope::User) => under(applications, "Code/User/mcp.json"),
            (Self::VsCode, Scope::Project) => under(project, ".vscode/mcp.json"),
            (Self::Cursor, Scope::User) => under(home, ".cursor/mcp.json"),
            (Self::Cursor, Scope::Project) => under(project, ".cursor/mcp.json"),
            (Self::Zed, Scope::User) => under(config, "zed/settings.json"),
            (Self::Zed, Scope::Project) => under(project, ".zed/settings.json"),
            (Self::Codex, Scope::User) => under(codex, "config.toml"),
            (Self::Codex, Scope::Project) => under(project, ".codex/config.toml"),
            (Self::Gemini, Scope::User) => under(home, ".gemini/settings.json"),
            (Self::Gemini, Scope::Project) => under(project, ".gemini/settings.json"),
        }
    }
}
