//! The scenarios of dialect B (draft-arcp-1.1). Where draft-02 alone has a detail, the requirement says so.

mod control;
mod events;
mod hello;
mod leases;
mod lifecycle;
mod listing;
mod resume;
mod session;
mod submission;
mod subscription;
mod wire;

pub(crate) use session::Session;

use crate::scenario::Scenario;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let files = [
        wire::scenarios(),
        hello::scenarios(),
        resume::scenarios(),
        control::scenarios(),
        listing::scenarios(),
        submission::scenarios(),
        lifecycle::scenarios(),
        subscription::scenarios(),
        events::scenarios(),
        leases::scenarios(),
    ];
    files.into_iter().flatten().collect()
}
