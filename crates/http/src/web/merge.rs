//! The screen of a merge: into which session, and which of this one's inputs. They run there one after the other, up to the first that fails;
//! what came of each is said beside it.

use std::collections::BTreeSet;

use axum::extract::Path;
use axum::http::Uri;
use axum::response::IntoResponse;
use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Content, Error, Origin, Role, Session, SessionId, SessionState, TranscriptEntry};
use maud::{Markup, html};
use serde_json::Value;

use super::cell::{moment, painted};
use super::frame;
use super::guard::{Refused, Viewer, argument, place};
use super::status::state;

/// How many entries are read at once.
const READ: usize = 512;
/// How many inputs are shown: the last ones.
const SHOWN: usize = 300;
/// How many sessions are proposed.
const TARGETS: usize = 200;

pub(super) async fn page(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<impl IntoResponse, Refused> {
    let client = &viewer.client;
    let from = client.status(viewer.session(&id).await?).await?.session;
    let targets = targets(client, &from).await?;
    let parent = from.forked_from.as_ref().map(|parent| parent.session.to_string());
    let wanted = argument(&uri, "into").or(parent);
    let into = targets.iter().find(|target| Some(target.id.to_string()) == wanted).or(targets.first());
    let body = match into {
        None => {
            html! { p.faint { "There is no other session of this kind that you may change. " a href="/ui" { "All sessions" } } }
        }
        Some(into) => {
            let there = origins(client, into.id).await?;
            let (inputs, left_out) = inputs(client, &from, &there).await?;
            let only = place(&uri, "cell");
            let is_taken = |input: &Input| match only {
                Some(cell) => input.placed.session == from.id && input.placed.first == cell,
                None => input.is_new(&from),
            };
            form(&from, &targets, into, &inputs, left_out, is_taken)
        }
    };
    let title = format!("Merge {}", from.name);
    Ok(frame::plain(
        &title,
        &html! {
            h1 { "Merge " a href={ "/ui/sessions/" (from.id) } { (from.name) } " into…" }
            (body)
        },
    ))
}

/// The sessions that could take what this one says.
async fn targets(client: &Client, from: &Session) -> Result<Vec<Session>, Error> {
    let filter = SessionFilter { limit: Some(TARGETS), ..SessionFilter::default() };
    let mut sessions = client.sessions(filter).await?;
    if let Some(parent) = &from.forked_from
        && !sessions.iter().any(|session| session.id == parent.session)
    {
        let parent = client.seen_session(parent.session).await?;
        sessions.extend(parent.filter(|parent| parent.deleted_at.is_none()));
    }
    let is_fit = |session: &Session| {
        session.id != from.id
            && session.kind == from.kind
            && session.state() != SessionState::Faulted
            && client.drives(session)
    };
    sessions.retain(is_fit);
    Ok(sessions)
}

/// Something that could be brought.
struct Input {
    /// Its index in the transcript.
    index: u64,
    placed: TranscriptEntry,
    /// How the input's job ended, by name.
    ending: String,
    /// Whether the other session has brought it before.
    is_there: bool,
}

impl Input {
    /// Whether it came to be since the fork, ran to its end, and was not brought yet.
    fn is_new(&self, from: &Session) -> bool {
        let parent = from.forked_from.as_ref().map(|parent| parent.session);
        let is_parents = self.placed.origin.is_some_and(|origin| Some(origin.session) == parent);
        self.placed.session == from.id && self.ending == "completed" && !is_parents && !self.is_there
    }
}

/// The last inputs of a transcript, and how many others there are.
async fn inputs(
    client: &Client,
    from: &Session,
    there: &BTreeSet<Origin>,
) -> Result<(Vec<Input>, usize), Error> {
    let mut inputs: Vec<Input> = Vec::new();
    each_entry(client, from.id, |index, placed| match placed.entry.role {
        Role::Input => {
            let is_there = there.contains(&Origin { session: placed.session, number: placed.number });
            inputs.push(Input { index, placed, ending: String::new(), is_there });
        }
        Role::Output => {
            if let (Some(input), Some(ending)) = (inputs.last_mut(), ending_of(&placed)) {
                ending.clone_into(&mut input.ending);
            }
        }
        // What is said has no effect that could be brought.
        _ => {}
    })
    .await?;
    let left_out = inputs.len().saturating_sub(SHOWN);
    Ok((inputs.split_off(left_out), left_out))
}

/// The entries that a session has: its own, and what those were brought from that ran to its end.
async fn origins(client: &Client, session: SessionId) -> Result<BTreeSet<Origin>, Error> {
    let mut origins = BTreeSet::new();
    let mut brought = None;
    each_entry(client, session, |_, placed| {
        origins.insert(Origin { session: placed.session, number: placed.number });
        match ending_of(&placed) {
            Some("completed") => origins.extend(brought.take()),
            Some(_) => brought = None,
            None => brought = placed.origin.or(brought),
        }
    })
    .await?;
    Ok(origins)
}

/// How a cell ended, as its output says.
fn ending_of(placed: &TranscriptEntry) -> Option<&str> {
    placed.entry.metadata.get("ending").and_then(Value::as_str)
}

async fn each_entry(
    client: &Client,
    session: SessionId,
    mut take: impl FnMut(u64, TranscriptEntry),
) -> Result<(), Error> {
    let mut from = 0;
    loop {
        let entries = client.entries(session, from, READ).await?;
        if entries.is_empty() {
            return Ok(());
        }
        for placed in entries {
            take(from, placed);
            from += 1;
        }
    }
}

fn form(
    from: &Session,
    targets: &[Session],
    into: &Session,
    inputs: &[Input],
    left_out: usize,
    is_taken: impl Fn(&Input) -> bool,
) -> Markup {
    html! {
        p.faint { "What you choose runs there, one after the other, up to the first that does not run to its end. This session stays as it is." }
        form #merge data-from=(from.id) {
            label.into {
                "Into"
                select name="into" data-goes={ "/ui/sessions/" (from.id) "/merge?into=" } {
                    @for target in targets {
                        option value=(target.id) selected[target.id == into.id] {
                            (target.name)
                            @if from.forked_from.as_ref().is_some_and(|parent| parent.session == target.id) { " · what this one was forked off" }
                        }
                    }
                }
                span.facts { (state(into.state())) a href={ "/ui/sessions/" (into.id) } { "see it" } }
            }
            @if left_out > 0 { p.faint { (left_out) " earlier inputs are not shown; `mainstay session merge` takes any." } }
            @if inputs.is_empty() { p.faint { "This session has no inputs." } }
            @else {
                ol.inputs {
                    @for input in inputs { (choice(from, input, is_taken(input))) }
                }
            }
            div.buttons {
                button.primary type="submit" disabled[inputs.is_empty()] { "Merge into " (into.name) }
                button type="button" data-do="mergeAll" { "Choose all" }
                button type="button" data-do="mergeNone" { "Choose none" }
            }
            p #merged role="status" {}
        }
    }
}

fn choice(from: &Session, Input { index, placed, ending, is_there }: &Input, is_taken: bool) -> Markup {
    let more = match &placed.entry.content {
        Content::Text(_) => None,
        Content::Object { bytes, .. } => Some(*bytes),
    };
    html! {
        li {
            input type="checkbox" name="entry" value=(index) id={ "input-" (index) } checked[is_taken];
            label for={ "input-" (index) } {
                span.facts {
                    span { "entry " (index + 1) }
                    (moment(placed.at))
                    @if placed.session != from.id { span { "from before the fork" } }
                    @if *is_there { span { "is there already" } }
                    @if !matches!(ending.as_str(), "completed" | "") { span.state.bad { (ending) } }
                    span.came {}
                }
                (painted(placed.entry.content.beginning(), from.language().as_ref()))
                @if let Some(bytes) = more { span.faint { "… " (bytes) " bytes" } }
            }
        }
    }
}
