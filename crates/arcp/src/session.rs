//! A session on its connection: what its client asks, and what it is told, in one task, so that both are in one order.

use std::collections::HashMap;

use futures::{Stream, StreamExt};
use jiff::SignedDuration;
use mainstay_engine::{Client, Cursor};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::peer_network::PeerNetwork;
use mainstay_model::{CommandId, Error, EventFilter, Position, SessionId, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use crate::agents::AgentCache;
use crate::credentials::{Credentials, Due};
use crate::dialect::Dialect;
use crate::fold_place::{Counted, Mark, Reached};
use crate::frames::{Incoming, Outbox, Outgoing};
use crate::held_jobs::{Haste, HeldJobs};
use crate::live_sessions::HeldSession;
use crate::marks::Marks;
use crate::message_fold::MessageFold;
use crate::pacing;
use crate::peer::{AdmittedClient, End, Peer};
use crate::pending_submissions::{PendingSubmissions, SubmissionUpdate};
use crate::resume_token::ResumeToken;
use crate::settings::Settings;
use crate::stored_session::StoredSession;

/// What the tasks that submit jobs have to say and was not heard yet.
const UPDATES: usize = 64;
/// How long what was told may be uncounted: where events vanish in that time, and the daemon with it, that is not noticed.
const COUNT_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// A session that was opened, or is to be resumed.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) credentials: Credentials,
    pub(crate) stored: StoredSession,
    /// The token with which it can be resumed next; none where its client is not to be welcomed.
    pub(crate) token: Option<ResumeToken>,
    /// What the client has.
    pub(crate) reached: Reached,
    /// What no other connection has meanwhile; none where nothing is changed.
    pub(crate) held: Option<HeldSession>,
}

impl Opened {
    /// A session of which is told what it was told behind a number, and nothing else.
    pub(crate) fn to_be_replayed(admitted: AdmittedClient, stored: StoredSession, after: u64) -> Self {
        let AdmittedClient { client, credentials } = admitted;
        Self { client, credentials, stored, token: None, reached: Reached::Seq(after), held: None }
    }
}

/// How the serving of a session on its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// The connection ends in this way.
    Ended(End),
    /// The session cannot be resumed from where its client is.
    Expired,
    /// The client wants to go on from elsewhere.
    Resumes,
    /// The client is to be told again what is behind this number.
    GoesBack(u64),
}

/// A session on its connection.
pub(crate) struct Session<D: Dialect> {
    pub(crate) daemon: Daemon,
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    /// Until when the client may stay.
    pub(crate) credentials: Credentials,
    /// Where its connection comes from.
    pub(crate) from: PeerNetwork,
    /// The folder of sessions whose job names none.
    pub(crate) folder: Option<String>,
    pub(crate) outbox: Outbox,
    pub(crate) stored: StoredSession,
    pub(crate) fold: MessageFold<D::Translator>,
    /// What its dialect keeps of the connection.
    pub(crate) dialect: D,
    /// The jobs that were submitted and have not begun to be told.
    pub(crate) pending: PendingSubmissions,
    pub(crate) updates: mpsc::Sender<SubmissionUpdate>,
    /// The agents that were found for this client.
    pub(crate) agent_cache: AgentCache,
    /// The agents of the engine's sessions that have jobs here.
    pub(crate) agents: HashMap<SessionId, String>,
    /// The event that was told last.
    pub(crate) position: Position,
    /// The number of the last message that the client has.
    pub(crate) sent: u64,
    /// The last message that the client has, as long as the fold has not come to it.
    pub(crate) awaited: Option<String>,
    /// The number behind which all is to be told again.
    pub(crate) goes_back_to: Option<u64>,
    /// The jobs that are told later than they happen.
    pub(crate) held: HeldJobs<D::Translator>,
    /// What no other connection has meanwhile.
    pub(crate) owned: Option<HeldSession>,
    /// The token that the client is still to be welcomed with.
    pub(crate) greeting: Option<ResumeToken>,
    /// The joins that the fold has come to.
    pub(crate) joined: usize,
    /// How many messages there are up to the last event or join that was told whole.
    pub(crate) whole: Counted,
    /// The number of messages up to a place that the fold has not come to yet.
    pub(crate) to_be_counted: Option<Counted>,
    /// Whether the fold counts otherwise than it did.
    pub(crate) is_miscounted: bool,
    pub(crate) marks: Marks,
    /// What was heard of the client last.
    pub(crate) heard: Instant,
    /// Whether the client sends nothing more, and is told how its jobs end.
    is_ending: bool,
}

/// What a session hears of the tasks that submit its jobs.
pub(crate) type Updates = mpsc::Receiver<SubmissionUpdate>;

