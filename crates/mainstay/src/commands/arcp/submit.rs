//! `mainstay arcp submit`: a job of ARCP, and what comes of it.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_arcp_protocol::b::{self, AgentRef, Message};
use mainstay_home::Home;
use mainstay_model::{Error, Timestamp};
use mainstay_terminal::note;
use serde_json::{Value, json};

use super::client::ArcpClient;
use super::output::{Shown, print_line, until_it_ends_from};

/// Submit a job, and show what comes of it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp submit --agent python3 'sum(range(10))'\n  mainstay arcp submit --agent fsharp --session lab - < script.fsx\n  mainstay arcp submit --agent pi 'What is in this folder?'\n  mainstay arcp submit --agent python3 --key nightly-17 'import_all()'   # again after a crash: it runs once\n  mainstay arcp submit --agent python3 --detach 'long()'                 # prints the name of the job\n  mainstay arcp submit --agent pi --lease 'fs.read=/work/**' --lease tool.call=bash --budget USD:0.50 'Why does the build fail?'\n  mainstay arcp submit --agent stock.quote --input '{\"sku\": \"A1\"}'       # a tool of a tool worker\n\nExit codes: 0 the job succeeded, 1 it did not, 2 the command line was wrong."
)]
pub(super) struct Submit {
    /// The agent: a kind of session, such as python3, fsharp or pi, or a tool, such as stock.quote
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

    /// What an agent's tools may do: a kind of operation and a pattern of what it is done to, such as fs.read=/work/** or tool.call=bash; can be
    /// repeated. What is not named is refused
    #[arg(long, value_name = "KIND=PATTERN", value_parser = pattern)]
    lease: Vec<(String, String)>,

    /// What the job may cost, such as USD:0.50; can be repeated for other currencies
    #[arg(long, value_name = "CURRENCY:AMOUNT")]
    budget: Vec<String>,

    /// How long the job may act, in seconds from now; then it is stopped
    #[arg(long, value_name = "SECONDS")]
    lease_seconds: Option<u32>,

    /// Print the name of the job once it is accepted, and wait for nothing
    #[arg(long)]
    detach: bool,

    /// Print each envelope as a line of JSON
    #[arg(long)]
    json: bool,

    /// What the agent is given as JSON, in place of the text: for tools of tool workers
    #[arg(long, value_name = "JSON", conflicts_with_all = ["text", "session"], value_parser = json_value)]
    input: Option<Value>,

    /// The code, or the prompt, or - for standard input
    #[arg(required_unless_present = "input")]
    text: Option<String>,
}

impl Submit {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let (shown, input) = (Shown { json: self.json }, self.input()?);
        let lease = self.lease();
        let expires_at =
            self.lease_seconds.map(|seconds| Timestamp::now() + Duration::from_secs(seconds.into()));
        let mut client = ArcpClient::open(home).await?;
        client
            .ask(Message::JobSubmit(b::Submit {
                agent: self.agent,
                input,
                lease_request: lease.clone(),
                lease_constraints: expires_at
                    .map(|at| b::LeaseConstraints { expires_at: Some(at.to_string()) }),
                idempotency_key: self.key,
                max_runtime_sec: self.max_runtime,
            }))
            .await?;
        // Where the daemon was lost, what happened meanwhile may be told before the job is accepted once more.
        let first = client.next().await?;
        let job = match &first.message {
            Message::JobAccepted(accepted) => {
                tell_what_is_not_held_to(&lease, accepted);
                Some(accepted.job_id.clone())
            }
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

    fn lease(&self) -> b::Lease {
        let mut lease = b::Lease::new();
        for (kind, pattern) in &self.lease {
            lease.entry(kind.clone()).or_default().push(pattern.clone());
        }
        if !self.budget.is_empty() {
            lease.insert("cost.budget".to_owned(), self.budget.clone());
        }
        lease
    }

    fn input(&self) -> Result<Value, Error> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let text = self.text()?;
        let mut input = json!({ "code": text, "prompt": text });
        if let Some(session) = &self.session {
            input["session"] = json!(session);
        }
        Ok(input)
    }

    fn text(&self) -> Result<String, Error> {
        if let Some(text) = self.text.as_ref().filter(|text| *text != "-") {
            return Ok(text.clone());
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

fn json_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

/// Reads a kind of operation and a pattern with `=` between them.
fn pattern(text: &str) -> Result<(String, String), String> {
    let (kind, pattern) = text.split_once('=').ok_or("it is a kind and a pattern, as fs.read=/work/**")?;
    Ok((kind.to_owned(), pattern.to_owned()))
}

/// Says of which kinds of operations nothing is granted: code in a kernel asks nobody before it does something.
fn tell_what_is_not_held_to(asked: &b::Lease, accepted: &b::Accepted) {
    let missing: Vec<&str> =
        asked.keys().filter(|kind| !accepted.lease.contains_key(*kind)).map(String::as_str).collect();
    if !missing.is_empty() {
        let (agent, missing) = (&accepted.agent, missing.join(", "));
        note(&format!("{agent} asks nobody before it acts: it is not held to {missing}"));
    }
}
