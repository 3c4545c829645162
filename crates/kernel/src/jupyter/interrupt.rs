//! How a kernel is told to stop what it runs.

use mainstay_os::process::Group;
use serde_json::json;

use super::kernelspec::Interrupt;
use super::line::Line;

/// Tells a kernel to stop its code. One that does not is killed when its grace ends.
pub(super) async fn interrupt(line: &Line, group: &Group, how: Interrupt) {
    match how {
        Interrupt::Signal => {
            group.interrupt();
            // Python that waits in its event loop takes note of a signal once something wakes it.
            line.wake().await;
        }
        Interrupt::Message => drop(line.command("interrupt_request", &json!({})).await),
    }
}
