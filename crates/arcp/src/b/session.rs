//! A session of dialect B on its connection: what its client asks, and what it is told, in one task, so that both are in one order.

use std::collections::{HashMap, VecDeque};

use futures::{Stream, StreamExt};
use jiff::SignedDuration;
use mainstay_arcp_protocol::b::{Envelope, Feature, Message, Ping, decode};
use mainstay_engine::{Client, Cursor};
use mainstay_gateway::daemon::Daemon;
use mainstay_model::{CommandId, Error, Event, EventFilter, Position, SessionId, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};
use uuid::Uuid;

use super::errors;
use super::frame::envelope;
use super::handshake::{Opened, welcome};
use super::pending::{PendingSubmissions, Word};
use super::teller::{Style, Teller};
use crate::connection::{End, Peer};
use crate::feed::{accepted_fingerprint, job_of, submitted};
use crate::frames::{Incoming, Outbox};
use crate::live_sessions::HeldSession;
use crate::settings::Settings;
use crate::stored_session::{Mark, ResumeToken, StoredSession};

/// Events that are read at once.
pub(super) const PAGE: usize = 1000;
/// Words of the tasks that submit jobs that wait to be heard.
const WORDS: usize = 64;

/// A session on its connection.
pub(super) struct Session {
    pub(super) daemon: Daemon,
    pub(super) settings: Settings,
    pub(super) client: Client,
    /// The folder of sessions whose job names none.
    pub(super) folder: Option<String>,
    pub(super) outbox: Outbox,
    pub(super) stored: StoredSession,
    pub(super) teller: Teller,
    /// The jobs that were submitted and have not begun to be told.
    pub(super) pending: PendingSubmissions,
    pub(super) words: mpsc::Sender<Word>,
    /// The agents of the engine's sessions that have jobs here.
    pub(super) agents: HashMap<SessionId, String>,
    /// The event that was told last.
    pub(super) position: Position,
    /// The number of the last message that the client has.
    sent: u64,
    /// What no other connection has meanwhile.
    held: Option<HeldSession>,
    /// The token that the client is still to be welcomed with.
    greeting: Option<ResumeToken>,
    /// The joins that the fold has come to.
    pub(super) joined: usize,
    /// The number of the last message before the fold.
    begins_at: u64,
    /// Places in the fold that the client may have come to, from which it may begin once that is known.
    marks: VecDeque<Mark>,
    /// What was heard of the client last.
    pub(super) heard: Instant,
}

/// How many messages lie between two marks.
const BETWEEN_MARKS: u64 = 500;
/// How many marks are kept for a client that never says how far it has come.
const MARKS: usize = 64;

/// Serves an opened session until its connection ends.
pub(super) async fn serve(
    peer: Peer,
    opened: Opened,
    incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
) -> End {
    let (words, mut heard_words) = mpsc::channel(WORDS);
    let last_seq = opened.last_seq;
    let mut session = Session::begin(peer, opened, outbox, words);
    let replaced = session.held.as_ref().map(|held| held.replaced.clone()).unwrap_or_default();
    let is_stuck = session.outbox.is_stuck.clone();
    let served = async {
        match session.catch_up(last_seq).await {
            Ok(true) => session.run(incoming, &mut heard_words).await,
            Ok(false) => End::Refused,
            Err(error) => session.failed(&error).await,
        }
    };
    // What is sent to a client that is gone may wait for long.
    tokio::select! {
        biased;
        () = replaced.cancelled() => End::Replaced,
        () = is_stuck.cancelled() => End::Silent,
        end = served => end,
    }
}

/// Tells what a session was told up to now.
pub(super) async fn replay(peer: Peer, opened: Opened, outbox: Outbox) {
    let last_seq = opened.last_seq;
    let mut session = Session::begin(peer, opened, outbox, mpsc::channel(1).0);
    if let Err(error) = session.catch_up(last_seq).await {
        session.failed(&error).await;
    }
}

impl Session {
    /// A session that was told nothing yet.
    fn begin(peer: Peer, opened: Opened, outbox: Outbox, words: mpsc::Sender<Word>) -> Self {
        let Opened { client, stored, token, last_seq, peculiarities, held } = opened;
        let mark = stored.mark_for(last_seq);
        let chunks = stored.features.iter().any(|feature| feature == Feature::ResultChunk.as_str());
        let style = Style { chunks, chunk_bytes: stored.chunk_bytes, peculiarities };
        Self {
            teller: Teller::new(&stored.id, client.principal(), style, &mark.base),
            position: mark.base.position,
            folder: peer.attached.and_then(|attached| attached.folder),
            daemon: peer.daemon,
            settings: peer.settings,
            pending: PendingSubmissions::default(),
            agents: HashMap::new(),
            sent: last_seq,
            greeting: token,
            held,
            joined: mark.joined,
            begins_at: mark.base.seq,
            marks: VecDeque::from([mark]),
            heard: Instant::now(),
            client,
            outbox,
            stored,
            words,
        }
    }

