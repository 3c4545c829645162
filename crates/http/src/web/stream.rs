//! What keeps the page of a session up to date: its events from where the page is, and what is heard meanwhile.
//!
//! A connection may end anywhere, and its next goes on from the last `id` that arrived: what was sent behind that is sent again. So a
//! connection begins with the cells whose jobs go on, whole, and everything else it sends may come twice. A slow browser is read no
//! faster for: nothing is kept for it, the log has it.

use std::time::Duration;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use mainstay_engine::{Client, ClientSubscription, FollowedWarmUp, LiveSubscription};
use mainstay_model::{Error, Event, EventBody, Language, RecordedRuns, Seq, SessionId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::cell;
use super::earlier_cells;
use super::feed::{self, Feed, SILENCE, is_said};
use super::guard::{self, Refused, Viewer};
use super::page::Page;
use super::patch::{KEEP_ALIVE, Patch, reached};
use super::status::{self, Regions};
use super::test_panel;

/// How many events go into one piece of the stream.
const TOGETHER: usize = 256;
/// A page changes no more often than this, however fast something is said.
const RHYTHM: Duration = Duration::from_millis(40);

pub(super) async fn of_session(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let heard = last_heard(&headers);
    let after = heard.or(guard::place(&uri, "after")).unwrap_or_default();
    let session = match (viewer.session(&id).await, heard) {
        (Ok(session), _) => session,
        // It was deleted, or may be seen no more: there is nothing to come back for.
        (Err(_), Some(_)) => return Ok(StatusCode::NO_CONTENT.into_response()),
        (Err(refused), None) => return Err(refused),
    };
    let place = viewer.place()?;
    let connection = Connection::open(viewer.client, session, after, viewer.daemon.stop.clone()).await?;
    Ok(feed::answer(place, connection))
}

/// The last id that a browser has of the stream.
fn last_heard(headers: &HeaderMap) -> Option<Seq> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok().map(Seq)
}

/// One browser's connection to the stream.
struct Connection {
    client: Client,
    session: SessionId,
    /// What its code is written in, if that is known.
    language: Option<Language>,
    stop: CancellationToken,
    followed: ClientSubscription,
    listened: LiveSubscription,
    warm_ups: FollowedWarmUp,
    departures: watch::Receiver<()>,
    page: Page,
    runs: RecordedRuns,
    regions: Regions,
    /// The last event that was taken in.
    at: Seq,
    is_open: bool,
}

/// The next thing that a connection has to do.
enum Next {
    Event(Result<std::sync::Arc<Event>, Error>),
    Live(Option<std::sync::Arc<mainstay_model::Live>>),
    WarmUp,
    Departure,
    Silence,
    Stop,
}

impl Connection {
    async fn open(
        client: Client,
        session: SessionId,
        after: Seq,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let followed = client.subscribe(session, after).await?;
        let listened = client.listen(session).await?;
        let warm_ups = client.follow_warm_up(session).await?;
        let departures = client.departures();
        let mut page = earlier_cells::up_to(&client, session, after).await?.page;
        let seen = client.seen_session(session).await?;
        let runs = match &seen {
            Some(session) => test_panel::runs(&client, session).await?,
            None => RecordedRuns::default(),
        };
        let language = seen.and_then(|session| session.language());
        page.take_changes();
        page.forget_ended();
        Ok(Self {
            client,
            session,
            language,
            stop,
            followed,
            listened,
            warm_ups,
            departures,
            page,
            runs,
            regions: Regions::default(),
            at: after,
            is_open: false,
        })
    }

    async fn wait(&mut self) -> Next {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::Stop,
            event = self.followed.next() => Next::Event(event),
            live = self.listened.next() => Next::Live(live),
            _ = self.warm_ups.next() => Next::WarmUp,
            Ok(()) = self.departures.changed() => Next::Departure,
            () = tokio::time::sleep(SILENCE) => Next::Silence,
        }
    }

    fn take(&mut self, next: Next, is_status: &mut bool) -> Taken {
        match next {
            Next::Event(Ok(event)) => {
                self.at = event.seq;
                self.page.take(&event);
                self.runs.take_in(&event);
                if let EventBody::WarmUpCompleted { language: Some(language), .. } = &event.body {
                    self.language = Some(language.clone());
                }
                *is_status |= !is_said(&event.body);
                Taken::Something
            }
            Next::Live(Some(live)) => {
                self.page.hear(&live);
                Taken::Something
            }
            Next::WarmUp | Next::Departure => {
                *is_status = true;
                Taken::Something
            }
            Next::Silence => Taken::Nothing,
            Next::Event(Err(_)) | Next::Live(None) | Next::Stop => Taken::End,
        }
    }

    /// These patches, what has changed beside cells, and how far that is.
    async fn piece(&mut self, patches: Vec<Patch>, is_status: bool) -> String {
        let mut patches = patches;
        // A session that is gone has nothing to show but its cells.
        if is_status
            && let Ok(status) = self.client.status(self.session).await
            && let Ok(shown) = status::shown(&self.client, &status, &self.runs).await
        {
            patches.extend(self.regions.update(shown));
        }
        let events: String = patches.iter().map(Patch::events).collect();
        events + &reached(self.at.0)
    }
}

impl Feed for Connection {
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.is_open, true) {
            let language = self.language.as_ref();
            let cells =
                self.page.open_cells().map(|cell| Patch::morph(cell::whole(cell, language))).collect();
            return Some(self.piece(cells, true).await);
        }
        let mut is_status = false;
        let first = self.wait().await;
        match self.take(first, &mut is_status) {
            Taken::Nothing => return Some(KEEP_ALIVE.to_owned()),
            Taken::End => return None,
            Taken::Something => {}
        }
        // What comes in the same moment is shown together.
        tokio::time::sleep(RHYTHM).await;
        for _ in 0..TOGETHER {
            let Some(next) = self.followed.next().now_or_never() else { break };
            if matches!(self.take(Next::Event(next), &mut is_status), Taken::End) {
                break;
            }
        }
        for _ in 0..TOGETHER {
            let Some(Some(live)) = self.listened.next().now_or_never() else { break };
            self.page.hear(&live);
        }
        let changes = self.page.take_changes();
        let language = self.language.as_ref();
        let changed = changes.iter().filter_map(|(seq, change)| Some((self.page.cell(*seq)?, change)));
        let patches = changed.flat_map(|(cell, change)| cell::patches(cell, change, language)).collect();
        self.page.forget_ended();
        Some(self.piece(patches, is_status).await)
    }
}

enum Taken {
    Something,
    Nothing,
    End,
}
