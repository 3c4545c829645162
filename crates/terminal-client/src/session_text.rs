//! Sessions as text: a line for each, and the lines below it.

use mainstay_model::session::Parent;
use mainstay_model::{Principal, SessionId, Timestamp, ValidityCounts};
use mainstay_protocol::view::{ApplicationView, Orphaned, SessionView, StartupView};
use mainstay_terminal::{Paint, Tone, ago, counted, printable};

/// What a session's worker brought in before its own code, and what of it did not go as it was meant to; nothing where there was nothing.
pub fn startup_text(session: &SessionView, paint: Paint) -> String {
    let Some(StartupView { summary, faults, unbuilt }) = &session.startup else { return String::new() };
    let line = |line: &str, tone| paint.tone(tone, &format!("  {}", printable(line))) + "\n";
    let unbuilt = unbuilt.iter().map(|unbuilt| format!("{unbuilt} (`mainstay session rebuild --keep`)"));
    let warnings = faults.iter().cloned().chain(unbuilt).map(|warning| line(&warning, Tone::Warning));
    let summary = (!summary.is_empty()).then(|| line(summary, Tone::Faint));
    summary.into_iter().chain(warnings).collect()
}

/// The application of a session's project: where it listens, or that it does not run; none where none is to run.
pub fn application_text(session: &SessionView, paint: Paint, now: Timestamp) -> Option<String> {
    let ApplicationView { name, runs, addresses, since, .. } = session.application.as_ref()?;
    let name = printable(name);
    if !runs {
        let words = format!("{name} does not run; it is started again with the session's next worker");
        return Some(paint.tone(Tone::Warning, &words) + "\n");
    }
    let places = match addresses.is_empty() {
        true => "listens on nothing yet".to_owned(),
        false => printable(&addresses.join(", ")).into_owned(),
    };
    let warning = match addresses.iter().all(|address| is_loopback(address)) {
        true => String::new(),
        false => paint.tone(Tone::Warning, "; other machines reach it"),
    };
    Some(format!("{name} runs: {places}, started {}{warning}\n", ago(*since, now)))
}

/// Whether an address, such as `http://127.0.0.1:5000` or `[::]:80`, is one that only this machine reaches.
fn is_loopback(address: &str) -> bool {
    let place = address.split_once("://").map_or(address, |(_, rest)| rest);
    let place = place.split('/').next().unwrap_or(place);
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => place.split(':').next().unwrap_or(place),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// That the connection which asked for what runs in a session has left, and what to do; none where it has not.
pub fn orphaned_text(session: &SessionView, paint: Paint, now: Timestamp) -> Option<String> {
    let Orphaned { by, requested_at } = session.orphaned.as_ref()?;
    let words = format!("what {by} sent {} still runs, and its client is gone", ago(*requested_at, now));
    let words = paint.tone(Tone::Warning, &printable(&words));
    Some(format!("{words}; `mainstay cancel --session {}` stops it\n", session.short_id))
}

/// How many of a session's evals may hold no longer; none where all do, or it cannot be told.
pub fn validity_words(session: &SessionView) -> Option<String> {
    let ValidityCounts { stale, invalid, unknown: _ } = session.validity?;
    let part = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let parts: Vec<_> = part(stale, "stale").into_iter().chain(part(invalid, "invalid")).collect();
    (!parts.is_empty()).then(|| format!("{} evals: what they used has changed", parts.join(" and ")))
}

/// What a session counts that it was given to do, and how many of those failed. An agent's settings, compactions and lines of a shell count
/// for nothing.
pub fn tally(session: &SessionView) -> (&'static str, String) {
    let counted = if session.is_agent() { "turn" } else { "eval" };
    (counted, format!("{} of them failed", session.failures))
}

/// What a session has come to and where it began, for a line below its own. `all` are the sessions whose names are known.
pub fn session_facts(session: &SessionView, all: &[SessionView]) -> String {
    let (noun, failed) = tally(session);
    let failed = if session.failures > 0 { format!(", {failed}") } else { String::new() };
    let origin = session.forked_from.as_ref().map(|Parent { session: parent, entries }| {
        format!(", forked off {} after {}", called(*parent, all), counted(*entries, "entry"))
    });
    format!("{}{failed}{}", counted(session.evals, noun), origin.unwrap_or_default())
}

/// What a session is called among these: its name, with the end of its id where another has the same; the end of its id where it is not one
/// of them.
pub fn called<'a>(session: SessionId, all: impl IntoIterator<Item = &'a SessionView> + Clone) -> String {
    let Some(found) = all.clone().into_iter().find(|other| other.session == session) else {
        return session.short();
    };
    let is_shared = all.into_iter().any(|other| other.name == found.name && other.session != session);
    let name = printable(&found.name);
    if is_shared { format!("{name} ({})", found.short_id) } else { name.into_owned() }
}

