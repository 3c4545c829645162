//! A runner's process: started in a group of its own with captured output, killed with all that it started.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::runner::ResourceUsage;
use mainstay_model::{Error, WorkerExit};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

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

    /// Kills what the leader left behind, and forgets the group: its number may be given to others from now on.
    pub fn leader_is_gone(&self) {
        self.kill();
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What the leader uses now.
    pub fn usage(&self) -> Option<ResourceUsage> {
        let leader = (*self.leader.lock().unwrap_or_else(PoisonError::into_inner))?;
        usage_of(leader.as_raw_nonzero().get())
    }
}

/// Starts a runner's process, which finds in its environment also the variables of its channel.
///
/// # Errors
/// [`Error::KernelUnavailable`] where the program cannot be started.
pub fn start(
    launch: &Launch,
    working_directory: &Path,
    channel: &[(&str, &str)],
    stdin: Stdio,
) -> Result<(Child, Group), Error> {
    let unavailable = |reason: String| Error::KernelUnavailable { reason };
    let child = Command::new(&launch.program)
        .args(&launch.arguments)
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .envs(channel.iter().copied())
        .current_dir(working_directory)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| match working_directory.is_dir() {
            true => unavailable(format!("`{}` could not be started: {error}", launch.program.display())),
            false => unavailable(format!("the folder `{}` is not there", working_directory.display())),
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
pub(crate) fn last_words(mut child: Child) -> String {
    let said = child.stderr.take().map(|pipe| drain(&pipe)).unwrap_or_default();
    String::from_utf8_lossy(&said).into_owned()
}

/// What there is to say of a process that ended before it was ready.
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

#[cfg(target_os = "linux")]
fn usage_of(pid: i32) -> Option<ResourceUsage> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let resident_pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let page = rustix::param::page_size() as u64;
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    Some(ResourceUsage { resident_bytes: resident_pages * page, cpu_ms: (user + system) * 1000 / ticks })
}

#[cfg(not(target_os = "linux"))]
fn usage_of(_pid: i32) -> Option<ResourceUsage> {
    None
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
