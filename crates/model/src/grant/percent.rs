//! Percent-encoding of URLs, and what hides in it. Source: RFC 3986, sections 2.1 to 2.4 and 6.2.2.

use std::fmt::Write as _;

use super::canonical::Reason;

/// How often a text is decoded to see what hides in it. One that is still encoded then is taken to hide
/// something.
const MOST_DECODINGS: usize = 8;

/// One segment of a URL's path in its one form: unreserved characters are decoded, digits of escapes are
/// upper-case, and what may not stand in a URL is encoded.
pub(super) fn normal(segment: &str) -> Result<String, Reason> {
    let mut normal = String::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            push(&mut normal, byte, byte.is_ascii_graphic() && !b"\"<>^`{|}".contains(&byte));
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(hex_digit);
        let (Some(high), Some(low)) = (digit(bytes.next()), digit(bytes.next())) else {
            return Err("`%` is followed by two hexadecimal digits");
        };
        let byte = high * 16 + low;
        push(&mut normal, byte, byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    }
    Ok(normal)
}

/// Whether a segment, decoded once or more often, has a segment `.` or `..`, a NUL, or is no text. Some
/// programs decode what they are given once more than the one that checked it, take `\` for `/`, or cut a
/// segment at `;`, `?` or `#`.
pub(super) fn hides_traversal(segment: &str) -> bool {
    let mut text = segment.as_bytes().to_vec();
    for _ in 0..MOST_DECODINGS {
        let is_dots = |part: &[u8]| {
            let name = part.split(|byte| b";?#".contains(byte)).next().unwrap_or_default();
            matches!(name, b"." | b"..")
        };
        if text.contains(&0) || text.split(|byte| matches!(byte, b'/' | b'\\')).any(is_dots) {
            return true;
        }
        let decoded = decoded(&text);
        if decoded == text {
            return std::str::from_utf8(&text).is_err();
        }
        text = decoded;
    }
    true
}

/// Decodes each escape once; what is no escape stays.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let escaped = match (byte, after) {
            (b'%', [high, low, after @ ..]) => hex_digit(*high).zip(hex_digit(*low)).zip(Some(after)),
            _ => None,
        };
        match escaped {
            Some(((high, low), after)) => {
                decoded.push(high * 16 + low);
                rest = after;
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

fn push(text: &mut String, byte: u8, as_it_is: bool) {
    if as_it_is {
        text.push(char::from(byte));
    } else {
        // Writing to a string does not fail.
        let _ = write!(text, "%{byte:02X}");
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
