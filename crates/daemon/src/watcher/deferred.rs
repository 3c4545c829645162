//! What is due for sessions that build or warm up: a build that goes on may have read a file before it was written, so this waits for its
//! end and is done then, once.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::SessionId;

use super::files::DueWork;

/// In so many builds in a row a file may be written before it is taken for one that the build itself writes. Were it never, such a
/// build would be followed by another for ever.
const MOST_IN_A_ROW: u32 = 3;

/// What waits, by session.
#[derive(Default, Debug)]
pub(super) struct Deferred(BTreeMap<SessionId, DeferredWork>);

#[derive(Default, Debug)]
struct DeferredWork {
    due: DueWork,
    /// For how many builds in a row a file was held.
    in_a_row: BTreeMap<String, u32>,
}

impl Deferred {
    /// Keeps what came to be due while a session built or warmed up.
    pub(super) fn keep(&mut self, session: SessionId, DueWork { look, written }: DueWork) {
        let DeferredWork { due, in_a_row } = self.0.entry(session).or_default();
        due.look |= look;
        for file in written {
            if due.written.contains(&file) {
                continue;
            }
            let count = in_a_row.entry(file.clone()).or_default();
            *count += 1;
            if *count <= MOST_IN_A_ROW {
                due.written.insert(file);
            } else if *count == MOST_IN_A_ROW + 1 {
                tracing::info!(%session, file, "every build writes it, so that it begins none any more");
            }
        }
    }

    /// Notes what was written while nothing was built: that was no build's doing.
    pub(super) fn written_at_rest(&mut self, session: SessionId, written: &BTreeSet<String>) {
        if let Some(held) = self.0.get_mut(&session) {
            held.in_a_row.retain(|file, _| !written.contains(file));
        }
    }

    /// The sessions for which something waits.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        let waiting = self.0.iter().filter(|(_, held)| !held.due.is_nothing());
        waiting.map(|(session, _)| *session).collect()
    }

    /// Gives what waits for a session, which waits no more.
    pub(super) fn take(&mut self, session: SessionId) -> DueWork {
        self.0.get_mut(&session).map(|held| std::mem::take(&mut held.due)).unwrap_or_default()
    }

    /// Forgets sessions that are not there any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(SessionId) -> bool) {
        self.0.retain(|session, _| is_there(*session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionId {
        SessionId::from_uuid(uuid::Uuid::from_u128(1))
    }

    fn written(files: &[&str]) -> DueWork {
        DueWork { look: false, written: files.iter().map(|file| (*file).to_owned()).collect() }
    }

    #[test]
    fn all_that_came_during_a_build_is_due_once_after_it() {
        let mut held = Deferred::default();
        held.keep(session(), written(&["/a.fs"]));
        held.keep(session(), written(&["/a.fs", "/b.fs"]));
        held.keep(session(), DueWork { look: true, written: BTreeSet::new() });
        assert_eq!(held.sessions(), [session()]);
        assert_eq!(held.take(session()), DueWork { look: true, ..written(&["/a.fs", "/b.fs"]) });
        assert_eq!(held.sessions(), []);
    }

    #[test]
    fn a_file_that_each_build_writes_ends_in_no_loop() {
        let mut held = Deferred::default();
        let mut builds = 0;
        loop {
            held.keep(session(), written(&["/obj/generated.fs"]));
            if held.take(session()).is_nothing() {
                break;
            }
            builds += 1;
        }
        assert_eq!(builds, MOST_IN_A_ROW);
        held.keep(session(), written(&["/a.fs"]));
        assert_eq!(held.take(session()), written(&["/a.fs"]), "others begin one all the same");
    }

    #[test]
    fn a_file_that_somebody_wrote_between_builds_is_no_builds_own() {
        let mut held = Deferred::default();
        for _ in 0..2 * MOST_IN_A_ROW {
            held.keep(session(), written(&["/a.fs"]));
            assert_eq!(held.take(session()), written(&["/a.fs"]));
            held.written_at_rest(session(), &BTreeSet::from(["/a.fs".to_owned()]));
        }
    }
}