/// A session on one line.
pub fn session_line(session: &SessionView, paint: Paint, now: Timestamp) -> String {
    let state = match session.state.as_str() {
        "Faulted" => paint.tone(Tone::Error, &format!("{:<13}", session.state)),
        "Ready" => paint.tone(Tone::Good, &format!("{:<13}", session.state)),
        other => format!("{other:<13}"),
    };
    let owner = match session.owner == Principal::local() {
        true => String::new(),
        false => paint.tone(Tone::Warning, &format!(" of {}", session.owner)),
    };
    let warm_up = session.warm_up.map(|progress| format!("  {progress}")).unwrap_or_default();
    let title = session.title.as_ref().map(|title| format!("  {}", printable(title))).unwrap_or_default();
    format!(
        "{}  {state} {:<8} {}{owner}  {}  {}{warm_up}{}\n",
        paint.tone(Tone::Name, &session.short_id),
        session.kind.as_str(),
        session.name,
        paint.tone(Tone::Faint, &session.working_directory),
        paint.tone(Tone::Faint, &ago(session.last_activity, now)),
        paint.tone(Tone::Faint, &title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: &str) -> SessionView {
        let view = serde_json::json!({
            "session": id, "shortId": &id[28..], "name": name, "kind": "fsharp", "state": "Ready", "offered": [],
            "workingDirectory": "/", "createdAt": "2026-02-13T11:17:00Z", "lastActivity": "2026-02-13T11:17:00Z",
            "lastSeq": 1, "evals": 0, "failures": 0,
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn an_application_is_told_with_its_addresses_and_whether_others_reach_it() {
        let text = |runs: bool, addresses: &[&str]| {
            let since: Timestamp = "2026-02-13T11:17:00Z".parse().unwrap();
            let application = serde_json::json!({
                "name": "Shop", "runs": runs, "addresses": addresses, "since": since,
            });
            let mut view = session("019a0000-0000-7000-8000-000011111111", "main");
            view.application = Some(serde_json::from_value(application).unwrap());
            application_text(&view, Paint::plain(), since).unwrap()
        };
        for address in
            ["http://127.0.0.1:5000", "https://localhost:5001", "http://[::1]:80", "127.0.0.1:9000"]
        {
            assert!(!text(true, &[address]).contains("other machines"), "{address}");
        }
        for address in ["http://0.0.0.0:5000", "http://[::]:80", "http://*:80", "192.168.1.2:80"] {
            assert!(
                text(true, &["http://127.0.0.1:1", address]).contains("other machines reach it"),
                "{address}"
            );
        }
        let told = text(true, &["http://127.0.0.1:5000"]);
        assert!(told.starts_with("Shop runs: http://127.0.0.1:5000, started "), "{told}");
        assert!(text(false, &[]).contains("does not run; it is started again"));
        assert!(text(true, &[]).contains("listens on nothing yet"));
    }

    #[test]
    fn a_name_that_several_sessions_have_comes_with_the_end_of_the_id() {
        let ids = ["11111111", "22222222", "33333333", "44444444"];
        let ids = ids.map(|end| format!("019a0000-0000-7000-8000-0000{end}"));
        let names = ["main", "main", "other"];
        let all: Vec<_> = ids.iter().zip(names).map(|(id, name)| session(id, name)).collect();
        let called = ids.map(|id| called(id.parse().unwrap(), &all));
        assert_eq!(called, ["main (11111111)", "main (22222222)", "other", "44444444"]);
    }
}
