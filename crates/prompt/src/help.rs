//! What `:help` shows: the table of commands, and the keys.

use mainstay_terminal::{Paint, Tone};
use unicode_width::UnicodeWidthStr;

use crate::command::{PromptLanguage, table};

/// Keys worth knowing where code is typed, as `:help` lists them.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "run what is finished, else begin a new line; an empty line ends a block"),
    ("Alt-Enter", "begin a new line"),
    ("Tab", "complete"),
    ("Up, Right", "what was typed before in this folder; the hint"),
    ("Ctrl-R", "search what was typed before: in this folder, then in all others; again for the next"),
    ("Ctrl-C", "drop the line; stop the code that runs"),
    ("Ctrl-D", "leave; the session goes on"),
];

/// And where words are.
const KEYS_OF_WORDS: &[(&str, &str)] = &[
    ("Enter", "say it"),
    ("Alt-Enter", "begin a new line"),
    (
        "Tab",
        "complete a command; behind / the agent's own, its skills and prompts too; behind @ a file of the folder",
    ),
    ("Up, Right", "what was typed before in this folder; the hint"),
    ("Ctrl-R", "search what was typed before: in this folder, then in all others; again for the next"),
    ("Ctrl-C", "drop the line; stop what the agent does"),
    (
        "any letter",
        "while the agent works: begin a line that steers it; Enter sends it, an empty one goes back",
    ),
    ("Ctrl-D", "leave; the session goes on"),
];

const NOTE: &str = "A slash may stand for the colon of a command: /fork.\n\
     A line that begins with a blank is stored nowhere: neither the code nor what it gives and prints, and not in the\n\
     history; a rebuilt session is without it. A block of several lines is stored, however it begins.\n";

const NOTE_OF_WORDS: &str = "A slash may stand for the colon of a command: /fork.\n\
     !COMMAND runs a line of a shell where the agent works, and tells it of that; !!COMMAND does not tell it.\n\
     All that is said to an agent is stored; a line that begins with a blank is not sent.\n";

/// A part of the help: the commands and keys for one thing that is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpSection {
    /// Where these commands and keys are there.
    pub title: &'static str,
    /// The usage of each command and the name of each key, with what it does.
    pub rows: Vec<(String, &'static str)>,
}

