//! A process of ours: started in a group of its own with captured output, killed with all that it started.
//!
//! [`Group`] is ours, and not `process-wrap`'s: there, who kills a group owns the child. Here one task owns the child and waits for it, and any
//! holder of a handle may kill the group until its leader is reaped.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::system::{ResourceUsage, spawn_bound, usage_of};

/// How a worker is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program to be started.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// What it finds in its environment beside the daemon's own.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program could not be started.
    #[error("`{}` could not be started: {source}", .program.display())]
    Program {
        /// The program that was to be started.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder that the program was to run in does not exist.
    #[error("the folder `{}` is not there", .folder.display())]
    Folder {
        /// The folder that was named.
        folder: PathBuf,
    },
}

/// The process group of a worker, as long as it is known to be there.
#[derive(Clone, Debug)]
pub struct Group {
    leader: Arc<Mutex<Option<Pid>>>,
}

impl Group {
    /// Kills every process of the group.
    pub fn kill(&self) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = *leader {
            // It fails only where the group is gone already.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }

    /// Interrupts every process of the group, as a terminal does.
    pub fn interrupt(&self) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = *leader {
            kill_process_group(leader, Signal::INT).ok();
        }
    }

    /// Waits until the leader has ended, and kills the group where it has not within `grace`. What the leader left behind is killed with it.
    pub async fn ended(&self, leader: &mut Child, grace: Duration) -> std::io::Result<ExitStatus> {
        let ended = match tokio::time::timeout(grace, leader.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                self.kill();
                leader.wait().await
            }
        };
        self.leader_is_gone();
        ended
    }

    /// Kills what the leader left behind, and forgets the group: its number may be given to others from now on.
    pub fn leader_is_gone(&self) {
        self.kill();
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What the leader uses now.
    pub fn usage(&self) -> Option<ResourceUsage> {
        let leader = (*self.leader.lock().unwrap_or_else(PoisonError::into_inner))?;
        usage_of(leader)
    }
}

/// Starts a runner's process, which finds in its environment also the variables of its channel. It ends with this process where the system
/// sees to that.
///
/// # Errors
/// [`StartError`] with what the system said.
pub fn start(
    launch: &Launch,
    working_directory: &Path,
    channel: &[(&str, &str)],
    stdin: Stdio,
) -> Result<(Child, Group), StartError> {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .envs(channel.iter().copied())
        .current_dir(working_directory)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let child = spawn_bound(command).map_err(|error| match working_directory.is_dir() {
        true => StartError::Program { program: launch.program.clone(), source: error },
        false => StartError::Folder { folder: working_directory.to_owned() },
    })?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok((child, Group { leader: Arc::new(Mutex::new(leader)) }))
}

/// Kills a runner whose start is given up.
#[derive(Debug)]
pub struct Unready(Option<Group>);

impl Unready {
    /// One that was just started.
    pub fn new(group: &Group) -> Self {
        Self(Some(group.clone()))
    }

    /// Marks the process as ready, so that it is kept.
    pub fn is_ready(mut self) {
        self.0 = None;
    }
}

impl Drop for Unready {
    fn drop(&mut self) {
        if let Some(group) = &self.0 {
            group.kill();
        }
    }
}

/// What a process that is gone has said and nobody has read.
pub fn last_words(mut child: Child) -> String {
    let said = child.stderr.take().map(|pipe| drain(&pipe)).unwrap_or_default();
    String::from_utf8_lossy(&said).into_owned()
}

/// Reads what stands in a pipe at this moment, without waiting: neither more, however much is written meanwhile, nor less.
/// Bypasses tokio's idea of readiness, which may lag behind.
pub fn drain(pipe: &impl AsFd) -> Vec<u8> {
    // A pipe that cannot be asked is broken, and holds nothing.
    let waiting = rustix::io::ioctl_fionread(pipe).unwrap_or_default();
    let mut bytes = vec![0; usize::try_from(waiting).unwrap_or_default()];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(pipe, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    bytes.truncate(filled);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    #[test]
    fn what_stands_in_a_pipe_is_read_and_an_empty_one_gives_nothing() {
        let (pipe, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        rustix::io::write(&writer, b"printed").unwrap();
        assert_eq!((drain(&pipe), drain(&pipe)), (b"printed".to_vec(), Vec::new()));
        drop(writer);
        assert_eq!(drain(&pipe), b"");
    }

    #[test]
    fn a_writer_that_never_pauses_does_not_hold_the_reader() {
        let (pipe, writer) = pipe_with(PipeFlags::empty()).unwrap();
        let capacity = rustix::pipe::fcntl_getpipe_size(&pipe).unwrap();
        let printing = std::thread::spawn(move || while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {});
        for _ in 0..100 {
            assert!(drain(&pipe).len() <= capacity);
        }
        // Writing fails from now on, and the thread ends.
        drop(pipe);
        printing.join().unwrap();
    }
}
