//! What code says of itself: whether it changes the session.

/// What the first line of code says of all of it, behind the sign of a comment: `# mainstay: pure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PurityMark {
    /// It changes nothing of the session, so it need not run again.
    Pure,
    /// It changes the session, whatever it looks like.
    Stateful,
}

impl PurityMark {
    pub(super) fn of(code: &str) -> Option<Self> {
        let line = code.lines().map(str::trim_start).find(|line| !line.is_empty())?;
        let comment = ["#", "//", "--", "%", ";"].iter().find_map(|sign| line.strip_prefix(sign))?;
        match comment.trim_start_matches(|c: char| !c.is_alphanumeric()).strip_prefix("mainstay:")?.trim() {
            "pure" => Some(Self::Pure),
            "stateful" => Some(Self::Stateful),
            _ => None,
        }
    }
}
