//! Kernels as the command line deals with them: what is there, and getting them ready with progress in view.

use std::io::{IsTerminal, Write};
use std::path::Path;

use mainstay_embedded::kernel_file;
use mainstay_formats::exchange::{Header, Kernel};
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::{fsharp_sdks, jupyter_kernels};
use mainstay_kernel::fsharp::{
    Code, NoSdk, Progress, Sdk, Search, Selected, Source, build, can_download, install, select,
};
use mainstay_kernel::jupyter::install::{has_python, is_installable};
use mainstay_kernel::jupyter::{self, Kernelspec, Places, environment_of};
use mainstay_model::{Error, Language, SessionKind};
use mainstay_os::download;
use mainstay_terminal::{self as terminal, Enter, ProgressLine, bytes, confirm};

use crate::first_kernel::{Answer, Offer, Runtime, answer, commands, question};

/// What ran the code of a session that was exported, as far as this machine knows its kind.
pub fn kernel_of_export(home: &Home, header: &Header) -> Kernel {
    let named = Kernel::of_header(header);
    if header.kind.is_fsharp() || header.kind.is_agent() {
        return named;
    }
    match jupyter_kernels(home, Some(Path::new(&header.working_directory))).kernelspecs().choose(&header.kind)
    {
        Ok(Kernelspec { name, display_name, language, .. }) if !language.is_empty() => Kernel {
            name: name.clone(),
            display_name: display_name.clone(),
            language: header.language.clone().unwrap_or_else(|| Language::named(language)),
        },
        Ok(_) | Err(_) => named,
    }
}

/// Says that the Python of a folder's project is not what runs there, since it has no kernel.
pub fn tell_passed_over(home: &Home, kind: &SessionKind, folder: &Path) {
    if kind.is_fsharp() || kind.is_agent() {
        return;
    }
    let Some(environment) = environment_of(folder) else { return };
    let has_kernel = Places::of_environment(&environment).kernelspecs().choose(kind).is_ok();
    let kernelspecs = jupyter_kernels(home, Some(folder)).kernelspecs();
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

/// The kind of session that nobody has asked for by name: what this is, or, where the machine can run neither F# nor Python, what the user
/// chooses, which is installed.
pub(crate) async fn chosen_kind(
    home: &Home,
    kind: &SessionKind,
    folder: &Path,
) -> Result<SessionKind, Error> {
    let python = SessionKind::new(Runtime::Python.kind())?;
    let search = fsharp_sdks(home, Config::load(home)?.fsharp);
    let Err(none @ NoSdk::Nowhere { .. }) = select(&search, Code::In(folder)) else {
        return Ok(kind.clone());
    };
    let has_kernel = jupyter_kernels(home, Some(folder)).kernelspecs().choose(&python).is_ok();
    if has_kernel || !(kind.is_fsharp() || *kind == python) {
        return Ok(kind.clone());
    }
    let mut offers = [
        Offer {
            runtime: Runtime::Fsharp,
            folder: search.own_root(),
            needs: (!can_download(&search)).then_some("curl and tar"),
        },
        Offer {
            runtime: Runtime::Python,
            folder: home.jupyter(),
            needs: (!has_python()).then_some("python3"),
        },
    ];
    // What the folder is for comes first.
    if *kind == python {
        offers.reverse();
    }
    let missing = || Error::KernelUnavailable {
        reason: format!("{}, and no Python with ipykernel; {}", none.what(), commands(&offers)),
    };
    if !is_at_terminal() {
        return Err(missing());
    }
    eprintln!("Nothing here runs code yet: {}, and no Python with ipykernel.", none.what());
    match ask(&offers) {
        Some(Runtime::Fsharp) => install_fsharp(&search, None).await.map(|_| SessionKind::fsharp()),
        Some(Runtime::Python) => install_jupyter(home, &python, &[]).await.map(|()| python),
        None => Err(missing()),
    }
}

/// Asks which offer is taken, until the answer is clear or there is none.
fn ask(offers: &[Offer]) -> Option<Runtime> {
    loop {
        eprint!("{}", question(offers));
        std::io::stderr().flush().ok();
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).ok()? == 0 {
            return None;
        }
        match answer(&line, offers) {
            Answer::Install(runtime) => return Some(runtime),
            Answer::Nothing => return None,
            Answer::Unclear => {}
        }
    }
}

/// Gets what a kind of session needs ready, in a folder: installs it where it is missing and can be, after asking.
pub async fn make_ready(home: &Home, kind: &SessionKind, folder: &Path) -> Result<(), Error> {
    if kind.is_fsharp() {
        return ready_fsharp(home, folder).await;
    }
    let is_missing = matches!(
        jupyter_kernels(home, Some(folder)).kernelspecs().choose(kind),
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
pub async fn install_jupyter(home: &Home, kind: &SessionKind, packages: &[String]) -> Result<(), Error> {
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
    let search = fsharp_sdks(home, Config::load(home)?.fsharp);
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
pub async fn install_fsharp(search: &Search, from: Option<Source>) -> Result<Sdk, Error> {
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
pub async fn build_fsharp(search: &Search, sdk: &Sdk) -> Result<(), Error> {
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
