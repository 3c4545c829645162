//! The order in which what has come has its turn: first come, first served, but that what is urgent passes one that is not and is under way.

use std::collections::VecDeque;

/// What waits for its turn.
#[derive(Debug)]
pub(super) struct ArrivalOrder<T> {
    urgent: VecDeque<(u64, T)>,
    others: VecDeque<(u64, T)>,
    /// How many have come.
    came: u64,
}

/// What has its turn already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnderWay {
    /// Nothing is under way.
    Nothing,
    /// Something that is urgent is under way, maybe beside something that is not.
    Urgent,
    /// Only what is not urgent is under way.
    Other,
}

impl<T> Default for ArrivalOrder<T> {
    fn default() -> Self {
        Self { urgent: VecDeque::new(), others: VecDeque::new(), came: 0 }
    }
}

impl<T> ArrivalOrder<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.others.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.urgent.iter().chain(&self.others).map(|(_, waiting)| waiting)
    }

    /// Takes one in, behind those that came before.
    pub(super) fn push(&mut self, waiting: T, is_urgent: bool) {
        self.came += 1;
        let waits = if is_urgent { &mut self.urgent } else { &mut self.others };
        waits.push_back((self.came, waiting));
    }

    /// Gives the next one whose turn it is beside what is under way; none where all have to wait.
    pub(super) fn next(&mut self, under_way: UnderWay) -> Option<T> {
        let came = |waits: &VecDeque<(u64, T)>| waits.front().map_or(u64::MAX, |(came, _)| *came);
        let is_urgent_first = came(&self.urgent) < came(&self.others);
        let waits = match under_way {
            UnderWay::Nothing if is_urgent_first => &mut self.urgent,
            UnderWay::Nothing => &mut self.others,
            UnderWay::Other => &mut self.urgent,
            UnderWay::Urgent => return None,
        };
        waits.pop_front().map(|(_, waiting)| waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(waiting: &[(&'static str, bool)]) -> ArrivalOrder<&'static str> {
        let mut order = ArrivalOrder::default();
        waiting.iter().for_each(|(name, is_urgent)| order.push(*name, *is_urgent));
        order
    }

    #[test]
    fn what_is_urgent_passes_one_that_is_under_way_and_no_other() {
        let mut order = in_order(&[("eval", false), ("next", false), ("cancel", true), ("steer", true)]);
        assert_eq!(order.next(UnderWay::Nothing), Some("eval"));
        assert_eq!(order.next(UnderWay::Other), Some("cancel"), "while `eval` is under way");
        assert_eq!(order.next(UnderWay::Urgent), None);
        assert_eq!(order.next(UnderWay::Nothing), Some("next"), "it came before `steer`");
        assert_eq!(order.next(UnderWay::Other), Some("steer"));
        assert!(order.is_empty());
    }

    #[test]
    fn however_much_is_urgent_what_is_not_has_its_turn() {
        let mut order = in_order(&[("cancel", true), ("eval", false)]);
        let passed = (0..10).find(|_| {
            order.push("cancel", true);
            order.next(UnderWay::Nothing) == Some("eval")
        });
        assert_eq!(passed, Some(1), "one that came before it passes");
    }
}
