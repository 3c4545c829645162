//! Files that hold sessions. [`exchange`] writes a session to a file and reads it again, and reads what other programs keep; [`notebook`] reads
//! notebooks and scripts in cells, and writes outputs into them.
//!
//! Everything here is pure: text in, values out. Nothing here runs a cell or opens a file.

pub mod exchange;
pub mod notebook;
