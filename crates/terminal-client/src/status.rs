//! The daemon's status, as text.

use mainstay_model::breaker::{BreakerState, BreakerStatus};
use mainstay_model::client_info::ClientInfo;
use mainstay_model::{Limits, SessionId, Timestamp};
use mainstay_protocol::operations::DaemonStatus;
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Paint, Tone, ago, bytes, printable};
use serde_json::Value;

use crate::fault::{HardReset, fault_text};
use crate::session_text::{application_text, called, orphaned_text, session_line, validity_words};

/// The daemon and its live sessions.
pub fn status_text(status: &DaemonStatus, paint: Paint, now: Timestamp) -> String {
    let mut text = format!(
        "mainstay {} on 127.0.0.1:{}, pid {}, started {}\n",
        status.version,
        status.port,
        status.pid,
        ago(status.started_at, now)
    );
    if let Some(port) = status.pi_port {
        text.push_str(&format!("  pi protocol on 127.0.0.1:{port}\n"));
    }
    text.push_str(&format!("  home {}\n", status.home));
    if let Some(resident) = status.resident_bytes {
        text.push_str(&format!("  memory {}\n", bytes(resident)));
    }
    let DaemonStatus { limits, .. } = status;
    let live = status.live.len();
    text.push_str(&format!(
        "  {live} live of {} sessions, at most {}\n",
        status.stored, limits.live_sessions
    ));
    text.push_str(&format!("  {} commands under way, at most {}", status.commands, limits.commands));
    text.push_str(&match status.creations {
        0 => "\n".to_owned(),
        creations => format!("; {creations} sessions being created\n"),
    });
    if status.asks > 0 {
        let asks = format!("  {} asks wait for an answer: mainstay ask list\n", status.asks);
        text.push_str(&paint.tone(Tone::Warning, &asks));
    }
    for (kind, breaker) in &status.breakers {
        text.push_str(&breaker_text(&format!("{kind} is not started"), breaker, paint).unwrap_or_default());
    }
    for (provider, breaker) in &status.providers {
        let waits = format!("no turn begins with the provider {}", printable(provider));
        text.push_str(&breaker_text(&waits, breaker, paint).unwrap_or_default());
    }
    let (clients, subscribers) = (status.clients.len(), status.subscribers);
    text.push_str(&format!(
        "  {clients} clients, at most {}; {subscribers} subscriptions\n",
        limits.connections
    ));
    for client in &status.clients {
        text.push_str(&paint.tone(Tone::Faint, &client_text(client, &status.live, now)));
    }
    for session in &status.live {
        text.push_str(&session_line(session, paint, now));
        for command in &session.waiting {
            let waits = format!("    waits: {}\n", printable(command.as_str()));
            text.push_str(&paint.tone(Tone::Faint, &waits));
        }
        text.push_str(
            &orphaned_text(session, paint, now).map(|text| format!("    {text}")).unwrap_or_default(),
        );
        text.push_str(
            &application_text(session, paint, now).map(|text| format!("    {text}")).unwrap_or_default(),
        );
        if let Some(words) = validity_words(session) {
            text.push_str(&paint.tone(Tone::Warning, &format!("    {words}\n")));
        }
        text.push_str(&fault_text(session, HardReset::Command, paint).unwrap_or_default());
        if !session.usage.is_zero() {
            text.push_str(&paint.tone(Tone::Faint, &format!("    {}\n", session.usage)));
        }
        if let Some(usage) = session.worker.as_ref().and_then(|worker| worker.usage) {
            let used = format!(
                "    worker {}, {:.1} s CPU\n",
                bytes(usage.resident_bytes),
                usage.cpu_ms as f64 / 1000.0
            );
            text.push_str(&paint.tone(Tone::Faint, &used));
        }
    }
    text
}

/// Why what a breaker guards is not done now; none where it is.
fn breaker_text(what: &str, breaker: &BreakerStatus, paint: Paint) -> Option<String> {
    let BreakerStatus { state, failures, reason, retry_after_ms } = breaker;
    let next = match (state, retry_after_ms) {
        (BreakerState::Closed, _) => return None,
        (BreakerState::Open, Some(left)) => format!("the next is tried in {} s", left.div_ceil(1000)),
        (BreakerState::Open | BreakerState::HalfOpen, _) => "one is tried now".to_owned(),
    };
    let reason = reason.as_deref().unwrap_or_default();
    let text = format!("  {what} after {failures} failures; {next}\n    {}\n", printable(reason));
    Some(paint.tone(Tone::Error, &text))
}

/// Who is there, and what it follows.
fn client_text(client: &ClientInfo, live: &[SessionView], now: Timestamp) -> String {
    let ClientInfo { name, principal, since, follows, follows_all, .. } = client;
    let session_name = |session: &SessionId| called(*session, live);
    let all = follows_all.then(|| "all sessions".to_owned());
    let follows: Vec<_> = follows.iter().map(session_name).chain(all).collect();
    let follows =
        if follows.is_empty() { String::new() } else { format!(", follows {}", follows.join(", ")) };
    printable(&format!("    {name} of {principal}, {}{follows}", ago(*since, now))).into_owned() + "\n"
}

/// Every limit, as the configuration names it.
pub fn limits_text(limits: &Limits) -> String {
    let Ok(Value::Object(limits)) = serde_json::to_value(limits) else { return String::new() };
    let width = limits.keys().map(String::len).max().unwrap_or(0);
    let rows = limits.iter().map(|(name, value)| format!("  {name:<width$}  {value}\n"));
    std::iter::once("limits\n".to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::Principal;

    #[test]
    fn a_breaker_that_is_open_says_why_and_until_when() {
        let what = "fsharp is not started";
        let open = BreakerStatus {
            state: BreakerState::Open,
            failures: 5,
            reason: Some("there is no SDK".to_owned()),
            retry_after_ms: Some(11_200),
        };
        insta::assert_snapshot!(breaker_text(what, &open, Paint::plain()).unwrap(), @"
        fsharp is not started after 5 failures; the next is tried in 12 s
          there is no SDK
        ");
        let closed = BreakerStatus { state: BreakerState::Closed, retry_after_ms: None, ..open };
        assert_eq!(breaker_text(what, &closed, Paint::plain()), None);
    }

    #[test]
    fn a_client_is_shown_with_what_it_follows() {
        let now: Timestamp = "2026-02-13T13:30:20Z".parse().unwrap();
        let client = ClientInfo {
            number: 1,
            principal: Principal::local(),
            name: "mcp:agent".to_owned(),
            since: "2026-02-13T13:28:20Z".parse().unwrap(),
            follows: vec!["019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap()],
            follows_all: true,
        };
        insta::assert_snapshot!(client_text(&client, &[], now), @"    mcp:agent of local, 2 min ago, follows a1b2c3d4, all sessions");
    }

    #[test]
    fn the_limits_are_named_as_in_the_configuration() {
        let text = limits_text(&Limits::default());
        let named = text.lines().find(|line| line.split_whitespace().next() == Some("lane-commands"));
        let value = named.and_then(|line| line.split_whitespace().last());
        assert_eq!(value, Some("64"), "{text}");
        assert_eq!(
            text.lines().count(),
            1 + serde_json::to_value(Limits::default()).unwrap().as_object().unwrap().len()
        );
    }
}
