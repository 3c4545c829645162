//! Streams: how things are when someone subscribes, then what changes, as server-sent events of Datastar's, or as frames of a socket.
//!
//! An event's `id` is the number of the session's event that it tells, or with `?session=*` its place in the log. Who comes again with
//! `Last-Event-ID`, or `?after=`, is told all that came after it. A slow client reads from the log, and nothing is kept for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use mainstay_engine::{Client, ClientSubscription, Cursor};
use mainstay_model::{
    Action, Error, Event, EventFilter, EventKind, Position, Seq, Session, SessionId, Timestamp,
};
use schemars::JsonSchema;
use tokio::sync::broadcast::error::RecvError;

use super::caller::{Caller, query};
use super::checks::{Files, Finding, Findings, Place};
use super::encode_cache::{EventView, SignalEncoding};
use super::flow::{self, ChunkSource};
use super::shared::Shared;
use super::signals::{
    self, AnySignals, CompletionsSignal, CompletionsSignals, DiagnosticsSignals, EventSignals,
};
use mainstay_gateway::problem::Problem;

/// Events that are looked through for the last job.
const LOOKED_BACK: u64 = 10_000;
/// Events that are read at once.
const PAGE: u64 = 500;

type Answer = Result<Response, Problem>;

/// Where a client has got to; nowhere yet for who comes the first time.
pub(super) struct After {
    place: Option<u64>,
    /// Where it says so.
    argument: &'static str,
}

impl<S: Sync> FromRequestParts<S> for After {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let header = parts.headers.get("last-event-id");
        let header = header.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        let (argument, given) = match header.filter(|id| !id.is_empty()) {
            Some(id) => ("Last-Event-ID", Some(id)),
            None => ("after", query(parts, "after")),
        };
        let read = |given: String| {
            let reason =
                format!("`{given}` is not the id of an event of this stream; leave it out to begin anew");
            given.parse().map_err(|_| Error::InvalidArgument { argument: argument.to_owned(), reason })
        };
        Ok(Self { place: given.map(read).transpose()?, argument })
    }
}

impl After {
    /// The place, unless it is ahead of what there is.
    fn known(self, newest: u64) -> Result<Option<u64>, Error> {
        let Self { place, argument } = self;
        match place.filter(|place| *place > newest) {
            Some(_) => {
                let reason = format!("the newest event is {newest}; leave it out to begin anew");
                Err(Error::InvalidArgument { argument: argument.to_owned(), reason })
            }
            None => Ok(place),
        }
    }
}

/// Streams the sessions' states at `GET /status`.
pub(super) async fn status(caller: Caller, after: After) -> Answer {
    Ok(flow::answer(&caller, Status::begin(&caller, after, SignalEncoding::Events).await?)?)
}

/// How a session is.
pub(super) struct Status {
    wording: SignalEncoding,
    session: SessionId,
    client: Client,
    followed: ClientSubscription,
    last_eval_ms: Option<u64>,
    /// Whether something has happened that was not told yet.
    is_due: bool,
}

impl Status {
    pub(super) async fn begin(caller: &Caller, after: After, wording: SignalEncoding) -> Result<Self, Error> {
        let session = caller.session(None).await?;
        let stored = caller.client.status(session).await?.session;
        after.known(stored.last_seq.0)?;
        let last_eval_ms = last_duration(&caller.client, session, stored.last_seq).await?;
        let filter = EventFilter { kinds: signals::status_kinds().collect(), ..EventFilter::default() };
        let cursor = Cursor::Session { session, after: stored.last_seq };
        let followed = caller.client.follow(cursor, filter).await?;
        let client = caller.client.clone();
        Ok(Self { wording, session, client, followed, last_eval_ms, is_due: true })
    }

    fn hear(&mut self, event: &Event) {
        self.last_eval_ms = signals::duration_of(event).or(self.last_eval_ms);
        self.is_due = true;
    }
}

