//! What the events of a job have as the idempotency key of its command: where the job was submitted, as part of which trace, and by which message.
//! It is how a session's jobs are told from others when the log is read again.

use mainstay_model::{CommandId, Error, IdempotencyKey};

/// Where a job was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubmissionKey {
    /// The session in which it was submitted.
    pub(crate) session: String,
    /// The trace of which it is part, where its client gave one.
    pub(crate) trace: Option<String>,
    /// The message that submitted it, where its answer is told again with the job's events.
    pub(crate) message: Option<String>,
}

impl SubmissionKey {
    /// The key of the job's command.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is too long.
    pub(crate) fn of_job(&self, job: &CommandId) -> Result<IdempotencyKey, Error> {
        let trace = escaped(self.trace.as_deref().unwrap_or_default());
        let message = self.message.as_deref().map(|message| format!("{}/", escaped(message)));
        IdempotencyKey::new(format!("{}/{trace}/{}{job}", self.session, message.unwrap_or_default()))
    }

    /// What a key of a job's command says; none where it is no such key.
    pub(crate) fn read(key: &IdempotencyKey, job: &CommandId) -> Option<Self> {
        let parts = key.as_str().strip_suffix(job.as_str())?.strip_suffix('/')?;
        let (session, rest) = parts.split_once('/')?;
        let (trace, message) = match rest.split_once('/') {
            Some((trace, message)) => (trace, Some(unescaped(message))),
            None => (rest, None),
        };
        let trace = Some(unescaped(trace)).filter(|trace| !trace.is_empty());
        Some(Self { session: session.to_owned(), trace, message })
    }
}

/// A part without what separates parts, and without what no key may have.
fn escaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for character in part.chars() {
        match character {
            '%' | '/' => text.push_str(&format!("%{:02X}", u32::from(character))),
            c if c.is_whitespace() || c.is_control() => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
            }
            c => text.push(c),
        }
    }
    text
}

fn unescaped(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(
            session in "[A-Za-z0-9_]{1,30}",
            trace in proptest::option::of(".{1,30}"),
            message in proptest::option::of(".{1,30}"),
        ) {
            let job = CommandId::new("job_1").unwrap();
            let key = SubmissionKey { session, trace, message };
            prop_assert_eq!(SubmissionKey::read(&key.of_job(&job).unwrap(), &job), Some(key));
        }
    }

    #[test]
    fn a_key_of_another_form_says_nothing() {
        let job = CommandId::new("job_1").unwrap();
        let read = |text: &str| SubmissionKey::read(&IdempotencyKey::new(text).unwrap(), &job);
        assert_eq!(read("mine"), None);
        assert_eq!(read("mine/job_2"), None);
        assert_eq!(read("job_1"), None);
    }
}
