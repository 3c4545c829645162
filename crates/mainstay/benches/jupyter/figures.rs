//! What is measured, and how it is told.

use std::process::Child;
use std::time::{Duration, Instant};

/// How often `1+1` is run.
pub(crate) const EXECUTIONS: usize = 500;
/// How many lines code prints.
pub(crate) const LINES: usize = 5_000;
/// How many sessions are idle at once.
pub(crate) const IDLE: usize = 50;

pub(crate) fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// Of each execution, from the request until it is answered.
pub(crate) struct Executions(Vec<Duration>);

impl Executions {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn time(&mut self, is_counted: bool, execute: impl FnOnce()) {
        let began = Instant::now();
        execute();
        if is_counted {
            self.0.push(began.elapsed());
        }
    }

    fn at(&self, hundredth: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted[sorted.len() * hundredth / 100]
    }

    /// Returns the median of the times.
    pub(crate) fn median(&self) -> Duration {
        self.at(50)
    }

    pub(crate) fn print(&self, what: &str, created: Option<Duration>) {
        let created = created.map_or_else(String::new, |took| format!("{:.0} ms", ms(took)));
        println!("| {what} | {created} | {:.2} ms | {:.1} ms |", ms(self.median()), ms(self.at(99)));
    }
}

/// The lines that code prints, as they come to a client.
pub(crate) struct Lines {
    began: Instant,
    first: Option<Duration>,
    all: Option<Duration>,
    came: usize,
}

impl Lines {
    /// Starts counting from now.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), first: None, all: None, came: 0 }
    }

    /// Takes in a text of which each line ends so; says whether the last has come.
    pub(crate) fn take(&mut self, text: &str, end: &str) -> bool {
        // A line may come in several pieces, but its end does not.
        let came = text.matches(end).count();
        self.came += came;
        if came > 0 {
            self.first.get_or_insert_with(|| self.began.elapsed());
        }
        let is_last = text.contains(&format!("line {LINES}{end}"));
        if is_last {
            self.all = Some(self.began.elapsed());
        }
        is_last
    }

    pub(crate) fn rate(&self) -> f64 {
        self.all.map_or(f64::NAN, |all| self.came as f64 / all.as_secs_f64())
    }

    pub(crate) fn print(&self, what: &str) {
        let time = |took: Option<Duration>| {
            took.map_or_else(|| "never".to_owned(), |took| format!("{:.0} ms", ms(took)))
        };
        let Self { first, all, came, .. } = self;
        println!("| {what} | {} | {} | {:.0} | {came} |", time(*first), time(*all), self.rate());
    }
}

/// What a process has of the machine's memory, in megabytes.
pub(crate) struct Memory {
    /// With the pages of files that it has mapped, its own program's above all.
    resident: f64,
    /// Without them: what nobody else can share, nor the machine take back.
    own: f64,
}

impl Memory {
    pub(crate) fn print(&self, what: &str, history: &str) {
        println!("| {what} | {:.0} MB | {:.1} MB | {history} |", self.resident, self.own);
    }

    pub(crate) fn print_beside(&self, other: &Self, what: &str) {
        let (resident, own) = (self.resident / other.resident, self.own / other.own);
        println!("{what}: {resident:.2} of its resident memory, {own:.2} of its own");
    }
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
    /// That of the process alone, without kernels.
    pub(crate) fn memory(&self) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1.024 / 1000.0
        };
        Memory { resident: megabytes("VmRSS:"), own: megabytes("RssAnon:") }
    }
}
