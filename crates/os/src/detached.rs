//! Starts a process that is nobody's child: in a session of its own, with the system's first process as its parent. So it ends with none of
//! those who started it, and leaves no zombie where they do not wait for it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use close_fds::set_fds_cloexec;
use rustix::process::setsid;

/// The first descriptor that is no standard stream.
const FIRST_OWN: i32 = 3;

/// Starts the command's program so. Its descriptors are its standard streams alone, which the command should name: else they are those of
/// this process. Blocks until the program is loaded, for a few milliseconds.
///
/// # Errors
/// The program could not be started.
pub fn spawn(mut command: Command) -> io::Result<()> {
    detach(&mut command);
    // The child that is waited for has started the program and ended already.
    command.spawn()?.wait().map(drop)
}

/// Has the command's process put one of its own in its place: a child of its own, whose parent is gone at once.
#[expect(
    unsafe_code,
    reason = "the standard library has no safe way to start a process that is no child of this one"
)]
fn detach(command: &mut Command) {
    // SAFETY: the closure runs between `fork` and `exec`, where only async-signal-safe functions may be called. `setsid` and `_exit` are
    // such, `fork` is one as long as no library has registered handlers for it, which none of this program does, and `close_fds` promises
    // it of its own. Nothing is allocated and no lock is taken: an error is a number. Both processes go
    // on with what the first `fork` has copied, and the one in between ends without running any destructor.
    unsafe {
        command.pre_exec(|| {
            set_fds_cloexec(FIRST_OWN, &[]);
            setsid()?;
            match libc::fork() {
                0 => Ok(()),
                -1 => Err(io::Error::last_os_error()),
                _ => libc::_exit(0),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write, pipe};
    use std::process::Stdio;

    use rustix::process::getpid;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_detached_process_has_a_session_and_descriptors_of_its_own_and_is_no_child() {
        let ours = tempfile::tempfile().unwrap();
        rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::empty()).unwrap();
        let (stdin, mut told) = pipe().unwrap();
        let (mut said, stdout) = pipe().unwrap();
        let mut command = Command::new("sh");
        let script = r#"read line; cat "/proc/$$/stat"; ls "/proc/$$/fd"; echo "$line"; pwd"#;
        command.args(["-c", script]).stdin(stdin).stdout(stdout).stderr(Stdio::null()).current_dir("/");
        spawn(command).unwrap();
        // Only now is it sure that the process in between is gone.
        told.write_all(b"told\n").unwrap();
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1..], ["0", "1", "2", "told", "/"], "{text}");
        let (parent, session) = parent_and_session(lines[0]);
        assert_ne!(parent, getpid().as_raw_nonzero().get());
        // In a container this process may be of a session that has no number there.
        let (_, ours) = parent_and_session(&std::fs::read_to_string("/proc/self/stat").unwrap());
        assert_ne!(session, ours);
    }

    /// Two members of a process's `stat`.
    fn parent_and_session(stat: &str) -> (i32, i32) {
        let numbers: Vec<i32> = stat.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [_, parent, _, session, ..] = numbers[..] else { panic!("{stat}") };
        (parent, session)
    }

    #[test]
    fn a_detached_process_ends_when_it_likes() {
        let (stdin, told) = pipe().unwrap();
        let (said, stdout) = pipe().unwrap();
        let mut command = Command::new("cat");
        command.stdin(stdin).stdout(stdout).stderr(Stdio::null());
        spawn(command).unwrap();
        (&told).write_all(b"lives\n").unwrap();
        let mut lines = BufReader::new(said).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "lives");
        drop(told);
        assert!(lines.next().is_none());
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let error = spawn(Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
