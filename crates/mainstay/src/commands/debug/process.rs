//! What is known of a worker's process from the system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use mainstay_kernel::fsharp;

/// The variable that names the folder for temporary files.
pub(super) const TEMPORARY: &str = "TMPDIR";

/// Whether a process was started so that debuggers can attach; none where the system does not tell, as where it is no Linux.
pub(super) fn admits_debuggers(pid: u32) -> Option<bool> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    Some(admits(&environment))
}

/// The folder for temporary files that a process was started with, where it is not the usual one. A debugger finds the pipes of the process
/// there, if it has the same.
pub(super) fn temporary_folder(pid: u32) -> Option<OsString> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let start = format!("{TEMPORARY}=").into_bytes();
    let folder =
        environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(start.as_slice()))?;
    Some(OsString::from_vec(folder.to_vec()))
}

/// The same of an environment as the system has it: each variable ends with a zero.
fn admits(environment: &[u8]) -> bool {
    let variables: Vec<(&str, &str)> = environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| std::str::from_utf8(variable).ok()?.split_once('='))
        .collect();
    fsharp::admits_debuggers(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_at_its_start_says_whether_a_process_admits_debuggers() {
        assert!(admits(b"HOME=/home\0BAD=\xff\0DOTNET_EnableDiagnostics_IPC=0\0"));
        assert!(!admits(b"HOME=/home\0DOTNET_EnableDiagnostics=0\0"));
        assert!(admits(b""));
    }
}
