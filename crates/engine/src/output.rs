//! What a job prints, on its way to the log: joined into chunks, and cut at the limit.
//!
//! Pure: the session's task says what came and when to flush. Output that belongs to no job shares one allowance between
//! two jobs, so that a process left behind cannot fill the disk either.

use mainstay_model::{JobId, OutputStream, RunnerNotice};

/// A chunk is written out at this size, or when the flush interval ends.
const CHUNK_BYTES: usize = 4 * 1024;

/// Collects output until it is worth an event.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    limit: usize,
    kept: usize,
    owner: Option<JobId>,
    chunk: Option<(OutputStream, String)>,
    cut: bool,
}

/// What is to be recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Output.
    Chunk(RunnerNotice),
    /// The limit was reached.
    Cut(JobId),
}

impl OutputBuffer {
    /// Keeps at most `limit` bytes for each job.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: 0, owner: None, chunk: None, cut: false }
    }

    /// Takes in what was printed; gives what is ready to be recorded.
    pub(crate) fn push(&mut self, job: Option<JobId>, stream: OutputStream, text: &str) -> Vec<Piece> {
        let mut ready = Vec::new();
        if job != self.owner {
            ready.extend(self.flush());
            (self.owner, self.kept, self.cut) = (job, 0, false);
        }
        if self.chunk.as_ref().is_some_and(|(of, _)| *of != stream) {
            ready.extend(self.flush());
        }
        let room = self.limit.saturating_sub(self.kept);
        let taken = &text[..text.floor_char_boundary(room)];
        if !taken.is_empty() {
            self.kept += taken.len();
            self.chunk.get_or_insert_with(|| (stream, String::new())).1.push_str(taken);
        }
        if taken.len() < text.len() && !self.cut {
            self.cut = true;
            self.kept = self.limit;
            ready.extend(self.flush());
            ready.extend(job.map(Piece::Cut));
        }
        if self.chunk.as_ref().is_some_and(|(_, chunk)| chunk.len() >= CHUNK_BYTES) {
            ready.extend(self.flush());
        }
        ready
    }

    /// Gives up what is held.
    pub(crate) fn flush(&mut self) -> Option<Piece> {
        let (stream, text) = self.chunk.take()?;
        Some(Piece::Chunk(RunnerNotice::Output { job: self.owner, stream, text }))
    }

    /// Whether something waits for a flush.
    pub(crate) fn is_pending(&self) -> bool {
        self.chunk.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(n: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(n))
    }

    fn chunk(job: Option<JobId>, stream: OutputStream, text: &str) -> Piece {
        Piece::Chunk(RunnerNotice::Output { job, stream, text: text.to_owned() })
    }

    #[test]
    fn small_writes_become_one_chunk() {
        let mut buffer = OutputBuffer::new(100);
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "a").is_empty());
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "b").is_empty());
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stdout, "ab")));
        assert_eq!(buffer.flush(), None);
    }

    #[test]
    fn streams_and_jobs_never_share_a_chunk() {
        let mut buffer = OutputBuffer::new(100);
        buffer.push(Some(job(1)), OutputStream::Stdout, "out");
        assert_eq!(
            buffer.push(Some(job(1)), OutputStream::Stderr, "err"),
            [chunk(Some(job(1)), OutputStream::Stdout, "out")]
        );
        assert_eq!(
            buffer.push(None, OutputStream::Stderr, "late"),
            [chunk(Some(job(1)), OutputStream::Stderr, "err")]
        );
    }

    #[test]
    fn output_over_the_limit_is_cut_at_a_character_and_marked_once() {
        let mut buffer = OutputBuffer::new(4);
        let pieces = buffer.push(Some(job(1)), OutputStream::Stdout, "abcé!");
        assert_eq!(pieces, [chunk(Some(job(1)), OutputStream::Stdout, "abc"), Piece::Cut(job(1))]);
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "more").is_empty());
        assert!(!buffer.is_pending());
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_prefix_of_what_was_printed(limit in 0_usize..200, writes: Vec<String>) {
            let mut buffer = OutputBuffer::new(limit);
            let mut kept = String::new();
            let mut cuts = 0;
            let mut pieces: Vec<Piece> =
                writes.iter().flat_map(|text| buffer.push(Some(job(1)), OutputStream::Stdout, text)).collect();
            pieces.extend(buffer.flush());
            for piece in pieces {
                match piece {
                    Piece::Chunk(RunnerNotice::Output { text, .. }) => kept.push_str(&text),
                    Piece::Cut(_) => cuts += 1,
                    Piece::Chunk(other) => prop_assert!(false, "{other:?}"),
                }
            }
            let printed = writes.concat();
            prop_assert!(printed.starts_with(&kept));
            prop_assert!(kept.len() <= limit);
            prop_assert_eq!(cuts, u32::from(kept.len() < printed.len()));
        }
    }
}
