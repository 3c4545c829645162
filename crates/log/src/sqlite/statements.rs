//! The statements of the connection that writes, each prepared once. rusqlite's own cache hashes a statement's text and
//! clears what is bound to it at each use, which takes a tenth of the writer's time.

use rusqlite::{Connection, Statement};

/// The statements that were used so far.
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    kept: Vec<(&'static str, Statement<'c>)>,
}

impl<'c> Statements<'c> {
    /// Those of this connection.
    pub(super) fn of(connection: &'c Connection) -> Self {
        Self { connection, kept: Vec::new() }
    }

    /// The statement, ready to be used again. What was bound to it stays until it is bound anew.
    pub(super) fn get(&mut self, sql: &'static str) -> rusqlite::Result<&mut Statement<'c>> {
        let kept = self.kept.iter().position(|(kept, _)| *kept == sql);
        let index = match kept {
            Some(index) => index,
            None => {
                self.kept.push((sql, self.connection.prepare(sql)?));
                self.kept.len() - 1
            }
        };
        Ok(&mut self.kept[index].1)
    }

    /// Returns the connection of the statements.
    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }
}
