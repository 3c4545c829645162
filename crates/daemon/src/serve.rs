//! The whole life of the daemon: what it opens, joins, serves and closes again.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_arcp::Arcp;
use mainstay_engine::{BufferTerms, Engine, Environments, KindResolver};
use mainstay_gateway::Daemon;
use mainstay_gateway::daemon::fingerprint_of;
use mainstay_gateway::protocol::{Protocol, Protocols};
use mainstay_home::config::{Config, CoverageSource, DaemonConfig, Ports, RemoteOptions, Watch};
use mainstay_home::{Announcement, DaemonRecord, Home, VERSION, transcribing};
use mainstay_http::Http;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_mcp::Mcp;
use mainstay_model::{Error, Timestamp};
use mainstay_pi_protocol::PiProtocol;
use mainstay_rpc::Rpc;
use mainstay_shim::ShimFolder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::announcement::announce;
use crate::kind_rules::MachineKinds;
use crate::kinds::known_kinds;
use crate::listeners::Listeners;
use crate::runners::RunnerSettings;
use crate::telemetry::Telemetry;
use crate::{compilers, logging, shims, watcher};

/// So often it is said how far the daemon is before it serves.
const BETWEEN_WORDS: Duration = Duration::from_secs(1);

/// The daemon itself has some thirty, each session a few, and .NET does not start with a hundred.
const FEWEST_FILES: u64 = 128;

/// How a daemon is run.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The ports asked for; without them the configured ones.
    pub ports: Ports,
    /// Where other machines reach it; without that as configured.
    pub remote: RemoteOptions,
    /// Whether no file is watched, whatever is configured.
    pub no_watch: bool,
    /// Whether whoever started it reads one line of its state, and its log goes to a file.
    pub announce: bool,
    /// Why its environment is not the one that it should have, where that is so.
    pub environment_note: Option<String>,
}

/// How a daemon has ended.
#[derive(Debug)]
pub enum Ended {
    /// It was told to stop.
    Stopped,
    /// It begins anew in the same process.
    BeginsAnew {
        /// As this program, or as its own where none is named.
        program: Option<PathBuf>,
        /// Its port, on which it goes on.
        listener: OwnedFd,
    },
}

/// Serves until it is told to stop. A daemon in the foreground calls `ready` once it serves. `inherited` is the port of the daemon in whose
/// place this one was put.
///
/// # Errors
/// The settings are invalid, or something that the daemon needs cannot be opened.
pub async fn serve(
    home: &Home,
    options: ServeOptions,
    inherited: Option<TcpListener>,
    ready: impl FnOnce(&DaemonRecord),
) -> Result<Ended, Error> {
    let config = Config::load(home);
    let log_bytes =
        config.as_ref().map_or(DaemonConfig::default().log_bytes, |config| config.daemon.log_bytes);
    let telemetry = match &config {
        Ok(config) => Telemetry::start(&config.telemetry),
        Err(_) => Ok(None),
    };
    let traces = telemetry.as_ref().ok().and_then(Option::as_ref).map(Telemetry::traces);
    logging::start(home, options.announce, log_bytes, traces)?;
    let served = match (config, telemetry) {
        (Ok(config), Ok(telemetry)) => {
            let served = run(home, options.clone(), config, inherited, telemetry.as_ref(), ready).await;
            if let Some(telemetry) = telemetry {
                telemetry.end().await;
            }
            served
        }
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    };
    if let Err(error) = &served {
        tracing::error!(%error, "the daemon ends");
        home.tell_failure(std::process::id(), error);
        if options.announce {
            announce(&Announcement::Failed(error.clone().into()));
        }
    }
    served
}

