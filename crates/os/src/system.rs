//! What the system knows of processes: what they use, what they have open, which bear a variable in their environment, and that they end
//! with the process that started them.
//!
//! Linux does all of it. Elsewhere each function does what does no harm: nothing is known, and nothing is killed.

use std::fs::File;

use rustix::process::Pid;
use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use self::linux as platform;
#[cfg(not(target_os = "linux"))]
use self::portable as platform;

/// What a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in milliseconds.
    pub cpu_ms: u64,
}

/// What a process uses now; none where it is gone, or the system does not tell.
pub fn usage_of(pid: Pid) -> Option<ResourceUsage> {
    platform::usage_of(pid)
}

/// The resident memory of this process, in bytes; none where the system does not tell.
pub fn own_resident_bytes() -> Option<u64> {
    Some(platform::usage_of(rustix::process::getpid())?.resident_bytes)
}

/// How much memory the machine has left for programs, in bytes, as its system estimates that (`MemAvailable`); none where it does not tell.
pub fn available_bytes() -> Option<u64> {
    platform::available_bytes()
}

/// When a process was started, in the system's own terms; none where it is gone, or the system does not tell. No two processes of one
/// number were started at the same time, since the machine was.
pub fn started_at(pid: Pid) -> Option<u64> {
    platform::started_at(pid)
}

/// Whether a process is suspended by a signal. Where the system does not tell, it is not.
pub fn is_suspended(pid: Pid) -> bool {
    platform::is_suspended(pid)
}

/// Whether a process has the same file open as `file` is. Where the system does not tell, whether the process lives.
pub fn has_open(pid: Pid, file: &File) -> bool {
    platform::has_open(pid, file)
}

/// Kills every process in whose environment the variable has a value that is meant. Returns whether there was none, and none that cannot be
/// known: a process that is exchanging its program has no environment for a moment. Where the system does not tell, none is found.
pub fn kill_with_variable(variable: &str, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    platform::kill_with_variable(variable, is_meant)
}

