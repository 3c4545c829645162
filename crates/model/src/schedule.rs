//! Schedules: when work is to be submitted later, once or again and again, and what becomes of runs that were missed. Pure: the moment comes
//! in as an argument. `engine` submits the runs, `log` stores the schedules. Source: draft-arcp-01, 10.6.

mod plan;
mod recurrence;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::access::{Access, Rights};
use crate::command::SessionCommand;
use crate::error::Error;
use crate::grant::Grants;
use crate::id::{CommandId, IdempotencyKey, Principal, SessionId};

pub use self::plan::Due;
pub use self::recurrence::{Recurrence, RecurrenceError};

/// The longest name of a schedule, in bytes.
const LONGEST_ID: usize = 100;

/// The most runs that are made up for at once.
const MOST_MADE_UP: u32 = 1000;

/// Work that is to be submitted later, for a principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// The name of the schedule, which no other has.
    pub id: String,
    /// The principal for whom the runs are submitted.
    pub principal: Principal,
    /// What the principal might do when it made the schedule, and so what its runs may do.
    pub rights: Rights,
    /// When the schedule was made.
    pub created_at: Timestamp,
    /// The moments at which it runs.
    pub when: When,
    /// The session that does the work.
    pub session: SessionId,
    /// What is submitted at each run.
    pub command: SessionCommand,
    /// What the idempotency key of each run begins with; the id of its command follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// What each run may do at most; none where nothing bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Box<Grants>>,
    /// What becomes of runs that were missed.
    pub missed: MissedRuns,
    /// How far it has come.
    pub state: ScheduleState,
}

/// When a schedule runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Once, at this moment.
    At(Timestamp),
    /// Again and again, by this rule, which begins when the schedule is made.
    Every(Recurrence),
}

/// What becomes of runs whose moment passed while no daemon could submit them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MissedRuns {
    /// They are left out.
    Skip,
    /// One run stands for all of them: the last.
    #[default]
    RunOnce,
    /// The last so many of them are made up for, in order.
    RunAll(u32),
}

/// How far a schedule has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleState {
    /// The moment up to which its runs have been planned.
    pub planned_to: Timestamp,
    /// How many moments of its rule have passed.
    pub passed: u64,
    /// How many of those were left out.
    pub left_out: u64,
    /// The runs that were taken for submission and have not ended, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<Timestamp>,
    /// The next run; none once it has had its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The newest run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// The newest run of a schedule that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// The moment that the run is for.
    pub at: Timestamp,
    /// The id of its command.
    pub command: CommandId,
    /// Why it was refused or failed; none where its command was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// How it ended, where it was carried out and did not succeed: `raised`, `failed`, `cancelled` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
}

impl When {
    /// Once, after this delay.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where that is no moment of the calendar.
    pub fn after(now: Timestamp, delay: std::time::Duration) -> Result<Self, Error> {
        now.checked_add(delay).map(Self::At).map_err(|_| refused("`after` is longer than the calendar is"))
    }
}

impl Schedule {
    /// Checks a schedule that is new, and plans its first run.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where its name is too long, its command runs nothing or stores nothing, its rule has no moment, or its
    /// runs are less than `least_ms` apart.
    pub fn begin(mut self, least_ms: u64) -> Result<Self, Error> {
        if self.id.is_empty() || self.id.len() > LONGEST_ID {
            return Err(refused(&format!("its name must have 1 to {LONGEST_ID} bytes")));
        }
        // A run of each name must be a command of its own.
        self.command_of(self.created_at)?.check_given()?;
        self.key_of(&self.command_of(self.created_at)?)?;
        if let MissedRuns::RunAll(most) = self.missed
            && most > MOST_MADE_UP
        {
            return Err(refused(&format!("at most {MOST_MADE_UP} missed runs are made up for")));
        }
        let is_withheld = matches!(&self.command, SessionCommand::Eval(eval) if eval.withheld);
        if !self.command.rules().runs_job || is_withheld {
            return Err(refused("only code and prompts that are stored can run later"));
        }
        if let When::Every(rule) = &self.when
            && let Some(gap_ms) = rule.least_gap_ms(self.created_at)
            && gap_ms < least_ms
        {
            let reason = format!("its runs are {gap_ms} ms apart, and `schedule-interval-ms` is {least_ms}");
            return Err(refused(&reason));
        }
        self.state = ScheduleState {
            planned_to: self.created_at,
            passed: 0,
            left_out: 0,
            under_way: Vec::new(),
            next: self.first(),
            last: None,
        };
        match self.state.next {
            Some(_) => Ok(self),
            None => Err(refused("`every` names no moment to come")),
        }
    }

    /// For whom, and with what rights, its runs are submitted.
    pub fn access(&self) -> Access {
        Access { principal: self.principal.clone(), rights: self.rights.clone() }
    }

    /// Whether it has nothing left to do.
    pub const fn has_ended(&self) -> bool {
        self.state.next.is_none() && self.state.under_way.is_empty()
    }

    /// When there is something to do for it: at once where runs have not ended.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        match self.state.under_way.first() {
            Some(run) => Some(*run),
            None => self.state.next,
        }
    }

    /// The id of the command of a run, which is the same however often the run is submitted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the schedule's name can be in no id.
    pub fn command_of(&self, run: Timestamp) -> Result<CommandId, Error> {
        CommandId::new(format!("{}.{}", self.id, run.as_second()))
    }

    /// The idempotency key of a run, where the schedule has one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is too long.
    pub fn key_of(&self, command: &CommandId) -> Result<Option<IdempotencyKey>, Error> {
        self.key_prefix.as_ref().map(|prefix| IdempotencyKey::new(format!("{prefix}{command}"))).transpose()
    }

    /// The same schedule, with the runs that are due taken for submission; none of them is taken again.
    #[must_use]
    pub fn take_due(mut self, now: Timestamp) -> Self {
        let Due { runs, left_out, passed, next } = self.due(now);
        let state = &mut self.state;
        state.planned_to = state.planned_to.max(now);
        (state.passed, state.left_out) = (state.passed + passed, state.left_out + left_out);
        state.next = next;
        state.under_way.extend(runs);
        self
    }

    /// The same schedule, once a run has ended.
    #[must_use]
    pub fn ended(mut self, last: LastRun) -> Self {
        self.state.under_way.retain(|run| *run != last.at);
        if self.state.last.as_ref().is_none_or(|before| before.at <= last.at) {
            self.state.last = Some(last);
        }
        self
    }
}

fn refused(reason: &str) -> Error {
    Error::InvalidArgument { argument: "schedule".to_owned(), reason: reason.to_owned() }
}
