//! A frame of ARCP, of either dialect, or of bytes: what is read is written as something that is read as the same.
#![no_main]

use mainstay_arcp_protocol::{Dialect, a, b};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = a::sidecar::SidecarFrame::decode(bytes) {
        assert_eq!(read.encode(), bytes);
    }
    let Ok(frame) = std::str::from_utf8(bytes) else { return };
    let _ = Dialect::of_first_frame(frame);
    if let Ok(read) = b::decode(frame) {
        assert_eq!(b::decode(&read.encode()), Ok(read));
    }
    if let Ok(read) = a::decode(frame) {
        let written = read.encode().expect("what was read can be written");
        assert_eq!(a::decode(&written), Ok(read));
    }
});
