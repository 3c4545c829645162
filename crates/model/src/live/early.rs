//! Live pieces that came before the event that they follow.

use crate::agent::Delta;
use crate::id::JobId;

/// How many bytes are kept. What does not fit is told by its event.
const LIMIT: usize = 256 * 1024;

/// The pieces that wait, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlyPieces {
    pieces: Vec<Delta>,
    bytes: usize,
}

impl EarlyPieces {
    /// Keeps a piece, where it fits.
    pub(super) fn keep(&mut self, piece: &Delta) {
        // A piece takes room even where it has no text.
        let bytes = self.bytes + size_of::<Delta>() + piece.text.len();
        if bytes <= LIMIT {
            self.bytes = bytes;
            self.pieces.push(piece.clone());
        }
    }

    /// Takes out the pieces of this job. Those of others are dropped, since one job goes on at a time.
    pub(super) fn take(&mut self, job: JobId) -> impl Iterator<Item = Delta> + use<> {
        std::mem::take(self).pieces.into_iter().filter(move |piece| piece.job == job)
    }
}
