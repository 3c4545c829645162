//! Runners in processes of their own, which outlive the daemon: how the daemon starts shims, and what the program is as a shim.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mainstay_home::config::Config;
use mainstay_home::{Home, VERSION, program};
use mainstay_model::{Error, SessionKind};
use mainstay_os::detached;
use mainstay_runner::RunnerFactory;
use mainstay_shim::messages::Terms;
use mainstay_shim::{Activity, LaunchShim, ShimFolder, ShimSettings, Shims, StandbyTerms, host};
use serde_json::Value;

use crate::logging;
use crate::runners::RunnerSettings;

/// The command of the program that is a shim.
pub const COMMAND: &str = "shim";

/// How many bytes the log of a shim holds.
const LOG_BYTES: u64 = 256 * 1024;

/// The factories of the machine, each of which starts its runners in shims. With an `orphan-ms` of 0 it starts them in the daemon's process,
/// and still finds those that were started in shims before. Gives also what their users wait for.
pub(crate) fn factories(
    home: &Home,
    settings: &RunnerSettings,
    sockets: &Path,
    Config { daemon: config, fsharp, .. }: &Config,
) -> Result<(Vec<Arc<dyn RunnerFactory>>, Activity), Error> {
    let inner = settings.factories(sockets);
    let failed = |error: serde_json::Error| Error::DaemonFailed { reason: error.to_string() };
    let launch: LaunchShim = Arc::new(launch);
    let standby = Some(fsharp).filter(|config| config.standby && is_for_standbys());
    let activity = Activity::default();
    let settings = Arc::new(ShimSettings {
        launch,
        shims: home.shims()?,
        run: sockets.to_owned(),
        factory: serde_json::to_value(settings).map_err(failed)?,
        terms: Terms {
            orphan_ms: config.orphan_ms,
            buffer_bytes: usize::try_from(config.shim_buffer_bytes).unwrap_or(usize::MAX),
            file_bytes: config.shim_file_bytes,
        },
        standby: standby.map(|config| StandbyTerms {
            rest: Duration::from_millis(config.standby_rest_ms),
            memory_bytes: config.standby_memory_bytes,
        }),
        activity: activity.clone(),
    });
    let in_shims = |inner| Arc::new(Shims::around(inner, Arc::clone(&settings))) as Arc<dyn RunnerFactory>;
    Ok((inner.into_iter().map(in_shims).collect(), activity))
}

/// Whether this program makes standbys. While it is tested it does where a test says so: others would share the machine with them.
fn is_for_standbys() -> bool {
    !cfg!(feature = "failpoints") || std::env::var_os("MAINSTAY_TEST_STANDBY").is_some()
}

/// Starts this program as a shim. It finds the socket on which the daemon connects on its standard input.
fn launch(folder: &ShimFolder, listener: UnixListener) -> std::io::Result<()> {
    let mut command = Command::new(program()?);
    command
        .args([COMMAND.as_ref(), folder.path().as_os_str()])
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/");
    detached::spawn(command)
}

/// Is the shim of the session with this folder, until its runner is done.
///
/// # Errors
/// [`Error::WorkerFailed`] where this process was not started as a shim.
pub fn run(folder: PathBuf) -> Result<ExitCode, Error> {
    let failed =
        |error: std::io::Error| Error::WorkerFailed { reason: format!("the shim does not begin: {error}") };
    let folder = ShimFolder::at(folder);
    // The folder gets another name where the shim stands by and is taken. So its log is known by its name in the folder alone.
    std::env::set_current_dir(folder.path()).map_err(failed)?;
    let log = folder.log().file_name().map(PathBuf::from).unwrap_or_default();
    logging::to_file(log, LOG_BYTES)?;
    let listener = UnixListener::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    listener.set_nonblocking(true).map_err(failed)?;
    let null = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(null).map_err(|error| failed(error.into()))?;
    let address = listener.local_addr().map_err(failed)?;
    let sockets = address.as_pathname().and_then(Path::parent).map(Path::to_owned);
    let sockets = sockets.ok_or_else(|| failed(std::io::ErrorKind::AddrNotAvailable.into()))?;
    // One thread will do: a shim passes on, and little more.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
        host::serve(
            listener,
            folder,
            VERSION,
            Box::new(move |settings, kind| factory(settings, kind, &sockets)),
        )
        .await;
        Ok(ExitCode::SUCCESS)
    })
}

/// The factory that the daemon's settings make for a kind.
fn factory(settings: &Value, kind: &SessionKind, sockets: &Path) -> Option<Arc<dyn RunnerFactory>> {
    let settings = serde_json::from_value::<RunnerSettings>(settings.clone()).inspect_err(|error| {
        tracing::error!(%error, "the settings of the daemon are not understood");
    });
    settings.ok()?.factory(kind, sockets)
}
