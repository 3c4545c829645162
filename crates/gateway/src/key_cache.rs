//! The keys of an issuer that publishes them: fetched when they are needed, kept for a while, and fetched again for a key that is not known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_model::Timestamp;

use crate::jwt_key::JwtKey;
use crate::outbound::{Address, Outbound};

/// How long keys are used before they are fetched again, in seconds.
const FRESH_SEC: i64 = 60 * 60;
/// How long keys are used that cannot be fetched again, in seconds.
const KEPT_SEC: i64 = 24 * 60 * 60;
/// How long it is at least from one attempt to fetch keys to the next, in seconds, whatever tokens come.
const PAUSE_SEC: i64 = 60;

/// The published keys of an issuer.
pub struct KeyCache(Arc<Shared>);

struct Shared {
    address: Address,
    outbound: Outbound,
    fetched: Mutex<FetchedKeys>,
    /// Held by the one who fetches.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct FetchedKeys {
    keys: Arc<[JwtKey]>,
    fetched_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
}

impl FetchedKeys {
    /// Whether they are to be fetched now, where a token may want a newer key.
    fn is_due(&self, now: Timestamp, wants_newer: bool) -> bool {
        let is_older = |at: Option<Timestamp>, seconds| at.is_none_or(|at| older(at, now, seconds));
        is_older(self.tried_at, PAUSE_SEC) && (wants_newer || is_older(self.fetched_at, FRESH_SEC))
    }

    /// Those that may still be used.
    fn usable(&self, now: Timestamp) -> Arc<[JwtKey]> {
        match self.fetched_at {
            Some(at) if !older(at, now, KEPT_SEC) => Arc::clone(&self.keys),
            Some(_) | None => Arc::default(),
        }
    }
}

/// Whether a time is so long ago, or in a future that the clock has come back from.
fn older(at: Timestamp, now: Timestamp, seconds: i64) -> bool {
    let age = now.as_second().saturating_sub(at.as_second());
    age < 0 || age >= seconds
}

impl KeyCache {
    /// The keys at this address.
    pub fn new(address: Address, outbound: Outbound) -> Self {
        let (fetched, fetching) = (Mutex::default(), Arc::default());
        Self(Arc::new(Shared { address, outbound, fetched, fetching }))
    }

    /// The keys as they are known, newer ones where that is wanted and may be asked for. A token with a known key
    /// waits for no fetch that is under way.
    pub(crate) async fn keys(&self, now: Timestamp, wants_newer: bool) -> Arc<[JwtKey]> {
        let usable = self.0.lock().usable(now);
        let can_do_without = !wants_newer && !usable.is_empty();
        let turn = match Arc::clone(&self.0.fetching).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) if can_do_without => return usable,
            Err(_) => Arc::clone(&self.0.fetching).lock_owned().await,
        };
        let shared = Arc::clone(&self.0);
        // In a task of its own: a client that hangs up would else take along the only attempt of the minute.
        let fetch = tokio::spawn(async move {
            shared.fetch_due(now, wants_newer).await;
            drop(turn);
        });
        fetch.await.ok();
        self.0.lock().usable(now)
    }
}

impl Shared {
    async fn fetch_due(&self, now: Timestamp, wants_newer: bool) {
        {
            let mut fetched = self.lock();
            if !fetched.is_due(now, wants_newer) {
                return;
            }
            fetched.tried_at = Some(now);
        }
        let found = match self.outbound.get(&self.address).await {
            Ok(set) => JwtKey::of_key_set(&set).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match found {
            Ok(keys) => {
                let mut fetched = self.lock();
                (fetched.keys, fetched.fetched_at) = (keys.into(), Some(now));
            }
            Err(error) => tracing::warn!(error, "the keys of an issuer cannot be fetched"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, FetchedKeys> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_when_they_are_old_or_a_token_has_another_but_not_too_often() {
        let at = |second| Timestamp::from_second(1_000_000 + second).unwrap();
        let of = |fetched: Option<i64>, tried: Option<i64>| FetchedKeys {
            keys: [JwtKey::of_secret(&[1; 32]).unwrap()].into(),
            fetched_at: fetched.map(at),
            tried_at: tried.map(at),
        };
        assert!(of(None, None).is_due(at(0), false), "there are none");
        assert!(!of(None, Some(0)).is_due(at(59), true), "that was tried");
        assert!(of(None, Some(0)).is_due(at(60), false));
        assert!(!of(Some(0), Some(0)).is_due(at(3599), false));
        assert!(of(Some(0), Some(0)).is_due(at(60), true));
        assert!(of(Some(0), Some(0)).is_due(at(3600), false));
        assert!(of(Some(0), Some(0)).is_due(at(-1), false), "the clock was set back");
        assert_eq!(of(None, Some(0)).usable(at(0)).len(), 0);
        assert_eq!(of(Some(0), Some(0)).usable(at(KEPT_SEC - 1)).len(), 1);
        assert_eq!(of(Some(0), Some(0)).usable(at(KEPT_SEC)).len(), 0, "nobody knows whether they are good");
    }
}
