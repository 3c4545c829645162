//! Announcements to the process that started a daemon in the background, on standard output.

use std::io::Write;

use mainstay_home::Announcement;

/// Tells the process that started the daemon how the start goes.
pub(crate) fn announce(announcement: &Announcement) {
    let Ok(text) = serde_json::to_string(announcement) else { return };
    // The process that started the first daemon under a supervisor has long ended when the next daemon announces itself.
    writeln!(std::io::stdout(), "{text}").ok();
}
