//! Sessions as their clients see them, over the real store and a worker that does what its code says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod acknowledgements;
mod adoption;
mod agents;
mod anything;
mod applications;
mod asks;
mod breakers;
mod cancelling;
mod choosing;
mod clients;
mod commands;
mod comms;
mod conversations;
mod creations;
mod delegations;
mod deletions;
mod elevations;
mod evals;
mod following;
mod forks;
mod import_export;
mod insertions;
mod labels;
mod lanes;
mod losses;
mod merges;
mod once;
mod rebuilds;
mod reloads;
mod repeats;
mod resets;
mod restarts;
mod schedules;
mod scripted;
mod sharing;
mod store_double;
mod stores;
mod support;
mod survivor;
mod swaps;
mod upstream;
mod validity;
mod warming;
mod withheld;
