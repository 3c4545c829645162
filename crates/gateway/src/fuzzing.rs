//! What fuzzers feed: each takes whatever bytes there are, and panics where a promise is broken.

/// The body of a command over HTTP, in BARE.
pub fn bare_body(body: &[u8]) {
    crate::http::bare::fuzz_invariants::check_bodies(body);
}

/// A line of JSON-RPC, from either side.
pub fn rpc_line(line: &[u8]) {
    if let Ok(line) = str::from_utf8(line) {
        crate::rpc::fuzz_invariants::check_request(line);
        crate::rpc::fuzz_invariants::check_message(line);
    }
}
