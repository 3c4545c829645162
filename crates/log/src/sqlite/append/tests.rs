//! What an append does to the tables, and what refuses it.

use rusqlite::Connection;
use uuid::Uuid;

use super::super::lease::claim;
use super::super::migrations::{MIGRATIONS, migrate};
use super::*;
use crate::ClaimError;

const OWNER: i64 = 1;

/// An append of one event, of session 1.
fn append(epoch: i64, first: i64, commands: &[&str]) -> AppendRows {
    let event = EventRow {
        at: 0,
        kind: "warmUpStarted",
        body: None,
        source: "{}".to_owned(),
        correlation: None,
        causation: None,
        environment: None,
    };
    let outcome = |command: &&str| OutcomeRow {
        principal: "local".to_owned(),
        command: CommandId::new(*command).unwrap(),
        key: None,
        fingerprint: "ab12".to_owned(),
        response: "{}".to_owned(),
    };
    let projection = ProjectionRow {
        name: "one".to_owned(),
        kind: "fsharp".to_owned(),
        state: "ready",
        owner: "local".to_owned(),
        asks: 0,
        working_directory: "/work".to_owned(),
        project: None,
        forked_from: None,
        alias: None,
        created_at: 0,
        last_activity: 0,
        deleted_at: None,
        json: "{}".to_owned(),
    };
    AppendRows {
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        sharing: Arc::default(),
        epoch,
        first,
        creates: false,
        events: vec![event],
        brings: Vec::new(),
        outcomes: commands.iter().map(outcome).collect(),
        version: 0,
        projection,
        taken: None,
    }
}

fn creation() -> AppendRows {
    AppendRows { creates: true, ..append(OWNER, 1, &["create"]) }
}

fn store() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    connection
}

fn refused(rows: &AppendRows, statements: &mut Statements<'_>) -> Error {
    let connection = statements.connection();
    let changes = connection.total_changes();
    let Ok(Err(error)) = rows.apply(statements) else { panic!("not refused") };
    assert_eq!(connection.total_changes(), changes, "{error}");
    error.into()
}

#[test]
fn a_refused_append_has_changed_nothing() {
    let connection = store();
    let statements = &mut Statements::of(&connection);
    let not_found = not_found(creation().session);
    assert_eq!(refused(&append(OWNER, 1, &["new"]), statements), not_found);
    creation().apply(statements).unwrap().unwrap();

    assert_eq!(refused(&append(OWNER, 1, &["new"]), statements), Error::SessionOwned);
    for (epoch, first) in [(OWNER + 1, 2), (OWNER - 1, 2), (OWNER, 3)] {
        for commands in [&[][..], &["new"], &["create"]] {
            assert_eq!(refused(&append(epoch, first, commands), statements), Error::SessionOwned);
        }
    }
    for (commands, command) in
        [(&["create"][..], "create"), (&["new", "create"], "create"), (&["new", "other", "new"], "new")]
    {
        let command = CommandId::new(command).unwrap();
        assert_eq!(refused(&append(OWNER, 2, commands), statements), Error::CommandConflict { command });
    }
    append(OWNER, 2, &["new", "other"]).apply(statements).unwrap().unwrap();
}

#[test]
fn an_append_that_is_stored_already_counts_as_done_and_changes_nothing() {
    let connection = store();
    let statements = &mut Statements::of(&connection);
    let place = creation().apply(statements).unwrap().unwrap();
    let changes = connection.total_changes();
    assert_eq!(creation().apply(statements).unwrap(), Ok(place));
    assert_eq!(connection.total_changes(), changes);
}

#[test]
fn a_claim_refuses_what_was_not_yet_written_of_the_owner_before() {
    let connection = store();
    let statements = &mut Statements::of(&connection);
    let session = creation().session;
    assert!(matches!(claim(statements, session, &Sharing::Alone), Ok(Err(ClaimError::Failed(_)))));
    creation().apply(statements).unwrap().unwrap();
    append(OWNER, 2, &[]).apply(statements).unwrap().unwrap();
    assert_eq!(claim(statements, session, &Sharing::Alone).unwrap(), Ok(Epoch(2)));
    assert_eq!(refused(&append(OWNER, 3, &[]), statements), Error::SessionOwned);
    append(OWNER + 1, 3, &[]).apply(statements).unwrap().unwrap();
}

#[test]
fn an_append_that_the_database_cannot_take_has_failed_and_is_not_refused() {
    let connection = store();
    let statements = &mut Statements::of(&connection);
    creation().apply(statements).unwrap().unwrap();
    connection
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'full'); END")
        .unwrap();
    assert!(matches!(append(OWNER, 2, &[]).apply(statements), Err(WriteFailure::Failed(_))));
}
