//! Identifiers as clients want them written.

/// The digits of Crockford's base 32, which a ULID is written in.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A number of 128 bits as a ULID is written: 26 digits, the greatest first. Clients of dialect B take nothing else as the id of a message but a
/// UUID of version 7.
pub fn ulid_text(number: u128) -> String {
    let digit = |place: u32| {
        let index = usize::try_from((number >> (5 * place)) & 31).unwrap_or_default();
        char::from(DIGITS.get(index).copied().unwrap_or(b'0'))
    };
    (0..26).rev().map(digit).collect()
}

/// The number that a ULID stands for; none where the text is no ULID.
pub fn ulid_number(text: &str) -> Option<u128> {
    let is_ulid = text.len() == 26 && text.as_bytes().first().is_some_and(|digit| *digit <= b'7');
    if !is_ulid {
        return None;
    }
    text.bytes().try_fold(0_u128, |number, digit| {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        Some(number << 5 | value as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_smallest_and_the_largest_ulid_are_as_the_specification_has_them() {
        assert_eq!(ulid_text(0), "0".repeat(26));
        assert_eq!(ulid_text(u128::MAX), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        for wrong in ["", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0000000000000000000000000U", &"0".repeat(27)] {
            assert_eq!(ulid_number(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_ulid_is_read_back_as_the_number_it_was_and_sorts_like_it(a: u128, b: u128) {
            prop_assert_eq!(ulid_number(&ulid_text(a)), Some(a));
            prop_assert_eq!(ulid_text(a).cmp(&ulid_text(b)), a.cmp(&b));
        }
    }
}
