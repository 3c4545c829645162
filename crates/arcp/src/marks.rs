//! Places in the fold of a session's jobs that its client may have come to, from which the fold may begin once that is known.

use std::collections::VecDeque;

use crate::fold_place::{Base, Mark};

/// How many messages lie between two marks.
const BETWEEN: u64 = 500;
/// How many marks are kept for a client that never says how far it has come. Then every second of them is forgotten.
const MOST: usize = 64;

/// The marks of a session, in their order.
pub(crate) struct Marks {
    /// The number of the last message before the fold.
    begins_at: u64,
    marks: VecDeque<Mark>,
    /// How many messages lie between two marks.
    between: u64,
}

impl From<Mark> for Marks {
    fn from(first: Mark) -> Self {
        Self { begins_at: first.base.seq, marks: VecDeque::from([first]), between: BETWEEN }
    }
}

impl Marks {
    /// The number of the last message before the fold.
    pub(crate) const fn begins_at(&self) -> u64 {
        self.begins_at
    }

    /// Whether a mark is wanted behind a message of this number.
    pub(crate) fn is_wanted(&self, seq: u64) -> bool {
        let before = self.marks.back().map_or(self.begins_at, |mark| mark.base.seq);
        seq >= before + self.between
    }

    /// Marks a place of the fold.
    pub(crate) fn add(&mut self, base: Base, joined: usize) {
        if self.marks.len() >= MOST {
            let mut at = 0;
            self.marks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.between = self.between.saturating_mul(2);
        }
        self.marks.push_back(Mark { base, joined });
    }

    /// The last mark of a client that has the messages up to this number.
    pub(crate) fn last_within(&self, seq: u64) -> Option<Mark> {
        self.marks.iter().rev().find(|mark| mark.base.seq <= seq).cloned()
    }

    /// Forgets the marks up to a number, and gives the last of them where it lies behind the base.
    pub(crate) fn pass(&mut self, seq: u64, base: u64) -> Option<Mark> {
        let mut reached = None;
        while self.marks.front().is_some_and(|mark| mark.base.seq <= seq) {
            reached = self.marks.pop_front();
        }
        reached.filter(|mark| mark.base.seq > base)
    }

    /// Counts the joins anew, of which so many were forgotten.
    pub(crate) fn forget_joins(&mut self, count: usize) {
        self.marks.iter_mut().for_each(|mark| mark.joined -= count);
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::Position;

    use super::*;

    fn at(seq: u64) -> Base {
        Base { position: Position(seq), seq, jobs: Vec::new(), observers: Vec::new() }
    }

    #[test]
    fn marks_of_a_client_that_never_acknowledges_become_fewer_and_reach_to_the_end() {
        let mut marks = Marks::from(Mark { base: at(0), joined: 0 });
        for seq in 1..=1_000_000 {
            if marks.is_wanted(seq) {
                marks.add(at(seq), 0);
            }
        }
        assert!(marks.marks.len() <= MOST);
        let last = marks.last_within(1_000_000).unwrap().base.seq;
        assert!(1_000_000 - last <= marks.between, "{last}");
        assert_eq!(marks.last_within(499).unwrap().base.seq, 0);
    }

    #[test]
    fn what_was_acknowledged_is_passed_once() {
        let mut marks = Marks::from(Mark { base: at(0), joined: 0 });
        marks.add(at(500), 1);
        marks.add(at(1000), 2);
        assert_eq!(marks.pass(999, 0).unwrap().base.seq, 500);
        assert_eq!(marks.pass(999, 500), None);
        assert_eq!(marks.pass(1000, 500).unwrap().base.seq, 1000);
    }
}
