//! Sessions to append to, for tests and benches: a line of events with the projection they fold to.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test binary uses its part")]

use mainstay_log::{Append, Epoch, NewEvent};
use mainstay_model::decide::Answer;
use mainstay_model::{
    CommandFingerprint, CommandId, Event, EventBody, Metadata, Outcome, OutputStream, Position, Principal,
    Response, Seq, Session, SessionId, SessionKind, Source, Timestamp, WarmUpReason,
};
use tracing::Span;
use uuid::Uuid;

pub mod cells;
pub mod samples;
pub mod version1;

/// A session as its owner sees it: what it appended so far, and its epoch.
#[derive(Clone, Debug)]
pub struct Line {
    /// The id of the session.
    pub id: SessionId,
    /// Under which its owner appends.
    pub epoch: Epoch,
    /// After all that was appended; none before its creation.
    pub session: Option<Session>,
    /// When its events happen.
    pub at: Timestamp,
    /// The source of the events.
    pub source: Source,
    /// The event that accepted the newest cell.
    pub requested: Option<Seq>,
}

impl Line {
    /// The session of this number, not yet there.
    pub fn new(number: u128) -> Self {
        Self {
            id: session_id(number),
            epoch: Epoch::FIRST,
            session: None,
            at: noon(),
            source: terminal(),
            requested: None,
        }
    }

    /// The append of these events after those that are there, which the line takes for done.
    pub fn append(&mut self, bodies: Vec<EventBody>) -> Append {
        let append = self.peek(bodies);
        self.session = Some(append.projection.clone());
        append
    }

    /// The same, not taken for done.
    pub fn peek(&self, bodies: Vec<EventBody>) -> Append {
        let mut projection = self.session.clone();
        let first = self.last_seq().next();
        let event = |body| {
            let event = new_event(body);
            let metadata = Metadata { source: self.source.clone(), ..event.metadata };
            NewEvent { at: self.at, metadata, ..event }
        };
        let events: Vec<_> = bodies.into_iter().map(event).collect();
        for (seq, event) in (first.0..).zip(&events) {
            let event = placed(self.id, Seq(seq), event.clone());
            match &mut projection {
                Some(session) => session.evolve(&event),
                None => projection = Session::begin(&event),
            }
        }
        let projection = projection.expect("a line begins with a creation");
        let (outcomes, version) = (Vec::new(), projection.version);
        let (session, epoch, taken, trace) = (self.id, self.epoch, None, Span::none());
        Append { session, epoch, first, events, outcomes, version, projection, taken, trace }
    }

    /// The append that creates the session, taken for done.
    pub fn create(&mut self) -> Append {
        let body = created(&format!("session-{}", self.id.short()), "/work");
        self.append(vec![body])
    }

    /// Returns the sequence number of the newest event.
    pub fn last_seq(&self) -> Seq {
        self.session.as_ref().map_or(Seq::ZERO, |session| session.last_seq)
    }
}

pub fn session_id(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(0x0189_0a5d_0000_7000_8000_0000_0000_0000 + number))
}

/// What does the work of every session here.
pub fn kind() -> SessionKind {
    SessionKind::fsharp()
}

pub fn created(name: &str, folder: &str) -> EventBody {
    EventBody::SessionCreated {
        kind: kind(),
        name: name.to_owned(),
        working_directory: folder.to_owned(),
        project: None,
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    }
}

pub fn output(text: impl Into<String>) -> EventBody {
    EventBody::OutputProduced { job: None, stream: OutputStream::Stdout, text: text.into() }
}

pub fn warm_up() -> EventBody {
    EventBody::WarmUpStarted { reason: WarmUpReason::Started }
}

/// The answer to a command of this name.
pub fn answer(command: &str, seq: Seq) -> Answer {
    Answer {
        principal: Principal::local(),
        command: command_id(command),
        key: None,
        fingerprint: fingerprint(command),
        outcome: Outcome::Done { response: Response::Recorded { seq } },
    }
}

pub fn command_id(command: &str) -> CommandId {
    CommandId::new(command).expect("a valid id")
}

pub fn fingerprint(command: &str) -> CommandFingerprint {
    CommandFingerprint::of("session", &command)
}

pub fn new_event(body: EventBody) -> NewEvent {
    let metadata = Metadata { source: terminal(), correlation: None, causation: None, environment: None };
    NewEvent { at: noon(), metadata, body }
}

fn terminal() -> Source {
    Source::Client { principal: Principal::local(), name: "terminal".to_owned() }
}

fn noon() -> Timestamp {
    Timestamp::from_microsecond(1_763_035_200_123_456).expect("a moment")
}

fn placed(session: SessionId, seq: Seq, event: NewEvent) -> Event {
    let NewEvent { at, metadata, body } = event;
    Event { session, seq, position: Position::ZERO, at, metadata, body }
}
