//! Schedules of a client's principal.

use mainstay_log::{AddedSchedule, StoredSchedule};
use mainstay_model::grant::Grants;
use mainstay_model::schedule::{MissedRuns, Schedule, ScheduleState, When};
use mainstay_model::{Error, Rights, SessionCommand, SessionId};

use super::Client;
use crate::clock::now;

/// How many schedules of others are listed.
const ALL: usize = 10_000;

/// A schedule that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// The name of the schedule, which no other has. One of this name that is the same is not made again.
    pub id: String,
    /// The moments at which it runs.
    pub when: When,
    /// The session that does the work.
    pub session: SessionId,
    /// What is submitted at each run.
    pub command: SessionCommand,
    /// What the idempotency key of each run begins with; the id of its command follows.
    pub key_prefix: Option<String>,
    /// What each run may do at most.
    pub grants: Option<Box<Grants>>,
    /// What becomes of runs that were missed.
    pub missed: MissedRuns,
}

impl Client {
    /// Makes a schedule of this client's principal, which has the rights that the client has now.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`] where the session may not be driven; [`Error::InvalidArgument`] where it would never or
    /// too often run, its command is none that can run later, its name is another's, or its principal has too many; what is wrong with its
    /// command's form; [`Error::StoreFailed`].
    pub async fn add_schedule(&self, new: NewSchedule) -> Result<Schedule, Error> {
        self.must_drive(new.session).await?;
        let schedule = self.planned(new)?;
        let shared = &self.engine.shared;
        let most = self.engine.limits().schedules;
        match shared.log.add_schedule(schedule.clone(), most as u64).await? {
            AddedSchedule::New => {
                shared.schedules.notify_one();
                Ok(schedule)
            }
            AddedSchedule::Known(known) if is_same(&known.schedule, &schedule) => Ok(known.schedule),
            AddedSchedule::Known(_) => Err(is_named_so(&schedule)),
            AddedSchedule::TooMany => Err(too_many(most)),
        }
    }

    /// Checks a schedule as far as that can be done before there is its session, so that one which is refused
    /// has no session made for it. The session that it names does not count.
    ///
    /// # Errors
    /// As [`add_schedule`](Self::add_schedule), but for what concerns the session.
    pub async fn check_schedule(&self, new: &NewSchedule) -> Result<(), Error> {
        let schedule = self.planned(new.clone())?;
        let log = &self.engine.shared.log;
        if let Some(StoredSchedule { schedule: known, .. }) = log.schedule(&schedule.id).await? {
            let as_known = Schedule { session: known.session, ..schedule };
            return if is_same(&known, &as_known) { Ok(()) } else { Err(is_named_so(&as_known)) };
        }
        let own = log.schedules(&self.access.principal).await?;
        let most = self.engine.limits().schedules;
        match own.iter().filter(|stored| !stored.schedule.has_ended()).count() < most {
            true => Ok(()),
            false => Err(too_many(most)),
        }
    }

    /// The schedule that is to be made now, with its first run.
    fn planned(&self, new: NewSchedule) -> Result<Schedule, Error> {
        let NewSchedule { id, when, session, command, key_prefix, grants, missed } = new;
        let created_at = now();
        let state = ScheduleState {
            planned_to: created_at,
            passed: 0,
            left_out: 0,
            under_way: Vec::new(),
            next: None,
            last: None,
        };
        let (principal, rights) = (self.access.principal.clone(), self.access.rights.clone());
        let schedule = Schedule {
            id,
            principal,
            rights,
            created_at,
            when,
            session,
            command,
            key_prefix,
            grants,
            missed,
            state,
        };
        schedule.begin(self.engine.limits().schedule_interval_ms)
    }

    /// The schedules of this client's principal, those that were made first at the front; also those that ended within a day. Who may do everything is
    /// given those of others too that have not ended.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn schedules(&self) -> Result<Vec<Schedule>, Error> {
        let log = &self.engine.shared.log;
        let mut found = log.schedules(&self.access.principal).await?;
        if self.access.rights == Rights::All {
            let all = log.next_schedules(ALL).await?;
            found.extend(all.into_iter().filter(|stored| stored.schedule.principal != self.access.principal));
        }
        Ok(found.into_iter().map(|stored| stored.schedule).collect())
    }

    /// Removes a schedule of this client's principal, or of any where the client may do everything; says whether it was there. A run that is under way goes on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn remove_schedule(&self, id: &str) -> Result<bool, Error> {
        match self.schedule(id).await? {
            Some(_) => self.engine.shared.log.remove_schedule(id).await,
            None => Ok(false),
        }
    }

    /// The schedule of this name; none where it is another principal's, unless the client may do everything.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn schedule(&self, id: &str) -> Result<Option<Schedule>, Error> {
        let found = self.engine.shared.log.schedule(id).await?;
        let schedule = found.map(|StoredSchedule { schedule, .. }| schedule);
        let is_all = self.access.rights == Rights::All;
        Ok(schedule.filter(|schedule| is_all || schedule.principal == self.access.principal))
    }
}

/// Whether the same is asked for again. Where a gateway sends a message again, which its key says, a delay leads to another moment each time.
fn is_same(known: &Schedule, new: &Schedule) -> bool {
    let is_sent_again = known.key_prefix.is_some() && known.key_prefix == new.key_prefix;
    let is_once = is_sent_again && matches!((&known.when, &new.when), (When::At(_), When::At(_)));
    (known.when == new.when || is_once)
        && known.principal == new.principal
        && known.session == new.session
        && known.command == new.command
        && known.grants == new.grants
        && known.missed == new.missed
}

fn is_named_so(schedule: &Schedule) -> Error {
    refused(format!("another is named `{}`; name it otherwise", schedule.id))
}

fn too_many(most: usize) -> Error {
    refused(format!("you have {most} that wait for a run; remove some, or raise `schedules`"))
}

fn refused(reason: String) -> Error {
    Error::InvalidArgument { argument: "schedule".to_owned(), reason }
}
