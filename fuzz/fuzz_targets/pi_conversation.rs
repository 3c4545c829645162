//! What pi says and what the engine wants of it, a step a line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mainstay_agent::fuzzing::pi_conversation(bytes));
