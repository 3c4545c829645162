//! The kinds of sessions that this machine can run, and those that people look for and that lack something.

use std::path::Path;

use mainstay_agent::pi;
use mainstay_gateway::{Kinds, KnownKind, KnownTool, Missing};
use mainstay_home::config::Config;
use mainstay_home::{Home, search};
use mainstay_kernel::fsharp::{Search, choose};
use mainstay_kernel::jupyter::{Kernelspec, Kernelspecs, Places};
use mainstay_model::SessionKind;

/// The language of the kernel that most notebooks want.
const PYTHON: &str = "python";

/// The kinds of sessions that clients are told of.
pub(crate) fn known_kinds(home: Home, config: &Config) -> Kinds {
    let (fsharp, pi) = (config.fsharp.clone(), config.pi.path.clone());
    let (sdks, agents) = (search::fsharp_sdks(&home, fsharp), search::pi_programs(&home, pi));
    let tool_workers: Vec<SessionKind> = config.tool_workers.keys().cloned().collect();
    Kinds::new(move |folder, environment| {
        let kernelspecs = Places::of_session(environment, &home.jupyter(), folder).kernelspecs();
        let mut known = known(&sdks.of_session(environment), &kernelspecs, &agents.of_session(environment));
        known.retain(|kind| !tool_workers.contains(&kind.kind));
        known.extend(tool_workers.iter().map(|kind| tool_worker(kind, &home.tool_inventories())));
        known
    })
}

/// A tool worker, with the tools that it had when it was started last.
fn tool_worker(kind: &SessionKind, inventories: &Path) -> KnownKind {
    let tools = mainstay_tool_worker::known_tools(inventories, kind).into_iter();
    let tool = |tool: mainstay_tool_worker::Tool| {
        let mainstay_tool_worker::Tool { name, versions, default, takes_objects } = tool;
        KnownTool { name, versions, default, takes_objects }
    };
    KnownKind {
        kind: kind.clone(),
        name: format!("{kind}, a tool worker"),
        language: None,
        missing: None,
        tools: Some(tools.map(tool).collect()),
    }
}

/// The kinds of sessions that are known here, in the order of preference: those that can start, and those that people look for and that lack
/// something.
fn known(sdks: &Search, kernelspecs: &Kernelspecs, agents: &pi::Search) -> Vec<KnownKind> {
    let fsharp = match choose(sdks) {
        Ok(sdk) => KnownKind { name: format!("F# (.NET SDK {})", sdk.version), ..fsharp(None) },
        Err(none) => fsharp(Some(Missing { reason: none.what(), next_step: sentence(none.remedy()) })),
    };
    let has_python = kernelspecs.found.iter().any(|spec| spec.language == PYTHON && spec.program.is_some());
    let python = (!has_python).then(python_to_install).flatten();
    let pi = KnownKind {
        kind: SessionKind::pi(),
        name: "pi, a coding agent".to_owned(),
        language: None,
        tools: None,
        missing: pi::choose(agents)
            .err()
            .map(|none| Missing { reason: none.what(), next_step: sentence(none.remedy()) }),
    };
    let kernels = kernelspecs.found.iter().filter_map(of_kernelspec);
    std::iter::once(fsharp).chain(kernels).chain(python).chain([pi]).collect()
}

fn fsharp(missing: Option<Missing>) -> KnownKind {
    KnownKind {
        kind: SessionKind::fsharp(),
        name: "F#".to_owned(),
        language: Some(SessionKind::fsharp().as_str().to_owned()),
        missing,
        tools: None,
    }
}

fn python_to_install() -> Option<KnownKind> {
    let missing = Missing {
        reason: "no Python kernel was found".to_owned(),
        next_step: format!("Run `mainstay kernel install {PYTHON}`."),
    };
    Some(KnownKind {
        kind: SessionKind::new(PYTHON).ok()?,
        name: "Python".to_owned(),
        language: Some(PYTHON.to_owned()),
        missing: Some(missing),
        tools: None,
    })
}

fn of_kernelspec(spec: &Kernelspec) -> Option<KnownKind> {
    // F# and agents are no kernels of Jupyter, whatever a kernelspec is called.
    let kind = SessionKind::new(&spec.name).ok().filter(|kind| !kind.is_fsharp() && !kind.is_agent())?;
    let missing = spec.missing().map(|reason| Missing {
        reason,
        next_step: format!("Install that kernel again, or remove its folder {}.", spec.folder.display()),
    });
    let language = Some(spec.language.clone()).filter(|language| !language.is_empty());
    Some(KnownKind { kind, name: spec.display_name.clone(), language, missing, tools: None })
}

/// An instruction as a sentence of its own.
fn sentence(instruction: &str) -> String {
    let (first, rest) = instruction.split_at(instruction.len().min(1));
    format!("{}{rest}.", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_which_command_installs_it() {
        let home = tempfile::tempdir().unwrap();
        let nowhere = Search {
            configured: None,
            dotnet_root: None,
            path: Vec::new(),
            usual: Vec::new(),
            feed: String::new(),
            home: home.path().to_owned(),
        };
        let agents = pi::Search { configured: None, path: Vec::new(), home: home.path().to_owned() };
        let known = known(&nowhere, &Kernelspecs::default(), &agents);
        let steps: Vec<_> = known
            .iter()
            .map(|KnownKind { kind, missing, .. }| {
                let missing = missing.as_ref().unwrap();
                let command = missing.next_step.split('`').nth(1).unwrap();
                (kind.as_str(), missing.reason.as_str(), command)
            })
            .collect();
        assert_eq!(
            steps,
            [
                ("fsharp", "no .NET SDK with F# was found", "mainstay kernel install fsharp"),
                ("python", "no Python kernel was found", "mainstay kernel install python"),
                ("pi", "pi was not found", "mainstay agent install pi"),
            ]
        );
    }
}
