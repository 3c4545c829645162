//! From a client to the daemon: find the one that runs, or start one.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_home::config::{Config, DaemonConfig, Ports};
use mainstay_home::environment::client_environment;
use mainstay_home::{Announcement, DaemonRecord, Home, VERSION, program, shows_own_token, transcribing};
use mainstay_model::{Error, Event};
use mainstay_shim::living;
use mainstay_terminal::ProgressLine;
use tokio::sync::mpsc;

/// How long another daemon that is just starting or stopping is waited for. One that starts may wait for shims that do not answer, twice so
/// long as a shim may take to answer and to end.
const RIVAL_SETTLES: Duration = Duration::from_secs(45);
/// The longest time between two attempts to start a daemon beside such a one.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long a daemon that begins anew is waited for.
const BEGINS_ANEW: Duration = Duration::from_secs(60);
/// How long to wait before it is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How many daemons may be lost under one thing that a client has done. More are no accident.
pub const MOST_LOSSES: u32 = 100;
/// How many daemons may end before they serve. One that was killed says no more than one that cannot start.
const MOST_STARTS_CUT_OFF: u32 = 10;

/// A connection, and the events of its subscriptions.
pub struct Connection {
    /// Sends requests to the daemon.
    pub client: Client,
    /// Receives the events of all subscriptions of the connection.
    pub events: mpsc::UnboundedReceiver<Event>,
}

/// Options for a daemon that is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// The ports, where they are not the configured ones.
    pub ports: Ports,
    /// Whether it watches no files.
    pub no_watch: bool,
    /// Whether a supervisor watches over it.
    pub supervised: bool,
}

/// Connects to the daemon that runs, of whatever version.
pub async fn connect_any_version(home: &Home, name: &str) -> Result<Connection, Error> {
    let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
    let token = home.shown_token().ok_or(Error::Unauthorized)?;
    let connected = Client::connect_with(&record.socket, token, name, client_environment());
    let (client, events) = answered(home, record.pid, connected).await?;
    Ok(Connection { client, events })
}

