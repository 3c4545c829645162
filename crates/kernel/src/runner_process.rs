//! A runner's process in the words of the model: why it could not be started, and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use mainstay_model::{Error, WorkerExit};
use mainstay_os::process::{Group, StartError};
use mainstay_runner::ResourceUsage;

/// The error of a runner whose program could not be started.
pub fn unavailable(error: StartError) -> Error {
    Error::KernelUnavailable { reason: error.to_string() }
}

/// The error of a process that ended before it was ready. `said` is what it printed on standard error.
pub fn died_early(exit: WorkerExit, said: &str) -> Error {
    Error::WorkerFailed { reason: format!("it ended with {exit} before it was ready: {}", said.trim()) }
}

/// How a process ended.
pub fn exit_of(status: std::io::Result<ExitStatus>) -> WorkerExit {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => WorkerExit::Code(code),
            (None, Some(signal)) => WorkerExit::Signal(signal),
            (None, None) => WorkerExit::Unknown,
        },
        Err(_) => WorkerExit::Unknown,
    }
}

/// What the leader of a runner's process group uses now.
pub fn usage(group: &Group) -> Option<ResourceUsage> {
    let used = group.usage()?;
    Some(ResourceUsage { resident_bytes: used.resident_bytes, cpu_ms: used.cpu_ms })
}
