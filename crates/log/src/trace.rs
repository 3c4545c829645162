//! Traces: what an append goes through, as spans. They are made only where whoever appends is traced itself.

use tracing::{Span, info_span};

/// The target of every span that is part of a trace, whichever crate makes it; nothing else has it. So traces are switched on and off as
/// a whole, and the daemon's own log shows none of them.
pub const TARGET: &str = "mainstay::trace";

/// Notes that what a span stands for has ended. One that others go on below is closed only with the last of them: having been left says when.
pub fn ended(span: &Span) {
    span.in_scope(|| ());
}

/// Where an append is on its way to the disk.
#[derive(Debug)]
pub(crate) struct Steps {
    append: Span,
    step: Span,
}

impl Steps {
    /// It waits for the writer.
    pub(crate) fn queued(append: &Span) -> Self {
        let step = match append.is_disabled() {
            true => Span::none(),
            false => info_span!(target: TARGET, parent: append, "commit.queue"),
        };
        Self { append: append.clone(), step }
    }

    /// Its rows are written, and after them those of the others in its transaction.
    pub(crate) fn written(&mut self) {
        if !self.append.is_disabled() {
            self.step = info_span!(target: TARGET, parent: &self.append, "commit.write");
        }
    }

    /// Its transaction, of so many writes, is made durable.
    pub(crate) fn flushed(&mut self, writes: usize) {
        if !self.append.is_disabled() {
            self.step =
                info_span!(target: TARGET, parent: &self.append, "commit.flush", mainstay.writes = writes);
        }
    }
}
