//! ARCP over WebSocket with scripted workers. Each dialect is a module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod a;
mod a_artifacts;
mod a_backpressure;
mod a_edges;
mod a_elevations;
mod a_handoff;
mod a_interrupts;
mod a_leases;
mod a_observers;
mod a_quorum;
mod a_refusals;
mod a_schedules;
mod a_stream_cancellation;
mod a_streams;
mod b;
mod b_bounds;
mod b_leases;
mod credentials;
mod support;
