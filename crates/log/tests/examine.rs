//! What the examination of a store finds: nothing in one that is sound, and in a damaged one the damage by its name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use mainstay_log::{
    EntryIndex, EventLog, Examination, Finding, ObjectHash, Objects, PromptHistory, Schedules, SqliteLog,
    SqliteOptions, Stage, examine,
};
use mainstay_model::schedule::{MissedRuns, Schedule, ScheduleState, When};
use mainstay_model::{AskEnding, Error, EventBody, Position, Raiser, Seq, SessionId};
use rusqlite::Connection;
use support::{Line, answer, output, samples, session_id};
use tempfile::TempDir;
use uuid::Uuid;

mod support;

/// More events than are indexed at once, so that some are in the index and some are not.
const EVENTS: u64 = 1500;
const LARGE: usize = 100_000;

/// A closed store: session 0 with many events, session 1 with few, both with outcomes, and two objects.
async fn store() -> TempDir {
    let home = private_folder();
    let log = open(home.path());
    let [mut long, mut short] = [0, 1].map(Line::new);
    log.append(long.create()).await.unwrap();
    log.append(short.create()).await.unwrap();
    for number in 0..EVENTS / 10 {
        let mut append = long.append((0..10).map(|part| output(format!("{number}.{part}"))).collect());
        append.outcomes.push(answer(&format!("long-{number}"), long.last_seq()));
        log.append(append).await.unwrap();
    }
    let mut append = short.append(samples::busy());
    append.outcomes.push(answer("short", short.last_seq()));
    log.append(append).await.unwrap();
    log.put_object(vec![1; 100]).await.unwrap();
    log.put_object(vec![2; LARGE]).await.unwrap();
    home
}

/// A closed store with a session of two cells, one of them large.
async fn said() -> TempDir {
    let home = private_folder();
    let log = open(home.path());
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    for code in ["let x = 1", &"x".repeat(20_000)] {
        log.append(line.request(code)).await.unwrap();
        log.append(line.finish("done")).await.unwrap();
    }
    assert_eq!(log.count_own_entries(line.id).await, Ok(4));
    home
}

#[tokio::test]
async fn a_sound_store_is_found_sound_and_counted() {
    let home = store().await;
    let mut stages = Vec::new();
    let report = examine(home.path(), &mut |progress| stages.push(progress.stage)).unwrap().unwrap();
    assert_eq!(report.findings, []);
    assert!(report.is_sound() && !report.in_use);
    let counted = (report.sessions, report.events, report.outcomes, report.objects);
    assert_eq!(counted, (2, 2 + EVENTS + samples::busy().len() as u64, EVENTS / 10 + 1, 2));
    stages.dedup();
    let all = [
        Stage::Files,
        Stage::Pages,
        Stage::Events,
        Stage::Sessions,
        Stage::Outcomes,
        Stage::Objects,
        Stage::Entries,
        Stage::History,
        Stage::Schedules,
    ];
    assert_eq!(stages, all);
}

#[tokio::test]
async fn a_store_that_is_open_is_examined_as_it_is_and_goes_on() {
    let home = private_folder();
    let log = open(home.path());
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    let report = report(home.path());
    assert!(report.in_use && report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.sessions, report.events), (1, 1));
    log.append(line.append(vec![output("and on")])).await.unwrap();
}

#[test]
fn where_there_is_no_store_there_is_nothing_to_say() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(examine(&home.path().join("none"), &mut |_| ()), Ok(None));
    assert_eq!(examine(home.path(), &mut |_| ()), Ok(None));
    assert!(!home.path().join("none").exists());
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_named() {
    for change_of in ["body = '{\"job\":'", "kind = 'fromTheFuture'", "source = '\"nobody\"'", "at = 9e18"] {
        let home = store().await;
        change(&home, &format!("UPDATE event SET {change_of} WHERE position = 20"));
        let [Finding::EventUnreadable { session, seq, .. }] = &findings(&home)[..] else {
            panic!("{:?}", findings(&home));
        };
        assert_eq!((*session, *seq), (session_id(0), Seq(19)));
    }
}

