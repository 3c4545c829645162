//! A disk that is full, cannot be written, loses the end of a file, or gives back other bytes than it was given: what was
//! acknowledged and is still there is read, what cannot be had is named, and nothing panics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use mainstay_log::{
    AppendError, Directory, EventLog, Examination, Finding, Objects, SessionFilter, SqliteLog, SqliteOptions,
    examine,
};
use mainstay_model::{Error, EventBody, Principal, Seq, Session};
use rusqlite::{Connection, OpenFlags};
use support::{Line, answer, command_id, output, session_id};
use tempfile::TempDir;

mod support;

const ROLE: &str = "MAINSTAY_LOG_DISK_ROLE";
const FOLDER: &str = "MAINSTAY_LOG_DISK_FOLDER";
const PAGE: usize = 4096;
const FRAME: usize = 24 + PAGE;

/// The process that has a disk of its own; nothing when run as a test.
#[tokio::test]
async fn on_the_small_disk() {
    let (Ok(role), Some(folder)) = (env::var(ROLE), env::var_os(FOLDER)) else { return };
    match role.as_str() {
        "fill it" => fill_it(Path::new(&folder)).await,
        "find it read-only" => find_it_read_only(Path::new(&folder)).await,
        other => panic!("no role `{other}`"),
    }
}

#[test]
fn a_full_disk_is_named_and_with_room_again_appends_succeed() {
    on_a_disk_of("12m", "fill it");
}

#[test]
fn a_disk_that_cannot_be_written_is_named_and_can_be_examined() {
    on_a_disk_of("24m", "find it read-only");
}

async fn fill_it(disk: &Path) {
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![1; 11 << 20]).unwrap();
    let Err(Error::StoreFailed { reason }) = SqliteLog::open(&disk.join("store"), &SqliteOptions::default())
    else {
        panic!("a store on a full disk");
    };
    assert!(reason.contains("No space left") && reason.contains("mainstay.db"), "{reason}");
    fs::write(&ballast, vec![1; 1 << 20]).unwrap();

    let log = open(&disk.join("store"));
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    let bodies = || vec![output("x".repeat(50_000))];
    let refused = loop {
        let mut append = line.peek(bodies());
        append
            .outcomes
            .push(answer(&format!("c-{}", append.projection.last_seq), append.projection.last_seq));
        let projection = append.projection.clone();
        match log.append(append).await {
            Ok(_) => line.session = Some(projection),
            Err(failed) => break failed,
        }
    };
    let AppendError::Unavailable { reason } = &refused.error else { panic!("{}", refused.error) };
    assert!(reason.contains("full"), "{reason}");
    assert!(line.last_seq().0 > 10);
    check(&log, &line, "c-").await;
    // An object needs a file.
    let Err(Error::StoreFailed { reason }) = log.put_object(vec![7; 4 << 20]).await else {
        panic!("no room")
    };
    assert!(reason.contains("No space left"), "{reason}");

    fs::remove_file(&ballast).unwrap();
    line.session = Some(refused.append.projection.clone());
    log.append(*refused.append).await.unwrap();
    check(&log, &line, "c-").await;
    drop(log);
    assert!(report(&disk.join("store")).is_sound());
    check(&open(&disk.join("store")), &line, "c-").await;
}

async fn find_it_read_only(disk: &Path) {
    let store = disk.join("store");
    let log = open(&store);
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    drop(log);
    let remount = |how: &str| {
        assert!(Command::new("mount").args(["-o", how]).arg(disk).status().unwrap().success());
    };
    remount("remount,ro");
    let Err(Error::StoreFailed { reason }) = SqliteLog::open(&store, &SqliteOptions::default()) else {
        panic!("a store on a disk that cannot be written");
    };
    assert!(reason.contains("Read-only") && reason.contains("store"), "{reason}");
    let report = report(&store);
    assert_eq!((report.sessions, report.events), (1, 1));
    let read_only =
        |finding: &Finding| matches!(finding, Finding::NotWritable { path, .. } if path.ends_with("store"));
    assert!(report.findings.iter().any(read_only), "{:?}", report.findings);
    remount("remount,rw");
    open(&store).append(line.append(vec![output("and on")])).await.unwrap();
}

