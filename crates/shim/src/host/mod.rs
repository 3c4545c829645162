//! The shim's side: a process that hosts one runner.
//!
//! [`serve`] waits for the daemon that started it, has the runner started ([`start`]), maybe ahead of its session ([`standby`]), and goes on until the runner is gone and all that it
//! said is taken, or nobody has come for it for too long. One task has all state ([`Host`]); what takes time (giving the runner something,
//! asking it, writing to the daemon) is done beside it.

mod connection;
mod deliver;
mod heeded;
mod retained;
mod secrets_out;
mod standby;
mod start;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mainstay_model::{Epoch, NoticeNumber, RunnerId, RunnerNotice, Seq, SessionId, SessionKind};
use mainstay_runner::{Runner, RunnerFactory, StartedRunner};
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use self::connection::Connection;
use self::deliver::{Order, deliver, runner_answer};
use self::heeded::Heeded;
use self::retained::{Retained, write_frames};
use self::secrets_out::secrets_out;
use self::start::Started;
use self::visitor::{Visitor, common_protocol};
use crate::folder::{ShimFolder, ShimRecord};
use crate::leftover::Leftover;
use crate::messages::{
    FromShim, Hello, Purpose, Refusal, RunnerDescription, Terms, ToShim, Welcome, decode, encode,
};

pub(crate) use self::retained::read_frames;

/// How long whoever connects may take to say who it is, and the first who does to come.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);

/// How long a runner that is killed may take to be gone, and a daemon to hear the last of it.
const FAREWELL: Duration = Duration::from_secs(5);

/// Makes the factory of a kind of session from what the daemon sent.
pub type MakeFactory = Box<dyn Fn(&Value, &SessionKind) -> Option<Arc<dyn RunnerFactory>> + Send + Sync>;

/// Hosts the runner of one session until it is done. The daemon that started this process connects to `listener`.
pub async fn serve(listener: UnixListener, folder: ShimFolder, version: &str, make: MakeFactory) {
    let socket = listener.local_addr().ok().and_then(|address| address.as_pathname().map(ToOwned::to_owned));
    match start::started(&listener, folder.clone(), version, &make).await {
        Some((started, folder)) => Host::new(started, folder).run(listener).await,
        None if folder.is_of_standby() => folder.remove(),
        // Another shim may have moved into the folder of the session by now.
        None => {}
    }
    if let Some(sockets) = socket.as_deref().and_then(std::path::Path::parent) {
        // What stays behind does no harm.
        std::fs::remove_dir_all(sockets).ok();
    }
}

/// A runner, and all that is known of those who have it.
struct Host {
    folder: ShimFolder,
    token: String,
    session: SessionId,
    terms: Terms,
    id: RunnerId,
    runner: Runner,
    /// What the runner says; none once it is gone.
    notices: Option<mpsc::Receiver<RunnerNotice>>,
    orders: mpsc::UnboundedSender<Order>,
    retained: Retained,
    heeded: Heeded,
    /// The last notice of a job that was given secrets.
    secret_up_to: NoticeNumber,
    /// The newest epoch of those who had the session.
    epoch: Epoch,
    /// The event up to which the session is known to be stored.
    stored: Seq,
    connection: Option<Connection>,
    /// When it ends, where nobody has it and no job runs.
    ends_at: Option<Instant>,
}

/// What the host heard next.
enum Next {
    Said(Option<RunnerNotice>),
    Told(Option<ToShim>),
    Visited(Visitor),
    Orphaned,
    Terminated,
}

/// Whether the host goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    /// It ends: what nobody has taken is left.
    Over,
    /// It was told to end: nobody wants what it has to say.
    Killed,
}

impl Host {
    fn new(started: Started, folder: ShimFolder) -> Self {
        let Started { hello, terms, runner, incoming, outgoing } = started;
        let StartedRunner { id, runner, next, notices } = runner;
        let Terms { buffer_bytes, file_bytes, .. } = terms;
        let retained = Retained::new(next, buffer_bytes, folder.overflow(), file_bytes);
        let connection = Connection::new(incoming, outgoing, next.previous());
        let (orders, ordered) = mpsc::unbounded_channel();
        tokio::spawn(deliver(runner.clone(), ordered));
        let host = Self {
            folder,
            token: hello.token,
            session: hello.session,
            terms,
            id,
            runner,
            notices: Some(notices),
            orders,
            retained,
            heeded: Heeded::default(),
            secret_up_to: NoticeNumber::default(),
            epoch: hello.epoch,
            stored: Seq::ZERO,
            connection: Some(connection),
            ends_at: None,
        };
        if let Some(connection) = &host.connection {
            connection.send(&FromShim::Started { runner: host.description() });
        }
        host
    }

