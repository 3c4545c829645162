//! Kernels as the command line deals with them: what is there, and getting them ready with progress in view.

use std::io::IsTerminal;
use std::path::Path;

use mainstay_agent::pi;
use mainstay_embedded::kernel_file;
use mainstay_formats::exchange::{Header, Kernel};
use mainstay_gateway::{KnownKind, Missing};
use mainstay_kernel::fsharp::{
    Code, Progress, Sdk, Search, Selected, Source, build, choose, install, select,
};
use mainstay_kernel::jupyter::install::is_installable;
use mainstay_kernel::jupyter::{self, Kernelspec, Kernelspecs, Places, environment_of};
use mainstay_model::Language;
use mainstay_model::{Error, SessionKind};
use mainstay_os::download;

use crate::config::{Config, FsharpConfig};
use crate::confirm::{Enter, confirm};
use crate::home::Home;
use mainstay_terminal::{self as terminal, ProgressLine, bytes};

/// The language of the kernel that most notebooks want.
const PYTHON: &str = "python";

/// Where kernelspecs are looked for, by whoever works in this folder.
pub(crate) fn places(home: &Home, folder: Option<&Path>) -> Places {
    Places::new(&home.jupyter(), folder)
}

/// Whether the same kernel runs sessions of both kinds: a language stands for the kernel of it that is found first.
pub(crate) fn is_same(kernelspecs: &Kernelspecs, one: &SessionKind, other: &SessionKind) -> bool {
    let spec = |kind: &SessionKind| kernelspecs.choose(kind).ok().map(|spec| &spec.name);
    one == other || spec(one).is_some_and(|own| spec(other) == Some(own))
}

/// Where F# SDKs are looked for, and had from.
pub(crate) fn search(home: &Home, config: FsharpConfig) -> Search {
    let FsharpConfig { dotnet, feed, .. } = config;
    Search { configured: dotnet, feed, ..Search::from_env(home.folder()) }
}

/// The kinds of sessions that are known here, in the order of preference: those that can start, and those that people look for and that lack
/// something.
pub(crate) fn known(sdks: &Search, kernelspecs: &Kernelspecs, agents: &pi::Search) -> Vec<KnownKind> {
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
    Some(KnownKind { kind, name: spec.display_name.clone(), language, missing })
}

/// An instruction as a sentence of its own.
fn sentence(instruction: &str) -> String {
    let (first, rest) = instruction.split_at(instruction.len().min(1));
    format!("{}{rest}.", first.to_uppercase())
}

/// What ran the code of a session that was exported, as far as this machine knows its kind.
pub(crate) fn of(home: &Home, header: &Header) -> Kernel {
    let named = Kernel::of_header(header);
    if header.kind.is_fsharp() || header.kind.is_agent() {
        return named;
    }
    match places(home, Some(Path::new(&header.working_directory))).kernelspecs().choose(&header.kind) {
        Ok(Kernelspec { name, display_name, language, .. }) if !language.is_empty() => Kernel {
            name: name.clone(),
            display_name: display_name.clone(),
            language: header.language.clone().unwrap_or_else(|| Language::named(language)),
        },
        Ok(_) | Err(_) => named,
    }
}

/// Says that the Python of a folder's project is not what runs there, since it has no kernel.
pub(crate) fn tell_passed_over(home: &Home, kind: &SessionKind, folder: &Path) {
    if kind.is_fsharp() || kind.is_agent() {
        return;
    }
    let Some(environment) = environment_of(folder) else { return };
    let has_kernel = Places::of_environment(&environment).kernelspecs().choose(kind).is_ok();
    let kernelspecs = places(home, Some(folder)).kernelspecs();
    if let Ok(spec) = kernelspecs.choose(kind)
        && spec.language == "python"
        && !has_kernel
    {
        let (environment, spec) = (environment.display(), spec.folder.display());
        terminal::note(&format!(
            "{environment} has no Jupyter kernel, so that of {spec} runs here; `{environment}/bin/python -m pip install ipykernel` gives it one"
        ));
    }
}

/// Gets what a kind of session needs ready, in a folder: installs it where it is missing and can be, after asking.
pub(crate) async fn ready(home: &Home, kind: &SessionKind, folder: &Path) -> Result<(), Error> {
    if kind.is_fsharp() {
        return ready_fsharp(home, folder).await;
    }
    let is_missing = matches!(
        places(home, Some(folder)).kernelspecs().choose(kind),
        Err(Error::KernelUnknown { .. } | Error::KernelUnavailable { .. })
    );
    if kind.is_agent() || !is_missing || !is_installable(kind) || !is_at_terminal() {
        // Whether it can be started the daemon says.
        return Ok(());
    }
    eprintln!("Sessions of kind {kind} need a Jupyter kernel, and none was found.");
    match confirm(&format!("Install one under {}?", home.jupyter().display()), Enter::Yes) {
        true => install_jupyter(home, kind, &[]).await,
        false => Err(Error::KernelUnknown { kind: kind.clone() }),
    }
}