#[tokio::test]
async fn a_write_ahead_log_cut_at_any_place_keeps_every_commit_before_it() {
    let (left, log, frames) = killed().await;
    let last = frames.len() - 1;
    let before = frames[..last].iter().rposition(|is_commit| *is_commit).unwrap();
    let before_that = frames[..before].iter().rposition(|is_commit| *is_commit).unwrap();
    let end = |frame: usize| 32 + FRAME * (frame + 1);
    // Each append had one event; that of the creation is in the database already.
    let all = frames.iter().filter(|is_commit| **is_commit).count() as u64 + 1;
    let folder = tempfile::tempdir().unwrap();
    for length in end(before_that)..=end(last) {
        let of_frame = (length - 32) % FRAME;
        // Every byte of a frame's header, and some of its page.
        if of_frame > 24 && !of_frame.is_multiple_of(101) && length != end(last) - 1 {
            continue;
        }
        let there = if length == end(last) {
            all
        } else if length >= end(before) {
            all - 1
        } else {
            all - 2
        };
        for name in ["mainstay.db", "mainstay.db-shm"] {
            fs::remove_file(folder.path().join(name)).ok();
        }
        fs::copy(left.path().join("mainstay.db"), folder.path().join("mainstay.db")).unwrap();
        fs::write(folder.path().join("mainstay.db-wal"), &log[..length]).unwrap();
        if of_frame == 0 || of_frame == 24 || length == end(last) - 1 {
            let opened = open(folder.path());
            let events = opened.events(session_id(0), Seq::ZERO, usize::MAX).await.unwrap();
            assert_eq!(events.len() as u64, there, "{length} bytes");
            assert_eq!(opened.session(session_id(0)).await.unwrap(), Session::fold(&events));
            for event in &events[1..] {
                let command = command_id(&format!("c-{}", event.seq));
                assert!(opened.outcome(&Principal::local(), &command).await.unwrap().is_some());
            }
        } else {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let raw = Connection::open_with_flags(folder.path().join("mainstay.db"), flags).unwrap();
            let found = |sql| raw.query_row::<i64, _, _>(sql, (), |row| row.get(0)).unwrap() as u64;
            assert_eq!(found("SELECT max(seq) FROM event"), there, "{length} bytes");
            assert_eq!(found("SELECT last_seq FROM head"), there, "{length} bytes");
            assert_eq!(found("SELECT count(*) FROM outcome"), there - 1, "{length} bytes");
        }
    }
}

