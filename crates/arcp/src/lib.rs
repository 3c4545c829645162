//! ARCP, both dialects, over the sessions of a daemon. Source: seed 002; protocols/arcp.md; draft-arcp-01, draft-arcp-02 and draft-arcp-1.1.
//!
//! The dialect is chosen by the first frame of a connection. A job is a command of the engine ([`job_id`]); what a session is told of its jobs is
//! a fold over the log ([`feed`], [`job_news`]), which each dialect turns into its own messages. What is stored for a session that can be
//! resumed is where the fold begins ([`stored_session`]); nothing else is kept.

mod a;
mod agents;
mod attach;
mod b;
mod cancelling;
mod connection;
mod dialect;
mod feed;
mod frames;
mod job_id;
mod job_news;
mod job_origin;
mod job_outcome;
mod joins;
mod live_sessions;
mod lookup;
mod marks;
mod message_id;
mod new_id;
mod observer;
mod observers;
mod peer;
mod pending_submissions;
mod protocol;
mod session;
mod settings;
mod socket;
mod stdio;
mod stored_session;
mod submission_key;
mod submissions;
mod teller;
mod telling;
mod under_way;
mod work;

pub use attach::{AttachArcp, Purpose, ResumableSession};
pub use protocol::Arcp;
pub use settings::Settings;
