//! `mainstay arcp replay`: what a session of ARCP was told, from the log.

use std::process::ExitCode;

use clap::Args;
use futures::StreamExt;
use mainstay_arcp::Purpose;
use mainstay_arcp_protocol::a;
use mainstay_arcp_protocol::b::{Message, decode};
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal::{note, printable};
use mainstay_terminal_client::connect::connect_or_start;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::client::attached;
use super::output::{Shown, refused};

/// Print the messages of a session about jobs, each as a line of JSON
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp replay sess_01J… | jq -c '[.event_seq, .type]'\n  mainstay arcp replay sess_01J… --after 40"
)]
pub(super) struct Replay {
    /// The session, as `mainstay arcp sessions` names it
    session: String,

    /// Only the messages behind this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
}

impl Replay {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        drop(connect_or_start(home, "arcp").await?);
        let purpose = Purpose::Replay { session: self.session, after: self.after };
        let (read, _write) = attached(home, purpose).await?;
        let mut lines = FramedRead::new(read, LinesCodec::new());
        while let Some(line) = lines.next().await {
            let line = line.map_err(|_| Error::DaemonNotRunning)?;
            if let Ok(Message::SessionError(refusal)) = decode(&line).map(|envelope| envelope.message) {
                return Ok(refused(&refusal, Shown { json: false }));
            }
            if let Ok(a::Message::Nack(refusal)) = a::decode(&line).map(|envelope| envelope.message) {
                note(&printable(&format!("{}: {}", refusal.code.name(), refusal.message)));
                return Ok(ExitCode::FAILURE);
            }
            println!("{line}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
