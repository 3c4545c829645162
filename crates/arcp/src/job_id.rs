//! The names of jobs. A job is a command of the engine, so its name is the command's id, and the same submission is the same command.
//!
//! The engine stores one outcome for a principal's command id. So a message that comes twice, or an idempotency key that is used again,
//! runs nothing a second time, also under the next daemon, and nothing is kept here for that.

use mainstay_arcp_protocol::ids::ulid_text;
use mainstay_model::{CommandId, Error, IdempotencyKey, Principal};

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
    let mut half = [0; 16];
    half.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    CommandId::new(format!("job_{}", ulid_text(u128::from_be_bytes(half))))
}

/// What the events of a job that was submitted in this session, as part of this trace, have as the key of its command. It is how the session's
/// jobs are told from others when the log is read again.
///
/// # Errors
/// [`Error::InvalidArgument`] where the session's name is too long for a key.
pub(crate) fn key_of(session: &str, trace: Option<&str>, job: &CommandId) -> Result<IdempotencyKey, Error> {
    IdempotencyKey::new(format!("{session}/{}/{job}", trace.unwrap_or_default()))
}

/// The session in which a job was submitted whose command has this key.
pub(crate) fn session_of_key<'a>(key: &'a IdempotencyKey, job: &CommandId) -> Option<&'a str> {
    Some(parts_of_key(key, job)?.0)
}

/// The trace of which a job is part whose command has this key, where its client gave one.
pub(crate) fn trace_of_key<'a>(key: &'a IdempotencyKey, job: &CommandId) -> Option<&'a str> {
    Some(parts_of_key(key, job)?.1).filter(|trace| !trace.is_empty())
}

fn parts_of_key<'a>(key: &'a IdempotencyKey, job: &CommandId) -> Option<(&'a str, &'a str)> {
    key.as_str().strip_suffix(job.as_str())?.strip_suffix('/')?.split_once('/')
}