async fn run(
    home: &Home,
    options: ServeOptions,
    mut config: Config,
    inherited: Option<TcpListener>,
    telemetry: Option<&Telemetry>,
    ready: impl FnOnce(&DaemonRecord),
) -> Result<Ended, Error> {
    bound_connections(&mut config)?;
    config.limits.answering_principals = config.answering_principals();
    if let Some(note) = &options.environment_note {
        tracing::warn!("{note}");
    }
    let log = SqliteLog::open(&home.store(), &SqliteOptions::default())?;
    make_entries(&log, options.announce).await;
    let tokens = config.tokens(&home.ensure_token()?, home)?;
    let remote = options.remote.or(&config.remote).read(home.folder(), &tokens)?;
    let listeners = Listeners::open(home, options.ports.or(&config.daemon), inherited, remote).await?;
    let listener = listeners.own_descriptor()?;
    let kinds = known_kinds(home.clone(), &config);
    let settings = RunnerSettings::new(home, &config);
    let shims = home.shims()?;
    settings.end_earlier(mainstay_shim::living(&shims)).await;
    mainstay_shim::end_standbys(&shims).await;
    let mut earlier = ShimFolder::records(&shims);
    let (runners, activity) = shims::factories(home, &settings, &listeners.folder, &config)?;
    if let Some(telemetry) = telemetry {
        mainstay_http::record_also(telemetry.recorder());
    }
    let http = Http::new(&config.limits);
    let protocols = protocols(http.clone(), config.mcp, config.arcp);
    let environments = Environments::in_folder(home.environments(), config.daemon.session_environment_bytes);
    let engine = Engine::open_with(Arc::new(log), runners, config.limits.clone(), environments).await?;
    engine.keep_buffers(buffer_terms(&config));
    engine.start_schedules();
    // The store is this daemon's alone: nobody goes on with what it has not adopted. Those that it has started since are others.
    let adopted = engine.adopted_sessions();
    earlier.retain(|shim| !adopted.contains(&shim.session));
    mainstay_shim::end_all(earlier).await;
    let mut tasks = JoinSet::new();
    keep_warm(&mut tasks, home, &config, &listeners, &activity);
    let watch = if options.no_watch { Watch::Off } else { config.fsharp.watch };
    tasks.spawn(watcher::watch(engine.clone(), watch, config.fsharp.on_obstacle, config.limits));
    let record = record_of(&listeners);
    let daemon = Daemon {
        engine,
        tokens: Arc::new(tokens),
        version: VERSION,
        fingerprint: fingerprint_of(&home.ensure_identity()?),
        port: listeners.port,
        remote: None,
        own_ports: Arc::new(listeners.pi.iter().map(|(_, port)| (PiProtocol::NAME, *port)).collect()),
        links: Arc::default(),
        started_at: record.started_at,
        kind_resolver: KindResolver::new(MachineKinds { home: home.clone() }),
        kinds,
        home: home.folder().into(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        answering: TaskTracker::new(),
        begins_anew: Arc::default(),
    };
    stop_on_signal(daemon.clone(), options.announce)?;
    home.write_daemon(&record)?;
    let (socket, sockets) = (listeners.socket.clone(), listeners.folder.clone());
    announce_ready(&record, options.announce, ready);
    if let Some(telemetry) = telemetry {
        tasks.spawn(telemetry.measure(http.daemon(daemon.clone())));
    }
    listeners.serve(&daemon, &protocols, &mut tasks);
    let beside = daemon.clone();
    tokio::spawn(async move { protocols.run(&beside).await });
    daemon.asked_to_end().await;
    tracing::info!("the daemon stops");
    shut_down(home, &daemon, record).await?;
    std::fs::remove_file(&socket).ok();
    home.clear_run_folder(&sockets);
    tasks.abort_all();
    // From here on none is made any more.
    let _stops = activity.begins();
    mainstay_shim::end_standbys(&shims).await;
    let begins_anew = daemon.begins_anew.decide();
    if begins_anew.is_none() {
        mainstay_shim::see_off_all(&shims).await;
    }
    Ok(begins_anew.map_or(Ended::Stopped, |program| Ended::BeginsAnew { program, listener }))
}

/// Has no more connections than the process may have files for.
fn bound_connections(config: &mut Config) -> Result<(), Error> {
    if let Some(files) = allow_files()? {
        // The other half is for what they ask for.
        let connections = usize::try_from(files / 2).unwrap_or(usize::MAX);
        config.limits.http_connections = config.limits.http_connections.min(connections);
    }
    Ok(())
}

/// How unsaved texts are dealt with.
fn buffer_terms(config: &Config) -> BufferTerms {
    let most = config.fsharp.swaps_per_worker;
    let config = &config.tests;
    BufferTerms {
        texts: Some(most).filter(|most| *most > 0),
        mirrors: config.mirrors,
        idle: Duration::from_millis(config.mirror_idle_ms),
        run: Duration::from_millis(config.buffer_ms),
        test: Duration::from_millis(config.buffer_test_ms),
        memory_bytes: config.mirror_memory_bytes,
        available_bytes: mainstay_os::system::available_bytes,
        policies: config.policies(),
        measures: config.coverage == CoverageSource::Measured,
        measure: Duration::from_millis(config.measure_ms),
        measure_test: Duration::from_millis(config.measure_test_ms),
    }
}

/// Keeps compilers warm, as part of the daemon's tasks.
fn keep_warm(
    tasks: &mut JoinSet<()>,
    home: &Home,
    config: &Config,
    listeners: &Listeners,
    activity: &mainstay_shim::Activity,
) {
    let sockets = listeners.folder.clone();
    tasks.spawn(compilers::serve(home.clone(), config.fsharp.clone(), sockets, activity.clone()));
}

/// What is known of this daemon to its clients.
fn record_of(listeners: &Listeners) -> DaemonRecord {
    DaemonRecord {
        pid: std::process::id(),
        port: listeners.port,
        remote: listeners.remote.as_ref().map(|(_, address, _)| *address),
        version: VERSION.to_owned(),
        started_at: Timestamp::now(),
        socket: listeners.socket.clone(),
        begins_anew: false,
        failure: None,
    }
}

/// Shuts the daemon down. Its record goes with it, or says before any client misses it that it begins anew.
async fn shut_down(home: &Home, daemon: &Daemon, record: DaemonRecord) -> Result<(), Error> {
    if daemon.begins_anew.decide().is_some() {
        home.write_daemon(&DaemonRecord { begins_anew: true, ..record })?;
        daemon.stop.cancel();
        daemon.shut_down().await;
    } else {
        daemon.shut_down().await;
        home.clear_daemon(record.pid);
    }
    Ok(())
}

/// Says that the daemon serves: to the process that started it in the background, or by `ready`.
fn announce_ready(record: &DaemonRecord, announces: bool, ready: impl FnOnce(&DaemonRecord)) {
    let port = record.port;
    tracing::info!(port, version = VERSION, "the daemon serves");
    if announces {
        announce(&Announcement::Ready(record.clone()));
        let_go_of_output();
    } else {
        ready(record);
    }
}

/// The protocols that clients can speak. Each enters itself; a new one is a line here.
fn protocols(http: Http, mcp: mainstay_mcp::Settings, arcp: mainstay_arcp::Settings) -> Protocols {
    let all: [Arc<dyn Protocol>; 5] = [
        Arc::new(Rpc),
        Arc::new(http),
        Arc::new(Mcp::new(mcp)),
        Arc::new(PiProtocol::default()),
        Arc::new(Arcp::new(arcp)),
    ];
    Protocols::new(all)
}

/// Makes the entries that a store of an older schema lacks, which takes long where it is large: who waits for the daemon sees how
/// far it is, and else the first who reads them would wait without a word.
async fn make_entries(log: &SqliteLog, announces: bool) {
    let mut told = Instant::now();
    let made = log.transcribe(|reached, last| {
        if told.elapsed() >= BETWEEN_WORDS {
            told = Instant::now();
            tracing::info!("{}", transcribing(reached, last));
            if announces {
                announce(&Announcement::Transcribes { reached, last });
            }
        }
    });
    // Code can run all the same, and who reads entries hears of it.
    if let Err(error) = made.await {
        tracing::error!(%error, "the entries of the store are not made");
    }
}

/// Asks for as many open files as the system gives, where that is enough to begin, and says how many those are: each connection is one,
/// and many systems give a process a thousand where it does not ask for more.
fn allow_files() -> Result<Option<u64>, Error> {
    let limit = getrlimit(Resource::Nofile);
    let (before, most) = (limit.current, limit.maximum);
    let allowed = match setrlimit(Resource::Nofile, Rlimit { current: most, ..limit }) {
        Ok(()) => most,
        Err(error) => {
            tracing::debug!(%error, "the number of open files stays as it is");
            before
        }
    };
    match allowed {
        Some(limit) if limit < FEWEST_FILES => Err(Error::TooFewFiles { limit, needed: FEWEST_FILES }),
        Some(_) | None => Ok(allowed),
    }
}

/// A terminal that closes ends a daemon in its foreground, and not one in the background.
fn stop_on_signal(daemon: Daemon, is_in_background: bool) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::DaemonFailed { reason: error.to_string() };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv(), if !is_in_background => {}
        }
        if daemon.stop().is_err() {
            tracing::warn!("a signal to stop came too late: the daemon begins anew");
        }
    });
    Ok(())
}

/// Closes standard output, which is whoever's started the daemon: nobody waits for its end in vain.
fn let_go_of_output() {
    let closed = std::fs::OpenOptions::new().write(true).open("/dev/null");
    if let Err(error) = closed.and_then(|null| Ok(rustix::stdio::dup2_stdout(null)?)) {
        tracing::warn!(%error, "standard output stays open");
    }
}
