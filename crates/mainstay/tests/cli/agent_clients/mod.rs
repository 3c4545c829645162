//! The coding agents that people use, each as npm has it, with Mainstay as their server over stdio and the test as their model. What counts is what the
//! model is shown: each story asserts on that, and has a golden for each agent.
//!
//! `cargo xtask test` runs codex, opencode and Gemini; `cargo xtask clients` all five, and what waits for minutes.

mod clients;
mod conversation;
mod fsharp;
mod golden;
mod model;
mod stage;
mod stories;
mod wire;

/// The stories of one agent. The first reason, if any, is why `cargo xtask test` runs none of them, the second why not that of F#.
macro_rules! stories_of {
    ($module:ident, $client:ident, [$($all:literal)?] [$($fsharp:literal)?]) => {
        mod $module {
            use crate::agent_clients::{clients::$client, fsharp, stories};

            stories_of!(@ $client [$($all)?] stories works_in_a_session survives_the_death_of_the_daemon leaves_code_behind_and_finds_it_again two_work_in_one_session);
            stories_of!(@ $client [$($fsharp)?] fsharp works_in_a_project_of_fsharp);
            stories_of!(@ $client ["takes minutes: `cargo xtask clients`"] stories waits_for_silent_code);
        }
    };
    (@ $client:ident [] $stories:ident $($story:ident)+) => { $(
        #[test]
        fn $story() {
            $stories::$story(&$client);
        }
    )+ };
    (@ $client:ident [$ignored:literal] $stories:ident $($story:ident)+) => { $(
        #[test]
        #[ignore = $ignored]
        fn $story() {
            $stories::$story(&$client);
        }
    )+ };
}

stories_of!(codex, CODEX, [] []);
stories_of!(
    codex_gpt_5,
    CODEX_GPT_5,
    ["is much like codex: `cargo xtask clients codex`"]["runs in codex: `cargo xtask clients codex`"]
);
stories_of!(codex_gpt_6, CODEX_GPT_6, []["runs in codex: `cargo xtask clients codex`"]);
stories_of!(opencode, Opencode, []["runs in codex: `cargo xtask clients opencode`"]);
stories_of!(gemini, GEMINI, []["runs in codex: `cargo xtask clients gemini`"]);
stories_of!(
    claude,
    Claude,
    ["is not free software: `cargo xtask clients claude`"]["is not free software: `cargo xtask clients claude`"]
);
stories_of!(
    qwen,
    QWEN,
    ["is much like gemini: `cargo xtask clients qwen`"]["is much like gemini: `cargo xtask clients qwen`"]
);
