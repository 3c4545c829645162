//! What files of other programs come to, and what a notebook says of what came of its cells.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod import;
mod outputs;
mod support;