#[tokio::test]
async fn a_flipped_byte_in_an_events_body_is_found() {
    let home = store().await;
    // The quote becomes a character that begins no value.
    flip(&home, b"\"text\":\"77.7\"", b"\"text\":".len());
    let [Finding::EventUnreadable { session, seq, .. }] = &findings(&home)[..] else {
        panic!("{:?}", findings(&home));
    };
    assert_eq!((*session, *seq), (session_id(0), Seq(779)));
}

#[tokio::test]
async fn a_missing_event_is_named() {
    let home = store().await;
    change(&home, "DELETE FROM event WHERE position IN (20, 21)");
    let missing = Finding::EventsMissing { session: session_id(0), first: Seq(19), last: Seq(20) };
    assert_eq!(findings(&home), [missing]);
}

#[tokio::test]
async fn events_out_of_their_order_are_named() {
    let home = store().await;
    change(&home, "UPDATE event SET seq = 5 WHERE position = 20");
    let found = findings(&home);
    let wrong = Finding::EventOutOfOrder { session: session_id(0), seq: Seq(5), position: Position(20) };
    assert!(found.contains(&wrong), "{found:?}");
}

#[tokio::test]
async fn a_head_that_does_not_name_the_newest_event_is_found() {
    let newest = Seq(EVENTS + 1);
    for (change_of, head) in [
        ("UPDATE head SET last_seq = last_seq - 1 WHERE session = 1", Some(EVENTS)),
        ("UPDATE head SET last_seq = 5000 WHERE session = 1", Some(5000)),
        ("DELETE FROM head WHERE session = 1", None),
    ] {
        let home = store().await;
        change(&home, change_of);
        assert_eq!(
            findings(&home),
            [Finding::HeadWrong { session: session_id(0), head: head.map(Seq), newest }]
        );
    }
}

