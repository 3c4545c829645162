//! Events as text: who caused one, and one line for each.

use mainstay_model::event;
use mainstay_model::{EventBody, Principal, Source};
use mainstay_terminal::{Tone, printable};

/// Who caused an event.
pub fn source_name(source: &Source) -> &str {
    match source {
        Source::Client { name, .. } => name,
        Source::Worker => "worker",
        Source::System => "mainstay",
    }
}

/// Who caused an event, with the principal where that is not the user of this machine.
pub fn person_name(source: &Source) -> String {
    match source {
        Source::Client { principal, name } if *principal != Principal::local() => {
            format!("{principal} ({name})")
        }
        source => source_name(source).to_owned(),
    }
}

/// An event in one line, and how it is to be taken.
pub fn event_line(body: &EventBody) -> (Option<Tone>, String) {
    let described = body.describe();
    (colour_of(described.tone), printable(&described.line(first_line)).into_owned())
}

/// The colour in which an event of this tone is shown.
const fn colour_of(tone: event::Tone) -> Option<Tone> {
    match tone {
        event::Tone::Plain => None,
        event::Tone::Faint => Some(Tone::Faint),
        event::Tone::Question => Some(Tone::Name),
        event::Tone::Good => Some(Tone::Good),
        event::Tone::Warning => Some(Tone::Warning),
        event::Tone::Error => Some(Tone::Error),
    }
}

/// The first line of a text, shortened, with a mark where more follows.
fn first_line(text: &str) -> String {
    const WIDTH: usize = 100;
    let trimmed = printable(text.trim_end());
    let line = trimmed.lines().next().unwrap_or_default();
    let short: String = line.chars().take(WIDTH).collect();
    let is_whole = short.len() == trimmed.len();
    if is_whole { short } else { format!("{short} …") }
}
