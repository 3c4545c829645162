//! Schedules: code and prompts that run later.

use mainstay_model::schedule::{LastRun, MissedRuns, Schedule, When};
use mainstay_model::{SessionCommand, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::Nothing;

operations! {
    /// Has code or a prompt run later in a session.
    "schedule/add" AddSchedule {
        /// The session that does it: its id, the end of it, or its name.
        session: String,
        /// The name of the schedule; without it, the daemon gives one. One of this name that is the same is not made again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
        /// The code for a kernel, or the prompt for an agent.
        text: String,
        /// The moments at which it runs.
        when: ScheduledTime,
        /// What becomes of runs that were missed.
        #[serde(default)]
        missed: MissedRuns,
    } -> ScheduleView;

    /// The schedules of this principal, also those that ended within a day.
    "schedule/list" ListSchedules {} -> ScheduleList;

    /// Removes a schedule. A run that is under way goes on.
    "schedule/remove" RemoveSchedule {
        /// The name of the schedule.
        schedule: String,
    } -> Nothing;
}

/// When a schedule is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScheduledTime {
    /// Once, at this moment.
    At(Timestamp),
    /// Once, after so many milliseconds.
    After(u64),
    /// Again and again, by this rule of RFC 5545.
    Every(String),
}

/// The schedules of a principal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleList {
    /// The schedules, those that were made first at the front.
    pub schedules: Vec<ScheduleView>,
}

/// A schedule as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleView {
    /// The name of the schedule.
    pub schedule: String,
    /// The session that does the work.
    pub session: SessionId,
    /// The moments at which it runs.
    pub when: When,
    /// What is submitted at each run.
    pub command: SessionCommand,
    /// What becomes of runs that were missed.
    pub missed: MissedRuns,
    /// When the schedule was made.
    pub created_at: Timestamp,
    /// The next run; none once it has had its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// How many of its moments have passed.
    pub passed: u64,
    /// How many of those were left out.
    pub left_out: u64,
    /// The runs that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<Timestamp>,
    /// The newest run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

impl From<Schedule> for ScheduleView {
    fn from(schedule: Schedule) -> Self {
        let Schedule { id, created_at, when, session, command, missed, state, .. } = schedule;
        Self {
            schedule: id,
            session,
            when,
            command,
            missed,
            created_at,
            next: state.next,
            passed: state.passed,
            left_out: state.left_out,
            under_way: state.under_way,
            last: state.last,
        }
    }
}