#[tokio::test]
async fn a_projection_that_its_events_do_not_tell_is_found() {
    for (change_of, field) in [
        ("UPDATE session SET projection = json_set(projection, '$.evals', 7) WHERE number = 1", "evals"),
        ("UPDATE head SET last_activity = last_activity + 1 WHERE session = 1", "lastActivity"),
    ] {
        let home = store().await;
        change(&home, change_of);
        let fields = vec![field.to_owned()];
        assert_eq!(findings(&home), [Finding::ProjectionWrong { session: session_id(0), fields }]);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_named() {
    let home = store().await;
    change(&home, "UPDATE session SET projection = '{' WHERE number = 2");
    let [Finding::SessionUnreadable { session, .. }] = &findings(&home)[..] else { panic!() };
    assert_eq!(*session, session_id(1).to_string());

    let home = store().await;
    change(&home, "DELETE FROM session WHERE number = 2");
    assert_eq!(findings(&home), [Finding::SessionMissing { number: 2, position: Position(2) }]);
}

#[tokio::test]
async fn an_index_that_does_not_lead_to_the_events_is_found_and_its_next_step_mends_it() {
    let session = session_id(0);
    let missing = |first, last| Finding::IndexMissing { session, first: Seq(first), last: Seq(last) };
    for (change_of, finding) in [
        ("DELETE FROM event_index WHERE session = 1 AND seq IN (9, 10)", missing(9, 10)),
        // Position 1025 is the last of the append that made the index due.
        ("DELETE FROM event_index WHERE session = 1 AND seq > 1000", missing(1001, 1031)),
        (
            "UPDATE event_index SET position = 11 WHERE session = 1 AND seq = 9",
            Finding::IndexWrong { session, seq: Seq(9), position: Position(11) },
        ),
    ] {
        let home = store().await;
        change(&home, change_of);
        let found = findings(&home);
        assert_eq!(found, std::slice::from_ref(&finding));
        let step = finding.next_step();
        change(&home, step.split('\'').nth(1).unwrap());
        assert_eq!(findings(&home), []);
    }
}

#[tokio::test]
async fn an_outcome_that_is_missing_or_unreadable_is_named() {
    let home = store().await;
    change(&home, "UPDATE outcome SET response = '{' WHERE command = 'short'");
    let [Finding::OutcomeUnreadable { command, .. }] = &findings(&home)[..] else { panic!() };
    assert_eq!(command, "short");

    let home = store().await;
    change(&home, "INSERT INTO idempotency VALUES ('local', 2, 'once', 'nobody-knows')");
    let [Finding::KeyWithoutOutcome { key, .. }] = &findings(&home)[..] else { panic!() };
    assert_eq!(key, "once");
}

#[tokio::test]
async fn an_eval_that_ended_without_an_outcome_is_named() {
    let home = store().await;
    let log = open(home.path());
    let mut line = Line::new(1);
    line.session = log.session(line.id).await.unwrap();
    let running = line.session.as_ref().unwrap().running().unwrap().clone();
    log.append(line.append(vec![EventBody::EvalInterrupted { job: running.job }])).await.unwrap();
    drop(log);
    let seq = line.last_seq();
    let missing = Finding::OutcomeMissing { session: line.id, seq, command: running.command.clone() };
    assert_eq!(findings(&home), [missing]);

    let log = open(home.path());
    let mut append = line.append(vec![output("late")]);
    append.outcomes.push(answer(running.command.as_str(), seq));
    append.outcomes[0].principal = running.source.principal();
    log.append(append).await.unwrap();
    drop(log);
    assert_eq!(findings(&home), []);
}

#[tokio::test]
async fn an_ask_that_ended_without_an_outcome_is_named() {
    let home = store().await;
    let log = open(home.path());
    let mut line = Line::new(1);
    line.session = log.session(line.id).await.unwrap();
    let raised = samples::ask();
    let Raiser::Command { command, .. } = raised.raiser.clone() else { panic!() };
    let ended = EventBody::AskEnded { ask: raised.ask, ending: AskEnding::Cancelled, channel: None };
    log.append(line.append(vec![EventBody::AskRaised(Box::new(raised)), ended])).await.unwrap();
    drop(log);
    let missing = Finding::OutcomeMissing { session: line.id, seq: line.last_seq(), command };
    assert_eq!(findings(&home), [missing]);
}

#[tokio::test]
async fn a_column_that_is_not_what_the_session_is_is_found() {
    for (column, value) in
        [("owner", "'eve'"), ("name", "'other'"), ("alias", "'other'"), ("asks", "7"), ("state", "'Faulted'")]
    {
        let home = store().await;
        change(&home, &format!("UPDATE session SET {column} = {value} WHERE number = 1"));
        let fields = vec![format!("the column {column}")];
        assert_eq!(findings(&home), [Finding::ProjectionWrong { session: session_id(0), fields }]);
    }
}

#[tokio::test]
async fn a_damaged_object_is_named() {
    let hash = ObjectHash::of(&[2; LARGE]);
    let damages: [&dyn Fn(&Path); 3] = [
        &|file| OpenOptions::new().write(true).open(file).unwrap().write_all_at(b"x", 5000).unwrap(),
        &|file| OpenOptions::new().write(true).open(file).unwrap().set_len(10).unwrap(),
        &|file| fs::remove_file(file).unwrap(),
    ];
    for damage in damages {
        let home = store().await;
        damage(&home.path().join("objects").join(&hash.as_str()[..2]).join(hash.as_str()));
        let [Finding::ObjectDamaged { hash: named, .. }] = &findings(&home)[..] else { panic!() };
        assert_eq!(named, hash.as_str());
    }
    let home = store().await;
    change(&home, "UPDATE object SET bytes = x'00' WHERE bytes IS NOT NULL");
    let [Finding::ObjectDamaged { hash: named, .. }] = &findings(&home)[..] else { panic!() };
    assert_eq!(named, ObjectHash::of(&[1; 100]).as_str());
}

#[tokio::test]
async fn a_database_cut_short_is_damaged_and_what_is_left_of_it_is_examined() {
    let home = store().await;
    let file = OpenOptions::new().write(true).open(home.path().join("mainstay.db")).unwrap();
    for length in [file.metadata().unwrap().len() / 2, 8192, 4096, 100, 0] {
        file.set_len(length).unwrap();
        let report = report(home.path());
        assert!(!report.is_sound(), "{length} bytes");
    }
    assert_eq!(findings(&home), [Finding::DatabaseEmpty]);
    fs::remove_file(home.path().join("mainstay.db")).unwrap();
    assert!(!report(home.path()).is_sound());
    assert!(!home.path().join("mainstay.db").exists(), "an examination makes no database");
}

#[tokio::test]
async fn pages_of_events_that_cannot_be_read_are_named_and_those_behind_them_are_examined() {
    let home = store().await;
    let path = home.path().join("mainstay.db");
    let page: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'event'", (), |row| row.get(0))
        .unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // The page that the fourth cell of the root leads to is overwritten.
    let mut root = vec![0; 4096];
    let at = |page: i64| (page - 1).unsigned_abs() * 4096;
    file.read_exact_at(&mut root, at(page)).unwrap();
    assert_eq!(root[0], 5, "the root is an inner page");
    let cell = usize::from(u16::from_be_bytes([root[12 + 6], root[12 + 7]]));
    let leaf = i64::from(u32::from_be_bytes(root[cell..cell + 4].try_into().unwrap()));
    file.write_all_at(&[0xff; 4096], at(leaf)).unwrap();

    let report = report(home.path());
    let unreadable = report.findings.iter().find_map(|finding| match finding {
        Finding::EventsUnreadable { after, before, .. } => Some((after.0, before.unwrap().0)),
        _ => None,
    });
    let (after, before) = unreadable.unwrap();
    let missing = Finding::EventsMissing { session: session_id(0), first: Seq(after), last: Seq(before - 2) };
    assert!(report.findings.contains(&missing), "{:?}", report.findings);
    assert_eq!(report.events, 2 + EVENTS + samples::busy().len() as u64 - (before - after - 1));
    assert_eq!((report.outcomes, report.objects), (EVENTS / 10 + 1, 2));
}

#[tokio::test]
async fn an_unfinished_commit_at_the_end_of_the_write_ahead_log_is_told_and_no_damage() {
    let home = killed().await;
    assert_eq!(findings(&home), []);
    let (log, frame) = (home.path().join("mainstay.db-wal"), 24 + 4096);
    let bytes = fs::read(&log).unwrap();
    let frames = commits(&bytes);
    let end = 32 + frame * frames.len();
    // The last commit loses its end: half a page of it, then all but its first page.
    let last = frames.iter().rposition(|is_commit| *is_commit).unwrap();
    let begin = frames[..last].iter().rposition(|is_commit| *is_commit).unwrap() + 1;
    for length in [end - 2000, 32 + frame * begin + 100] {
        fs::write(&log, &bytes[..length]).unwrap();
        let [Finding::CommitUnfinished { pages: 1.. }] = findings(&home)[..] else {
            panic!("{length}: {:?}", findings(&home));
        };
        assert!(report(home.path()).is_sound());
    }
    // A byte of its first page is another.
    let mut torn = bytes.clone();
    torn[32 + frame * begin + 24 + 7] ^= 1;
    fs::write(&log, &torn).unwrap();
    let [Finding::CommitUnfinished { .. }] = findings(&home)[..] else { panic!("{:?}", findings(&home)) };
    // The same in a commit that others follow, which had been acknowledged.
    let mut damaged = bytes;
    damaged[32 + 24 + 7] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let transactions = frames.iter().filter(|is_commit| **is_commit).count() as u64;
    let found = findings(&home);
    assert!(found.contains(&Finding::WriteAheadLogDamaged { frame: 1, transactions }), "{found:?}");
}

#[tokio::test]
async fn files_that_others_may_use_are_told() {
    let home = store().await;
    let path = home.path().join("mainstay.db");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let open = Finding::Open { path: path.display().to_string(), mode: "644".to_owned() };
    assert_eq!(findings(&home), [open]);
    assert!(report(home.path()).is_sound());
}

#[tokio::test]
async fn a_newer_store_is_refused_and_of_an_older_one_only_the_pages_are_examined() {
    let home = store().await;
    change(&home, "PRAGMA user_version = 1000");
    assert!(matches!(examine(home.path(), &mut |_| ()), Err(Error::StoreNewer { found: 1000, .. })));
    change(&home, "PRAGMA user_version = 1");
    assert!(matches!(findings(&home)[..], [Finding::SchemaOlder { found: 1, .. }]));
}

#[test]
fn every_finding_says_what_is_lost_and_what_to_do() {
    let finding =
        Finding::EventsMissing { session: SessionId::from_uuid(Uuid::nil()), first: Seq(2), last: Seq(2) };
    assert_eq!(finding.to_string(), "event 2 of session 00000000-0000-0000-0000-000000000000 is missing");
    assert!(finding.lost().contains("replayed") && finding.next_step().contains("backup"));
}

/// A store whose daemon was killed after some appends: its write-ahead log is there.
async fn killed() -> TempDir {
    let live = private_folder();
    let log = open(live.path());
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    for number in 0..5 {
        log.append(line.append(vec![output(format!("{number}").repeat(6000))])).await.unwrap();
    }
    let left = private_folder();
    for name in ["mainstay.db", "mainstay.db-wal", "store.lock"] {
        fs::copy(live.path().join(name), left.path().join(name)).unwrap();
    }
    left
}

/// A folder as the log makes it; the test runner's folders are open to others.
fn private_folder() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    home
}

/// Which frames of the write-ahead log's round end a transaction.
fn commits(log: &[u8]) -> Vec<bool> {
    let salt = &log[16..24];
    log[32..]
        .chunks(24 + 4096)
        .take_while(|frame| frame.len() >= 24 && frame[8..16] == *salt)
        .map(|frame| frame[4..8] != [0; 4])
        .collect()
}

/// Flips a bit of one byte of the database: that many bytes behind the only place where the file has these.
fn flip(home: &TempDir, bytes: &[u8], behind: usize) {
    let path = home.path().join("mainstay.db");
    let mut database = fs::read(&path).unwrap();
    let places: Vec<_> = (0..database.len()).filter(|at| database[*at..].starts_with(bytes)).collect();
    let [at] = places[..] else { panic!("{} places", places.len()) };
    database[at + behind] ^= 0x20;
    fs::write(&path, &database).unwrap();
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

fn report(folder: &Path) -> Examination {
    examine(folder, &mut |_| ()).unwrap().unwrap()
}

fn findings(home: &TempDir) -> Vec<Finding> {
    report(home.path()).findings
}

/// Damages the store behind the log's back.
fn change(home: &TempDir, sql: &str) {
    Connection::open(home.path().join("mainstay.db")).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_transcript_that_is_not_what_was_said_is_named_and_can_be_made_again() {
    let sound = report(said().await.path());
    assert_eq!((sound.findings, sound.entries), (vec![], 3));
    for damage in [
        "UPDATE entry SET text = 'let x = 2' WHERE number = 1",
        "UPDATE entry SET role = 'nobody' WHERE number = 1",
        "UPDATE entry SET hash = zeroblob(7) WHERE number = 1",
        "DELETE FROM object",
        "DELETE FROM entry WHERE number = 2",
        "DELETE FROM place WHERE number = 1",
    ] {
        let home = said().await;
        let before = entries(&home).await;
        change(&home, damage);
        let findings = findings(&home);
        let [finding @ Finding::TranscriptWrong { .. }] = findings.as_slice() else {
            panic!("{damage}: {findings:?}")
        };
        let step = finding.next_step();
        let sql = step.split('\'').nth(1).unwrap().replace('"', "'");
        Connection::open(home.path().join("mainstay.db")).unwrap().execute_batch(&sql).unwrap();
        assert_eq!(entries(&home).await, before, "{damage}");
        assert_eq!(report(home.path()).findings, [], "{damage}");
    }
}

async fn entries(home: &TempDir) -> Vec<mainstay_model::TranscriptEntry> {
    open(home.path()).own_entries(session_id(0), 0, 9).await.unwrap()
}

#[tokio::test]
async fn a_line_of_the_history_without_its_text_is_named_and_can_be_removed() {
    let home = said().await;
    let log = open(home.path());
    let new = |text: String| {
        let (id, at) = (uuid::Uuid::from_u128(text.len() as u128), mainstay_model::Timestamp::UNIX_EPOCH);
        mainstay_model::NewLine { id, at, folder: None, session: None, text }
    };
    for text in ["1 + 1".to_owned(), "y".repeat(30_000)] {
        log.add_history(&mainstay_model::Principal::local(), new(text), None).await.unwrap();
    }
    drop(log);
    let sound = report(home.path());
    assert_eq!((sound.findings, sound.history), (vec![], 2));
    change(&home, "DELETE FROM object WHERE size = 30000");
    let findings = findings(&home);
    let [finding @ Finding::HistoryWrong { number: 2, .. }] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    assert_eq!(finding.next_step(), "Remove the line: mainstay history --remove 2");
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_or_found_is_named_and_so_is_one_of_nobody() {
    let home = said().await;
    let log = open(home.path());
    for (id, principal) in [("daily", "ada"), ("weekly", "bea"), ("it's", "ada")] {
        log.add_schedule(schedule_of(id, principal), 9).await.unwrap();
    }
    drop(log);
    let mut sound = report(home.path());
    assert_eq!((sound.findings.len(), sound.schedules), (0, 3));
    sound.note_unknown_principals(|principal| principal.as_str() == "ada");
    let [finding @ Finding::ScheduleOfUnknown { .. }] = &sound.findings[..] else { panic!("{sound:?}") };
    assert_eq!(finding.to_string(), "schedule `weekly` is that of `bea`, whom `config.toml` does not name");
    assert!(sound.is_sound());
    for (change_of, reason) in [
        ("schedule = '{}'", "missing field"),
        ("principal = 'bea'", "another principal"),
        ("wakes_at = 5", "another moment"),
    ] {
        let sql = format!("UPDATE schedule SET {change_of} WHERE id = 'it''s'");
        let home = said().await;
        let log = open(home.path());
        log.add_schedule(schedule_of("it's", "ada"), 9).await.unwrap();
        drop(log);
        change(&home, &sql);
        let found = findings(&home);
        let [finding @ Finding::ScheduleWrong { schedule, reason: why }] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(schedule == "it's" && why.contains(reason), "{why}");
        assert!(finding.next_step().ends_with("\"DELETE FROM schedule WHERE id = 'it''s'\""));
    }
}

/// A schedule that runs once, long after it was made.
fn schedule_of(id: &str, principal: &str) -> Schedule {
    let at = |second| mainstay_model::Timestamp::from_second(second).unwrap();
    let eval = mainstay_model::command::Eval {
        code: "1".to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    };
    let state = ScheduleState {
        planned_to: at(0),
        passed: 0,
        left_out: 0,
        under_way: Vec::new(),
        next: None,
        last: None,
    };
    let schedule = Schedule {
        id: id.to_owned(),
        principal: mainstay_model::Principal::new(principal).unwrap(),
        rights: mainstay_model::Rights::All,
        created_at: at(0),
        when: When::At(at(100)),
        session: session_id(0),
        command: mainstay_model::SessionCommand::Eval(eval),
        key_prefix: None,
        grants: None,
        missed: MissedRuns::RunOnce,
        state,
    };
    schedule.begin(0).unwrap()
}

#[tokio::test]
async fn a_session_of_before_titles_is_sound_without_one() {
    let home = said().await;
    change(&home, "UPDATE session SET projection = json_remove(projection, '$.title')");
    assert_eq!(findings(&home), []);
    change(&home, "UPDATE session SET projection = json_set(projection, '$.title', 'another')");
    let found = findings(&home);
    assert!(
        matches!(&found[..], [Finding::ProjectionWrong { fields, .. }] if fields == &["title"]),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_session_of_before_tasks_were_known_is_sound_without_them() {
    let home = private_folder();
    let log = open(home.path());
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    log.append(line.append(samples::busy())).await.unwrap();
    let job = line.session.as_ref().unwrap().running().unwrap().job;
    let (child, agent) = (support::command_id("child"), "pi".to_owned());
    let delegated = EventBody::JobDelegated { job, child, agent, grants: Some(Box::default()) };
    let told = vec![delegated, EventBody::CancelRequested { job, grace_ms: None }];
    log.append(line.append(told)).await.unwrap();
    drop(log);
    assert_eq!(findings(&home), []);
    change(&home, "UPDATE session SET projection = json_set(projection, '$.delegations[0].child', 'other')");
    let found = findings(&home);
    assert!(
        matches!(&found[..], [Finding::ProjectionWrong { fields, .. }] if fields == &["delegations"]),
        "{found:?}"
    );
    change(&home, "UPDATE session SET projection = json_remove(projection, '$.delegations')");
    assert_eq!(findings(&home), []);
}
