//! Daemons killed at seeded moments of stories: what runs goes on, what it puts out is stored whole and in order, and every command has
//! one outcome.
//!
//! [`stories`] has what goes on, [`language`] the code for it, [`agent`] the turns of agents, [`build`] builds. [`clients`] send again what
//! has no answer, [`daemons`] are started and killed as a [`plan`] says, and [`verdict`] holds the events against what was to come of it.
//! `cargo xtask kills` runs many moments; without its variables each kind of session has a few.

mod agent;
mod build;
mod clients;
mod daemons;
mod language;
mod plan;
mod stage;
mod stories;
mod verdict;

use std::time::Instant;

use language::Language;
use plan::Random;
use stage::Stage;

use crate::support::World;

/// The seed of the first moment, where `MAINSTAY_KILLS_SEED` does not say another.
const SEED: u64 = 27;
/// After so many faults of one kind of session no more are looked for.
const KEPT_FAULTS: usize = 8;

#[test]
fn scripted_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    of_language(Language::Scripted, 12, World::scripted);
}

#[test]
fn fsharp_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    of_language(Language::FSharp, 4, World::new);
}

#[test]
fn python3_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    of_language(Language::Python, 6, World::with_jupyter);
}

#[test]
fn xpython_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    of_language(Language::XeusPython, 3, World::with_jupyter);
}

#[test]
fn pi_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    explore("pi", 3, agent::Conversation::begin, agent::Conversation::play);
}

#[test]
#[ignore = "each build takes seconds; `cargo xtask kills` runs it"]
fn project_sessions_go_on_over_daemons_that_are_killed_at_seeded_moments() {
    explore("project", 1, build::Project::begin, build::Project::play);
}

fn of_language(language: Language, few: u64, open: fn() -> World) {
    explore(language.kind(), few, move || Stage::begin(language, open()), Stage::play);
}

/// Plays moments, each of a seed of its own. After one that went wrong the next is played in a home of its own.
fn explore<S>(
    kind: &str,
    few: u64,
    begin: impl Fn() -> S,
    play: impl Fn(&mut S, u64, &mut Random) -> Result<String, String>,
) {
    let moments = number("MAINSTAY_KILLS").unwrap_or(few);
    let first = number("MAINSTAY_KILLS_SEED").unwrap_or(SEED);
    let (mut stage, mut faults, began) = (None, 0, Instant::now());
    for seed in first..first.saturating_add(moments) {
        let stage_now = stage.get_or_insert_with(&begin);
        match play(stage_now, seed, &mut Random::of(seed)) {
            Ok(played) => println!("{kind} {seed} at {:.1} s: {played}", began.elapsed().as_secs_f64()),
            Err(fault) => {
                println!("{kind} {seed} FAILED\n{fault}\n");
                stage = None;
                faults += 1;
            }
        }
        if faults == KEPT_FAULTS {
            break;
        }
    }
    assert_eq!(faults, 0, "moments of {kind} that went wrong");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}