    fn description(&self) -> RunnerDescription {
        let is_agent = matches!(self.runner, Runner::Agent(_));
        RunnerDescription { id: self.id, is_agent, pauses: is_agent, info: self.runner.process().info() }
    }

    async fn run(mut self, listener: UnixListener) {
        let (visitors_in, mut visitors) = mpsc::channel(8);
        let door = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let visitors = visitors_in.clone();
                tokio::spawn(async move {
                    if let Some(visitor) = Visitor::of(stream).await {
                        visitors.send(visitor).await.ok();
                    }
                });
            }
        });
        let mut terminate = signal(SignalKind::terminate()).ok();
        let mut goes = Goes::On;
        while goes == Goes::On {
            goes = match self.next(&mut visitors, &mut terminate).await {
                Next::Said(notice) => self.hear(notice),
                Next::Told(Some(message)) => self.obey(message),
                Next::Told(None) => self.let_go(),
                Next::Visited(visitor) => self.receive(visitor).await,
                Next::Orphaned | Next::Terminated => Goes::Over,
            };
        }
        self.end(goes).await;
        door.abort();
    }

    async fn next(
        &mut self,
        visitors: &mut mpsc::Receiver<Visitor>,
        terminate: &mut Option<unix::Signal>,
    ) -> Next {
        let ends_at = self.ends_at;
        let has_room = match self.heeded.has_secrets() {
            true => self.retained.has_room_in_memory(),
            false => self.retained.has_room(),
        };
        tokio::select! {
            biased;
            () = terminated(terminate) => Next::Terminated,
            Some(visitor) = visitors.recv() => Next::Visited(visitor),
            message = told(&mut self.connection) => Next::Told(message),
            notice = said(&mut self.notices), if has_room => Next::Said(notice),
            () = sleep_until(ends_at.unwrap_or_else(Instant::now)), if ends_at.is_some() => Next::Orphaned,
        }
    }

    /// Keeps what the runner says, and tells it.
    fn hear(&mut self, notice: Option<RunnerNotice>) -> Goes {
        let Some(mut notice) = notice else {
            self.notices = None;
            self.heeded.is_gone();
            self.look_whether_orphaned();
            return self.is_over();
        };
        let number = self.retained.next();
        self.heeded.hears(number, &mut notice);
        if self.heeded.has_secrets() {
            self.secret_up_to = number;
        }
        let frame = encode(&FromShim::Notice { number, notice });
        match frame {
            // What a secret may stand in does not come to lie in a file.
            Ok(frame) if self.heeded.has_secrets() => self.retained.keep_in_memory(frame),
            Ok(frame) => {
                if let Err(error) = self.retained.keep(frame) {
                    tracing::error!(%error, "notices cannot be kept in the file; the worker waits");
                }
            }
            // Nothing that can be written as JSON is not; a gap would be worse than an end.
            Err(error) => {
                tracing::error!(%error, "a notice cannot be kept; the runner is ended");
                return Goes::Over;
            }
        }
        self.tell();
        self.look_whether_orphaned();
        Goes::On
    }

    fn tell(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.tell(&self.retained);
        }
    }

    /// Whether all is done: the runner is gone, and whoever has the session has stored all that it said.
    fn is_over(&self) -> Goes {
        match self.notices.is_none() && self.retained.is_empty() {
            true => Goes::Over,
            false => Goes::On,
        }
    }

    fn obey(&mut self, message: ToShim) -> Goes {
        match message {
            ToShim::Run { submission } => self.begin(submission.job, Order::Run(submission)),
            ToShim::Build { job } => self.begin(job, Order::Build(job)),
            ToShim::TakeComm { job, message } => self.begin(job, Order::TakeComm(job, message)),
            ToShim::Work { job, work, is_bounded } => self.begin(job, Order::Work(job, work, is_bounded)),
            ToShim::Expect { upcoming } => self.give(Order::Expect(upcoming)),
            ToShim::Steer { queued, requested } => {
                if self.heeded.steers(requested) {
                    self.give(Order::Steer(queued, requested));
                }
            }
            ToShim::Pause { job, ask } => {
                if self.heeded.pauses(job, ask) {
                    self.give(Order::Pause(job, ask));
                }
            }
            ToShim::Answer { answer } => {
                if self.heeded.answers(&answer) {
                    self.give(Order::Answer(answer));
                }
            }
            ToShim::Interrupt { job } => {
                if self.heeded.interrupts(job) {
                    self.give(Order::Interrupt);
                }
            }
            ToShim::Acknowledge { up_to, stored } => {
                self.stored = self.stored.max(stored);
                let told = self.connection.as_ref().map_or(up_to, Connection::told);
                return self.acknowledge(up_to.min(told));
            }
            ToShim::Consumed { up_to } => {
                if let Some(connection) = &mut self.connection {
                    connection.has_consumed(up_to);
                }
                self.tell();
            }
            ToShim::Question { id, question } => {
                if let Some(connection) = &self.connection {
                    let (runner, answers) = (self.runner.clone(), connection.answers());
                    tokio::spawn(async move {
                        let answer = runner_answer(&runner, question).await;
                        answers.send(&FromShim::Answer { id, answer });
                    });
                }
            }
            ToShim::Kill => return Goes::Killed,
        }
        Goes::On
    }

    fn begin(&mut self, job: mainstay_model::JobId, order: Order) {
        if self.heeded.begins(job) {
            self.give(order);
        }
    }

    fn give(&self, order: Order) {
        // The task that delivers ends with this one.
        self.orders.send(order).ok();
    }

    fn acknowledge(&mut self, up_to: NoticeNumber) -> Goes {
        if let Err(error) = self.retained.acknowledge(up_to) {
            tracing::error!(%error, "kept notices cannot be read; the runner is ended");
            return Goes::Over;
        }
        self.tell();
        self.is_over()
    }

    /// The daemon is gone.
    fn let_go(&mut self) -> Goes {
        tracing::info!("the daemon is gone; the runner goes on");
        self.connection = None;
        self.look_whether_orphaned();
        Goes::On
    }

    /// The time that it waits for a daemon begins once no job runs.
    fn look_whether_orphaned(&mut self) {
        let is_orphaned = self.connection.is_none() && !self.heeded.is_busy();
        let waits = Duration::from_millis(self.terms.orphan_ms);
        self.ends_at = is_orphaned.then(|| self.ends_at.unwrap_or_else(|| Instant::now() + waits));
    }

    /// Obeys whoever owns the session in a newer epoch than all before.
    async fn receive(&mut self, mut visitor: Visitor) -> Goes {
        let protocol = match self.admit(&visitor.hello) {
            Ok(protocol) => protocol,
            Err(reason) => {
                // Beside: it may read slowly.
                tokio::spawn(visitor.refuse(reason));
                return Goes::On;
            }
        };
        self.epoch = visitor.hello.epoch;
        // Nothing that the one before has sent is heeded any more.
        self.connection = None;
        let pid = std::process::id();
        let Purpose::Adopt { stored } = visitor.hello.purpose else {
            tracing::info!("a daemon ends the runner");
            visitor.outgoing.send(&Welcome::Obeys { protocol, pid }).await.ok();
            self.connection = Some(Connection::new(visitor.incoming, visitor.outgoing, self.retained.next()));
            return Goes::Killed;
        };
        if stored.taken.runner == self.id {
            self.stored = self.stored.max(stored.last_seq);
            if self.acknowledge(stored.taken.up_to) == Goes::Over {
                // The daemon has all of it, and finds the runner gone.
                return Goes::Over;
            }
        }
        let next = self.retained.first();
        self.heeded.is_adopted(next);
        let mut connection = Connection::new(visitor.incoming, visitor.outgoing, next.previous());
        let (runner, given, is_gone) = (self.description(), self.heeded.given(), self.notices.is_none());
        connection.send(&Welcome::Adopted { protocol, pid, runner, next, given, is_gone });
        connection.tell(&self.retained);
        self.connection = Some(connection);
        self.note_epoch();
        self.look_whether_orphaned();
        tracing::info!(epoch = self.epoch.0, "a daemon has adopted the runner");
        Goes::On
    }

    /// Says in the record under which epoch it is had.
    fn note_epoch(&self) {
        if let Some(record) = self.folder.record().filter(|record| record.token == self.token)
            && let Err(error) = self.folder.write_record(&ShimRecord { epoch: self.epoch, ..record })
        {
            tracing::warn!(%error, "the record of the shim does not say whose it is");
        }
    }

    /// The version that is spoken with a visitor, or why it is not obeyed.
    fn admit(&self, hello: &Hello) -> Result<u32, Refusal> {
        if hello.token != self.token || hello.session != self.session {
            return Err(Refusal::Stranger);
        }
        let protocol = common_protocol(hello)?;
        if hello.epoch <= self.epoch {
            return Err(Refusal::StaleEpoch { newest: self.epoch });
        }
        match &hello.purpose {
            Purpose::Adopt { stored } if stored.last_seq < self.stored => {
                Err(Refusal::StoreIsBehind { stored: self.stored })
            }
            Purpose::Start { .. } | Purpose::StandBy { .. } => Err(Refusal::Stranger),
            Purpose::Adopt { .. } | Purpose::End => Ok(protocol),
        }
    }

    /// Ends the runner. What nobody has taken stays in a file where nobody is there to take it.
    async fn end(self, goes: Goes) {
        let description = self.description();
        let Self {
            folder,
            session,
            runner,
            mut notices,
            orders,
            mut retained,
            mut heeded,
            epoch,
            stored,
            mut connection,
            mut secret_up_to,
            token,
            ..
        } = self;
        runner.process().kill();
        drop((runner, orders));
        let gone = async {
            while let Some(notices) = &mut notices {
                let Some(mut notice) = notices.recv().await else { return };
                let number = retained.next();
                heeded.hears(number, &mut notice);
                if heeded.has_secrets() {
                    secret_up_to = number;
                }
                let Ok(frame) = encode(&FromShim::Notice { number, notice }) else { return };
                // There is no file any more, and soon no process that has it in memory.
                retained.keep_in_memory(frame);
            }
        };
        if timeout(FAREWELL, gone).await.is_err() {
            tracing::warn!("the runner is not gone in time");
        }
        if let Some(connection) = &mut connection
            && goes == Goes::Over
        {
            connection.tell(&retained);
        }
        if let Some(connection) = connection {
            connection.close(FAREWELL).await;
        }
        if goes == Goes::Killed || retained.is_empty() {
            return folder.remove_of(&token);
        }
        if folder.record().is_none_or(|record| record.token != token) {
            // Another shim of the session has moved in.
            return;
        }
        let (next, given) = (retained.first(), heeded.given());
        let left = Leftover { runner: description, session, next, given, stored, epoch };
        let frames = retained.give_up().map(|frames| for_file(next, frames, secret_up_to, &heeded));
        let written = frames.and_then(|frames| write_frames(&folder.left_notices(), &frames));
        let written = written.and_then(|()| left.write(&folder));
        match written {
            Ok(()) => tracing::info!("nobody came for the runner; what it said is left in a file"),
            Err(error) => tracing::error!(%error, "what the runner said is lost"),
        }
    }
}

