//! The files in which lines are kept that no daemon has yet.

use mainstay_model::{NewLine, Timestamp};
use uuid::Uuid;

use super::is_secret;

/// The lines of the file in which earlier versions kept them: one a line, with the line ends of blocks written out.
pub(super) fn old_lines(text: &str) -> Vec<NewLine> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !is_secret(line)).enumerate();
    let line = |(index, line): (usize, &str)| NewLine {
        // The same for each client that reads the file, so that it is kept once.
        id: Uuid::from_u64_pair(index as u64, mainstay_home::hash(line.as_bytes())),
        at: Timestamp::now(),
        folder: None,
        session: None,
        text: line.replace("<\\n>", "\n"),
    };
    lines.map(line).collect()
}

/// The lines that an earlier client could not send.
pub(super) fn unsent_lines(text: &str) -> Vec<NewLine> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
