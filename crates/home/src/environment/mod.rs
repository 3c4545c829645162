//! The environment that a daemon begins with: that of the user's login shell, as editors take it, and not of whoever came first. An agent may
//! have filtered its own, and a terminal has what belongs to one project alone.
//!
//! [`shell`] asks the shell. What is said between two marks is taken, so that whatever startup files print does not matter.

mod shell;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use mainstay_runner::Environment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TOKEN_VARIABLE, program_for_others};

/// Where a daemon takes its environment from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentSource {
    /// The environment of the user's login shell.
    #[default]
    LoginShell,
    /// The environment of the process that starts the daemon.
    Inherited,
}

/// Says where a daemon has its environment from, before the setting.
pub const SOURCE_VARIABLE: &str = "MAINSTAY_ENVIRONMENT";
/// Where a Jupyter server says which notebook it starts a kernel for.
pub const NOTEBOOK: &str = "JPY_SESSION_NAME";
/// The most that a client says of its environment, in bytes.
const MOST: usize = 1024 * 1024;
/// Tells startup files that only their environment is wanted.
const RESOLVING: &str = "MAINSTAY_RESOLVING_ENVIRONMENT";

impl EnvironmentSource {
    /// What the variable says, else the setting.
    pub fn chosen(setting: Self) -> Self {
        match std::env::var(SOURCE_VARIABLE).as_deref() {
            Ok("login-shell") => Self::LoginShell,
            Ok("inherited") => Self::Inherited,
            _ => setting,
        }
    }
}

/// Variables with their values.
pub type Variables = Vec<(OsString, OsString)>;

/// What a daemon begins with.
#[derive(Debug, PartialEq, Eq)]
pub struct DaemonEnvironment {
    /// All variables of the environment.
    pub variables: Variables,
    /// Why they are not what was asked for, for people.
    pub note: Option<String>,
}

/// The environment that a daemon begins with that this process starts. Asking the shell takes no longer than `limit`.
pub fn daemon_environment(source: EnvironmentSource, limit: Duration) -> DaemonEnvironment {
    let is_resolving = std::env::var_os(RESOLVING).is_some();
    let is_left_out = |name: &OsString| is_private(name) || name == RESOLVING;
    let own: Variables = std::env::vars_os().filter(|(name, _)| !is_left_out(name)).collect();
    // A startup file that starts Mainstay would be asked for ever.
    if source == EnvironmentSource::Inherited || is_resolving {
        return DaemonEnvironment { variables: own, note: None };
    }
    match login_shell_environment(limit) {
        Ok(asked) => DaemonEnvironment { variables: with_own(asked, own), note: None },
        Err(reason) => {
            let note = format!(
                "the environment of the login shell is not known ({reason}); it is that of whoever started the daemon"
            );
            DaemonEnvironment { variables: own, note: Some(note) }
        }
    }
}

/// The environment of the user's login shell.
///
/// # Errors
/// Why it is not known, for people.
pub fn login_shell_environment(limit: Duration) -> Result<Variables, String> {
    let program = program_for_others().map_err(|error| error.to_string())?;
    let shell = shell::of_user();
    let own = std::env::vars_os().filter(|(name, _)| belongs_to_user(name) || is_ours(name));
    let own = own.filter(|(name, _)| !is_private(name));
    let begin: Variables = own.chain([(OsString::from(RESOLVING), OsString::from("1"))]).collect();
    let asked = shell::ask(&shell, &program, &begin, limit)
        .map_err(|reason| format!("{}: {reason}", shell.display()))?;
    Ok(asked.into_iter().filter(|(name, _)| !is_of_shell(name) && !is_private(name)).collect())
}

/// What this process has in its environment, for the sessions that it creates. What is no text is left out; of more than [`MOST`] nothing is said,
/// so that it fits into a message beside what else that has.
pub fn client_environment() -> Option<Environment> {
    let own = std::env::vars_os().filter(|(name, _)| !is_private(name) && !is_of_shell(name));
    let own = own.filter(|(name, _)| !name.as_bytes().starts_with(b"MAINSTAY_"));
    let texts = own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Some(Environment::from_iter(texts)).filter(|environment| environment.bytes() <= MOST)
}

