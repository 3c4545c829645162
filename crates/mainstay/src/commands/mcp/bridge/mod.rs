//! The bridge of `mainstay mcp`: from a client's standard input and output to whatever daemon there is. It ends with its client and with nothing
//! else; a daemon that is gone is connected to again, or started, and the client is told only what it could not otherwise know.
//!
//! [`core`] decides what is said to whom, [`message`] reads what was said, [`reach`] finds a daemon, and [`outlet`] writes without losing a line.
//! What is here moves lines between them.

mod core;
mod line_writer;
mod message;
mod reach;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use mainstay_client::Stream;
use mainstay_home::config::Config;
use mainstay_home::{DaemonRecord, Home};
use mainstay_mcp::{AnyLines, Results, unreadable};
use mainstay_model::{Error, SessionId};
use mainstay_terminal as terminal;
use tokio::io::{AsyncRead, stdin, stdout};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use uuid::Uuid;

use self::core::{Bounds, Bridge, DaemonEnd, Silence, To};
use self::line_writer::LineWriter;
use self::reach::{Reach, Reached, is_passing};

/// A daemon that owes an answer may be silent for this long, however short the wait for a daemon is.
const LEAST_SILENCE: Duration = Duration::from_secs(1);
/// How long to wait before a daemon is looked for again, the first time; twice as long each time after that.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such wait while somebody waits for the daemon.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The same while nobody does.
const LONGEST_QUIET_PAUSE: Duration = Duration::from_secs(5);
/// How much may wait for one side before the other is not read any more, in bytes.
const ROOM: usize = 1024 * 1024;

/// Serves the client on standard input and output. A request waits this long for a daemon before it is answered that there is none; results
/// are in this form, where one is asked for.
pub(super) async fn serve(
    home: &Home,
    folder: String,
    patience: Duration,
    results: Option<Results>,
) -> Result<ExitCode, Error> {
    // A daemon says itself what is wrong with the settings.
    let limits = Config::load(home).map(|config| config.limits).unwrap_or_default();
    let bounds = Bounds { line_bytes: limits.message_bytes, requests: limits.connection_requests };
    let reach = Reach::new(home.clone(), folder);
    let attempt = Attempt::begin(&reach, None, Duration::ZERO, true);
    let shell = Shell {
        bridge: Bridge::new(bounds, results),
        reach,
        patience,
        to_client: LineWriter::new(stdout()),
        link: Link::Down(attempt),
    };
    shell.run(FramedRead::new(stdin(), AnyLines::up_to(limits.message_bytes))).await
}

/// The bridge with its two sides.
struct Shell {
    bridge: Bridge,
    reach: Reach,
    patience: Duration,
    to_client: LineWriter,
    link: Link,
}

/// The way to a daemon.
enum Link {
    Up(Connection),
    Down(Attempt),
}

/// A daemon that is connected.
struct Connection {
    from_daemon: FramedRead<Box<dyn AsyncRead + Send + Unpin>, LinesCodec>,
    to_daemon: LineWriter,
    /// What the home says of the daemon.
    record: DaemonRecord,
    /// Since when it is to say something, and is read, and says nothing.
    silent: Option<Instant>,
}

/// Looking for a daemon.
struct Attempt {
    reached: BoxFuture<'static, Result<Reached, Error>>,
    /// Whether one is started where none runs.
    starts: bool,
    /// How long the next attempt waits, should this one fail.
    pause: Duration,
    /// Since when somebody waits who was not answered yet.
    awaited: Option<Instant>,
    /// Why the last attempt failed.
    refused: Option<Error>,
}

impl Attempt {
    fn begin(reach: &Reach, session: Option<SessionId>, pause: Duration, starts: bool) -> Self {
        let reach = reach.clone();
        let reached = Box::pin(async move {
            sleep(pause).await;
            reach.daemon(session, starts).await
        });
        Self { reached, starts, pause: (pause * 2).max(FIRST_PAUSE), awaited: None, refused: None }
    }
}

/// What happened at the daemon's side.
enum News {
    Said(String),
    /// It is to say something, and has not for as long as it may.
    Silent,
    Lost,
    Reached(Result<Reached, Error>),
    /// Who waits has waited long enough.
    TooLong,
}

