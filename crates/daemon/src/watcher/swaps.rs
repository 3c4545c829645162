//! Sources that are being put into workers: one swap of a session at a time, and what is written meanwhile in the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mainstay_engine::Engine;
use mainstay_model::{SessionId, Swap, WrittenFile};
use tokio::task::JoinSet;

use super::files::DueWork;

/// The swaps that go on.
#[derive(Default)]
pub(super) struct Swaps {
    tasks: JoinSet<(SessionId, Option<Swap>)>,
    /// What was written since each of them began.
    since: BTreeMap<SessionId, BTreeSet<String>>,
    /// The sessions in which something was refused that a build could put in, and was not built yet, each with what that was.
    refused: BTreeMap<SessionId, String>,
}

/// Whether a file is code whose functions can be exchanged.
pub(super) fn is_code(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "fs")
}

impl Swaps {
    /// Has files put into a session's worker, as they are now. Where a swap of the session goes on they are kept for the next. A session whose
    /// worker exchanges no code, or has none, is told that they were written.
    pub(super) fn begin(
        &mut self,
        engine: &Engine,
        session: SessionId,
        paths: BTreeSet<String>,
        files: Vec<WrittenFile>,
    ) {
        if let Some(since) = self.since.get_mut(&session) {
            since.extend(paths);
            return;
        }
        self.since.insert(session, BTreeSet::new());
        let engine = engine.clone();
        self.tasks.spawn(async move {
            let swapped = engine.swap_sources(session, paths.into_iter().collect()).await;
            if let Err(error) = &swapped {
                tracing::debug!(%session, %error, "changed sources are not put into a worker");
            }
            let swapped = swapped.ok().flatten();
            if swapped.is_none()
                && let Err(error) = engine.files_written(session, files).await
            {
                tracing::debug!(%session, %error, "a change of a session's files came to nothing");
            }
            (session, swapped)
        });
    }

    /// Waits for the end of a swap. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<EndedSwap> {
        // A swap that panics would have been a defect, and its session is not swapped again before the daemon starts anew.
        let (session, swap) = self.tasks.join_next().await?.ok()?;
        let written = self.since.remove(&session).unwrap_or_default();
        let more = (!written.is_empty()).then_some(DueWork { look: false, written });
        let is_applied = swap.as_ref().is_some_and(Swap::is_applied);
        if let Some(swap) = swap.filter(is_buildable) {
            self.refused.insert(session, swap.to_string());
        }
        let to_build = if more.is_none() { self.refused.remove(&session) } else { None };
        Some(EndedSwap { session, more, is_applied, to_build })
    }
}

/// What is to be done after a swap.
pub(super) struct EndedSwap {
    pub(super) session: SessionId,
    /// What was written meanwhile.
    pub(super) more: Option<DueWork>,
    /// Whether what was saved runs.
    pub(super) is_applied: bool,
    /// What a build could put in and the swap could not.
    pub(super) to_build: Option<String>,
}

/// A source that is no code yet keeps a build from succeeding too, and a new worker would be lost to the debugger that is attached.
fn is_buildable(swap: &Swap) -> bool {
    let stays = |code: &str| matches!(code, "syntax_error" | "not_compiled" | "debugger_attached");
    !swap.is_applied() && !swap.obstacles.iter().any(|obstacle| stays(&obstacle.code))
}

#[cfg(test)]
mod tests {
    use mainstay_model::SwapObstacle;

    use super::*;

    #[test]
    fn only_code_is_exchanged() {
        let files = ["/shop/Cart.fs", "/shop/Shop.fsproj", "/shop/Cart.fsi", "/shop/fs"];
        assert_eq!(files.map(is_code), [true, false, false, false]);
    }

    #[test]
    fn what_is_no_code_yet_is_not_built() {
        let obstacle = |code: &str| SwapObstacle {
            file: "/shop/Cart.fs".to_owned(),
            code: code.to_owned(),
            name: "Cart".to_owned(),
            line: 1,
            reason: String::new(),
        };
        let of = |codes: &[&str]| Swap {
            obstacles: codes.iter().map(|code| obstacle(code)).collect(),
            ..Swap::default()
        };
        let buildable = [of(&[]), of(&["shape"]), of(&["shape", "syntax_error"]), of(&["debugger_attached"])]
            .each_ref()
            .map(is_buildable);
        assert_eq!(buildable, [false, true, false, false]);
    }
}
