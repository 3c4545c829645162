//! The body of a command over HTTP, in BARE.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mainstay_http::fuzzing::bare_body(bytes));
