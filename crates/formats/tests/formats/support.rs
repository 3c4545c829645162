//! The events of a session, as tests of files need them.

use mainstay_model::{
    CommandId, Event, EventBody, JobId, Metadata, Position, Principal, Seq, SessionId, SessionKind, Source,
    Timestamp,
};
use uuid::Uuid;

pub(crate) fn session_id() -> SessionId {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

pub(crate) fn job_id(number: u128) -> JobId {
    JobId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn command_id(number: usize) -> CommandId {
    CommandId::new(format!("c{number}")).unwrap()
}

pub(crate) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The first event of an F# session.
pub(crate) fn creation() -> Event {
    let body = EventBody::SessionCreated {
        kind: SessionKind::fsharp(),
        name: "demo".to_owned(),
        working_directory: "/home/ada/demo".to_owned(),
        project: Some("/home/ada/demo/demo.fsproj".to_owned()),
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    };
    let source = Source::Client { principal: Principal::local(), name: "cli".to_owned() };
    let metadata = Metadata { source, correlation: None, causation: None, environment: None };
    Event { session: session_id(), seq: Seq(1), position: Position(1), at: second(0), metadata, body }
}
