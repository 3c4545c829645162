//! The standby: a process that is started ahead of the session it is for, in a shim of no session. There is one at most. The next start
//! with an equal plan takes it, and another is made once nobody waits for anything.

use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mainstay_model::{Epoch, Error, SessionId, SessionKind};
use mainstay_os::system::available_bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::ending::end_standbys;
use crate::factory::{GREETING, ShimSettings, launch_shim};
use crate::folder::{ShimFolder, StandbyRecord};
use crate::messages::{FromShim, Hello, OLDEST_PROTOCOL, PROTOCOL, Purpose, Welcome};
use crate::proxy::ShimProcess;
use crate::stream::{Incoming, Outgoing, greet};

/// How long a process may take to be ready for a session that is not known yet.
const PREPARING: Duration = Duration::from_secs(120);

/// How often it is looked how much memory there is.
const LOOK: Duration = Duration::from_secs(30);

/// What has been built for so long will be for longer: a process that is started now is ready when its runner is due.
const LONG_BUILD: Duration = Duration::from_millis(1500);

/// So many standbys may end unused before none is made any more, until a session is started again.
const DEATHS: u32 = 3;

/// When there is a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyTerms {
    /// How long nobody may have waited for anything before one is made.
    pub rest: Duration,
    /// How much memory the machine must have available for that. One that is there ends where it has less than half of it.
    pub memory_bytes: u64,
}

/// A process that is ready for its session. Its shim ends when this is dropped.
pub(crate) struct Standby {
    plan: Value,
    pub(crate) token: String,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) process: ShimProcess,
}

/// The standby of a daemon, as those who start runners have it.
pub(crate) struct StandbyKeeper {
    settings: Arc<ShimSettings>,
    terms: Option<StandbyTerms>,
    /// None until a session was started that could have taken one.
    orders: OnceLock<mpsc::UnboundedSender<Order>>,
}

enum Order {
    /// Somebody starts a runner with this plan, and takes what fits.
    Take(Value, oneshot::Sender<Option<Standby>>),
    /// From now on one with this plan is wanted.
    Want(SessionKind, Value),
}

impl StandbyKeeper {
    pub(crate) fn new(settings: Arc<ShimSettings>) -> Self {
        Self { terms: settings.standby, settings, orders: OnceLock::new() }
    }

    /// Whether there is ever one.
    pub(crate) fn is_on(&self) -> bool {
        self.terms.is_some()
    }

    /// The standby, where it is there and fits. One that is not ready yet is given up: whoever starts a runner is not to share the machine
    /// with it.
    pub(crate) async fn take(&self, plan: &Value) -> Option<Standby> {
        let (taken, standby) = oneshot::channel();
        self.orders.get()?.send(Order::Take(plan.clone(), taken)).ok()?;
        standby.await.ok()?
    }

    /// A session was started with this plan: the next one is likely to have the same.
    pub(crate) fn want(&self, kind: SessionKind, plan: Value) {
        let Some(terms) = self.terms else { return };
        let orders = self.orders.get_or_init(|| {
            let (orders, ordered) = mpsc::unbounded_channel();
            let settings = Arc::clone(&self.settings);
            let keeping = Keeping { settings, terms, wanted: None, has: None, deaths: 0 };
            tokio::spawn(keeping.run(ordered));
            orders
        });
        // The task ends with the last sender.
        orders.send(Order::Want(kind, plan)).ok();
    }
}

/// The task that has the standby.
struct Keeping {
    settings: Arc<ShimSettings>,
    terms: StandbyTerms,
    wanted: Option<(SessionKind, Value)>,
    has: Option<Standby>,
    /// How many have ended unused since a session was started.
    deaths: u32,
}

enum Next {
    Ordered(Option<Order>),
    Made(Result<Standby, Error>),
    Ended,
    MemoryIsShort,
}

