//! The first screen: every session that may be seen, what it is doing, and what waits for an answer.

use std::time::Duration;

use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use mainstay_engine::{Client, ClientSubscription, Cursor};
use mainstay_log::SessionFilter;
use mainstay_model::{Error, EventFilter, Session};
use maud::{Markup, html};
use tokio_util::sync::CancellationToken;

use super::cell::moment;
use super::feed::{self, Feed, SILENCE, is_said};
use super::frame;
use super::guard::{Refused, Viewer, argument};
use super::patch::{KEEP_ALIVE, Patch, reached};
use super::status::state;
use mainstay_gateway::{KnownKind, Missing};

/// How many sessions are shown.
const SHOWN: usize = 200;
/// The list changes no more often than this.
const RHYTHM: Duration = Duration::from_millis(300);
/// How many events are taken in at once.
const TOGETHER: usize = 1024;

pub(super) async fn page(viewer: Viewer) -> Result<impl IntoResponse, Refused> {
    let list = list(&viewer.client).await?;
    let kinds = viewer.daemon.kinds.known(&viewer.client, None).await?;
    Ok(frame::screen(
        "Sessions",
        "/ui/stream",
        &html! {
            main.sessions id="main" {
                h1 { "Sessions" }
                (list)
                (new(&kinds))
            }
        },
    ))
}

/// The list, whole on connecting, then whenever it is another.
pub(super) async fn stream(viewer: Viewer) -> Result<Response, Refused> {
    let after = viewer.client.last_position().await?;
    let place = viewer.place()?;
    let Viewer { client, daemon } = viewer;
    let watch = Watch {
        followed: client.follow(Cursor::Log { after }, EventFilter::default()).await?,
        client,
        stop: daemon.stop.clone(),
        sent: None,
    };
    Ok(feed::answer(place, watch))
}

struct Watch {
    client: Client,
    followed: ClientSubscription,
    stop: CancellationToken,
    sent: Option<String>,
}

/// Waits for an event that changes what the list says; what jobs say and print does not.
async fn change(followed: &mut ClientSubscription) -> Result<(), Error> {
    while is_said(&followed.next().await?.body) {}
    Ok(())
}

impl Feed for Watch {
    async fn next(&mut self) -> Option<String> {
        if self.sent.is_some() {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                event = change(&mut self.followed) => event.ok()?,
                () = tokio::time::sleep(SILENCE) => return Some(KEEP_ALIVE.to_owned()),
            }
            tokio::time::sleep(RHYTHM).await;
            for _ in 0..TOGETHER {
                if self.followed.next().now_or_never().is_none() {
                    break;
                }
            }
        }
        let html = list(&self.client).await.ok()?.into_string();
        let is_other = self.sent.as_ref() != Some(&html);
        self.sent = Some(html.clone());
        Some(if is_other { Patch::Morph(html).events() + &reached(0) } else { KEEP_ALIVE.to_owned() })
    }
}

async fn list(client: &Client) -> Result<Markup, Error> {
    let sessions =
        client.sessions(SessionFilter { limit: Some(SHOWN + 1), ..SessionFilter::default() }).await?;
    Ok(html! {
        section #sessions aria-label="Sessions" {
            @if sessions.is_empty() { p.faint { "There is no session yet." } }
            ul.rows { @for session in sessions.iter().take(SHOWN) { (row(session, is_shared(&session.name, &sessions))) } }
            @if sessions.len() > SHOWN { p.faint { "Older ones are found by searching." } }
        }
    })
}

/// Whether several sessions have this name.
fn is_shared(name: &str, sessions: &[Session]) -> bool {
    sessions.iter().filter(|session| session.name == name).count() > 1
}

/// A session in the list, with the end of its id where its name does not tell it from others.
fn row(session: &Session, is_shared: bool) -> Markup {
    let asks = session.asks.len();
    html! {
        li id={ "session-" (session.id) } {
            a href={ "/ui/sessions/" (session.id) } {
                span.name { (session.name) }
                span.title { (session.title.as_deref().unwrap_or("nothing was run yet")) }
            }
            p.facts {
                (state(session.state()))
                @if asks > 0 { span.state.asks { (asks) (if asks == 1 { " ask" } else { " asks" }) } }
                @if !session.lane.is_empty() { span { (session.lane.len()) " wait" } }
                @if is_shared { span { (session.id.short()) } }
                span { (session.kind) }
                span.path { (session.project.as_deref().unwrap_or(&session.working_directory)) }
                @if session.evals > 0 { span { (session.evals) (if session.evals == 1 { " eval" } else { " evals" }) } }
                @if session.forked_from.is_some() { span { "fork" } }
                span { (moment(session.last_activity)) }
            }
        }
    }
}

/// The kinds that can be chosen for a folder, as a patch of the form.
pub(super) async fn kinds_of(viewer: Viewer, uri: Uri) -> Result<Response, Refused> {
    let folder = argument(&uri, "folder").filter(|folder| !folder.is_empty());
    let known = viewer.daemon.kinds.known(&viewer.client, folder).await?;
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], Patch::morph(kinds(&known)).events()).into_response())
}

fn new(known: &[KnownKind]) -> Markup {
    html! {
        details.new {
            summary { "New session" }
            form #new {
                label { "Folder" input name="workingDirectory" required placeholder="/home/you/project" autocomplete="off"; }
                label { "Name" input name="name" placeholder="the folder's name" autocomplete="off"; }
                (kinds(known))
                button.primary type="submit" { "Create" }
            }
        }
    }
}

/// What can be chosen, and below it why the rest cannot.
fn kinds(known: &[KnownKind]) -> Markup {
    let usable = known.iter().filter(|kind| kind.missing.is_none());
    html! {
        div #kinds {
            label {
                "Kind"
                select name="kind" required {
                    @for kind in usable { option value=(kind.kind) { (kind.name) } }
                }
            }
            @if known.iter().any(|kind| kind.missing.is_some()) {
                ul.missing aria-label="Kinds that cannot start here" {
                    @for KnownKind { name, missing, .. } in known {
                        @if let Some(Missing { reason, next_step }) = missing {
                            li { b { (name) } ": " (with_commands(reason)) ". " (with_commands(next_step)) }
                        }
                    }
                }
            }
        }
    }
}

/// A text whose commands stand between backticks.
fn with_commands(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 0 { (piece) } @else { code { (piece) } }
        }
    }
}
