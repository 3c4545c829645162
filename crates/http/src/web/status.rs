//! What a page shows of a session as it is now: its head, what may be done, what is asked, what waits. Each is an element of its own, which is
//! sent when it is another than before.

use std::collections::BTreeMap;

use mainstay_engine::{Client, SessionStatus};
use mainstay_model::affordance::availability;
use mainstay_model::command;
use mainstay_model::{
    Action, Availability, Error, EventBody, JobKind, PendingAsk, Question, RecordedRuns, Right, Seq, Session,
    SessionCommand, SessionState,
};
use maud::{Markup, html};
use serde_json::Value;

use super::cell::{moment, painted, who};
use super::patch::Patch;
use super::test_panel;
use mainstay_protocol::reset_warning::has_begun;
use mainstay_protocol::view::Orphaned;

/// The elements as they were sent last.
#[derive(Default)]
pub(super) struct Regions(BTreeMap<&'static str, String>);

/// The elements as they are.
pub(super) struct StatusElements {
    pub(super) head: Markup,
    pub(super) actions: Markup,
    pub(super) asks: Markup,
    pub(super) lane: Markup,
    pub(super) run: Markup,
    pub(super) tests: Markup,
}

impl Regions {
    /// What brings the page up to date.
    pub(super) fn update(&mut self, shown: StatusElements) -> Vec<Patch> {
        let StatusElements { head, actions, asks, lane, run, tests } = shown;
        let regions = [
            ("head", head),
            ("actions", actions),
            ("asks", asks),
            ("lane", lane),
            ("run", run),
            ("tests", tests),
        ];
        let mut patches = Vec::new();
        for (name, html) in regions {
            let html = html.into_string();
            if self.0.get(name) != Some(&html) {
                self.0.insert(name, html.clone());
                patches.push(Patch::Morph(html));
            }
        }
        patches
    }
}

/// A session as it is now, with what its tests last said.
///
/// # Errors
/// As [`Client::status`].
pub(super) async fn shown(
    client: &Client,
    status: &SessionStatus,
    runs: &RecordedRuns,
) -> Result<StatusElements, Error> {
    let session = &status.session;
    let may = ViewerRights { drive: client.drives(session), delete: client.may_delete(session) };
    Ok(StatusElements {
        head: head(status, &people(client, session)),
        actions: actions(session, may),
        asks: asks(&session.asks, may),
        lane: lane(client, session).await?,
        run: run(session, may),
        tests: test_panel::panel(session.id, runs),
    })
}

/// What whoever looks may do with the session at all.
#[derive(Clone, Copy)]
struct ViewerRights {
    drive: bool,
    delete: bool,
}

/// Who follows the session.
fn people(client: &Client, session: &Session) -> Vec<String> {
    let mut people: Vec<String> = client
        .clients()
        .into_iter()
        .filter(|other| other.follows.contains(&session.id))
        .map(|other| format!("{} · {}", other.principal, other.name))
        .collect();
    people.sort();
    people.dedup();
    people
}

fn head(status: &SessionStatus, people: &[String]) -> Markup {
    let SessionStatus { session, usage, warm_up, is_orphaned, dropped_environment: _ } = status;
    let orphaned = is_orphaned.then(|| Orphaned::of(session)).flatten();
    html! {
        header #head {
            h1 { (session.name) }
            p.facts {
                (state(session.state()))
                @if let Some(progress) = warm_up { span { (progress) } }
                @if let Some(Orphaned { by, .. }) = orphaned { span { "by " (by) ", its client is gone" } }
                span { (session.kind) }
                @if let Some(worker) = &session.worker { span { (worker.kernel) ", " (worker.runtime) } }
                @if let Some(usage) = usage { span { (size(usage.resident_bytes)) } }
                @if let Some(agent) = &session.agent { span { (agent) } }
                @if !session.usage.is_zero() { span { (session.usage) } }
                span.path { (session.project.as_deref().unwrap_or(&session.working_directory)) }
                span { "since " (moment(session.created_at)) }
                a href={ "/ui/sessions/" (session.id) "/lineage" } { "lineage" }
            }
            @if let mainstay_model::Activity::Faulted { message } = &session.life { p.error { (message) } }
            @if !people.is_empty() {
                p.people { "Here: " @for person in people { span.person { (person) } } }
            }
        }
    }
}

/// A state, as a word in its colour.
pub(super) fn state(state: SessionState) -> Markup {
    let class = match state {
        SessionState::Uninitialized => "off",
        SessionState::WarmingUp | SessionState::Evaluating => "runs",
        SessionState::Ready => "ok",
        SessionState::Waiting(_) => "asks",
        SessionState::Faulted => "bad",
    };
    html! { span.state.{ (class) } { (words(state)) } }
}

