//! The commands `mainstay agent list` and `install`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_agent::pi::{FoundPi, PINNED, choose, discover};
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::pi_programs;
use mainstay_model::{Error, SessionKind};
use mainstay_terminal::{Enter, Paint, Tone, agrees};

use crate::agents::install_pi;

/// List and install coding agents.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay agent list\n  mainstay agent install pi --yes")]
pub(super) struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// List the agents on this machine, the one that is used first; fails where there is none
    #[command(after_help = "Examples:\n  mainstay agent list\n  mainstay agent list --json")]
    List {
        /// Print the agents as JSON
        #[arg(long)]
        json: bool,
    },
    /// Install an agent under Mainstay's home
    #[command(
        after_help = "Examples:\n  mainstay agent install pi\n  mainstay agent install pi --yes   # in a script"
    )]
    Install {
        /// The kind of agent: pi
        kind: String,
        /// Install without asking first
        #[arg(short, long)]
        yes: bool,
    },
}

impl AgentArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let search = pi_programs(home, Config::load(home)?.pi.path);
        match self.command {
            AgentCommand::List { json } => {
                let found = discover(&search);
                if json {
                    super::print_json(&found)?;
                } else {
                    found.iter().for_each(|found| println!("{}", line_of(found)));
                }
                match choose(&search) {
                    Ok(_) => Ok(ExitCode::SUCCESS),
                    Err(none) => {
                        mainstay_terminal::note(&none.to_string());
                        Ok(ExitCode::FAILURE)
                    }
                }
            }
            AgentCommand::Install { kind, yes } => {
                let kind = SessionKind::new(kind)?;
                if kind != SessionKind::pi() {
                    return Err(Error::KernelUnknown { kind });
                }
                let question = format!("Install pi {PINNED} under {}?", search.own_root().display());
                if !yes && !agrees(&question, Enter::Yes)? {
                    return Ok(ExitCode::FAILURE);
                }
                install_pi(&search).await?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn line_of(found: &FoundPi) -> String {
    let paint = Paint::stdout();
    let version = match found.version.as_deref() {
        Some(PINNED) => paint.tone(Tone::Good, PINNED),
        Some(version) => paint.tone(Tone::Warning, &format!("{version} (tested with {PINNED})")),
        None => paint.tone(Tone::Warning, "of an unknown version"),
    };
    format!("pi  {version}  {}  {}", found.origin.name(), found.program.display())
}
