//! A conformance runner for ARCP runtimes. It sees a runtime from outside alone, over WebSocket or the
//! standard streams of a child process, and knows both dialects: A (`docs/draft-arcp-01.md`, protocol 1.0)
//! and B (`draft-arcp-1.1`, with the details of draft-02).
//!
//! It depends on no other crate of the workspace, so that a mistake in how Mainstay reads the specification
//! cannot hide in both.

mod a;
mod b;
mod json;
mod peer;
mod probe;
mod report;
mod runner;
mod scenario;
mod settings;
mod tls;
mod transport;

pub use report::{Colour, Finding, Report};
pub use runner::{run, select, speaks};
pub use scenario::{Dialect, Frame, FrameKind, Outcome, Scenario, Word};
pub use settings::{Settings, Work};
pub use tls::{ClientIdentity, TlsClient, TlsError};
pub use transport::{Target, TransportError};

/// Returns every scenario that the runner has, in the order of the specification.
pub fn scenarios() -> Vec<Scenario> {
    let mut all: Vec<_> = a::scenarios().into_iter().chain(b::scenarios()).collect();
    let numbers =
        |section: &str| section.split('.').map(|each| each.parse().unwrap_or(0)).collect::<Vec<u32>>();
    all.sort_by_key(|each| (each.dialect() == Dialect::B, numbers(each.section())));
    all
}
