//! What stands behind an address.

use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::ControlFlow;

use mainstay_formats::exchange::{ExportedEvent, Item, Kernel, item_markdown};
use mainstay_model::event::EvalEnd;
use mainstay_model::{Diagnostic, Error, SessionId, Validity};
use serde::Serialize;

use super::JSON;
use super::uri::{Address, Part};
use crate::call::Call;
use crate::cells::{self, Place};
use crate::diagnostic::{DiagnosticLine, is_for_people};
use crate::events::GetRecentEvents;
use crate::lifecycle::ListSessions;
use crate::status::GetStatus;
use crate::text::{TEXT_BYTES, shortened};
use crate::tool::Tool;

/// The type of what is written for people and models.
pub(crate) const MARKDOWN: &str = "text/markdown";

/// How many cells and messages a page has where it is not said.
const USUAL: usize = 20;
/// The most on one page.
const MOST: usize = 100;
/// The most bytes of one of many: its own address has more of it.
const ITEM_BYTES: usize = 4 * 1024;
/// The most remarks that are read at once, of the newest cells.
const REMARKS: usize = 100;

/// The text of a resource.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) kind: &'static str,
}

/// Reads what an address stands for; none where its session is there and that is not.
pub(super) async fn read(call: &Call, address: &Address) -> Result<Option<Text>, Error> {
    let (reference, part) = match address {
        Address::Sessions => return json(&ListSessions { all: true }.carry_out(call).await?).map(Some),
        Address::Session { session, part } => (session, *part),
    };
    let session = call.client().resolve(reference).await?;
    let session_id = Some(session.to_string());
    match part {
        Part::Status => {
            let status = GetStatus { session_id, verbose: Some(true), wait: None };
            json(&status.carry_out(call).await?).map(Some)
        }
        Part::Events { since } => {
            let events = GetRecentEvents { session_id, since, count: None };
            json(&events.carry_out(call).await?).map(Some)
        }
        Part::Diagnostics => json(&diagnostics(call, session).await?).map(Some),
        Part::Transcript { from, count } => {
            let page = page(call, session, from, count.unwrap_or(USUAL).clamp(1, MOST)).await?;
            Ok(Some(Text { text: page.told(session, count), kind: MARKDOWN }))
        }
        Part::Cell { number } => {
            let (header, item) = cells::find(call.client(), session, number).await?;
            let Some((place, item)) = item else { return Ok(None) };
            let mut text = shortened(item_markdown(&Kernel::of_header(&header), &item), TEXT_BYTES);
            let validity = cells::validities(call.client(), session, &[place]).await?.pop().flatten();
            push_mark(&mut text, validity);
            Ok(Some(Text { text: text.trim_start().to_owned(), kind: MARKDOWN }))
        }
    }
}

fn json(answer: &impl Serialize) -> Result<Text, Error> {
    let text = serde_json::to_string(answer)
        .map_err(|error| Error::DaemonFailed { reason: format!("an answer is no JSON: {error}") })?;
    Ok(Text { text, kind: JSON })
}

/// A stretch of a transcript.
struct Page {
    name: String,
    items: VecDeque<ResourceItem>,
    bytes: usize,
    /// Whether there is more behind it.
    more: bool,
}

/// A cell, a message, or a reset, as it is shown.
struct ResourceItem {
    place: Place,
    text: String,
}

async fn page(call: &Call, session: SessionId, from: Option<u64>, count: usize) -> Result<Page, Error> {
    let kernel = Kernel::of_session(&call.client().status(session).await?.session);
    let mut page = Page { name: String::new(), items: VecDeque::new(), bytes: 0, more: false };
    let header = cells::visit(call.client(), session, |place, item| {
        let shown = || ResourceItem { place, text: told(&kernel, place.number, &item) };
        match from {
            Some(from) if place.number < from => ControlFlow::Continue(()),
            Some(_) => page.fill(shown(), count),
            None => page.roll(shown(), count),
        }
    })
    .await?;
    let places: Vec<Place> = page.items.iter().map(|shown| shown.place).collect();
    let validities = cells::validities(call.client(), session, &places).await?;
    page.items.iter_mut().zip(validities).for_each(|(shown, validity)| push_mark(&mut shown.text, validity));
    Ok(Page { name: header.name, ..page })
}

