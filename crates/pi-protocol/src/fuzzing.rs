//! What fuzzers feed: whatever bytes there are. It panics where a promise is broken.

/// A frame of the pi protocol.
pub fn pi_frame(frame: &[u8]) {
    if let Ok(frame) = serde_json::from_slice(frame) {
        crate::fuzz_invariants::check(&frame);
    }
}