impl Keeping {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            let is_to_make = self.has.is_none() && self.wanted.is_some() && self.deaths < DEATHS;
            let next = tokio::select! {
                biased;
                order = orders.recv() => Next::Ordered(order),
                () = ended(&mut self.has) => Next::Ended,
                () = memory_is_short(self.terms.memory_bytes / 2), if self.has.is_some() => Next::MemoryIsShort,
                made = make(&self.settings, self.terms, &self.wanted), if is_to_make => Next::Made(made),
            };
            match next {
                Next::Ordered(None) => return,
                Next::Ordered(Some(Order::Take(plan, taken))) => {
                    let fitting = self.has.take_if(|standby| standby.plan == plan);
                    // Who wanted it may have given up; then it ends.
                    taken.send(fitting).ok();
                }
                Next::Ordered(Some(Order::Want(kind, plan))) => {
                    self.has.take_if(|standby| standby.plan != plan);
                    self.wanted = Some((kind, plan));
                    self.deaths = 0;
                }
                Next::Made(Ok(standby)) => self.has = Some(standby),
                Next::Made(Err(error)) => {
                    tracing::warn!(%error, "no process is started ahead");
                    self.deaths += 1;
                }
                Next::Ended => {
                    tracing::warn!("a process that was started ahead has ended");
                    self.has = None;
                    self.deaths += 1;
                    // Where its shim was killed, that has left something.
                    end_standbys(&self.settings.shims).await;
                }
                Next::MemoryIsShort => {
                    tracing::info!("a process that was started ahead ends: memory is short");
                    self.has = None;
                }
            }
        }
    }
}

/// Makes one once nobody waits for anything and there is memory for it. Dropping the future gives it up.
async fn make(
    settings: &ShimSettings,
    terms: StandbyTerms,
    wanted: &Option<(SessionKind, Value)>,
) -> Result<Standby, Error> {
    let Some((kind, plan)) = wanted else { return pending().await };
    is_time(settings, terms).await;
    while has_less_than(terms.memory_bytes) {
        sleep(LOOK).await;
        is_time(settings, terms).await;
    }
    let late =
        |_| Error::WorkerFailed { reason: "a process that stands by was not ready in time".to_owned() };
    timeout(PREPARING, start(settings, kind, plan)).await.map_err(late)?
}

/// Waits until nobody waits for anything, or for a build that takes so long that a process can be made meanwhile: its session takes that.
async fn is_time(settings: &ShimSettings, terms: StandbyTerms) {
    tokio::select! {
        () = settings.activity.rests_for(terms.rest) => {}
        () = settings.activity.builds_for(LONG_BUILD) => {}
    }
}

/// Starts a shim of no session, and has it start a process ahead.
async fn start(settings: &ShimSettings, kind: &SessionKind, plan: &Value) -> Result<Standby, Error> {
    let folder = ShimFolder::of_standby(&settings.shims);
    let stream = launch_shim(settings, &folder).await?;
    let token = Uuid::new_v4().simple().to_string();
    let hello = Hello {
        protocol: PROTOCOL,
        oldest_protocol: OLDEST_PROTOCOL,
        token: token.clone(),
        session: SessionId::from_uuid(Uuid::nil()),
        epoch: Epoch(0),
        purpose: Purpose::StandBy {
            kind: kind.clone(),
            plan: plan.clone(),
            settings: settings.factory.clone(),
        },
    };
    let (mut incoming, outgoing, welcome) = greet(stream, &hello, GREETING).await?;
    let Welcome::Obeys { pid, .. } = welcome else {
        return Err(Error::WorkerFailed { reason: "its shim does not stand by".to_owned() });
    };
    let process = ShimProcess::of(pid);
    let worker_pid = match incoming.next().await? {
        Some(FromShim::StandsBy { pid }) => pid,
        Some(FromShim::NotStarted { error }) => return Err(error),
        Some(_) | None => return Err(Error::WorkerFailed { reason: "its shim ended".to_owned() }),
    };
    let record = StandbyRecord { kind: kind.clone(), pid, started: process.started, worker_pid };
    folder.write_standby_record(&record).map_err(|error| Error::WorkerFailed {
        reason: format!("what stands by cannot be recorded: {error}"),
    })?;
    tracing::info!(%kind, worker = worker_pid, "a process is started ahead");
    Ok(Standby { plan: plan.clone(), token, incoming, outgoing, process })
}

/// Waits until the standby has ended, where there is one.
async fn ended(standby: &mut Option<Standby>) {
    match standby {
        // Nothing is to be said before it has a session.
        Some(standby) => drop(standby.incoming.next::<Value>().await),
        None => pending().await,
    }
}

async fn memory_is_short(bytes: u64) {
    while !has_less_than(bytes) {
        sleep(LOOK).await;
    }
}

/// Whether less memory is available. Where the system does not tell, there is enough.
fn has_less_than(bytes: u64) -> bool {
    available_bytes().is_some_and(|available| available < bytes)
}