/// Connects to the daemon that runs, of whatever version, and gives its record. One that begins anew is waited for.
///
/// # Errors
/// As [`connect_any_version`].
pub async fn connect_once_it_stands(home: &Home, name: &str) -> Result<(Connection, DaemonRecord), Error> {
    let until = Instant::now() + BEGINS_ANEW;
    loop {
        let before = home.daemon();
        let connected = connect_any_version(home, name).await;
        let now = home.daemon().filter(DaemonRecord::is_alive);
        let is_same = before.map(|before| before.started_at) == now.as_ref().map(|now| now.started_at);
        match (connected, now) {
            (Ok(connection), Some(now)) if is_same => return Ok((connection, now)),
            (Err(Error::DaemonNotRunning), Some(now)) if !is_same || now.begins_anew => {}
            (Ok(_), _) => {}
            (Err(error), _) => return Err(error),
        }
        if Instant::now() >= until {
            return Err(Error::DaemonNotRunning);
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// How long a daemon is waited for that answers what it answers at once.
pub fn answers_within(home: &Home) -> Duration {
    // A daemon says itself what is wrong with the settings.
    let DaemonConfig { answer_ms, .. } = Config::load(home).map(|config| config.daemon).unwrap_or_default();
    Duration::from_millis(answer_ms)
}

/// What the daemon `pid` answers at once.
///
/// # Errors
/// [`Error::DaemonSilent`] where it does not.
pub async fn answered<T>(
    home: &Home,
    pid: u32,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = answers_within(home);
    let silent = Error::DaemonSilent { pid, limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) };
    tokio::time::timeout(limit, answer).await.unwrap_or(Err(silent))
}

/// Connects to the daemon that runs.
pub async fn connect(home: &Home, name: &str) -> Result<Connection, Error> {
    of_this_version(connect_any_version(home, name).await?)
}

/// Connects to the daemon that runs, or starts one first.
pub async fn connect_or_start(home: &Home, name: &str) -> Result<Connection, Error> {
    of_this_version(connect_again(home, name).await?)
}

/// Connects to the daemon that runs, or starts one first, for a client whose daemon is lost. It goes on with one of another version, which
/// `mainstay upgrade` puts in the place of its own: within what it has begun it says nothing new.
pub async fn connect_again(home: &Home, name: &str) -> Result<Connection, Error> {
    let (mut losses, mut starts_cut_off) = (0, 0);
    loop {
        match connect_any_version(home, name).await {
            // Another daemon would not know the token either.
            Err(Error::Unauthorized) if shows_own_token() => return Err(Error::Unauthorized),
            // One that has just been started may be lost before it is reached.
            Err(Error::DaemonNotRunning | Error::Unauthorized) if losses < MOST_LOSSES => losses += 1,
            connected => return connected,
        }
        match start(home, StartOptions::default()).await {
            Err(Error::DaemonFailed { .. }) if starts_cut_off < MOST_STARTS_CUT_OFF => starts_cut_off += 1,
            started => started?,
        }
    }
}

/// A client that begins something does so with a daemon of its own version.
fn of_this_version(connection: Connection) -> Result<Connection, Error> {
    let daemon = &connection.client.daemon.version;
    if daemon == VERSION {
        return Ok(connection);
    }
    Err(Error::DaemonVersionMismatch { daemon: daemon.clone(), program: VERSION.to_owned() })
}

/// Connects to the daemon that runs. Where none runs, but runners have outlived one that was lost, a daemon is started that goes on with them.
///
/// # Errors
/// [`Error::DaemonNotRunning`] where nothing runs at all.
pub async fn connect_or_adopt(home: &Home, name: &str) -> Result<Connection, Error> {
    match connect(home, name).await {
        Err(Error::DaemonNotRunning) if !living(&home.shims()?).is_empty() => {
            connect_or_start(home, name).await
        }
        connected => connected,
    }
}

/// Connects, and has something done over the connection. Where the daemon is lost meanwhile it is done again with the next one: it must be
/// the same whether it is done once or more often.
pub async fn connected<T>(
    home: &Home,
    name: &str,
    done: impl AsyncFnMut(&Connection) -> Result<T, Error>,
) -> Result<(Connection, T), Error> {
    done_over(connect_or_start(home, name).await?, home, name, done).await
}

/// The same for a client that goes on with what it has begun ([`connect_again`]).
pub async fn connected_again<T>(
    home: &Home,
    name: &str,
    done: impl AsyncFnMut(&Connection) -> Result<T, Error>,
) -> Result<(Connection, T), Error> {
    done_over(connect_again(home, name).await?, home, name, done).await
}

async fn done_over<T>(
    mut connection: Connection,
    home: &Home,
    name: &str,
    mut done: impl AsyncFnMut(&Connection) -> Result<T, Error>,
) -> Result<(Connection, T), Error> {
    let mut losses = 0;
    loop {
        match done(&connection).await {
            Err(Error::DaemonNotRunning) if losses < MOST_LOSSES => losses += 1,
            done => return done.map(|done| (connection, done)),
        }
        connection = connect_again(home, name).await?;
    }
}

/// Starts a daemon in the background and waits until it serves. One that another client has just started will do, and one
/// that is just stopping, or begins anew, is waited for.
pub async fn start(home: &Home, options: StartOptions) -> Result<(), Error> {
    let until = Instant::now() + RIVAL_SETTLES;
    let begins_anew = || home.daemon().is_some_and(|record| record.begins_anew && record.is_alive());
    let has_begun_anew = begins_anew();
    while begins_anew() && Instant::now() < until {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    if has_begun_anew && connect_any_version(home, "cli").await.is_ok() {
        return Ok(());
    }
    let mut pause = BETWEEN_LOOKS;
    loop {
        let announced = tokio::task::spawn_blocking(move || spawn_daemon(options)).await;
        match announced.map_err(|error| Error::DaemonFailed { reason: error.to_string() })? {
            Err(Error::StoreLocked) if Instant::now() < until => {}
            announced => return announced,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match connect_any_version(home, "cli").await {
            Ok(_) => return Ok(()),
            Err(error @ Error::DaemonSilent { .. }) => return Err(error),
            Err(_) => {}
        }
    }
}

/// Starts this program as a daemon that belongs to nobody (`mainstay_daemon::background`), and reads what it announces.
fn spawn_daemon(options: StartOptions) -> Result<(), Error> {
    let failed = |reason: String| Error::DaemonFailed { reason };
    let program = program().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--detach");
    if options.supervised {
        command.arg("--supervised");
    }
    command.args(options.ports.arguments()).args(options.no_watch.then_some("--no-watch"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let Some(stdout) = child.stdout.take() else {
        return Err(failed("its announcement is not captured".to_owned()));
    };
    let line = ProgressLine::default();
    let mut announced = BufReader::new(stdout);
    let serves = until_it_serves(&mut announced, |text| line.show(&text));
    // It has started the daemon, and ends.
    child.wait().map_err(|error| failed(error.to_string()))?;
    if serves.is_err() {
        // The daemon ends by itself, and its output with it; what it holds is free only then.
        std::io::copy(&mut announced, &mut std::io::sink()).ok();
    }
    serves
}

/// Reads what a daemon announces until it serves or does not.
fn until_it_serves(announced: impl BufRead, mut show: impl FnMut(String)) -> Result<(), Error> {
    for text in announced.lines().map_while(Result::ok) {
        match serde_json::from_str(&text) {
            Ok(Announcement::Transcribes { reached, last }) => show(transcribing(reached, last)),
            Ok(Announcement::Ready(_)) => return Ok(()),
            Ok(Announcement::Failed(view)) => return Err(view.error),
            Err(_) => break,
        }
    }
    Err(Error::DaemonFailed { reason: "it ended before it served".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    use mainstay_model::Position;

    fn heard(announced: &[Announcement]) -> (Vec<String>, Result<(), Error>) {
        let lines: Vec<_> = announced.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let mut shown = Vec::new();
        let served = until_it_serves(lines.join("\n").as_bytes(), |text| shown.push(text));
        (shown, served)
    }

    #[test]
    fn who_starts_a_daemon_sees_how_far_it_is_with_an_old_store() {
        let step = |reached| Announcement::Transcribes { reached: Position(reached), last: Position(90) };
        let (shown, served) = heard(&[step(40), step(80), Announcement::Failed(Error::StoreLocked.into())]);
        assert_eq!(
            shown,
            ["the store is made ready: 40 of 90 events", "the store is made ready: 80 of 90 events"]
        );
        assert_eq!(served, Err(Error::StoreLocked));
        let (_, cut_off) = heard(&[step(40)]);
        assert!(matches!(cut_off, Err(Error::DaemonFailed { .. })), "{cut_off:?}");
    }
}
