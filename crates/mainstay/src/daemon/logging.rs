//! What the daemon writes down: to its log file in the background, to standard error in the foreground.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use mainstay_model::Error;
use tracing_subscriber::EnvFilter;

use crate::home::Home;

/// A log file that is larger at the start of a daemon becomes the one before it, in bytes.
const ROTATE_AT: u64 = 10 * 1024 * 1024;

/// Starts writing. `MAINSTAY_LOG` chooses what, as in `debug` or `mainstay_engine=trace`.
pub(super) fn start(home: &Home, to_file: bool) -> Result<(), Error> {
    let filter = EnvFilter::try_from_env("MAINSTAY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    if !to_file {
        subscriber.with_writer(std::io::stderr).init();
        return Ok(());
    }
    let path = home.logs().join("daemon.log");
    rotate(&path);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(|error| {
        Error::DaemonFailed { reason: format!("`{}` cannot be written: {error}", path.display()) }
    })?;
    subscriber.with_writer(Mutex::new(file)).init();
    Ok(())
}

fn rotate(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > ROTATE_AT) {
        // A log that cannot be moved goes on growing; nothing else suffers.
        std::fs::rename(path, path.with_extension("log.1")).ok();
    }
}
