//! What can be typed besides code: the table of commands, and how a line is read as one of them. [`super::actions`] carries them out.

use std::fmt;
use std::path::PathBuf;

use mainstay_formats::exchange::Format;
use mainstay_gateway::entries::with_context;
use mainstay_model::{Delivery, Prompt, QueuedPrompt, SessionKind, Setting, ThinkingLevel};

use crate::commands::export::Destination;
use crate::commands::merge::{Entries, entries};
use crate::commands::prompt::{model, thinking};

/// How many events `:events` shows unless told otherwise.
const EVENTS_SHOWN: u64 = 20;

/// What is typed beside commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptLanguage {
    /// The prompt of an F# session.
    Fsharp,
    /// Code of another language.
    Foreign,
    /// What is said to an agent.
    Words,
}

impl PromptLanguage {
    /// What sessions of this kind take.
    pub(super) fn of(kind: &SessionKind) -> Self {
        match kind.is_fsharp() {
            true => Self::Fsharp,
            false if kind.is_agent() => Self::Words,
            false => Self::Foreign,
        }
    }

    /// Whether it is run.
    pub(super) const fn is_code(self) -> bool {
        match self {
            Self::Fsharp | Self::Foreign => true,
            Self::Words => false,
        }
    }
}

/// A command of the prompt, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the commands and keys.
    Help,
    /// List the sessions of the daemon.
    Sessions,
    /// Show which sessions were forked off which.
    Lineage,
    /// Attach to another session.
    Switch(String),
    /// Delete a session; this one where it does not say.
    Delete(Option<String>),
    /// Drop the definitions of the session.
    Reset,
    /// Drop the definitions and the worker.
    HardReset,
    /// Run a notebook, or a script in cells.
    Run(String),
    /// Build its project, and begin afresh with that.
    Rebuild {
        /// Whether the definitions run again.
        keep: bool,
    },
    /// Run the definitions again against what is there now.
    Refresh {
        /// All of them, in a new worker.
        all: bool,
    },
    /// Show the session alone.
    SessionInfo,
    /// Show the session and the daemon.
    Status,
    /// Show the last events.
    Events(u64),
    /// Create a session and attach to it.
    New(Option<String>),
    /// Create a session that begins where this one is, and attach to it.
    Fork {
        /// With so many entries, from the first; all where it does not say.
        entries: Option<u64>,
        /// What people call it.
        name: Option<String>,
        /// With what there was before the last reset.
        before_reset: bool,
    },
    /// Run cells of another session in this one.
    Merge {
        /// The session to merge from.
        from: String,
        /// Which entries of its transcript.
        entries: Entries,
        /// Put them behind the first so many instead of running them at the end.
        at: Option<u64>,
    },
    /// Show the transcript, from the entry with this number on.
    Transcript(u64),
    /// Show what a namespace, module or type holds.
    Explore(String),
    /// Find what is loaded by a part of its name.
    Find(String),
    /// Show what is bound.
    Values,
    /// Run tests; those with this in their names, where it says.
    Test(Option<String>),
    /// Find entries of all sessions by the words in them.
    Search(String),
    /// Show what was submitted at prompts in this folder.
    History(Vec<String>),
    /// Give the session another name.
    Rename(String),
    /// List what waits for an answer.
    Asks,
    /// Answer an ask that waits.
    Answer {
        /// Its id, or the end of it.
        ask: String,
        /// The answer, as it was typed.
        text: String,
    },
    /// Stop the code that runs, whoever runs it.
    Cancel,
    /// Run a file in the session.
    Load(String),
    /// Run this directive of the language.
    Directive(String),
    /// Write the session to a file, or show it.
    Export(Destination),
    /// Make a session of a file and attach to it.
    Import(PathBuf),
    /// Have a summary stand for the beginning of the transcript.
    Compact {
        /// For the entries before the one with this number; for all where it does not say.
        before: Option<u64>,
        /// The summary that replaces the older entries.
        summary: String,
    },
    /// Have the agent shorten what it is shown, and heed this in doing so.
    Shorten(Option<String>),
    /// Say something to the agent while it works.
    Steer(QueuedPrompt),
    /// Show what the agent has still to hear.
    Queue,
    /// Show what a tool gave, whole: the last one, or that of the entry with this number.
    Output(Option<u64>),
    /// Have the agent go on with another model; show which there are, where it does not say.
    Model(Option<Setting>),
    /// Have it think harder, or less; show how hard, where it does not say.
    Thinking(Option<ThinkingLevel>),
    /// Give an entry a label, or take it off.
    Label {
        /// The number of the entry.
        entry: u64,
        /// What to call it; none to take that off.
        label: Option<String>,
    },
    /// List the labels of the session.
    Labels,
    /// Show what is stored; of this session and of all, where it does not say of which.
    Stats(Option<String>),
    /// Remove what deleted sessions have left.
    Gc,
    /// Write all that is stored into a folder.
    Backup(PathBuf),
    /// Leave the prompt, not the session.
    Quit,
}

