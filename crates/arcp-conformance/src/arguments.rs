//! The options of the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arcp_conformance::{ClientIdentity, Settings, Target, TlsClient, TlsError, Work};
use clap::{Parser, ValueEnum};
use serde_json::Value;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

/// Tries an ARCP runtime against the specification, from outside: each scenario tests one requirement, and
/// says what it expected and got. The exit code is 0 where no MUST failed, 1 where one did, and 2 where
/// nothing could be tried.
#[derive(Debug, Parser)]
#[command(name = "arcp-conformance")]
pub(crate) struct Arguments {
    /// The WebSocket address of the runtime, for example ws://127.0.0.1:7777/arcp; wss:// is over TLS
    #[arg(long, value_name = "URL", conflicts_with = "stdio")]
    url: Option<String>,
    /// A command that speaks ARCP over its standard streams; it takes the rest of the line
    #[arg(long, num_args = 1.., value_name = "COMMAND", allow_hyphen_values = true)]
    stdio: Vec<String>,
    /// A header of the WebSocket upgrade, for runtimes that check one
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    #[command(flatten)]
    tls: TlsArguments,
    /// The bearer token for the handshake
    #[arg(long)]
    token: Option<String>,
    /// The bearer token of another principal; without it, what principals must not see of each other is
    /// skipped
    #[arg(long, value_name = "TOKEN")]
    other_token: Option<String>,
    /// The dialects to try; by default each that the runtime's handshake accepts
    #[arg(long, value_enum)]
    pub(crate) dialect: Option<Dialects>,
    /// Only the scenarios of these sections or ids, for example 6.2,7.4 or b.6.3
    #[arg(long, value_delimiter = ',', value_name = "SECTIONS")]
    pub(crate) only: Vec<String>,
    /// Lists the scenarios instead of running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Prints the report as JSON, with all frames of each failure
    #[arg(long)]
    pub(crate) json: bool,
    /// The seconds that one awaited message may take
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    wait: f64,
    /// The seconds for which nothing must arrive where nothing is expected
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS", value_parser = seconds)]
    quiet: f64,
    /// The seconds that one scenario may take
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    limit: f64,
    #[command(flatten)]
    agent: AgentArguments,
    #[command(flatten)]
    tool: ToolArguments,
}

/// What `wss://` is spoken with.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
struct TlsArguments {
    /// The certificates of the authorities that are trusted, in PEM; by default those that the system trusts
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The certificate to show to a runtime that asks for one, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
}

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentsError {
    /// There is nothing to try.
    #[error("name the runtime with --url or --stdio")]
    NoRuntime,
    /// A file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// What the files have cannot be used for TLS.
    #[error("TLS cannot be spoken: {0}")]
    Tls(#[from] TlsError),
}

/// What the agent of the runtime does; scenarios for which an option is missing are skipped.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Dialect B: the agent")]
struct AgentArguments {
    /// The agent to submit jobs to
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// An input with which a job succeeds soon
    #[arg(long, value_name = "JSON", value_parser = json)]
    input: Option<Value>,
    /// An input with which a job fails
    #[arg(long, value_name = "JSON", value_parser = json)]
    failing_input: Option<Value>,
    /// An input with which a job runs until it is cancelled
    #[arg(long, value_name = "JSON", value_parser = json)]
    slow_input: Option<Value>,
    /// An input with which a job publishes many events and succeeds
    #[arg(long, value_name = "JSON", value_parser = json)]
    chatty_input: Option<Value>,
    /// An input with which a job asks a human
    #[arg(long, value_name = "JSON", value_parser = json)]
    asking_input: Option<Value>,
}

/// What the tool of the runtime does; scenarios for which an option is missing are skipped.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Dialect A: the tool")]
struct ToolArguments {
    /// The tool to invoke
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Arguments with which the tool succeeds soon
    #[arg(long, value_name = "JSON", value_parser = json)]
    arguments: Option<Value>,
    /// Arguments with which the tool fails
    #[arg(long, value_name = "JSON", value_parser = json)]
    failing_arguments: Option<Value>,
    /// Arguments with which the tool runs until it is cancelled
    #[arg(long, value_name = "JSON", value_parser = json)]
    slow_arguments: Option<Value>,
    /// Arguments with which the tool publishes many events and succeeds
    #[arg(long, value_name = "JSON", value_parser = json)]
    chatty_arguments: Option<Value>,
    /// Arguments with which the tool asks a human
    #[arg(long, value_name = "JSON", value_parser = json)]
    asking_arguments: Option<Value>,
    /// Arguments with which the tool asks for a permission: twice for the same thing, then for another
    #[arg(long, value_name = "JSON", value_parser = json)]
    permission_arguments: Option<Value>,
}

/// Which of the two dialects are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialects {
    /// Protocol 1.0, which opens with session.open
    A,
    /// Protocol 1.1, which opens with session.hello
    B,
    /// Both, also where a handshake fails
    Both,
}

impl Arguments {
    /// Returns the settings of the run.
    ///
    /// # Errors
    /// [`ArgumentsError`].
    pub(crate) fn settings(self) -> Result<Settings, ArgumentsError> {
        let target = match self.url {
            Some(url) => {
                let tls = if url.starts_with("wss:") { Some(self.tls.client()?) } else { None };
                Target::WebSocket { url, headers: self.header, tls }
            }
            None if self.stdio.is_empty() => return Err(ArgumentsError::NoRuntime),
            None => Target::Stdio { command: self.stdio },
        };
        Ok(Settings {
            target,
            token: self.token,
            other_token: self.other_token,
            wait: Duration::from_secs_f64(self.wait),
            quiet: Duration::from_secs_f64(self.quiet),
            limit: Duration::from_secs_f64(self.limit),
            agent: Work {
                name: self.agent.agent,
                input: self.agent.input,
                failing: self.agent.failing_input,
                slow: self.agent.slow_input,
                chatty: self.agent.chatty_input,
                asking: self.agent.asking_input,
                permission: None,
            },
            tool: Work {
                name: self.tool.tool,
                input: self.tool.arguments,
                failing: self.tool.failing_arguments,
                slow: self.tool.slow_arguments,
                chatty: self.tool.chatty_arguments,
                asking: self.tool.asking_arguments,
                permission: self.tool.permission_arguments,
            },
        })
    }
}

impl TlsArguments {
    fn client(&self) -> Result<TlsClient, ArgumentsError> {
        let authorities = self.ca.as_deref().map(read).transpose()?;
        let shown = match (&self.client_certificate, &self.client_key) {
            (Some(certificate), Some(key)) => {
                Some(ClientIdentity { certificates: read(certificate)?, key: read(key)? })
            }
            _ => None,
        };
        Ok(TlsClient::new(authorities.as_deref(), shown.as_ref())?)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, ArgumentsError> {
    std::fs::read(file).map_err(|error| ArgumentsError::File(file.to_owned(), error))
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "not a number")?;
    if (0.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("not between 0 and 86400 seconds") }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let (name, value) = text.split_once(':').ok_or("not of the form NAME:VALUE")?;
    let name = name.trim().parse().map_err(|_| "not the name of a header")?;
    Ok((name, value.trim().parse().map_err(|_| "not the value of a header")?))
}
