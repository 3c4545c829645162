//! What follows the name of a command, read.

use std::path::PathBuf;

use mainstay_formats::exchange::Format;
use mainstay_model::{Delivery, Prompt, QueuedPrompt};
use mainstay_protocol::entries::with_context;
use mainstay_terminal_client::export::Destination;
use mainstay_terminal_client::merge::{Entries, entries};

use super::table::Command;

/// A directive with what is given, in quotes of F#, which it may have already.
pub(super) fn quoted(directive: &str, text: &str) -> Option<Command> {
    let given = given(text)?;
    let bare = given.strip_prefix('@').unwrap_or(&given).trim_matches('"');
    let quoted = bare.replace('"', "\"\"");
    (!bare.is_empty()).then(|| Command::Directive(format!("{directive} @\"{quoted}\"")))
}

pub(super) fn fork(text: &str) -> Option<Command> {
    let (first, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    Some(match first.parse() {
        Ok(entries) => Command::Fork { entries: Some(entries), name: name(rest), before_reset: false },
        Err(_) if first == "--before-reset" => {
            Command::Fork { entries: None, name: name(rest), before_reset: true }
        }
        Err(_) if first.starts_with("--") => return None,
        Err(_) => Command::Fork { entries: None, name: name(text), before_reset: false },
    })
}

/// The name of a session may have blanks in it, and so may the numbers of entries.
pub(super) fn merge(text: &str) -> Option<Command> {
    let (text, at) = match text.split_once("--at") {
        Some((text, at)) => (text.trim_end(), Some(at.trim_start_matches('=').trim().parse().ok()?)),
        None => (text, None),
    };
    text.match_indices(char::is_whitespace).find_map(|(begins, _)| {
        let (from, numbers) = text.split_at(begins);
        Some(Command::Merge { from: name(from)?, entries: entries(numbers).ok()?, at })
    })
}

pub(super) fn cherry_pick(text: &str) -> Option<Command> {
    let (picked, context) = match text.split_once("--context") {
        Some((picked, context)) => (picked, context.trim_start_matches('=').trim().parse().ok()?),
        None => (text, 0),
    };
    let (from, entry) = picked.trim_end().rsplit_once(char::is_whitespace)?;
    let entries = Entries(vec![with_context(number(entry)?, context)]);
    Some(Command::Merge { from: name(from)?, entries, at: None })
}

/// What does not end with a number is a part of the summary.
pub(super) fn compact(text: &str) -> Option<Command> {
    let cut = text.rsplit_once("--before").and_then(|(summary, before)| {
        let before = before.trim_start_matches('=').trim().parse().ok()?;
        Some((summary, before))
    });
    let (summary, before) = cut.map_or((text, None), |(summary, before)| (summary, Some(before)));
    if before.is_some_and(|before| before < 2) {
        return None;
    }
    Some(Command::Compact { before, summary: name(summary)? })
}

/// With the number of an entry, it is a summary of one's own.
pub(super) fn shorten(text: &str) -> Option<Command> {
    match compact(text) {
        Some(own @ Command::Compact { before: Some(_), .. }) => Some(own),
        Some(_) | None => Some(Command::Shorten(given(text))),
    }
}

pub(super) fn steer(text: String, hears: Delivery) -> Command {
    Command::Steer(QueuedPrompt { prompt: Prompt::text(text), hears })
}

pub(super) fn label(text: &str) -> Option<Command> {
    let (entry, label) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    Some(Command::Label { entry: number(entry)?, label: name(label) })
}

/// The name of the file may have blanks in it. What is shown is for people to read, unless it says otherwise.
pub(super) fn export(text: &str) -> Option<Command> {
    let (mut file, mut to) = (text.trim(), Destination::default());
    loop {
        let (before, last) = file.rsplit_once(char::is_whitespace).unwrap_or(("", file));
        let before = before.trim_end();
        if last == "--force" {
            (file, to.force) = (before, true);
        } else if let Some(format) = last.strip_prefix("--format=") {
            (file, to.format) = (before, Some(format.parse().ok()?));
        } else if let Some(named) = before.strip_suffix("--format") {
            (file, to.format) = (named.trim_end(), Some(last.parse().ok()?));
        } else if last.starts_with("--") {
            return None;
        } else {
            break;
        }
    }
    to.output = name(file).map(PathBuf::from);
    if to.output.is_none() {
        to.format.get_or_insert(Format::Markdown);
    }
    Some(Command::Export(to))
}

/// The seed has a word of its own for a search.
pub(super) fn history(text: &str) -> Command {
    let text = text.trim();
    let words = text.strip_prefix("search ").unwrap_or(text);
    Command::History(words.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect())
}

/// A number that counts from 1.
pub(super) fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

/// A name, with or without quotation marks.
pub(super) fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    given(unquoted.unwrap_or(text))
}

pub(super) fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
