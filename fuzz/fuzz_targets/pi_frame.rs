//! A frame of the pi protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mainstay_pi_protocol::fuzzing::pi_frame(bytes));
