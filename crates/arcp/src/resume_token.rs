//! Tokens with which sessions are resumed. Only their hashes are stored.

use rand::RngCore;

/// A token that lets its holder resume a session.
pub(crate) struct ResumeToken(pub(crate) String);

impl ResumeToken {
    /// A new token of 192 random bits.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 24];
        rand::rng().fill_bytes(&mut bytes);
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("rt_{digits}"))
    }

    pub(crate) fn hash(shown: &str) -> String {
        blake3::Hasher::new_derive_key("mainstay arcp resume token 1")
            .update(shown.as_bytes())
            .finalize()
            .to_hex()
            .to_string()
    }
}

/// Compares two hashes in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let differ = |all: u8, (a, b): (u8, u8)| all | (a ^ b);
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, differ) == 0
}