/// A row of the table.
pub(super) struct Entry {
    /// The name, with its colon.
    pub(super) name: &'static str,
    /// Other names of the command.
    pub(super) aliases: &'static [&'static str],
    /// The argument, as the help shows it.
    pub(super) argument: &'static str,
    /// What the command does, for the help.
    pub(super) about: &'static str,
    /// What follows it first, as far as that can be proposed.
    pub(super) first: ArgumentKind,
    known: CommandScope,
    read: fn(&str) -> Option<Command>,
}

/// Where a command is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandScope {
    Everywhere,
    ToCode,
    ToFsharp,
    ToAgents,
}

/// What follows a command first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    /// Nothing, or what nobody can know.
    Free,
    /// The name of another session.
    Session,
    /// Another session, and then numbers of its entries.
    EntriesOf,
    /// The number of an entry of this session.
    Entry,
    /// The number of an entry that a tool gave.
    ToolResult,
    /// The path of a script.
    Script,
    /// A session that was written to a file.
    SessionFile,
    /// A file of any kind.
    File,
    /// The path of a folder.
    Folder,
}

/// A directive with what is given, in quotes of F#, which it may have already.
fn quoted(directive: &str, text: &str) -> Option<Command> {
    let given = given(text)?;
    let bare = given.strip_prefix('@').unwrap_or(&given).trim_matches('"');
    let quoted = bare.replace('"', "\"\"");
    (!bare.is_empty()).then(|| Command::Directive(format!("{directive} @\"{quoted}\"")))
}

/// The commands that sessions of this kind know, as `:help` lists them.
pub(super) fn table(tongue: PromptLanguage) -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().filter(move |entry| entry.is_known(tongue))
}

