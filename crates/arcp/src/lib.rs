//! ARCP, both dialects, over the sessions of a daemon. Source: seed 002; protocols/arcp.md; draft-arcp-01, draft-arcp-02 and draft-arcp-1.1.
//!
//! The dialect is chosen by the first frame of a connection. A job is a command of the engine ([`job_id`]); what a session is told of its jobs is
//! a fold over the log ([`feed`], [`job_news`], [`message_fold`]), which each dialect translates into its messages ([`a`], [`b`]). What is stored for a session that
//! can be resumed is where the fold begins ([`stored_session`]); nothing else is kept.

mod a;
mod agents;
mod attach;
mod b;
mod cancelled_streams;
mod connection;
mod credentials;
mod delegation;
mod dialect;
mod event_delivery;
mod feed;
mod fold_place;
#[cfg(test)]
mod fold_tests;
mod frames;
mod handovers;
mod held_jobs;
mod job_cancellation;
mod job_id;
mod job_news;
mod job_origin;
mod job_outcome;
mod job_result;
mod jobs_under_way;
mod joins;
mod late_spans;
mod live_sessions;
mod lookup;
mod marks;
mod message_fold;
mod message_id;
mod new_id;
mod observer;
mod observers;
mod pacing;
mod peer;
mod pending_submissions;
mod protocol;
mod resume_token;
mod session;
mod session_change;
mod settings;
mod socket;
mod stdio;
mod stored_session;
mod submission_key;
mod submissions;
mod work;

pub use attach::{AttachArcp, Purpose, ResumableSession};
pub use protocol::Arcp;
pub use settings::Settings;
