//! The schema, as the ordered steps that lead to it. A step that has been released is never changed; a change is a
//! further step. SQLite's `user_version` says how many a store has seen.

use mainstay_model::Error;
use rusqlite::{Connection, TransactionBehavior};

use super::failure::failed;
#[cfg(feature = "failpoints")]
use crate::failpoint::Failpoint;

/// Every step, oldest first. The schema's version is how many there are.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
    include_str!("schema/11.sql"),
    include_str!("schema/12.sql"),
    include_str!("schema/13.sql"),
];

/// Brings a store from whatever version it has to the newest, each step in a transaction of its own.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), Error> {
    let done = steps_done(connection, migrations.len())?;
    for (step, sql) in migrations.iter().enumerate().skip(done) {
        let version = step + 1;
        tracing::info!(version, "migrating the store");
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        transaction.execute_batch(sql).map_err(failed)?;
        #[cfg(feature = "failpoints")]
        Failpoint::DuringMigration.pass();
        transaction.execute_batch(&format!("PRAGMA user_version = {version}")).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

/// How many of the `known` steps the store has seen.
pub(super) fn steps_done(connection: &Connection, known: usize) -> Result<usize, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0)).map_err(failed)?;
    match usize::try_from(found) {
        Ok(done) if done <= known => Ok(done),
        Ok(_) | Err(_) => Err(Error::StoreNewer { found, known: i64::try_from(known).unwrap_or(i64::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE one (a)";
    const SECOND: &str = "ALTER TABLE one ADD COLUMN b";
    const BROKEN: &str = "CREATE TABLE two (a); SELECT nothing FROM nowhere";

    fn version(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_store_of_each_older_version_comes_to_the_newest() {
        for older in 0..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection, &MIGRATIONS[..older]).unwrap();
            assert_eq!(migrate(&mut connection, MIGRATIONS), Ok(()), "from version {older}");
            assert_eq!(version(&connection), MIGRATIONS.len() as i64);
        }
    }

    #[test]
    fn each_step_is_made_once_and_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST]).unwrap();
        migrate(&mut connection, &[FIRST, SECOND]).unwrap();
        migrate(&mut connection, &[FIRST, SECOND]).unwrap();
        assert_eq!(version(&connection), 2);
        connection.execute("INSERT INTO one (a, b) VALUES (1, 2)", ()).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let error = migrate(&mut connection, &[FIRST, BROKEN]).unwrap_err();
        assert!(matches!(error, Error::StoreFailed { .. }), "{error}");
        assert_eq!(version(&connection), 1);
        assert_eq!(migrate(&mut connection, &[FIRST, "CREATE TABLE two (a)"]), Ok(()));
    }

    #[test]
    fn a_newer_store_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST, SECOND]).unwrap();
        assert_eq!(migrate(&mut connection, &[FIRST]), Err(Error::StoreNewer { found: 2, known: 1 }));
    }
}