/// Starts a process that the system kills once this process has ended, however that came. Where the system cannot, the process must notice
/// the end by itself. Must be called within tokio's runtime.
///
/// # Errors
/// The process could not be started.
pub fn spawn_bound(command: Command) -> std::io::Result<Child> {
    platform::spawn_bound(command)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{LazyLock, Mutex, PoisonError};

    use procfs::process::{Process, all_processes};
    use procfs::{Current, Meminfo};
    use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
    use tokio::process::{Child, Command};
    use tokio::runtime::Handle;

    use super::ResourceUsage;

    /// What the spawning thread is given to do.
    type Work = Box<dyn FnOnce() + Send>;

    /// The thread that starts bound processes. The system kills them once the thread ends that started them, so it must live as long as this
    /// process: a thread of tokio's pool may end earlier.
    static SPAWNING: LazyLock<io::Result<Mutex<Sender<Work>>>> = LazyLock::new(|| {
        let (work, works) = channel::<Work>();
        let thread = std::thread::Builder::new().name("spawning".to_owned());
        thread.spawn(move || works.into_iter().for_each(|work| work()))?;
        Ok(Mutex::new(work))
    });

    pub(super) fn spawn_bound(mut command: Command) -> io::Result<Child> {
        let spawning = SPAWNING.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        end_with_this_thread(command.as_std_mut());
        let runtime = Handle::current();
        let (started, child) = channel();
        let work = move || {
            let _entered = runtime.enter();
            started.send(command.spawn()).ok();
        };
        let is_gone = || io::Error::other("the thread that starts processes is gone");
        let sent = spawning.lock().unwrap_or_else(PoisonError::into_inner).send(Box::new(work));
        sent.map_err(|_| is_gone())?;
        child.recv().map_err(|_| is_gone())?
    }

    /// Has the system kill the command's process once the thread has ended that starts it.
    #[expect(
        unsafe_code,
        reason = "the standard library has no safe way to set the signal in the new process"
    )]
    fn end_with_this_thread(command: &mut std::process::Command) {
        let parent = getpid();
        let bind = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before the signal was set.
            if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        // SAFETY: between `fork` and `exec` the closure makes two system calls, `prctl` and `getppid`, which are safe there. It neither
        // allocates nor takes a lock: its errors are a number and a kind.
        unsafe { command.pre_exec(bind) };
    }

    pub(super) fn usage_of(pid: Pid) -> Option<ResourceUsage> {
        let stat = Process::new(pid.as_raw_nonzero().get()).ok()?.stat().ok()?;
        let ticks = procfs::ticks_per_second().max(1);
        Some(ResourceUsage {
            resident_bytes: stat.rss * procfs::page_size(),
            cpu_ms: (stat.utime + stat.stime) * 1000 / ticks,
        })
    }

    pub(super) fn available_bytes() -> Option<u64> {
        Meminfo::current().ok()?.mem_available
    }

    pub(super) fn started_at(pid: Pid) -> Option<u64> {
        let stat = Process::new(pid.as_raw_nonzero().get()).ok()?.stat().ok()?;
        // One that has ended has its number until its parent looks for it, which may take its time.
        (!['Z', 'X'].contains(&stat.state)).then_some(stat.starttime)
    }

    pub(super) fn is_suspended(pid: Pid) -> bool {
        let stat = Process::new(pid.as_raw_nonzero().get()).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.state == 'T')
    }

    pub(super) fn has_open(pid: Pid, file: &File) -> bool {
        let Ok(ours) = file.metadata() else { return false };
        let is_ours = |theirs: Metadata| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino());
        // Sockets and pipes have no path; the links themselves lead to any file, also to one that was removed.
        let folder = format!("/proc/{}/fd", pid.as_raw_nonzero());
        std::fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| std::fs::metadata(file.path()).is_ok_and(is_ours)))
    }

    pub(super) fn kill_with_variable(variable: &str, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let mut is_none = true;
        for process in all_processes().into_iter().flatten().flatten() {
            let environment = process.environ().unwrap_or_default();
            let value = environment.iter().find(|(name, _)| name.as_bytes() == variable.as_bytes());
            if value.is_some_and(|(_, value)| is_meant(value.as_bytes())) {
                if let Some(pid) = Pid::from_raw(process.pid()) {
                    // It may have ended by itself in this moment.
                    kill_process(pid, Signal::KILL).ok();
                }
                is_none = false;
            }
            is_none &= !(environment.is_empty() && is_changing_program(&process));
        }
        is_none
    }

    /// Whether a process has an environment that could not be read, as while it exchanges its program.
    fn is_changing_program(process: &Process) -> bool {
        // The system's own have no program, and those of others do not tell it.
        if process.exe().is_err() {
            return false;
        }
        // Of these the place where the program's code begins is set last.
        process.stat().is_ok_and(|stat| stat.startcode == 0 || stat.env_start != stat.env_end)
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::fs::File;

    use rustix::process::{Pid, test_kill_process};
    use tokio::process::{Child, Command};

    use super::ResourceUsage;

    pub(super) fn spawn_bound(mut command: Command) -> std::io::Result<Child> {
        command.spawn()
    }

    pub(super) fn usage_of(_: Pid) -> Option<ResourceUsage> {
        None
    }

    pub(super) fn available_bytes() -> Option<u64> {
        None
    }

    pub(super) fn started_at(_: Pid) -> Option<u64> {
        None
    }

    pub(super) fn is_suspended(_: Pid) -> bool {
        false
    }

    pub(super) fn has_open(pid: Pid, _: &File) -> bool {
        test_kill_process(pid).is_ok()
    }

    pub(super) fn kill_with_variable(_: &str, _: impl Fn(&[u8]) -> bool) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn this_process_uses_memory_and_has_open_what_it_opened() {
        assert!(own_resident_bytes().unwrap() > 100_000);
        assert!(available_bytes().unwrap() > 1_000_000);
        let own = rustix::process::getpid();
        let file = tempfile::tempfile().unwrap();
        assert!(has_open(own, &file));
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let other = File::open(&path).unwrap();
        let copy = File::open(&path).unwrap();
        assert!(has_open(own, &copy));
        drop((other, copy));
        assert!(has_open(own, &file));
    }

    #[test]
    fn a_process_that_is_gone_uses_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        child.wait().unwrap();
        assert_eq!(usage_of(pid), None);
    }

    /// Set for the process that the test starts to be killed.
    const IS_KILLED: &str = "MAINSTAY_TEST_IS_KILLED";

    #[test]
    fn a_bound_process_ends_with_the_process_that_started_it() {
        if std::env::var_os(IS_KILLED).is_some() {
            return start_a_bound_process_and_wait().unwrap();
        }
        // The bound process inherits the pipe's end, and nobody else has it.
        let (mut held, holder) = std::io::pipe().unwrap();
        let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "system::tests::a_bound_process_ends_with_the_process_that_started_it",
            ])
            .env(IS_KILLED, "1")
            .stdin(holder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("it is started")));
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_eq!(held.read(&mut [0]).unwrap(), 0, "the bound process has closed its end");
    }

    fn start_a_bound_process_and_wait() -> std::io::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let _entered = runtime.enter();
        let mut command = Command::new("sleep");
        command.arg("600").stdout(Stdio::null()).stderr(Stdio::null());
        let _child = spawn_bound(command)?;
        println!("it is started");
        loop {
            std::thread::park();
        }
    }

    #[tokio::test]
    async fn a_bound_process_outlives_the_thread_that_asked_for_it() {
        let runtime = tokio::runtime::Handle::current();
        let asking = std::thread::spawn(move || {
            let _entered = runtime.enter();
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            spawn_bound(command).unwrap()
        });
        let mut child = asking.join().unwrap();
        child.stdin.take().unwrap().write_all(b"lives").await.unwrap();
        assert_eq!(child.wait_with_output().await.unwrap().stdout, b"lives");
    }

    #[tokio::test]
    async fn a_bound_process_that_cannot_be_started_is_an_error() {
        let error = spawn_bound(Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn a_process_that_has_ended_and_was_not_looked_for_yet_is_gone() {
        use std::os::fd::AsFd;
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let watch = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let mut poll = [rustix::event::PollFd::from_borrowed_fd(watch.as_fd(), rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut poll, None).unwrap();
        assert_eq!(started_at(pid), None);
        child.wait().unwrap();
        assert!(started_at(rustix::process::getpid()).is_some());
    }
}
