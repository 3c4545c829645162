//! Proposals: choices for the text before the cursor.

/// What is proposed for the text from `start` to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) start: usize,
    pub(super) choices: Vec<Choice>,
    /// More is proposed for, or said of, what is typed further.
    pub(super) is_partial: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) note: String,
    pub(super) documentation: Option<String>,
}

impl Choice {
    /// One of which nothing more is said.
    pub(super) fn plain(value: String) -> Self {
        Self { value, note: String::new(), documentation: None }
    }
}

impl Proposal {
    /// Proposes nothing for the line.
    pub(super) const fn none(line: &str) -> Self {
        Self::whole(line.len(), Vec::new())
    }

    /// Proposes these choices, which are the complete list.
    pub(super) const fn whole(start: usize, choices: Vec<Choice>) -> Self {
        Self { start, choices, is_partial: false }
    }
}

/// Whether a name may have this character.
pub(super) fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// The choices of a proposal that begin so.
pub(super) fn narrowed(proposal: &Proposal, begun: &str) -> Proposal {
    let begun = begun.to_lowercase();
    let fits = |choice: &&Choice| choice.value.trim_start_matches('`').to_lowercase().starts_with(&begun);
    Proposal::whole(proposal.start, proposal.choices.iter().filter(fits).cloned().collect())
}