/// Every command of the prompt.
const TABLE: &[Entry] = &[
    entry(":help", &[":h", ":?", "#help"], "", "show the commands and keys", |_| Some(Command::Help)),
    entry(":sessions", &[], "", "list the sessions", |_| Some(Command::Sessions)),
    entry(
        ":switch",
        &[":session"],
        "SESSION",
        "attach to another session: its name, or the end of its id",
        |text| name(text).map(Command::Switch),
    )
    .first(ArgumentKind::Session),
    entry(":new", &[], "[NAME]", "create a session in this folder and attach to it", |text| {
        Some(Command::New(name(text)))
    }),
    entry(
        ":fork",
        &[],
        "[ENTRIES | --before-reset] [NAME]",
        "go on apart, in a new session with all or so many of these entries, or what a reset dropped",
        fork,
    )
    .first(ArgumentKind::Entry),
    entry(
        ":merge",
        &[],
        "SESSION ENTRIES [--at N]",
        "run entries of another session here: 3,4,7-9; or put them behind the first N",
        merge,
    )
    .first(ArgumentKind::EntriesOf),
    entry(
        ":cherry-pick",
        &[],
        "SESSION ENTRY [--context N]",
        "run one of them, with N before it",
        cherry_pick,
    )
    .first(ArgumentKind::EntriesOf),
    entry(":rename", &[], "NAME", "give the session another name", |text| name(text).map(Command::Rename)),
    entry(":delete-session", &[], "[SESSION]", "delete another session, or this one", |text| {
        Some(Command::Delete(name(text)))
    })
    .first(ArgumentKind::Session),
    entry(":load", &[], "FILE", "run a file", |text| given(text).map(Command::Load))
        .first(ArgumentKind::Script)
        .only(CommandScope::ToCode),
    entry(":r", &[":reference"], "LIBRARY", "refer to an assembly or a package, as `#r` does", |text| {
        quoted("#r", text)
    })
    .first(ArgumentKind::File)
    .only(CommandScope::ToFsharp),
    entry(":I", &[], "FOLDER", "look for libraries and scripts there too, as `#I` does", |text| {
        quoted("#I", text)
    })
    .first(ArgumentKind::Folder)
    .only(CommandScope::ToFsharp),
    entry(":nowarn", &[], "NUMBER", "have the compiler no longer warn of this, as `#nowarn` does", |text| {
        quoted("#nowarn", text)
    })
    .only(CommandScope::ToFsharp),
    entry(":time", &[], "[on|off]", "print how long code takes, as `#time` does", |text| match text.trim() {
        "" => Some(Command::Directive("#time".to_owned())),
        on_or_off @ ("on" | "off") => Some(Command::Directive(format!("#time \"{on_or_off}\""))),
        _ => None,
    })
    .only(CommandScope::ToFsharp),
    entry(":run", &[], "FILE", "run a notebook, or a script in cells; go on where it ended", |text| {
        given(text).map(Command::Run)
    })
    .first(ArgumentKind::Script)
    .only(CommandScope::ToCode),
    entry(":steer", &[], "TEXT", "say something to the agent before its next step", |text| {
        given(text).map(|text| steer(text, Delivery::Steer))
    })
    .only(CommandScope::ToAgents),
    entry(":follow-up", &[], "TEXT", "say something to the agent once it would be done", |text| {
        given(text).map(|text| steer(text, Delivery::FollowUp))
    })
    .only(CommandScope::ToAgents),
    entry(":queue", &[], "", "show what the agent has still to hear", |_| Some(Command::Queue))
        .only(CommandScope::ToAgents),
    entry(
        ":output",
        &[],
        "[ENTRY]",
        "show what a tool gave or changed, whole: the last, or that of an entry",
        |text| given(text).map_or(Some(None), |entry| number(&entry).map(Some)).map(Command::Output),
    )
    .first(ArgumentKind::ToolResult)
    .only(CommandScope::ToAgents),
    entry(":model", &[], "[PROVIDER/ID]", "go on with another model, or list them", |text| {
        match given(text) {
            None => Some(Command::Model(None)),
            Some(text) => model(&text).ok().map(|setting| Command::Model(Some(setting))),
        }
    })
    .only(CommandScope::ToAgents),
    entry(":thinking", &[], "[LEVEL]", "think so hard: off, minimal, low, medium, high, xhigh", |text| {
        match given(text) {
            None => Some(Command::Thinking(None)),
            Some(text) => thinking(&text).ok().map(|level| Command::Thinking(Some(level))),
        }
    })
    .only(CommandScope::ToAgents),
    entry(":asks", &[], "", "list what waits for an answer", |_| Some(Command::Asks)),
    entry(":answer", &[], "ASK TEXT", "answer an ask: its id, or the end of it", |line| {
        let (ask, text) = line.trim_start().split_once(char::is_whitespace)?;
        Some(Command::Answer { ask: ask.to_owned(), text: given(text)? })
    }),
    entry(":cancel", &[], "", "stop the code that runs, whoever runs it", |_| Some(Command::Cancel))
        .only(CommandScope::ToCode),
    entry(":cancel", &[], "", "stop what the agent does, whoever asked for it", |_| Some(Command::Cancel))
        .only(CommandScope::ToAgents),
    entry(":reset", &[], "", "drop the session's definitions", |_| Some(Command::Reset))
        .only(CommandScope::ToCode),
    entry(":reset", &[], "", "have the agent forget what was said; it stays readable", |_| {
        Some(Command::Reset)
    })
    .only(CommandScope::ToAgents),
    entry(":hard-reset", &[], "", "drop them, and begin in a new process", |_| Some(Command::HardReset))
        .only(CommandScope::ToCode),
    entry(":hard-reset", &[], "", "the same, in a new process of the agent", |_| Some(Command::HardReset))
        .only(CommandScope::ToAgents),
    entry(
        ":rebuild",
        &[],
        "[--keep]",
        "build the session's project, and begin afresh with it, or keep the definitions",
        |text| match text.trim() {
            "" => Some(Command::Rebuild { keep: false }),
            "--keep" => Some(Command::Rebuild { keep: true }),
            _ => None,
        },
    )
    .only(CommandScope::ToFsharp),
    entry(
        ":refresh",
        &[],
        "[all]",
        "run again what uses what has changed; or all, in a new process",
        |text| match text.trim() {
            "" => Some(Command::Refresh { all: false }),
            "all" => Some(Command::Refresh { all: true }),
            _ => None,
        },
    )
    .only(CommandScope::ToFsharp),
    entry(":transcript", &[], "[FROM]", "show what was said in the session, numbered", |text| {
        given(text).map_or(Some(1), |from| number(&from)).map(Command::Transcript)
    })
    .first(ArgumentKind::Entry),
    entry(":lineage", &[], "", "show which sessions were forked off which", |_| Some(Command::Lineage)),
    entry(
        ":compact",
        &[],
        "SUMMARY [--before N]",
        "have a summary stand for what was said, or for what was said before entry N",
        compact,
    )
    .only(CommandScope::ToCode),
    entry(
        ":compact",
        &[],
        "[INSTRUCTIONS]",
        "have the agent shorten what it is shown; or SUMMARY --before N, a summary of yours",
        shorten,
    )
    .only(CommandScope::ToAgents),
    entry(":label", &[], "ENTRY [TEXT]", "give an entry a label, or take it off", label)
        .first(ArgumentKind::Entry),
    entry(":labels", &[], "", "list the labels of entries", |_| Some(Command::Labels)),
    entry(
        ":export",
        &[],
        "[FILE] [--format F] [--force]",
        "write the session to a file, or show it: jsonl, markdown, ipynb, fsx, dib, py, ts, js, sh",
        export,
    )
    .first(ArgumentKind::File),
    entry(":import", &[], "FILE", "make a session of a file and attach to it", |text| {
        given(text).map(|file| Command::Import(file.into()))
    })
    .first(ArgumentKind::SessionFile),
    entry(":explore", &[], "NAME", "show what a namespace, module or type holds", |text| {
        given(text).map(Command::Explore)
    })
    .only(CommandScope::ToCode),
    entry(":find", &[], "TEXT", "find types and functions by a part of their name", |text| {
        given(text).map(Command::Find)
    })
    .only(CommandScope::ToCode),
    entry(":values", &[], "", "show what is bound, and to what", |_| Some(Command::Values))
        .only(CommandScope::ToCode),
    entry(":test", &[], "[PATTERN]", "run the session's tests, or those with this in their names", |text| {
        Some(Command::Test(given(text)))
    })
    .only(CommandScope::ToFsharp),
    entry(":search", &[], "WORDS", "find what was said in any session", |text| {
        given(text).map(Command::Search)
    }),
    entry(":history", &[], "[WORD…]", "show what was typed in this folder", |text| Some(history(text))),
    entry(":session-info", &[], "", "show the session", |_| Some(Command::SessionInfo)),
    entry(":status", &[], "", "show the session and the daemon", |_| Some(Command::Status)),
    entry(":events", &[], "[N]", "show what happened last", |text| match given(text) {
        None => Some(Command::Events(EVENTS_SHOWN)),
        Some(count) => count.parse().ok().map(Command::Events),
    }),
    entry(
        ":stats",
        &[],
        "[SESSION]",
        "show what is stored of a session; or of this one, and of all",
        |text| Some(Command::Stats(name(text))),
    )
    .first(ArgumentKind::Session),
    entry(":gc", &[], "", "remove what deleted sessions have left", |_| Some(Command::Gc)),
    entry(
        ":backup",
        &[],
        "FOLDER",
        "write all that is stored into a folder, which is empty or not there",
        |text| given(text).map(|folder| Command::Backup(folder.into())),
    )
    .first(ArgumentKind::Folder),
    entry(":quit", &[":q", ":exit", "#quit", "#q", "#exit"], "", "leave; the session goes on", |_| {
        Some(Command::Quit)
    }),
];

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: &'static str,
    about: &'static str,
    read: fn(&str) -> Option<Command>,
) -> Entry {
    Entry { name, aliases, argument, about, first: ArgumentKind::Free, known: CommandScope::Everywhere, read }
}

