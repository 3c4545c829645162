//! What the daemon writes down: to its log file in the background, to standard error in the foreground.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mainstay_home::Home;
use mainstay_log::trace::TARGET;
use mainstay_model::Error;
use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// Where the spans of traces go, if anywhere.
pub(crate) type Traces = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts writing. `MAINSTAY_LOG` chooses what, as in `debug` or `mainstay_engine=trace`. A log file holds at most `log_bytes`. Traces are
/// no part of it.
pub(crate) fn start(home: &Home, to_file: bool, log_bytes: u64, traces: Option<Traces>) -> Result<(), Error> {
    let filter = EnvFilter::try_from_env("MAINSTAY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = filter.and(filter_fn(|metadata: &Metadata<'_>| metadata.target() != TARGET));
    // Filtered also where there is none: beside a layer without a filter each span would ask anew whether anyone wants it.
    let kept = if traces.is_some() { LevelFilter::INFO } else { LevelFilter::OFF };
    let traces = traces.with_filter(Targets::new().with_target(TARGET, kept));
    let subscriber = tracing_subscriber::registry().with(traces);
    let written = fmt::layer().with_ansi(false);
    if !to_file {
        subscriber.with(written.with_writer(io::stderr).with_filter(filter)).init();
        return Ok(());
    }
    let log = opened(home.logs().join("daemon.log"), log_bytes)?;
    subscriber.with(written.with_writer(Mutex::new(log)).with_filter(filter)).init();
    Ok(())
}

/// Starts writing to a file that holds so many bytes, for a process that is no daemon. `MAINSTAY_LOG` chooses what.
pub(crate) fn to_file(path: PathBuf, bytes: u64) -> Result<(), Error> {
    let filter = EnvFilter::try_from_env("MAINSTAY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let written = fmt::layer().with_ansi(false).with_writer(Mutex::new(opened(path, bytes)?));
    tracing_subscriber::registry().with(written.with_filter(filter)).init();
    Ok(())
}

fn opened(path: PathBuf, bytes: u64) -> Result<RotatingLog, Error> {
    RotatingLog::open(path.clone(), bytes).map_err(|error| Error::DaemonFailed {
        reason: format!("`{}` cannot be written: {error}", path.display()),
    })
}

/// A file that gives way to a new one when it is full. The one before it is kept, as `daemon.log.1`.
struct RotatingLog {
    path: PathBuf,
    limit: u64,
    file: File,
    written: u64,
}

impl RotatingLog {
    /// Goes on with the file that is there.
    fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = open(&path)?;
        let written = file.metadata()?.len();
        Ok(Self { path, limit, file, written })
    }

    fn rotate(&mut self) -> io::Result<()> {
        std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
        self.file = open(&self.path)?;
        self.written = 0;
        Ok(())
    }
}

impl Write for RotatingLog {
    /// Called with one whole record.
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if self.written > 0 && self.written.saturating_add(record.len() as u64) > self.limit {
            // A log that cannot be moved goes on growing; nothing else suffers.
            self.rotate().ok();
        }
        let count = self.file.write(record)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in the log and in the one before it after these records of one daemon.
    fn logs(records: &[&str]) -> [Option<String>; 2] {
        logs_of(&[records])
    }

    /// The same, of one daemon after another.
    fn logs_of(daemons: &[&[&str]]) -> [Option<String>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        for records in daemons {
            let mut log = RotatingLog::open(path.clone(), 10).unwrap();
            records.iter().for_each(|record| log.write_all(record.as_bytes()).unwrap());
        }
        ["daemon.log", "daemon.log.1"].map(|name| std::fs::read_to_string(folder.path().join(name)).ok())
    }

    #[test]
    fn a_full_log_gives_way_and_the_one_before_it_is_kept() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(logs(&["12345", "67890"]), [some("1234567890"), None]);
        assert_eq!(logs(&["12345", "67890", "a"]), [some("a"), some("1234567890")]);
        assert_eq!(logs(&["first", "second", "third!"]), [some("third!"), some("second")]);
    }

    #[test]
    fn a_daemon_goes_on_with_the_log_of_the_one_before() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(logs_of(&[&["1234"], &["5678"]]), [some("12345678"), None]);
        assert_eq!(logs_of(&[&["12345678"], &["9abc"]]), [some("9abc"), some("12345678")]);
    }

    #[test]
    fn a_record_is_never_cut() {
        assert_eq!(logs(&["longer than the limit"]), [Some("longer than the limit".to_owned()), None]);
    }

    #[test]
    fn a_log_that_cannot_be_moved_grows_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        std::fs::create_dir_all(folder.path().join("daemon.log.1/in the way")).unwrap();
        let mut log = RotatingLog::open(path.clone(), 10).unwrap();
        for record in ["0123456789", "more"] {
            log.write_all(record.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "0123456789more");
    }
}
