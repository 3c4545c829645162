//! What fuzzers feed: whatever bytes there are. Panics where a promise is broken.

/// What pi says and what the engine wants of it, a step a line.
pub fn pi_conversation(conversation: &[u8]) {
    crate::pi::fuzz_invariants::check(conversation);
}
