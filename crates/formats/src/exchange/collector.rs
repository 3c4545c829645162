//! Picking out of a session's events what is exported.

use super::item::{ExportedEvent, Item};
use mainstay_model::ask::Raiser;
use mainstay_model::event::{Event, EventBody};
use mainstay_model::id::{AskId, JobId, SessionKind};
use mainstay_model::transcribe::Transcriber;

/// Picks out of a session's events what is exported.
#[derive(Debug)]
pub struct Collector {
    kind: SessionKind,
    transcriber: Transcriber,
    cell: Option<Cell>,
}

#[derive(Debug)]
struct Cell {
    job: JobId,
    asks: Vec<AskId>,
    events: Vec<ExportedEvent>,
}

impl Collector {
    /// For a session of this kind.
    pub fn new(kind: SessionKind) -> Self {
        Self { kind, transcriber: Transcriber::default(), cell: None }
    }

    /// Takes in the next event; gives what is complete with it.
    pub fn push(&mut self, event: &Event) -> Option<Item> {
        let entries = self.transcriber.push(&self.kind, event);
        let said = ExportedEvent { at: event.at, body: event.body.clone() };
        match &event.body {
            EventBody::EvalRequested { job, .. } => {
                self.cell = Some(Cell { job: *job, asks: Vec::new(), events: vec![said] });
                None
            }
            EventBody::SessionReset | EventBody::SessionHardReset => {
                self.cell = None;
                Some(Item::Reset { at: event.at })
            }
            EventBody::MessageAdded(_) | EventBody::TranscriptCompacted(_) => {
                let entries = entries.iter().map(|entry| entry.entry.hash()).collect();
                Some(Item::Message { entries, event: said })
            }
            body => {
                let cell = self.cell.as_mut()?;
                if !cell.has(body) {
                    return None;
                }
                cell.events.push(said);
                body.job_end()?;
                let Cell { events, .. } = self.cell.take()?;
                let entries = entries.iter().map(|entry| entry.entry.hash()).collect();
                Some(Item::Cell { entries, events })
            }
        }
    }
}

impl Cell {
    /// Whether an event belongs to it.
    fn has(&mut self, body: &EventBody) -> bool {
        match body {
            EventBody::AskRaised(ask) => {
                let is_own = matches!(ask.raiser, Raiser::Job { job } if job == self.job);
                self.asks.extend(is_own.then_some(ask.ask));
                is_own
            }
            EventBody::AskVoted { ask, .. } | EventBody::AskEnded { ask, .. } => self.asks.contains(ask),
            body => body.job_part().is_some_and(|(job, _)| job == self.job),
        }
    }
}
