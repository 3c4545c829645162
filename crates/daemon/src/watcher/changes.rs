//! The files that have changed, until they have been left alone for long enough to be looked at.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_model::Limits;
use tokio::time::Instant;

/// The files that have changed and were not looked at yet.
pub(super) struct Changes {
    files: HashSet<PathBuf>,
    /// Those of them that were empty when they were due, and are waited for once more.
    emptied: HashSet<PathBuf>,
    /// When they are looked at.
    pub(super) due: Option<Instant>,
    /// When they are at the latest.
    latest: Option<Instant>,
    quiet: Duration,
    /// The same of sources that are put into the code that runs.
    swap_quiet: Duration,
    longest: Duration,
}

impl Changes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            files: HashSet::new(),
            emptied: HashSet::new(),
            due: None,
            latest: None,
            quiet: Duration::from_millis(limits.watch_quiet_ms),
            swap_quiet: Duration::from_millis(limits.swap_quiet_ms),
            longest: Duration::from_millis(limits.watch_longest_ms),
        }
    }

    pub(super) fn add(&mut self, files: impl IntoIterator<Item = PathBuf>, now: Instant) {
        self.add_after(files, now, self.quiet);
    }

    /// Adds what may be put into the code that runs.
    pub(super) fn add_sources(&mut self, files: impl IntoIterator<Item = PathBuf>, now: Instant) {
        self.add_after(files, now, self.swap_quiet);
    }

    fn add_after(&mut self, files: impl IntoIterator<Item = PathBuf>, now: Instant, quiet: Duration) {
        self.files.extend(files);
        let latest = *self.latest.get_or_insert(now + self.longest);
        self.due = Some((now + quiet).min(latest));
    }

    fn take(&mut self) -> HashSet<PathBuf> {
        (self.due, self.latest) = (None, None);
        std::mem::take(&mut self.files)
    }

    /// Takes those that are to be looked at. An empty one is waited for once more: some editors empty a file before they write it.
    pub(super) fn take_written(
        &mut self,
        now: Instant,
        is_empty: impl Fn(&Path) -> bool,
    ) -> HashSet<PathBuf> {
        let waited = std::mem::take(&mut self.emptied);
        let (empty, written): (HashSet<_>, HashSet<_>) =
            self.take().into_iter().partition(|path| is_empty(path) && !waited.contains(path));
        if !empty.is_empty() {
            self.add(empty.clone(), now);
            self.emptied = empty;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was saved waits for 20 ms, other changes for 300.
    fn changes() -> Changes {
        let (swap_quiet_ms, watch_quiet_ms, watch_longest_ms) = (20, 300, 1_000);
        Changes::new(&Limits { swap_quiet_ms, watch_quiet_ms, watch_longest_ms, ..Limits::default() })
    }

    #[test]
    fn changes_wait_until_files_are_left_alone_but_not_for_ever() {
        let mut changes = changes();
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        changes.add([PathBuf::from("/a")], began);
        assert_eq!(changes.due, Some(after(300)));
        changes.add([PathBuf::from("/a")], after(250));
        assert_eq!(changes.due, Some(after(550)));
        changes.add([PathBuf::from("/b")], after(900));
        assert_eq!(changes.due, Some(after(1_000)));
        assert_eq!(changes.take().len(), 2);
        assert_eq!(changes.due, None);
        changes.add([PathBuf::from("/a")], after(2_000));
        changes.add_sources([PathBuf::from("/b.fs")], after(2_000));
        assert_eq!(changes.due, Some(after(2_020)), "what runs is not waited for as long as a build");
    }

    #[test]
    fn a_file_that_an_editor_has_emptied_is_waited_for_once_more() {
        let mut changes = changes();
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let [a, b] = ["/a.fs", "/b.fs"].map(PathBuf::from);
        let is_a = |path: &Path| path == a;
        changes.add_sources([a.clone(), b.clone()], began);
        assert_eq!(changes.take_written(after(20), is_a), HashSet::from([b]));
        assert_eq!(changes.due, Some(after(320)));
        changes.add_sources([a.clone()], after(50));
        assert_eq!(changes.due, Some(after(70)), "it was written");
        assert_eq!(changes.take_written(after(70), |_| false), HashSet::from([a.clone()]));

        changes.add_sources([a.clone()], after(2_000));
        assert_eq!(changes.take_written(after(2_020), is_a), HashSet::new());
        assert_eq!(changes.take_written(after(2_320), is_a), HashSet::from([a.clone()]), "it stays empty");
        assert_eq!(changes.due, None);
    }
}
