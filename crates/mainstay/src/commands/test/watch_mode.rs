//! `mainstay test --watch`: runs tests again when what they test has become something else, those that reach a change at once and the
//! others after them. The daemon tells what happens; what is to be built or loaded for it is seen to here, unless somebody else does.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_model::{
    CodeMark, Divergence, Error, EventBody, JobSpec, LiveTesting, Seq, Swap, TestHistory, TestPart,
    TestPolicy, TestRun, TestSelection, WorkEnding,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{Follow, RefreshSession};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::note;
use mainstay_terminal_client::connect::{Connection, connect_again, connected_again};
use mainstay_terminal_client::daemon_fate::connect_to_next;
use mainstay_terminal_client::events::event_line;
use mainstay_terminal_client::link::is_loss;
use tokio::signal::unix::Signal;
use tokio::time::{Instant, sleep_until};

use super::{Shape, run_once};
use crate::commands::command_wait::CommandWait;
use crate::commands::conditions::SentArgs;
use crate::commands::interrupts::interrupts;
use crate::commands::questions::Asker;
use crate::commands::runner_job::RunnerJob;

/// How long nothing must happen before what has happened is acted upon: many files are often written at once.
const QUIET: Duration = Duration::from_millis(300);

/// What is to be done next, the more that has to be done the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NextAction {
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
struct PendingChanges {
    due: Option<NextAction>,
    /// The files that were saved and are not what runs, and that a build would take in.
    refused: BTreeSet<String>,
    words: Vec<String>,
    /// Whether the project is built, or a worker comes up: what comes of that is waited for.
    is_under_way: bool,
    is_over: bool,
}

