//! What a person sees on attaching to a session. Source: seed 000, "Connected REPL shows metadata on attach".

use mainstay_model::{SessionState, Timestamp};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::turn::{so_far, state_words};
use mainstay_terminal::{Paint, Tone, ago, printable};
use mainstay_terminal_client::fault::{HardReset, fault_text};
use mainstay_terminal_client::session_text::{orphaned_text, startup_text};

use crate::command::PromptLanguage;

/// Between two facts on a line.
pub(crate) const DOT: &str = " • ";

/// What is shown on attaching.
pub(crate) fn banner(session: &SessionView, paint: Paint, now: Timestamp) -> String {
    let hint = match PromptLanguage::of(&session.kind) {
        PromptLanguage::Fsharp => "Type F#, or :help".to_owned(),
        PromptLanguage::Foreign => format!("Type {}, or :help", session.kind),
        PromptLanguage::Words => "Say something, or :help".to_owned(),
    };
    let hint = paint.tone(Tone::Faint, &hint);
    format!("Connected to {}{hint}\n", facts(session, paint, now))
}

/// Which session it is, what it runs on, how it stands.
pub(crate) fn facts(session: &SessionView, paint: Paint, now: Timestamp) -> String {
    let mut text = format!(
        "session-{} ({}){}\n",
        session.short_id,
        paint.tone(Tone::Name, &printable(&session.name)),
        language(session)
    );
    let mut place = printable(&session.working_directory).into_owned();
    if let Some(project) = &session.project {
        place.push_str(&format!("{DOT}Project {}", printable(project_name(project))));
    }
    text.push_str(&place);
    text.push('\n');
    let times = format!(
        "Started {}{DOT}Last active {}",
        ago(session.created_at, now),
        ago(session.last_activity, now)
    );
    text.push_str(&format!("{}{DOT}{}\n", state(session, paint), paint.tone(Tone::Faint, &times)));
    if let Some(progress) = session.warm_up {
        let far = format!("{progress}; code waits until that is done, the rest can be used");
        text.push_str(&format!("{}\n", paint.tone(Tone::Warning, &far)));
    }
    text.push_str(&startup_text(session, paint));
    if let Some(rebuilt) = session.rebuilt.as_ref().filter(|rebuilt| rebuilt.is_news) {
        text.push_str(&format!("{}\n", paint.tone(Tone::Warning, &printable(&rebuilt.to_string()))));
    }
    if let Some(state) = session.agent.as_ref().and_then(|agent| agent.state.as_ref()) {
        let so_far = (!session.usage.is_zero()).then(|| so_far(&session.usage));
        let words: Vec<String> = [state_words(state)].into_iter().chain(so_far).collect();
        text.push_str(&format!("{}\n", printable(&words.join(DOT))));
    }
    text.push_str(&orphaned_text(session, paint, now).unwrap_or_default());
    if session.asks > 0 {
        let asks = format!("{} waiting for an answer; `:asks` lists them", session.asks);
        text.push_str(&format!("{}\n", paint.tone(Tone::Warning, &asks)));
    }
    text.push_str(&fault_text(session, HardReset::Prompt, paint).unwrap_or_default());
    text
}

fn language(session: &SessionView) -> String {
    match &session.worker {
        Some(worker) => format!("{DOT}{} on {}", printable(&worker.kernel), printable(&worker.runtime)),
        None => format!("{DOT}{}", session.kind),
    }
}

fn project_name(project: &str) -> &str {
    std::path::Path::new(project).file_name().and_then(|name| name.to_str()).unwrap_or(project)
}

