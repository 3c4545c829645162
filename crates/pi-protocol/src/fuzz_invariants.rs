//! What [`decode`] promises of every frame, whatever is in it. Property tests and fuzzers hold it to that.

#![allow(clippy::panic, reason = "a broken promise is what a test looks for")]

use serde_json::{Value, json};

use super::command::{Body, HistoryQuery, PiCommand};
use super::decode::{DEPENDENCIES, HISTORY, Invalid, NAME, PATH, PROMPT, RESERVED, SHELL, decode};

/// # Panics
/// Where a promise is broken.
pub(crate) fn check(frame: &Value) {
    match decode(frame) {
        Ok(command) => {
            is_within_limits(&command);
            says_the_same_when_it_is_written_and_read(frame, &command);
            says_the_same_under_another_name(frame, &command);
            says_something_else_with_another_field(frame, &command);
        }
        Err(invalid) => names_what_is_refused(frame, &invalid),
    }
}

fn names_what_is_refused(frame: &Value, Invalid { id, kind, errors }: &Invalid) {
    assert!(!errors.is_empty(), "refused for nothing");
    let said = |name: &str| frame.get(name).and_then(Value::as_str);
    assert_eq!((id.as_deref(), kind.as_deref()), (said("id"), said("type")));
    let is_said_of =
        |field: &str, wrong: &str| errors.split("; ").any(|error| error == format!("{field}: {wrong}"));
    let has = |field, is_wrong: fn(char) -> bool| said(field).is_some_and(|text| text.chars().any(is_wrong));
    for name in ["id", "idempotencyKey"] {
        let is_wrong = |c: char| c.is_whitespace() || c.is_control();
        assert!(
            !is_said_of(name, "Must not contain white space or control characters") || has(name, is_wrong)
        );
        assert!(
            !is_said_of(name, "Too long (max 256 bytes)") || said(name).is_some_and(|text| text.len() > 256)
        );
    }
    assert!(!is_said_of("name", "Must not contain control characters") || has("name", char::is_control));
}

fn is_within_limits(command: &PiCommand) {
    let PiCommand { id, kind, depends_on, if_version, key, session, body, fingerprint } = command;
    let is_name = |text: &str| !text.trim().is_empty() && text.chars().count() <= NAME;
    assert!(id.as_ref().is_none_or(|id| is_name(id.as_str()) && !id.as_str().starts_with(RESERVED)));
    assert!(key.as_ref().is_none_or(|key| is_name(key.as_str())));
    assert!(depends_on.len() <= DEPENDENCIES && (depends_on.is_empty() || id.is_some()));
    assert!(depends_on.iter().all(|id| is_name(id.as_str())));
    assert!(if_version.is_none() || session.is_some());
    assert!(!kind.is_empty() && fingerprint.len() == 64);
    let is_path = |path: &str| {
        !path.is_empty() && path.chars().count() <= PATH && !path.contains("..") && !path.contains('\0')
    };
    let names_its_session = || session.as_ref().is_some_and(|session| !session.trim().is_empty());
    match body {
        Body::ListSessions
        | Body::GetMetrics
        | Body::HealthCheck
        | Body::GetStartupRecovery
        | Body::ListStoredSessions => {}
        Body::CreateSession { cwd: _ } => assert!(session.as_deref().is_none_or(is_name)),
        Body::LoadSession { path } => assert!(is_path(path) && session.as_deref().is_none_or(is_name)),
        Body::GetCommandHistory(HistoryQuery { session: _, command: _, from, to, limit }) => {
            assert!(limit.is_none_or(|limit| (1..=HISTORY).contains(&limit)));
            assert!(from.zip(*to).is_none_or(|(from, to)| from <= to));
        }
        Body::DeleteSession
        | Body::SwitchSession { .. }
        | Body::Abort(_)
        | Body::Read(_)
        | Body::Set(_)
        | Body::Compact { .. }
        | Body::ExportHtml { .. }
        | Body::NewSession
        | Body::Fork { .. }
        | Body::NavigateTree { .. } => assert!(names_its_session()),
        Body::Prompt { prompt, streaming: _ } | Body::Steer(prompt) | Body::FollowUp(prompt) => {
            assert!(names_its_session() && !prompt.text.is_empty() && prompt.text.chars().count() <= PROMPT);
        }
        Body::Bash { line, is_private: _ } => {
            assert!(names_its_session() && !line.is_empty() && line.chars().count() <= SHELL);
        }
        Body::SetSessionName { name } => {
            assert!(
                names_its_session() && name.chars().count() <= NAME && !name.chars().any(char::is_control)
            );
        }
        Body::SwitchSessionFile { path } => assert!(names_its_session() && is_path(path)),
        Body::Answer { request, response } => {
            assert!(names_its_session() && request.chars().count() <= NAME && response.is_object());
        }
    }
}

fn says_the_same_when_it_is_written_and_read(frame: &Value, command: &PiCommand) {
    let read: Value = serde_json::from_str(&frame.to_string()).unwrap_or_default();
    // Some fractions are read as their neighbours.
    if read == *frame {
        assert_eq!(decode(&read).as_ref(), Ok(command));
    }
}

fn says_the_same_under_another_name(frame: &Value, command: &PiCommand) {
    let mut renamed = frame.clone();
    renamed["id"] = json!("another");
    renamed["idempotencyKey"] = json!("another");
    let Ok(renamed) = decode(&renamed) else { panic!("another name makes it wrong") };
    assert_eq!((&renamed.fingerprint, &renamed.body), (&command.fingerprint, &command.body));
}

fn says_something_else_with_another_field(frame: &Value, command: &PiCommand) {
    const FIELD: &str = "a field of no command";
    let mut extended = frame.clone();
    if extended.get(FIELD).is_none() {
        extended[FIELD] = Value::Null;
        let Ok(extended) = decode(&extended) else { panic!("what is not known makes it wrong") };
        assert_ne!(extended.fingerprint, command.fingerprint);
        assert_eq!(extended.body, command.body);
    }
}
