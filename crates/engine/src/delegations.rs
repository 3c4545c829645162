//! Following the tasks that jobs gave to others until they have ended.
//!
//! What is known of a task is in the session of the job that gave it, and so in the log: [`mainstay_model::Delegation`]. For each, a follower here
//! waits for the end of the command that carries it out, tells that command to stop where the job that gave it did not come to its own end, and has
//! the session record what is left of the budget. A follower that is lost with its daemon has lost nothing: the next daemon begins with what the
//! sessions know. What it tells is heeded once, however often it is told.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mainstay_log::{SessionFilter, StoredOutcome};
use mainstay_model::grant::Amounts;
use mainstay_model::{
    Delegation, Error, Notice, Outcome, Position, Response, RunningJob, Seq, Session, SessionId,
};
use tokio::sync::{mpsc, watch};

use crate::claims::CommandKey;
use crate::engine::tasks::Holding;
use crate::engine::{Engine, WeakEngine};
use crate::open_tasks::{TaskKey, parent_ended};
use crate::session::Request;
use crate::sync::task;
use crate::sync::time::sleep;

/// How long is waited before something that failed is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long is waited before a command is told again to stop that had not been accepted yet.
const AGAIN: Duration = Duration::from_millis(200);
/// How many events are read at once.
const PAGE: usize = 500;

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Engine {
    /// Reads the tasks that the log has. They are followed later: first the sessions are brought back.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(crate) async fn read_delegations(&self) -> Result<(), Error> {
        let open = SessionFilter { delegates: true, with_deleted: true, ..SessionFilter::default() };
        for session in self.shared.log.sessions(open).await? {
            // What was deleted is told no more that its tasks have ended, and so has them for good.
            if session.deleted_at.is_none() || !self.all_have_outcomes(&session.delegations).await? {
                self.shared.delegations.have_changed(&session);
            }
        }
        Ok(())
    }

    async fn all_have_outcomes(&self, tasks: &[Delegation]) -> Result<bool, Error> {
        for task in tasks {
            if self.shared.log.outcome(&task.principal, &task.child).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Follows the tasks that there are, and those that change from now on.
    pub(crate) fn follow_delegations(&self, mut changes: mpsc::UnboundedReceiver<SessionId>) {
        let engine = self.downgrade();
        task::spawn(async move {
            while let Some(session) = changes.recv().await {
                let Some(engine) = engine.upgrade() else { return };
                if let Err(error) = engine.look_at_tasks(session).await {
                    tracing::warn!(%session, %error, "tasks could not be looked at; they are in a moment");
                    drop(engine);
                    sleep(PAUSE).await;
                }
            }
        });
    }

    /// Has each task of a session followed.
    async fn look_at_tasks(&self, session: SessionId) -> Result<(), Error> {
        let Some(stored) =
            self.session(session).await.inspect_err(|_| self.shared.delegations.look_at(session))?
        else {
            return Ok(());
        };
        for Delegation { principal, child, .. } in stored.delegations {
            let task = (session, (principal, child));
            if let Some(look_again) = self.shared.delegations.begin_to_follow(&task) {
                let follower = Follower { engine: self.downgrade(), task, home: None };
                task::spawn(follower.run(look_again));
            }
        }
        Ok(())
    }
}

/// What a follower does next.
enum Next {
    /// The task is known no more.
    Done,
    /// It looks again after this, or when it is told to.
    Wait(Waiting),
    /// It looks again after this, and not before.
    Finish(Waiting),
}

/// Follows one task until its end.
struct Follower {
    engine: WeakEngine,
    task: TaskKey,
    /// The session that had accepted the command.
    home: Option<SessionId>,
}

impl Follower {
    async fn run(mut self, mut look_again: watch::Receiver<()>) {
        loop {
            look_again.mark_unchanged();
            let Some(engine) = self.engine.upgrade() else { return };
            let next = self.look(&engine).await;
            let delegations = Arc::clone(&engine.shared.delegations);
            drop(engine);
            match next {
                Err(Error::DaemonStopping) => return,
                Ok(Next::Done) => {
                    if delegations.follow_no_more(&self.task, &look_again) {
                        return;
                    }
                }
                Ok(Next::Finish(waiting)) => {
                    drop(delegations);
                    waiting.await;
                }
                Ok(Next::Wait(waiting)) => {
                    drop(delegations);
                    tokio::select! {
                        () = waiting => {}
                        changed = look_again.changed() => if changed.is_err() { return },
                    }
                }
                Err(error) => {
                    drop(delegations);
                    let session = self.task.0;
                    tracing::warn!(%session, %error, "a task could not be followed; it is in a moment");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Does what is to be done for the task now.
    async fn look(&mut self, engine: &Engine) -> Result<Next, Error> {
        let (session, key) = &self.task;
        let Some(parent) = engine.session(*session).await? else { return Ok(Next::Done) };
        let is_it = |known: &&Delegation| known.principal == key.0 && known.child == key.1;
        let Some(task) = parent.delegations.iter().find(is_it) else { return Ok(Next::Done) };
        let claims = &engine.shared.single_process.claims;
        // In this order: one that ends between the two is found by the second look.
        let (end, holder) = (claims.end_of(key), claims.holder(key));
        if let Some(outcome) = engine.shared.log.outcome(&key.0, &key.1).await? {
            return self.has_ended(engine, &parent, task, &outcome).await;
        }
        if let (Some(end), Some(holder)) = (end, holder) {
            self.home = Some(holder);
            let gone = match engine.look_into_claim(holder, key, |home| has(home, key)).await? {
                Holding::Task(mut visible) => {
                    async move {
                        visible.wait_for(|_| false).await.ok();
                        sleep(AGAIN).await;
                    }
                }
                Holding::Creation => return Ok(Next::Wait(Box::pin(end.reached()))),
                Holding::Nothing => return Ok(later(Duration::ZERO)),
            };
            let Some(error) = parent_ended(task) else {
                return Ok(Next::Wait(Box::pin(async {
                    tokio::select! { () = end.reached() => {}, () = gone => {} }
                })));
            };
            engine.tell_parent_ended(holder, key, error).await?;
            return Ok(Next::Wait(Box::pin(async {
                tokio::select! { () = end.reached() => {}, () = sleep(AGAIN) => {} }
            })));
        }
        // Its session's task may have ended, with what the command is stored as.
        if let Some(home) = self.home
            && engine.session(home).await?.is_some_and(|home| has(&home, key))
        {
            engine.handle(home).await?;
            return Ok(later(AGAIN));
        }
        let Some(turn) = engine.shared.delegations.nobody_submits(key) else {
            return Ok(if task.stops.is_some() {
                later(AGAIN)
            } else {
                Next::Wait(Box::pin(std::future::pending()))
            });
        };
        if claims.holder(key).is_some() || engine.shared.log.outcome(&key.0, &key.1).await?.is_some() {
            return Ok(later(Duration::ZERO));
        }
        Ok(match close(engine, &parent, task, task.given.clone()).await? {
            Next::Finish(closed) => Next::Finish(Box::pin(async {
                closed.await;
                drop(turn);
            })),
            other => other,
        })
    }

    /// The command has its outcome. Its job may still come to its end.
    async fn has_ended(
        &self,
        engine: &Engine,
        parent: &Session,
        task: &Delegation,
        outcome: &StoredOutcome,
    ) -> Result<Next, Error> {
        let key = self.task.1.clone();
        let home = match outcome.session {
            Some(home) => engine.session(home).await?,
            None => None,
        };
        let unspent = match (outcome.session, home) {
            // No session had accepted it.
            (None, _) => task.given.clone(),
            // Nobody knows what it spent.
            (Some(_), None) => Amounts::new(),
            (Some(_), Some(home)) if home.deleted_at.is_some() => Amounts::new(),
            (Some(_), Some(home)) if has(&home, &key) => {
                let mut visible = engine.handle(home.id).await?.visible;
                return Ok(Next::Wait(Box::pin(async move {
                    visible.wait_for(|home| !has(home, &key)).await.ok();
                })));
            }
            (Some(home), Some(_)) => {
                engine.unspent(home, &key, (parent.id, task), begun_at(&outcome.outcome)).await?
            }
        };
        close(engine, parent, task, unspent).await
    }
}

fn later(pause: Duration) -> Next {
    Next::Wait(Box::pin(sleep(pause)))
}

/// Whether a command waits or runs in a session.
fn has(home: &Session, (principal, command): &CommandKey) -> bool {
    home.waits(principal, command)
        || home.running().is_some_and(|running| running.answers(principal, command))
}

/// The event with which the job of a command began, where its outcome says that.
fn begun_at(outcome: &Outcome) -> Option<Seq> {
    match outcome {
        Outcome::Done { response: Response::Evaluated(eval) } => Some(eval.requested),
        Outcome::Done { response: Response::Worked(work) } => Some(work.requested),
        Outcome::Done { .. } | Outcome::Failed { .. } => None,
    }
}

/// Has the session of the job that gave a task record that this has ended; gives what waits for that.
async fn close(
    engine: &Engine,
    parent: &Session,
    task: &Delegation,
    unspent: Amounts,
) -> Result<Next, Error> {
    // What was deleted is told nothing more.
    if parent.deleted_at.is_some() {
        return Ok(Next::Done);
    }
    let given_at = task.given_at;
    let handle = engine.handle(parent.id).await?;
    let mut visible = handle.visible.clone();
    let notice = Notice::DelegationEnded { given_at, unspent };
    if !handle.send(Request::Hear { notice }).await {
        return Ok(later(PAUSE));
    }
    Ok(Next::Finish(Box::pin(async move {
        let is_known = |parent: &Session| parent.delegations.iter().any(|task| task.given_at == given_at);
        visible.wait_for(|parent| !is_known(parent)).await.ok();
    })))
}

impl Engine {
    /// Tells a command to stop, since the job that gave it its task has come to its end.
    async fn tell_parent_ended(&self, home: SessionId, key: &CommandKey, error: Error) -> Result<(), Error> {
        let (principal, command) = key.clone();
        let handle = self.handle(home).await?;
        // Where it is not heard, its session is read from the log by the next look.
        handle.send(Request::ParentEnded { principal, command, error }).await;
        Ok(())
    }

    /// What a command that has ended left of what went with its task.
    async fn unspent(
        &self,
        home: SessionId,
        (principal, command): &CommandKey,
        (parent, task): (SessionId, &Delegation),
        begun_at: Option<Seq>,
    ) -> Result<Amounts, Error> {
        if task.given.is_empty() {
            return Ok(Amounts::new());
        }
        // Where its outcome does not say when it began: that was not before the task was given.
        let mut after = match begun_at {
            Some(seq) => Seq(seq.0.saturating_sub(1)),
            None => self.last_before(home, self.given_at(parent, task).await?).await?,
        };
        let mut running: Option<RunningJob> = None;
        loop {
            let page = self.events(home, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for event in &page {
                match &mut running {
                    Some(job) => {
                        job.account(&event.body);
                        if event.body.job_end().is_some_and(|(ended, _)| ended == job.job) {
                            return Ok(left_of(job));
                        }
                    }
                    None => {
                        running = RunningJob::begun(event).filter(|job| job.answers(principal, command));
                    }
                }
            }
        }
        // It never began, or is cut off with its session.
        Ok(running.as_ref().map_or_else(|| task.given.clone(), left_of))
    }

    /// Where in the log a task was given; its beginning where the event of that is not there any more.
    async fn given_at(&self, parent: SessionId, task: &Delegation) -> Result<Position, Error> {
        let events = self.events(parent, Seq(task.given_at.0.saturating_sub(1)), 1).await?;
        let given = events.first().filter(|event| event.seq == task.given_at);
        Ok(given.map_or(Position::ZERO, |event| event.position))
    }

    /// The last event of a session before a place in the log, which is searched for: the session may be long.
    async fn last_before(&self, session: SessionId, place: Position) -> Result<Seq, Error> {
        let stored = self.session(session).await?;
        let mut before = Seq::ZERO;
        let mut behind = stored.map_or(Seq::ZERO, |stored| stored.last_seq).next();
        while before.next() < behind {
            let middle = Seq(before.0.midpoint(behind.0));
            let events = self.events(session, Seq(middle.0 - 1), 1).await?;
            match events.first().filter(|event| event.position < place) {
                Some(event) => before = event.seq,
                None => behind = middle,
            }
        }
        Ok(before)
    }

    /// Whether a session knows of a task that was given with this event, and that is not to stop.
    pub(crate) async fn has_open_task(&self, session: SessionId, given_at: Seq) -> Result<bool, Error> {
        let stored = self.session(session).await?;
        let is_it = |task: &Delegation| task.given_at == given_at && task.stops.is_none();
        Ok(stored.is_some_and(|stored| stored.delegations.iter().any(is_it)))
    }
}

/// What a job has left of its budget. What one spent that has none is not known.
fn left_of(job: &RunningJob) -> Amounts {
    job.grants.as_ref().map(|grants| grants.remaining()).unwrap_or_default()
}
