//! What fuzzers feed: each takes whatever bytes there are, and panics where a promise is broken.

/// The body of a command over HTTP, in BARE.
pub fn bare_body(body: &[u8]) {
    crate::http::bare::fuzz_invariants::check_bodies(body);
}
