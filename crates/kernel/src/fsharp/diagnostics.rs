//! The runtime's doors for debuggers and tracers: each .NET process opens a socket for tools and two pipes for debuggers among the temporary
//! files, and a process that is killed leaves them there. Programs of an SDK have them shut. Workers admit debuggers alone where the settings
//! say so, and what a killed one leaves is removed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

/// The runtime's switch: .NET before 6 knows the first name only, later ones prefer the second.
pub const SWITCHES: [&str; 2] = ["COMPlus_EnableDiagnostics", "DOTNET_EnableDiagnostics"];
/// What .NET 8 and later need not open for a debugger: the socket of tools such as `dotnet-trace`, and the way for profilers.
const OTHERS: [&str; 2] = ["DOTNET_EnableDiagnostics_IPC", "DOTNET_EnableDiagnostics_Profiler"];
/// What the name of a debugger's pipe begins with; the number of the process and a key follow.
const PIPE: &str = "clr-debug-pipe-";

/// What shuts the doors; nothing where the inherited environment has the switch already, under either name.
pub(super) fn shut(inherited: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    if SWITCHES.iter().any(|switch| inherited(switch).is_some()) {
        return Vec::new();
    }
    SWITCHES.map(|switch| (switch.into(), "0".into())).into()
}

/// The environment of a program of an SDK as that of a worker. Where its doors are shut, they stay so unless its session's creator has said
/// something, or it is to admit debuggers, and those alone.
pub fn opened_to(
    environment: Vec<(OsString, OsString)>,
    is_said: bool,
    to_debuggers: bool,
) -> Vec<(OsString, OsString)> {
    let (shut, mut own): (Vec<_>, Vec<_>) =
        environment.into_iter().partition(|(name, _)| SWITCHES.iter().any(|switch| name == switch));
    if is_said || shut.is_empty() {
        return own;
    }
    if to_debuggers {
        own.extend(OTHERS.map(|name| (name.into(), "0".into())));
    } else {
        own.extend(shut);
    }
    own
}

/// Whether a process that was started with these variables admits debuggers.
pub fn admits_debuggers<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> bool {
    let is_off = |name: &str| {
        let value = variable(&format!("DOTNET_{name}")).or_else(|| variable(&format!("COMPlus_{name}")));
        // The runtime reads these as hexadecimal numbers.
        value.is_some_and(|value| u32::from_str_radix(value.trim(), 16) == Ok(0))
    };
    !is_off("EnableDiagnostics") && !is_off("EnableDiagnostics_Debugger")
}

/// Removes the pipes for debuggers of a worker that has ended. One that was killed has left them.
#[derive(Debug)]
pub(crate) struct DebuggerPipes {
    folder: PathBuf,
    /// What the names of its pipes begin with.
    start: Option<String>,
}

impl DebuggerPipes {
    /// Those of the process with this number, which was started with these variables beside our own.
    pub(crate) fn of(pid: Option<u32>, environment: &[(OsString, OsString)]) -> Self {
        let own =
            environment.iter().rev().find(|(name, _)| name == "TMPDIR").map(|(_, value)| value.as_os_str());
        let inherited = std::env::var_os("TMPDIR");
        let folder =
            own.or(inherited.as_deref()).filter(|folder| !folder.is_empty()).unwrap_or(OsStr::new("/tmp"));
        Self { folder: folder.into(), start: pid.map(|pid| format!("{PIPE}{pid}-")) }
    }
}

impl Drop for DebuggerPipes {
    fn drop(&mut self) {
        let Some(start) = &self.start else { return };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start)) {
            // Whatever cannot be removed is another's.
            fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doors_are_shut_unless_the_user_has_said_something() {
        let shut_by_us = SWITCHES.map(|switch| (switch.into(), "0".into())).to_vec();
        assert_eq!(shut(|_| None), shut_by_us);
        for set in SWITCHES {
            assert_eq!(shut(|name| (name == set).then(|| "1".into())), []);
        }
    }

    #[test]
    fn a_worker_admits_debuggers_alone_where_the_user_has_not_said_something() {
        let own = || vec![("DOTNET_NOLOGO".into(), "1".into())];
        let all_shut = || [own(), shut(|_| None)].concat();
        let debuggers_alone = [own(), OTHERS.map(|name| (name.into(), "0".into())).into()].concat();
        assert_eq!(opened_to(all_shut(), false, true), debuggers_alone);
        assert_eq!(opened_to(all_shut(), false, false), all_shut());
        assert_eq!(opened_to(all_shut(), true, true), own());
        assert_eq!(opened_to(own(), false, true), own(), "the inherited environment says what is open");
    }

    #[test]
    fn either_switch_keeps_debuggers_out_and_the_newer_name_counts() {
        let admits = |variables: &[(&str, &'static str)]| {
            admits_debuggers(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            })
        };
        assert!(admits(&[]));
        assert!(admits(&[("DOTNET_EnableDiagnostics_IPC", "0"), ("DOTNET_EnableDiagnostics", "1")]));
        assert!(admits(&[("DOTNET_EnableDiagnostics", "1"), ("COMPlus_EnableDiagnostics", "0")]));
        assert!(!admits(&[("DOTNET_EnableDiagnostics", "0")]));
        assert!(!admits(&[("COMPlus_EnableDiagnostics", "0x0"), ("DOTNET_EnableDiagnostics", "00")]));
        assert!(!admits(&[("DOTNET_EnableDiagnostics_Debugger", "0")]));
    }

    #[test]
    fn the_pipes_of_the_process_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["clr-debug-pipe-12-345-in", "clr-debug-pipe-12-345-out", "clr-debug-pipe-123-4-in", "other"];
        names.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        drop(DebuggerPipes::of(Some(12), &[("TMPDIR".into(), folder.path().into())]));
        drop(DebuggerPipes::of(None, &[("TMPDIR".into(), folder.path().into())]));
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }
}
