//! What is sought at the end of a line that begins with a command.

use crate::command::{self, ArgumentKind, PromptLanguage};

/// The options whose values are numbers of entries of this session.
const ENTRY_OPTIONS: [&str; 2] = ["--at", "--before"];

/// What is to follow the command that stands in a line, with what of it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionTarget<'a> {
    /// Nothing that could be proposed.
    Nothing,
    /// The name of another session.
    Session { begun: &'a str },
    /// Another session, or the numbers of its entries where it is named.
    EntriesOf { text: &'a str },
    /// The number of an entry of this session.
    Entry { begun: &'a str },
    /// The number of an entry that a tool gave.
    ToolResult { begun: &'a str },
    /// A file that ends so, or a folder.
    File { path: &'a str, endings: &'static [&'static str] },
}

/// What is sought at the end of a line; none where it begins with no command.
pub(super) fn sought(line: &str, prompt_language: PromptLanguage) -> Option<CompletionTarget<'_>> {
    let (name, text) = line.split_once(' ')?;
    let entry = command::named(name, prompt_language)?;
    if let Some(begun) = ENTRY_OPTIONS.iter().find_map(|option| option_begun(entry, option, text)) {
        return Some(CompletionTarget::Entry { begun });
    }
    Some(match entry.first {
        ArgumentKind::Free => CompletionTarget::Nothing,
        ArgumentKind::Session => CompletionTarget::Session { begun: text },
        ArgumentKind::EntriesOf => CompletionTarget::EntriesOf { text },
        ArgumentKind::Entry => CompletionTarget::Entry { begun: text },
        ArgumentKind::ToolResult => CompletionTarget::ToolResult { begun: text },
        ArgumentKind::Script => CompletionTarget::File { path: text, endings: &[".fsx", ".fs", ".fsscript"] },
        ArgumentKind::SessionFile => CompletionTarget::File { path: text, endings: &[".jsonl"] },
        ArgumentKind::File => CompletionTarget::File { path: text, endings: &[""] },
        ArgumentKind::Folder => CompletionTarget::File { path: text, endings: &[] },
    })
}

/// What is typed of an option's value at the end of `text`, where the command has that option.
fn option_begun<'a>(entry: &command::Entry, option: &str, text: &'a str) -> Option<&'a str> {
    let (before, begun) = text.rsplit_once([' ', '='])?;
    let is_meant = entry.argument.contains(option) && before.trim_end().ends_with(option);
    is_meant.then_some(begun)
}
