//! What is told of a job, as text: what it printed to standard output, all else to standard error.

use std::io::Write;
use std::process::ExitCode;

use mainstay_arcp_protocol::b::{Envelope, ErrorPayload, Event, EventKind, FinalStatus, JobResult, Message};
use mainstay_model::Error;
use mainstay_terminal::{note, printable};
use serde_json::Value;

use super::client::ArcpClient;
use crate::commands::print_json_line;

/// How what is told of a job is shown.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    /// Whether each envelope is printed as a line of JSON.
    pub(super) json: bool,
}

/// Shows what is told of a job until it has ended. The exit code is 0 where it succeeded, and 1 where it did not.
pub(super) async fn until_it_ends(client: &mut ArcpClient<'_>, shown: Shown) -> Result<ExitCode, Error> {
    let first = client.next().await?;
    until_it_ends_from(client, shown, first).await
}

/// The same, where this was told already.
pub(super) async fn until_it_ends_from(
    client: &mut ArcpClient<'_>,
    shown: Shown,
    first: Envelope,
) -> Result<ExitCode, Error> {
    let mut parts = String::new();
    let mut first = Some(first);
    loop {
        let envelope = match first.take() {
            Some(envelope) => envelope,
            None => client.next().await?,
        };
        if shown.json {
            print_line(&envelope)?;
        }
        match envelope.message {
            Message::JobEvent(event) if !shown.json => show(&event, &mut parts),
            Message::JobResult(result) => {
                if !shown.json {
                    show_result(&result, &parts);
                }
                return Ok(code(result.final_status == FinalStatus::Success));
            }
            Message::JobError(error) => {
                if !shown.json {
                    note(&printable(&format!("{}: {}", error.code, error.message)));
                }
                return Ok(ExitCode::FAILURE);
            }
            Message::SessionError(refusal) => return Ok(refused(&refusal, shown)),
            _ => {}
        }
    }
}

/// Says that a request was refused.
pub(super) fn refused(refusal: &ErrorPayload, shown: Shown) -> ExitCode {
    if !shown.json {
        note(&printable(&format!("{}: {}", refusal.code, refusal.message)));
    }
    ExitCode::FAILURE
}

/// Prints an envelope as it came.
pub(super) fn print_line(envelope: &Envelope) -> Result<(), Error> {
    let value: Value = serde_json::from_str(&envelope.encode())
        .map_err(|error| Error::BadRequest { reason: error.to_string() })?;
    print_json_line(&value)
}

fn show(event: &Event, parts: &mut String) {
    match &event.kind {
        EventKind::Log { level, message } if level == "info" => {
            print!("{message}");
            std::io::stdout().flush().ok();
        }
        EventKind::Log { message, .. } => eprint!("{message}"),
        EventKind::ToolCall { tool, args, .. } => note(&printable(&format!("{tool} {args}"))),
        EventKind::Status { phase, message: Some(message) } => {
            note(&printable(&format!("{phase}: {message}")))
        }
        EventKind::Vendor { kind, body } if kind == "x-mainstay.ask" => {
            let ask = body["ask"].as_str().unwrap_or("ASK");
            note(&format!("answer it with: mainstay ask answer {ask} ANSWER"));
        }
        EventKind::ResultChunk(chunk) => parts.push_str(&chunk.data),
        _ => {}
    }
}

/// Shows a result: a kernel's value, or what an agent said, which was shown as it came.
fn show_result(result: &JobResult, parts: &str) {
    let whole = result.result.clone().or_else(|| serde_json::from_str(parts).ok()).unwrap_or_default();
    match (whole.get("display").and_then(Value::as_str), whole.get("text")) {
        (Some(display), _) if !display.trim().is_empty() => println!("{}", display.trim_end()),
        (None, Some(_)) => println!(),
        _ => {}
    }
}

fn code(is_success: bool) -> ExitCode {
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