    /// Welcomes the client once it is known that it was told no more than there is, and tells what happened up to now. It is false where the client
    /// has a number that was never given out, or whose event is no longer there.
    async fn catch_up(&mut self, last_seq: u64) -> Result<bool, Error> {
        if last_seq < self.begins_at {
            self.send(Message::SessionError(errors::expired())).await;
            return Ok(false);
        }
        self.know_jobs().await?;
        let told = match self.apply_joins(self.position).await {
            Ok(()) => self.reach_the_end().await,
            failed => failed,
        };
        match told {
            // A session that had a job of it was deleted: what the client was told of that cannot be told again.
            Err(Error::SessionNotFound { .. }) => {
                self.send(Message::SessionError(errors::expired())).await;
                return Ok(false);
            }
            told => told?,
        }
        if self.teller.seq() < last_seq {
            self.send(Message::SessionError(errors::expired())).await;
            return Ok(false);
        }
        self.greet().await?;
        Ok(true)
    }

    /// Gives the jobs that the fold begins with the names of their agents.
    async fn know_jobs(&mut self) -> Result<(), Error> {
        let homes = self.marks.iter().flat_map(|mark| mark.base.jobs.iter().map(|job| job.home));
        for home in homes.collect::<Vec<_>>() {
            self.know_agent(home).await?;
        }
        let agents = &self.agents;
        self.teller.name_agents(|home| agents.get(&home).cloned().unwrap_or_default());
        Ok(())
    }

    /// Marks a place of the fold, from which it may begin once the client is known to have come so far.
    fn mark(&mut self) {
        let before = self.marks.back().map_or(self.begins_at, |mark| mark.base.seq);
        if self.teller.seq() >= before + BETWEEN_MARKS && self.marks.len() < MARKS {
            let base = self.teller.base(self.position);
            self.marks.push_back(Mark { base, joined: self.joined });
        }
    }

    /// Has the fold begin at the last mark up to a number that the client has acknowledged; says whether that is another place than before.
    pub(super) fn advance(&mut self, seq: u64) -> bool {
        let mut reached = None;
        while self.marks.front().is_some_and(|mark| mark.base.seq <= seq) {
            reached = self.marks.pop_front();
        }
        let Some(reached) = reached.filter(|mark| mark.base.seq > self.stored.base.seq) else { return false };
        let joined = reached.joined;
        self.teller.forget_ended(reached.base.seq);
        self.stored.advance(reached);
        self.joined -= joined;
        self.marks.iter_mut().for_each(|mark| mark.joined -= joined);
        true
    }

    /// Notes where the fold may begin when the client resumes again, for what it has now.
    fn note_resumed(&mut self) {
        let reached = self.marks.iter().rev().find(|mark| mark.base.seq <= self.sent).cloned();
        if reached.is_some() {
            self.stored.resumed_at = reached;
        }
    }

    /// Tells of all that had happened when this was called.
    pub(super) async fn reach_the_end(&mut self) -> Result<(), Error> {
        let newest = self.client.last_position().await?;
        while self.position < newest {
            let page = self.client.all_events(self.position, PAGE).await?;
            for event in &page {
                self.take(event).await?;
            }
            // The client may not see the others.
            if page.is_empty() {
                self.position = newest;
            }
        }
        self.apply_joins(self.position).await
    }

    async fn run(
        &mut self,
        mut incoming: impl Stream<Item = Incoming> + Send + Unpin,
        words: &mut mpsc::Receiver<Word>,
    ) -> End {
        let cursor = Cursor::Log { after: self.position };
        let mut subscription = match self.client.follow(cursor, EventFilter::default()).await {
            Ok(subscription) => subscription,
            Err(error) => return self.failed(&error).await,
        };
        let has_heartbeat = self.has(Feature::Heartbeat);
        let beat = self.settings.heartbeat();
        let mut beats = interval_at(Instant::now() + beat, beat);
        let window = self.settings.resume_window() / 4;
        let mut renewals = interval_at(Instant::now() + window, window);
        let stopped = self.daemon.stopped.clone();
        loop {
            let done = tokio::select! {
                biased;
                frame = incoming.next() => match frame {
                    Some(frame) => {
                        self.heard = Instant::now();
                        self.hear(frame).await
                    }
                    None => return self.gone().await,
                },
                Some(word) = words.recv() => self.hear_word(word).await.map(|()| None),
                event = subscription.next() => match event {
                    // It may have been read from the log meanwhile.
                    Ok(event) if event.position <= self.position => Ok(None),
                    Ok(event) => self.take(&event).await.map(|()| None),
                    Err(error) => Err(error),
                },
                _ = beats.tick(), if has_heartbeat => {
                    if self.heard.elapsed() > self.settings.patience() {
                        self.gone().await;
                        return End::Silent;
                    }
                    self.ping().await;
                    Ok(None)
                }
                _ = renewals.tick() => self.store().await.map(|()| None),
                () = stopped.cancelled() => return End::ShutDown,
            };
            match done {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(Error::DaemonStopping) => return End::ShutDown,
                Err(error) => return self.failed(&error).await,
            }
        }
    }

