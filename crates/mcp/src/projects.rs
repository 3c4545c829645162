//! `get_available_projects`: the projects and solutions below a folder. It looks at names alone, and at so many at most.

use std::collections::VecDeque;
use std::fmt::{Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use mainstay_model::{Action, Error};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::call::Call;
use super::import_export::unusable;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::path::absolute;

/// Endings of files that are listed.
const KINDS: [&str; 3] = ["fsproj", "sln", "slnx"];
/// Folders that hold what was built or fetched.
const SKIPPED: [&str; 4] = ["bin", "obj", "node_modules", ".git"];
/// The most projects in one answer.
const LISTED: usize = 100;
/// How many names are looked at.
const NAMES: usize = 20_000;

/// Asks for the projects that a session could load.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetAvailableProjects {
    /// Absolute; your own by default.
    folder: Option<String>,
}

/// The projects, those nearest to the folder first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct ProjectsAnswer {
    folder: String,
    /// Relative to the folder.
    projects: Vec<String>,
    /// Whether there may be more: the folder was too large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl Tool for GetAvailableProjects {
    const NAME: &'static str = "get_available_projects";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "List the .fsproj, .sln and .slnx files below a folder.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    const FILES: bool = true;
    type Answer = ProjectsAnswer;

    async fn carry_out(self, call: &Call) -> Result<ProjectsAnswer, Error> {
        call.client().require_all("read files")?;
        let folder = self.folder.unwrap_or_else(|| call.meant().folder());
        let root = absolute(&folder)?;
        let walked = spawn_blocking(move || below(&root, NAMES)).await;
        let (projects, more) =
            walked.map_err(|error| unusable(&folder, &error))?.map_err(|error| unusable(&folder, &error))?;
        Ok(ProjectsAnswer { folder, projects, more })
    }
}

/// The projects below a folder, breadth first and in order, and whether there may be more. Links to folders are not followed. A
/// folder that cannot be read is passed over, but for the first.
fn below(root: &Path, names: usize) -> io::Result<(Vec<String>, bool)> {
    let (mut projects, mut looked_at) = (Vec::new(), 0);
    let mut folders = VecDeque::new();
    let (mut folder, mut entries) = (PathBuf::new(), entries_of(root)?);
    loop {
        for (name, is_folder) in entries {
            looked_at += 1;
            if looked_at > names || projects.len() == LISTED {
                return Ok((projects, true));
            }
            let path = folder.join(&name);
            if is_folder && !SKIPPED.contains(&name.as_str()) {
                folders.push_back(path);
            } else if !is_folder && is_project(&path) {
                projects.push(path.display().to_string());
            }
        }
        let Some(next) = folders.pop_front() else { return Ok((projects, false)) };
        entries = entries_of(&root.join(&next)).unwrap_or_default();
        folder = next;
    }
}

/// What is in a folder, by name, and whether it is a folder itself. Names that are no text are passed over.
fn entries_of(folder: &Path) -> io::Result<Vec<(String, bool)>> {
    let entries = std::fs::read_dir(folder)?.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir()))
    });
    let mut entries: Vec<_> = entries.take(NAMES).collect();
    entries.sort();
    Ok(entries)
}

fn is_project(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known))
}

impl Answer for ProjectsAnswer {}

impl Display for ProjectsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for project in &self.projects {
            writeln!(f, "{project}")?;
        }
        let more = if self.more { ", and perhaps more" } else { "" };
        write!(f, "projects: {}{more}, below {}", self.projects.len(), self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_found_near_ones_first_and_not_in_what_was_built() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            "b/Shop.fsproj",
            "b/c/Deep.fsproj",
            "b/bin/Built.fsproj",
            "a/obj/Built.fsproj",
            "node_modules/x/Fetched.fsproj",
            ".git/Kept.sln",
            "a/Tests.FSPROJ",
            "All.slnx",
            "All.sln",
            "notes.txt",
        ] {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink(root.path(), root.path().join("a/loop")).unwrap();
        let found = ["All.sln", "All.slnx", "a/Tests.FSPROJ", "b/Shop.fsproj", "b/c/Deep.fsproj"];
        assert_eq!(below(root.path(), NAMES).unwrap(), (found.map(str::to_owned).to_vec(), false));
        assert_eq!(below(root.path(), 4).unwrap(), (vec!["All.sln".to_owned(), "All.slnx".to_owned()], true));
        assert!(below(&root.path().join("nothing"), NAMES).is_err());
    }
}