impl Entry {
    /// How it is typed.
    pub(super) fn usage(&self) -> String {
        format!("{} {}", self.name, self.argument).trim_end().to_owned()
    }

    /// Whether this could be its argument: a command that knows none has none, and an option that it does not know is no name.
    fn takes(&self, argument: &str) -> bool {
        let argument = argument.trim();
        let is_option = argument.starts_with("--");
        let takes_words = ["TEXT", "WORD", "INSTRUCTIONS"].iter().any(|words| self.argument.contains(words));
        argument.is_empty()
            || !self.argument.is_empty() && (!is_option || takes_words || self.argument.contains("--"))
    }

    const fn first(self, first: ArgumentKind) -> Self {
        Self { first, ..self }
    }

    const fn only(self, known: CommandScope) -> Self {
        Self { known, ..self }
    }

    const fn is_known(&self, tongue: PromptLanguage) -> bool {
        match self.known {
            CommandScope::Everywhere => true,
            CommandScope::ToCode => tongue.is_code(),
            CommandScope::ToFsharp => matches!(tongue, PromptLanguage::Fsharp),
            CommandScope::ToAgents => matches!(tongue, PromptLanguage::Words),
        }
    }
}

fn fork(text: &str) -> Option<Command> {
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
fn merge(text: &str) -> Option<Command> {
    let (text, at) = match text.split_once("--at") {
        Some((text, at)) => (text.trim_end(), Some(at.trim_start_matches('=').trim().parse().ok()?)),
        None => (text, None),
    };
    text.match_indices(char::is_whitespace).find_map(|(begins, _)| {
        let (from, numbers) = text.split_at(begins);
        Some(Command::Merge { from: name(from)?, entries: entries(numbers).ok()?, at })
    })
}

fn cherry_pick(text: &str) -> Option<Command> {
    let (picked, context) = match text.split_once("--context") {
        Some((picked, context)) => (picked, context.trim_start_matches('=').trim().parse().ok()?),
        None => (text, 0),
    };
    let (from, entry) = picked.trim_end().rsplit_once(char::is_whitespace)?;
    let entries = Entries(vec![with_context(number(entry)?, context)]);
    Some(Command::Merge { from: name(from)?, entries, at: None })
}

/// What does not end with a number is a part of the summary.
fn compact(text: &str) -> Option<Command> {
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
fn shorten(text: &str) -> Option<Command> {
    match compact(text) {
        Some(own @ Command::Compact { before: Some(_), .. }) => Some(own),
        Some(_) | None => Some(Command::Shorten(given(text))),
    }
}

fn steer(text: String, hears: Delivery) -> Command {
    Command::Steer(QueuedPrompt { prompt: Prompt::text(text), hears })
}

fn label(text: &str) -> Option<Command> {
    let (entry, label) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    Some(Command::Label { entry: number(entry)?, label: name(label) })
}

/// The name of the file may have blanks in it. What is shown is for people to read, unless it says otherwise.
fn export(text: &str) -> Option<Command> {
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
fn history(text: &str) -> Command {
    let text = text.trim();
    let words = text.strip_prefix("search ").unwrap_or(text);
    Command::History(words.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect())
}

/// A number that counts from 1.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

/// A name, with or without quotation marks.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    given(unquoted.unwrap_or(text))
}

fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandError {
    /// There is none of this name.
    Unknown {
        /// The command that was typed.
        name: String,
        /// The language of the prompt where it was typed.
        tongue: PromptLanguage,
    },
    /// What follows it is missing, or not of its form.
    Usage {
        /// How it is typed.
        usage: String,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, tongue } => {
                let names: Vec<_> = table(*tongue).map(|entry| entry.name).collect();
                write!(f, "there is no command `{name}`; there are {}", names.join(" "))
            }
            Self::Usage { usage } => write!(f, "type `{usage}`"),
        }
    }
}

