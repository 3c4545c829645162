//! Which commands and idempotency keys certainly have no outcome.
//!
//! Nearly every command that comes is new. To find that out from the database costs two hand-overs between threads, about as
//! much as a flush takes; to find it here costs none. What may have an outcome is looked up. Kept are Bloom filters, since
//! outcomes are never dropped and their ids would fill the memory: 12 bits for each, and one new command in a hundred or two
//! is looked up in vain.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use mainstay_model::{CommandId, IdempotencyKey, Principal};
use rusqlite::{Connection, Row};

use crate::KeyScope;

/// How many entries the first filter is made for; each further one is made for twice as many as the one before.
const FIRST_ENTRIES: usize = 64 * 1024;
const BITS_PER_ENTRY: usize = 12;
/// How many bits each entry sets.
const BITS_SET: u64 = 6;

/// The commands and keys that may have an outcome. Nobody but this process may store any meanwhile.
#[derive(Default)]
pub(super) struct KnownOutcomes {
    hasher: RandomState,
    filters: RwLock<Vec<Filter>>,
    /// Whether all that was stored before is in the filters.
    is_complete: AtomicBool,
}

struct Filter {
    bits: Box<[u64]>,
    /// How many more entries it is made for.
    room: usize,
}

impl KnownOutcomes {
    /// Takes in all that is stored. What is stored from when the store was opened must have been taken in one by one.
    pub(super) fn load(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut commands = connection.prepare("SELECT principal, command FROM outcome")?;
        let mut rows = commands.query(())?;
        while let Some(row) = rows.next()? {
            self.insert(self.hasher.hash_one((text(row, 0)?, text(row, 1)?)));
        }
        let mut keys = connection.prepare(
            "SELECT principal, key, session.id FROM idempotency
             LEFT JOIN session ON session.number = idempotency.session",
        )?;
        let mut rows = keys.query(())?;
        while let Some(row) = rows.next()? {
            let session = row.get::<_, Option<[u8; 16]>>(2)?;
            self.insert(self.hasher.hash_one((text(row, 0)?, text(row, 1)?, session)));
        }
        self.is_complete.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes in a command that is about to get an outcome.
    pub(super) fn add(&self, principal: &Principal, command: &CommandId) {
        self.insert(self.of_command(principal, command));
    }

    /// Takes in a key that is about to get an outcome.
    pub(super) fn add_key(&self, principal: &Principal, scope: KeyScope, key: &IdempotencyKey) {
        self.insert(self.of_key(principal, scope, key));
    }

    /// Whether a command may have an outcome.
    pub(super) fn may_have(&self, principal: &Principal, command: &CommandId) -> bool {
        self.may_contain(self.of_command(principal, command))
    }

    /// Whether a key may have an outcome.
    pub(super) fn may_have_key(&self, principal: &Principal, scope: KeyScope, key: &IdempotencyKey) -> bool {
        self.may_contain(self.of_key(principal, scope, key))
    }

    fn of_command(&self, principal: &Principal, command: &CommandId) -> u64 {
        self.hasher.hash_one((principal.as_str(), command.as_str()))
    }

    fn of_key(&self, principal: &Principal, scope: KeyScope, key: &IdempotencyKey) -> u64 {
        let session = match scope {
            KeyScope::Creations => None,
            KeyScope::Session(session) => Some(session.as_uuid().into_bytes()),
        };
        self.hasher.hash_one((principal.as_str(), key.as_str(), session))
    }

    fn insert(&self, hash: u64) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        if filters.last().is_none_or(|newest| newest.room == 0) {
            let entries = FIRST_ENTRIES << filters.len();
            filters.push(Filter::for_entries(entries));
        }
        if let Some(newest) = filters.last_mut() {
            newest.insert(hash);
        }
    }

    fn may_contain(&self, hash: u64) -> bool {
        if !self.is_complete.load(Ordering::Acquire) {
            return true;
        }
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        filters.iter().any(|filter| filter.may_contain(hash))
    }
}

impl Filter {
    fn for_entries(entries: usize) -> Self {
        Self { bits: vec![0; entries * BITS_PER_ENTRY / 64].into_boxed_slice(), room: entries }
    }

    fn insert(&mut self, hash: u64) {
        for (word, bit) in places(hash, self.bits.len()) {
            self.bits[word] |= bit;
        }
        self.room = self.room.saturating_sub(1);
    }

    fn may_contain(&self, hash: u64) -> bool {
        places(hash, self.bits.len()).all(|(word, bit)| self.bits[word] & bit != 0)
    }
}

/// The bits of an entry, in a filter of so many words.
fn places(hash: u64, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let step = hash.rotate_left(32) | 1;
    (0..BITS_SET).map(move |turn| {
        let at = hash.wrapping_add(step.wrapping_mul(turn));
        // The upper half chooses the word, the lower bits of it are not those that choose the bit.
        let word = (u128::from(at) * words as u128) >> 64;
        (usize::try_from(word).unwrap_or_default(), 1 << (at & 63))
    })
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    Ok(row.get_ref(column)?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(number: usize) -> CommandId {
        CommandId::new(format!("command-{number}")).unwrap()
    }

    #[test]
    fn what_was_taken_in_may_have_an_outcome_and_hardly_anything_else() {
        let known = KnownOutcomes::default();
        let principal = Principal::local();
        assert!(known.may_have(&principal, &command(0)), "nothing is certain before all is known");
        known.is_complete.store(true, Ordering::Release);
        // Enough for three filters.
        let stored = 4 * FIRST_ENTRIES;
        for number in 0..stored {
            known.add(&principal, &command(number));
        }
        assert!((0..stored).all(|number| known.may_have(&principal, &command(number))));
        let new = (stored..stored + 10_000).filter(|number| known.may_have(&principal, &command(*number)));
        assert!(new.count() < 500);
    }

    #[test]
    fn a_key_counts_where_it_was_used() {
        let known = KnownOutcomes::default();
        known.is_complete.store(true, Ordering::Release);
        let (principal, key) = (Principal::local(), IdempotencyKey::new("once").unwrap());
        known.add_key(&principal, KeyScope::Creations, &key);
        assert!(known.may_have_key(&principal, KeyScope::Creations, &key));
        assert!(!known.may_have(&principal, &CommandId::new("once").unwrap()));
    }
}