fn state(session: &SessionView, paint: Paint) -> String {
    let tone = match session.state.as_str() {
        state if state == SessionState::Ready.name() => Tone::Good,
        state if state == SessionState::Faulted.name() => Tone::Error,
        _ => Tone::Warning,
    };
    paint.tone(tone, &session.state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Seq, SessionId, SessionKind, Version};
    use mainstay_protocol::view::{Orphaned, WorkerView};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn session() -> SessionView {
        let session: SessionId = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        SessionView {
            capabilities: None,
            session,
            short_id: session.short(),
            name: "Harmony".to_owned(),
            kind: SessionKind::fsharp(),
            language: None,
            state: "Ready".to_owned(),
            fault: None,
            warm_up: None,
            rebuilt: None,
            validity: None,
            agent: None,
            version: Version::ZERO,
            waiting: Vec::new(),
            owner: mainstay_model::Principal::local(),
            asks: 0,
            offered: Vec::new(),
            working_directory: "/code/harmony".to_owned(),
            startup: None,
            project: Some("/code/harmony/Harmony.fsproj".to_owned()),
            title: None,
            forked_from: None,
            deleted_at: None,
            created_at: at("2026-02-13T11:17:00Z"),
            last_activity: at("2026-02-13T13:30:00Z"),
            last_seq: Seq(42),
            evals: 7,
            failures: 1,
            usage: Default::default(),
            running: None,
            orphaned: None,
            dropped_environment: None,
            application: None,
            worker: Some(WorkerView {
                kernel: "F# 4.7".to_owned(),
                runtime: ".NET Core 3.1.32".to_owned(),
                pid: 4711,
                usage: None,
            }),
        }
    }

    fn shown(session: &SessionView) -> String {
        banner(session, Paint::plain(), at("2026-02-13T13:30:20Z"))
    }

    #[test]
    fn a_ready_session() {
        insta::assert_snapshot!(shown(&session()), @r"
        Connected to session-a1b2c3d4 (Harmony) • F# 4.7 on .NET Core 3.1.32
        /code/harmony • Project Harmony.fsproj
        Ready • Started 2 h ago • Last active just now
        Type F#, or :help
        ");
    }

    #[test]
    fn a_session_in_which_someone_asks_says_so() {
        let asking = SessionView { state: "Waiting".to_owned(), asks: 2, ..session() };
        insta::assert_snapshot!(shown(&asking), @r"
        Connected to session-a1b2c3d4 (Harmony) • F# 4.7 on .NET Core 3.1.32
        /code/harmony • Project Harmony.fsproj
        Waiting • Started 2 h ago • Last active just now
        2 waiting for an answer; `:asks` lists them
        Type F#, or :help
        ");
    }

    #[test]
    fn a_session_in_which_code_was_left_behind_says_whose_it_is() {
        let orphaned =
            Orphaned { by: "mcp:codex\u{1b}[2J".to_owned(), requested_at: at("2026-02-13T13:20:20Z") };
        let left = SessionView { state: "Evaluating".to_owned(), orphaned: Some(orphaned), ..session() };
        insta::assert_snapshot!(shown(&left), @r"
        Connected to session-a1b2c3d4 (Harmony) • F# 4.7 on .NET Core 3.1.32
        /code/harmony • Project Harmony.fsproj
        Evaluating • Started 2 h ago • Last active just now
        what mcp:codex␛[2J sent 10 min ago still runs, and its client is gone; `mainstay cancel --session a1b2c3d4` stops it
        Type F#, or :help
        ");
    }

    #[test]
    fn a_faulted_session_says_why_and_what_helps() {
        let faulted = SessionView {
            state: "Faulted".to_owned(),
            fault: Some("the worker was lost five times\u{1b}[2J".to_owned()),
            project: None,
            title: None,
            forked_from: None,
            deleted_at: None,
            worker: None,
            ..session()
        };
        insta::assert_snapshot!(shown(&faulted), @r"
        Connected to session-a1b2c3d4 (Harmony) • fsharp
        /code/harmony
        Faulted • Started 2 h ago • Last active just now
          the worker was lost five times␛[2J
          Stop it with `mainstay session stop a1b2c3d4` and use it again: its definitions are kept. Where they are what breaks it, `:hard-reset` drops them.
        Type F#, or :help
        ");
    }
}