/// The command of this name, which a slash may begin instead of the colon.
pub(super) fn named(name: &str, tongue: PromptLanguage) -> Option<&'static Entry> {
    let bare = name.strip_prefix('/');
    let is_meant = |known: &str| known == name || bare.is_some() && known.strip_prefix(':') == bare;
    table(tongue).find(|entry| is_meant(entry.name) || entry.aliases.iter().any(|alias| is_meant(alias)))
}

/// Reads a line as a command; none where it is code, or words. F# has no code that begins with a colon, and knows its own `#quit;;`. What
/// begins with a slash is a command only where there is one of that name: a comment does so too.
pub(super) fn read(line: &str, tongue: PromptLanguage) -> Option<Result<Command, CommandError>> {
    let text = line.trim();
    let text = if text.starts_with('#') { text.trim_end_matches(';').trim_end() } else { text };
    if text.contains('\n') {
        return None;
    }
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match named(name, tongue) {
        // `#help "List.map"` asks F# itself.
        Some(_) if name.starts_with('#') && !argument.trim().is_empty() => None,
        Some(entry) => {
            let read = if entry.takes(argument) { (entry.read)(argument) } else { None };
            Some(read.ok_or_else(|| CommandError::Usage { usage: entry.usage() }))
        }
        None if name.starts_with(':') => Some(Err(CommandError::Unknown { name: name.to_owned(), tongue })),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use mainstay_formats::notebook::ScriptLanguage;

    use super::*;

    fn read(line: &str) -> Option<Result<Command, CommandError>> {
        super::read(line, PromptLanguage::Fsharp)
    }

    fn done(line: &str) -> Command {
        read(line).unwrap().unwrap()
    }

    #[test]
    fn a_command_is_its_name_and_the_rest_of_the_line() {
        assert_eq!(done(":switch my session "), Command::Switch("my session".to_owned()));
        assert_eq!(done(":new"), Command::New(None));
        assert_eq!(done(":test"), Command::Test(None));
        assert_eq!(done(":test one and one"), Command::Test(Some("one and one".to_owned())));
        assert_eq!(done(":new two"), Command::New(Some("two".to_owned())));
        assert_eq!(done(":events"), Command::Events(20));
        assert_eq!(done(":events 3"), Command::Events(3));
        let (ask, text) = ("a1b2".to_owned(), "yes, please".to_owned());
        assert_eq!(done(":answer  a1b2  yes, please "), Command::Answer { ask, text });
        assert_eq!(done("  :load a b.fsx"), Command::Load("a b.fsx".to_owned()));
    }

    #[test]
    fn what_a_command_does_not_know_it_refuses() {
        for tongue in [PromptLanguage::Fsharp, PromptLanguage::Foreign, PromptLanguage::Words] {
            for entry in table(tongue).filter(|entry| entry.argument.is_empty()) {
                for name in entry.aliases.iter().chain([&entry.name]).filter(|name| name.starts_with(':')) {
                    let read = super::read(&format!("{name} OTHER"), tongue);
                    assert_eq!(read, Some(Err(CommandError::Usage { usage: entry.usage() })), "{name}");
                }
            }
        }
        assert_eq!(done(":rebuild --keep"), Command::Rebuild { keep: true });
        assert_eq!(done(":rebuild"), Command::Rebuild { keep: false });
        for line in
            [":rebuild --kep", ":rebuild lab", ":new --project a", ":test --watch", ":load --force a.fsx"]
        {
            assert!(matches!(read(line), Some(Err(CommandError::Usage { .. }))), "{line}");
        }
        assert_eq!(done(":search --keep"), Command::Search("--keep".to_owned()));
    }

    #[test]
    fn aliases_and_the_directives_of_fsharp_interactive_are_commands_too() {
        for line in [":q", ":quit", "#quit;;", "#quit", "#q;;", "#exit;;"] {
            assert_eq!(done(line), Command::Quit);
        }
        for line in [":h", ":help", "#help;;"] {
            assert_eq!(done(line), Command::Help);
        }
    }

    #[test]
    fn directives_of_the_language_may_be_written_as_commands() {
        for (line, directive) in [
            (":r libs/Shop.dll", "#r @\"libs/Shop.dll\""),
            (":r \"nuget: FSharp.Data\"", "#r @\"nuget: FSharp.Data\""),
            (":reference @\"a b.dll\"", "#r @\"a b.dll\""),
            (":I libs", "#I @\"libs\""),
            (":nowarn 40", "#nowarn @\"40\""),
            (":time", "#time"),
            (":time on", "#time \"on\""),
        ] {
            assert_eq!(done(line), Command::Directive(directive.to_owned()), "{line}");
        }
        assert_eq!(
            read(":time later"),
            Some(Err(CommandError::Usage { usage: ":time [on|off]".to_owned() }))
        );
        assert_eq!(read(":r"), Some(Err(CommandError::Usage { usage: ":r LIBRARY".to_owned() })));
    }

    #[test]
    fn a_slash_may_begin_a_command() {
        let aliases = [
            ("/sessions", ":sessions"),
            ("/session abc123", ":switch abc123"),
            ("/session-info", ":session-info"),
            ("/rename \"Auth implementation\"", ":rename Auth implementation"),
            ("/fork 5 \"Try different approach\"", ":fork 5 Try different approach"),
            ("/merge abc123 3,4,5", ":merge abc123 3,4,5"),
            ("/cherry-pick abc123 7 --context 2", ":merge abc123 5-7"),
            ("/q", ":quit"),
        ];
        for (slash, colon) in aliases {
            assert_eq!(done(slash), done(colon));
        }
        assert_eq!(read("/switch"), Some(Err(CommandError::Usage { usage: ":switch SESSION".to_owned() })));
    }

    #[test]
    fn a_fork_has_so_many_entries_and_a_name() {
        let forks = |entries, name: Option<&str>, before_reset| {
            let name = name.map(str::to_owned);
            Command::Fork { entries, name, before_reset }
        };
        let fork = |entries, name| forks(entries, name, false);
        assert_eq!(done(":fork --before-reset"), forks(None, None, true));
        assert_eq!(done(":fork --before-reset as it was"), forks(None, Some("as it was"), true));
        assert!(matches!(read(":fork --before"), Some(Err(CommandError::Usage { .. }))));
        assert_eq!(done(":fork"), fork(None, None));
        assert_eq!(done(":fork 5"), fork(Some(5), None));
        assert_eq!(done(":fork  5  b tree "), fork(Some(5), Some("b tree")));
        assert_eq!(done(":fork b tree 5"), fork(None, Some("b tree 5")));
        assert_eq!(done(":fork \"5\""), fork(None, Some("5")));
    }

    #[test]
    fn what_is_merged_is_named_by_session_and_numbers() {
        let merge = |from: &str, entries: &[(u64, u64)]| Command::Merge {
            from: from.to_owned(),
            entries: Entries(entries.iter().map(|(start, end)| *start..*end).collect()),
            at: None,
        };
        let at = |at| Command::Merge { from: "lab".to_owned(), entries: entries("3").unwrap(), at: Some(at) };
        assert_eq!((done(":merge lab 3 --at 4"), done(":merge lab 3 --at=0")), (at(4), at(0)));
        assert_eq!(done(":merge lab 3, 7-9"), merge("lab", &[(2, 3), (6, 9)]));
        assert_eq!(done(":merge the lab 2 3"), merge("the lab 2", &[(2, 3)]));
        assert_eq!(done(":merge \"the lab\" 3"), merge("the lab", &[(2, 3)]));
        assert_eq!(done(":cherry-pick the lab 7"), merge("the lab", &[(6, 7)]));
        assert_eq!(done(":cherry-pick lab 7 --context 2"), merge("lab", &[(4, 7)]));
        assert_eq!(done(":cherry-pick lab 7 --context=9"), merge("lab", &[(0, 7)]));
    }

    #[test]
    fn a_session_is_written_to_a_file_of_any_name_or_shown() {
        let to = |file: Option<&str>, format, force| {
            Command::Export(Destination { output: file.map(PathBuf::from), format, force })
        };
        assert_eq!(done(":export"), to(None, Some(Format::Markdown), false));
        assert_eq!(
            done("/export --format fsx"),
            to(None, Some(Format::Script(ScriptLanguage::FSharp)), false)
        );
        assert_eq!(done(":export a b.jsonl"), to(Some("a b.jsonl"), None, false));
        let all = to(Some("a b"), Some(Format::Ipynb), true);
        for line in [
            ":export a b --format ipynb --force",
            ":export \"a b\" --force  --format=ipynb",
            ":export a b --format  ipynb --force ",
        ] {
            assert_eq!(done(line), all, "{line}");
        }
        for line in [":export a --format", ":export a --format doc", ":export a --forse"] {
            let usage = ":export [FILE] [--format F] [--force]".to_owned();
            assert_eq!(read(line), Some(Err(CommandError::Usage { usage })), "{line}");
        }
        assert_eq!(done("/import a b.jsonl"), Command::Import("a b.jsonl".into()));
        assert_eq!(done(":backup all of it"), Command::Backup("all of it".into()));
    }

    #[test]
    fn a_summary_is_of_all_or_of_what_stands_before_an_entry() {
        let compact = |summary: &str, before| Command::Compact { summary: summary.to_owned(), before };
        assert_eq!(done(":compact Two plots."), compact("Two plots.", None));
        assert_eq!(done(":compact Two plots. --before 7"), compact("Two plots.", Some(7)));
        assert_eq!(done("/compact \"Two plots.\" --before=7"), compact("Two plots.", Some(7)));
        assert_eq!(done(":compact It takes --before noon"), compact("It takes --before noon", None));
        for line in [":compact", ":compact --before 7", ":compact Two plots. --before 1"] {
            let usage = ":compact SUMMARY [--before N]".to_owned();
            assert_eq!(read(line), Some(Err(CommandError::Usage { usage })), "{line}");
        }
    }

    #[test]
    fn an_entry_is_called_something_or_nothing() {
        let label = |entry, label: Option<&str>| Command::Label { entry, label: label.map(str::to_owned) };
        assert_eq!(done(":label 4 the good one"), label(4, Some("the good one")));
        assert_eq!(done("/label 4 \"the good one\""), label(4, Some("the good one")));
        assert_eq!((done(":label 4"), done(":label 4 \"\"")), (label(4, None), label(4, None)));
        assert_eq!(done(":labels"), Command::Labels);
        for line in [":label", ":label 0 a", ":label the good one"] {
            let usage = ":label ENTRY [TEXT]".to_owned();
            assert_eq!(read(line), Some(Err(CommandError::Usage { usage })), "{line}");
        }
    }

    #[test]
    fn what_is_stored_is_told_collected_and_backed_up() {
        assert_eq!(
            (done(":stats"), done("/stats lab")),
            (Command::Stats(None), Command::Stats(Some("lab".to_owned())))
        );
        assert_eq!(done("/gc"), Command::Gc);
    }

    #[test]
    fn what_was_said_is_shown_from_a_number_on_and_found_by_words() {
        assert_eq!(done(":transcript"), Command::Transcript(1));
        assert_eq!(done(":transcript 11"), Command::Transcript(11));
        assert_eq!(done(":search \"in a row\" begin*"), Command::Search("\"in a row\" begin*".to_owned()));
        assert_eq!(done(":lineage"), Command::Lineage);
        let history =
            |words: &[&str]| Command::History(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(done(":history"), history(&[]));
        assert_eq!(done("/history rate of"), history(&["rate", "of"]));
        assert_eq!(done("/history search \"implement\""), history(&["implement"]));
    }

    #[test]
    fn everything_else_is_code() {
        for line in [
            "1 + 1",
            "#r \"a.dll\"",
            "#time;;",
            "#help \"List.map\";;",
            "#help List.map",
            "",
            "let x : int = 1",
            "x\n:quit",
        ] {
            assert_eq!(read(line), None, "{line:?}");
        }
        for line in [
            "// fork",
            "//fork",
            "/ fork",
            "/",
            "/frobnicate",
            "/forks",
            "/#help",
            "/fork;;",
            "(/) 4 2",
            "4\n/fork",
        ] {
            assert_eq!(read(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let usage = |usage: &str| Some(Err(CommandError::Usage { usage: usage.to_owned() }));
        assert_eq!(read(":switch"), usage(":switch SESSION"));
        assert_eq!(read(":answer a1b2 "), usage(":answer ASK TEXT"));
        assert_eq!(read(":events many"), usage(":events [N]"));
        assert_eq!(read(":transcript 0"), usage(":transcript [FROM]"));
        assert_eq!(read(":search"), usage(":search WORDS"));
        for line in [":merge", ":merge lab", ":merge 3", ":merge lab 0", ":merge lab 4-3"] {
            assert_eq!(read(line), usage(":merge SESSION ENTRIES [--at N]"), "{line}");
        }
        for line in
            [":cherry-pick lab", ":cherry-pick 7", ":cherry-pick lab 0", ":cherry-pick lab 7 --context x"]
        {
            assert_eq!(read(line), usage(":cherry-pick SESSION ENTRY [--context N]"), "{line}");
        }
    }

    #[test]
    fn an_unknown_command_is_told_what_there_is() {
        insta::assert_snapshot!(read(":swich x").unwrap().unwrap_err(), @"there is no command `:swich`; there are :help :sessions :switch :new :fork :merge :cherry-pick :rename :delete-session :load :r :I :nowarn :time :run :asks :answer :cancel :reset :hard-reset :rebuild :refresh :transcript :lineage :compact :label :labels :export :import :explore :find :values :test :search :history :session-info :status :events :stats :gc :backup :quit");
    }

    #[test]
    fn agents_have_commands_of_their_own() {
        let done = |line: &str| super::read(line, PromptLanguage::Words).unwrap().unwrap();
        let steer = |text: &str, hears| Command::Steer(QueuedPrompt { prompt: Prompt::text(text), hears });
        assert_eq!(done(":steer not so"), steer("not so", Delivery::Steer));
        assert_eq!(done("/follow-up and test it"), steer("and test it", Delivery::FollowUp));
        let (provider, id) = ("openrouter".to_owned(), "openai/gpt".to_owned());
        let model = Setting::Model { provider, id };
        assert_eq!(
            (done(":model"), done(":model openrouter/openai/gpt")),
            (Command::Model(None), Command::Model(Some(model)))
        );
        assert_eq!(done(":thinking high"), Command::Thinking(Some(ThinkingLevel::High)));
        assert_eq!(done(":compact"), Command::Shorten(None));
        assert_eq!(done(":compact keep names"), Command::Shorten(Some("keep names".to_owned())));
        let own = Command::Compact { before: Some(7), summary: "Two plots.".to_owned() };
        assert_eq!(done(":compact Two plots. --before 7"), own);
        for line in [":steer", ":follow-up ", ":model big", ":thinking hardly"] {
            assert!(
                matches!(super::read(line, PromptLanguage::Words), Some(Err(CommandError::Usage { .. }))),
                "{line}"
            );
        }
        for (line, tongue) in [
            (":steer x", PromptLanguage::Fsharp),
            (":load x", PromptLanguage::Words),
            (":refresh", PromptLanguage::Words),
            (":nowarn 1", PromptLanguage::Foreign),
        ] {
            assert!(matches!(super::read(line, tongue), Some(Err(CommandError::Unknown { .. }))), "{line}");
        }
    }
}
