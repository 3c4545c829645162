//! ARCP in dialect B over the real program and a real WebSocket: a job there and back, ten thousand jobs at once, a thousand subscribers of one
//! job, and the resume of a hundred thousand messages. All of it is durable. `cargo xtask bench` runs it with the release build.
//!
//! Its arguments name the subjects, else it measures all: `invoke`, `jobs`, `subscribers`, `resume`. [`sizes`] has what makes a run smaller.
//! `ARCP_PYTHON` names a Python with the public SDK, whose runtime is then measured beside ours.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

mod client;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../session/daemon.rs"]
mod daemon;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../jupyter/direct.rs"]
mod direct;
#[path = "../session/disk.rs"]
mod disk;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../jupyter/figures.rs"]
mod figures;
mod invoke;
mod jobs;
mod kernel;
#[path = "../shared/memory.rs"]
mod memory;
mod python_sdk;
mod resume;
mod sizes;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../session/spread.rs"]
mod spread;
mod subscribers;
mod world;

use std::path::Path;

use sizes::Sizes;
use world::World;

type Failure = Box<dyn std::error::Error>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        // `cargo test --benches` only wants to know that it builds.
        words if words.iter().any(|word| word == "--test") => {}
        [kernel, file, ..] if kernel == kernel::COMMAND => kernel::serve(Path::new(file)),
        words => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let named: Vec<&str> =
                words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
            let is_wanted = |subject: &str| named.is_empty() || named.contains(&subject);
            runtime.block_on(measure(is_wanted));
        }
    }
}

async fn measure(is_wanted: impl Fn(&str) -> bool) {
    let sizes = Sizes::of_environment();
    if is_wanted("invoke") {
        invoke::measure(&World::new(), &sizes).await;
    }
    if is_wanted("jobs") {
        jobs::measure(&sizes).await;
    }
    if is_wanted("subscribers") {
        subscribers::measure(&World::new(), &sizes).await;
    }
    if is_wanted("resume") {
        resume::measure(World::new(), &sizes).await;
    }
}
