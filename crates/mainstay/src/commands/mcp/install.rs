//! `mainstay mcp install` and `mainstay mcp uninstall`: an agent is told of Mainstay, or no more.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mainstay_model::Error;
use serde::Serialize;

use super::clients::{McpClient, Places, Scope};
use super::edit::{Change, EditError, Entry, edit};
use super::file::{File, difference};
use crate::commands::print_json;
use crate::commands::target::working_directory;
use crate::confirm::{Enter, agrees};
use crate::home::{HOME_VARIABLE, Home};
use crate::terminal::{Paint, note};

/// The program's name, for who has it on the path.
const PROGRAM: &str = "mainstay";

/// Have an agent start `mainstay mcp`: shows the change of its configuration, and makes it once you agree
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay mcp install claude-code\n  mainstay mcp install vscode --scope project\n  mainstay mcp install codex --yes --json\n  mainstay mcp install zed --print\n\nAll else in the configuration stays, comments included; what it was is kept beside it."
)]
pub(super) struct Install {
    #[command(flatten)]
    how: How,

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
    how: How,
}

#[derive(Debug, Args)]
struct How {
    /// The agent
    client: McpClient,

    /// Whose configuration: yours, or that of the project in this folder
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Show the change, and make none
    #[arg(long)]
    dry_run: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Changed<'a> {
    client: &'a str,
    file: &'a Path,
    changed: bool,
    dry_run: bool,
    /// What the file said before, where it was there and was changed.
    backup: Option<PathBuf>,
}

impl Install {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let entry = self.how.entry(home)?;
        if self.print {
            return self.how.print(&entry);
        }
        self.how.carry_out(Change::Set(&entry))
    }
}

impl Uninstall {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        self.how.carry_out(Change::Remove)
    }
}

/// How this user starts this program in this home.
fn own_entry(home: &Home) -> Result<Entry, Error> {
    let program = std::env::current_exe().ok().and_then(|program| program.to_str().map(str::to_owned));
    let command = program.ok_or_else(|| Error::InvalidArgument {
        argument: "mainstay".to_owned(),
        reason: "the path of this program is not known, or no text; `--print` elsewhere says what to add"
            .to_owned(),
    })?;
    let is_named = std::env::var_os(HOME_VARIABLE).is_some_and(|folder| !folder.is_empty());
    Ok(Entry { command, home: is_named.then(|| home.folder().display().to_string()) })
}

impl How {
    /// What a project's configuration says holds on the machine of everyone who works in it.
    fn entry(&self, home: &Home) -> Result<Entry, Error> {
        match self.scope {
            Scope::User => own_entry(home),
            Scope::Project => Ok(Entry { command: PROGRAM.to_owned(), home: None }),
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

    fn carry_out(self, change: Change<'_>) -> Result<ExitCode, Error> {
        let file = File::read(&self.file()?)?;
        let after = edit(self.client.form(), file.text(), change)
            .map_err(|error| self.left_alone(file.path(), &error))?;
        if after == file.text() {
            return self.tell(&file, false, None);
        }
        if !self.json {
            print!("{}\n{}", file.path().display(), difference(file.text(), &after, Paint::stdout()));
        }
        if self.dry_run {
            return self.tell(&file, true, None);
        }
        if !self.yes && !agrees(&format!("Change what {} reads?", self.client.title()), Enter::Yes)? {
            note("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        let backup = file.write(&after, self.scope)?;
        self.tell(&file, true, backup)
    }

    fn tell(&self, file: &File, changed: bool, backup: Option<PathBuf>) -> Result<ExitCode, Error> {
        let (title, path) = (self.client.title(), file.path());
        if self.json {
            let Self { client, dry_run, .. } = *self;
            print_json(&Changed { client: client.name(), file: path, changed, dry_run, backup })?;
            return Ok(ExitCode::SUCCESS);
        }
        match (changed, self.dry_run, backup) {
            (false, _, _) => note(&format!("{} says so already", path.display())),
            (true, true, _) => note("nothing was changed"),
            (true, false, None) => note(&format!("start {title} anew to have it read this")),
            (true, false, Some(backup)) => {
                note(&format!(
                    "start {title} anew to have it read this; what was there is in {}",
                    backup.display()
                ));
            }
        }
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
