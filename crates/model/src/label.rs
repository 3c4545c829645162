//! Labels: what people call entries of a transcript. An entry never changes, so its label is a fact of the session that gave it,
//! and stands beside the transcript; a fork begins with those that its entries had.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::entry::Origin;
use crate::error::Error;
use crate::id::SessionId;
use crate::limits::Limits;
use crate::transcript::Segment;

/// What people call an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// The entry that has the label.
    pub entry: Origin,
    /// When the label was set.
    pub at: Timestamp,
    /// The text of the label.
    pub text: String,
}

/// The labels of a session, one an entry at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Labels(Vec<Label>);

impl Labels {
    /// Gives an entry a label, or takes it off.
    pub fn set(&mut self, entry: Origin, at: Timestamp, text: Option<String>) {
        let found = self.0.binary_search_by_key(&entry, |label| label.entry);
        match (found, text) {
            (Ok(index), Some(text)) => self.0[index] = Label { entry, at, text },
            (Ok(index), None) => drop(self.0.remove(index)),
            (Err(index), Some(text)) => self.0.insert(index, Label { entry, at, text }),
            (Err(_), None) => {}
        }
    }

    /// What an entry is called: the one of this number among a session's own.
    pub fn of(&self, session: SessionId, number: u64) -> Option<&Label> {
        let entry = Origin { session, number };
        self.0.binary_search_by_key(&entry, |label| label.entry).ok().map(|index| &self.0[index])
    }

    /// Only those of entries in these segments.
    #[must_use]
    pub fn within(&self, segments: &[Segment]) -> Self {
        let is_within = |label: &&Label| {
            segments.iter().any(|segment| segment.has(label.entry.session, label.entry.number))
        };
        Self(self.0.iter().filter(is_within).cloned().collect())
    }

    /// Each with the index of its entry in a transcript of these segments, in its order. An entry that stands there more than once
    /// is there each time.
    pub fn placed(&self, segments: &[Segment]) -> Vec<(u64, &Label)> {
        let (mut begins, mut placed) = (0_u64, Vec::new());
        for segment in segments {
            let first = Origin { session: segment.session, number: segment.from };
            let from = self.0.partition_point(|label| label.entry < first);
            let here = self.0[from..].iter();
            let here = here.take_while(|label| segment.has(label.entry.session, label.entry.number));
            placed
                .extend(here.map(|label| (begins.saturating_add(label.entry.number - segment.from), label)));
            begins = begins.saturating_add(segment.len());
        }
        placed
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks what people want to call an entry.
///
/// # Errors
/// [`Error::InvalidArgument`] where it says nothing, is too long, or has control characters.
pub fn validate_label(text: &str, limits: &Limits) -> Result<(), Error> {
    let invalid = |reason| Err(Error::InvalidArgument { argument: "label".to_owned(), reason });
    let (bytes, limit) = (text.len(), limits.label_bytes);
    if text.trim().is_empty() {
        return invalid("it says nothing".to_owned());
    }
    if bytes > limit {
        return invalid(format!("it has {bytes} bytes; `label-bytes` allows {limit}"));
    }
    if text.chars().any(char::is_control) {
        return invalid("it has a control character".to_owned());
    }
    Ok(())
}

/// Checks that a session may have one more.
pub(crate) fn check_room(labels: &Labels, entry: Origin, limits: &Limits) -> Result<(), Error> {
    let limit = limits.labels;
    if labels.len() < limit || labels.of(entry.session, entry.number).is_some() {
        return Ok(());
    }
    let reason = format!("the session has {limit} already; `labels` allows no more: take one off first");
    Err(Error::InvalidArgument { argument: "label".to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn session(number: u8) -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(number.into()))
    }

    fn any_entry() -> impl Strategy<Value = (u8, u64)> {
        (0..3_u8, 0..6_u64)
    }

    fn any_segment() -> impl Strategy<Value = Segment> {
        (0..3_u8, 0..6_u64, 0..6_u64)
            .prop_map(|(of, from, count)| Segment::new(session(of), from, from + count))
    }

    proptest! {
        #[test]
        fn labels_are_those_of_a_plain_map(
            steps in vec((any_entry(), option::of("[a-c]")), 0..30),
            segments in vec(any_segment(), 0..5),
        ) {
            let (mut labels, mut map) = (Labels::default(), BTreeMap::new());
            for ((of, number), text) in steps {
                labels.set(Origin { session: session(of), number }, Timestamp::UNIX_EPOCH, text.clone());
                match text {
                    Some(text) => drop(map.insert((session(of), number), text)),
                    None => drop(map.remove(&(session(of), number))),
                }
            }
            prop_assert_eq!(labels.len(), map.len());
            prop_assert_eq!(labels.is_empty(), map.is_empty());
            let entries: Vec<(SessionId, u64)> = segments
                .iter()
                .flat_map(|segment| (segment.from..segment.to).map(|number| (segment.session, number)))
                .collect();
            for (of, number) in (0..3).flat_map(|of| (0..12).map(move |number| (session(of), number))) {
                let text = |labels: &Labels| labels.of(of, number).map(|label| label.text.clone());
                let expected = map.get(&(of, number)).cloned();
                prop_assert_eq!(text(&labels), expected.clone());
                let is_within = entries.contains(&(of, number));
                prop_assert_eq!(text(&labels.within(&segments)), expected.filter(|_| is_within));
            }
            let placed: Vec<_> =
                labels.placed(&segments).into_iter().map(|(index, label)| (index, label.text.clone())).collect();
            let expected: Vec<_> = (0..)
                .zip(&entries)
                .filter_map(|(index, entry)| Some((index, map.get(entry)?.clone())))
                .collect();
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn a_label_says_something_on_one_line_and_is_short() {
        let limits = Limits { label_bytes: 4, ..Limits::default() };
        let refusal = |text: &str| validate_label(text, &limits).unwrap_err().to_string();
        assert_eq!(validate_label("good", &limits), Ok(()));
        insta::assert_snapshot!(refusal(" "), @"label is not valid: it says nothing");
        insta::assert_snapshot!(refusal("gööd"), @"label is not valid: it has 6 bytes; `label-bytes` allows 4");
        insta::assert_snapshot!(refusal("a\nb"), @"label is not valid: it has a control character");
    }

    #[test]
    fn a_session_has_so_many_labels() {
        let limits = Limits { labels: 1, ..Limits::default() };
        let entry = |number| Origin { session: session(1), number };
        let mut labels = Labels::default();
        assert_eq!(check_room(&labels, entry(0), &limits), Ok(()));
        labels.set(entry(0), Timestamp::UNIX_EPOCH, Some("good".to_owned()));
        assert_eq!(check_room(&labels, entry(0), &limits), Ok(()), "it may have another");
        insta::assert_snapshot!(check_room(&labels, entry(1), &limits).unwrap_err(), @"label is not valid: the session has 1 already; `labels` allows no more: take one off first");
    }
}
