//! The screens of coverage: the files of a session's project with how many of their lines tests reach, and a file's source with a mark on each
//! line. Both are shown again when tests have run or the code is another.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::time::Duration;

use axum::extract::Path;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Client, ClientSubscription, CoverageQuestion};
use mainstay_model::{
    Coverage, CoveredRange, Error, Event, EventBody, FileCoverage, LineState, RecordedRuns, Seq, SessionId,
};
use maud::{Markup, html};
use tokio_util::sync::CancellationToken;

use super::feed::{self, Feed, SILENCE};
use super::frame;
use super::guard::{Refused, Viewer, argument, place};
use super::patch::{KEEP_ALIVE, Patch, reached};

/// How long a change is left to the tests that it begins, which ask the same worker.
const PATIENCE: Duration = Duration::from_millis(300);
/// The longest source that is shown.
const SOURCE_BYTES: u64 = 2 * 1024 * 1024;

/// The address of a file's screen, or that of all files.
pub(super) fn address(session: SessionId, file: Option<&str>) -> String {
    located(&format!("/ui/sessions/{session}/coverage"), file, None)
}

fn located(path: &str, file: Option<&str>, after: Option<Seq>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(file) = file {
        query.append_pair("file", file);
    }
    if let Some(Seq(after)) = after {
        query.append_pair("after", &after.to_string());
    }
    match query.finish() {
        none if none.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

pub(super) async fn page(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<impl IntoResponse, Refused> {
    let session = viewer.session(&id).await?;
    let file = argument(&uri, "file");
    let status = viewer.client.status(session).await?;
    let shown = shown(&viewer.client, session, file.as_deref()).await?;
    let stream = format!("/ui/sessions/{session}/coverage/stream");
    Ok(frame::screen(
        "Coverage",
        &located(&stream, file.as_deref(), Some(status.session.last_seq)),
        &html! {
            main.plain id="main" {
                h1 { "Coverage" }
                p.facts {
                    a href={ "/ui/sessions/" (session) } { (status.session.name) }
                    @if file.is_some() { a href=(address(session, None)) { "all files" } }
                }
                (shown.html)
            }
        },
    ))
}

pub(super) async fn stream(viewer: Viewer, Path(id): Path<String>, uri: Uri) -> Result<Response, Refused> {
    let session = viewer.session(&id).await?;
    let place_of = viewer.place()?;
    let after = place(&uri, "after").unwrap_or_default();
    let followed = viewer.client.subscribe(session, after).await?;
    let (client, stop) = (viewer.client, viewer.daemon.stop.clone());
    let watch =
        Watch { client, stop, session, file: argument(&uri, "file"), followed, at: after, measuring: true };
    Ok(feed::answer(place_of, watch))
}

/// One browser's connection to a screen of coverage.
struct Watch {
    client: Client,
    stop: CancellationToken,
    session: SessionId,
    file: Option<String>,
    followed: ClientSubscription,
    /// The last event that was taken in.
    at: Seq,
    /// Whether what is shown waits for a measurement in the background.
    measuring: bool,
}

impl Watch {
    /// Waits for an event after which lines may stand otherwise; false where nothing is said for long, none where the stream ends.
    async fn changed(&mut self) -> Option<bool> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                event = self.followed.next() => event.ok()?,
                () = self.client.wait_for_measurement(self.session), if self.measuring => return Some(true),
                () = tokio::time::sleep(SILENCE) => return Some(false),
            };
            self.at = event.seq;
            if is_news(&event) {
                return Some(true);
            }
        }
    }
}

/// Whether tests have run, or the code may be another.
fn is_news(event: &Event) -> bool {
    RecordedRuns::run_of(event).is_some()
        || matches!(
            event.body,
            EventBody::SourcesSwapped(_)
                | EventBody::SourcesChanged { .. }
                | EventBody::WarmUpCompleted { .. }
        )
}

impl Feed for Watch {
    async fn next(&mut self) -> Option<String> {
        if !self.changed().await? {
            return Some(KEEP_ALIVE.to_owned());
        }
        tokio::time::sleep(PATIENCE).await;
        while let Some(event) = self.followed.try_next() {
            self.at = event.seq;
        }
        // A worker that is not there has nothing to say; the next one is asked once it is.
        let shown = shown(&self.client, self.session, self.file.as_deref()).await;
        self.measuring = shown.as_ref().is_ok_and(|shown| shown.measuring);
        let patch = shown.map_or_else(|_| String::new(), |shown| Patch::morph(shown.html).events());
        Some(patch + &reached(self.at.0))
    }
}

/// What a screen shows of coverage.
struct Shown {
    html: Markup,
    /// Whether the lines that tests run are being measured.
    measuring: bool,
}

async fn shown(client: &Client, session: SessionId, file: Option<&str>) -> Result<Shown, Error> {
    let asked = CoverageQuestion { file: file.map(str::to_owned), ..CoverageQuestion::default() };
    let coverage = client.coverage(session, asked).await?;
    let html = match (file, &coverage.files[..]) {
        (Some(_), [file]) => source(file, &read(&file.path).await?),
        (Some(_) | None, _) => files(session, &coverage),
    };
    let measuring = coverage.measuring;
    let html = html! {
        div #coverage {
            (html)
            p.hint { (how_known(&coverage)) }
            @if coverage.unknown > 0 {
                p.hint { (coverage.unknown) " tests are not counted: it is not known what they reach." }
            }
        }
    };
    Ok(Shown { html, measuring })
}

