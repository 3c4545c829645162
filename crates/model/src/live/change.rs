//! What is new to those who watch a session.

use serde_json::Value;

use super::OpenCall;
use crate::agent::{JobSpec, ToolCall, WorkEnding};
use crate::event::Event;
use crate::id::JobId;
use crate::message::{Message, Part, PartRole};

/// One change of what a watcher of a session sees. A watcher gets each change once, in an order in which it can be shown.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewChange<'a> {
    /// A job other than an eval has begun.
    JobBegan {
        /// The event that says so.
        event: &'a Event,
        /// The job that has begun.
        job: JobId,
        /// What the job is to do.
        spec: &'a JobSpec,
    },
    /// A part of the message that is being said has begun. Its text follows.
    PartBegan {
        /// The job that the message is said in.
        job: JobId,
        /// The number of the part in its message.
        part: u32,
        /// What kind of part it is.
        role: PartRole,
        /// The call that the part is, where it is one.
        call: Option<ToolCall>,
    },
    /// A part has more text. An event can still complete a part that has ended, where a live piece of it was missed.
    PartGrew {
        /// The job that the message is said in.
        job: JobId,
        /// The number of the part in its message.
        part: u32,
        /// What kind of part it is.
        role: PartRole,
        /// The text that was added.
        text: String,
    },
    /// A part has ended, since a later one has begun or its message is complete.
    PartEnded {
        /// The job that the message is said in.
        job: JobId,
        /// The number of the part in its message.
        part: u32,
    },
    /// A message of the job is complete. All of its text was told before; the next part belongs to the next message.
    MessageAdded {
        /// The event that says so.
        event: &'a Event,
        /// The job that the message is said in.
        job: JobId,
        /// The complete message, as it is stored.
        message: &'a Message,
    },
    /// A tool begins to run.
    ToolBegan {
        /// The event that says so.
        event: &'a Event,
        /// The job that called the tool.
        job: JobId,
        /// The call that runs.
        call: &'a ToolCall,
        /// The arguments of the call.
        arguments: &'a Value,
    },
    /// A tool that runs has given some output.
    ToolProgressed {
        /// The job that called the tool.
        job: JobId,
        /// The call that runs.
        call: ToolCall,
        /// The end of all the output so far, as the agent reports it.
        output: Value,
    },
    /// A tool has returned its result. The message with the result follows.
    ToolAnswered {
        /// The job that called the tool.
        job: JobId,
        /// The call, where it was told before.
        call: Option<OpenCall>,
        /// The result of the call.
        result: &'a Part,
    },
    /// A job other than an eval has ended.
    JobEnded {
        /// The job that has ended.
        job: JobId,
        /// The way in which the job ended.
        ending: &'a WorkEnding,
        /// How long the job took, in milliseconds.
        duration_ms: u64,
        /// The calls that have no result, and get none any more.
        unanswered: Vec<OpenCall>,
    },
    /// Something happened that has no live pieces, or outside a job. The event says all of it.
    Event(&'a Event),
}
