//! How much is measured. A smoke run takes less: each size is a variable of the environment.

/// How much of each subject.
pub(crate) struct Sizes {
    /// Jobs that run one after the other: `MAINSTAY_BENCH_INVOKES`.
    pub(crate) invokes: usize,
    /// Jobs at once: `MAINSTAY_BENCH_JOBS`.
    pub(crate) jobs: usize,
    /// Sessions that share those: `MAINSTAY_BENCH_SESSIONS`.
    pub(crate) sessions: usize,
    /// Connections that subscribe to one job: `MAINSTAY_BENCH_SUBSCRIBERS`.
    pub(crate) subscribers: usize,
    /// Messages that a session is told before it is resumed: `MAINSTAY_BENCH_MESSAGES`.
    pub(crate) messages: u64,
}

impl Sizes {
    pub(crate) fn of_environment() -> Self {
        Self {
            invokes: size("MAINSTAY_BENCH_INVOKES", 1_000),
            jobs: size("MAINSTAY_BENCH_JOBS", 10_000),
            sessions: size("MAINSTAY_BENCH_SESSIONS", 64),
            subscribers: size("MAINSTAY_BENCH_SUBSCRIBERS", 1_000),
            messages: size("MAINSTAY_BENCH_MESSAGES", 100_000) as u64,
        }
    }
}

fn size(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |size| size.parse().unwrap())
}