const fn words(state: SessionState) -> &'static str {
    match state {
        SessionState::Uninitialized => "idle",
        SessionState::WarmingUp => "warms up",
        SessionState::Ready => "ready",
        SessionState::Evaluating => "runs",
        SessionState::Waiting(_) => "waits for an answer",
        SessionState::Faulted => "broken",
    }
}

/// Bytes as people read them.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// What may be done with the session, but for what the editor does: what is offered at hand, what is permitted behind it.
fn actions(session: &Session, may: ViewerRights) -> Markup {
    let known =
        Action::ALL.into_iter().filter(|action| action.is_of(session.capabilities()) && may.take(*action));
    let (mut offered, mut permitted) = (Vec::new(), Vec::new());
    for action in known {
        let Some(button) = button(action, session) else { continue };
        match availability(session.state(), action) {
            Availability::Offered => offered.push(button),
            Availability::Permitted => permitted.push(button),
            Availability::Refused => {}
        }
    }
    let is_agent = session.is_agent();
    html! {
        div #actions role="toolbar" aria-label="Actions" {
            @for button in offered { (button) }
            @if is_agent && may.drive && is_heard(session.state()) { button type="button" data-do="settings" { "Model…" } }
            // What a session began with, and what it says, is there for who sees it.
            button type="button" data-do="fork" { "Fork" }
            @if session.was_reset() && has_begun(session.evals, session.title.as_deref()) {
                button type="button" data-do="undoReset" title="A new session with what was there before the last reset" { "Undo the reset" }
            }
            @if !is_agent { button type="button" data-do="mergeInto" { "Merge into…" } }
            @if !permitted.is_empty() {
                details.more {
                    summary { "More" }
                    div { @for button in permitted { (button) } }
                }
            }
        }
    }
}

impl ViewerRights {
    const fn take(self, action: Action) -> bool {
        match action.right() {
            Right::See => true,
            Right::Drive => self.drive,
            Right::Own(_) => self.delete,
        }
    }
}

/// Whether an agent does what it is given to do, now or in its turn.
const fn is_heard(state: SessionState) -> bool {
    match state {
        SessionState::Uninitialized
        | SessionState::WarmingUp
        | SessionState::Ready
        | SessionState::Evaluating
        | SessionState::Waiting(_) => true,
        SessionState::Faulted => false,
    }
}

/// The button of an action; none of what is done elsewhere on the page.
fn button(action: Action, session: &Session) -> Option<Markup> {
    let words = match action {
        Action::Cancel => "Cancel",
        Action::Reset => "Reset…",
        Action::HardReset => "Hard reset…",
        Action::Start => "Start",
        Action::Stop => "Put to rest",
        Action::Rename => "Rename…",
        Action::Delete => "Delete…",
        Action::Rebuild if session.project.is_some() => "Build and reset…",
        Action::Compact if session.is_agent() => "Shorten the conversation",
        // Done elsewhere on the page, as what the editor does and merging, which begins where what is brought can be seen.
        _ => return None,
    };
    Some(html! { button type="button" data-do=(action.name()) { (words) } })
}

/// What the editor does now.
fn run(session: &Session, may: ViewerRights) -> Markup {
    if !may.drive {
        return html! { div #run { span.hint { "You may look at this session, and not change it." } } };
    }
    let is_agent = session.is_agent();
    let in_turn = session.running().is_some_and(|running| running.kind == JobKind::Turn);
    let (path, words, hint) = match (session.state(), is_agent) {
        (SessionState::Ready, false) => ("exec", "Run", ""),
        (SessionState::Ready | SessionState::Uninitialized, true) => ("prompt", "Send", ""),
        (SessionState::Evaluating | SessionState::Waiting(_), true) if in_turn => {
            ("steer", "Steer", "It hears it before its next step.")
        }
        // Nobody would answer what is said to it while it takes a setting.
        (SessionState::Evaluating | SessionState::Waiting(_), true) => {
            ("prompt", "Send", "It is heard once the job before has ended.")
        }
        (SessionState::WarmingUp, true) => ("prompt", "Send", "It is heard once the agent is ready."),
        (SessionState::Uninitialized, false) => ("exec", "Start and run", ""),
        (SessionState::WarmingUp, false) => ("exec", "Run", "It runs once the session is ready."),
        (SessionState::Evaluating | SessionState::Waiting(_), false) => {
            ("exec", "Run next", "It runs once the job before it has ended.")
        }
        (SessionState::Faulted, _) => {
            ("", "Run", "The session is broken: reset it, or put it to rest and start it again.")
        }
    };
    html! {
        div #run {
            button.primary type="submit" name=(path) disabled[path.is_empty()] { (words) }
            kbd { "Ctrl Enter" }
            span.hint { (hint) }
        }
    }
}

