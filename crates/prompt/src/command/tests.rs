//! Lines of the prompt as they are read: commands, code, and what is refused.

use std::path::PathBuf;

use mainstay_formats::exchange::Format;
use mainstay_formats::notebook::ScriptLanguage;
use mainstay_model::{Delivery, Prompt, QueuedPrompt, Setting, ThinkingLevel};
use mainstay_terminal_client::export::Destination;
use mainstay_terminal_client::merge::{Entries, entries};

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
    for prompt_language in [PromptLanguage::Fsharp, PromptLanguage::Foreign, PromptLanguage::Words] {
        for entry in table(prompt_language).filter(|entry| entry.argument.is_empty()) {
            for name in entry.aliases.iter().chain([&entry.name]).filter(|name| name.starts_with(':')) {
                let read = super::read(&format!("{name} OTHER"), prompt_language);
                assert_eq!(read, Some(Err(CommandError::Usage { usage: entry.usage() })), "{name}");
            }
        }
    }
    assert_eq!(done(":rebuild --keep"), Command::Rebuild { keep: true });
    assert_eq!(done(":rebuild"), Command::Rebuild { keep: false });
    for line in [":rebuild --kep", ":rebuild lab", ":new --project a", ":test --watch", ":load --force a.fsx"]
    {
        assert!(matches!(read(line), Some(Err(CommandError::Usage { .. }))), "{line}");
    }
    let arguments = vec!["--urls".to_owned(), "http://127.0.0.1:0".to_owned()];
    assert_eq!(done(":run-app --urls  http://127.0.0.1:0"), Command::RunApp(arguments));
    assert_eq!((done(":run-app"), done(":stop-app")), (Command::RunApp(Vec::new()), Command::StopApp));
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
    assert_eq!(read(":time later"), Some(Err(CommandError::Usage { usage: ":time [on|off]".to_owned() })));
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
    assert_eq!(done("/export --format fsx"), to(None, Some(Format::Script(ScriptLanguage::FSharp)), false));
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
    let history = |words: &[&str]| Command::History(words.iter().map(|word| (*word).to_owned()).collect());
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
    for line in [":cherry-pick lab", ":cherry-pick 7", ":cherry-pick lab 0", ":cherry-pick lab 7 --context x"]
    {
        assert_eq!(read(line), usage(":cherry-pick SESSION ENTRY [--context N]"), "{line}");
    }
}

#[test]
fn an_unknown_command_is_told_what_there_is() {
    insta::assert_snapshot!(read(":swich x").unwrap().unwrap_err(), @"there is no command `:swich`; there are :help :sessions :switch :new :fork :merge :cherry-pick :rename :delete-session :load :r :I :nowarn :time :run :asks :answer :cancel :reset :hard-reset :rebuild :refresh :transcript :lineage :compact :label :labels :export :import :explore :find :values :test :coverage :run-app :stop-app :search :history :session-info :status :events :stats :gc :backup :quit");
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
    for (line, prompt_language) in [
        (":steer x", PromptLanguage::Fsharp),
        (":load x", PromptLanguage::Words),
        (":refresh", PromptLanguage::Words),
        (":nowarn 1", PromptLanguage::Foreign),
    ] {
        assert!(
            matches!(super::read(line, prompt_language), Some(Err(CommandError::Unknown { .. }))),
            "{line}"
        );
    }
}