impl<D: Dialect> Session<D> {
    /// A session that was told nothing yet, and what it will handle_frame of its submissions.
    pub(crate) fn begin(
        peer: &Peer,
        opened: Opened,
        outbox: Outbox,
        dialect: D,
        translator: D::Translator,
    ) -> (Self, Updates) {
        let Opened { client, credentials, stored, token, reached, held } = opened;
        let (updates, heard_updates) = mpsc::channel(UPDATES);
        let reached = match reached {
            Reached::Seq(seq) => Reached::Seq(stored.late.surely_has(seq)),
            reached => reached,
        };
        let mark = stored.mark_for(&reached);
        let (sent, awaited) = match reached {
            Reached::Seq(seq) => (seq, None),
            Reached::All => (u64::MAX, None),
            Reached::Message { id, .. } => (0, Some(id)),
        };
        let session = Self {
            fold: MessageFold::new(&stored.id, client.principal(), translator, &mark.base),
            dialect,
            position: mark.base.position,
            folder: peer.attached.as_ref().and_then(|attached| attached.folder.clone()),
            daemon: peer.daemon.clone(),
            from: peer.from,
            settings: peer.settings,
            pending: PendingSubmissions::default(),
            agent_cache: AgentCache::default(),
            agents: HashMap::new(),
            sent,
            awaited,
            goes_back_to: None,
            held: HeldJobs::default(),
            greeting: token,
            owned: held,
            joined: mark.joined,
            whole: Counted { position: mark.base.position, joined: mark.joined, seq: mark.base.seq },
            to_be_counted: stored.counted,
            is_miscounted: false,
            marks: Marks::from(mark),
            heard: Instant::now(),
            is_ending: false,
            client,
            credentials,
            outbox,
            stored,
            updates,
        };
        (session, heard_updates)
    }

