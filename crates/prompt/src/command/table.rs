//! The commands of the prompt: what each is, and the table of their names, their arguments and their readers.

use std::path::PathBuf;

use mainstay_model::{Delivery, QueuedPrompt, Setting, ThinkingLevel};
use mainstay_terminal_client::agent_settings::{model, thinking};
use mainstay_terminal_client::export::Destination;
use mainstay_terminal_client::merge::Entries;

use super::PromptLanguage;
use super::arguments::{
    cherry_pick, compact, export, fork, given, history, label, merge, name, number, quoted, shorten, steer,
};
use super::entry::{ArgumentKind, CommandScope, Entry, entry};

/// How many events `:events` shows unless told otherwise.
const EVENTS_SHOWN: u64 = 20;

/// A command of the prompt, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
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
    /// Show which lines of the project tests reach: of all files, of one, or of a function.
    Coverage(Option<String>),
    /// Run the project in the session, with these arguments.
    RunApp(Vec<String>),
    /// Stop the application that runs in the session.
    StopApp,
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
    /// Have the agent pause and ask; how, where that is said.
    Pause(Option<String>),
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

/// The commands that sessions of this kind know, as `:help` lists them.
pub(crate) fn table(prompt_language: PromptLanguage) -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().filter(move |entry| entry.is_known(prompt_language))
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
    entry(
        ":pause",
        &[],
        "[QUESTION]",
        "have the agent pause before its next step, and ask how to go on",
        |text| Some(Command::Pause(given(text))),
    )
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
    entry(
        ":coverage",
        &[],
        "[FILE|FUNCTION]",
        "show which lines of the project tests reach, and how these ended",
        |text| Some(Command::Coverage(given(text))),
    )
    .first(ArgumentKind::File)
    .only(CommandScope::ToFsharp),
    entry(
        ":run-app",
        &[],
        "[ARGUMENT…]",
        "run the session's project in it, such as a web application",
        |text| Some(Command::RunApp(text.split_whitespace().map(str::to_owned).collect())),
    )
    .only(CommandScope::ToFsharp),
    entry(":stop-app", &[], "", "stop the application that runs in the session", |_| Some(Command::StopApp))
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
