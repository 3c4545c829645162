//! HTTP for editors, pages and scripts: commands in, streams out. Source: seed 000, "The Tao of Datastar"; protocols/sagefs.md, "HTTP".
//!
//! A POST hands a command over and is answered `202` with where to hear of it ([`submission`]); a GET is a stream of Datastar's events
//! ([`streams`], [`signals`], [`flow`]), the same over WebSocket ([`socket`]), or reads what is there now ([`queries`]). [`routes`] lists every endpoint ([`endpoint`]), of which the router and the
//! document of the API ([`openapi`]) are made. [`caller`] says who asks and which session is meant, [`body`] reads what was sent, [`problem`] is the one
//! table from errors to answers, and [`coding`] compresses them. Commands
//! and sockets speak JSON or BARE ([`media`], [`bare`]).

mod agents;
mod bare;
mod body;
mod buffers;
mod caller;
mod checks;
mod coding;
mod commands;
mod create;
mod daemon;
mod diagnostics;
mod encode_cache;
mod endpoint;
mod explore;
mod flow;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod health_record;
mod history;
mod import_export;
mod media;
mod metrics;
mod notebooks;
mod openapi;
mod params;
mod portable;
mod prefer;
mod problem;
mod protocol;
mod queries;
mod recorders;
mod requested_kind;
mod routes;
mod shared;
mod signals;
mod socket;
mod streams;
mod submission;
mod web;

pub use daemon::HttpDaemon;
pub use metrics::{Gauge, gauges};
pub use openapi::schemas;
pub use protocol::Http;
pub use recorders::{SECONDS, record_also};
pub use routes::operations_of_endpoints;
pub use shared::Shared;
