//! Places that are counted for each key: how much of something one peer, or one token, may have at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many places for each key. A key that nobody uses costs nothing.
pub(crate) struct KeyedPlaces<K> {
    each: usize,
    keys: Arc<Mutex<HashMap<K, Entry>>>,
}

/// The places of one key, and how many have or want one.
struct Entry {
    places: Arc<Semaphore>,
    users: usize,
}

/// A place of one key, until it is dropped.
pub(crate) struct KeyedPlace<K: Eq + Hash> {
    _place: OwnedSemaphorePermit,
    _user: User<K>,
}

/// Somebody who has or wants a place.
struct User<K: Eq + Hash> {
    key: K,
    keys: Arc<Mutex<HashMap<K, Entry>>>,
    places: Arc<Semaphore>,
}

impl<K: Eq + Hash> Drop for User<K> {
    fn drop(&mut self) {
        let mut keys = locked(&self.keys);
        if let Some(entry) = keys.get_mut(&self.key) {
            entry.users -= 1;
            if entry.users == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

impl<K: Eq + Hash + Clone> KeyedPlaces<K> {
    /// So many places for each key.
    pub(crate) fn new(each: usize) -> Self {
        Self { each: each.min(Semaphore::MAX_PERMITS), keys: Arc::default() }
    }

    /// A place for a key, once there is one.
    pub(crate) async fn acquire(&self, key: K) -> Option<KeyedPlace<K>> {
        let user = self.user(key);
        let place = Arc::clone(&user.places).acquire_owned().await.ok()?;
        Some(KeyedPlace { _place: place, _user: user })
    }

    fn user(&self, key: K) -> User<K> {
        let mut keys = locked(&self.keys);
        let fresh = || Entry { places: Arc::new(Semaphore::new(self.each)), users: 0 };
        let entry = keys.entry(key.clone()).or_insert_with(fresh);
        entry.users += 1;
        User { key, keys: Arc::clone(&self.keys), places: Arc::clone(&entry.places) }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_key_has_places_of_its_own_and_is_forgotten_with_its_last_user() {
        let places = KeyedPlaces::new(2);
        let (first, second) = (places.acquire("a").await.unwrap(), places.acquire("a").await.unwrap());
        let other = places.acquire("b").await.unwrap();
        assert_eq!(locked(&places.keys).len(), 2);
        // One who waits, and one who gives up.
        {
            let mut waiting = Box::pin(places.acquire("a"));
            assert!(futures::poll!(&mut waiting).is_pending());
            drop(first);
            assert!(futures::poll!(&mut waiting).is_ready());
            let mut given_up = Box::pin(async {
                let _third = places.acquire("a").await;
                places.acquire("a").await
            });
            assert!(futures::poll!(&mut given_up).is_pending());
        }
        drop((second, other));
        assert_eq!(locked(&places.keys).len(), 0);
    }
}