/// Where it is known from which lines tests reach.
fn how_known(coverage: &Coverage) -> String {
    let Coverage { tests, measured, measuring, .. } = coverage;
    match (measured, measuring) {
        (_, true) => "The lines that the tests run are being measured.".to_owned(),
        (0, false) => "Lines that tests may reach, by the calls in the project's code.".to_owned(),
        (measured, false) if measured == tests => "Lines that the tests ran.".to_owned(),
        (measured, false) => format!(
            "Lines that {measured} of {tests} tests ran, and those that the others may reach by the calls in the project's code."
        ),
    }
}

/// The text of a file of the project.
async fn read(path: &str) -> Result<String, Error> {
    let failed = |reason: String| Error::InvalidArgument { argument: "file".to_owned(), reason };
    let length = tokio::fs::metadata(path).await.map_err(|error| failed(error.to_string()))?.len();
    if length > SOURCE_BYTES {
        return Err(failed(format!("it has {length} bytes, and at most {SOURCE_BYTES} are shown")));
    }
    let bytes = tokio::fs::read(path).await.map_err(|error| failed(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn files(session: SessionId, coverage: &Coverage) -> Markup {
    html! {
        table.coverage {
            thead { tr {
                th scope="col" { "File" }
                @for head in ["Passing", "Failing", "Not run", "Not reached", "Lines"] { th scope="col" { (head) } }
            } }
            tbody {
                @for FileCoverage { path, lines, .. } in &coverage.files {
                    tr {
                        th scope="row" { a href=(address(session, Some(path))) { (name_of(path)) } }
                        @for count in [lines.passing, lines.failing, lines.not_run, lines.unreached, lines.total] { td { (count) } }
                    }
                }
            }
        }
    }
}

fn name_of(path: &str) -> String {
    FilePath::new(path)
        .file_name()
        .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A file's lines, each with a mark where it has code.
fn source(file: &FileCoverage, text: &str) -> Markup {
    let ranges: BTreeMap<u32, &CoveredRange> = file.ranges.iter().map(|range| (range.first, range)).collect();
    let range_of = |line: u32| {
        let (_, range) = ranges.range(..=line).next_back()?;
        (line <= range.last).then_some(*range)
    };
    html! {
        h2.path { (file.path) }
        p.facts {
            span { (file.lines.passing) " of " (file.lines.total) " lines reached by passing tests" }
            @if file.lines.failing > 0 { span.error { (file.lines.failing) " failing" } }
            @if file.lines.unreached > 0 { span { (file.lines.unreached) " not reached" } }
        }
        table.source aria-label="Source" {
            tbody {
                @for (line, text) in (1..).zip(text.lines()) {
                    @let mark = range_of(line).map(mark_of);
                    tr id={ "L" (line) } class=[mark.as_ref().map(|mark| mark.class)] {
                        td.number { (line) }
                        td.mark { @if let Some(mark) = &mark { span role="img" aria-label=(mark.words) title=(mark.words) { (mark.sign) } } }
                        td { code { (text) } }
                    }
                }
            }
        }
    }
}

/// How a line is marked.
struct LineMark {
    class: &'static str,
    sign: &'static str,
    words: String,
}

fn mark_of(range: &CoveredRange) -> LineMark {
    let (class, sign, state) = match range.state {
        LineState::Passing => ("passing", "✓", "passing"),
        LineState::Failing => ("failing", "✗", "failing"),
        LineState::NotRun => ("unrun", "…", "not run since the change"),
        LineState::Unreached => ("unreached", "○", "no test reaches it"),
    };
    let moved = if range.moved { ", and what is saved is not what runs" } else { "" };
    let names: Vec<_> = range.names.iter().map(|test| test.name.as_str()).collect();
    let words = match range.state {
        LineState::Unreached => format!("{}: {state}{moved}", range.name),
        LineState::Passing | LineState::Failing | LineState::NotRun => {
            format!("{}: {state}, {} tests{moved}: {}", range.name, range.tests, names.join(", "))
        }
    };
    LineMark { class, sign, words }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{CoveringTest, LineCounts};

    use super::*;

    #[test]
    fn each_line_has_its_mark_and_nothing_of_the_source_is_html() {
        let range = |first, last, state| CoveredRange {
            first,
            last,
            name: "Shop.Cart.price".to_owned(),
            state,
            tests: 1,
            failing: 0,
            names: vec![CoveringTest { name: "a<b>".to_owned(), ending: None }],
            moved: false,
        };
        let ranges = vec![range(2, 2, LineState::Failing), range(3, 4, LineState::Unreached)];
        let file = FileCoverage { path: "/shop/Cart.fs".to_owned(), lines: LineCounts::default(), ranges };
        let html = source(&file, "module <b>\nlet a = 1\nlet b =\n  2\n").into_string();
        insta::assert_snapshot!(html.replace("<tr", "\n<tr"));
    }

    #[test]
    fn an_address_carries_any_path() {
        let session: SessionId = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        assert_eq!(
            address(session, Some("/a b/C&.fs")),
            "/ui/sessions/019a0000-0000-7000-8000-0000a1b2c3d4/coverage?file=%2Fa+b%2FC%26.fs"
        );
    }
}