    /// Serves it until its connection ends, or its client wants another session.
    pub(crate) async fn serve(
        &mut self,
        incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin),
        updates: &mut Updates,
    ) -> Served {
        let replaced = self.owned.as_ref().map(|held| held.replaced.clone()).unwrap_or_default();
        let is_stuck = self.outbox.is_stuck.clone();
        let served = async {
            match self.catch_up().await {
                Ok(None) => self.run(incoming, updates).await,
                Ok(Some(served)) => served,
                Err(error) => Served::Ended(self.failed(&error).await),
            }
        };
        // What is sent to a client that is gone may wait for long.
        tokio::select! {
            biased;
            () = replaced.cancelled() => Served::Ended(End::Replaced),
            () = is_stuck.cancelled() => Served::Ended(End::Silent),
            served = served => served,
        }
    }

    /// Tells what it was told up to now, and nothing else.
    pub(crate) async fn replay(&mut self) {
        if let Err(error) = self.catch_up().await {
            self.failed(&error).await;
        }
    }

    /// Welcomes the client once it is known that it was told no more than there is, and tells what happened up to now. It is not served where it
    /// has a message that was never given out, or whose event is no longer there.
    async fn catch_up(&mut self) -> Result<Option<Served>, Error> {
        let told = match self.awaited.is_none() && self.sent < self.marks.begins_at() {
            true => return self.expired().await,
            false => self.tell_from_the_base().await,
        };
        match told {
            // A session that had a job of it was deleted: what the client was told of that cannot be told again.
            Err(Error::SessionNotFound { .. }) => return self.expired().await,
            told => told?,
        }
        if let Some(number) = self.goes_back_to.take() {
            self.sent = number;
            return Ok(Some(Served::GoesBack(number)));
        }
        if self.sent == u64::MAX {
            self.sent = self.fold.seq();
        }
        if self.is_miscounted || self.awaited.is_some() || self.fold.seq() < self.sent {
            return self.expired().await;
        }
        self.greet().await?;
        self.tell_held(Haste::WhenDue).await?;
        D::greeted(self).await?;
        Ok(None)
    }

    async fn tell_from_the_base(&mut self) -> Result<(), Error> {
        self.load_agent_names().await?;
        self.apply_joins(self.position).await?;
        self.reach_the_end().await?;
        self.check_count();
        Ok(())
    }

    async fn expired(&mut self) -> Result<Option<Served>, Error> {
        let expired = D::expired(self);
        self.send_frame(expired).await;
        Ok(Some(Served::Expired))
    }

    async fn run(
        &mut self,
        incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin),
        updates: &mut Updates,
    ) -> Served {
        let cursor = Cursor::Log { after: self.position };
        let mut subscription = match self.client.follow(cursor, EventFilter::default()).await {
            Ok(subscription) => subscription,
            Err(error) => return Served::Ended(self.failed(&error).await),
        };
        let beat = D::beat_interval(self);
        let mut beats = interval_at(Instant::now() + beat, beat);
        let window = self.settings.resume_window() / 4;
        let mut renewals = interval_at(Instant::now() + window, window);
        let mut counts = interval_at(Instant::now() + COUNT_EVERY, COUNT_EVERY);
        let stopped = self.daemon.stopped.clone();
        let outbox = self.outbox.clone();
        loop {
            self.note_held();
            let has_told_all = self.pending.count() == 0 && self.held.is_empty();
            if self.is_ending && has_told_all && self.open_jobs().is_empty() {
                return Served::Ended(self.gone().await);
            }
            let (is_ending, next_due) = (self.is_ending, self.credentials.next());
            let held_due = self.held.next_due(Instant::now());
            let has_room = self.pending.count() < self.settings.unanswered_submissions.max(1);
            let step = async {
                tokio::select! {
                    () = outbox.closed(), if is_ending => Ok(Some(Served::Ended(self.gone().await))),
                    frame = incoming.next(), if has_room => match frame {
                        Some(Incoming::Ended) => {
                            self.is_ending = true;
                            self.held.pacing.clear();
                            Ok(None)
                        }
                        Some(frame) => {
                            self.heard = Instant::now();
                            self.handle_frame(frame).await
                        }
                        None => Ok(Some(Served::Ended(self.gone().await))),
                    },
                    Some(update) = updates.recv() => self.take_update(update).await.map(|()| None),
                    event = subscription.next(), if !D::is_held_back(self) => match event {
                        // It may have been read from the log meanwhile.
                        Ok(event) if event.position <= self.position => Ok(None),
                        Ok(event) => self.take(&event).await.map(|()| None),
                        Err(error) => Err(error),
                    },
                    () = pacing::wait(held_due) => self.tell_held(Haste::WhenDue).await.map(|()| None),
                    () = Credentials::wait(next_due) => self.renew_credentials().await,
                    _ = beats.tick() => self.beat(has_room).await,
                    _ = renewals.tick() => self.renew().await.map(|()| None),
                    _ = counts.tick() => self.renew_count().await.map(|()| None),
                }
            };
            let done = tokio::select! {
                biased;
                () = stopped.cancelled() => return Served::Ended(End::ShutDown),
                done = step => done,
            };
            let done = match done {
                Ok(None) => D::finish(self).await,
                done => done,
            };
            match done {
                Ok(None) => {}
                Ok(Some(served)) => return served,
                Err(Error::DaemonStopping) => return Served::Ended(End::ShutDown),
                Err(error) => return Served::Ended(self.failed(&error).await),
            }
        }
    }

    /// Asks the client for new credentials in time, and ends the connection once those that it has are good no longer. The session can be resumed.
    async fn renew_credentials(&mut self) -> Result<Option<Served>, Error> {
        match self.credentials.due(Timestamp::now()) {
            Some(Due::Refresh(deadline)) => {
                if let Some(refresh) = D::refresh(self, deadline) {
                    self.send_frame(refresh).await;
                }
                Ok(None)
            }
            Some(Due::Expired) => {
                self.gone().await;
                self.send_frame(D::evicted(self)).await;
                Ok(Some(Served::Ended(End::Expired)))
            }
            None => Ok(None),
        }
    }

    /// Sends what is sent from time to time, and lets a client go that says nothing; what it says is not read while it has no room for it.
    async fn beat(&mut self, is_read: bool) -> Result<Option<Served>, Error> {
        if D::expects_answers(self)
            && is_read
            && !self.is_ending
            && self.heard.elapsed() > self.settings.patience()
        {
            self.gone().await;
            return Ok(Some(Served::Ended(End::Silent)));
        }
        for frame in D::beat(self) {
            self.send_frame(frame).await;
        }
        Ok(None)
    }

    /// Welcomes the client, where that was not done yet. The token that it is given is stored before.
    pub(crate) async fn greet(&mut self) -> Result<(), Error> {
        let Some(token) = self.greeting.take() else { return Ok(()) };
        self.renew().await?;
        if let Some(welcome) = D::welcome(self, token).await? {
            self.send_frame(welcome).await;
        }
        Ok(())
    }

    /// Gives the jobs that the fold begins with the names of their agents.
    pub(crate) async fn load_agent_names(&mut self) -> Result<(), Error> {
        let homes: Vec<_> = self.fold.jobs().map(|(_, known)| known.home).collect();
        for home in homes {
            self.load_agent(home).await?;
        }
        let agents = &self.agents;
        self.fold.name_agents(|home| agents.get(&home).cloned().unwrap_or_default());
        Ok(())
    }

    /// Learns which agent has the jobs of a session of the engine.
    pub(crate) async fn load_agent(&mut self, home: SessionId) -> Result<(), Error> {
        if !self.agents.contains_key(&home) {
            let found = self.client.seen_session(home).await?;
            let kind = found.map(|session| session.kind.to_string()).unwrap_or_default();
            self.agents.insert(home, format!("{kind}@{}", crate::agents::VERSION));
        }
        Ok(())
    }

    pub(crate) fn agent_of(&self, home: SessionId) -> Option<&String> {
        self.agents.get(&home)
    }

    /// Whether both sides have this feature.
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.stored.features.iter().any(|known| known == feature)
    }

    /// Up to which number the client surely has all.
    pub(crate) fn reached(&self) -> u64 {
        self.stored.late.surely_has(self.sent.min(self.fold.seq()))
    }

    pub(crate) async fn send_frame(&self, frame: impl Into<Outgoing> + Send) {
        self.outbox.send(frame).await;
    }

    /// Has it resumed for the whole window from now on, and from where its client is.
    pub(crate) async fn renew(&mut self) -> Result<(), Error> {
        if D::FORGETS {
            self.advance(self.reached().saturating_sub(self.settings.retained_messages));
        }
        if let Some(mark) = self.marks.last_within(self.reached()) {
            self.stored.resumed_at = Some(mark);
        }
        self.store().await
    }

    /// Counts what was told, where more was told than counted.
    async fn renew_count(&mut self) -> Result<(), Error> {
        match self.stored.counted.is_none_or(|counted| counted.seq != self.fold.seq()) {
            true => self.renew().await,
            false => Ok(()),
        }
    }

    /// Stores it as it is.
    pub(crate) async fn store(&mut self) -> Result<(), Error> {
        // What is not counted yet was counted before.
        if self.to_be_counted.is_none() {
            self.stored.counted = Some(self.whole);
        }
        let window = SignedDuration::from_secs(self.settings.resume_window_sec.into());
        self.stored.store(&self.client, Timestamp::now(), window).await
    }

    /// Notes that what the fold has come to was told whole.
    pub(crate) fn note_whole(&mut self) {
        self.whole = Counted { position: self.position, joined: self.joined, seq: self.fold.seq() };
    }

    /// Forgets what the client has acknowledged up to a number; says whether that changed something.
    pub(crate) fn advance(&mut self, seq: u64) -> bool {
        let Some(reached) = self.marks.pass(seq, self.stored.base.seq) else { return false };
        let joined = reached.joined;
        self.fold.forget_ended(reached.base.seq);
        self.stored.advance(reached);
        self.joined -= joined;
        self.whole.joined = self.whole.joined.saturating_sub(joined);
        self.marks.forget_joins(joined);
        if let Some(counted) = &mut self.to_be_counted {
            counted.joined = counted.joined.saturating_sub(joined);
        }
        true
    }

    /// Has the fold begin here: what was told before is told no more.
    pub(crate) fn begin_fold_here(&mut self) {
        let here = Mark { base: self.fold.base(self.position), joined: self.joined };
        self.fold.forget_ended(here.base.seq);
        self.stored.advance(here.clone());
        self.joined = 0;
        self.note_whole();
        self.marks = Marks::from(Mark { joined: 0, ..here });
    }

    async fn handle_frame(&mut self, frame: Incoming) -> Result<Option<Served>, Error> {
        if self.stored.has_newest_token() {
            self.store().await?;
        }
        match frame {
            Incoming::Alive => Ok(None),
            frame => D::handle_frame(self, frame).await,
        }
    }

    /// The connection is lost. The session can be resumed from now on for the whole window.
    pub(crate) async fn gone(&mut self) -> End {
        if let Err(error) = self.renew().await {
            tracing::warn!(%error, session = self.stored.id, "how long the session can be resumed is not stored");
        }
        End::Gone
    }

    async fn failed(&mut self, error: &Error) -> End {
        tracing::warn!(%error, session = self.stored.id, "the session's connection ends");
        self.send_frame(D::failed(self, error)).await;
        End::Refused
    }

    /// The jobs of the session that have not ended.
    pub(crate) fn open_jobs(&self) -> Vec<CommandId> {
        let open = self.fold.jobs().filter(|(_, known)| known.is_own && !known.state.is_terminal());
        open.map(|(job, _)| job.clone()).collect()
    }

    /// Whether a job is the session's own.
    pub(crate) fn is_own(&self, job: &CommandId) -> bool {
        self.fold.job(job).is_some_and(|known| known.is_own)
    }
}