impl ChunkSource for Status {
    // State, and no history: who comes again, or is slow, is told how things are.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_due {
            let event = self.followed.next().await.ok()?;
            self.hear(&event);
        }
        while let Some(event) = self.followed.try_next() {
            self.hear(&event);
        }
        let status = self.client.status(self.session).await.ok()?;
        self.is_due = false;
        let resident = status.usage.map(|usage| usage.resident_bytes);
        let signals = signals::status(&status.session, resident, self.last_eval_ms, Timestamp::now());
        Some(self.wording.tell(Some(status.session.last_seq.0), &AnySignals::Status(signals)))
    }
}

/// How long the last job took that has ended lately.
async fn last_duration(client: &Client, session: SessionId, newest: Seq) -> Result<Option<u64>, Error> {
    let ended = last(client, session, newest, |event| signals::duration_of(event).is_some()).await?;
    Ok(ended.as_ref().and_then(signals::duration_of))
}

/// The last event of a session that is so, among the newest.
async fn last(
    client: &Client,
    session: SessionId,
    newest: Seq,
    is_it: impl Fn(&Event) -> bool,
) -> Result<Option<Event>, Error> {
    let oldest = newest.0.saturating_sub(LOOKED_BACK);
    let mut up_to = newest.0;
    while up_to > oldest {
        let after = up_to.saturating_sub(PAGE).max(oldest);
        let page = client.events(session, Seq(after), (up_to - after) as usize).await?;
        let found = page.into_iter().rfind(|event| event.seq.0 <= up_to && is_it(event));
        if found.is_some() {
            return Ok(found);
        }
        up_to = after;
    }
    Ok(None)
}

/// The event that began the job that runs, or the last one; the one that is yet to come where none did lately.
async fn last_job(client: &Client, session: &Session) -> Result<Seq, Error> {
    if let Some(running) = session.running() {
        return Ok(running.requested);
    }
    let began = last(client, session.id, session.last_seq, signals::begins_job).await?;
    Ok(began.map_or(session.last_seq.next(), |began| began.seq))
}

/// Streams evals and their output at `GET /eval`.
pub(super) async fn eval(caller: Caller, after: After) -> Answer {
    Ok(flow::answer(&caller, EventChunks::of_jobs(&caller, after, SignalEncoding::Events).await?)?)
}

/// Streams all events at `GET /events`.
pub(super) async fn events(caller: Caller, after: After, Kinds(kinds): Kinds) -> Answer {
    Ok(flow::answer(&caller, EventChunks::of_events(&caller, after, kinds, SignalEncoding::Events).await?)?)
}

/// What is told of each event.
pub(super) struct EventChunks {
    wording: SignalEncoding,
    /// What comes before all events.
    first: Option<Bytes>,
    followed: ClientSubscription,
    telling: EventView,
    shared: Arc<Shared>,
}

impl EventChunks {
    /// The jobs of a session: the last one from its beginning, then all that come.
    pub(super) async fn of_jobs(
        caller: &Caller,
        after: After,
        wording: SignalEncoding,
    ) -> Result<Self, Error> {
        let session = caller.session(None).await?;
        let stored = caller.client.status(session).await?.session;
        let after = after.known(stored.last_seq.0)?;
        let from = match after {
            Some(after) => Seq(after),
            None => Seq(last_job(&caller.client, &stored).await?.0.saturating_sub(1)),
        };
        let cursor = Cursor::Session { session, after: from };
        let followed = caller.client.follow(cursor, EventFilter::default()).await?;
        let idle = AnySignals::Eval(signals::idle(from, stored.last_activity));
        let first = after.is_none().then(|| wording.tell(Some(from.0), &idle));
        let shared = Arc::clone(&caller.daemon.http);
        Ok(Self { wording, first, followed, telling: EventView::Jobs, shared })
    }

