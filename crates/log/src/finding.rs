//! A finding is one thing in a store that is not as it should be. It says what is lost by it and what to do next.
//! How it is found is in [`crate::sqlite`].

use std::fmt;

use mainstay_model::{CommandId, Position, Seq, SessionId};
use serde::Serialize;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    /// Worth knowing; nothing is lost, and everything works.
    Note,
    /// Something is lost, or the daemon cannot work with it.
    Damage,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Finding {
    /// A file or folder may be used by others than its user.
    Open {
        /// The path that others may use.
        path: String,
        /// What may be done with it, as `chmod` writes it.
        mode: String,
    },
    /// A file belongs to another user than the store's folder.
    OtherOwner {
        /// The path that has another owner.
        path: String,
    },
    /// A file or folder cannot be written.
    NotWritable {
        /// The path that cannot be written.
        path: String,
        /// The reason why it cannot be written.
        reason: String,
    },
    /// The disk has less room than the store takes in its ordinary work.
    LittleRoom {
        /// What it has, in bytes.
        free: u64,
        /// What would do, in bytes.
        wanted: u64,
    },
    /// The write-ahead log ends with a transaction that was never acknowledged.
    CommitUnfinished {
        /// How many pages of it are there.
        pages: u64,
    },
    /// The write-ahead log is damaged before its end.
    WriteAheadLogDamaged {
        /// Its first frame that is not as it was written, from 1.
        frame: u64,
        /// How many transactions had ended at it or after it.
        transactions: u64,
    },
    /// The store was in use, and its database has nothing in it.
    DatabaseEmpty,
    /// The database cannot be opened.
    DatabaseUnreadable {
        /// The reason why it cannot be read.
        reason: String,
    },
    /// SQLite finds the database's pages not as they should be.
    PagesDamaged {
        /// SQLite's own message about the damage.
        message: String,
    },
    /// An older program wrote the store; what only the newest form has was not examined.
    SchemaOlder {
        /// The version of the store's schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A table cannot be read, or not to its end.
    TableUnreadable {
        /// The table that cannot be read.
        table: &'static str,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// The events between two places cannot be read, whosever they are.
    EventsUnreadable {
        /// The last place before them.
        after: Position,
        /// The first place after them; none where it is the rest.
        before: Option<Position>,
        /// The reason why they cannot be read.
        reason: String,
    },
    /// An event is there and cannot be understood.
    EventUnreadable {
        /// The session of the event.
        session: SessionId,
        /// The sequence number of the event.
        seq: Seq,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// A session has events after these, and not these.
    EventsMissing {
        /// The session whose events are missing.
        session: SessionId,
        /// The first of them.
        first: Seq,
        /// The last of them.
        last: Seq,
    },
    /// An event stands after one of its session that has its seq or a later one.
    EventOutOfOrder {
        /// The session of the event.
        session: SessionId,
        /// The sequence number of the event.
        seq: Seq,
        /// Where in the log.
        position: Position,
    },
    /// Events of a session that the store does not have.
    SessionMissing {
        /// The number it has in the tables.
        number: i64,
        /// The place of the first of its events.
        position: Position,
    },
    /// A session is there and cannot be understood.
    SessionUnreadable {
        /// Its id, or its number where even that cannot be read.
        session: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// A session's head does not name its newest event.
    HeadWrong {
        /// The session whose head is wrong.
        session: SessionId,
        /// The event it names; none where there is no head.
        head: Option<Seq>,
        /// The newest that is there.
        newest: Seq,
    },
    /// A session is stored otherwise than its events tell it.
    ProjectionWrong {
        /// The session whose projection is wrong.
        session: SessionId,
        /// What of it differs.
        fields: Vec<String>,
    },
    /// Events are there and the index does not have them.
    IndexMissing {
        /// The session whose entry is not indexed.
        session: SessionId,
        /// The first of them.
        first: Seq,
        /// The last of them.
        last: Seq,
    },
    /// The index leads to another place than that of the event.
    IndexWrong {
        /// The session of the entry.
        session: SessionId,
        /// The sequence number of the entry's event.
        seq: Seq,
        /// The position to which the index leads.
        position: Position,
    },
    /// An outcome is there and cannot be understood.
    OutcomeUnreadable {
        /// The principal that sent the command.
        principal: String,
        /// The id of the command.
        command: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// An eval has ended, and its command has no outcome.
    OutcomeMissing {
        /// The session of the command.
        session: SessionId,
        /// The event that ended it.
        seq: Seq,
        /// The id of the command.
        command: CommandId,
    },
    /// An idempotency key leads to a command that has no outcome.
    KeyWithoutOutcome {
        /// The principal that used the key.
        principal: String,
        /// The idempotency key without an outcome.
        key: String,
        /// The id of the command.
        command: String,
    },
    /// A line of the history cannot be read whole.
    HistoryWrong {
        /// The number of the line.
        number: i64,
        /// What is wrong with the line.
        reason: String,
    },
    /// A schedule cannot be read, or is stored under another moment or principal than its own.
    ScheduleWrong {
        /// The name of the schedule.
        schedule: String,
        /// What is wrong with the schedule.
        reason: String,
    },
    /// A schedule that has not ended is a principal's whom the settings do not know.
    ScheduleOfUnknown {
        /// The name of the schedule.
        schedule: String,
        /// The principal whose schedule it is.
        principal: String,
    },
    /// An entry, or a session's transcript, is not what was made of the events.
    TranscriptWrong {
        /// The part of the transcript that is wrong.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An object's bytes are missing or others than were written.
    ObjectDamaged {
        /// The hash of the object.
        hash: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Finding {
    /// How grave it is.
    pub fn weight(&self) -> Weight {
        match self {
            Self::Open { .. }
            | Self::LittleRoom { .. }
            | Self::CommitUnfinished { .. }
            | Self::SchemaOlder { .. }
            | Self::ScheduleOfUnknown { .. } => Weight::Note,
            Self::OtherOwner { .. }
            | Self::NotWritable { .. }
            | Self::WriteAheadLogDamaged { .. }
            | Self::DatabaseEmpty
            | Self::DatabaseUnreadable { .. }
            | Self::PagesDamaged { .. }
            | Self::TableUnreadable { .. }
            | Self::EventsUnreadable { .. }
            | Self::EventUnreadable { .. }
            | Self::EventsMissing { .. }
            | Self::EventOutOfOrder { .. }
            | Self::SessionMissing { .. }
            | Self::SessionUnreadable { .. }
            | Self::HeadWrong { .. }
            | Self::ProjectionWrong { .. }
            | Self::IndexMissing { .. }
            | Self::IndexWrong { .. }
            | Self::OutcomeUnreadable { .. }
            | Self::OutcomeMissing { .. }
            | Self::KeyWithoutOutcome { .. }
            | Self::ObjectDamaged { .. }
            | Self::TranscriptWrong { .. }
            | Self::HistoryWrong { .. }
            | Self::ScheduleWrong { .. } => Weight::Damage,
        }
    }

    /// What is lost by it.
    pub fn lost(&self) -> &'static str {
        match self {
            Self::Open { .. }
            | Self::LittleRoom { .. }
            | Self::CommitUnfinished { .. }
            | Self::SchemaOlder { .. }
            | Self::ScheduleOfUnknown { .. } => "nothing",
            Self::OtherOwner { .. } | Self::NotWritable { .. } => {
                "nothing that is stored; a daemon cannot store anything further"
            }
            Self::WriteAheadLogDamaged { .. } => "what these transactions stored, though it was acknowledged",
            Self::DatabaseEmpty | Self::DatabaseUnreadable { .. } => "every session of this home",
            Self::PagesDamaged { .. } => {
                "what the other findings name; none beside this one: perhaps nothing"
            }
            Self::TableUnreadable { .. } => "what of the table was not read",
            Self::EventsUnreadable { .. } | Self::EventUnreadable { .. } | Self::EventsMissing { .. } => {
                "what these events say; a session cannot be replayed over them"
            }
            Self::EventOutOfOrder { .. } => "the order of these events",
            Self::SessionMissing { .. } | Self::SessionUnreadable { .. } => {
                "the way to this session's events"
            }
            Self::HeadWrong { .. } => {
                "where the head is right, the events after the newest; else nothing, but the session takes no more"
            }
            Self::ProjectionWrong { .. } => "nothing of the events; commands are decided on a wrong state",
            Self::IndexMissing { .. } | Self::IndexWrong { .. } => {
                "nothing; but whoever reads the session is not given these events"
            }
            Self::OutcomeUnreadable { .. } | Self::OutcomeMissing { .. } | Self::KeyWithoutOutcome { .. } => {
                "the command's answer: sent again, it fails or runs a second time"
            }
            Self::ObjectDamaged { .. } => "the object's bytes",
            Self::TranscriptWrong { .. } => "nothing of the events, of which it can be made again",
            Self::HistoryWrong { .. } => "what was typed there; nothing of any session",
            Self::ScheduleWrong { .. } => "the schedule's further runs",
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> String {
        const RESTORE: &str =
            "Keep a copy of the `store` folder, and restore it from a backup; check the disk.";
        match self {
            Self::Open { path, .. } => format!("chmod go= '{path}'"),
            Self::OtherOwner { path } => format!("Give it back to the folder's owner: chown USER '{path}'"),
            Self::NotWritable { path, .. } => {
                format!("Make `{path}` writable: look at its mode and at how its disk is mounted.")
            }
            Self::LittleRoom { .. } => "Make room on the disk.".to_owned(),
            Self::CommitUnfinished { .. } => "None: the next start of the daemon leaves it out.".to_owned(),
            Self::SchemaOlder { .. } => {
                "Start the daemon once, which brings the store forward; then examine it again.".to_owned()
            }
            Self::IndexMissing { .. } | Self::IndexWrong { .. } => {
                "With the daemon stopped, and a copy kept: sqlite3 mainstay.db 'DELETE FROM event_index; \
                 INSERT INTO event_index SELECT session, seq, position FROM event WHERE position <= \
                 (SELECT position FROM indexed)'"
                    .to_owned()
            }
            Self::ScheduleWrong { schedule, .. } => format!(
                "Make the schedule again. With the daemon stopped, and a copy kept, this removes it: \
                 sqlite3 mainstay.db \"DELETE FROM schedule WHERE id = '{}'\"",
                schedule.replace('\'', "''")
            ),
            Self::ScheduleOfUnknown { schedule, .. } => format!(
                "Its runs still have the rights that the principal had. Where that is not wanted, remove it: \
                 mainstay schedule remove {schedule}"
            ),
            Self::HistoryWrong { number, .. } => {
                format!("Remove the line: mainstay history --remove {number}")
            }
            Self::TranscriptWrong { .. } => {
                "With the daemon stopped, and a copy kept: sqlite3 mainstay.db 'DELETE FROM place; DELETE FROM entry; \
                 INSERT INTO entry_text (entry_text) VALUES (\"delete-all\"); UPDATE transcribed SET position = 0'; \
                 transcripts are then made of the events again"
                    .to_owned()
            }
            Self::ObjectDamaged { .. } => {
                "Restore the object from a backup, or store the same bytes again; check the disk.".to_owned()
            }
            // Whatever else is damaged has no smaller remedy.
            _ => RESTORE.to_owned(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, mode } => write!(f, "`{path}` is open to others (mode {mode})"),
            Self::OtherOwner { path } => write!(f, "`{path}` belongs to another user than its folder"),
            Self::NotWritable { path, reason } => write!(f, "`{path}` cannot be written: {reason}"),
            Self::LittleRoom { free, wanted } => {
                write!(
                    f,
                    "the disk has {free} bytes left; the store takes up to {wanted} more in its ordinary work"
                )
            }
            Self::CommitUnfinished { pages } => {
                write!(
                    f,
                    "the write-ahead log ends in a transaction that was never acknowledged ({pages} pages)"
                )
            }
            Self::WriteAheadLogDamaged { frame, transactions } => write!(
                f,
                "the write-ahead log is damaged at frame {frame}; {transactions} transactions at it or after it cannot be read"
            ),
            Self::DatabaseEmpty => f.write_str("the database is missing or empty, and the store was in use"),
            Self::DatabaseUnreadable { reason } => write!(f, "the database cannot be opened: {reason}"),
            Self::PagesDamaged { message } => write!(f, "the database is damaged: {message}"),
            Self::SchemaOlder { found, known } => write!(
                f,
                "the store has version {found}, the newest is {known}: only the database's pages were examined"
            ),
            Self::TableUnreadable { table, reason } => {
                write!(f, "the table `{table}` cannot be read to its end: {reason}")
            }
            Self::EventsUnreadable { after, before, reason } => {
                fmt_events_unreadable(f, *after, *before, reason)
            }
            Self::EventUnreadable { session, seq, reason } => {
                write!(f, "event {seq} of session {session} cannot be read: {reason}")
            }
            Self::EventsMissing { session, first, last } => fmt_events_missing(f, *session, *first, *last),
            Self::EventOutOfOrder { session, seq, position } => {
                write!(f, "event {seq} of session {session}, at position {position}, is out of order")
            }
            Self::SessionMissing { number, position } => {
                write!(f, "session number {number}, which has events from position {position} on, is missing")
            }
            Self::SessionUnreadable { session, reason } => {
                write!(f, "session {session} cannot be read: {reason}")
            }
            Self::HeadWrong { session, head, newest } => fmt_head_wrong(f, *session, *head, *newest),
            Self::ProjectionWrong { session, fields } => write!(
                f,
                "session {session} is stored otherwise than its events tell it: {}",
                fields.join(", ")
            ),
            Self::IndexMissing { session, first, last } => {
                write!(f, "events {first} to {last} of session {session} are not in the index")
            }
            Self::IndexWrong { session, seq, position } => fmt_index_wrong(f, *session, *seq, *position),
            Self::OutcomeUnreadable { principal, command, reason } => {
                write!(f, "the outcome of command `{command}` of `{principal}` cannot be read: {reason}")
            }
            Self::OutcomeMissing { session, seq, command } => write!(
                f,
                "command `{command}` of session {session} ended with event {seq} and has no outcome"
            ),
            Self::KeyWithoutOutcome { principal, key, command } => {
                write!(f, "key `{key}` of `{principal}` is that of command `{command}`, which has no outcome")
            }
            Self::HistoryWrong { number, reason } => {
                write!(f, "line {number} of the history cannot be read: {reason}")
            }
            Self::ScheduleWrong { schedule, reason } => write!(f, "schedule `{schedule}` is wrong: {reason}"),
            Self::ScheduleOfUnknown { schedule, principal } => {
                write!(f, "schedule `{schedule}` is that of `{principal}`, whom `config.toml` does not name")
            }
            Self::TranscriptWrong { what, reason } => write!(f, "{what} is wrong: {reason}"),
            Self::ObjectDamaged { hash, reason } => write!(f, "object {hash} is damaged: {reason}"),
        }
    }
}

fn fmt_index_wrong(
    f: &mut fmt::Formatter<'_>,
    session: SessionId,
    seq: Seq,
    position: Position,
) -> fmt::Result {
    write!(f, "the index says that event {seq} of session {session} is at position {position}; it is not")
}

fn fmt_events_unreadable(
    f: &mut fmt::Formatter<'_>,
    after: Position,
    before: Option<Position>,
    reason: &str,
) -> fmt::Result {
    match before {
        Some(before) => {
            write!(f, "the events between positions {after} and {before} cannot be read: {reason}")
        }
        None => write!(f, "the events after position {after} cannot be read: {reason}"),
    }
}

fn fmt_events_missing(f: &mut fmt::Formatter<'_>, session: SessionId, first: Seq, last: Seq) -> fmt::Result {
    match first == last {
        true => write!(f, "event {first} of session {session} is missing"),
        false => write!(f, "events {first} to {last} of session {session} are missing"),
    }
}

fn fmt_head_wrong(
    f: &mut fmt::Formatter<'_>,
    session: SessionId,
    head: Option<Seq>,
    newest: Seq,
) -> fmt::Result {
    match head {
        Some(head) => {
            write!(f, "the head of session {session} says that event {head} is its newest; event {newest} is")
        }
        None => write!(f, "session {session} has no head; its newest event is {newest}"),
    }
}
