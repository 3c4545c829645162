//! A line of JSON-RPC, from either side.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mainstay_protocol::fuzzing::rpc_line(bytes));
