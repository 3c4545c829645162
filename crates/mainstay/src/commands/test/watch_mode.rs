//! `mainstay test --watch`: runs tests again when what they test has become something else, those that reach a change at once and the
//! others after them. The daemon tells what happens; what is to be built or loaded for it is seen to here, unless somebody else does.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_model::{
    CodeMark, Error, JobSpec, LiveTesting, Seq, TestHistory, TestPart, TestPolicy, TestRun, TestSelection,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{Follow, GetSession, RefreshSession};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{note, tell_unbuilt};
use mainstay_terminal_client::connect::{Connection, connect_again, connect_any_version, connected_again};
use mainstay_terminal_client::daemon_fate::connect_to_next;
use mainstay_terminal_client::link::is_loss;
use tokio::signal::unix::Signal;
use tokio::time::{Instant, sleep_until};

use super::pending_changes::{NextAction, PendingChanges, QUIET};
use super::{Shape, TestReport, reported, run_of, run_once};
use crate::commands::command_wait::CommandWait;
use crate::commands::conditions::SentArgs;
use crate::commands::interrupts::interrupts;
use crate::commands::questions::Asker;
use crate::commands::runner_job::RunnerJob;

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
    /// A connection for the next run, made before there is one.
    ready: Option<Connection>,
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
        let (ready, interrupts) = (None, interrupts()?);
        Ok(Self { home, session, selection, policies, shape, seen, code, history, flaky, ready, interrupts })
    }

    /// Until it is interrupted, or the session is deleted; then it tells how the last runs ended.
    pub(super) async fn run(mut self) -> Result<ExitCode, Error> {
        let mut is_broken = self.run_tests().await?;
        loop {
            let Some(due) = self.next_due().await? else { break };
            if due != NextAction::Reach {
                self.ready = None;
            }
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
        let live = LiveTesting { part, policies: self.policies.clone(), code };
        let selection = TestSelection { live: Some(live), ..self.selection.clone() };
        let ran = self.run_selected(&selection).await?;
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

    /// Runs a selection at once where that can be; else once the session takes commands.
    async fn run_selected(&mut self, selection: &TestSelection) -> Result<Option<TestReport>, Error> {
        let id = self.session.session.to_string();
        // Where it is lost by now, another one is made.
        if let Some(connection) = self.ready.take()
            && let Ok(session) = connection.client.call(GetSession { session: id.clone() }).await
        {
            tell_unbuilt(&session);
            let run = run_of(selection, self.shape);
            match run.awaited_over(self.home, connection, &session, SentArgs::default()).await {
                Err(Error::NotOffered { .. }) => {}
                ran => return ran?.map(|answer| reported(answer, self.shape)).transpose(),
            }
        }
        run_once(self.home, id, selection, self.shape).await
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
                    self.ready = None;
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
        if self.ready.is_none() {
            // The run makes one itself where there is none.
            self.ready = connect_any_version(self.home, "cli").await.ok();
        }
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
    use mainstay_model::{TestOutcome, TestResult};

    use super::*;

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
