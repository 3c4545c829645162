//! Conversations with agents: imported, read, compacted, forked. Nothing here starts them.

use mainstay_engine::{ImportSession, Merge};
use mainstay_formats::exchange::{ExportCursor, Format, Header, Imported, Item, read};
use mainstay_log::EntryFilter;
use mainstay_model::command;
use mainstay_model::search::Words;
use mainstay_model::{
    Action, Content, CreateSession, Error, EventBody, ForkSession, Message, ObjectHash, Outcome, Part,
    PartRole, Response, Role, SessionCommand, SessionId, SessionKind, SessionState, Timestamp, TokenUsage,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Client, Daemon, id, next_id, patient};

fn message(parts: Vec<Part>) -> Item {
    let usage = Some(TokenUsage { input: 10, output: 2, ..TokenUsage::default() });
    let body = EventBody::MessageAdded(Box::new(Message { parts, usage, ..Message::default() }));
    Item::message(Timestamp::UNIX_EPOCH, body)
}

fn said(role: PartRole, text: &str) -> Item {
    message(vec![Part::text(role, text)])
}

fn calls(calls: &[&str]) -> Item {
    message(calls.iter().map(|call| Part::tool_call(call, "read", &serde_json::json!({}))).collect())
}

fn result(call: &str) -> Item {
    message(vec![Part::tool_result(call, format!("result of {call}"))])
}

/// user, call a, call b, result a, result b, assistant.
fn with_calls() -> Vec<Item> {
    let (user, assistant) = (said(PartRole::User, "question"), said(PartRole::Assistant, "answer"));
    vec![user, calls(&["a", "b"]), result("a"), result("b"), assistant]
}

fn file(items: Vec<Item>) -> ImportSession {
    let folder = "/nowhere/to/be/found";
    let header = Header::new("talk".to_owned(), SessionKind::agent(), None, folder.to_owned(), None);
    let create = CreateSession {
        kind: SessionKind::agent(),
        working_directory: folder.to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: None,
        alias: None,
    };
    let hash = ObjectHash::of(format!("{items:?}").as_bytes());
    ImportSession { create, imported: Imported { header, items, hash } }
}

fn created(outcome: Outcome) -> SessionId {
    match outcome {
        Outcome::Done { response: Response::Created { session } | Response::Forked { session, .. } } => {
            session
        }
        other => panic!("{other:?}"),
    }
}

async fn imported(daemon: &Daemon, items: Vec<Item>) -> Client {
    daemon.client(created(daemon.local.import(next_id(), file(items)).await.unwrap()))
}

async fn fork(daemon: &Daemon, of: &Client, entries: Option<u64>) -> Client {
    let fork = ForkSession { from: of.id, entries, name: None, before_reset: false };
    daemon.client(created(daemon.local.fork(next_id(), fork).await.unwrap()))
}

async fn compact(session: &Client, before: u64, summary: &str) -> Result<(u64, Option<u64>), Error> {
    let body = session.attached.compaction(session.id, before, summary.to_owned()).await?;
    match session.submit(body).await? {
        Outcome::Done { response: Response::Compacted { entries, asked, .. } } => Ok((entries, asked)),
        other => panic!("{other:?}"),
    }
}

async fn texts(session: &Client) -> Vec<String> {
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    entries.iter().map(|placed| placed.entry.content.beginning().to_owned()).collect()
}

async fn shown(session: &Client) -> Vec<String> {
    let entries = session.attached.context(session.id).await.unwrap();
    entries.iter().map(|placed| placed.entry.content.beginning().to_owned()).collect()
}

async fn exported(session: &Client) -> String {
    let page = session.attached.export(session.id, ExportCursor::default(), usize::MAX).await.unwrap();
    Format::Jsonl.write(&page.header, &page.items).unwrap()
}

