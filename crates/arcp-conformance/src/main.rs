//! The command: reads the options, runs the scenarios, and prints the report.

mod arguments;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use arcp_conformance::{Colour, Dialect, Scenario, Settings, run, scenarios, select, speaks};
use clap::Parser;

use crate::arguments::{Arguments, Dialects};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let selected = select(scenarios(), &arguments.only);
    if arguments.list {
        return list(&selected, arguments.dialect);
    }
    let (dialect, json) = (arguments.dialect, arguments.json);
    let settings = match arguments.settings() {
        Ok(settings) => settings,
        Err(error) => return refuse(&error.to_string()),
    };
    let dialects = dialects(dialect, &settings).await;
    let selected: Vec<_> = selected.into_iter().filter(|each| dialects.contains(&each.dialect())).collect();
    if selected.is_empty() {
        return refuse("nothing to try: no handshake was accepted, or --only names no scenario");
    }
    let mut out = std::io::stdout();
    let colour = if out.is_terminal() { Colour::On } else { Colour::Off };
    let report = run(&selected, &settings, |finding| {
        if !json {
            let _ = write!(out, "{}", finding.rows(colour));
        }
    })
    .await;
    let end = if json { format!("{:#}", report.json()) } else { format!("\n{}", report.summary()) };
    let _ = writeln!(std::io::stdout(), "{end}");
    if report.conforms() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Returns the dialects to try: those asked for, else those whose handshake the runtime accepts.
async fn dialects(asked: Option<Dialects>, settings: &Settings) -> Vec<Dialect> {
    match asked {
        Some(Dialects::A) => vec![Dialect::A],
        Some(Dialects::B) => vec![Dialect::B],
        Some(Dialects::Both) => vec![Dialect::A, Dialect::B],
        None => {
            let mut spoken = Vec::new();
            for dialect in [Dialect::A, Dialect::B] {
                if speaks(dialect, settings).await {
                    spoken.push(dialect);
                }
            }
            spoken
        }
    }
}

fn list(scenarios: &[Scenario], asked: Option<Dialects>) -> ExitCode {
    let wanted = |each: &&Scenario| match asked {
        Some(Dialects::A) => each.dialect() == Dialect::A,
        Some(Dialects::B) => each.dialect() == Dialect::B,
        Some(Dialects::Both) | None => true,
    };
    let mut out = std::io::stdout();
    for scenario in scenarios.iter().filter(wanted) {
        let Scenario { id, word, requirement, .. } = scenario;
        if writeln!(out, "{id:<40} {:<6} {requirement}", word.name()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "arcp-conformance: {why}");
    ExitCode::from(2)
}