    /// What happens: in one session, or with `*` in all that may be seen.
    pub(super) async fn of_events(
        caller: &Caller,
        after: After,
        kinds: BTreeSet<EventKind>,
        wording: SignalEncoding,
    ) -> Result<Self, Error> {
        let cursor = match caller.means_all() {
            true => {
                let after = after.known(caller.client.last_position().await?.0)?;
                Cursor::Log { after: Position(after.unwrap_or_default()) }
            }
            false => {
                let session = caller.session(None).await?;
                let after = after.known(caller.client.status(session).await?.session.last_seq.0)?;
                Cursor::Session { session, after: Seq(after.unwrap_or_default()) }
            }
        };
        let followed = caller.client.follow(cursor, EventFilter { kinds, ..EventFilter::default() }).await?;
        let telling = if caller.means_all() { EventView::OfAll } else { EventView::OfSession };
        Ok(Self { wording, first: None, followed, telling, shared: Arc::clone(&caller.daemon.http) })
    }

    /// What is told of one; none where that is nothing.
    fn of(&self, event: &Event) -> Option<Bytes> {
        let Self { telling, wording, .. } = *self;
        let whole = |id| Some(wording.tell(Some(id), &AnySignals::Event(EventSignals { event })));
        self.shared.written.of((telling, wording), event, || match telling {
            EventView::Jobs => {
                signals::eval(event).map(|told| wording.tell(Some(event.seq.0), &AnySignals::Eval(told)))
            }
            EventView::OfSession => whole(event.seq.0),
            EventView::OfAll => whole(event.position.0),
        })
    }
}

impl ChunkSource for EventChunks {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let event = self.followed.next().await.ok()?;
            if let Some(told) = self.of(&event) {
                return Some(told);
            }
        }
    }

    fn try_next(&mut self) -> Option<Bytes> {
        loop {
            let event = self.followed.try_next()?;
            if let Some(told) = self.of(&event) {
                return Some(told);
            }
        }
    }
}

/// The events that a client asks for.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) struct EventsQuery {
    /// Only those of these kinds, with commas between; all where it is left out.
    kinds: Option<String>,
}

/// The kinds of events that are wanted, `?kinds=a,b`; all where it does not say.
pub(super) struct Kinds(pub(super) BTreeSet<EventKind>);

impl<S: Sync> FromRequestParts<S> for Kinds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let kinds = query(parts, "kinds").unwrap_or_default();
        let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::parse);
        Ok(Self(kinds.collect::<Result<_, Error>>()?))
    }
}

/// Streams warnings and errors at `GET /diagnostics`.
pub(super) async fn diagnostics(caller: Caller) -> Answer {
    Ok(flow::answer(&caller, Diagnostics::begin(&caller, SignalEncoding::Events).await?)?)
}

/// Turns the diagnostics of all files into signals.
fn kept(files: Files) -> DiagnosticsSignals {
    DiagnosticsSignals {
        diagnostics: files.into_iter().map(|(file, diagnostics)| (file, Some(diagnostics))).collect(),
    }
}

/// The diagnostics of code that its principal has checked: those there are, then each that are found.
pub(super) struct Diagnostics {
    wording: SignalEncoding,
    place: Place,
    /// The reset behind which they were found.
    since: Seq,
    shared: Arc<Shared>,
    first: Option<Bytes>,
    /// The files of which something was told.
    known: BTreeSet<String>,
    findings: Findings,
    followed: ClientSubscription,
}

