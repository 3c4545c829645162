//! What has happened in a session since tests were last run for it, and what is to be done about it: pure, and fed with the session's events.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_model::{Divergence, EventBody, JobSpec, Swap, WorkEnding};
use mainstay_terminal_client::events::event_line;

/// How long nothing must happen before what has happened is acted upon: many files are often written at once.
pub(super) const QUIET: Duration = Duration::from_millis(300);

/// What is to be done next, the more that has to be done the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextAction {
    /// The tests that reach what has changed are to be run, and then the others. Code was exchanged, so there is nothing to wait for.
    Reach,
    /// The tests are to be run.
    Run,
    /// Loading what has changed.
    Load,
    /// Building the project, which is loaded then.
    Build,
}

/// What has happened that matters, and has not been acted upon.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    due: Option<NextAction>,
    /// The files that were saved and are not what runs, and that a build would take in.
    refused: BTreeSet<String>,
    /// What is to be said of it.
    pub(super) words: Vec<String>,
    /// Whether the project is built, or a worker comes up: what comes of that is waited for.
    is_under_way: bool,
    /// Whether the session is deleted.
    pub(super) is_over: bool,
}

impl PendingChanges {
    pub(super) fn hear(&mut self, body: &EventBody) {
        if let EventBody::JobRequested { work: JobSpec::Build | JobSpec::Rebuild, .. } = body {
            // Whoever began it has it take in what was written before.
            *self = Self { is_under_way: true, ..Self::default() };
        } else if let EventBody::WarmUpStarted { .. } = body {
            self.is_under_way = true;
        } else if ends_what_is_under_way(body) {
            self.is_under_way = false;
            // A new worker has the libraries as they are.
            if self.due == Some(NextAction::Load) {
                *self = Self::default();
            }
        }
        if let EventBody::SourcesSwapped(swap) = body {
            self.hear_swap(swap);
        }
        let due = due_for(body);
        if is_told(body, due) {
            self.words.push(event_line(body).1);
        }
        self.due = self.due.max(due);
        self.is_over |= matches!(body, EventBody::SessionDeleted);
    }

    /// Takes in which files wait for a build now. What a later save has mended needs none.
    fn hear_swap(&mut self, swap: &Swap) {
        for file in swap.saved() {
            if is_buildable(swap) {
                self.refused.insert(file.clone());
            } else {
                self.refused.remove(file);
            }
        }
    }

    /// What is to be done next.
    pub(super) fn due(&self) -> Option<NextAction> {
        let build = (!self.refused.is_empty()).then_some(NextAction::Build);
        self.due.max(build)
    }

    pub(super) fn is_to_be_told(&self) -> bool {
        !self.is_under_way && (self.due().is_some() || !self.words.is_empty())
    }

    /// Whether nothing has happened that leads to more.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_under_way && self.due().is_none()
    }

    /// How long nothing else must happen before it is acted upon.
    pub(super) fn quiet(&self) -> Duration {
        if self.due() == Some(NextAction::Reach) { Duration::ZERO } else { QUIET }
    }
}

fn due_for(body: &EventBody) -> Option<NextAction> {
    let changes_code = matches!(
        body,
        EventBody::WarmUpCompleted { .. } | EventBody::EvalCompleted { changes_state: true, .. }
    );
    if let EventBody::SourcesSwapped(swap) = body {
        (swap.is_applied() && !swap.is_nothing()).then_some(NextAction::Reach)
    } else if matches!(body, EventBody::SourcesChanged { in_build: false, .. }) {
        Some(NextAction::Build)
    } else if matches!(body, EventBody::AssembliesChanged { .. }) {
        Some(NextAction::Load)
    } else {
        changes_code.then_some(NextAction::Run)
    }
}

/// Whether a build could take in what was refused. Code that has syntax errors keeps it from succeeding too.
fn is_buildable(swap: &Swap) -> bool {
    !swap.is_applied() && swap.obstacles.iter().all(|obstacle| obstacle.code != "syntax_error")
}

/// Whether an event is told of, where this is to be done for it. That a new worker has what the former had is no news.
fn is_told(body: &EventBody, due: Option<NextAction>) -> bool {
    match body {
        EventBody::WarmUpCompleted { diverged, reload, .. } => {
            let has_changes = reload.as_ref().is_some_and(|reload| !reload.changes.is_empty());
            has_changes || diverged.iter().any(Divergence::is_told)
        }
        EventBody::SessionFaulted { .. } | EventBody::SourcesSwapped(_) => true,
        _ => due.is_some(),
    }
}

fn ends_what_is_under_way(body: &EventBody) -> bool {
    let is_failed_build =
        matches!(body, EventBody::JobEnded { ending, .. } if !matches!(ending, WorkEnding::Done { .. }));
    let is_at_rest = matches!(
        body,
        EventBody::WarmUpCompleted { .. } | EventBody::SessionFaulted { .. } | EventBody::SessionStopped
    );
    is_failed_build || is_at_rest
}