/// Says below a cell that what it gave may hold no longer.
fn push_mark(text: &mut String, validity: Option<Validity>) {
    if let Some(mark) = validity.and_then(Validity::mark) {
        // Writing to a text never fails.
        write!(text, "\n*{mark}*\n").ok();
    }
}

fn told(kernel: &Kernel, number: u64, item: &Item) -> String {
    let text = shortened(item_markdown(kernel, item), ITEM_BYTES);
    match item {
        Item::Cell { .. } => format!("\n### Cell {number}\n{text}"),
        Item::Message { .. } => format!("\n### Message {number}\n{text}"),
        Item::Reset { .. } | Item::Label { .. } | Item::End { .. } => text,
    }
}

impl Page {
    /// Takes another behind the last, until it is full.
    fn fill(&mut self, shown: ResourceItem, count: usize) -> ControlFlow<()> {
        if !self.items.is_empty() && (self.items.len() == count || self.bytes + shown.text.len() > TEXT_BYTES)
        {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.bytes += shown.text.len();
        self.items.push_back(shown);
        ControlFlow::Continue(())
    }

    /// Takes another behind the last, and lets go of the first where it is full.
    fn roll(&mut self, shown: ResourceItem, count: usize) -> ControlFlow<()> {
        self.bytes += shown.text.len();
        self.items.push_back(shown);
        while self.items.len() > 1 && (self.items.len() > count || self.bytes > TEXT_BYTES) {
            let Some(gone) = self.items.pop_front() else { break };
            self.bytes -= gone.text.len();
        }
        ControlFlow::Continue(())
    }

    /// The page, and what to read next.
    fn told(&self, session: SessionId, count: Option<usize>) -> String {
        let mut text = format!("# {}\n", self.name);
        self.items.iter().for_each(|shown| text.push_str(&shown.text));
        let (Some(first), Some(last)) = (self.items.front(), self.items.back()) else {
            text.push_str("\nThere is nothing.\n");
            return text;
        };
        let (first, last) = (first.place.number, last.place.number);
        let from = |from| {
            let part = Part::Transcript { from: Some(from), count };
            Address::of(session.to_string(), part).to_string()
        };
        let before = count.unwrap_or(USUAL).clamp(1, MOST) as u64;
        // Writing to a text never fails.
        if first > 1 {
            write!(text, "\nBefore: {}\n", from(first.saturating_sub(before).max(1))).ok();
        }
        if self.more {
            write!(text, "\nNext: {}\n", from(last + 1)).ok();
        }
        text
    }
}

/// What the compiler remarked on the newest cells.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remarks {
    session_id: String,
    /// The diagnostics, from the oldest on.
    diagnostics: VecDeque<Remark>,
    /// How many older ones there are.
    #[serde(skip_serializing_if = "is_none")]
    left_out: usize,
}

const fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Remark {
    cell: u64,
    #[serde(flatten)]
    diagnostic: DiagnosticLine,
}

async fn diagnostics(call: &Call, session: SessionId) -> Result<Remarks, Error> {
    let mut remarks = Remarks { session_id: session.short(), diagnostics: VecDeque::new(), left_out: 0 };
    cells::visit(call.client(), session, |place, item| {
        match &item {
            Item::Cell { events, .. } => {
                let found = events.iter().flat_map(remarked).filter(|diagnostic| is_for_people(diagnostic));
                let found = found.cloned().map(DiagnosticLine::from);
                remarks.diagnostics.extend(found.map(|diagnostic| Remark { cell: place.number, diagnostic }));
                let over = remarks.diagnostics.len().saturating_sub(REMARKS);
                remarks.left_out += remarks.diagnostics.drain(..over).count();
            }
            Item::Reset { .. } => {
                remarks.diagnostics.clear();
                remarks.left_out = 0;
            }
            Item::Message { .. } | Item::Label { .. } | Item::End { .. } => {}
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(remarks)
}

/// What the compiler remarked on a cell, where this event says it.
pub(crate) fn remarked(said: &ExportedEvent) -> &[Diagnostic] {
    match said.body.eval_end() {
        Some((_, EvalEnd::Completed { result } | EvalEnd::Failed { result, .. })) => &result.diagnostics,
        Some((_, EvalEnd::Cancelled(_) | EvalEnd::Interrupted)) | None => &[],
    }
}