impl Link {
    /// What happens next. A daemon is read only where there is room for what it says.
    async fn next(&mut self, has_room: bool, patience: Duration) -> News {
        match self {
            Self::Up(Connection { from_daemon, to_daemon, silent, .. }) => loop {
                let until = silent.map(|since| since + patience);
                let too_long = async {
                    match until {
                        Some(until) => sleep_until(until).await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    said = from_daemon.next(), if has_room => return match said {
                        Some(Ok(said)) => {
                            *silent = None;
                            News::Said(said)
                        }
                        Some(Err(_)) | None => News::Lost,
                    },
                    () = too_long => {
                        *silent = None;
                        return News::Silent;
                    }
                    // Where nothing can be written any more, what the daemon said last is still to be read.
                    sent = to_daemon.send_next() => if sent.is_err() { to_daemon.abandon() },
                }
            },
            Self::Down(attempt) => {
                let too_long = async {
                    match attempt.awaited {
                        Some(since) => sleep_until(since + patience).await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    reached = &mut attempt.reached => News::Reached(reached),
                    () = too_long => News::TooLong,
                }
            }
        }
    }

    /// Notes whether the daemon is to say something, and is read.
    fn note_awaited(&mut self, is_awaited: bool) {
        if let Self::Up(Connection { silent, .. }) = self {
            *silent = is_awaited.then(|| silent.unwrap_or_else(Instant::now));
        }
    }

    /// How much waits for the daemon, in bytes.
    fn waiting(&self) -> usize {
        match self {
            Self::Up(connection) => connection.to_daemon.waiting(),
            Self::Down(_) => 0,
        }
    }
}

impl Shell {
    async fn run(
        mut self,
        mut from_client: FramedRead<impl AsyncRead + Unpin, AnyLines>,
    ) -> Result<ExitCode, Error> {
        let mut has_ended = false;
        loop {
            // Without a daemon, it is the bridge that answers.
            let is_down = matches!(self.link, Link::Down(_));
            let is_full = self.to_client.waiting() > ROOM;
            let takes_more = self.link.waiting() <= ROOM && !(is_down && is_full);
            if has_ended && is_down && !self.bridge.wants_daemon() {
                break;
            }
            if has_ended && let Link::Up(connection) = &mut self.link {
                connection.to_daemon.close();
            }
            self.link.note_awaited(self.bridge.awaits_daemon() && !is_full);
            tokio::select! {
                said = from_client.next(), if !has_ended && takes_more => match said {
                    Some(Ok(Ok(line))) => {
                        let said = self.bridge.client_says(&line, Uuid::now_v7());
                        self.say(said);
                        self.hurry();
                    }
                    Some(Ok(Err(error @ LinesCodecError::MaxLineLengthExceeded)))
                    | Some(Ok(Err(error @ LinesCodecError::Io(_)))) => self.to_client.put(unreadable(&error)),
                    Some(Err(_)) | None => has_ended = true,
                },
                news = self.link.next(!is_full, self.patience.max(LEAST_SILENCE)) => match news {
                    News::Said(line) => {
                        let said = self.bridge.daemon_says(&line);
                        self.say(said);
                    }
                    News::Silent => {
                        self.doubt();
                        if has_ended && matches!(self.link, Link::Down(_)) {
                            break;
                        }
                    }
                    News::Lost => {
                        let said = self.bridge.lost(self.end());
                        self.say(said);
                        // It has answered all that was asked, or the client has gone too: there is nobody to start another for.
                        if has_ended {
                            break;
                        }
                        self.link = Link::Down(self.attempt(Duration::ZERO));
                        self.hurry();
                    }
                    News::Reached(Ok(reached)) => self.connect(reached),
                    News::Reached(Err(error)) => self.look_again(error),
                    News::TooLong => self.give_up(),
                },
                sent = self.to_client.send_next() => if sent.is_err() {
                    // The client reads nothing any more.
                    return Err(Error::BadRequest { reason: "the client has closed its end".to_owned() });
                },
            }
        }
        self.to_client.finish().await;
        if self.bridge.owes_answers() { Err(Error::DaemonNotRunning) } else { Ok(ExitCode::SUCCESS) }
    }

    fn say(&mut self, said: Vec<To>) {
        for to in said {
            match (to, &mut self.link) {
                (To::Client(line), _) => self.to_client.put(line),
                (To::Daemon(line), Link::Up(connection)) => connection.to_daemon.put(line),
                // The core says nothing to a daemon that is not connected.
                (To::Daemon(_), Link::Down(_)) => {}
            }
        }
    }

    /// Looks for a daemon after a pause, and starts one where somebody waits for it.
    fn attempt(&self, pause: Duration) -> Attempt {
        Attempt::begin(&self.reach, self.bridge.session(), pause, self.bridge.wants_daemon())
    }

    /// Has a daemon started now where one is only looked for, and somebody waits.
    fn hurry(&mut self) {
        let Link::Down(attempt) = &mut self.link else { return };
        if !self.bridge.wants_daemon() {
            return;
        }
        let now = Instant::now();
        if attempt.starts {
            attempt.awaited.get_or_insert(now);
        } else {
            let begun = self.attempt(Duration::ZERO);
            self.link = Link::Down(Attempt { awaited: Some(now), ..begun });
        }
    }

    fn connect(&mut self, reached: Reached) {
        let Reached { stream, version, record } = reached;
        let (read, write): Stream = stream;
        let from_daemon: Box<dyn AsyncRead + Send + Unpin> = Box::new(read);
        self.link = Link::Up(Connection {
            from_daemon: FramedRead::new(from_daemon, LinesCodec::new()),
            to_daemon: LineWriter::new(write),
            record,
            silent: None,
        });
        let said = self.bridge.connected(&version);
        self.say(said);
    }

    /// The daemon has been silent for too long: it is asked whether it is there, or taken to hang. Then the connection is given up, so that it runs nothing
    /// again, and the next one waits for it to go on or to end.
    fn doubt(&mut self) {
        let Link::Up(Connection { record, .. }) = &self.link else { return };
        let pid = record.pid;
        let said = match self.bridge.heard_nothing() {
            Silence::Ask(ping) => vec![ping],
            Silence::Hang => {
                let error = self.silence_of(pid);
                terminal::show_error(&error);
                let said = self.bridge.hangs(&error);
                self.link = Link::Down(self.attempt(Duration::ZERO));
                said
            }
        };
        self.say(said);
    }

    /// How the daemon has ended whose connection is lost.
    fn end(&self) -> DaemonEnd {
        match &self.link {
            Link::Up(connection) => self.reach.end_of(&connection.record),
            Link::Down(_) => DaemonEnd::Lost,
        }
    }

    fn silence_of(&self, pid: u32) -> Error {
        Error::DaemonSilent { pid, limit_ms: u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX) }
    }

    /// No daemon was reached: who waits is answered where waiting longer would not help, and it is tried again later.
    fn look_again(&mut self, error: Error) {
        let Link::Down(Attempt { starts, pause, awaited, .. }) = self.link else { return };
        if starts && !is_passing(&error) {
            self.answer_without(&error);
            self.link = Link::Down(self.attempt(LONGEST_QUIET_PAUSE));
            return;
        }
        let longest = if self.bridge.wants_daemon() { LONGEST_PAUSE } else { LONGEST_QUIET_PAUSE };
        let next = self.attempt(pause.min(longest));
        self.link = Link::Down(Attempt { awaited, refused: Some(error), ..next });
    }

    /// Who waits has waited long enough; the attempt goes on.
    fn give_up(&mut self) {
        let Link::Down(attempt) = &mut self.link else { return };
        attempt.awaited = None;
        let refused = attempt.refused.clone();
        let error = match (self.reach.asked(), refused) {
            (Some(pid), _) => self.silence_of(pid),
            (None, Some(refused)) => refused,
            (None, None) => {
                let reason = format!("none was there within {} ms", self.patience.as_millis());
                Error::DaemonFailed { reason }
            }
        };
        self.answer_without(&error);
    }

    /// Answers who waits that there is no daemon, and why.
    fn answer_without(&mut self, error: &Error) {
        terminal::show_error(error);
        let said = self.bridge.unavailable(error);
        self.say(said);
    }
}
