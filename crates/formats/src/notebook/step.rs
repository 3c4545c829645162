//! What the commands are called that run a notebook's cells, so that who runs it again goes on where it ended.

use super::Cell;
use mainstay_model::error::Error;
use mainstay_model::id::{CommandId, SessionId};

/// The commands of a file's cells in a session. Each is named by all that comes to it: the cells before it and its own, so that after a
/// change only what follows it is another.
#[derive(Clone, Debug)]
pub struct Steps {
    cells: Vec<String>,
}

impl Steps {
    /// Of the cells of this file, run with these arguments.
    pub fn new(session: SessionId, file: &str, arguments: &[String], cells: &[Cell]) -> Self {
        let mut hasher = blake3::Hasher::new();
        let add = |hasher: &mut blake3::Hasher, text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(&mut hasher, &session.to_string());
        add(&mut hasher, file);
        if !arguments.is_empty() {
            // No text is so long: arguments are not taken for cells.
            hasher.update(&u64::MAX.to_le_bytes());
            hasher.update(&(arguments.len() as u64).to_le_bytes());
            arguments.iter().for_each(|argument| add(&mut hasher, argument));
        }
        let cells = cells.iter().map(|cell| {
            if cell.is_code() {
                add(&mut hasher, &cell.source);
            }
            hasher.finalize().to_hex().chars().take(32).collect()
        });
        Self { cells: cells.collect() }
    }

    /// The command that runs a cell for the so-manieth time, from 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no such cell.
    pub fn command(&self, cell: usize, attempt: u32) -> Result<CommandId, Error> {
        let step = self.cells.get(cell).ok_or_else(|| Error::InvalidArgument {
            argument: "cell".to_owned(),
            reason: format!("there is no cell {}; there are {}", cell + 1, self.cells.len()),
        })?;
        CommandId::new(format!("run-{step}-{cell}-{attempt}"))
    }
}
