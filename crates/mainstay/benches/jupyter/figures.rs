//! What is measured of each, and the table of it.

use std::process::Child;
use std::time::Duration;

/// How often `1+1` is run.
pub(crate) const EXECUTIONS: usize = 300;
/// How many lines code prints.
pub(crate) const LINES: usize = 5_000;
/// How many sessions are idle at once.
pub(crate) const IDLE: usize = 50;

/// What was measured of one way to a kernel; what it cannot is none.
#[derive(Default)]
pub(crate) struct Figures {
    /// From the request for a session until it takes code.
    pub(crate) creation: Option<Duration>,
    /// Of each execution, from the request until it is answered.
    pub(crate) executions: Vec<Duration>,
    /// Until the first of many lines is at the client, and until all are.
    pub(crate) lines: Option<(Duration, Duration)>,
    /// How many of them came.
    pub(crate) came: usize,
    /// Megabytes of the server alone, with one session and with many.
    pub(crate) memory: Option<(f64, f64)>,
    /// Until all that a session has said is at a client that comes again.
    pub(crate) history: Option<Duration>,
}

/// A process that ends with the value.
pub(crate) struct Server(pub(crate) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.0.wait().ok();
    }
}

impl Server {
    /// Megabytes of the process alone, without kernels.
    pub(crate) fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1.024 / 1000.0
    }
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

pub(crate) fn head() {
    println!(
        "| | session created | `1+1` there and back, median | p99 | first of {LINES} lines at the client | all | lines a second | came | memory, 1 session | {IDLE} sessions | history again |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
}

impl Figures {
    /// The middle one of the executions.
    pub(crate) fn median(&self) -> Duration {
        let mut sorted = self.executions.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    pub(crate) fn print(&self, what: &str) {
        let mut sorted = self.executions.clone();
        sorted.sort_unstable();
        let p99 = ms(sorted[sorted.len() * 99 / 100]);
        let none = || "–".to_owned();
        let time = |took: Option<Duration>| took.map_or_else(none, |took| format!("{:.0} ms", ms(took)));
        let rate = |all: Duration| format!("{:.0}", LINES as f64 / all.as_secs_f64());
        let megabytes = |memory: f64| format!("{memory:.0} MB");
        let cells = [
            what.to_owned(),
            time(self.creation),
            format!("{:.2} ms", ms(self.median())),
            format!("{p99:.1} ms"),
            time(self.lines.map(|(first, _)| first)),
            time(self.lines.map(|(_, all)| all)),
            self.lines.map_or_else(none, |(_, all)| rate(all)),
            self.came.to_string(),
            self.memory.map_or_else(none, |(one, _)| megabytes(one)),
            self.memory.map_or_else(none, |(_, many)| megabytes(many)),
            time(self.history),
        ];
        println!("| {} |", cells.join(" | "));
    }
}
