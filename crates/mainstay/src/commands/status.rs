//! `mainstay status`

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::{DaemonStatus, GetStatus};
use mainstay_model::{Error, Timestamp};

use super::fault::{HardReset, fault_text};
use super::session::session_line;
use crate::connect::connect_any_version;
use crate::home::Home;
use crate::terminal::{Paint, Tone, ago, bytes, printable};

/// Shows the daemon and its sessions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay status\n  mainstay status --json | jq .residentBytes")]
pub(super) struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_any_version(home, "cli").await?;
        let status = connection.client.call(GetStatus {}).await?;
        if self.json {
            super::print_json(&status)?;
        } else {
            print!("{}", status_text(&status, Paint::stdout(), Timestamp::now()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The daemon and its live sessions.
pub(crate) fn status_text(status: &DaemonStatus, paint: Paint, now: Timestamp) -> String {
    let mut text = format!(
        "mainstay {} on 127.0.0.1:{}, pid {}, started {}\n",
        status.version,
        status.port,
        status.pid,
        ago(status.started_at, now)
    );
    text.push_str(&format!("  home {}\n", status.home));
    if let Some(resident) = status.resident_bytes {
        text.push_str(&format!("  memory {}\n", bytes(resident)));
    }
    text.push_str(&format!("  {} live of {} sessions\n", status.live.len(), status.stored));
    text.push_str(&format!("  {} commands under way\n", status.commands));
    for session in &status.live {
        text.push_str(&session_line(session, paint, now));
        for command in &session.waiting {
            let waits = format!("    waits: {}\n", printable(command.as_str()));
            text.push_str(&paint.tone(Tone::Faint, &waits));
        }
        text.push_str(&fault_text(session, HardReset::Command, paint).unwrap_or_default());
        if let Some(usage) = session.worker.as_ref().and_then(|worker| worker.usage) {
            let used = format!(
                "    worker {}, {:.1} s CPU\n",
                bytes(usage.resident_bytes),
                usage.cpu_ms as f64 / 1000.0
            );
            text.push_str(&paint.tone(Tone::Faint, &used));
        }
    }
    text
}
