//! What fuzzers feed: whatever bytes there are. It panics where a promise is broken.

/// The body of a command over HTTP, in BARE.
pub fn bare_body(body: &[u8]) {
    crate::bare::fuzz_invariants::check_bodies(body);
}
