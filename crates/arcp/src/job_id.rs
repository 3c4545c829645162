//! The names of jobs. A job is a command of the engine, so its name is the command's id, and the same submission is the same command.
//!
//! The engine stores one outcome for a principal's command id. So a message that comes twice, or an idempotency key that is used again,
//! runs nothing a second time, also under the next daemon, and nothing is kept here for that.

use mainstay_model::{CommandId, Error, Principal};

use crate::message_id::ulid_of_hash;

/// What a submission is told apart by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Submission<'a> {
    /// The message that submits it, which is its own in its connection's session.
    Message { session: &'a str, message: &'a str },
    /// The key that its client gave it, for whichever session.
    Key(&'a str),
}

/// The name of the job that a principal's submission asks for, which is the id of its command.
///
/// # Errors
/// None that a name of this form could cause; the type of ids wants one.
pub(crate) fn job_id(principal: &Principal, submission: Submission<'_>) -> Result<CommandId, Error> {
    let mut hasher = blake3::Hasher::new_derive_key("mainstay arcp job id 1");
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    part(principal.as_str());
    match submission {
        Submission::Message { session, message } => ["message", session, message].map(&mut part),
        Submission::Key(key) => ["key", key, ""].map(&mut part),
    };
    CommandId::new(format!("job_{}", ulid_of_hash(&hasher)))
}
