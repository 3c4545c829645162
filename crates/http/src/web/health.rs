//! The screen of the daemon's health: numbers, and how they went, as the daemon noted them.

use std::fmt::Write;

use axum::response::{IntoResponse, Response};
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Session};
use maud::{Markup, html};
use tokio::sync::watch;

use super::cell::{duration, moment};
use super::feed::{self, Feed, SILENCE};
use super::frame;
use super::guard::{Refused, Viewer};
use super::patch::{KEEP_ALIVE, Patch, reached};
use super::status::{size, state};
use crate::health::HealthNote;

/// How wide and high a plot is.
const WIDTH: usize = 300;
const HEIGHT: u64 = 36;

pub(super) async fn page(viewer: Viewer) -> Result<impl IntoResponse, Refused> {
    viewer.client.require_all("see how the daemon is")?;
    let shown = shown(&viewer).await?;
    Ok(frame::screen(
        "Health",
        "/ui/health/stream",
        &html! {
            main.plain id="main" {
                h1 { "Health" }
                p.faint { "Mainstay " (viewer.daemon.version) " runs since " (moment(viewer.daemon.started_at)) "." }
                (shown)
            }
        },
    ))
}

pub(super) async fn stream(viewer: Viewer) -> Result<Response, Refused> {
    viewer.client.require_all("see how the daemon is")?;
    let place = viewer.place()?;
    let written = viewer.daemon.http.health.written();
    Ok(feed::answer(place, Watch { viewer, written, is_open: false }))
}

struct Watch {
    viewer: Viewer,
    written: watch::Receiver<()>,
    is_open: bool,
}

impl Feed for Watch {
    async fn next(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_open, true) {
            tokio::select! {
                biased;
                () = self.viewer.daemon.stop.cancelled() => return None,
                changed = self.written.changed() => changed.ok()?,
                () = tokio::time::sleep(SILENCE) => return Some(KEEP_ALIVE.to_owned()),
            }
        }
        let shown = shown(&self.viewer).await.ok()?;
        Some(Patch::morph(shown).events() + &reached(0))
    }
}

async fn shown(viewer: &Viewer) -> Result<Markup, Error> {
    let live = viewer.client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
    Ok(figures(&viewer.daemon.http.health.notes(), &live))
}

fn figures(notes: &[HealthNote], live: &[Session]) -> Markup {
    let Some(last) = notes.last() else {
        return html! { div #health { p.faint { "Nothing is noted yet; `health-ms` says how often it is." } } };
    };
    let numbers = [
        number(
            "Jobs that ended between two notes",
            notes,
            |note| note.activity.jobs,
            |jobs| jobs.to_string(),
        ),
        number("The longest of them", notes, |note| note.activity.longest_job_ms, duration),
        number("The slowest commit", notes, |note| note.activity.longest_commit_us, microseconds),
        number("Commands that wait", notes, |note| note.waiting, |count| count.to_string()),
        number("Who follows", notes, |note| note.subscribers, |count| count.to_string()),
        number("Sessions in use", notes, |note| note.in_use, |count| count.to_string()),
        number("Events", notes, |note| note.position, |count| count.to_string()),
        number("The log", notes, |note| note.log_bytes, size),
        number("Memory of the daemon", notes, |note| note.own_bytes, size),
    ];
    let first = notes.first().unwrap_or(last);
    html! {
        div #health {
            p.faint { (notes.len()) " notes, the first " (moment(first.at)) ", the last " (moment(last.at)) "." }
            dl.numbers { @for number in numbers { (number) } }
            h2 { "Workers" }
            @if live.is_empty() { p.faint { "No worker runs." } }
            ul.rows { @for session in live { (worker(notes, session)) } }
        }
    }
}

fn number(name: &str, notes: &[HealthNote], of: fn(&HealthNote) -> u64, words: fn(u64) -> String) -> Markup {
    let line: Vec<u64> = notes.iter().map(of).collect();
    let (last, highest) =
        (line.last().copied().unwrap_or_default(), line.iter().copied().max().unwrap_or_default());
    html! {
        div {
            dt { (name) }
            dd { (words(last)) span.most { "at most " (words(highest)) } }
            dd.plot { (plot(&line)) }
        }
    }
}

fn worker(notes: &[HealthNote], session: &Session) -> Markup {
    let of = |note: &HealthNote| {
        note.workers.iter().find(|(of, _)| *of == session.id).map_or(0, |(_, bytes)| *bytes)
    };
    let line: Vec<u64> = notes.iter().map(of).collect();
    html! {
        li {
            a href={ "/ui/sessions/" (session.id) } { span.name { (session.name) } }
            p.facts { (state(session.state())) span { (size(line.last().copied().unwrap_or_default())) } (plot(&line)) }
        }
    }
}

fn microseconds(time: u64) -> String {
    format!("{}.{} ms", time / 1_000, time % 1_000 / 100)
}

/// How a number went: a line above nothing. Where there are more values than pixels, the highest of those that share one.
fn plot(values: &[u64]) -> Markup {
    let highest = values.iter().copied().max().unwrap_or_default().max(1);
    let mut columns: Vec<u64> = Vec::with_capacity(WIDTH.min(values.len()));
    let width = values.len().max(2) - 1;
    let column = |index: usize| if values.len() > WIDTH { index * (WIDTH - 1) / width } else { index };
    for (index, value) in values.iter().enumerate() {
        match columns.get_mut(column(index)) {
            Some(there) => *there = (*there).max(*value),
            None => columns.push(*value),
        }
    }
    let last = columns.len().max(2) - 1;
    let mut points = String::new();
    for (index, value) in columns.iter().enumerate() {
        let y = HEIGHT
            - 1
            - u64::try_from(u128::from(*value) * u128::from(HEIGHT - 2) / u128::from(highest))
                .unwrap_or_default();
        // Writing to a text does not fail.
        write!(points, "{},{y} ", index * WIDTH / last).ok();
    }
    html! { svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" { polyline points=(points) {} } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_the_highest_of_what_shares_a_pixel_and_no_more_points_than_pixels() {
        assert!(plot(&[0, 5, 10]).into_string().contains(r#"points="0,35 150,18 300,1 ""#));
        let mut values = vec![1; 100_000];
        values[50_000] = u64::MAX;
        let line = plot(&values).into_string();
        assert_eq!(line.matches(',').count(), WIDTH);
        assert_eq!(line.matches(",1 ").count(), 1, "the peak is there");
        assert!(plot(&[]).into_string().contains(r#"points="""#));
        assert!(plot(&[3]).into_string().contains(r#"points="0,1 ""#));
    }
}
