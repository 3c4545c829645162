//! `mainstay debug`: hands the worker of an F# session to a debugger, netcoredbg. What is said to it is in `dap`, how it comes and goes in
//! `relay`, and what is known of the worker's process in `process`.

mod dap;
mod process;
mod relay;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::fsharp_sdks;
use mainstay_model::{Error, EventBody, Seq};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::note;
use mainstay_terminal_client::connect::{Connection, connected};
use serde::Serialize;
use serde_json::{Value, json};

use self::process::admits_debuggers;
use super::events::for_each_event;
use super::target::Target;

/// The name of the debugger's program.
const NETCOREDBG: &str = "netcoredbg";
/// Where the debugger is to be had.
const RELEASES: &str = "https://github.com/Samsung/netcoredbg/releases";

/// Attaches a debugger, netcoredbg, to the worker of an F# session.
///
/// While it is attached nothing that is saved is swapped. Evals that stand at a breakpoint wait for it; a cancel ends the worker as always.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Debug {
    #[command(flatten)]
    target: Target,

    /// Be a debug adapter on standard input and output, for an editor. What it launches or attaches to is the worker
    #[arg(long, conflicts_with = "json")]
    dap: bool,

    /// Print what a debugger needs, and start none
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay debug                 # the command line of netcoredbg
  mainstay debug --dap           # what an editor starts as its debug adapter
  mainstay debug --json          # the process, its assemblies, an entry for launch.json

Exit codes: that of the debugger; 1 there is none, or the worker admits none; 2 the command line was wrong.";

/// What a debugger needs, for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Debuggee {
    /// The session of the worker.
    session: String,
    /// The process of the worker.
    pid: u32,
    /// The program that `mainstay debug` would start; none where there is none.
    debugger: Option<PathBuf>,
    /// The project's own assemblies.
    assemblies: Vec<DebuggedAssembly>,
    /// An entry for `configurations` in Visual Studio Code's `launch.json`.
    launch: Value,
}

/// An assembly of the project.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DebuggedAssembly {
    /// Where it was built.
    built: PathBuf,
    /// The copy that the worker loads.
    loaded: PathBuf,
    /// The symbol file beside the copy, where there is one.
    symbols: Option<PathBuf>,
}

impl Debug {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { target, dap, json } = self;
        let fsharp = Config::load(home)?.fsharp;
        let configured = fsharp.debugger.clone();
        let on_path = || fsharp_sdks(home, fsharp).program(NETCOREDBG);
        let settled = async |connection: &Connection| target.settled(home, &connection.client).await;
        let (connection, settled) = connected(home, "cli", settled).await?;
        let session = settled.session;
        let pid = worker_of(&session)?;
        if admits_debuggers(pid) == Some(false) {
            return Err(not_admitted(&session, pid));
        }
        let debugger = found(configured, on_path);
        let refusal = refusal(&session);
        if has_swapped(&connection, &session).await? {
            note(&refusal);
        }
        if json {
            let assemblies = assemblies_of(home, &session).await;
            let launch = launch_entry(&session, pid);
            let session = session.session.to_string();
            super::print_json(&Debuggee { session, pid, debugger: debugger.ok(), assemblies, launch })?;
            return Ok(ExitCode::SUCCESS);
        }
        let debugger = debugger.map_err(|reason| no_debugger(&reason, pid))?;
        match dap {
            true => relay::relay(&debugger, pid, refusal).await,
            false => command_line(&debugger, pid),
        }
    }
}

/// The process to be debugged.
fn worker_of(session: &SessionView) -> Result<u32, Error> {
    if !session.kind.is_fsharp() {
        let reason = format!("it is one of {}; only workers of F# sessions can be debugged", session.kind);
        return Err(Error::InvalidArgument { argument: "the session".to_owned(), reason });
    }
    let pid = session.worker.as_ref().map(|worker| worker.pid).filter(|pid| *pid > 0);
    pid.ok_or_else(|| {
        let fault = session.fault.clone().unwrap_or_else(|| format!("the session is {}", session.state));
        Error::WorkerFailed { reason: format!("there is none to attach to: {fault}") }
    })
}