impl PendingChanges {
    fn hear(&mut self, body: &EventBody) {
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
    fn due(&self) -> Option<NextAction> {
        let build = (!self.refused.is_empty()).then_some(NextAction::Build);
        self.due.max(build)
    }

    fn is_to_be_told(&self) -> bool {
        !self.is_under_way && (self.due().is_some() || !self.words.is_empty())
    }

    /// Whether nothing has happened that leads to more.
    fn is_at_rest(&self) -> bool {
        !self.is_under_way && self.due().is_none()
    }

    /// How long nothing else must happen before it is acted upon.
    fn quiet(&self) -> Duration {
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

/// The tests that failed before and that a run left alone with their assemblies, in words.
fn still_failing(history: &TestHistory, run: &TestRun) -> Option<String> {
    let is_unchanged =
        |assembly: Option<&str>| assembly.is_some_and(|name| run.unchanged.iter().any(|one| one == name));
    match history.failing().filter(|(assembly, _)| is_unchanged(*assembly)).count() {
        0 => None,
        1 => Some("1 test that failed before is unchanged".to_owned()),
        count => Some(format!("{count} tests that failed before are unchanged")),
    }
}

/// Whether a run was ended because the code had changed.
fn is_overtaken(run: &TestRun) -> bool {
    run.choice.as_ref().is_some_and(|choice| choice.overtaken)
}

/// Tests that are run again and again.
pub(super) struct WatchMode<'a> {
    home: &'a Home,
    session: SessionView,
    selection: TestSelection,
    policies: BTreeMap<String, TestPolicy>,
    shape: Shape,
    /// The last event that was taken in.
    seen: Seq,
    /// What the code was that tests ran with.
    code: Option<CodeMark>,
    history: TestHistory,
    /// The tests that were told to be flaky.
    flaky: BTreeSet<String>,
    interrupts: Signal,
}

impl<'a> WatchMode<'a> {
    /// In a session as it is now.
    pub(super) fn new(
        home: &'a Home,
        session: SessionView,
        selection: TestSelection,
        shape: Shape,
    ) -> Result<Self, Error> {
        let policies = Config::load(home)?.tests.policies();
        let seen = session.last_seq;
        let (code, history, flaky) = (None, TestHistory::default(), BTreeSet::new());
        let interrupts = interrupts()?;
        Ok(Self { home, session, selection, policies, shape, seen, code, history, flaky, interrupts })
    }

    /// Until it is interrupted, or the session is deleted; then it tells how the last runs ended.
    pub(super) async fn run(mut self) -> Result<ExitCode, Error> {
        let mut is_broken = self.run_tests().await?;
        loop {
            let Some(due) = self.next_due().await? else { break };
            is_broken = match due {
                NextAction::Reach => self.run_reached().await?,
                NextAction::Run => self.run_tests().await?,
                NextAction::Load => self.load().await.map(|()| is_broken)?,
                NextAction::Build => self.build().await.map(|()| is_broken)?,
            };
        }
        let has_failed = is_broken || self.history.failing().next().is_some();
        Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Runs those that something has changed for. Says whether they could not be run to the end.
    async fn run_tests(&mut self) -> Result<bool, Error> {
        let Some(run) = self.run_part(None, None).await? else { return Ok(true) };
        if let Some(still) = still_failing(&self.history, &run) {
            note(&still);
        }
        self.code.clone_from(&run.code);
        self.end(run);
        Ok(false)
    }

    /// Runs those that reach what has changed since they last ran, and then the others, as far as no newer change comes.
    async fn run_reached(&mut self) -> Result<bool, Error> {
        let Some(since) = self.code.clone() else { return self.run_tests().await };
        let reached = self.run_part(Some(TestPart::Reached(since.clone())), None).await?;
        let Some(reached) = reached else { return Ok(true) };
        if is_overtaken(&reached) {
            // What it did not run is among those that reach the next change, counted from the same code.
            return Ok(false);
        }
        self.code.clone_from(&reached.code);
        let rest = self.run_part(Some(TestPart::Rest(since)), reached.code).await?;
        let Some(rest) = rest else { return Ok(true) };
        self.end(rest);
        Ok(false)
    }

    /// Runs a part of the tests, and takes in what came of it; none where it did not come to its end.
    async fn run_part(
        &mut self,
        part: Option<TestPart>,
        code: Option<CodeMark>,
    ) -> Result<Option<TestRun>, Error> {
        let id = self.session.session.to_string();
        let live = LiveTesting { part, policies: self.policies.clone(), code };
        let selection = TestSelection { live: Some(live), ..self.selection.clone() };
        let ran = run_once(self.home, id, &selection, self.shape).await?;
        let Some(run) = ran.and_then(|ran| ran.run) else { return Ok(None) };
        self.history.take_in(&run);
        let flaky: Vec<_> = self.history.flaky().map(str::to_owned).collect();
        for name in flaky {
            if self.flaky.insert(name.clone()) {
                note(&format!("flaky: {name} ended in another way with the same code"));
            }
        }
        Ok(Some(run))
    }

    /// All have run: later runs leave assemblies alone that are as they are now.
    fn end(&mut self, run: TestRun) {
        if !is_overtaken(&run) {
            self.selection.changed_since = run.assemblies;
        }
    }

    /// What is to be done about what happens next; none where it is over. Where the daemon is lost, the next one tells what happens.
    async fn next_due(&mut self) -> Result<Option<NextAction>, Error> {
        let mut connection = connect_again(self.home, "cli").await?;
        let mut happened = PendingChanges::default();
        loop {
            match self.next_due_over(&mut connection, &mut happened).await {
                Err(error) if is_loss(&error) => {
                    connection = connect_to_next(self.home, "cli", &connection).await?;
                }
                due => return due,
            }
        }
    }

    async fn next_due_over(
        &mut self,
        connection: &mut Connection,
        happened: &mut PendingChanges,
    ) -> Result<Option<NextAction>, Error> {
        let Connection { client, events } = connection;
        client.call(Follow::session(self.session.session.to_string(), self.seen)).await?;
        let mut quiet_at = Instant::now() + QUIET;
        let mut waits = false;
        loop {
            tokio::select! {
                event = events.recv() => {
                    let Some(event) = event else { return Err(client.lost()) };
                    self.seen = event.seq;
                    happened.hear(&event.body);
                    quiet_at = Instant::now() + happened.quiet();
                    if happened.is_over {
                        return Ok(None);
                    }
                }
                () = sleep_until(quiet_at), if happened.is_to_be_told() => {
                    std::mem::take(&mut happened.words).iter().for_each(|words| note(words));
                    if let Some(due) = happened.due() {
                        return Ok(Some(due));
                    }
                }
                () = sleep_until(quiet_at), if !waits && happened.is_at_rest() => {
                    waits = true;
                    note("waits for what changes; Ctrl-C ends it");
                }
                _ = self.interrupts.recv() => return Ok(None),
            }
        }
    }

    async fn load(&self) -> Result<(), Error> {
        if self.session.project.is_some() {
            return self.build().await;
        }
        let session = self.session.session.to_string();
        let refresh = RefreshSession { session, all: false, dry_run: false, sent: Sent::default() };
        connected_again(self.home, "cli", async |connection: &Connection| {
            connection.client.call(refresh.clone()).await
        })
        .await
        .map(drop)
    }

    /// What is built is loaded, and the session's definitions run again.
    async fn build(&self) -> Result<(), Error> {
        let is_shown = self.shape == Shape::Text;
        let connection = connect_again(self.home, "cli").await?;
        let done = RunnerJob::new(JobSpec::Build, &self.session, is_shown);
        let mut build = CommandWait::new(done, &self.session, SentArgs::default().named(), Asker::Build)?;
        let (view, _) = build.answer(self.home, connection).await?;
        build.shown.finish(&view);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{SessionCommand, SwapObstacle, SwappedDeclaration, TestOutcome, TestResult};

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

    #[test]
    fn tests_that_were_left_alone_fail_still() {
        let failed = |assembly: Option<&str>| TestResult {
            name: "adds".to_owned(),
            framework: "NUnit".to_owned(),
            assembly: assembly.map(str::to_owned),
            categories: Vec::new(),
            duration_ms: 1,
            output: None,
            place: None,
            outcome: TestOutcome::TimedOut { limit_ms: 1 },
        };
        let mut history = TestHistory::default();
        let first =
            TestRun { tests: vec![failed(Some("A")), failed(Some("B")), failed(None)], ..TestRun::default() };
        history.take_in(&first);
        assert_eq!(still_failing(&history, &first), None);
        let second = TestRun { unchanged: vec!["A".to_owned()], ..TestRun::default() };
        history.take_in(&second);
        let still = still_failing(&history, &second);
        assert_eq!(still.as_deref(), Some("1 test that failed before is unchanged"));
        history.take_in(&TestRun::default());
        assert_eq!(history.failing().count(), 0);
    }
}
