//! Asking a shell for its environment: it is started as at a login, and runs this program, which prints what it finds.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Variables, name_of, read};

/// The shell where nothing names another.
const USUAL: &str = "/bin/sh";
/// Where the users' shells are listed.
const USERS: &str = "/etc/passwd";
/// Where programs are before a shell says otherwise.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// The most that is read of what a shell prints, in bytes.
const MOST: u64 = 16 * 1024 * 1024;

/// The user's login shell: the one in the environment, as editors take it, else the one of the user's account.
pub(super) fn of_user() -> PathBuf {
    let named = std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
    let listed = || {
        let users = std::fs::read_to_string(USERS).ok()?;
        listed(&users, rustix::process::getuid().as_raw())
    };
    named.or_else(listed).unwrap_or_else(|| PathBuf::from(USUAL))
}

/// The shell of a user's account.
fn listed(users: &str, user: u32) -> Option<PathBuf> {
    let is_theirs = |fields: &Vec<&str>| fields.get(2).and_then(|id| id.parse().ok()) == Some(user);
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(is_theirs)?;
    fields.get(6).filter(|shell| shell.starts_with('/')).map(PathBuf::from)
}

/// How a shell is told to run a command as at a login. Of some, only an interactive one reads all that users put there; others would do nothing
/// else with it than complain of the terminal that is missing.
fn arguments(shell: &Path) -> &'static [&'static str] {
    match name_of(shell) {
        "bash" | "zsh" | "fish" => &["-l", "-i", "-c"],
        // They take `-l` only alone, and are login shells by the name they are called by.
        "csh" | "tcsh" => &["-c"],
        _ => &["-l", "-c"],
    }
}

/// A text as one word of a shell.
fn quoted(text: &OsStr) -> Option<String> {
    let text = text.to_str()?;
    // A quote within quotes is not written alike everywhere.
    (!text.contains(['\'', '\\', '!', '\n'])).then(|| format!("'{text}'"))
}

/// Asks a shell that begins with these variables.
pub(super) fn ask(
    shell: &Path,
    program: &Path,
    begin: &Variables,
    limit: Duration,
) -> Result<Variables, String> {
    let mark = uuid::Uuid::new_v4().simple().to_string();
    let program = quoted(program.as_os_str()).ok_or("this program's path cannot be written in a shell")?;
    let mut command = Command::new(shell);
    if let name @ ("csh" | "tcsh") = name_of(shell) {
        command.arg0(format!("-{name}"));
    }
    command
        .args(arguments(shell))
        .arg(format!("{program} environment --mark {mark}"))
        .env_clear()
        .env("PATH", PATH)
        .envs(begin.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some((_, home)) = begin.iter().find(|(name, _)| name.as_bytes() == b"HOME") {
        command.current_dir(home);
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let Some(out) = child.stdout.take() else { return Err("what it prints is not captured".to_owned()) };
    let (said, saying) = channel();
    std::thread::spawn(move || said.send(listen(out, &mark)).ok());
    let answer = match saying.recv_timeout(limit) {
        Ok(Some(variables)) => Ok(variables),
        Ok(None) => Err("it ended without a word".to_owned()),
        Err(RecvTimeoutError::Timeout) => Err(format!("it had not answered after {} ms", limit.as_millis())),
        Err(RecvTimeoutError::Disconnected) => Err("what it prints cannot be read".to_owned()),
    };
    // One that has answered ends by itself, and what its startup files have started stays.
    if answer.is_err()
        && let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
    {
        kill_process_group(group, Signal::KILL).ok();
        child.wait().ok();
    }
    answer
}

/// Reads until all is said. What a startup file has left running may keep the pipe open for ever.
fn listen(out: ChildStdout, mark: &str) -> Option<Variables> {
    let mut out = out.take(MOST);
    let (mut said, mut piece) = (Vec::new(), [0; 64 * 1024]);
    loop {
        let count = out.read(&mut piece).ok().filter(|count| *count > 0)?;
        said.extend(&piece[..count]);
        if let Some(variables) = read(&said, mark) {
            return Some(variables);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_of_an_account_is_found_by_the_users_number() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/usr/bin/fish\nx:x:7:7::/:\n";
        assert_eq!(listed(users, 1000), Some(PathBuf::from("/usr/bin/fish")));
        assert_eq!((listed(users, 7), listed(users, 8)), (None, None));
    }

    #[test]
    fn a_shell_that_says_nothing_is_not_waited_for_longer_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let shell = |name: &str, script: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            path
        };
        let ask = |path: &Path, limit| ask(path, Path::new("/bin/true"), &Vec::new(), limit);
        let hanging = ask(&shell("hanging", "sleep 600"), Duration::from_millis(50));
        assert_eq!(hanging, Err("it had not answered after 50 ms".to_owned()));
        let ending = ask(&shell("ending", "exit 1"), Duration::from_secs(60));
        assert_eq!(ending, Err("it ended without a word".to_owned()));
    }
}
