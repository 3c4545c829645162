//! What a receiver does with a message whose type it does not know. Source: draft-arcp-01, 21.3.

/// What a receiver does with a message of an unknown type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    /// The message is dropped without an answer.
    Drop,
    /// The message is answered with `nack` and the code `UNIMPLEMENTED`.
    Refuse,
}

/// What to do with an unknown type: only a namespaced, unadvertised and optional one is dropped.
/// Source: draft-arcp-01, 21.3.
///
/// The draft leaves out an advertised type that is unknown all the same; the sender relied on it, so it is
/// refused.
pub const fn on_unknown(namespaced: bool, advertised: bool, optional: bool) -> OnUnknown {
    match (namespaced, advertised, optional) {
        (true, false, true) => OnUnknown::Drop,
        _ => OnUnknown::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::{OnUnknown, on_unknown};

    #[test]
    fn only_an_optional_extension_that_was_not_advertised_is_dropped() {
        assert_eq!(on_unknown(true, false, true), OnUnknown::Drop);
        for (namespaced, advertised, optional) in
            [(true, false, false), (true, true, true), (true, true, false), (false, false, true)]
        {
            assert_eq!(on_unknown(namespaced, advertised, optional), OnUnknown::Refuse);
        }
    }
}