#[tokio::test]
async fn a_conversation_is_read_and_searched_though_nothing_runs_it_and_its_folder_is_gone() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    let session = daemon.local.status(talk.id).await.unwrap().session;
    assert_eq!((session.state(), session.name.as_str()), (SessionState::Uninitialized, "talk"));
    assert_eq!((session.usage.input, session.usage.output), (50, 10));
    assert_eq!(session.offered(), [Action::Status, Action::Start]);
    assert_eq!(texts(&talk).await, ["question", "{}", "{}", "result of a", "result of b", "answer"]);
    let filter = EntryFilter {
        words: Words::parse("result").unwrap(),
        roles: vec![Role::ToolResult],
        sessions: Default::default(),
        since: None,
        until: None,
        offset: 0,
        limit: 10,
    };
    assert_eq!(daemon.local.search(filter).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_large_part_of_a_message_is_an_object_and_all_of_it_is_there() {
    let daemon = Daemon::start().await;
    let large = "word ".repeat(5_000);
    let talk = imported(&daemon, vec![said(PartRole::Assistant, &large)]).await;
    let entries = talk.attached.entries(talk.id, 0, 1).await.unwrap();
    assert!(matches!(entries[0].entry.content, Content::Object { bytes: 25_000, .. }), "{entries:?}");
    let whole = talk.attached.whole_entries(talk.id, 0, 1).await.unwrap();
    assert_eq!(whole[0].entry.content, Content::Text(large));
    assert_eq!(whole[0].hash, whole[0].entry.hash());
}

#[tokio::test]
async fn what_would_start_a_conversation_is_refused_and_says_what_can_be_done_with_it() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    let unknown = || Error::KernelUnknown { kind: SessionKind::agent() };
    for body in [
        SessionCommand::Start,
        SessionCommand::Reset,
        SessionCommand::HardReset,
        SessionCommand::Eval(command::Eval {
            code: "1".to_owned(),
            file: None,
            command_line: None,
            origin: None,
            withheld: false,
        }),
    ] {
        assert_eq!(talk.submit(body).await, Err(unknown()));
    }
    assert_eq!(talk.queue("1").await.unwrap(), Err(unknown()));
    assert_eq!(daemon.local.check(talk.id, "1".to_owned(), None).await, Err(unknown()));
    assert!(unknown().next_step().contains("compacted"), "{}", unknown().next_step());
    let create = file(Vec::new()).create;
    assert_eq!(daemon.local.create(next_id(), create).await, Err(unknown()));
    assert_eq!(talk.state().await, SessionState::Uninitialized);
    talk.submit(SessionCommand::Stop).await.unwrap();
}

#[tokio::test]
async fn nothing_is_merged_into_a_conversation_and_of_one_nothing_runs() {
    let daemon = Daemon::start().await;
    let (talk, session) = (imported(&daemon, with_calls()).await, daemon.session().await);
    session.eval("define a").await;
    let merge = |from: &Client| Merge { from: from.id, entries: std::iter::once(0..2).collect() };
    let into = daemon.local.merge(talk.id, next_id(), merge(&session)).await;
    assert_eq!(into, Err(Error::KernelUnknown { kind: SessionKind::agent() }));
    let Err(Error::InvalidArgument { reason, .. }) =
        daemon.local.merge(session.id, next_id(), merge(&talk)).await
    else {
        panic!("it was merged")
    };
    assert_eq!(reason, "there is no input among them: what an agent's conversation says does not run");
}

#[tokio::test]
async fn a_fork_parts_no_call_from_its_result() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    for (asked, entries) in [(0, 0), (1, 1), (2, 5), (3, 5), (4, 5), (5, 5), (6, 6)] {
        let child = fork(&daemon, &talk, Some(asked)).await;
        assert_eq!(texts(&child).await, texts(&talk).await[..entries], "{asked}");
    }
}

#[tokio::test]
async fn a_summary_stands_for_whole_units_and_is_there_after_a_restart_and_in_forks() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    for (before, said) in
        [(7, "it has 6 entries, and 7 of them are meant"), (0, "there is no whole entry before it")]
    {
        let error = Error::InvalidArgument { argument: "before".to_owned(), reason: said.to_owned() };
        assert_eq!(compact(&talk, before, "nothing").await, Err(error));
    }
    assert_eq!(compact(&talk, 3, "first").await, Ok((1, Some(3))), "the calls keep their results");
    assert_eq!(compact(&talk, 5, "second").await, Ok((5, None)));
    let kept = vec!["second".to_owned(), "answer".to_owned()];
    assert_eq!(shown(&talk).await, kept);
    let all = ["question", "{}", "{}", "result of a", "result of b", "answer", "first", "second"];
    assert_eq!(texts(&talk).await, all, "what it stands for stays readable");
    let talk = talk.leave();
    let daemon = daemon.crash().await;
    let talk = daemon.client(talk);
    assert_eq!(shown(&talk).await, kept);
    let child = fork(&daemon, &talk, None).await;
    assert_eq!(shown(&child).await, kept);
    let earlier = fork(&daemon, &child, Some(7)).await;
    assert_eq!(shown(&earlier).await, ["first", "{}", "{}", "result of a", "result of b", "answer"]);
    assert_eq!(compact(&child, 8, "third").await, Ok((8, None)));
    assert_eq!(shown(&child).await, ["third"]);
    assert_eq!(shown(&talk).await, kept, "the parent is as it was");
}

