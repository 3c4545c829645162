//! `mainstay arcp tail`: what happened to a job of ARCP, and what comes.

use std::process::ExitCode;

use clap::Args;
use mainstay_arcp_protocol::b::{Message, Subscribe};
use mainstay_home::Home;
use mainstay_model::Error;

use super::client::ArcpClient;
use super::output::{Shown, until_it_ends};

/// Show what happened to a job, and what comes, until it ends
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp tail job_4Z…\n  mainstay arcp tail job_4Z… --json | jq -c .payload\n\nExit codes: 0 the job succeeded, 1 it did not or is not there."
)]
pub(super) struct Tail {
    /// The job, as `mainstay arcp submit --detach` or `job.accepted` names it
    job: String,

    /// Print each envelope as a line of JSON
    #[arg(long)]
    json: bool,
}

impl Tail {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let mut client = ArcpClient::open(home).await?;
        let subscribe = Subscribe { job_id: self.job, from_event_seq: None, history: true };
        client.ask(Message::JobSubscribe(subscribe)).await?;
        let code = until_it_ends(&mut client, Shown { json: self.json }).await?;
        client.close().await;
        Ok(code)
    }
}
