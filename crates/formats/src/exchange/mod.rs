//! Sessions as files: what is exported of one, line by line, and how such a file is read. Source: seed 004, "Future
//! Considerations"; protocols/transcripts.md.
//!
//! A file has a [`Header`], then [`Item`]s, each on one line as JSON, the last of which is [`Item::End`] with the hash of all
//! lines before it. Cells are their events, without who caused them: so whoever reads the file can rebuild the session, and
//! the entries that the events come to are those that were exported.

mod claude_code;
mod collector;
mod cursor;
mod displays;
mod documents;
mod foreign;
mod format;
mod import;
mod item;
mod kernel;
mod messages;
mod outputs;
mod pi;
pub mod pi_messages;
mod place;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use collector::Collector;
pub use cursor::ExportCursor;
pub use documents::{dib, item_markdown, markdown, notebook, script};
pub use format::Format;
pub use import::{ImportFormat, SessionFile, read_session_file, session_file_text};
pub use item::{ExportedEvent, Header, Item, numbered};
pub use kernel::Kernel;
pub use outputs::{Outputs, coloured_traceback};
pub use pi::message as pi_message;
pub use place::{PlacedEvent, placed};
pub use read::{Imported, read};
pub use write::Lines;

pub(crate) use item::FORMAT;