#[tokio::test]
async fn a_compaction_that_is_sent_again_is_carried_out_once() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    let again = async || {
        let body = talk.attached.compaction(talk.id, 3, "so far".to_owned()).await.unwrap();
        let command = mainstay_model::Command::new(id("compact"), talk.attached.source(), body);
        talk.give(command).await.unwrap()
    };
    let first = again().await;
    assert_eq!(again().await, first);
    assert_eq!(talk.count("transcriptCompacted").await, 1);
}

#[tokio::test]
async fn an_f_sharp_session_is_compacted_too_and_keeps_its_values() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for name in ["a", "b"] {
        session.eval(&format!("define {name}")).await;
    }
    assert_eq!(compact(&session, 3, "a is there").await, Ok((2, Some(3))), "an input keeps its output");
    assert_eq!(shown(&session).await.len(), 3);
    let child = fork(&daemon, &session, None).await;
    child.until("warmUpCompleted").await;
    assert_eq!(child.eval("names").await.value.unwrap_or_default(), "a b");
}

#[tokio::test]
async fn a_conversation_is_exported_and_imported_byte_for_byte_also_from_a_fork() {
    let daemon = Daemon::start().await;
    let talk = imported(&daemon, with_calls()).await;
    compact(&talk, 5, "so far").await.unwrap();
    let child = fork(&daemon, &talk, None).await;
    compact(&child, 6, "and on").await.unwrap();
    for session in [&talk, &child] {
        let written = exported(session).await;
        let other = Daemon::start().await;
        let read = read(&written).unwrap();
        let create = CreateSession { name: Some(read.header.name.clone()), ..file(Vec::new()).create };
        let import = ImportSession { create, imported: read };
        let copy = other.client(created(other.local.import(next_id(), import).await.unwrap()));
        assert_eq!(exported(&copy).await, written);
        assert_eq!(shown(&copy).await, shown(session).await);
    }
}

#[tokio::test]
async fn what_is_merged_back_from_below_a_summary_is_shown_and_such_a_conversation_is_exported_and_imported()
{
    let daemon = Daemon::start().await;
    let items = (0..4).map(|number| said(PartRole::User, &format!("said {number}"))).collect();
    let talk = imported(&daemon, items).await;
    let whole = fork(&daemon, &talk, None).await;
    compact(&talk, 3, "so far").await.unwrap();
    assert_eq!(shown(&talk).await, ["so far", "said 3"]);
    let bring = async |entries: std::ops::Range<u64>, at| {
        let merge = Merge { from: whole.id, entries: vec![entries] };
        daemon.local.insert(talk.id, next_id(), merge, at).await.unwrap()
    };
    bring(1..2, None).await;
    assert_eq!(shown(&talk).await, ["so far", "said 3", "said 1"]);
    // It stands there a second time in front of the summary, too.
    bring(0..1, Some(2)).await;
    assert_eq!(shown(&talk).await, ["so far", "said 0", "said 3", "said 1"]);
    let written = exported(&talk).await;
    let other = Daemon::start().await;
    let read = read(&written).unwrap();
    let create = CreateSession { name: Some(read.header.name.clone()), ..file(Vec::new()).create };
    let import = ImportSession { create, imported: read };
    let copy = other.client(created(other.local.import(next_id(), import).await.unwrap()));
    assert_eq!(exported(&copy).await, written);
    assert_eq!(shown(&copy).await, shown(&talk).await);
    // The next summary stands for them.
    compact(&talk, 7, "all of it").await.unwrap();
    assert_eq!(shown(&talk).await, ["all of it"]);
}

/// Something that happens to conversations.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fork { of: usize, entries: usize },
    Compact { of: usize, before: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<usize>(), any::<usize>()).prop_map(|(of, entries)| Step::Fork { of, entries }),
        (any::<usize>(), any::<usize>()).prop_map(|(of, before)| Step::Compact { of, before }),
    ]
}

/// A conversation, and the naive model of it: all texts, and which of them the newest summary stands for.
struct Line {
    session: Client,
    all: Vec<String>,
    summary: Option<(usize, Vec<bool>)>,
}

