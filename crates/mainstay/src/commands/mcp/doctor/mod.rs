//! `mainstay mcp doctor`: what each agent that is installed here would see of Mainstay.
//!
//! For each place where a client keeps its servers, [`entry`] reads Mainstay's entry, [`identity`] says which environment the client would
//! give it and how it would introduce itself, [`conversation`] starts that very command and speaks MCP with it, and [`trust`] knows of
//! folders in which the client would not. Nothing is changed; a daemon is started where none runs, as the client would.

mod conversation;
mod entry;
mod identity;
mod trust;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mainstay_model::Error;
use mainstay_terminal::{Paint, Tone, note, printable};
use mainstay_terminal_client::paths::working_directory;
use serde::Serialize;

use self::conversation::{ServerReport, Start, converse};
use self::entry::{Entry, Local};
use self::identity::Identity;
use super::clients::{McpClient, NEEDED, Places, Scope};
use super::file::File;
use crate::commands::print_json;

/// Connect as each agent that is installed here would, and say what it would see
///
/// Reads each agent's configuration, yours and this folder's, starts the command that stands there with the environment that the agent would
/// give it, lists the tools and asks for the status. Changes no configuration, and starts the daemon where none runs. Exits with 1 where an agent could not use Mainstay.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay mcp doctor                 # all agents that are found\n  mainstay mcp doctor codex gemini\n  mainstay mcp doctor --json"
)]
pub(super) struct Doctor {
    /// The agents; without any, all that are installed or have a configuration
    clients: Vec<McpClient>,

    /// How long each answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// What was found out of one client.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientReport {
    client: &'static str,
    #[serde(skip)]
    title: &'static str,
    /// The client's own program, where it is on the path.
    program: Option<PathBuf>,
    configurations: Vec<Configuration>,
    problems: Vec<Finding>,
}

/// One place where a client keeps its servers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    scope: &'static str,
    file: PathBuf,
    state: State,
    /// The command that the client starts.
    command: Option<Vec<String>>,
    /// What the client sees of it.
    seen: Option<ServerReport>,
    /// What keeps the client from using Mainstay.
    problems: Vec<Finding>,
    /// What it had better know.
    warnings: Vec<Finding>,
}

/// What stands in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    /// The entry names this Mainstay.
    Named,
    /// It names Mainstay by an address.
    Remote,
    /// It does not name Mainstay, or is not there.
    Missing,
    /// It is not to be understood.
    Unreadable,
    /// It names Mainstay and has it switched off.
    Disabled,
}

/// Something that is wrong, or may be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    what: String,
    next_step: String,
}

