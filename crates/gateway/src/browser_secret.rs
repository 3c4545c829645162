//! The secret of a browser: a text that says whom it stands for and until when, sealed with a key of the
//! daemon. Pure.

use mainstay_model::Principal;

/// Seals that somebody is this principal until this second.
pub(crate) fn seal(key: &[u8; 32], principal: &Principal, until: i64) -> String {
    let said = format!("{until}.{}", hex(principal.as_str().as_bytes()));
    let mac = blake3::keyed_hash(key, said.as_bytes());
    format!("{said}.{}", mac.to_hex())
}

/// Whom a sealed secret stands for, where it is whole and not too old.
pub(crate) fn open(key: &[u8; 32], sealed: &str, now: i64) -> Option<Principal> {
    let (until, principal) = said(key, sealed)?.split_once('.')?;
    if until.parse::<i64>().ok()? <= now {
        return None;
    }
    Principal::new(unhex(principal)?).ok()
}

/// Whether a text was sealed with this key, however old it is.
pub(crate) fn is_sealed(key: &[u8; 32], text: &str) -> bool {
    said(key, text).is_some()
}

/// What a sealed secret says.
fn said<'a>(key: &[u8; 32], sealed: &'a str) -> Option<&'a str> {
    let (said, mac) = sealed.rsplit_once('.')?;
    // Equal in a time that does not depend on where they differ.
    let expected = blake3::keyed_hash(key, said.as_bytes());
    (blake3::Hash::from_hex(mac).ok()? == expected).then_some(said)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let byte = |pair: &[u32]| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok();
    String::from_utf8(digits.chunks(2).map(byte).collect::<Option<_>>()?).ok()
}
