//! Bytes that are stored once, under their hash.

use std::io;

use async_trait::async_trait;
use mainstay_model::Error;
pub use mainstay_model::ObjectHash;

/// Stores bytes under their hash.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// Stores bytes under their hash; the same bytes are stored once.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn put_object(&self, bytes: Vec<u8>) -> Result<ObjectHash, Error>;

    /// The bytes of an object, verified against its hash.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`], [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    async fn object(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error>;
}

/// The hash of all that is read, which is held in memory a piece at a time.
pub(crate) fn hash_of_reader(bytes: impl io::Read) -> io::Result<ObjectHash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(bytes)?;
    Ok(ObjectHash::from_stored(hasher.finalize().to_hex().to_string()))
}
