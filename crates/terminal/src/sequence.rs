//! Displays that are shown one below the other, as a terminal and a pipe have them.

use mainstay_model::{Display, TestProgress, TestResultFeed};

use super::{ProgressLine, Surface, display_text, printable};

/// The displays of one stream of output. Of tests that run each result is shown once, as soon as it is known; on a terminal the last line
/// says how many there are so far.
#[derive(Debug, Default)]
pub struct DisplaySequence {
    tests: TestResultFeed,
    status: ProgressLine,
}

impl DisplaySequence {
    /// What is to be printed of the next display, in whole lines; empty where it has nothing new.
    pub fn text(&mut self, display: &Display, surface: Surface) -> String {
        self.clear_status();
        match self.tests.of(display) {
            Some(news) => printable(&news).lines().map(|line| format!("{line}\n")).collect(),
            None => display_text(display, surface),
        }
    }

    /// Says below what was printed how far a run of tests is, where the display tells of one that goes on.
    pub fn show_status(&self, display: &Display) {
        if let Some(TestProgress { has_told_all: false, .. }) = TestProgress::shown(display) {
            self.status.show(display.data.text().lines().next().unwrap_or_default());
        }
    }

    /// Something else is to be printed.
    pub fn clear_status(&self) {
        self.status.clear();
    }
}
