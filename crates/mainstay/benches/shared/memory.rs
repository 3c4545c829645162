//! What a process has in memory.

/// How much memory a process has, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    /// What of that is no file's, so that nothing else can give it back.
    pub(crate) own: u64,
}

impl Memory {
    /// That of a process, by its id.
    pub(crate) fn of(pid: u64) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
        };
        Self { resident: bytes("VmRSS:"), own: bytes("RssAnon:") }
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        write!(f, "{:.1} MB | {:.1} MB", megabytes(self.resident), megabytes(self.own))
    }
}
