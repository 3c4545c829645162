//! What is said in a turn of an agent, in its cell: the parts of messages, and the tools that are called.

use std::collections::BTreeSet;

use mainstay_model::agent::ToolCall;
use mainstay_model::message::{BLOCK, CALL, IS_ERROR, TOOL, output_text};
use mainstay_model::{Message, Part, PartRole};
use serde_json::Value;

use super::{Body, Cell, CellChanges, CellPart, ToolState};

impl Cell {
    /// A part of a message begins to be said.
    pub(in super::super) fn begin_part(
        &mut self,
        number: u32,
        role: PartRole,
        call: Option<ToolCall>,
    ) -> CellChanges {
        let index = self.parts.len();
        self.open_parts.insert(number, index);
        self.parts.push(opened(role, call));
        CellChanges::part(index, true)
    }

    /// More of a part is said.
    pub(in super::super) fn grow_part(&mut self, number: u32, text: &str) -> CellChanges {
        let Some(index) = self.open_parts.get(&number).copied() else { return CellChanges::default() };
        match self.parts.get_mut(index) {
            Some(CellPart::Said { text: said, .. } | CellPart::Called { arguments: said, .. }) => {
                said.push_str(text);
                CellChanges::part(index, false)
            }
            Some(
                CellPart::Printed(_)
                | CellPart::Displayed { .. }
                | CellPart::Gone
                | CellPart::Cut { .. }
                | CellPart::Noted { .. },
            )
            | None => CellChanges::default(),
        }
    }

    /// A message that is whole takes the place of what was heard of it.
    pub(in super::super) fn add(&mut self, message: &Message) -> CellChanges {
        let Body::Work { has_messages, .. } = &mut self.body else { return CellChanges::default() };
        let is_first = !std::mem::replace(has_messages, true);
        let places: BTreeSet<usize> = std::mem::take(&mut self.open_parts).into_values().collect();
        let mut places = places.into_iter();
        let mut touched = CellChanges::default();
        for part in &message.parts {
            match part.role {
                // The prompt stands above.
                PartRole::User if is_first => {}
                PartRole::ToolResult => touched = touched.and(self.result(part)),
                PartRole::System
                | PartRole::User
                | PartRole::Assistant
                | PartRole::Thinking
                | PartRole::ToolCall => touched = touched.and(self.put(places.next(), whole(part))),
            }
        }
        // A part that was heard and is in no message stays as an empty one, so that no later part takes its name.
        for place in places {
            let empty = CellPart::Said { role: PartRole::Assistant, text: String::new(), is_open: false };
            touched = touched.and(self.put(Some(place), empty));
        }
        touched
    }

    /// Puts a part in this place, or behind all others.
    fn put(&mut self, place: Option<usize>, part: CellPart) -> CellChanges {
        match place.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, before)) => {
                *before = part;
                CellChanges::part(index, false)
            }
            None => {
                self.parts.push(part);
                CellChanges::part(self.parts.len() - 1, true)
            }
        }
    }

    /// A part of a message that nothing was heard of before.
    pub(in super::super) fn take_in(&mut self, part: &Part) {
        match part.role {
            PartRole::ToolResult => drop(self.result(part)),
            PartRole::System
            | PartRole::User
            | PartRole::Assistant
            | PartRole::Thinking
            | PartRole::ToolCall => self.parts.push(whole(part)),
        }
        // Nothing of it goes on.
        self.close();
    }

    pub(in super::super) fn result(&mut self, part: &Part) -> CellChanges {
        let tool = part.metadata.get(TOOL).and_then(Value::as_str).unwrap_or_default();
        let is_error = part.metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default();
        let (call, text) = (part.call_id().unwrap_or_default().to_owned(), words_of(part));
        let known = self.parts.iter().any(|known| known.is_call(&call));
        if !known {
            let state = ToolState::Answered { text, is_error };
            let (tool, arguments) = (tool.to_owned(), String::new());
            return self.push(CellPart::Called { id: call, tool, arguments, state });
        }
        self.answer(&call, &|state| *state = ToolState::Answered { text: text.clone(), is_error })
    }

    pub(in super::super) fn answer(&mut self, call: &str, change: &impl Fn(&mut ToolState)) -> CellChanges {
        let Some(index) = self.parts.iter().rposition(|part| part.is_call(call)) else {
            return CellChanges::default();
        };
        if let Some(CellPart::Called { state, .. }) = self.parts.get_mut(index) {
            change(state);
        }
        CellChanges::part(index, false)
    }

    /// Its turn is over: nothing is being said any more.
    pub(in super::super) fn close(&mut self) -> CellChanges {
        let mut touched = Vec::new();
        for (index, part) in self.parts.iter_mut().enumerate() {
            let has_changed = match part {
                CellPart::Said { is_open, .. } => std::mem::replace(is_open, false),
                CellPart::Called { state, .. } => match state {
                    ToolState::Said | ToolState::Runs(_) => {
                        *state = ToolState::Unanswered;
                        true
                    }
                    ToolState::Answered { .. } | ToolState::Unanswered => false,
                },
                CellPart::Printed(_)
                | CellPart::Displayed { .. }
                | CellPart::Gone
                | CellPart::Cut { .. }
                | CellPart::Noted { .. } => false,
            };
            if has_changed {
                touched.push((index, false));
            }
        }
        CellChanges { frame: false, parts: touched }
    }
}

impl CellPart {
    fn is_call(&self, call: &str) -> bool {
        matches!(self, Self::Called { id, .. } if id == call)
    }
}

/// A part that begins to be said.
fn opened(role: PartRole, call: Option<ToolCall>) -> CellPart {
    match call {
        Some(ToolCall { call, tool }) => {
            CellPart::Called { id: call, tool, arguments: String::new(), state: ToolState::Said }
        }
        None => CellPart::Said { role, text: String::new(), is_open: true },
    }
}

/// A part of a whole message.
fn whole(part: &Part) -> CellPart {
    let named = |name: &str| part.metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match part.role {
        PartRole::ToolCall => CellPart::Called {
            id: named(CALL),
            tool: named(TOOL),
            arguments: part.text.clone(),
            state: ToolState::Runs(String::new()),
        },
        PartRole::System
        | PartRole::User
        | PartRole::Assistant
        | PartRole::Thinking
        | PartRole::ToolResult => CellPart::Said { role: part.role, text: words_of(part), is_open: false },
    }
}

/// What a part says in words.
fn words_of(part: &Part) -> String {
    match part.metadata.get(BLOCK).and_then(Value::as_str) {
        None => part.text.clone(),
        Some("content") => {
            let blocks: Value = serde_json::from_str(&part.text).unwrap_or_default();
            output_text(&blocks)
        }
        Some(kind) => format!("({kind})"),
    }
}
