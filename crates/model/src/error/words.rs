//! Parts of the sentences that errors are.

pub(super) fn unavailable(kind: impl std::fmt::Display, provider: Option<&str>) -> String {
    match provider {
        Some(provider) => format!("turns with the provider `{provider}` fail"),
        None => format!("runners of kind `{kind}` do not start"),
    }
}

pub(super) fn colon(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", reason.trim_end_matches('.'))).unwrap_or_default()
}
