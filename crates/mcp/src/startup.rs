//! `get_startup_profile`: what a session's worker brought in before its own code.

use std::fmt::{Display, Formatter};

use mainstay_model::startup::{LoadedAssembly, LoadedProject, ProfileRun, ProjectRoad, Startup, Unopened};
use mainstay_model::{Action, Error};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::diagnostic::{DiagnosticLine, wants_change};
use super::needs::Works;
use super::text::{beginning, shortened};
use super::tool::{Answer, Effect, Tool};

/// The most of each kind in one answer.
const ITEMS: usize = 100;
/// How much is told of what a script printed.
const OUTPUT_BYTES: usize = 2 * 1024;

/// Asks for the startup profile of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetStartupProfile {
    session_id: Option<String>,
}

/// What was brought in.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartupAnswer {
    /// Absent where there is no session yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// What is to be known of its SDK.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<ProjectLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scripts: Vec<ScriptLine>,
    /// What would give it something, where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<&'static str>,
}

/// What became of the project.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProjectLine {
    path: String,
    /// How its references were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    framework: Option<String>,
    /// How many assemblies of others it refers to.
    references: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loaded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_loaded: Vec<Without>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    opened: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_opened: Vec<Without>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Why nothing of it was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// How many more of all these there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// What the session has to do without.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Without {
    name: String,
    reason: String,
}

/// A script that ran.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ScriptLine {
    path: String,
    ms: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<DiagnosticLine>,
    /// Why it did not run to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Tool for GetStartupProfile {
    const NAME: &'static str = "get_startup_profile";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::GetStartup>()];
    const DESCRIPTION: &'static str =
        "What a session has from its project and startup scripts, and what failed.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Status);
    const WORKS: Works = Works::Always;
    type Answer = StartupAnswer;

    async fn carry_out(self, call: &Call) -> Result<StartupAnswer, Error> {
        let session = call.find(self.session_id.as_deref()).await?;
        let startup = match session {
            Some(session) => call.client().status(session).await?.session.startup,
            None => None,
        };
        let startup = startup.map(|startup| *startup);
        let Startup { notes, project, profiles } = startup.unwrap_or_default();
        let is_empty = project.is_none() && profiles.is_empty();
        Ok(StartupAnswer {
            session_id: session.map(|session| session.short()),
            notes,
            project: project.map(ProjectLine::from),
            scripts: profiles.into_iter().take(ITEMS).map(ScriptLine::from).collect(),
            next_step: is_empty.then_some(
                "Give create_session a project, or write ~/.mainstay/init.fsx; it comes with the next worker.",
            ),
        })
    }
}

impl From<LoadedProject> for ProjectLine {
    fn from(project: LoadedProject) -> Self {
        let LoadedProject {
            path,
            road,
            framework,
            assemblies,
            sources: _,
            unbuilt: _,
            references,
            missing,
            opened,
            unopened,
            notes,
            problem,
        } = project;
        let (loaded, failed): (Vec<_>, Vec<_>) =
            assemblies.into_iter().partition(|assembly| assembly.error.is_none());
        let mut left_out = 0;
        let loaded = bounded(loaded.into_iter().map(|assembly| assembly.path).collect(), &mut left_out);
        let not_loaded: Vec<_> = failed.into_iter().chain(missing).map(Without::from).collect();
        let not_loaded = bounded(not_loaded, &mut left_out);
        let not_opened = bounded(unopened.into_iter().map(Without::from).collect(), &mut left_out);
        let (opened, notes) = (bounded(opened, &mut left_out), bounded(notes, &mut left_out));
        Self {
            path,
            found_by: road.map(|road| match road {
                ProjectRoad::Msbuild => "msbuild",
                ProjectRoad::Fallback => "its file and what a build had left",
            }),
            framework,
            references,
            loaded,
            not_loaded,
            opened,
            not_opened,
            notes,
            problem,
            left_out: Some(left_out).filter(|count| *count > 0),
        }
    }
}

fn bounded<T>(mut items: Vec<T>, left_out: &mut usize) -> Vec<T> {
    *left_out += items.len().saturating_sub(ITEMS);
    items.truncate(ITEMS);
    items
}

impl From<LoadedAssembly> for Without {
    fn from(assembly: LoadedAssembly) -> Self {
        Self { name: assembly.path, reason: assembly.error.unwrap_or_default() }
    }
}

impl From<Unopened> for Without {
    fn from(unopened: Unopened) -> Self {
        let Unopened { name, reason, is_meant: _ } = unopened;
        Self { name, reason: beginning(&reason, OUTPUT_BYTES) }
    }
}

impl From<ProfileRun> for ScriptLine {
    fn from(run: ProfileRun) -> Self {
        let ProfileRun { path, diagnostics, error, output, duration_ms } = run;
        let diagnostics = diagnostics.into_iter().filter(wants_change).take(ITEMS);
        Self {
            path,
            ms: duration_ms,
            output: shortened(output, OUTPUT_BYTES),
            diagnostics: diagnostics.map(DiagnosticLine::from).collect(),
            error,
        }
    }
}

impl Answer for StartupAnswer {}

impl Display for StartupAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, notes, project, scripts, next_step } = self;
        for note in notes {
            writeln!(f, "{note}")?;
        }
        if let Some(project) = project {
            let by = project.found_by.map(|by| format!(", references by {by}")).unwrap_or_default();
            writeln!(f, "{}{by}", project.path)?;
            if let Some(problem) = &project.problem {
                writeln!(f, "nothing of it was loaded: {problem}")?;
            }
            for (what, items) in [("loaded", &project.loaded), ("opened", &project.opened)] {
                if !items.is_empty() {
                    writeln!(f, "{what}: {}", items.join(", "))?;
                }
            }
            for (what, items) in [("not loaded", &project.not_loaded), ("not opened", &project.not_opened)] {
                for Without { name, reason } in items {
                    writeln!(f, "{what}: {name}: {reason}")?;
                }
            }
            for note in &project.notes {
                writeln!(f, "{note}")?;
            }
            if let Some(count) = project.left_out {
                writeln!(f, "… {count} more")?;
            }
        }
        for ScriptLine { path, ms, output, diagnostics, error } in scripts {
            writeln!(f, "{path} ran {ms} ms")?;
            if !output.is_empty() {
                writeln!(f, "{}", output.trim_end())?;
            }
            for diagnostic in diagnostics {
                writeln!(f, "{diagnostic}")?;
            }
            if let Some(error) = error {
                writeln!(f, "failed: {error}")?;
            }
        }
        if let Some(next_step) = next_step {
            writeln!(f, "nothing was brought in. {next_step}")?;
        }
        match session_id {
            Some(session) => write!(f, "[session {session}]"),
            None => f.write_str("no session yet"),
        }
    }
}