/// What waits for an answer.
fn asks(asks: &[PendingAsk], may: ViewerRights) -> Markup {
    html! {
        section #asks aria-label="Asks" aria-live="polite" {
            @for PendingAsk { ask, raised_at, source, votes, .. } in asks {
                form.ask id={ "ask-" (ask.ask) } data-ask=(ask.ask) aria-labelledby={ "asked-" (ask.ask) } {
                    p.asked { (who(source)) (moment(*raised_at)) }
                    label id={ "asked-" (ask.ask) } for={ "answer-" (ask.ask) } { (ask.question.prompt) }
                    @if ask.question.needed_answers() > 1 {
                        p.hint { (ask.question.needed_answers()) " must give the same answer" }
                        @for vote in votes {
                            p.hint { (vote.source.principal()) " answered " (vote.value.to_string()) }
                        }
                    }
                    @if may.drive {
                        div.answer {
                        (answers(&format!("answer-{}", ask.ask), &ask.question))
                        @if !ask.question.is_guidance() {
                            button.quiet type="button" data-do="decline" { "Leave unanswered" }
                        }
                        }
                    }
                }
            }
        }
    }
}

/// What an answer can be, as its schema says.
fn answers(id: &str, question: &Question) -> Markup {
    let schema = &question.schema;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = question.default.as_ref().map(&text).unwrap_or_default();
    let choice = |value: &Value| html! { button type="submit" name="value" value=(value) { (text(value)) } };
    let line = |kind: &str, input: &str| {
        html! {
            input id=(id) name="value" type=(input) step="any" data-kind=(kind) value=(default) autocomplete="off";
            button.primary type="submit" { "Answer" }
        }
    };
    match (schema.get("enum").and_then(Value::as_array), schema["type"].as_str()) {
        (Some(options), _) => html! { @for option in options { (choice(option)) } },
        (None, Some("boolean")) => html! {
            button type="submit" name="value" value="true" { "Yes" }
            button type="submit" name="value" value="false" { "No" }
        },
        (None, Some("string")) if question.is_secret() => line("text", "password"),
        (None, Some("string")) => line("text", "text"),
        (None, Some("integer" | "number")) => line("json", "number"),
        (None, _) => html! {
            textarea id=(id) name="value" data-kind="json" rows="3" { (default) }
            button.primary type="submit" { "Answer" }
        },
    }
}

/// The commands that wait for their turn, with what they say.
async fn lane(client: &Client, session: &Session) -> Result<Markup, Error> {
    let mut waiting = Vec::new();
    for command in &session.lane {
        let before = Seq(command.queued.0.saturating_sub(1));
        let events = client.events(session.id, before, 1).await?;
        if let Some(event) = events.into_iter().next().filter(|event| event.seq == command.queued) {
            waiting.push(event);
        }
    }
    Ok(html! {
        section #lane aria-label="Waits for its turn" {
            @for event in &waiting {
                @if let EventBody::CommandQueued(queued) = &event.body {
                    article.waits id={ "waits-" (event.seq) } {
                        header { (who(&event.metadata.source)) span.state.off { "waits for its turn" } }
                        @match &queued.body {
                            SessionCommand::Eval(command::Eval { code, .. }) => { (painted(code, session.language().as_ref())) }
                            body => { p { (body.action()) } }
                        }
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_that_several_must_answer_shows_who_has() {
        use mainstay_model::vote::Vote;
        use mainstay_model::{Ask, JobId, Raiser, Source};

        let ask = Ask {
            ask: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            raiser: Raiser::Job { job: JobId::from_uuid(uuid::Uuid::nil()) },
            question: Question { quorum: Some(2), ..Question::text("Which?") },
            deadline: None,
        };
        let vote = Vote { source: Source::System, value: Value::from("<green>"), channel: None, lease: None };
        let source = Source::Worker;
        let raised_at = mainstay_model::Timestamp::UNIX_EPOCH;
        let pending = PendingAsk { ask, raised: Seq(1), raised_at, source, votes: vec![vote] };
        let shown = asks(&[pending], ViewerRights { drive: true, delete: false }).into_string();
        assert!(shown.contains("2 must give the same answer"), "{shown}");
        assert!(shown.contains("answered &quot;&lt;green&gt;&quot;"), "{shown}");
    }

    #[test]
    fn a_secret_is_typed_unseen_and_other_text_is_not() {
        let field =
            |schema: Value| answers("a", &Question { schema, ..Question::text("Key?") }).into_string();
        let text = serde_json::json!({ "type": "string" });
        let secret = serde_json::json!({ "type": "string", "writeOnly": true });
        assert!(field(secret).contains(r#"type="password""#));
        assert!(field(text).contains(r#"type="text""#));
    }
}
