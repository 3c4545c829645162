//! `mainstay kernel list|install|doctor`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_kernel::fsharp::{Found, Report, discover, examine};
use mainstay_model::{Error, SessionKind};

use crate::config::Config;
use crate::confirm::{Enter, agrees};
use crate::home::Home;
use crate::kernels::{build_fsharp, install_fsharp, search};
use crate::terminal::{Paint, Tone};

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
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install what sessions of a kind need, under Mainstay's home
    #[command(
        after_help = "Examples:\n  mainstay kernel install fsharp\n  mainstay kernel install fsharp --yes   # in a script"
    )]
    Install {
        /// The kind: fsharp
        kind: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Say what is there, what is missing, and the command that mends it
    #[command(after_help = "Examples:\n  mainstay kernel doctor\n  mainstay kernel doctor --json")]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl KernelArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let search = search(home, Config::load(home)?.fsharp.dotnet);
        match self.command {
            KernelCommand::List { json } => {
                let found = discover(&search);
                if json {
                    super::print_json(&found)?;
                } else {
                    print_list(&found);
                }
                Ok(ExitCode::SUCCESS)
            }
            KernelCommand::Install { kind, yes } => {
                let kind = SessionKind::new(kind)?;
                if kind != SessionKind::fsharp() {
                    return Err(Error::KernelUnknown { kind });
                }
                if !yes
                    && !agrees(
                        &format!("Install a .NET SDK under {}?", search.own_root().display()),
                        Enter::Yes,
                    )?
                {
                    return Ok(ExitCode::FAILURE);
                }
                install_fsharp(&search).await?;
                build_fsharp(&search).await?;
                Ok(ExitCode::SUCCESS)
            }
            KernelCommand::Doctor { json } => {
                let report = examine(&search);
                if json {
                    super::print_json(&report)?;
                } else {
                    print_report(&report);
                }
                Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
        }
    }
}

fn print_list(found: &[Found]) {
    let paint = Paint::stdout();
    for found in found {
        println!("{}", found_line(found, paint));
    }
    if found.is_empty() {
        crate::terminal::note("no .NET SDK was found; `mainstay kernel install fsharp` installs one");
    }
}

fn found_line(found: &Found, paint: Paint) -> String {
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

fn print_report(report: &Report) {
    let paint = Paint::stdout();
    for found in &report.sdks {
        println!("{}", found_line(found, paint));
    }
    for problem in &report.problems {
        println!("{} {}", paint.tone(Tone::Error, "missing:"), problem.what);
        println!("  {}", paint.tone(Tone::Name, &problem.remedy));
    }
    if report.problems.is_empty() {
        println!("{}", paint.tone(Tone::Good, "F# sessions can run"));
    }
}
