//! The coding agents that people use, each as npm has it, with Mainstay as their server over stdio and the test as their model. What counts is what the
//! model is shown: each story asserts on that, and has a golden for each agent.
//!
//! `cargo xtask test` runs codex, opencode and Gemini; `cargo xtask clients` all five, and what waits for minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod clients;
mod conversation;
mod golden;
mod model;
mod stories;
#[path = "../support/mod.rs"]
mod support;
mod wire;

/// The stories of one agent. `$ignored` is why those of one that not every run installs are not in it.
macro_rules! stories_of {
    ($module:ident, $client:ident $(, $ignored:literal)?) => {
        mod $module {
            use crate::{clients::$client, stories};

            stories_of!(@ $client [$($ignored)?] works_in_a_session survives_the_death_of_the_daemon leaves_code_behind_and_finds_it_again two_work_in_one_session);

            #[test]
            #[ignore = "takes minutes: `cargo xtask clients`"]
            fn waits_for_silent_code() {
                stories::waits_for_silent_code(&$client);
            }
        }
    };
    (@ $client:ident [] $($story:ident)+) => { $(
        #[test]
        fn $story() {
            stories::$story(&$client);
        }
    )+ };
    (@ $client:ident [$ignored:literal] $($story:ident)+) => { $(
        #[test]
        #[ignore = $ignored]
        fn $story() {
            stories::$story(&$client);
        }
    )+ };
}

stories_of!(codex, Codex);
stories_of!(opencode, Opencode);
stories_of!(gemini, Gemini);
stories_of!(claude, Claude, "is not free software: `cargo xtask clients claude`");
stories_of!(qwen, Qwen, "is much like gemini: `cargo xtask clients qwen`");
