//! Dialect B: draft-arcp-1.1, with the details of draft-arcp-02.

mod agent;
mod envelope;
mod error;
mod event;
mod job;
mod session;

pub use agent::{AgentRef, InventoryEntry};
pub use envelope::{DecodeError, Envelope, Message, VERSION, decode};
pub use error::{ErrorCode, ErrorPayload};
pub use event::{Encoding, Event, EventKind, ResultChunk};
pub use job::{
    Accepted, Cancel, Cancelled, FinalStatus, JobError, JobResult, JobStatus, Lease, LeaseConstraints,
    Submit, Subscribe, Subscribed, Unsubscribe,
};
pub use session::{
    Ack, Auth, Capabilities, Close, Closed, Feature, Hello, Implementation, JobEntry, Jobs, ListJobs, Ping,
    Pong, Resume, Welcome, intersection,
};
