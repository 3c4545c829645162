//! Which messages a connection was told later than others of higher numbers, since a stream was slowed down. Pure.
//!
//! A client that resumes after a message surely has all before it. That does not hold where messages were told out of the order of their numbers:
//! then it is told again from the first of those. Every receiver knows by its id what it has already (draft-arcp-01, 6.4).

use serde::{Deserialize, Serialize};

/// How many spans are kept. Then the first two are taken for one.
const MOST: usize = 64;

/// The spans of numbers within which messages were told out of order, in the order in which that began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LateSpans {
    spans: Vec<Span>,
}

/// A span of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    /// The first message that was held back.
    from: u64,
    /// The last that was told before all of those were told; none while some are held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
}

impl Span {
    /// The number before the span, where this number lies within it.
    fn before(&self, number: u64) -> Option<u64> {
        let is_within = self.from <= number && self.to.is_none_or(|to| number <= to);
        self.from.checked_sub(1).filter(|_| is_within)
    }
}

impl LateSpans {
    /// Whether no message was ever told out of order.
    pub(crate) const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Notes that the message of this number is held back; says whether that changed the spans, so that they must be stored.
    pub(crate) fn open(&mut self, from: u64) -> bool {
        if let Some(last) = self.spans.last_mut().filter(|last| last.to.is_none()) {
            let is_earlier = from < last.from;
            last.from = last.from.min(from);
            return is_earlier;
        }
        self.spans.push(Span { from, to: None });
        if self.spans.len() > MOST {
            let first = self.spans.remove(0);
            let second = &mut self.spans[0];
            second.from = second.from.min(first.from);
            second.to = first.to.zip(second.to).map(|(one, other)| one.max(other));
        }
        true
    }

    /// Notes that none is held back any more, once the message of this number was told.
    pub(crate) fn close(&mut self, to: u64) {
        if let Some(last) = self.spans.last_mut().filter(|last| last.to.is_none()) {
            last.to = Some(to);
        }
    }

    /// Up to which number a client surely has all, that has the message of this one.
    pub(crate) fn surely_has(&self, reached: u64) -> u64 {
        let mut has = reached;
        // What is told again may wait again, so the spans overlap, and are not in the order of their first messages.
        while let Some(before) = self.spans.iter().filter_map(|span| span.before(has)).min() {
            has = before;
        }
        has
    }

    /// Forgets what lies before this number.
    pub(crate) fn forget(&mut self, before: u64) {
        self.spans.retain(|span| span.to.is_none_or(|to| to > before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Messages of two jobs are told in order, but that those of one are held back from time to time, and told later.
        #[test]
        fn who_resumes_anywhere_has_all_that_came_before(
            steps in proptest::collection::vec((any::<bool>(), 0_u8..4), 1..80),
            cut in any::<proptest::sample::Index>(),
        ) {
            let (mut spans, mut sent, mut held) = (LateSpans::default(), Vec::new(), Vec::new());
            for (number, (is_slow, step)) in steps.iter().enumerate() {
                let number = number as u64 + 1;
                if *is_slow && (*step > 0 || !held.is_empty()) {
                    spans.open(number);
                    held.push(number);
                } else {
                    sent.push(number);
                }
                if *step == 3 && !held.is_empty() {
                    sent.append(&mut held);
                    spans.close(number);
                }
            }
            // Whatever is held back yet is told after the connection is lost.
            prop_assume!(!sent.is_empty());
            let received = &sent[..=cut.index(sent.len())];
            let spans: LateSpans = serde_json::from_str(&serde_json::to_string(&spans).unwrap()).unwrap();
            let has = spans.surely_has(received[received.len() - 1]);
            for number in 1..=has {
                prop_assert!(received.contains(&number), "{number} of {has}: {received:?}");
            }
        }
    }

    #[test]
    fn what_is_told_again_may_wait_again_and_covers_what_it_did() {
        let mut spans = LateSpans::default();
        for (from, to) in [(9, 30), (15, 20)] {
            spans.open(from);
            spans.close(to);
        }
        assert_eq!((spans.surely_has(17), spans.surely_has(25), spans.surely_has(31)), (8, 8, 31));
        for number in (100..100 + 10 * MOST as u64).step_by(10) {
            spans.open(number);
            spans.close(number + 1);
        }
        assert_eq!((spans.surely_has(25), spans.surely_has(8)), (8, 8));
    }

    #[test]
    fn a_message_that_is_held_back_before_others_is_covered_at_once() {
        let mut spans = LateSpans::default();
        assert_eq!([5, 3, 4].map(|number| spans.open(number)), [true, true, false]);
        assert_eq!(spans.surely_has(4), 2);
        let mut spans = LateSpans::default();
        spans.open(15);
        spans.close(20);
        spans.open(9);
        assert_eq!(spans.surely_has(17), 8);
        let mut spans = LateSpans::default();
        for (from, to) in [(4, 10), (8, 20)] {
            spans.open(from);
            spans.close(to);
        }
        assert_eq!(spans.surely_has(15), 3, "7 may have come before 4");
    }

    #[test]
    fn spans_become_fewer_and_are_forgotten_with_what_they_are_of() {
        let mut spans = LateSpans::default();
        for number in (10..10_000).step_by(10) {
            assert!(spans.open(number));
            assert!(!spans.open(number + 1));
            spans.close(number + 5);
        }
        assert_eq!(spans.spans.len(), MOST);
        assert_eq!((spans.surely_has(9), spans.surely_has(500), spans.surely_has(9996)), (9, 9, 9996));
        assert_eq!((spans.surely_has(9990), spans.surely_has(9995)), (9989, 9989));
        spans.forget(9995);
        assert!(spans.is_empty());
    }
}