#[cfg(test)]
mod tests {
    use mainstay_model::{SessionCommand, SwapObstacle, SwappedDeclaration};

    use super::*;

    fn due_after(bodies: impl IntoIterator<Item = EventBody>) -> Option<NextAction> {
        let mut happened = PendingChanges::default();
        bodies.into_iter().for_each(|body| happened.hear(&body));
        happened.due().filter(|_| happened.is_to_be_told())
    }

    fn job_requested(work: JobSpec) -> EventBody {
        EventBody::JobRequested {
            job: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
            command: mainstay_model::CommandId::new("build").unwrap(),
            fingerprint: mainstay_model::CommandFingerprint::of("s", &SessionCommand::Stop),
            key: None,
            work,
            deadline: None,
            grants: None,
        }
    }

    fn written() -> EventBody {
        EventBody::SourcesChanged { changed: vec!["/p/a.fs".to_owned()], in_build: false }
    }

    #[test]
    fn what_has_to_be_done_most_is_done_unless_somebody_does_it() {
        let changed = EventBody::AssembliesChanged {
            old: Default::default(),
            new: Default::default(),
            changed: Vec::new(),
        };
        let build = job_requested(JobSpec::Build);
        let refreshed = EventBody::WarmUpStarted { reason: mainstay_model::WarmUpReason::Refreshed };
        let ready = EventBody::WarmUpCompleted {
            kernel: String::new(),
            runtime: String::new(),
            language: None,
            pid: Some(1),
            replayed: 0,
            diverged: Vec::new(),
            startup: None,
            reload: None,
            restored: None,
            duration_ms: 1,
        };
        assert_eq!(due_after([changed.clone()]), Some(NextAction::Load));
        assert_eq!(due_after([changed.clone(), written()]), Some(NextAction::Build));
        assert_eq!(due_after([changed.clone(), written(), build.clone()]), None);
        assert_eq!(due_after([refreshed.clone(), changed.clone()]), None, "what comes of it is waited for");
        let whole = [build.clone(), changed.clone(), refreshed, changed, ready];
        assert_eq!(due_after(whole.clone()), Some(NextAction::Run));
        assert_eq!(due_after([written()].into_iter().chain(whole.clone())), Some(NextAction::Run));
        let since = [build, written()].into_iter().chain(whole.into_iter().skip(1));
        assert_eq!(due_after(since), Some(NextAction::Build), "it was written since");
        assert_eq!(due_after([EventBody::SessionRenamed { name: "other".to_owned() }]), None);
    }

    #[test]
    fn an_exchange_of_code_is_acted_upon_at_once_unless_more_has_to_be_done() {
        let mut happened = PendingChanges::default();
        happened.hear(&swapped(&["/p/a.fs"], None));
        assert_eq!((happened.due(), happened.quiet()), (Some(NextAction::Reach), Duration::ZERO));
        happened.hear(&written());
        assert_eq!((happened.due(), happened.quiet()), (Some(NextAction::Build), QUIET));
    }

    /// These files exchanged, or refused for a reason.
    fn swapped(files: &[&str], obstacle: Option<&str>) -> EventBody {
        let swapped = files.iter().map(|file| SwappedDeclaration {
            name: "f".to_owned(),
            file: (*file).to_owned(),
            line: 1,
            kept: None,
        });
        let obstacles = obstacle.iter().map(|code| SwapObstacle {
            file: files[0].to_owned(),
            code: (*code).to_owned(),
            name: "f".to_owned(),
            line: 1,
            reason: String::new(),
        });
        EventBody::SourcesSwapped(Box::new(Swap {
            files: files.iter().map(|file| ((*file).to_owned(), String::new())).collect(),
            swapped: if obstacle.is_none() { swapped.collect() } else { Vec::new() },
            obstacles: obstacles.collect(),
            ..Swap::default()
        }))
    }

    #[test]
    fn what_was_refused_is_built_unless_a_later_save_has_mended_it() {
        let (a, b) = (["/p/a.fs"], ["/p/b.fs"]);
        let taken_back = EventBody::SourcesSwapped(Box::new(Swap {
            files: [("/p/a.fs".to_owned(), String::new())].into(),
            ..Swap::default()
        }));
        let refused = swapped(&a, Some("shape"));
        assert_eq!(due_after([refused.clone()]), Some(NextAction::Build));
        assert_eq!(due_after([refused.clone(), swapped(&b, None)]), Some(NextAction::Build));
        assert_eq!(due_after([refused.clone(), swapped(&a, None)]), Some(NextAction::Reach));
        assert_eq!(due_after([refused.clone(), taken_back.clone()]), None);
        assert_eq!(due_after([swapped(&b, None), refused, taken_back]), Some(NextAction::Reach));
        assert_eq!(due_after([swapped(&a, Some("syntax_error"))]), None, "no build would succeed");
    }
}