#[tokio::test]
async fn a_page_with_other_bytes_costs_what_is_on_it_and_is_named() {
    let home = two_sessions().await;
    let leaf = leaf_of_events(home.path(), 4);
    overwrite(home.path(), leaf, &[0xff; PAGE]);
    let log = open(home.path());
    let Err(Error::StoreFailed { reason }) = log.events(session_id(0), Seq::ZERO, usize::MAX).await else {
        panic!("events on that page were read");
    };
    assert!(reason.contains(&session_id(0).to_string()) && reason.contains("malformed"), "{reason}");
    assert_eq!(log.sessions(SessionFilter::default()).await.unwrap().len(), 2);
    let newest = log.session(session_id(0)).await.unwrap().unwrap().last_seq;
    assert_eq!(log.events(session_id(0), Seq(newest.0 - 3), 10).await.unwrap().len(), 3);
    let mut other = Line::new(1);
    other.session = log.session(other.id).await.unwrap();
    log.append(other.append(vec![output("and on")])).await.unwrap();
    let events = log.events(other.id, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(Session::fold(&events), other.session);
}

/// Wherever the byte is: what is read is an answer or an error of the store.
#[tokio::test]
async fn a_flipped_byte_anywhere_panics_nowhere() {
    const FLIPS: u64 = 30;
    let home = two_sessions().await;
    let whole = fs::read(home.path().join("mainstay.db")).unwrap();
    // Knuth's generator: the same places in every run.
    let mut random = 20_261_122_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for flip in 0..FLIPS {
        // Every other one where damage hurts most: in the first bytes of a page.
        let page = next(whole.len() / PAGE) * PAGE;
        let at = page + if flip % 2 == 0 { next(64) } else { next(PAGE) };
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << next(8);
        fs::write(home.path().join("mainstay.db"), &bytes).unwrap();
        for name in ["mainstay.db-wal", "mainstay.db-shm"] {
            fs::remove_file(home.path().join(name)).ok();
        }
        if let Err(error) = examine(home.path(), &mut |_| ()) {
            assert!(matches!(error, Error::StoreNewer { .. }), "byte {at}: {error}");
        }
        let log = match SqliteLog::open(home.path(), &SqliteOptions::default()) {
            Ok(log) => log,
            Err(Error::StoreFailed { .. } | Error::StoreNewer { .. }) => continue,
            Err(other) => panic!("byte {at}: {other}"),
        };
        let mut errors = Vec::new();
        for session in [0, 1].map(session_id) {
            errors.extend(log.events(session, Seq::ZERO, usize::MAX).await.err());
            let mut line = Line { id: session, ..Line::new(0) };
            match log.session(session).await {
                Ok(None) => {}
                Ok(stored) => {
                    line.session = stored;
                    errors
                        .extend(log.append(line.append(vec![output("and on")])).await.err().map(Error::from));
                }
                Err(error) => errors.push(error),
            }
        }
        errors.extend(log.outcome(&Principal::local(), &command_id("c-7")).await.err());
        for error in errors {
            // A wrong head looks to an append as if another owned the session.
            let is_typed = matches!(
                error,
                Error::StoreFailed { .. } | Error::SessionOwned | Error::SessionNotFound { .. }
            );
            assert!(is_typed, "byte {at}: {error}");
        }
    }
}

/// Runs this test binary in a role on a disk of its own, which goes with the process.
fn on_a_disk_of(size: &str, role: &str) {
    let disk = tempfile::tempdir().unwrap();
    let namespaced = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(env::current_exe().unwrap());
        command.env(ROLE, role).env(FOLDER, disk.path()).env("SIZE", size);
        command
    };
    let mount = format!(r#"mount -t tmpfs -o size="$SIZE" tmpfs "${FOLDER}""#);
    if !namespaced(&mount).status().is_ok_and(|status| status.success()) {
        eprintln!(
            "this machine gives nobody a disk of their own; `crash.rs` limits the size of files instead"
        );
        return;
    }
    let script = format!(r#"{mount} && exec "$0" --exact on_the_small_disk --nocapture"#);
    assert!(namespaced(&script).status().unwrap().success());
}

/// What is there is what was acknowledged.
async fn check(log: &SqliteLog, line: &Line, commands: &str) {
    let events = log.events(line.id, Seq::ZERO, usize::MAX).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq((1..=line.last_seq().0).map(Seq)));
    assert_eq!(log.session(line.id).await.unwrap(), line.session);
    for seq in 2..=line.last_seq().0 {
        let command = command_id(&format!("{commands}{seq}"));
        assert!(log.outcome(&Principal::local(), &command).await.unwrap().is_some(), "{command}");
    }
    let next = command_id(&format!("{commands}{}", line.last_seq().0 + 1));
    assert_eq!(log.outcome(&Principal::local(), &next).await, Ok(None));
}

/// What a kill leaves of a store to which some events were appended, each with an outcome: its folder, its write-ahead
/// log, and which frames of that end a transaction.
async fn killed() -> (TempDir, Vec<u8>, Vec<bool>) {
    let live = tempfile::tempdir().unwrap();
    let log = open(live.path());
    let mut line = Line::new(0);
    log.append(line.create()).await.unwrap();
    // Opened anew, it begins a new round: the schema is in the database.
    drop(log);
    let log = open(live.path());
    for _ in 0..4 {
        let mut append = line.append(vec![output("x")]);
        append.outcomes.push(answer(&format!("c-{}", line.last_seq()), line.last_seq()));
        log.append(append).await.unwrap();
    }
    let left = tempfile::tempdir().unwrap();
    fs::copy(live.path().join("mainstay.db"), left.path().join("mainstay.db")).unwrap();
    let bytes = fs::read(live.path().join("mainstay.db-wal")).unwrap();
    let frames: Vec<_> = bytes[32..]
        .chunks(FRAME)
        .take_while(|frame| frame[8..16] == bytes[16..24])
        .map(|frame| frame[4..8] != [0; 4])
        .collect();
    (left, bytes[..32 + FRAME * frames.len()].to_vec(), frames)
}

/// A closed store with two sessions; the events of the first fill many pages, those of the second are behind them.
async fn two_sessions() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    for session in 0..2 {
        let mut line = Line::new(session);
        log.append(line.create()).await.unwrap();
        for number in 0..60 {
            let bodies: Vec<EventBody> = (0..20).map(|part| output(format!("{number}.{part}"))).collect();
            let mut append = line.append(bodies);
            append.outcomes.push(answer(&format!("c-{session}{number}"), line.last_seq()));
            log.append(append).await.unwrap();
        }
    }
    home
}

/// The page that this cell of the events' root leads to.
fn leaf_of_events(folder: &Path, cell: usize) -> u64 {
    let database = folder.join("mainstay.db");
    let root: i64 = Connection::open(&database)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'event'", (), |row| row.get(0))
        .unwrap();
    let mut page = [0; PAGE];
    OpenOptions::new()
        .read(true)
        .open(&database)
        .unwrap()
        .read_exact_at(&mut page, (root.unsigned_abs() - 1) * 4096)
        .unwrap();
    assert_eq!(page[0], 5, "the root is an inner page");
    let at = 12 + 2 * (cell - 1);
    let at = usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    u64::from(u32::from_be_bytes(page[at..at + 4].try_into().unwrap()))
}

fn overwrite(folder: &Path, page: u64, bytes: &[u8]) {
    let database = OpenOptions::new().write(true).open(folder.join("mainstay.db")).unwrap();
    database.write_all_at(bytes, (page - 1) * 4096).unwrap();
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

fn report(folder: &Path) -> Examination {
    examine(folder, &mut |_| ()).unwrap().unwrap()
}