impl Diagnostics {
    pub(super) async fn begin(caller: &Caller, wording: SignalEncoding) -> Result<Self, Error> {
        let session = caller.session(Some(Action::Check)).await?;
        let stored = caller.client.status(session).await?.session;
        let place: Place = (caller.client.principal().clone(), session);
        let shared = Arc::clone(&caller.daemon.http);
        let kinds = ["sessionReset", "sessionHardReset", "sessionDeleted"].map(str::parse);
        let kinds = kinds.into_iter().collect::<Result<_, Error>>()?;
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let cursor = Cursor::Session { session, after: stored.last_seq };
        let followed = caller.client.follow(cursor, filter).await?;
        let since = stored.definitions_since;
        let (files, findings) = shared.checks.listen(&place, since);
        let known = files.keys().cloned().collect();
        let first = Some(wording.tell(None, &AnySignals::Diagnostics(kept(files))));
        Ok(Self { wording, place, since, shared, first, known, findings, followed })
    }

    /// What is told of something that was found out.
    fn of(&mut self, finding: &Finding) -> Option<DiagnosticsSignals> {
        match finding {
            Finding::Diagnostics { file, diagnostics } => {
                self.known.insert(file.clone());
                Some(kept(BTreeMap::from([(file.clone(), diagnostics.clone())])))
            }
            Finding::Completions { .. } => None,
        }
    }

    /// All that are kept, once more.
    fn all(&mut self) -> DiagnosticsSignals {
        let files = self.shared.checks.listen(&self.place, self.since).0;
        self.known.extend(files.keys().cloned());
        kept(files)
    }

    /// They are out of date.
    fn cleared(&mut self, event: &Event) -> DiagnosticsSignals {
        self.since = event.seq;
        let known = std::mem::take(&mut self.known);
        DiagnosticsSignals { diagnostics: known.into_iter().map(|file| (file, None)).collect() }
    }
}

impl ChunkSource for Diagnostics {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let told = tokio::select! {
                found = self.findings.recv() => match found {
                    Ok(found) if found.0 == self.place => self.of(&found.1),
                    Ok(_) => None,
                    Err(RecvError::Lagged(_)) => Some(self.all()),
                    Err(RecvError::Closed) => return None,
                },
                event = self.followed.next() => {
                    let event = event.ok()?;
                    signals::clears_diagnostics(&event).then(|| self.cleared(&event))
                }
            };
            if let Some(told) = told {
                return Some(self.wording.tell(None, &AnySignals::Diagnostics(told)));
            }
        }
    }
}

/// Streams completions as they are asked for at `GET /completions`.
pub(super) async fn completions(caller: Caller) -> Answer {
    Ok(flow::answer(&caller, Completions::begin(&caller, SignalEncoding::Events).await?)?)
}

/// The completions that its principal asks for.
pub(super) struct Completions {
    wording: SignalEncoding,
    place: Place,
    first: Option<Bytes>,
    findings: Findings,
    followed: ClientSubscription,
}

impl Completions {
    pub(super) async fn begin(caller: &Caller, wording: SignalEncoding) -> Result<Self, Error> {
        let session = caller.session(Some(Action::Complete)).await?;
        let newest = caller.client.status(session).await?.session.last_seq;
        let place: Place = (caller.client.principal().clone(), session);
        let kinds = [str::parse::<EventKind>("sessionDeleted")?].into_iter().collect();
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let followed = caller.client.follow(Cursor::Session { session, after: newest }, filter).await?;
        let (_, findings) = caller.daemon.http.checks.listen(&place, Seq::ZERO);
        let first = Some(told(wording, None));
        Ok(Self { wording, place, first, findings, followed })
    }
}

fn told(wording: SignalEncoding, completions: Option<CompletionsSignal>) -> Bytes {
    wording.tell(None, &AnySignals::Completions(CompletionsSignals { completions }))
}

impl ChunkSource for Completions {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            tokio::select! {
                found = self.findings.recv() => match found {
                    Ok(found) if found.0 == self.place => match &found.1 {
                        Finding::Completions { signal } => {
                            return Some(told(self.wording, Some(signal.clone())));
                        }
                        Finding::Diagnostics { .. } => {}
                    },
                    // What was missed was asked for before; the newest is to come.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                event = self.followed.next() => {
                    event.ok()?;
                }
            }
        }
    }
}
