//! Places for calls that are under way. Each principal has its share of them, so that one who takes all of its own keeps nobody else out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_model::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of a connection, or of all requests over HTTP.
#[derive(Debug)]
pub(super) struct Places {
    share: usize,
    taken: Mutex<HashMap<Principal, Arc<Semaphore>>>,
}

impl Places {
    /// So many, for so many principals.
    pub(super) fn new(count: usize, principals: usize) -> Self {
        let share = (count / principals.max(1)).clamp(1, Semaphore::MAX_PERMITS);
        Self { share, taken: Mutex::default() }
    }

    /// How many one principal may have.
    pub(super) const fn share(&self) -> usize {
        self.share
    }

    /// One more for a principal, until it is dropped; none where it has all of its share.
    pub(super) fn take(&self, principal: &Principal) -> Option<OwnedSemaphorePermit> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let places = taken.entry(principal.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(places).try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_taken_all_of_a_share_keeps_nobody_else_out() {
        let [ada, eve] = ["ada", "eve"].map(|name| Principal::new(name).unwrap());
        let places = Places::new(5, 2);
        let mut taken: Vec<_> = (0..3).filter_map(|_| places.take(&ada)).collect();
        assert_eq!((taken.len(), places.share()), (2, 2));
        assert!(places.take(&eve).is_some());
        taken.pop();
        assert!(places.take(&ada).is_some());
        assert_eq!(Places::new(1, 9).share(), 1);
    }
}
