//! What an agent says of a message, on its way to the log: joined into chunks, so that a message of many tokens is few events. Pure:
//! the session's task says what came and when to flush.

use mainstay_model::Delta;

/// A chunk is written out at this size, or when the flush interval ends.
const CHUNK_BYTES: usize = 4 * 1024;

/// Collects what is said until it is worth an event.
#[derive(Debug, Default)]
pub(crate) struct StreamBuffer(Option<Delta>);

impl StreamBuffer {
    /// Takes in what was said; gives what is ready to be recorded.
    pub(crate) fn push(&mut self, delta: Delta) -> Vec<Delta> {
        let mut ready = Vec::new();
        match &mut self.0 {
            Some(held) if goes_on(held, &delta) => held.text.push_str(&delta.text),
            Some(_) | None => ready.extend(self.0.replace(delta)),
        }
        if self.0.as_ref().is_some_and(|held| held.text.len() >= CHUNK_BYTES) {
            ready.extend(self.0.take());
        }
        ready
    }

    /// Gives up what is held.
    pub(crate) fn flush(&mut self) -> Option<Delta> {
        self.0.take()
    }

    /// Forgets what is held: the message is whole, and says it.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }

    /// Whether something waits for a flush.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.is_some()
    }
}

/// Whether a piece is of the same part as another, right behind it.
fn goes_on(held: &Delta, next: &Delta) -> bool {
    (held.job, held.message, held.part) == (next.job, next.message, next.part)
        && held.offset + held.text.len() as u64 == next.offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{JobId, PartRole};
    use proptest::prelude::*;

    fn delta(part: u32, offset: u64, text: &str) -> Delta {
        let job = JobId::from_uuid(uuid::Uuid::nil());
        Delta { job, message: 0, part, role: PartRole::Assistant, offset, text: text.to_owned(), tool: None }
    }

    #[test]
    fn pieces_of_one_part_become_one_chunk() {
        let mut stream = StreamBuffer::default();
        assert!(stream.push(delta(0, 0, "a")).is_empty());
        assert!(stream.push(delta(0, 1, "b")).is_empty());
        assert_eq!(stream.push(delta(1, 0, "c")), [delta(0, 0, "ab")]);
        assert_eq!(stream.flush(), Some(delta(1, 0, "c")));
        assert!(!stream.is_pending());
    }

    #[test]
    fn what_a_whole_message_says_is_not_said_before_it() {
        let mut stream = StreamBuffer::default();
        stream.push(delta(0, 0, "a"));
        stream.forget();
        assert_eq!(stream.flush(), None);
    }

    proptest! {
        #[test]
        fn the_chunks_say_what_the_pieces_said(pieces in proptest::collection::vec((0_u32..3, ".{0,3000}"), 0..20)) {
            let mut stream = StreamBuffer::default();
            let mut parts = [const { String::new() }; 3];
            let mut chunks = Vec::new();
            for (part, text) in &pieces {
                let said = &mut parts[*part as usize];
                chunks.extend(stream.push(delta(*part, said.len() as u64, text)));
                said.push_str(text);
            }
            chunks.extend(stream.flush());
            let mut heard = [const { String::new() }; 3];
            for chunk in chunks {
                let heard = &mut heard[chunk.part as usize];
                prop_assert_eq!(chunk.offset, heard.len() as u64);
                heard.push_str(&chunk.text);
            }
            prop_assert_eq!(parts, heard);
        }
    }
}