/// Returns all that `:help` lists: where F# is typed, and where an agent is spoken to.
pub fn help_sections() -> [HelpSection; 2] {
    let section = |title, prompt_language, keys: &[(&str, &'static str)]| {
        let commands = table(prompt_language).map(|entry| (entry.usage(), entry.about));
        let keys = keys.iter().map(|(key, about)| ((*key).to_owned(), *about));
        HelpSection { title, rows: commands.chain(keys).collect() }
    };
    [
        section("Where code is typed", PromptLanguage::Fsharp, KEYS),
        section("Where an agent is spoken to", PromptLanguage::Words, KEYS_OF_WORDS),
    ]
}

/// The commands and keys, a line each.
pub(crate) fn help_text(paint: Paint, prompt_language: PromptLanguage) -> String {
    let (keys, note) = match prompt_language {
        PromptLanguage::Fsharp | PromptLanguage::Foreign => (KEYS, NOTE),
        PromptLanguage::Words => (KEYS_OF_WORDS, NOTE_OF_WORDS),
    };
    let rows = || table(prompt_language).map(|entry| (entry.usage(), entry.about));
    let width = rows().map(|(usage, _)| usage.width()).max().unwrap_or(0);
    let line = |name: &str, about: &str| {
        format!("  {}{}  {about}\n", paint.tone(Tone::Name, name), " ".repeat(width - name.width()))
    };
    let commands: String = rows().map(|(usage, about)| line(&usage, about)).collect();
    let keys: String = keys.iter().map(|(key, about)| line(key, about)).collect();
    format!("{commands}\n{keys}\n{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_and_keys() {
        insta::assert_snapshot!(help_text(Paint::plain(), PromptLanguage::Fsharp), @"
          :help                                     show the commands and keys
          :sessions                                 list the sessions
          :switch SESSION                           attach to another session: its name, or the end of its id
          :new [NAME]                               create a session in this folder and attach to it
          :fork [ENTRIES | --before-reset] [NAME]   go on apart, in a new session with all or so many of these entries, or what a reset dropped
          :merge SESSION ENTRIES [--at N]           run entries of another session here: 3,4,7-9; or put them behind the first N
          :cherry-pick SESSION ENTRY [--context N]  run one of them, with N before it
          :rename NAME                              give the session another name
          :delete-session [SESSION]                 delete another session, or this one
          :load FILE                                run a file
          :r LIBRARY                                refer to an assembly or a package, as `#r` does
          :I FOLDER                                 look for libraries and scripts there too, as `#I` does
          :nowarn NUMBER                            have the compiler no longer warn of this, as `#nowarn` does
          :time [on|off]                            print how long code takes, as `#time` does
          :run FILE                                 run a notebook, or a script in cells; go on where it ended
          :asks                                     list what waits for an answer
          :answer ASK TEXT                          answer an ask: its id, or the end of it
          :cancel                                   stop the code that runs, whoever runs it
          :reset                                    drop the session's definitions
          :hard-reset                               drop them, and begin in a new process
          :rebuild [--keep]                         build the session's project, and begin afresh with it, or keep the definitions
          :refresh [all]                            run again what uses what has changed; or all, in a new process
          :transcript [FROM]                        show what was said in the session, numbered
          :lineage                                  show which sessions were forked off which
          :compact SUMMARY [--before N]             have a summary stand for what was said, or for what was said before entry N
          :label ENTRY [TEXT]                       give an entry a label, or take it off
          :labels                                   list the labels of entries
          :export [FILE] [--format F] [--force]     write the session to a file, or show it: jsonl, markdown, ipynb, fsx, dib, py, ts, js, sh
          :import FILE                              make a session of a file and attach to it
          :explore NAME                             show what a namespace, module or type holds
          :find TEXT                                find types and functions by a part of their name
          :values                                   show what is bound, and to what
          :test [PATTERN]                           run the session's tests, or those with this in their names
          :coverage [FILE|FUNCTION]                 show which lines of the project tests reach, and how these ended
          :run-app [ARGUMENT…]                      run the session's project in it, such as a web application
          :stop-app                                 stop the application that runs in the session
          :search WORDS                             find what was said in any session
          :history [WORD…]                          show what was typed in this folder
          :session-info                             show the session
          :status                                   show the session and the daemon
          :events [N]                               show what happened last
          :stats [SESSION]                          show what is stored of a session; or of this one, and of all
          :gc                                       remove what deleted sessions have left
          :backup FOLDER                            write all that is stored into a folder, which is empty or not there
          :quit                                     leave; the session goes on

          Enter                                     run what is finished, else begin a new line; an empty line ends a block
          Alt-Enter                                 begin a new line
          Tab                                       complete
          Up, Right                                 what was typed before in this folder; the hint
          Ctrl-R                                    search what was typed before: in this folder, then in all others; again for the next
          Ctrl-C                                    drop the line; stop the code that runs
          Ctrl-D                                    leave; the session goes on

        A slash may stand for the colon of a command: /fork.
        A line that begins with a blank is stored nowhere: neither the code nor what it gives and prints, and not in the
        history; a rebuilt session is without it. A block of several lines is stored, however it begins.
        ");
    }

    #[test]
    fn the_commands_and_keys_of_agents() {
        insta::assert_snapshot!(help_text(Paint::plain(), PromptLanguage::Words), @"
          :help                                     show the commands and keys
          :sessions                                 list the sessions
          :switch SESSION                           attach to another session: its name, or the end of its id
          :new [NAME]                               create a session in this folder and attach to it
          :fork [ENTRIES | --before-reset] [NAME]   go on apart, in a new session with all or so many of these entries, or what a reset dropped
          :merge SESSION ENTRIES [--at N]           run entries of another session here: 3,4,7-9; or put them behind the first N
          :cherry-pick SESSION ENTRY [--context N]  run one of them, with N before it
          :rename NAME                              give the session another name
          :delete-session [SESSION]                 delete another session, or this one
          :steer TEXT                               say something to the agent before its next step
          :pause [QUESTION]                         have the agent pause before its next step, and ask how to go on
          :follow-up TEXT                           say something to the agent once it would be done
          :queue                                    show what the agent has still to hear
          :output [ENTRY]                           show what a tool gave or changed, whole: the last, or that of an entry
          :model [PROVIDER/ID]                      go on with another model, or list them
          :thinking [LEVEL]                         think so hard: off, minimal, low, medium, high, xhigh
          :asks                                     list what waits for an answer
          :answer ASK TEXT                          answer an ask: its id, or the end of it
          :cancel                                   stop what the agent does, whoever asked for it
          :reset                                    have the agent forget what was said; it stays readable
          :hard-reset                               the same, in a new process of the agent
          :transcript [FROM]                        show what was said in the session, numbered
          :lineage                                  show which sessions were forked off which
          :compact [INSTRUCTIONS]                   have the agent shorten what it is shown; or SUMMARY --before N, a summary of yours
          :label ENTRY [TEXT]                       give an entry a label, or take it off
          :labels                                   list the labels of entries
          :export [FILE] [--format F] [--force]     write the session to a file, or show it: jsonl, markdown, ipynb, fsx, dib, py, ts, js, sh
          :import FILE                              make a session of a file and attach to it
          :search WORDS                             find what was said in any session
          :history [WORD…]                          show what was typed in this folder
          :session-info                             show the session
          :status                                   show the session and the daemon
          :events [N]                               show what happened last
          :stats [SESSION]                          show what is stored of a session; or of this one, and of all
          :gc                                       remove what deleted sessions have left
          :backup FOLDER                            write all that is stored into a folder, which is empty or not there
          :quit                                     leave; the session goes on

          Enter                                     say it
          Alt-Enter                                 begin a new line
          Tab                                       complete a command; behind / the agent's own, its skills and prompts too; behind @ a file of the folder
          Up, Right                                 what was typed before in this folder; the hint
          Ctrl-R                                    search what was typed before: in this folder, then in all others; again for the next
          Ctrl-C                                    drop the line; stop what the agent does
          any letter                                while the agent works: begin a line that steers it; Enter sends it, an empty one goes back
          Ctrl-D                                    leave; the session goes on

        A slash may stand for the colon of a command: /fork.
        !COMMAND runs a line of a shell where the agent works, and tells it of that; !!COMMAND does not tell it.
        All that is said to an agent is stored; a line that begins with a blank is not sent.
        ");
    }
}