/// Notices as they may lie in a file: those up to one are of a job that was given secrets, or came before it.
fn for_file(
    first: NoticeNumber,
    frames: Vec<Bytes>,
    secret_up_to: NoticeNumber,
    heeded: &Heeded,
) -> Vec<Bytes> {
    let secret = usize::try_from((secret_up_to.0 + 1).saturating_sub(first.0)).unwrap_or(usize::MAX);
    let (secret, rest) = frames.split_at(secret.min(frames.len()));
    let notices = secret.iter().filter_map(|frame| match decode::<FromShim>(frame) {
        Ok(FromShim::Notice { notice, .. }) => Some(notice),
        Ok(_) | Err(_) => None,
    });
    let masks = heeded.has_secrets().then(|| heeded.masks());
    let numbers = std::iter::successors(Some(first), |number| Some(number.next()));
    let masked = secrets_out(notices.collect(), masks).into_iter().zip(numbers);
    let masked =
        masked.map(|(notice, number)| encode(&FromShim::Notice { number, notice }).unwrap_or_default());
    masked.chain(rest.iter().cloned()).collect()
}

async fn terminated(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

async fn told(connection: &mut Option<Connection>) -> Option<ToShim> {
    match connection {
        Some(connection) => connection.next().await,
        None => std::future::pending().await,
    }
}

async fn said(notices: &mut Option<mpsc::Receiver<RunnerNotice>>) -> Option<RunnerNotice> {
    match notices {
        Some(notices) => notices.recv().await,
        None => std::future::pending().await,
    }
}
