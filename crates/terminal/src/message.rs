//! Messages to people, on standard error: what went wrong with what to do next, and what is no data.

use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_model::{Error, ErrorCode};
use mainstay_protocol::view::SessionView;

use super::{Paint, Tone, next_step, printable};

/// Says what went wrong and what to do next.
pub fn show_error(error: &Error) {
    show_failure(&error.to_string(), error.code(), &next_step(error));
}

/// Whether what goes wrong is said as JSON.
static SAYS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on what goes wrong is said as JSON, for scripts that asked for it.
pub fn say_failures_as_json() {
    SAYS_JSON.store(true, Ordering::Relaxed);
}

/// Says it in other words than the error's own.
pub fn show_failure(message: &str, code: ErrorCode, next_step: &str) {
    if SAYS_JSON.load(Ordering::Relaxed) {
        let error =
            serde_json::json!({ "code": code.to_string(), "message": message, "nextStep": next_step });
        eprintln!("{}", serde_json::json!({ "error": error }));
        return;
    }
    let paint = Paint::stderr();
    eprintln!("{} {} [{code}]", paint.tone(Tone::Error, "error:"), printable(message));
    eprintln!("  {next_step}");
}

/// Says something that is no data.
pub fn note(text: &str) {
    eprintln!("{}", Paint::stderr().tone(Tone::Faint, text));
}

/// Says what was saved of a session's project and is not what runs: what code gives then is not of that.
pub fn tell_unbuilt(session: &SessionView) {
    if let Some(unbuilt) = session.startup.as_ref().and_then(|startup| startup.unbuilt.as_ref()) {
        let words = format!("{} (`mainstay session rebuild --keep`)", printable(unbuilt));
        eprintln!("{}", Paint::stderr().tone(Tone::Warning, &words));
    }
}

/// Says what a rebuilding left otherwise than before, where no eval has begun since.
pub fn tell_news(session: &SessionView) {
    if let Some(rebuilt) = session.rebuilt.as_ref().filter(|rebuilt| rebuilt.is_news) {
        eprintln!("{}", Paint::stderr().tone(Tone::Warning, &printable(&rebuilt.to_string())));
    }
}
