//! Submitting what schedules are for, at their moments.
//!
//! A run is taken from its schedule by a change of its stored revision, so one daemon takes it; it stays with the schedule as one under way until
//! its command has ended. A daemon that finds such a run submits it: its command has the same id each time, and so the engine runs it once.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_log::{DueSchedules, StoredSchedule};
use mainstay_model::schedule::{LastRun, Schedule};
use mainstay_model::{
    Admission, Answered, Command, CommandId, Error, EvalEnding, Outcome, Response, Timestamp, WorkEnding,
};

use crate::client::Client;
use crate::clock::now;
use crate::engine::{AcceptedCommand, Engine, WeakEngine};
use crate::sync::Mutex;
use crate::sync::task;
use crate::sync::time::sleep;

/// How long is waited after a look that failed, and before a run is submitted again that this daemon could not submit.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest time between two looks: another daemon on the same store may have got a schedule.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a schedule that has ended can be looked up.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The name of the client that submits runs.
const CLIENT: &str = "schedule";

/// The runs that this daemon has submitted, and whose end it waits for.
#[derive(Clone, Default)]
struct Submitted(Arc<Mutex<HashSet<CommandId>>>);

impl Submitted {
    /// Notes a run; it is false where it was submitted before.
    fn insert(&self, run: &CommandId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    fn remove(&self, run: &CommandId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

impl Engine {
    /// Begins to submit the runs of schedules. It ends with the engine.
    pub fn start_schedules(&self) {
        let (changed, engine) = (Arc::clone(&self.shared.schedules), self.downgrade());
        task::spawn(async move {
            let submitted = Submitted::default();
            while let Some(looked) = look(&engine, &submitted).await {
                let pause = looked.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the schedules could not be looked at; they are in a moment");
                    PAUSE
                });
                tokio::select! {
                    () = changed.notified() => {}
                    () = sleep(pause) => {}
                }
            }
        });
    }

    /// Submits the runs that are due; says until when nothing is.
    async fn submit_due(&self, submitted: &Submitted) -> Result<Duration, Error> {
        let now = now();
        let until = |next: Timestamp| Duration::try_from(next.duration_since(now)).unwrap_or_default();
        let DueSchedules { schedules, next } = self.shared.log.due_schedules(now).await?;
        let mut pause = next.map_or(LONGEST, until).min(LONGEST);
        for stored in schedules {
            let Some(schedule) = self.taken(stored, now).await? else {
                pause = Duration::ZERO;
                continue;
            };
            if let Some(next) = schedule.state.next {
                pause = pause.min(until(next));
            }
            if !self.submit_runs(&schedule, submitted).await {
                pause = pause.min(PAUSE);
            }
        }
        let before = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
        self.shared.log.remove_ended_schedules(before).await?;
        Ok(pause)
    }

    /// The schedule once its due runs are taken; none where another daemon changed it meanwhile.
    async fn taken(&self, stored: StoredSchedule, now: Timestamp) -> Result<Option<Schedule>, Error> {
        let StoredSchedule { schedule, revision } = stored;
        if schedule.state.next.is_none_or(|next| next > now) {
            return Ok(Some(schedule));
        }
        let taken = schedule.take_due(now);
        let is_ours = self.shared.log.change_schedule(revision, taken.clone()).await?;
        Ok(is_ours.then_some(taken))
    }

    /// Submits the runs of a schedule that are under way and that this daemon has not submitted, in order. It is false where one has to be submitted
    /// again.
    async fn submit_runs(&self, schedule: &Schedule, submitted: &Submitted) -> bool {
        for run in &schedule.state.under_way {
            let Ok(command) = schedule.command_of(*run) else { continue };
            if !submitted.insert(&command) {
                continue;
            }
            let client = self.attach(schedule.access(), CLIENT);
            match begin(&client, schedule, &command).await {
                Err(error) if is_passing(&error) => {
                    submitted.remove(&command);
                    return false;
                }
                begun => {
                    let ended =
                        Ended { engine: self.clone(), id: schedule.id.clone(), run: *run, command, client };
                    task::spawn(ended.note(begun, submitted.clone()));
                }
            }
        }
        true
    }
}

/// Submits the runs that are due, while the engine is there.
async fn look(engine: &WeakEngine, submitted: &Submitted) -> Option<Result<Duration, Error>> {
    let engine = engine.upgrade()?;
    // The daemon goes down once nobody is told of anything.
    engine.published()?;
    Some(engine.submit_due(submitted).await)
}

async fn begin(client: &Client, schedule: &Schedule, command: &CommandId) -> Result<AcceptedCommand, Error> {
    let command = Command {
        key: schedule.key_of(command)?,
        grants: schedule.grants.clone(),
        admission: Admission::Queue,
        ..Command::new(command.clone(), client.source(), schedule.command.clone())
    };
    client.begin(schedule.session, command).await
}

/// Whether another daemon, or this one in a moment, can do what an error prevented.
const fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::SessionOwned | Error::DaemonStopping | Error::StoreFailed { .. } | Error::LaneFull { .. }
    )
}

/// How a run ended that did not succeed.
fn ending_of(response: &Response) -> Option<String> {
    match response {
        Response::Evaluated(eval) if eval.ending != EvalEnding::Completed => {
            Some(eval.ending.name().to_owned())
        }
        Response::Worked(work) if !matches!(work.ending, WorkEnding::Done { .. }) => {
            Some(work.ending.name().to_owned())
        }
        _ => None,
    }
}

/// A run whose end is noted with its schedule.
struct Ended {
    engine: Engine,
    id: String,
    run: Timestamp,
    command: CommandId,
    /// It is there as long as the run is under way.
    client: Client,
}

impl Ended {
    /// Waits until the run has ended, and notes that.
    async fn note(self, begun: Result<AcceptedCommand, Error>, submitted: Submitted) {
        let ended = match begun {
            Ok(begun) => begun.ended().await,
            Err(error) => Err(error),
        };
        let (error, ending) = match ended {
            Err(error) if is_passing(&error) => {
                submitted.remove(&self.command);
                return;
            }
            Err(error) | Ok(Answered { outcome: Outcome::Failed { error }, .. }) => (Some(error), None),
            Ok(Answered { outcome: Outcome::Done { response }, .. }) => (None, ending_of(&response)),
        };
        let Self { engine, id, run, command, client } = self;
        drop(client);
        let last = LastRun { at: run, command: command.clone(), error, ending };
        while let Err(error) = engine.note_ended(&id, &last).await {
            tracing::warn!(%error, schedule = id, "the end of a run was not stored; it is in a moment");
            sleep(PAUSE).await;
        }
        submitted.remove(&command);
    }
}

impl Engine {
    /// Stores that a run of a schedule has ended, where that is still there.
    async fn note_ended(&self, id: &str, last: &LastRun) -> Result<(), Error> {
        let log = &self.shared.log;
        while let Some(StoredSchedule { schedule, revision }) = log.schedule(id).await? {
            if log.change_schedule(revision, schedule.ended(last.clone())).await? {
                break;
            }
        }
        Ok(())
    }
}