/// Installs a Jupyter kernel under Mainstay's home, and packages beside it.
pub(crate) async fn install_jupyter(
    home: &Home,
    kind: &SessionKind,
    packages: &[String],
) -> Result<(), Error> {
    let line = ProgressLine::default();
    let show = |progress| match progress {
        download::Progress::Waiting => line.show("waiting for another process that installs it"),
        download::Progress::Installing { elapsed, bytes: count } => {
            line.show(&format!("installing from PyPI: {}, {} s", bytes(count), elapsed.as_secs()));
        }
    };
    let installed = jupyter::install::install(&home.jupyter(), kind, packages, &show).await;
    line.clear();
    match installed {
        Ok(spec) => terminal::note(&format!(
            "{} is installed in {}",
            spec.display_name,
            home.jupyter().join(kind.as_str()).display()
        )),
        Err(jupyter::install::InstallError::Unknown(kind)) => return Err(Error::KernelUnknown { kind }),
        Err(error) => return Err(Error::KernelUnavailable { reason: error.to_string() }),
    }
    Ok(())
}

fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Gets F# ready: installs an SDK where there is none, after asking, and builds the worker.
async fn ready_fsharp(home: &Home, folder: &Path) -> Result<(), Error> {
    let search = search(home, Config::load(home)?.fsharp);
    let sdk = match select(&search, Code::In(folder)) {
        Ok(Selected { sdk, .. }) => sdk,
        Err(none) if !is_at_terminal() => {
            return Err(Error::KernelUnavailable { reason: none.to_string() });
        }
        Err(none) => {
            eprintln!("F# sessions need a .NET SDK, and none was found.");
            if !confirm(&format!("Install one under {}?", search.own_root().display()), Enter::Yes) {
                return Err(Error::KernelUnavailable { reason: none.to_string() });
            }
            install_fsharp(&search, None).await?
        }
    };
    build_fsharp(&search, &sdk).await
}

/// Installs an SDK under Mainstay's home.
pub(crate) async fn install_fsharp(search: &Search, from: Option<Source>) -> Result<Sdk, Error> {
    let line = ProgressLine::default();
    let installed = install(search, from, &|progress| show(&line, &progress)).await;
    line.clear();
    let sdk = installed.map_err(|error| Error::KernelUnavailable { reason: error.to_string() })?;
    terminal::note(&format!(".NET SDK {} is installed", sdk.version));
    if sdk.is_unsupported() {
        terminal::note(
            "warning: this SDK is of 2020, without its F# of today, its packages and its security updates; install a current one \
             when you can, and `mainstay kernel install fsharp` again or the machine's own takes its place",
        );
    }
    Ok(sdk)
}

/// Builds the worker with an SDK where that has not been done.
pub(crate) async fn build_fsharp(search: &Search, sdk: &Sdk) -> Result<(), Error> {
    let line = ProgressLine::default();
    let built = build(&search.home, sdk, kernel_file, &|progress| show(&line, &progress)).await;
    line.clear();
    built.map(drop).map_err(|error| Error::KernelUnavailable { reason: error.to_string() })
}

/// Shows how far getting F# ready is.
fn show(line: &ProgressLine, progress: &Progress) {
    match progress {
        Progress::Waiting => line.show("waiting for another process that prepares F#"),
        Progress::Installing { source, elapsed, bytes: count, .. } => line.show(&format!(
            "installing the .NET SDK from {source}: {}, {} s",
            bytes(*count),
            elapsed.as_secs()
        )),
        Progress::Unpacking { version, elapsed } => {
            line.show(&format!("unpacking the .NET SDK {version}: {} s", elapsed.as_secs()));
        }
        Progress::FellBack { source, reason } => line.note(&format!("{source} cannot provide it: {reason}")),
        Progress::Installed { version, root } => {
            line.note(&format!(".NET SDK {version} is in {}", root.display()));
        }
        Progress::Building { sdk, elapsed } => {
            line.show(&format!("building the F# worker with SDK {sdk} (once): {} s", elapsed.as_secs()));
        }
        Progress::Built { sdk, elapsed } => {
            line.note(&format!("the F# worker is built with SDK {sdk} ({:.1} s)", elapsed.as_secs_f64()))
        }
    }
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
