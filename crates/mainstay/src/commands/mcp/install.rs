//! `mainstay mcp install` and `mainstay mcp uninstall`: an agent is told of Mainstay, or no more.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use mainstay_home::{HOME_VARIABLE, Home, lasting_program};
use mainstay_model::Error;
use mainstay_terminal::{Enter, Paint, agrees, confirm, note};
use mainstay_terminal_client::paths::working_directory;
use serde::Serialize;

use super::clients::{McpClient, Places, Scope};
use super::edit::{Change, EditError, Entry, edit};
use super::file::{File, difference};
use crate::commands::print_json;

/// The program's name, for who has it on the path.
const PROGRAM: &str = "mainstay";

/// Have an agent start `mainstay mcp`: shows the change of its configuration, and makes it once you agree
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay mcp install claude-code\n  mainstay mcp install vscode --scope project\n  mainstay mcp install codex --approve              # `codex exec` runs code without a question\n  mainstay mcp install codex --yes --json\n  mainstay mcp install zed --print\n\nAll else in the configuration stays, comments included; what it was is kept beside it."
)]
pub(super) struct Install {
    #[command(flatten)]
    how: InstallArgs,

    /// Have the agent call every tool without asking you (Codex, Gemini CLI, Qwen Code). Code that it sends runs as you, outside the agent's sandbox
    #[arg(long)]
    approve: bool,

    /// Only print what to add, for a configuration from nothing
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "json"])]
    print: bool,
}

/// Take Mainstay out of an agent's configuration
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay mcp uninstall claude-code\n  mainstay mcp uninstall vscode --scope project --yes"
)]
pub(super) struct Uninstall {
    #[command(flatten)]
    how: InstallArgs,
}

#[derive(Debug, Args)]
struct InstallArgs {
    /// The agent to be set up
    client: McpClient,

    /// Whose configuration: yours, or that of the project in this folder
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,

    /// Write without asking first
    #[arg(short, long)]
    yes: bool,

    /// Show the change, and make none
    #[arg(long)]
    dry_run: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallReport<'a> {
    client: &'a str,
    file: &'a Path,
    changed: bool,
    dry_run: bool,
    /// What the file said before, where it was there and was changed.
    backup: Option<PathBuf>,
    /// What the user has to do now.
    next: Vec<String>,
}

impl Install {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { how, approve, print } = self;
        if approve && !how.client.form().has_approval() {
            return Err(Error::InvalidArgument {
                argument: "--approve".to_owned(),
                reason: format!(
                    "{} keeps permissions elsewhere; leave this out, and allow Mainstay's tools where it asks for the first one",
                    how.client.title()
                ),
            });
        }
        let entry = Entry { approved: approve, ..how.entry(home)? };
        if print {
            return how.print(&entry);
        }
        let file = File::read(&how.file()?)?;
        let asking = how.after(&file, Change::Set(&entry))?;
        let approving = how.after(&file, Change::Set(&Entry { approved: true, ..entry }))?;
        // An entry that had every tool approved keeps that.
        let is_approved = asking == approving || approve || how.is_approved_by_user();
        let after = if is_approved { approving } else { asking };
        let next = how.client.next_steps(how.scope, is_approved);
        how.carry_out(&file, &after, next)
    }
}

impl Uninstall {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        let file = File::read(&self.how.file()?)?;
        let after = self.how.after(&file, Change::Remove)?;
        let is_there = after != file.text();
        let next = is_there.then(|| format!("start {} again", self.how.client.title()));
        let next = Vec::from_iter(next);
        self.how.carry_out(&file, &after, next)
    }
}

/// An agent whose configuration has Mainstay.
pub(in crate::commands) struct Configured {
    /// The agent's name, for people.
    pub(in crate::commands) title: &'static str,
    pub(in crate::commands) file: PathBuf,
    /// The command that takes Mainstay out of it.
    pub(in crate::commands) removal: String,
}

/// The agents whose configuration, of this user, has Mainstay. One that cannot be read counts as without.
pub(in crate::commands) fn configured() -> Result<Vec<Configured>, Error> {
    let places = Places::of_process(working_directory()?)?;
    let has_mainstay = |client: McpClient, path: &Path| {
        let Ok(file) = File::read(path) else { return false };
        edit(client.form(), file.text(), Change::Remove).is_ok_and(|after| after != file.text())
    };
    let found = McpClient::value_variants().iter().filter_map(|client| {
        let file = client.file(Scope::User, &places).ok().filter(|file| has_mainstay(*client, file))?;
        let removal = format!("mainstay mcp uninstall {}", client.name());
        Some(Configured { title: client.title(), file, removal })
    });
    Ok(found.collect())
}

