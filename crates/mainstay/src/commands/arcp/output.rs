//! What is told of a job, as text: what it printed to standard output, all else to standard error.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use mainstay_arcp_protocol::b::{Envelope, ErrorPayload, Event, EventKind, FinalStatus, JobResult, Message};
use mainstay_model::Error;
use mainstay_model::tool_call::Progress;
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
        EventKind::Progress { current, total, units, message } if std::io::stderr().is_terminal() => {
            let (current, total) = (current.clone(), total.clone());
            let progress = Progress { current, total, units: units.clone(), message: message.clone() };
            note(&printable(&progress.to_string()));
        }
        EventKind::ResultChunk(chunk) => parts.push_str(&chunk.data),
        _ => {}
    }
}

/// Shows a result: a kernel's value; of an agent nothing, since what it said was shown as it came; of a tool what it gave.
fn show_result(result: &JobResult, parts: &str) {
    let whole = result.result.clone().or_else(|| serde_json::from_str(parts).ok()).unwrap_or_default();
    let has = |names: &[&str]| {
        whole.as_object().is_some_and(|members| members.keys().map(String::as_str).eq(names.iter().copied()))
    };
    if has(&["diagnostics", "display", "type", "value"]) {
        let display = whole["display"].as_str().map(str::trim_end).filter(|display| !display.is_empty());
        display.into_iter().for_each(|display| println!("{display}"));
    } else if has(&["text", "value"]) {
        println!();
    } else if !whole.is_null() {
        println!("{whole}");
    }
}

fn code(is_success: bool) -> ExitCode {
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
