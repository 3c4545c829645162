//! How much memory the daemon has.

/// This process's resident memory.
#[cfg(target_os = "linux")]
pub(crate) fn own_resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn own_resident_bytes() -> Option<u64> {
    None
}