impl Line {
    fn shown(&self) -> Vec<String> {
        let Some((at, covered)) = &self.summary else { return self.all.clone() };
        let is_shown =
            |index: &usize| !covered.get(*index).unwrap_or(&false) && !self.all[*index].starts_with("sum");
        let rest = (0..self.all.len()).filter(is_shown).map(|index| self.all[index].clone());
        std::iter::once(self.all[*at].clone()).chain(rest).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn what_an_agent_is_shown_is_what_lists_that_are_copied_would_say(steps in vec(any_step(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(follow(steps));
    }
}

async fn follow(steps: Vec<Step>) {
    let daemon = Daemon::with(patient()).await;
    let items = (0..6).map(|number| said(PartRole::User, &format!("said {number}"))).collect();
    let session = imported(&daemon, items).await;
    let all = (0..6).map(|number| format!("said {number}")).collect();
    let mut lines = vec![Line { session, all, summary: None }];
    // Of each summary: the texts it stands for.
    let mut summaries: Vec<Vec<String>> = Vec::new();
    for step in steps {
        let count = lines.len();
        match step {
            Step::Fork { of, entries } => {
                let line = &lines[of % count];
                let entries = entries % (line.all.len() + 1);
                let session = fork(&daemon, &line.session, Some(entries as u64)).await;
                let all = line.all[..entries].to_vec();
                let newest = all.iter().rposition(|text| text.starts_with("sum"));
                let summary = newest.map(|at| {
                    let number: usize = all[at].trim_start_matches("sum ").parse().unwrap();
                    (at, all.iter().map(|text| summaries[number].contains(text)).collect())
                });
                lines.push(Line { session, all, summary });
            }
            Step::Compact { of, before } => {
                let line = &mut lines[of % count];
                let before = before % (line.all.len() + 1);
                let summary = format!("sum {}", summaries.len());
                let compacted = compact(&line.session, before as u64, &summary).await;
                assert_eq!(compacted.is_ok(), before > 0);
                if before > 0 {
                    summaries.push(line.all[..before].to_vec());
                    line.summary = Some((line.all.len(), vec![true; before]));
                    line.all.push(summary);
                }
            }
        }
        for line in &lines {
            assert_eq!(texts(&line.session).await, line.all);
            assert_eq!(shown(&line.session).await, line.shown());
        }
    }
}

#[tokio::test]
async fn entries_are_put_into_a_conversation_and_no_call_loses_its_result() {
    let daemon = Daemon::start().await;
    let import = async |text: &str| {
        let items = [vec![said(PartRole::User, text)], with_calls()].concat();
        created(daemon.local.import(next_id(), file(items)).await.unwrap())
    };
    let (one, other) = (import("one").await, import("other").await);
    let merge = Merge { from: other, entries: std::iter::once(4..5).collect() };
    let put = daemon.local.insert(one, next_id(), merge, Some(3)).await.unwrap();
    assert_eq!((put.entries, put.at, put.asked), (4, 6, Some(3)), "both calls and both results, behind both");
    let entries = daemon.local.entries(one, 0, 99).await.unwrap();
    let roles: Vec<Role> = entries.iter().map(|placed| placed.entry.role).collect();
    let calls = [Role::ToolCall, Role::ToolCall, Role::ToolResult, Role::ToolResult];
    let expected = [&[Role::User, Role::User][..], &calls, &calls, &[Role::Assistant]].concat();
    assert_eq!(roles, expected);
    let merge = Merge { from: other, entries: std::iter::once(0..1).collect() };
    let put = daemon.local.insert(one, next_id(), merge, None).await.unwrap();
    assert_eq!((put.entries, put.at, put.asked), (1, 11, None));
}

#[tokio::test]
async fn calls_and_results_stay_together_however_many_they_are() {
    let daemon = Daemon::start().await;
    let names: Vec<String> = (0..100).map(|number| format!("call-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let results = names.iter().map(|call| result(call)).collect();
    let items = [vec![said(PartRole::User, "all")], vec![calls(&names)], results].concat();
    let talk = created(daemon.local.import(next_id(), file(items)).await.unwrap());
    for at in [2, 50, 101, 102, 180] {
        let fork = ForkSession { from: talk, entries: Some(at), name: None, before_reset: false };
        let Ok(Outcome::Done { response: Response::Forked { entries, asked, .. } }) =
            daemon.local.fork(next_id(), fork).await
        else {
            panic!("it is not forked")
        };
        assert_eq!((entries, asked), (201, Some(at)));
    }
    let into = created(daemon.local.import(next_id(), file(with_calls())).await.unwrap());
    for index in [1, 60, 180] {
        let merge = Merge { from: talk, entries: std::iter::once(index..index + 1).collect() };
        let put = daemon.local.insert(into, next_id(), merge, None).await.unwrap();
        assert_eq!(put.entries, 200);
    }
}
