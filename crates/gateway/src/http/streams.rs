//! Streams: how things are when someone subscribes, then what changes, as server-sent events of Datastar's.
//!
//! An event's `id` is the number of the session's event that it tells, or with `?session=*` its place in the log. Who comes again with
//! `Last-Event-ID`, or `?after=`, is told all that came after it. A slow client reads from the log, and nothing is kept for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Client, Cursor, Followed};
use mainstay_model::{
    Action, Diagnostic, Error, Event, EventFilter, EventKind, Position, Seq, SessionId, Timestamp,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::caller::{Caller, query};
use super::checking::{Finding, Place};
use super::problem::Problem;
use super::signals::{self, CompletionsSignals, DiagnosticsSignals, EventSignals};

/// How often something is sent where nothing happens, so that nobody on the way takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pieces on their way to a client; then its stream waits.
const OUTBOX: usize = 16;
/// Events that are looked through for the last job.
const LOOKED_BACK: u64 = 10_000;
/// Events that are read at once.
const PAGE: u64 = 500;

type Answer = Result<Response, Problem>;

/// Where a client has got to; nowhere yet for who comes the first time.
pub(super) struct After(Option<u64>);

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
        Ok(Self(given.map(read).transpose()?))
    }
}

/// One client's stream, on its side of the daemon.
struct Stream {
    outbox: mpsc::Sender<Bytes>,
    stopped: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// A stream, and what its client is sent.
    fn open(caller: &Caller) -> Result<(Self, Response), Error> {
        let limit = caller.daemon.engine.limits().streams;
        let place = Arc::clone(&caller.daemon.http.streams).try_acquire_owned();
        let place = place.map_err(|_| Error::TooManyConnections { limit })?;
        let (outbox, mut pieces) = mpsc::channel(OUTBOX);
        let body = futures::stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(Ok::<Bytes, std::convert::Infallible>))
        });
        let mut response = Body::from_stream(body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok((Self { outbox, stopped: caller.daemon.stopped.clone(), _place: place }, response))
    }

    /// Tells signals; false once the client has gone.
    async fn tell(&self, id: Option<u64>, signals: &impl Serialize) -> bool {
        self.send(patch(id, signals)).await
    }

    async fn send(&self, piece: Bytes) -> bool {
        self.outbox.send(piece).await.is_ok()
    }

    /// What happens next; none once there is nothing more to tell, or nobody to tell it to.
    async fn next(&self, followed: &mut Followed) -> Option<Arc<Event>> {
        loop {
            tokio::select! {
                // What has happened is told also while the daemon goes down.
                biased;
                event = followed.next() => return event.ok(),
                () = self.outbox.closed() => return None,
                () = self.stopped.cancelled() => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    if !self.send(Bytes::from_static(b": \n\n")).await {
                        return None;
                    }
                }
            }
        }
    }
}

/// Signals to merge into what a client has. Source: Datastar, "SSE Events".
fn patch(id: Option<u64>, signals: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(256);
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"event: datastar-patch-signals\ndata: signals ");
    // JSON as it is written here has no line breaks. What cannot be written is nothing that a signal could be.
    if serde_json::to_writer(&mut text, signals).is_err() {
        text.extend_from_slice(b"{}");
    }
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// Refuses a cursor that is ahead of what there is.
fn must_be_known(after: Option<u64>, newest: u64) -> Result<(), Error> {
    match after {
        Some(after) if after > newest => {
            let reason = format!("the newest event is {newest}; leave it out to begin anew");
            Err(Error::InvalidArgument { argument: "Last-Event-ID".to_owned(), reason })
        }
        Some(_) | None => Ok(()),
    }
}

/// How a session is.
pub(super) async fn status(caller: Caller, After(after): After) -> Answer {
    let session = caller.session(None).await?;
    let stored = caller.client.status(session).await?.session;
    must_be_known(after, stored.last_seq.0)?;
    let mut told = Status { session, client: caller.client.clone(), last_eval_ms: None };
    told.last_eval_ms = last_duration(&told.client, session, stored.last_seq).await?;
    let (stream, response) = Stream::open(&caller)?;
    let filter = EventFilter { kinds: signals::status_kinds().collect(), ..EventFilter::default() };
    let cursor = Cursor::Session { session, after: stored.last_seq };
    let mut followed = caller.client.follow(cursor, filter).await?;
    tokio::spawn(async move {
        // State, and no history: who comes again is told how things are.
        while told.tell(&stream).await {
            match stream.next(&mut followed).await {
                Some(event) => {
                    told.last_eval_ms = signals::duration_of(&event).or(told.last_eval_ms);
                }
                None => return,
            }
        }
    });
    Ok(response)
}

struct Status {
    session: SessionId,
    client: Client,
    last_eval_ms: Option<u64>,
}

