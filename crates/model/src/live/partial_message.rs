//! A message that is being said.

use std::collections::{BTreeMap, BTreeSet};

use super::ViewChange;
use crate::agent::ToolCall;
use crate::message::{Part, PartRole};

/// A message as far as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialMessage {
    /// The parts that have begun, by their numbers.
    pub parts: BTreeMap<u32, PartialPart>,
}

/// A part of a message as far as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialPart {
    /// What kind of part it is.
    pub role: PartRole,
    /// The call that the part is, where it is one.
    pub call: Option<ToolCall>,
    /// The text so far.
    pub text: String,
    /// Whether a later part has begun, or the message is complete.
    pub has_ended: bool,
}

impl PartialMessage {
    /// Takes in a change. The message is empty again once it is complete, or its job has ended.
    pub fn apply(&mut self, change: &ViewChange<'_>) {
        match change {
            ViewChange::PartBegan { part, role, call, .. } => {
                let begun =
                    || PartialPart { role: *role, call: call.clone(), text: String::new(), has_ended: false };
                self.parts.entry(*part).or_insert_with(begun);
            }
            ViewChange::PartGrew { part, text, .. } => {
                if let Some(part) = self.parts.get_mut(part) {
                    part.text.push_str(text);
                }
            }
            ViewChange::PartEnded { part, .. } => {
                if let Some(part) = self.parts.get_mut(part) {
                    part.has_ended = true;
                }
            }
            ViewChange::JobBegan { .. } | ViewChange::MessageAdded { .. } | ViewChange::JobEnded { .. } => {
                self.parts.clear();
            }
            ViewChange::ToolBegan { .. }
            | ViewChange::ToolProgressed { .. }
            | ViewChange::ToolAnswered { .. }
            | ViewChange::Event(_) => {}
        }
    }

    /// The parts before this number that have not ended.
    pub(super) fn unended_before(&self, number: u32) -> impl Iterator<Item = u32> {
        let parts = self.parts.range(..number);
        parts.filter(|(_, part)| !part.has_ended).map(|(number, _)| *number)
    }

    /// The parts that have not ended.
    pub(super) fn unended(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().filter(|(_, part)| !part.has_ended).map(|(number, _)| *number)
    }

    /// For each part of the complete message, the part that was said of it. An agent may leave parts out of a complete message that it had
    /// begun to say, so what is not found at its own number is found by what it says.
    pub(super) fn find(&self, whole: &[Part]) -> Vec<Option<u32>> {
        let is_at_its_number = |(number, part): (u32, &Part)| {
            self.parts.get(&number).is_some_and(|said| said.may_be(part)).then_some(number)
        };
        let at_their_numbers: Vec<Option<u32>> = (0..).zip(whole).map(is_at_its_number).collect();
        let mut taken: BTreeSet<u32> = at_their_numbers.iter().flatten().copied().collect();
        let mut moved = |part: &Part| {
            let is_it =
                |(number, said): &(&u32, &PartialPart)| !taken.contains(number) && said.is_beginning_of(part);
            let number = self.parts.iter().find(is_it).map(|(number, _)| *number);
            taken.extend(number);
            number
        };
        let both = at_their_numbers.into_iter().zip(whole);
        both.map(|(found, part)| found.or_else(|| moved(part))).collect()
    }

    /// The number for a part of which nothing was said, which a complete message has at this index.
    pub(super) fn number_for(&self, index: u32) -> u32 {
        match (self.parts.contains_key(&index), self.parts.last_key_value()) {
            (true, Some((last, _))) => last.saturating_add(1),
            (true, None) | (false, _) => index,
        }
    }
}

impl PartialPart {
    /// Whether this part and the complete one can be the same.
    fn may_be(&self, whole: &Part) -> bool {
        match self.is_same_call(whole) {
            Some(is_same_call) => is_same_call,
            None => {
                self.role == whole.role
                    && (whole.text.starts_with(&self.text) || self.text.starts_with(&whole.text))
            }
        }
    }

    /// Whether the complete part says what this one has begun to say.
    fn is_beginning_of(&self, whole: &Part) -> bool {
        self.is_same_call(whole).unwrap_or_else(|| {
            self.role == whole.role && !self.text.is_empty() && whole.text.starts_with(&self.text)
        })
    }

    /// Whether both are the same call; none where this part is not known to be a call.
    fn is_same_call(&self, whole: &Part) -> Option<bool> {
        let call = self.call.as_ref()?;
        Some(self.role == whole.role && whole.call_id() == Some(call.call.as_str()))
    }
}