/// How this user starts this program in this home.
fn own_entry(home: &Home) -> Result<Entry, Error> {
    let program = lasting_program().ok().and_then(|program| program.to_str().map(str::to_owned));
    let command = program.ok_or_else(|| Error::InvalidArgument {
        argument: "mainstay".to_owned(),
        reason: "the path of this program is not known, or no text; `--print` elsewhere says what to add"
            .to_owned(),
    })?;
    let is_named = std::env::var_os(HOME_VARIABLE).is_some_and(|folder| !folder.is_empty());
    Ok(Entry { command, home: is_named.then(|| home.folder().display().to_string()), approved: false })
}

impl InstallArgs {
    /// What a project's configuration says holds on the machine of everyone who works in it.
    fn entry(&self, home: &Home) -> Result<Entry, Error> {
        match self.scope {
            Scope::User => own_entry(home),
            Scope::Project => Ok(Entry { command: PROGRAM.to_owned(), home: None, approved: false }),
        }
    }

    fn file(&self) -> Result<PathBuf, Error> {
        self.client.file(self.scope, &Places::of_process(working_directory()?)?)
    }

    fn print(&self, entry: &Entry) -> Result<ExitCode, Error> {
        let file = self.file()?;
        let text = edit(self.client.form(), "", Change::Set(entry));
        print!("{}", text.map_err(|error| self.left_alone(&file, &error))?);
        note(&format!("for {}", file.display()));
        Ok(ExitCode::SUCCESS)
    }

    /// What a file says after a change.
    fn after(&self, file: &File, change: Change<'_>) -> Result<String, Error> {
        edit(self.client.form(), file.text(), change).map_err(|error| self.left_alone(file.path(), &error))
    }

    /// Whether the user, asked on the terminal, has the agent call every tool without a question.
    fn is_approved_by_user(&self) -> bool {
        let may_ask = !self.yes && !self.json && !self.dry_run && std::io::stdin().is_terminal();
        if self.client != McpClient::Codex || !may_ask {
            return false;
        }
        note(
            "Codex asks you before it calls a tool that runs code, and `codex exec`, which cannot ask, refuses it.",
        );
        confirm(
            "Have it call all of Mainstay's tools without asking? Code then runs as you, outside Codex's sandbox",
            Enter::No,
        )
    }

    fn carry_out(self, file: &File, after: &str, next: Vec<String>) -> Result<ExitCode, Error> {
        if after == file.text() {
            return self.tell(file, false, None, next);
        }
        if !self.json {
            print!("{}\n{}", file.path().display(), difference(file.text(), after, Paint::stdout()));
        }
        if self.dry_run {
            return self.tell(file, true, None, next);
        }
        if !self.yes && !agrees(&format!("Change what {} reads?", self.client.title()), Enter::Yes)? {
            note("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        let backup = file.write(after, self.scope)?;
        self.tell(file, true, backup, next)
    }

    fn tell(
        &self,
        file: &File,
        changed: bool,
        backup: Option<PathBuf>,
        next: Vec<String>,
    ) -> Result<ExitCode, Error> {
        let path = file.path();
        if self.json {
            let Self { client, dry_run, .. } = *self;
            print_json(&InstallReport { client: client.name(), file: path, changed, dry_run, backup, next })?;
            return Ok(ExitCode::SUCCESS);
        }
        if changed && self.dry_run {
            note("nothing was changed");
            return Ok(ExitCode::SUCCESS);
        }
        match (changed, backup) {
            (false, _) => note(&format!("{} says so already", path.display())),
            (true, Some(backup)) => note(&format!("what was there is in {}", backup.display())),
            (true, None) => {}
        }
        next.iter().for_each(|step| note(&format!("next: {step}")));
        Ok(ExitCode::SUCCESS)
    }

    /// The error for a configuration that is not touched.
    fn left_alone(&self, file: &Path, error: &EditError) -> Error {
        let name = self.client.name();
        Error::InvalidArgument {
            argument: file.display().to_string(),
            reason: format!(
                "{error}. It was left alone: mend it, or add by hand what `mainstay mcp install {name} --print` says"
            ),
        }
    }
}