impl Status {
    async fn tell(&self, stream: &Stream) -> bool {
        let Ok(status) = self.client.status(self.session).await else { return false };
        let resident = status.usage.map(|usage| usage.resident_bytes);
        let signals = signals::status(&status.session, resident, self.last_eval_ms, Timestamp::now());
        stream.tell(Some(status.session.last_seq.0), &signals).await
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

/// The jobs of a session: the last one from its beginning, then all that come.
pub(super) async fn eval(caller: Caller, After(after): After) -> Answer {
    let session = caller.session(None).await?;
    let stored = caller.client.status(session).await?.session;
    must_be_known(after, stored.last_seq.0)?;
    let from = match after {
        Some(after) => Seq(after),
        None => {
            let began = last(&caller.client, session, stored.last_seq, signals::begins_job).await?;
            began.map_or(stored.last_seq, |began| Seq(began.seq.0.saturating_sub(1)))
        }
    };
    let (stream, response) = Stream::open(&caller)?;
    let mut followed =
        caller.client.follow(Cursor::Session { session, after: from }, EventFilter::default()).await?;
    tokio::spawn(async move {
        let idle = signals::idle(from, stored.last_activity);
        if after.is_none() && !stream.tell(Some(from.0), &idle).await {
            return;
        }
        while let Some(event) = stream.next(&mut followed).await {
            if let Some(told) = signals::eval(&event)
                && !stream.tell(Some(event.seq.0), &told).await
            {
                return;
            }
        }
    });
    Ok(response)
}

/// What happens: in one session, or with `*` in all that may be seen.
pub(super) async fn events(caller: Caller, After(after): After, Kinds(kinds): Kinds) -> Answer {
    let from = after.unwrap_or_default();
    let (cursor, newest) = match caller.means_all() {
        true => (Cursor::Log { after: Position(from) }, caller.client.last_position().await?.0),
        false => {
            let session = caller.session(None).await?;
            let newest = caller.client.status(session).await?.session.last_seq.0;
            (Cursor::Session { session, after: Seq(from) }, newest)
        }
    };
    must_be_known(after, newest)?;
    let (stream, response) = Stream::open(&caller)?;
    let of_all = caller.means_all();
    let mut followed = caller.client.follow(cursor, EventFilter { kinds, ..EventFilter::default() }).await?;
    tokio::spawn(async move {
        while let Some(event) = stream.next(&mut followed).await {
            let id = if of_all { event.position.0 } else { event.seq.0 };
            if !stream.tell(Some(id), &EventSignals { event: &event }).await {
                return;
            }
        }
    });
    Ok(response)
}

/// Which events.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) struct Chosen {
    /// Only those of these kinds, with commas between; all where it is left out.
    kinds: Option<String>,
}

/// The kinds of events that are wanted, `?kinds=a,b`; all where it does not say.
pub(super) struct Kinds(BTreeSet<EventKind>);

impl<S: Sync> FromRequestParts<S> for Kinds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let kinds = query(parts, "kinds").unwrap_or_default();
        let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::parse);
        Ok(Self(kinds.collect::<Result<_, Error>>()?))
    }
}

/// The diagnostics of code that its principal has checked: those there are, then each that are found.
pub(super) async fn diagnostics(caller: Caller) -> Answer {
    let session = caller.session(Some(Action::Check)).await?;
    let newest = caller.client.status(session).await?.session.last_seq;
    let place: Place = (caller.client.principal().clone(), session);
    let shared = Arc::clone(&caller.daemon.http);
    let (stream, response) = Stream::open(&caller)?;
    let kinds = ["sessionReset", "sessionHardReset", "sessionDeleted"].map(str::parse);
    let kinds = kinds.into_iter().collect::<Result<_, Error>>()?;
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let mut followed = caller.client.follow(Cursor::Session { session, after: newest }, filter).await?;
    tokio::spawn(async move {
        let (files, mut findings) = shared.checks.listen(&place);
        let mut known: BTreeSet<String> = files.keys().cloned().collect();
        if !stream.tell(None, &kept(files)).await {
            return;
        }
        loop {
            let told = tokio::select! {
                found = findings.recv() => match found {
                    Ok(found) if found.0 == place => match &found.1 {
                        Finding::Diagnostics { file, diagnostics } => {
                            known.insert(file.clone());
                            kept(BTreeMap::from([(file.clone(), diagnostics.clone())]))
                        }
                        Finding::Completions { .. } => continue,
                    },
                    Ok(_) => continue,
                    // All that are kept, once more.
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {
                        kept(shared.checks.listen(&place).0)
                    }
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                },
                event = stream.next(&mut followed) => match event {
                    Some(event) if signals::clears_diagnostics(&event) => {
                        shared.checks.forget(&place);
                        let gone = std::mem::take(&mut known).into_iter().map(|file| (file, None));
                        DiagnosticsSignals { diagnostics: gone.collect() }
                    }
                    Some(_) => continue,
                    None => return,
                },
            };
            if !stream.tell(None, &told).await {
                return;
            }
        }
    });
    Ok(response)
}

/// Diagnostics as signals.
fn kept(files: BTreeMap<String, Vec<Diagnostic>>) -> DiagnosticsSignals {
    DiagnosticsSignals {
        diagnostics: files.into_iter().map(|(file, diagnostics)| (file, Some(diagnostics))).collect(),
    }
}

/// The completions that its principal asks for.
pub(super) async fn completions(caller: Caller) -> Answer {
    let session = caller.session(Some(Action::Complete)).await?;
    let newest = caller.client.status(session).await?.session.last_seq;
    let place: Place = (caller.client.principal().clone(), session);
    let shared = Arc::clone(&caller.daemon.http);
    let (stream, response) = Stream::open(&caller)?;
    let kinds = [str::parse::<EventKind>("sessionDeleted")?].into_iter().collect();
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let mut followed = caller.client.follow(Cursor::Session { session, after: newest }, filter).await?;
    let (_, mut findings) = shared.checks.listen(&place);
    tokio::spawn(async move {
        if !stream.tell(None, &CompletionsSignals { completions: None }).await {
            return;
        }
        loop {
            let told = tokio::select! {
                found = findings.recv() => match found {
                    Ok(found) if found.0 == place => match &found.1 {
                        Finding::Completions { signal } => {
                            CompletionsSignals { completions: Some(signal.clone()) }
                        }
                        Finding::Diagnostics { .. } => continue,
                    },
                    // What was missed was asked for before; the newest is to come.
                    Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                },
                event = stream.next(&mut followed) => match event {
                    Some(_) => continue,
                    None => return,
                },
            };
            if !stream.tell(None, &told).await {
                return;
            }
        }
    });
    Ok(response)
}
