//! The agents that can be told of Mainstay: where each keeps the servers it starts, and in which form.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mainstay_model::Error;

use super::edit::{Form, Layout};

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum McpClient {
    /// Claude Code, by Anthropic
    ClaudeCode,
    /// Claude Desktop, which has no configuration of a project
    ClaudeDesktop,
    /// Visual Studio Code, with its agent
    #[value(name = "vscode")]
    VsCode,
    /// Cursor, the code editor
    Cursor,
    /// Zed, the code editor
    Zed,
    /// Codex; it reads a project's configuration once you trust the project
    Codex,
    /// Gemini CLI; it starts no servers in a folder that you have not trusted
    Gemini,
    /// opencode, for the terminal
    Opencode,
    /// Qwen Code, for the terminal
    QwenCode,
}

/// The variables of a client's environment that Mainstay needs: what it reads itself, and what kernels and package managers go by to be found
/// and to reach their servers. Codex, which withholds every variable that is not named, is told to pass these on.
pub(super) const NEEDED: [&str; 30] = [
    "MAINSTAY_HOME",
    "MAINSTAY_TOKEN",
    "MAINSTAY_LOG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "DOTNET_ROOT",
    "DOTNET_CLI_HOME",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_NOLOGO",
    "NUGET_PACKAGES",
    "RestoreConfigFile",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PIP_INDEX_URL",
    "PIP_CONFIG_FILE",
    "JUPYTER_PATH",
    "JUPYTER_DATA_DIR",
    "JUPYTER_CONFIG_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
];

/// For whom it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Scope {
    /// You, in every project
    User,
    /// Everyone who works in this folder and has `mainstay` on the path
    Project,
}

impl Scope {
    /// What the command line calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Where the files of a user and of a project lie.
#[derive(Debug)]
pub(super) struct Places {
    /// The home folder of the user.
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
            Self::Opencode => "opencode",
            Self::QwenCode => "Qwen Code",
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
            Self::Opencode => "opencode",
            Self::QwenCode => "qwen-code",
        }
    }

    /// The form of its file, as the named page of its documentation has it.
    pub(super) fn form(self) -> Form {
        let json = |servers, layout| Form::Json { servers, layout, trust: None };
        let trusting = |servers| Form::Json { servers, layout: Layout::Untyped, trust: Some("trust") };
        match self {
            // code.claude.com/docs/en/mcp: without a type it is stdio; `claude mcp add` writes one.
            Self::ClaudeCode => json("mcpServers", Layout::Typed),
            // modelcontextprotocol.io/docs/develop/connect-local-servers
            Self::ClaudeDesktop => json("mcpServers", Layout::Untyped),
            // code.visualstudio.com/docs/copilot/reference/mcp-configuration: the type is required.
            Self::VsCode => json("servers", Layout::Typed),
            // cursor.com/docs/context/mcp
            Self::Cursor => json("mcpServers", Layout::Typed),
            // zed.dev/docs/ai/mcp
            Self::Zed => json("context_servers", Layout::Untyped),
            // developers.openai.com/codex/mcp
            Self::Codex => Form::Toml { servers: "mcp_servers", passed: &NEEDED },
            // geminicli.com/docs/tools/mcp-server
            Self::Gemini => trusting("mcpServers"),
            // opencode.ai/docs/mcp-servers
            Self::Opencode => json("mcp", Layout::Local),
            // qwenlm.github.io/qwen-code-docs/en/users/features/mcp
            Self::QwenCode => trusting("mcpServers"),
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
            (Self::Opencode, Scope::User) => Ok(opencode_file(&config.join("opencode"))),
            (Self::Opencode, Scope::Project) => Ok(opencode_file(project)),
            (Self::QwenCode, Scope::User) => under(home, ".qwen/settings.json"),
            (Self::QwenCode, Scope::Project) => under(project, ".qwen/settings.json"),
        }
    }

    /// What is left to do once its configuration names Mainstay.
    pub(super) fn next_steps(self, scope: Scope, approved: bool) -> Vec<String> {
        let restart = match self {
            Self::ClaudeCode => "start Claude Code again; `/mcp` shows mainstay as connected",
            Self::ClaudeDesktop => "quit Claude Desktop and start it again",
            Self::VsCode => "run `MCP: List Servers` in VS Code, and start mainstay there",
            Self::Cursor => "switch mainstay on in Cursor's settings, under MCP",
            Self::Zed => "Zed takes it in at once; its agent settings show mainstay with a green dot",
            Self::Codex => "start Codex again; `/mcp` shows mainstay with its tools",
            Self::Gemini => "start Gemini CLI again; `/mcp` shows mainstay as ready",
            Self::Opencode => "start opencode again; `opencode mcp list` shows mainstay as connected",
            Self::QwenCode => "start Qwen Code again; `/mcp` shows mainstay as ready",
        };
        let trust = match (self, scope) {
            (Self::ClaudeCode, Scope::Project) => {
                Some("say yes when Claude Code asks about the servers of this project")
            }
            (Self::Codex, Scope::Project) => Some(
                "trust this folder when Codex asks: it reads the configuration of trusted projects alone",
            ),
            (Self::Gemini, _) => Some(
                "trust your folder there with `/permissions` (`--skip-trust` for one run): in others Gemini CLI starts no servers",
            ),
            (Self::QwenCode, Scope::Project) => {
                Some("trust this folder where Qwen Code asks: it reads the settings of trusted folders alone")
            }
            (_, _) => None,
        };
        let approval = (self == Self::Codex && !approved).then_some(
            "`codex exec` refuses the tools that run code, since it cannot ask you; `mainstay mcp install codex --approve` has it call them all without asking",
        );
        [Some(restart), trust, approval].into_iter().flatten().map(str::to_owned).collect()
    }
}

/// The file of opencode in a folder: it reads both of these, and `opencode.json` is the one that its manual names first.
fn opencode_file(folder: &Path) -> PathBuf {
    let commented = folder.join("opencode.jsonc");
    if commented.exists() { commented } else { folder.join("opencode.json") }
}