    /// Takes an event in, and tells what it says.
    async fn take(&mut self, event: &Event) -> Result<(), Error> {
        self.apply_joins(Position(event.position.0.saturating_sub(1))).await?;
        self.tell(event).await?;
        self.position = event.position;
        self.mark();
        Ok(())
    }

    async fn tell(&mut self, event: &Event) -> Result<(), Error> {
        if submitted(event).is_some() {
            self.know_agent(event.session).await?;
        }
        let agents = &self.agents;
        let told = self.teller.tell(event, |home| agents.get(&home).cloned().unwrap_or_default());
        // The first that is told of a job is preceded by its acceptance, where it was submitted over this connection.
        if let (Some(job), Some(said)) = (job_of(event, self.client.principal()), accepted_fingerprint(event))
        {
            for submission in self.pending.take_accepted(job, said) {
                self.accept(job, &submission).await;
            }
        }
        for message in told {
            self.send_numbered(&message).await?;
        }
        Ok(())
    }

    /// Sends a message that the client does not have.
    pub(super) async fn send_numbered(&mut self, message: &Envelope) -> Result<(), Error> {
        let seq = message.event_seq.unwrap_or_default();
        if seq > self.sent {
            self.greet().await?;
            self.sent = seq;
            self.outbox.send(message.encode()).await;
        }
        Ok(())
    }

    /// Welcomes the client, where that was not done yet. The token that it is given is stored before.
    async fn greet(&mut self) -> Result<(), Error> {
        let Some(token) = self.greeting.take() else { return Ok(()) };
        self.note_resumed();
        self.store().await?;
        let welcome = welcome(&self.daemon, &self.settings, &self.client, &self.stored, token).await?;
        self.send(Message::SessionWelcome(welcome)).await;
        Ok(())
    }

    pub(super) async fn know_agent(&mut self, home: SessionId) -> Result<(), Error> {
        if !self.agents.contains_key(&home) {
            let found = self.client.seen_session(home).await?;
            let kind = found.map(|session| session.kind.to_string()).unwrap_or_default();
            self.agents.insert(home, format!("{kind}@{}", crate::agents::VERSION));
        }
        Ok(())
    }

    pub(super) fn agent_of(&self, home: SessionId) -> Option<&String> {
        self.agents.get(&home)
    }

    pub(super) fn has(&self, feature: Feature) -> bool {
        self.stored.features.iter().any(|known| known == feature.as_str())
    }

    pub(super) async fn send(&self, message: Message) {
        self.outbox.send(envelope(Some(&self.stored.id), message).encode()).await;
    }

    /// Sends a message about a job that is no event of it.
    pub(super) async fn send_of_job(&self, job: &CommandId, message: Message) {
        let about = Envelope { job_id: Some(job.to_string()), ..envelope(Some(&self.stored.id), message) };
        self.outbox.send(about.encode()).await;
    }

    pub(super) async fn store(&self) -> Result<(), Error> {
        let window = SignedDuration::from_secs(self.settings.resume_window_sec.into());
        self.stored.store(&self.client, Timestamp::now(), window).await
    }

    async fn ping(&self) {
        let nonce = format!("p_{}", mainstay_arcp_protocol::ids::ulid_text(Uuid::now_v7().as_u128()));
        self.send(Message::SessionPing(Ping { nonce, sent_at: Timestamp::now() })).await;
    }

    async fn hear(&mut self, frame: Incoming) -> Result<Option<End>, Error> {
        if self.stored.has_newest_token() {
            self.store().await?;
        }
        let text = match frame {
            Incoming::Text(text) => text,
            Incoming::Alive => return Ok(None),
            Incoming::Binary => {
                self.send(Message::SessionError(errors::no_bytes())).await;
                return Ok(None);
            }
            Incoming::TooLarge => {
                let limit = self.daemon.engine.limits().message_bytes;
                let error = Error::MessageTooLarge { limit };
                self.send(Message::SessionError(errors::payload(&error))).await;
                return Ok(None);
            }
        };
        match decode(&text) {
            Ok(frame) => self.request(frame).await,
            Err(error) => {
                self.send(Message::SessionError(errors::undecoded(&error))).await;
                Ok(None)
            }
        }
    }

    /// The connection is lost. The session can be resumed from now on for the whole window.
    async fn gone(&self) -> End {
        if let Err(error) = self.store().await {
            tracing::warn!(%error, session = self.stored.id, "how long the session can be resumed is not stored");
        }
        End::Gone
    }

    async fn failed(&self, error: &Error) -> End {
        tracing::warn!(%error, session = self.stored.id, "the session's connection ends");
        self.send(Message::SessionError(errors::payload(error))).await;
        End::Refused
    }
}
