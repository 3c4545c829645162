//! What carries the methods out: one file for each subject of [`crate::api`].

pub(super) mod asks;
pub(super) mod buffers;
pub(super) mod call;
pub(super) mod daemon;
pub(super) mod events;
pub(super) mod exchange;
pub(super) mod history;
pub(super) mod jobs;
mod page;
pub(super) mod queries;
pub(super) mod refresh;
pub(super) mod schedules;
pub(super) mod session_choice;
pub(super) mod sessions;
pub(super) mod store;
pub(super) mod transcripts;
