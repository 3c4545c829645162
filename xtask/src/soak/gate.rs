//! Where everyone who works waits while the load is paused.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who may go on, and how many stand still.
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    position: Position,
    members: usize,
    waiting: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Open,
    Closed,
    Ended,
}

impl Gate {
    /// A closed one, for so many.
    pub(super) fn closed_for(members: usize) -> Self {
        let state = State { position: Position::Closed, members, waiting: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until it is open. Says whether there is more to do.
    pub(super) fn pass(&self) -> bool {
        let mut state = held(&self.state);
        state.waiting += 1;
        self.changed.notify_all();
        while state.position == Position::Closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.position == Position::Open
    }

    /// Whether it is open.
    pub(super) fn is_open(&self) -> bool {
        held(&self.state).position == Position::Open
    }

    /// Lets everyone go on.
    pub(super) fn open(&self) {
        self.put(Position::Open);
    }

    /// Lets everyone go home.
    pub(super) fn end(&self) {
        self.put(Position::Ended);
    }

    /// Stops everyone at their next pass, and waits until all stand still. Says whether they did so in time.
    pub(super) fn close(&self, within: Duration) -> bool {
        self.put(Position::Closed);
        let all_wait =
            self.changed.wait_timeout_while(held(&self.state), within, |state| state.waiting < state.members);
        !all_wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn put(&self, position: Position) {
        held(&self.state).position = position;
        self.changed.notify_all();
    }
}

/// What a lock guards. A thread that failed while it held it has left it whole: each change is one step.
pub(super) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_closed_gate_stops_everyone_and_an_ended_one_sends_them_home() {
        let (gate, passed) = (Gate::closed_for(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while gate.pass() {
                        passed.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            gate.open();
            while passed.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            assert!(gate.close(Duration::from_secs(60)));
            let before = passed.load(Ordering::SeqCst);
            assert!(gate.close(Duration::from_secs(60)));
            assert_eq!(passed.load(Ordering::SeqCst), before);
            gate.end();
        });
    }

    #[test]
    fn who_does_not_come_is_not_waited_for_longer_than_that() {
        assert!(!Gate::closed_for(1).close(Duration::ZERO));
    }
}
