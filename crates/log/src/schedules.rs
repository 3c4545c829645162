//! Schedules: work that is to be submitted later, also by another daemon.

use async_trait::async_trait;
use mainstay_model::schedule::Schedule;
use mainstay_model::{Error, Principal, Timestamp};

/// Stores schedules. Each change says on which revision it rests, so that two daemons on one store take no run twice.
#[async_trait]
pub trait Schedules: Send + Sync + 'static {
    /// Stores a new schedule, where its principal has less than `limit` that have not ended, and none of this id is there.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn add_schedule(&self, schedule: Schedule, limit: u64) -> Result<AddedSchedule, Error>;

    /// The schedule of this id.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn schedule(&self, id: &str) -> Result<Option<StoredSchedule>, Error>;

    /// The schedules of a principal, those that were made first at the front.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn schedules(&self, principal: &Principal) -> Result<Vec<StoredSchedule>, Error>;

    /// The schedules that have something to do, whosever they are, those that are due first at the front; so many at most.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn next_schedules(&self, limit: usize) -> Result<Vec<StoredSchedule>, Error>;

    /// The schedules that have something to do at this moment, whosever they are, those that are due first at
    /// the front; and when the first of the others has. What is not due is not read.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn due_schedules(&self, now: Timestamp) -> Result<DueSchedules, Error>;

    /// Puts a schedule in the place of its revision; says whether that was still the newest.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn change_schedule(&self, revision: u64, schedule: Schedule) -> Result<bool, Error>;

    /// Removes a schedule; says whether it was there.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_schedule(&self, id: &str) -> Result<bool, Error>;

    /// Removes the schedules that ended before this moment; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_ended_schedules(&self, before: Timestamp) -> Result<u64, Error>;
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSchedule {
    /// The schedule in its newest form.
    pub schedule: Schedule,
    /// How often the schedule was changed.
    pub revision: u64,
}

/// The schedules that have something to do at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueSchedules {
    /// Those that have something to do, the first at the front.
    pub schedules: Vec<StoredSchedule>,
    /// When the first of the others has something to do; none where there is no other.
    pub next: Option<Timestamp>,
}

/// What became of a schedule that was to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedSchedule {
    /// It is stored now.
    New,
    /// One of this id is there, which stays as it is.
    Known(Box<StoredSchedule>),
    /// Its principal has as many as it may have.
    TooMany,
}
