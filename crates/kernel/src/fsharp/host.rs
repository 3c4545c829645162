//! Asks a `dotnet` program where its SDKs are. On the `PATH` of Nix, asdf or Homebrew that is a script beside no SDK, which only knows
//! how to start the real one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long the program may take. It takes a tenth of a second.
const LIMIT: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(10);

/// What a program of a path and modification time has told.
type HostCache = HashMap<(PathBuf, Option<SystemTime>), Vec<PathBuf>>;

static TOLD: LazyLock<Mutex<HostCache>> = LazyLock::new(Mutex::default);

/// The roots of the SDKs that `host` lists; none where it does not run. It is run once for as long as its file stays as it is.
pub(super) fn roots_listed_by(host: &Path) -> Vec<PathBuf> {
    let modified = host.metadata().and_then(|about| about.modified()).ok();
    let key = (host.to_owned(), modified);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.entry(key).or_insert_with(|| roots_in(&list_sdks(host).unwrap_or_default())).clone()
}

/// What `dotnet --list-sdks` prints.
fn list_sdks(host: &Path) -> Option<String> {
    let mut command = Command::new(host);
    command.arg("--list-sdks").env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("DOTNET_NOLOGO", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if child.try_wait().ok()?.is_some() {
            // A few lines at most: they are in the pipe.
            let output = child.wait_with_output().ok()?;
            return output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
        }
        thread::sleep(INTERVAL);
    }
    child.kill().ok()?;
    child.wait().ok()?;
    None
}

/// The roots in lines such as `10.0.401 [/usr/lib/dotnet/sdk]`, each once.
fn roots_in(list: &str) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for line in list.lines() {
        let folder = line.split_once('[').and_then(|(_, rest)| rest.trim_end().strip_suffix(']'));
        let root = folder.and_then(|folder| Path::new(folder).parent());
        roots.extend(root.map(Path::to_owned).filter(|root| !roots.contains(root)));
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roots_are_those_of_the_listed_sdks() {
        let list = "8.0.404 [/usr/lib/dotnet/sdk]\n10.0.401 [/usr/lib/dotnet/sdk]\n9.0.100 [/nix/store/a [b]/sdk]\nnoise\n";
        assert_eq!(roots_in(list), ["/usr/lib/dotnet", "/nix/store/a [b]"].map(PathBuf::from));
    }
}
