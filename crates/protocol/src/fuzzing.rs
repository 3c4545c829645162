//! What fuzzers feed: whatever bytes there are. It panics where a promise is broken.

/// A line of JSON-RPC, from either side.
pub fn rpc_line(line: &[u8]) {
    if let Ok(line) = str::from_utf8(line) {
        crate::fuzz_invariants::check_request(line);
        crate::fuzz_invariants::check_message(line);
    }
}
