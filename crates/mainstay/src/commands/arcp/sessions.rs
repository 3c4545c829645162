//! `mainstay arcp sessions`: the sessions of ARCP that can be resumed.

use std::process::ExitCode;

use clap::Args;
use futures::StreamExt;
use mainstay_arcp::{Purpose, ResumableSession};
use mainstay_arcp_protocol::Dialect;
use mainstay_home::Home;
use mainstay_model::{Error, Timestamp};
use mainstay_terminal::{ago, note, printable};
use mainstay_terminal_client::connect::connect_or_start;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::client::attached;
use crate::commands::print_json;

/// List the sessions that can be resumed, the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp sessions\n  mainstay arcp sessions --json | jq -r '.[0].session'"
)]
pub(super) struct Sessions {
    /// List those that were closed, too: what they were told can be replayed
    #[arg(long)]
    all: bool,

    /// Print the sessions as JSON
    #[arg(long)]
    json: bool,
}

impl Sessions {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        drop(connect_or_start(home, "arcp").await?);
        let (read, _write) = attached(home, Purpose::Sessions).await?;
        let mut lines = FramedRead::new(read, LinesCodec::new());
        let mut sessions = Vec::new();
        while let Some(line) = lines.next().await {
            let line = line.map_err(|_| Error::DaemonNotRunning)?;
            let session: ResumableSession = serde_json::from_str(&line)
                .map_err(|error| Error::BadRequest { reason: error.to_string() })?;
            if self.all || !session.is_closed {
                sessions.push(session);
            }
        }
        if self.json {
            print_json(&sessions)?;
            return Ok(ExitCode::SUCCESS);
        }
        if sessions.is_empty() {
            note("no session of ARCP can be resumed");
        }
        let now = Timestamp::now();
        for ResumableSession { session, client, dialect, opened_at, is_closed, .. } in sessions {
            let closed = if is_closed { "  closed" } else { "" };
            let dialect = match dialect {
                Dialect::A => "1.0",
                Dialect::B => "1.1",
            };
            println!("{session}  {dialect}  {}  opened {}{closed}", printable(&client), ago(opened_at, now));
        }
        Ok(ExitCode::SUCCESS)
    }
}
