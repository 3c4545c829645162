//! A debug adapter on standard input and output: what an editor sends goes to the debugger, and what that says to the editor.

use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_model::Error;
use serde_json::{Value, json};
use tokio::io::{stdin, stdout};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, FramedWrite};

use super::dap::{Conversation, Frames, has_parted};
use super::{not_started, process};

/// How long a debugger may take to let go of the worker once nobody says anything to it.
const PARTING: Duration = Duration::from_secs(10);

/// The number of the request with which a debugger is told to let go, which no editor comes to.
const PARTING_SEQ: u32 = u32::MAX;

/// Starts the debugger for an editor, and passes on what they say until one of them has ended, or the debugger has let go of the worker.
/// The refusal is what the editor shows where the worker admits no debugger.
///
/// # Errors
/// [`Error::InvalidArgument`] where the program does not start.
pub(super) async fn relay(debugger: &Path, pid: u32, refusal: String) -> Result<ExitCode, Error> {
    let mut command = Command::new(debugger);
    // An interrupt of the terminal is the editor's to understand.
    command.arg("--interpreter=vscode").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command.envs(process::temporary_folder(pid).map(|folder| (process::TEMPORARY, folder)));
    let mut child = command.spawn().map_err(|error| not_started(debugger, &error))?;
    let (Some(to_debugger), Some(from_debugger)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(not_started(debugger, &std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
    };
    let mut requests = FramedRead::new(stdin(), Frames);
    let mut answers = FramedRead::new(from_debugger, Frames);
    let mut debugger = Some(FramedWrite::new(to_debugger, Frames));
    let mut editor = FramedWrite::new(stdout(), Frames);
    let mut conversation = Conversation::about(pid, refusal);
    let mut is_parted = false;
    loop {
        tokio::select! {
            request = requests.next(), if debugger.is_some() => {
                let is_passed = match (next(request), debugger.as_mut()) {
                    (Some(message), Some(out)) => out.send(conversation.for_debugger(message)).await.is_ok(),
                    _ => false,
                };
                if !is_passed {
                    break;
                }
            }
            answer = answers.next() => {
                let Some(message) = next(answer) else { break };
                is_parted = has_parted(&message);
                if editor.send(conversation.for_editor(message)).await.is_err() || is_parted {
                    break;
                }
            }
        }
    }
    // An editor that has gone without a word must not leave the worker standing. A debugger that has let go may still wait for its input
    // to end, which the editor's need not do.
    if let Some(mut out) = debugger.take().filter(|_| !is_parted) {
        let parting = json!({"seq": PARTING_SEQ, "type": "request", "command": "disconnect"});
        out.send(conversation.for_debugger(parting)).await.ok();
    }
    let ended = timeout(PARTING, async {
        // Answers to what the editor asked before it closed its side.
        while let Some(message) = next(answers.next().await) {
            if message["request_seq"] != PARTING_SEQ {
                editor.send(conversation.for_editor(message)).await.ok();
            }
        }
        child.wait().await
    });
    match ended.await {
        Ok(status) => Ok(if status.is_ok_and(|status| status.success()) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }),
        Err(_) => {
            child.kill().await.ok();
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The next message; none once there are no more. One that cannot be read is the last.
fn next(message: Option<std::io::Result<Value>>) -> Option<Value> {
    match message? {
        Ok(message) => Some(message),
        Err(error) => {
            eprintln!("mainstay debug: {error}");
            None
        }
    }
}
