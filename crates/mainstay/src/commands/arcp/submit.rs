//! `mainstay arcp submit`: a job of ARCP, and what comes of it.

use std::io::Read;
use std::process::ExitCode;

use clap::Args;
use mainstay_arcp_protocol::b::{self, AgentRef, Message};
use mainstay_home::Home;
use mainstay_model::Error;
use serde_json::json;

use super::client::ArcpClient;
use super::output::{Shown, print_line, until_it_ends_from};

/// Submit a job, and show what comes of it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp submit --agent python3 'sum(range(10))'\n  mainstay arcp submit --agent fsharp --session lab - < script.fsx\n  mainstay arcp submit --agent pi 'What is in this folder?'\n  mainstay arcp submit --agent python3 --key nightly-17 'import_all()'   # again after a crash: it runs once\n  mainstay arcp submit --agent python3 --detach 'long()'                 # prints the name of the job\n\nExit codes: 0 the job succeeded, 1 it did not, 2 the command line was wrong."
)]
pub(super) struct Submit {
    /// The agent: a kind of session, such as python3, fsharp or pi
    #[arg(long, value_parser = |text: &str| AgentRef::try_from(text.to_owned()))]
    agent: AgentRef,

    /// The session that does it, by id or name [default: the last one of its kind in this folder, or a new one]
    #[arg(long)]
    session: Option<String>,

    /// What is the same where the job is submitted again: it runs once
    #[arg(long)]
    key: Option<String>,

    /// How long the job may take, in seconds
    #[arg(long, value_name = "SECONDS")]
    max_runtime: Option<u32>,

    /// Print the name of the job once it is accepted, and wait for nothing
    #[arg(long)]
    detach: bool,

    /// Print each envelope as a line of JSON
    #[arg(long)]
    json: bool,

    /// The code, or the prompt, or - for standard input
    text: String,
}

impl Submit {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let (shown, text) = (Shown { json: self.json }, self.text()?);
        let mut input = json!({ "code": text, "prompt": text });
        if let Some(session) = &self.session {
            input["session"] = json!(session);
        }
        let mut client = ArcpClient::open(home).await?;
        client
            .ask(Message::JobSubmit(b::Submit {
                agent: self.agent,
                input,
                lease_request: Default::default(),
                lease_constraints: None,
                idempotency_key: self.key,
                max_runtime_sec: self.max_runtime,
            }))
            .await?;
        // Where the daemon was lost, what happened meanwhile may be told before the job is accepted once more.
        let first = client.next().await?;
        let job = match &first.message {
            Message::JobAccepted(accepted) => Some(accepted.job_id.clone()),
            Message::SessionError(_) => None,
            _ => first.job_id.clone(),
        };
        let code = match (job, self.detach) {
            (Some(job), true) => {
                match self.json {
                    true => print_line(&first)?,
                    false => println!("{job}"),
                }
                ExitCode::SUCCESS
            }
            _ => until_it_ends_from(&mut client, shown, first).await?,
        };
        client.close().await;
        Ok(code)
    }

    fn text(&self) -> Result<String, Error> {
        if self.text != "-" {
            return Ok(self.text.clone());
        }
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Error::InvalidArgument {
            argument: "standard input".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(text)
    }
}
