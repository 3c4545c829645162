//! Tasks that meet, under many schedules. The store is in memory ([`memory_log`]), and so are workers ([`worker`]).

mod adopting;
mod following;
mod memory_log;
mod samples;
mod sessions;
mod survivor;
mod waiting;
mod worker;

use std::env;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, future};

/// Schedules of each test, of each scheduler; `MAINSTAY_SCHEDULES` says another number.
const SCHEDULES: usize = 1000;
/// How many times one schedule of the second scheduler takes the turn from a task that could go on.
const PREEMPTIONS: usize = 3;
/// What the engine's futures need.
const STACK: usize = 256 * 1024;

/// Runs a test under many schedules. One in which nothing can go on any more fails.
fn explore<F: Future<Output = ()>>(test: impl Fn() -> F + Send + Sync + Copy + 'static) {
    explore_a_part(1, test);
}

/// Runs a test that takes so many times longer than others under so many times fewer schedules.
fn explore_a_part<F: Future<Output = ()>>(part: usize, test: impl Fn() -> F + Send + Sync + Copy + 'static) {
    let schedules = env::var("MAINSTAY_SCHEDULES").ok().map_or(SCHEDULES, |number| number.parse().unwrap());
    let schedules = schedules.div_ceil(part);
    let mut config = Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    let test = move || future::block_on(test());
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(PREEMPTIONS, schedules), config).run(test);
}
