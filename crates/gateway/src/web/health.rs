//! The screen of the daemon's health: numbers, and how they went since the screen was opened. Nothing is kept for it: each connection
//! looks for itself.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use mainstay_engine::{Cursor, Followed};
use mainstay_log::SessionFilter;
use mainstay_model::{Error, EventBody, EventFilter, SessionId};
use maud::{Markup, html};

use super::cell::{duration, moment};
use super::feed::{self, Feed};
use super::frame;
use super::guard::{Refused, Viewer};
use super::patch::{Patch, reached};
use super::status::{size, state};

/// How often is looked.
const RHYTHM: Duration = Duration::from_secs(2);
/// How many looks are remembered: ten minutes.
const KEPT: usize = 300;

pub(super) async fn page(viewer: Viewer) -> Result<impl IntoResponse, Refused> {
    viewer.client.require_all("see how the daemon is")?;
    Ok(frame::screen(
        "Health",
        "/ui/health/stream",
        &html! {
            main.plain id="main" {
                h1 { "Health" }
                p.faint { "Mainstay " (viewer.daemon.version) " runs since " (moment(viewer.daemon.started_at)) ". The lines begin when this screen is opened." }
                div #health {}
            }
        },
    ))
}

pub(super) async fn stream(viewer: Viewer) -> Result<Response, Refused> {
    viewer.client.require_all("see how the daemon is")?;
    let after = viewer.client.last_position().await?;
    let followed = viewer.client.follow(Cursor::Log { after }, EventFilter::default()).await?;
    let place = viewer.place()?;
    let watch = Watch { viewer, followed, lines: BTreeMap::new(), is_open: false };
    Ok(feed::answer(place, watch))
}

struct Watch {
    viewer: Viewer,
    followed: Followed,
    lines: BTreeMap<String, VecDeque<u64>>,
    is_open: bool,
}

/// A worker that lives.
struct Worker {
    session: SessionId,
    name: String,
    state: mainstay_model::SessionState,
    memory: u64,
}

impl Feed for Watch {
    async fn next(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_open, true) {
            tokio::select! {
                () = self.viewer.daemon.stop.cancelled() => return None,
                () = tokio::time::sleep(RHYTHM) => {}
            }
        }
        let shown = self.look().await.ok()?;
        Some(Patch::morph(shown).events() + &reached(0))
    }
}

impl Watch {
    async fn look(&mut self) -> Result<Markup, Error> {
        let client = self.viewer.client.clone();
        let (mut evals, mut took) = (0, 0);
        while let Some(event) = self.followed.next().now_or_never() {
            if let EventBody::EvalCompleted { duration_ms, .. } | EventBody::EvalFailed { duration_ms, .. } =
                &event?.body
            {
                evals += 1;
                took = took.max(*duration_ms);
            }
        }
        let live = client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
        let mut workers = Vec::new();
        for session in &live {
            let memory = client.usage(session.id).await.map_or(0, |usage| usage.resident_bytes);
            workers.push(Worker {
                session: session.id,
                name: session.name.clone(),
                state: session.state(),
                memory,
            });
        }
        let waiting: usize = live.iter().map(|session| session.lane.len()).sum();
        let stored = client.store_statistics().await?;
        let engine = &self.viewer.daemon.engine;
        let numbers = [
            ("Evals that ended, in two seconds", evals, evals.to_string()),
            ("The longest of them", took, duration(took)),
            ("Commands that wait", waiting as u64, waiting.to_string()),
            ("Who follows", engine.subscribers() as u64, engine.subscribers().to_string()),
            ("Sessions in use", engine.sessions_in_use() as u64, engine.sessions_in_use().to_string()),
            ("Events", stored.events, stored.events.to_string()),
            ("The log", stored.database_bytes, size(stored.database_bytes)),
        ];
        let numbers: Vec<Markup> =
            numbers.into_iter().map(|(name, value, shown)| self.number(name, value, &shown)).collect();
        let workers: Vec<Markup> = workers.iter().map(|worker| self.worker(worker)).collect();
        Ok(html! {
            div #health {
                dl.numbers { @for number in numbers { (number) } }
                h2 { "Workers" }
                @if workers.is_empty() { p.faint { "No worker runs." } }
                ul.rows { @for worker in workers { (worker) } }
            }
        })
    }

    fn number(&mut self, name: &str, value: u64, shown: &str) -> Markup {
        html! { div { dt { (name) } dd { (shown) } dd.plot { (self.plot(name, value)) } } }
    }

    fn worker(&mut self, Worker { session, name, state: of, memory }: &Worker) -> Markup {
        html! {
            li {
                a href={ "/ui/sessions/" (session) } { span.name { (name) } }
                p.facts { (state(*of)) span { (size(*memory)) } (self.plot(&session.to_string(), *memory)) }
            }
        }
    }

    /// How a number went: a line that begins at nothing.
    fn plot(&mut self, name: &str, value: u64) -> Markup {
        /// Pixels.
        const WIDTH: usize = 300;
        const HEIGHT: u64 = 36;
        let line = self.lines.entry(name.to_owned()).or_default();
        line.push_back(value);
        while line.len() > KEPT {
            line.pop_front();
        }
        let highest = line.iter().copied().max().unwrap_or_default().max(1);
        let mut points = String::new();
        for (index, value) in line.iter().enumerate() {
            let (x, y) = (index * WIDTH / KEPT, HEIGHT - value * (HEIGHT - 2) / highest);
            // Writing to a text does not fail.
            write!(points, "{x},{y} ").ok();
        }
        html! { svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" { polyline points=(points) {} } }
    }
}