/// What the shell has said, and over it what is meant for the daemon by whoever starts it.
fn with_own(asked: Variables, own: Variables) -> Variables {
    let ours: Variables = own.into_iter().filter(|(name, _)| is_ours(name)).collect();
    let is_said = |name: &OsString| ours.iter().any(|(said, _)| said == name);
    asked.into_iter().filter(|(name, _)| !is_said(name)).chain(ours.iter().cloned()).collect()
}

/// Whether it is this program, or a library in it, that reads a variable.
fn is_ours(name: &OsString) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"MAINSTAY_")
        || name.starts_with(b"OTEL_")
        || [&b"RUST_LOG"[..], b"RUST_BACKTRACE", b"XDG_RUNTIME_DIR"].contains(&name)
}

/// Whether a variable is the user's or the machine's wherever they are, so that a login shell finds it set.
fn belongs_to_user(name: &OsString) -> bool {
    const NAMES: [&str; 16] = [
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TERM",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_SESSION_BUS_ADDRESS",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
        "__CF_USER_TEXT_ENCODING",
    ];
    name.as_bytes().starts_with(b"LC_") || NAMES.iter().any(|known| name == known)
}

/// Whether a variable is of one client alone: the token of a principal, and a notebook's name, of which kernels would say that they are of it.
fn is_private(name: &OsString) -> bool {
    name == TOKEN_VARIABLE || name == NOTEBOOK
}

/// Whether a variable tells of the shell itself.
fn is_of_shell(name: &OsString) -> bool {
    ["_", "SHLVL", "PWD", "OLDPWD", RESOLVING].iter().any(|own| name == own)
}

/// Writes this process's environment between marks.
pub fn print_between(mark: &str) -> std::io::Result<()> {
    let mut text = mark.as_bytes().to_vec();
    for (name, value) in std::env::vars_os() {
        text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    text.extend(mark.as_bytes());
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}

/// Reads what [`print_between`] has written among other things; none while it is not whole.
fn read(said: &[u8], mark: &str) -> Option<Variables> {
    let find = |text: &[u8]| text.windows(mark.len()).position(|window| window == mark.as_bytes());
    let said = &said[find(said)? + mark.len()..];
    let said = &said[..find(said)?];
    let variable = |text: &[u8]| {
        // The name of a variable is at least a character long, and may begin with `=` nowhere.
        let at = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((part(&text[..at]), part(&text[at + 1..])))
    };
    Some(said.split(|byte| *byte == 0).filter_map(variable).collect())
}

/// The name of a program, without its folders.
fn name_of(program: &Path) -> &str {
    program.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Variables {
        all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn what_startup_files_print_is_passed_over() {
        let said = b"Welcome!\nMARKA=1\0B=two\nlines=x\0EMPTY=\0MARKbye";
        assert_eq!(read(said, "MARK"), Some(variables(&[("A", "1"), ("B", "two\nlines=x"), ("EMPTY", "")])));
        for cut in 0..said.len() - "MARKbye".len() + 3 {
            assert_eq!(read(&said[..cut], "MARK"), None, "{cut}");
        }
    }

    #[test]
    fn what_is_meant_for_the_daemon_passes_the_login_shells() {
        let asked = variables(&[("PATH", "/login"), ("MAINSTAY_HOME", "/other"), ("NUGET_PACKAGES", "/n")]);
        let own =
            variables(&[("PATH", "/own"), ("MAINSTAY_HOME", "/mine"), ("OTEL_X", "1"), ("SECRET", "s")]);
        assert_eq!(
            with_own(asked, own),
            variables(&[
                ("PATH", "/login"),
                ("NUGET_PACKAGES", "/n"),
                ("MAINSTAY_HOME", "/mine"),
                ("OTEL_X", "1")
            ])
        );
    }
}
