//! What another process does to the store: it is killed while it appends, anywhere or at a failpoint, it comes too late for
//! the lock, its disk fills up. The other process is this test binary again, told by [`ROLE`] what to do in [`FOLDER`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use mainstay_log::{AppendError, EventLog, SqliteLog, SqliteOptions};
use mainstay_model::{CommandId, Error, Event, Principal, Seq, Session};
use rustix::process::{Resource, Rlimit, setrlimit};
use support::{Line, answer, command_id, new_event, output};
use uuid::Uuid;

mod support;

const ROLE: &str = "MAINSTAY_LOG_TEST_ROLE";
const FOLDER: &str = "MAINSTAY_LOG_TEST_FOLDER";
const ROUNDS: usize = 20;
const SESSIONS: u128 = 4;

/// The other process; nothing when run as a test.
#[test]
fn in_the_other_process() {
    let (Ok(role), Some(folder)) = (env::var(ROLE), env::var_os(FOLDER)) else { return };
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    match role.as_str() {
        "append until killed" => runtime.block_on(append_until_killed(folder)),
        "open" => drop(open(folder)),
        "take the lock" => say(&format!("{:?}", SqliteLog::open(folder, &SqliteOptions::default()).err())),
        "fill the disk" => runtime.block_on(fill_the_disk(folder)),
        other => panic!("no role `{other}`"),
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    for _ in 0..ROUNDS {
        // Somewhere among the first appends, wherever the process then is.
        let lines = Uuid::now_v7().as_u128() % 400;
        let (mut child, mut said) = start("append until killed", home.path());
        for _ in 0..lines {
            let (session, seq) = said.next().unwrap().split_once(' ').map(parsed).unwrap();
            acknowledged.insert(session, seq);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for (session, seq) in said.filter_map(|line| line.split_once(' ').map(parsed)) {
            acknowledged.insert(session, seq);
        }
        let log = open(home.path());
        for session in 0..SESSIONS {
            check(&log, session, acknowledged.get(&session).copied().unwrap_or_default()).await;
        }
    }
    assert_eq!(acknowledged.len() as u128, SESSIONS);
}

/// Killed at each failpoint, at the times of passing it that a seed gives; `MAINSTAY_LOG_CRASH_RUNS` says how often at each.
#[cfg(feature = "failpoints")]
mod at_failpoints {
    use std::os::unix::process::ExitStatusExt;

    use mainstay_log::examine;
    use mainstay_log::failpoint::{Failpoint, VARIABLE};
    use support::version1::Version1;

    use super::*;

    const RUNS: u64 = 50;
    /// A store is killed so often before another is begun, so that reading all of it stays cheap.
    const RUNS_OF_A_STORE: u64 = 10;
    const LATEST: u64 = 120;
    const KILLED: Option<i32> = Some(9);

    #[tokio::test]
    async fn a_kill_before_a_commit_leaves_nothing_of_it() {
        kill_at(Failpoint::BeforeCommit).await;
    }

    #[tokio::test]
    async fn a_kill_after_a_commit_leaves_all_of_it() {
        kill_at(Failpoint::AfterCommit).await;
    }

    #[tokio::test]
    async fn a_kill_between_two_appends_of_a_batch_leaves_neither() {
        kill_at(Failpoint::DuringBatch).await;
    }

    #[tokio::test]
    async fn a_kill_between_a_session_and_its_events_leaves_neither() {
        kill_at(Failpoint::DuringProjection).await;
    }

    #[tokio::test]
    async fn a_kill_during_a_migration_leaves_the_store_as_it_was_before_the_step() {
        for (steps, is_old) in [(4, false), (3, true)] {
            for time in 1..=steps {
                let home = tempfile::tempdir().unwrap();
                let mut line = Line::new(0);
                let mut events = Vec::new();
                if is_old {
                    let old = Version1::create(&home.path().join("mainstay.db"));
                    events.extend(old.append(&line.create()));
                    events.extend(old.append(&line.append(vec![output("one"), output("two")])));
                }
                let (said, signal) = killed("open", home.path(), Failpoint::DuringMigration, time);
                assert_eq!((said.len(), signal), (0, KILLED), "step {time} of {steps}");
                let log = open(home.path());
                assert_eq!(log.events(line.id, Seq::ZERO, usize::MAX).await.as_ref(), Ok(&events));
                assert_eq!(log.session(line.id).await.unwrap(), Session::fold(&events));
                let next = if is_old { line.append(vec![output("and on")]) } else { line.create() };
                log.append(next).await.unwrap();
            }
        }
    }

    async fn kill_at(failpoint: Failpoint) {
        let runs = env::var("MAINSTAY_LOG_CRASH_RUNS").ok().map_or(RUNS, |runs| runs.parse().unwrap());
        let mut home = tempfile::tempdir().unwrap();
        let mut acknowledged = BTreeMap::new();
        let mut all = 0;
        for run in 0..runs {
            if run % RUNS_OF_A_STORE == 0 {
                home = tempfile::tempdir().unwrap();
                acknowledged.clear();
            }
            let time = seeded(run) % LATEST + 1;
            let (said, signal) = killed("append until killed", home.path(), failpoint, time);
            assert_eq!(signal, KILLED, "{} in run {run}", failpoint.name());
            all += said.len();
            acknowledged.extend(said.iter().filter_map(|line| line.split_once(' ')).map(parsed));
            see_what_is_there(home.path(), &acknowledged).await;
        }
        assert!(all as u64 > runs, "{all} acknowledged in {runs} runs");
    }

    /// Everything that was acknowledged is there once, and nothing half.
    async fn see_what_is_there(folder: &Path, acknowledged: &BTreeMap<u128, u64>) {
        let report = examine(folder, &mut |_| ()).unwrap().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let log = open(folder);
        let mut appends = 0;
        for session in 0..SESSIONS {
            check(&log, session, acknowledged.get(&session).copied().unwrap_or_default()).await;
            let events = log.events(support::session_id(session), Seq::ZERO, usize::MAX).await.unwrap();
            appends += events.get(1..).unwrap_or_default().chunk_by(together).count() as u64;
        }
        assert_eq!(report.outcomes, appends, "each append has its outcome, and no other is there");
    }

    /// What the other process said before it was killed at a failpoint, and the signal that ended it.
    fn killed(role: &str, folder: &Path, failpoint: Failpoint, time: u64) -> (Vec<String>, Option<i32>) {
        let mut command = other_process(role, folder);
        let mut child = command.env(VARIABLE, format!("{}:{time}", failpoint.name())).spawn().unwrap();
        let said = said(child.stdout.take().unwrap()).collect();
        (said, child.wait().unwrap().signal())
    }

    /// The same number in every run of the tests (SplitMix64).
    fn seeded(run: u64) -> u64 {
        let mixed = (run + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn another_process_finds_the_store_locked_while_it_is_open() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let answer = || {
        let (mut child, said) = start("take the lock", home.path());
        let answer: Vec<_> = said.collect();
        assert!(child.wait().unwrap().success());
        answer
    };
    assert_eq!(answer(), [format!("{:?}", Some(Error::StoreLocked))]);
    drop(log);
    assert_eq!(answer(), [format!("{:?}", None::<Error>)]);
}

#[tokio::test]
async fn a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (mut child, mut said) = start("fill the disk", home.path());
    let kept: u64 = said.next().unwrap().parse().unwrap();
    assert_eq!(said.next(), None);
    assert!(child.wait().unwrap().success());
    let log = open(home.path());
    let events = log.events(support::session_id(0), Seq::ZERO, usize::MAX).await.unwrap();
    assert!(events.iter().map(|event| event.seq.0).eq(1..=kept));
    assert_eq!(log.session(support::session_id(0)).await.unwrap(), Session::fold(&events));
}

/// Every session appends one to three events at a time, each append with the outcome of its command.
async fn append_until_killed(folder: &Path) {
    let log = Arc::new(open(folder));
    let appenders: Vec<_> =
        (0..SESSIONS).map(|session| tokio::spawn(append_forever(Arc::clone(&log), session))).collect();
    for appender in appenders {
        appender.await.unwrap();
    }
}

async fn append_forever(log: Arc<SqliteLog>, session: u128) {
    let mut line = Line::new(session);
    line.session = log.session(line.id).await.unwrap();
    match line.session {
        Some(_) => line.epoch = log.claim(line.id).await.unwrap(),
        None => drop(log.append(line.create()).await.unwrap()),
    }
    loop {
        let first = line.last_seq().0 + 1;
        let count = first % 3 + 1;
        let command = command_of(session, Seq(first + count - 1));
        let mut append = line.append((0..count).map(|index| output(format!("{index} of {count}"))).collect());
        append.outcomes.push(answer(command.as_str(), line.last_seq()));
        for event in &mut append.events {
            event.metadata.correlation = Some(command.clone());
        }
        log.append(append).await.unwrap();
        say(&format!("{session} {}", line.last_seq()));
    }
}

/// What is there goes as far as was acknowledged at least, is whole, and has its outcomes.
async fn check(log: &SqliteLog, session: u128, acknowledged: u64) {
    let id = support::session_id(session);
    let events = log.events(id, Seq::ZERO, usize::MAX).await.unwrap();
    let last = events.len() as u64;
    assert!(last >= acknowledged, "{acknowledged} was acknowledged, {last} is there");
    assert!(events.iter().map(|event| event.seq.0).eq(1..=last));
    assert_eq!(log.session(id).await.unwrap(), Session::fold(&events));
    for appended in events.get(1..).unwrap_or_default().chunk_by(together) {
        let (seq, count) = (appended[0].seq.0, appended.len() as u64);
        assert_eq!(count, seq % 3 + 1, "an append is there whole");
        let command = appended[0].metadata.correlation.clone().unwrap();
        let stored = log.outcome(&Principal::local(), &command).await.unwrap().unwrap();
        assert_eq!(stored.outcome, answer(command.as_str(), Seq(seq + count - 1)).outcome);
    }
    let next = command_of(session, Seq(last + 1 + (last + 1) % 3));
    assert_eq!(log.outcome(&Principal::local(), &next).await, Ok(None), "no outcome without its events");
}

fn together(one: &Event, next: &Event) -> bool {
    one.metadata.correlation == next.metadata.correlation
}

fn command_of(session: u128, last: Seq) -> CommandId {
    command_id(&format!("{session}-{last}"))
}

/// Files may grow no further than a little over the room that the write-ahead log has from the start: at some append
/// even that is used up, and what is to be written then is refused when it is to become durable.
async fn fill_the_disk(folder: &Path) {
    const FILE_BYTES: u64 = 10_000_000;
    let log = open(folder);
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    limit(Some(FILE_BYTES));
    let bodies = || vec![output("x".repeat(100_000))];
    let refused = loop {
        let append = line.peek(bodies());
        let projection = append.projection.clone();
        match log.append(append).await {
            Ok(_) => line.session = Some(projection),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused.error, AppendError::Unavailable { .. }), "{}", refused.error);
    assert!(line.last_seq().0 > 50);
    assert!(log.append(line.peek(bodies())).await.is_err());
    let events = log.events(line.id, Seq::ZERO, usize::MAX).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq((1..=line.last_seq().0).map(Seq)));

    limit(None);
    log.append(line.append(bodies())).await.unwrap();
    log.append(line.append(vec![new_event(output("and on")).body])).await.unwrap();
    say(&line.last_seq().to_string());
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

/// Starts the other process in a role, and gives what it says.
fn start(role: &str, folder: &Path) -> (Child, impl Iterator<Item = String>) {
    let mut child = other_process(role, folder).spawn().unwrap();
    let said = said(child.stdout.take().unwrap());
    (child, said)
}

/// The other process in a role. Where a file may grow no further, a write is to fail, not to end the process: hence the
/// shell, which ignores that signal for it.
fn other_process(role: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "in_the_other_process", "--nocapture"])
        .envs([(ROLE, role.as_ref()), (FOLDER, folder.as_os_str())])
        .stdout(Stdio::piped());
    command
}

/// Says a line to the process that waits for it; the test runner says others.
fn say(line: &str) {
    let mut stdout = stdout().lock();
    writeln!(stdout, "\n> {line}").unwrap();
    stdout.flush().unwrap();
}

fn said(stdout: ChildStdout) -> impl Iterator<Item = String> {
    // A line cut short by a kill has no end, and so was not said.
    let mut stdout = BufReader::new(stdout);
    std::iter::from_fn(move || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line.ends_with('\n').then_some(line)
    })
    .filter_map(|line| line.trim_end().strip_prefix("> ").map(str::to_owned))
}

fn parsed((session, seq): (&str, &str)) -> (u128, u64) {
    (session.parse().unwrap(), seq.parse().unwrap())
}
