//! The scenarios of dialect A (draft-arcp-01, protocol 1.0).

mod artifacts;
mod cancellation;
mod envelope;
mod extensions;
mod handshake;
mod human;
mod jobs;
mod permissions;
mod resume;
mod schedule;
mod session;
mod streams;
mod subscription;

pub(crate) use session::Session;

use crate::scenario::Scenario;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let files = [
        envelope::scenarios(),
        handshake::scenarios(),
        jobs::scenarios(),
        streams::scenarios(),
        cancellation::scenarios(),
        schedule::scenarios(),
        human::scenarios(),
        permissions::scenarios(),
        subscription::scenarios(),
        artifacts::scenarios(),
        resume::scenarios(),
        extensions::scenarios(),
    ];
    files.into_iter().flatten().collect()
}
