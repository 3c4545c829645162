//! `cargo xtask soak`: a mixed load with kills against the real daemon, from outside, that ends with a verdict.
//!
//! [`conductor`] leads: slices of load with kills, and rest points between them. [`load`] has the clients, [`agent`] those that speak MCP,
//! [`followers`] those that follow events. What they are told stands in [`book`] and [`history`], which know a contradiction when they see one.
//! [`processes`] looks at the daemon through `/proc`, [`verdict`] says whether it grew, [`report`] shows it all. [`installation`] is the program
//! under test, [`rpc`] the way to it.

mod agent;
mod book;
mod conductor;
mod followers;
mod gate;
mod history;
mod installation;
mod load;
mod options;
mod processes;
mod random;
mod report;
mod rpc;
mod stage;
mod verdict;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conductor::{Conductor, Reckoning};
use gate::held;
use history::Cursors;
use installation::Installation;
use options::Options;
use processes::Usage;
use report::Report;
use signal_hook::consts::{SIGINT, SIGTERM};
use stage::Stage;

use crate::command::{cargo, run as run_command, step};
use crate::failure::Failure;
use crate::tools;

const CLIENTS: u64 = 6;
/// Who follows one session after another; one more follows all.
const FOLLOWERS: u64 = 2;
/// How often the daemon is looked at.
const LOOKS: Duration = Duration::from_secs(1);
/// How many looks there are between two lines of progress.
const LOOKS_A_LINE: u32 = 5;

/// Soaks the release build; fails where anything was wrong.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let any_seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let options = Options::read(arguments, any_seed)?;
    let tools = step("what the soak needs", || tools::provide(&[]))?;
    step("the release build", || {
        run_command(
            &mut cargo(["build", "--release", "--package", "mainstay"]),
            "install Rust from https://rustup.rs",
        )
    })?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    let dotnet = tools.dotnet();
    let installation = Installation::prepare(&target, target.join("release/mainstay"), dotnet)?;
    soak(installation, &options)
}

fn soak(installation: Installation, options: &Options) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(Failure::at(Path::new("signals")))?;
    }
    let followers = usize::try_from(FOLLOWERS + 1).unwrap_or_default();
    let clients = usize::try_from(CLIENTS).unwrap_or_default();
    let stage = Stage::new(installation, options.seed, clients, followers);
    let began = Instant::now();
    eprintln!(
        "── soaking for {} s with seed {}; Ctrl-C ends it in order",
        options.length.as_secs(),
        options.seed
    );
    let (reckoning, peak) = play(&stage, options.length, &interrupted);
    let lasted = began.elapsed();
    let mut faults = stage.faults();
    faults.extend(verdict::growth(&reckoning.rests));
    let was_interrupted = interrupted.load(Ordering::Relaxed);
    let report =
        Report { stage: &stage, lasted, was_interrupted, peak, reckoning: &reckoning, faults: &faults };
    report.print();
    if let Some(file) = &options.json {
        std::fs::write(file, format!("{:#}\n", report.json())).map_err(Failure::at(file))?;
    }
    if faults.is_empty() {
        return Ok(());
    }
    let home = stage.installation.home();
    Err(Failure::Unsound { faults: faults.len(), home })
}

/// Lets everyone play their part until the conductor is through. Gives the most the daemon was seen to use, too.
fn play(stage: &Stage, length: Duration, interrupted: &AtomicBool) -> (Reckoning, Usage) {
    let cursors = Mutex::new(Cursors::default());
    let (peak, is_over) = (Mutex::new(Usage::default()), AtomicBool::new(false));
    let reckoning = thread::scope(|scope| {
        for number in 1..=CLIENTS {
            scope.spawn(move || load::work(stage, number));
        }
        for number in 1..=FOLLOWERS {
            scope.spawn(move || followers::follow_each(stage, CLIENTS + number));
        }
        scope.spawn(|| followers::follow_all(stage, CLIENTS + FOLLOWERS + 1, &cursors));
        scope.spawn(|| watch(stage, length, &peak, &is_over));
        let reckoning = Conductor::new(stage, &cursors, interrupted, length).lead();
        stage.load.end();
        stage.following.end();
        is_over.store(true, Ordering::Relaxed);
        reckoning
    });
    let peak = *held(&peak);
    (reckoning, peak)
}

/// Looks at the daemon now and then, and says how far it is.
fn watch(stage: &Stage, length: Duration, peak: &Mutex<Usage>, is_over: &AtomicBool) {
    let began = Instant::now();
    for look in 1_u32.. {
        thread::sleep(LOOKS);
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let usage = stage.installation.daemon().and_then(|daemon| processes::usage(daemon.pid));
        if let Some(usage) = usage {
            let mut peak = held(peak);
            *peak = peak.or_more(usage);
        }
        if look.is_multiple_of(LOOKS_A_LINE) {
            report::progress(stage, began.elapsed(), length, usage);
        }
    }
}