/// A worker that was started without admits none until it ends.
fn not_admitted(session: &SessionView, pid: u32) -> Error {
    let anew = match session.project {
        Some(_) => "session rebuild --keep",
        None => "session stop",
    };
    let reason = format!(
        "its worker (process {pid}) was started so that no debugger can attach: by `[fsharp] debugging = false`, or by \
         `DOTNET_EnableDiagnostics` in its environment. Where that is changed, and after `mainstay restart`, `mainstay {anew} {}` gives \
         it another worker with the same definitions",
        session.short_id
    );
    Error::InvalidArgument { argument: "the session".to_owned(), reason }
}

/// Whether code was put into the session's worker since it was started. The runtime admits no debugger then, unless only new declarations
/// came, which are in assemblies of their own.
async fn has_swapped(connection: &Connection, session: &SessionView) -> Result<bool, Error> {
    let mut is_swapped = false;
    for_each_event(&connection.client, session, Seq::default(), |event| match &event.body {
        EventBody::WarmUpStarted { .. } => is_swapped = false,
        EventBody::SourcesSwapped(swap) => is_swapped |= swap.is_applied() && !swap.is_nothing(),
        _ => {}
    })
    .await?;
    Ok(is_swapped)
}

/// What helps where the runtime refuses a debugger.
fn refusal(session: &SessionView) -> String {
    format!(
        "what was saved was put into this worker while it ran, and .NET admits no debugger to a process whose code was changed (error \
         0x80131c69). Where it is refused, `mainstay session rebuild --keep {}` gives the session another worker with the same definitions",
        session.short_id
    )
}

/// The debugger's program; where there is none, what was looked for.
fn found(configured: Option<PathBuf>, on_path: impl FnOnce() -> Option<PathBuf>) -> Result<PathBuf, String> {
    match configured {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(format!("there is no file `{}`", path.display())),
        None => on_path().ok_or_else(|| format!("it is not set, and no folder of PATH has `{NETCOREDBG}`")),
    }
}

fn no_debugger(reason: &str, pid: u32) -> Error {
    let reason = format!(
        "{reason}. Its releases are at {RELEASES}. Visual Studio Code's debugger for C# can attach to process {pid} without it: \
         `mainstay debug --json` has the entry for its launch.json"
    );
    Error::InvalidArgument { argument: "`[fsharp] debugger`".to_owned(), reason }
}

/// Becomes the debugger, with this terminal.
fn command_line(debugger: &Path, pid: u32) -> Result<ExitCode, Error> {
    note(&format!(
        "{} attaches to process {pid}, which stands until you say `continue`; `detach` and `quit` leave it running",
        debugger.display()
    ));
    let mut command = Command::new(debugger);
    command.envs(process::temporary_folder(pid).map(|folder| (process::TEMPORARY, folder)));
    let error = command.arg("--interpreter=cli").arg("--attach").arg(pid.to_string()).exec();
    Err(not_started(debugger, &error))
}

fn not_started(debugger: &Path, error: &std::io::Error) -> Error {
    let reason = format!("`{}` could not be started: {error}", debugger.display());
    Error::InvalidArgument { argument: "`[fsharp] debugger`".to_owned(), reason }
}

/// What Visual Studio Code is told to attach to a worker.
fn launch_entry(session: &SessionView, pid: u32) -> Value {
    json!({
        "name": format!("Mainstay: {}", session.name),
        "type": "coreclr",
        "request": "attach",
        "processId": pid,
        "justMyCode": false,
    })
}

async fn assemblies_of(home: &Home, session: &SessionView) -> Vec<DebuggedAssembly> {
    let copies = mainstay_daemon::assemblies_of(home, session.session).await;
    let debugged = |copy: mainstay_kernel::ShadowCopy| DebuggedAssembly {
        symbols: Some(copy.copy.with_extension("pdb")).filter(|symbols| symbols.is_file()),
        built: copy.origin,
        loaded: copy.copy,
    };
    copies.into_iter().map(debugged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debugger_is_what_the_settings_name_else_what_the_path_has() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(found(Some(program.clone()), || None), Ok(program.clone()));
        assert_eq!(found(None, || Some(program.clone())), Ok(program.clone()));
        let none = found(Some("/no/such".into()), || Some(program));
        assert_eq!(
            none,
            Err("there is no file `/no/such`".to_owned()),
            "the path is no way around the settings"
        );
        assert!(found(None, || None).is_err());
    }
}