impl Finding {
    fn new(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { what: what.into(), next_step: next_step.into() }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    clients: &'a [ClientReport],
}

impl Doctor {
    pub(super) async fn run(self) -> Result<ExitCode, Error> {
        let places = Places::of_process(working_directory()?)?;
        let limit = Duration::from_secs(self.timeout);
        let mut all = Vec::new();
        for client in self.examined(&places) {
            all.push(examine(client, &places, limit).await?);
        }
        let ok = all.iter().all(ClientReport::is_sound);
        if self.json {
            print_json(&Report { ok, clients: &all })?;
        } else if all.is_empty() {
            note(
                "no agent that speaks MCP was found here; `mainstay mcp install --help` lists those that are known",
            );
        } else {
            all.iter().for_each(|examined| examined.print(Paint::stdout()));
        }
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The clients that were named, else those of which there is a sign.
    fn examined(&self, places: &Places) -> Vec<McpClient> {
        if !self.clients.is_empty() {
            return self.clients.clone();
        }
        let is_found = |client: &McpClient| {
            let program = Identity::of(*client).program.and_then(|name| on_path(name, path().as_deref()));
            let has_file = |scope: &Scope| client.file(*scope, places).is_ok_and(|file| file.exists());
            program.is_some() || Scope::value_variants().iter().any(has_file)
        };
        McpClient::value_variants().iter().copied().filter(is_found).collect()
    }
}

async fn examine(client: McpClient, places: &Places, limit: Duration) -> Result<ClientReport, Error> {
    let identity = Identity::of(client);
    let mut configurations = Vec::new();
    for scope in Scope::value_variants() {
        // One of them has no configuration of a project.
        if let Ok(file) = client.file(*scope, places) {
            configurations.push(look_into(client, *scope, &file, &identity, places, limit).await?);
        }
    }
    let is_named = configurations.iter().any(|found| found.state != State::Missing);
    let install = format!("`mainstay mcp install {}` adds it.", client.name());
    let what = format!("no configuration of {} names Mainstay", client.title());
    let problems = (!is_named).then(|| Finding::new(what, install)).into_iter().collect();
    let program = identity.program.and_then(|name| on_path(name, path().as_deref()));
    Ok(ClientReport { client: client.name(), title: client.title(), program, configurations, problems })
}

async fn look_into(
    client: McpClient,
    scope: Scope,
    path: &Path,
    identity: &Identity,
    places: &Places,
    limit: Duration,
) -> Result<Configuration, Error> {
    let mut found = Configuration {
        scope: scope.name(),
        file: path.to_owned(),
        state: State::Missing,
        command: None,
        seen: None,
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let by_hand =
        format!("Mend {}, or take it away and run `mainstay mcp install {}`.", path.display(), client.name());
    let entry = match File::read(path).map(|file| entry::read(client.form(), file.text())) {
        Ok(Ok(entry)) => entry,
        Ok(Err(error)) => {
            found.state = State::Unreadable;
            found.problems.push(Finding::new(error.to_string(), by_hand));
            return Ok(found);
        }
        Err(error) => {
            found.state = State::Unreadable;
            found.problems.push(Finding::new(error.to_string(), by_hand));
            return Ok(found);
        }
    };
    let install = install_command(client, scope);
    match entry {
        Entry::Missing => return Ok(found),
        Entry::Disabled => {
            found.state = State::Disabled;
            found
                .problems
                .push(Finding::new("Mainstay is switched off in it", format!("`{install}` switches it on.")));
        }
        Entry::Empty => {
            found.state = State::Named;
            found.problems.push(Finding::new(
                "Mainstay's entry names no program",
                format!("`{install}` writes it anew."),
            ));
        }
        Entry::Remote(address) => {
            found.state = State::Remote;
            found.warnings.push(Finding::new(
                format!("{} connects to {address} over HTTP, which is not examined", client.title()),
                format!("`{install}` has it start `mainstay mcp` instead."),
            ));
        }
        Entry::Local(local) => {
            found.state = State::Named;
            found.try_out(client, scope, local, identity, places, limit).await;
        }
    }
    if let Some((what, next_step)) = trust::doubt(client, scope, places) {
        // Gemini CLI starts nothing there; Codex may have its user's configuration besides.
        let findings = if client == McpClient::Gemini { &mut found.problems } else { &mut found.warnings };
        findings.push(Finding::new(what, next_step));
    }
    Ok(found)
}

fn install_command(client: McpClient, scope: Scope) -> String {
    match scope {
        Scope::User => format!("mainstay mcp install {}", client.name()),
        Scope::Project => format!("mainstay mcp install {} --scope project", client.name()),
    }
}

impl Configuration {
    /// Starts what the entry says, as the client would, and notes what it sees.
    async fn try_out(
        &mut self,
        client: McpClient,
        scope: Scope,
        local: Local,
        identity: &Identity,
        places: &Places,
        limit: Duration,
    ) {
        let Local { command, environment, passed, approved, short_limit } = local;
        self.command = Some(command.clone());
        let install = install_command(client, scope);
        let set: Vec<String> = environment.keys().cloned().collect();
        let environment = identity.passes.environment(std::env::vars_os(), &passed, environment.into_iter());
        let withheld: Vec<&str> = NEEDED
            .into_iter()
            .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
            .filter(|name| {
                !identity.passes.has(OsStr::new(name), &passed) && !set.iter().any(|set| set == name)
            })
            .collect();
        if !withheld.is_empty() {
            let remedy = match client {
                McpClient::Codex => format!("`{install}` has them passed on."),
                _ => "Set those that your code needs in Mainstay's entry, where it has its environment."
                    .to_owned(),
            };
            let what = format!("{} does not pass on {}", client.title(), withheld.join(", "));
            self.warnings.push(Finding::new(what, remedy));
        }
        if let Some(seconds) = short_limit {
            let what = format!(
                "{} gives calls up after {seconds} s, as if you had cancelled them: their code is stopped",
                client.title()
            );
            self.warnings.push(Finding::new(what, format!("`{install}` gives them more time.")));
        }
        let Some((name, arguments)) = command.split_first() else { return };
        let searched =
            environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        let Some(program) = program(name, &places.project, searched) else {
            let remedy = match scope {
                Scope::User => format!("`{install}` names the program that you have now."),
                Scope::Project => format!("Put `{name}` on the path, for everyone who works here."),
            };
            self.problems.push(Finding::new(format!("there is no program `{name}`"), remedy));
            return;
        };
        if let Ok(own) = std::env::current_exe()
            && own.canonicalize().ok() != program.canonicalize().ok()
        {
            self.warnings.push(Finding::new(
                format!("it starts {}, and this is {}", program.display(), own.display()),
                format!("`{install}` has it start this one."),
            ));
        }
        let start =
            Start { program, arguments: arguments.to_vec(), environment, folder: places.project.clone() };
        match converse(start, identity, limit).await {
            Ok(seen) => {
                if client == McpClient::Codex && !approved && !seen.asking.is_empty() {
                    let count = format!("{} of {} tools", seen.asking.len(), seen.tools.len());
                    self.warnings.push(Finding::new(
                        format!(
                            "`codex exec` refuses {count}, as it cannot ask you: {}",
                            seen.asking.join(", ")
                        ),
                        format!("`{install} --approve` has Codex call all tools without asking."),
                    ));
                }
                if seen.tools.is_empty() {
                    self.problems.push(Finding::new("it has no tools", "See `mainstay status`."));
                }
                self.seen = Some(seen);
            }
            Err(failure) => {
                let by_hand = command.join(" ");
                self.problems.push(Finding::new(
                    failure.to_string(),
                    format!("Run `{by_hand}` in a terminal to see what it says; `mainstay doctor` examines the store."),
                ));
            }
        }
    }

    fn print(&self, paint: Paint) {
        let Self { scope, file, state, command, seen, problems, warnings } = self;
        let said = match state {
            State::Missing => paint.tone(Tone::Faint, "does not name Mainstay"),
            State::Unreadable => paint.tone(Tone::Error, "cannot be read"),
            State::Disabled => paint.tone(Tone::Error, "has Mainstay switched off"),
            State::Named | State::Remote => String::new(),
        };
        println!("  {scope}: {} {said}", printable(&file.display().to_string()));
        if let Some(command) = command {
            println!("    starts {}", printable(&command.join(" ")));
        }
        if let Some(ServerReport { server, protocol, tools, status, milliseconds, .. }) = seen {
            let told =
                format!("sees {server} over MCP {protocol}: {} tools, after {milliseconds} ms", tools.len());
            println!("    {}", paint.tone(Tone::Good, &printable(&told)));
            status.lines().for_each(|line| println!("      {}", printable(line)));
        }
        print_findings("    ", Tone::Error, "problem:", problems, paint);
        print_findings("    ", Tone::Warning, "warning:", warnings, paint);
    }
}

impl ClientReport {
    fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.configurations.iter().all(|found| found.problems.is_empty())
    }

    fn print(&self, paint: Paint) {
        let program = match &self.program {
            Some(program) => format!(" ({})", printable(&program.display().to_string())),
            None => String::new(),
        };
        println!("{}{program}", paint.tone(Tone::Name, self.title));
        self.configurations.iter().for_each(|found| found.print(paint));
        print_findings("  ", Tone::Error, "problem:", &self.problems, paint);
    }
}

fn print_findings(indent: &str, tone: Tone, word: &str, findings: &[Finding], paint: Paint) {
    for Finding { what, next_step } in findings {
        println!("{indent}{} {}", paint.tone(tone, word), printable(what));
        println!("{indent}  {}", printable(next_step));
    }
}

fn path() -> Option<std::ffi::OsString> {
    std::env::var_os("PATH")
}

/// The program that a client starts by this name from a folder.
fn program(name: &str, folder: &Path, searched: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        let named = folder.join(name);
        return is_program(&named).then_some(named);
    }
    on_path(name, searched)
}

fn on_path(name: &str, searched: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(searched?).map(|folder| folder.join(name)).find(|named| is_program(named))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
