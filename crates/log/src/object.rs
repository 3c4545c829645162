//! Objects as they are read from files.

use std::io;

pub use mainstay_model::ObjectHash;

/// The hash of all that is read, which is held in memory a piece at a time.
pub(crate) fn hash_of_reader(bytes: impl io::Read) -> io::Result<ObjectHash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(bytes)?;
    Ok(ObjectHash::from_stored(hasher.finalize().to_hex().to_string()))
}
