//! What the kernel says of the daemon and its workers, in `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

/// Set for every worker, and for nothing that it starts.
const WORKER_VARIABLE: &[u8] = b"MAINSTAY_WORKER_ADDRESS=";

/// What the daemon uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Memory of its own, in bytes: what it has mapped from files is not counted.
    pub(super) memory: u64,
    pub(super) threads: u64,
    pub(super) files: u64,
    /// Processes it has started and not yet taken leave of.
    pub(super) children: u64,
}

impl Usage {
    /// Of each figure the larger one.
    pub(super) fn or_more(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            threads: self.threads.max(other.threads),
            files: self.files.max(other.files),
            children: self.children.max(other.children),
        }
    }
}

/// A process, told from a later one of the same number by the time of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    started: u64,
}

impl Process {
    /// Whether it is still there.
    pub(super) fn lives(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }
}

/// What a process uses, while it is there.
pub(super) fn usage(pid: u32) -> Option<Usage> {
    let status = fs::read_to_string(of(pid).join("status")).ok()?;
    let number = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let files = fs::read_dir(of(pid).join("fd")).ok()?.count() as u64;
    let children = all().filter(|other| stat(*other).is_some_and(|stat| stat.parent == pid)).count() as u64;
    Some(Usage { memory: number("RssAnon:")? * 1024, threads: number("Threads:")?, files, children })
}

/// The workers and shims of a home, and other processes that its daemon or they have started and left behind.
pub(super) struct Family {
    pub(super) workers: Vec<Process>,
    pub(super) shims: Vec<Process>,
    /// Neither workers nor the program itself, with their command lines.
    pub(super) others: Vec<(Process, String)>,
}

/// Everything that has the home in its environment.
pub(super) fn family(home: &Path) -> Family {
    let mut family = Family { workers: Vec::new(), shims: Vec::new(), others: Vec::new() };
    let named = [b"MAINSTAY_HOME=", home.as_os_str().as_encoded_bytes()].concat();
    for pid in all() {
        let Ok(environment) = fs::read(of(pid).join("environ")) else { continue };
        let mut variables = environment.split(|byte| *byte == 0);
        if !variables.any(|variable| variable == named) {
            continue;
        }
        let Some(Stat { started, .. }) = stat(pid) else { continue };
        let process = Process { pid, started };
        let is_worker =
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(WORKER_VARIABLE));
        let command = command_line(pid);
        let mut words = command.split(' ');
        let is_program = words.next().is_some_and(|program| program.ends_with("mainstay"));
        match (is_worker, is_program) {
            (true, _) => family.workers.push(process),
            (false, true) if words.next() == Some("shim") => family.shims.push(process),
            (false, true) => {}
            (false, false) => family.others.push((process, command)),
        }
    }
    family
}

fn command_line(pid: u32) -> String {
    let words = fs::read(of(pid).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    read_stat(&fs::read_to_string(of(pid).join("stat")).ok()?)
}

fn read_stat(text: &str) -> Option<Stat> {
    // The second field is the program's name in parentheses and may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn of(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_programs_name_may_hold_anything() {
        let text = "12 (a) b) S 7 12 12 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4321 1000 20";
        let Stat { state, parent, started } = read_stat(text).unwrap();
        assert_eq!((state, parent, started), ('S', 7, 4321));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_there_until_it_is_killed() {
        let home = tempfile::tempdir().unwrap();
        let start = |worker: bool| {
            let mut command = std::process::Command::new("cat");
            command.env("MAINSTAY_HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
            if worker {
                command.env("MAINSTAY_WORKER_ADDRESS", "x");
            }
            let mut child = command.spawn().unwrap();
            // `/proc` knows its variables once it has begun.
            child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            child
        };
        let (mut worker, mut other) = (start(true), start(false));
        let own = usage(std::process::id()).unwrap();
        assert!(own.children >= 2 && own.threads >= 1 && own.files >= 3 && own.memory > 0, "{own:?}");
        let Family { workers, shims, others } = family(home.path());
        assert!(shims.is_empty());
        assert_eq!(workers.iter().map(|process| process.pid).collect::<Vec<_>>(), [worker.id()]);
        assert_eq!(others.iter().map(|(process, _)| process.pid).collect::<Vec<_>>(), [other.id()]);
        assert!(workers[0].lives());
        for child in [&mut worker, &mut other] {
            child.kill().unwrap();
        }
        worker.wait().unwrap();
        other.wait().unwrap();
        assert!(!workers[0].lives());
    }
}
