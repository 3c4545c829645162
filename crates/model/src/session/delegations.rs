//! The tasks that the jobs of a session gave to others. Source: ARCP draft 01, section 14; draft 02, section 10.
//!
//! The session of the job that gave a task has all that must be known of it until it has ended: which command carries it out, what went with it,
//! and whether that command is to stop. So nothing of that is lost with a daemon.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Session;
use crate::error::Error;
use crate::eval::Failure;
use crate::event::{EventBody, JobEnd};
use crate::grant::{Amounts, Grants};
use crate::id::{CommandId, JobId, Principal, Seq};
use crate::parent_ending::ParentEnding;

/// How many tasks that the jobs of a session gave to others may not have ended.
pub const OPEN_DELEGATIONS: usize = 64;

/// A task that a job gave to another, and that has not ended as far as its session knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// The event with which the task was given.
    pub given_at: Seq,
    /// The job that gave the task.
    pub job: JobId,
    /// The command of that job.
    pub parent: CommandId,
    /// The principal of both commands.
    pub principal: Principal,
    /// The command that carries the task out.
    pub child: CommandId,
    /// What went with the task of the job's budget.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: Amounts,
    /// How the job that gave the task came to its end, where the other is to stop for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ParentEnding>,
}

impl Delegation {
    /// Whether it is the task that this job gave to this command.
    fn is_of(&self, job: JobId, child: &CommandId) -> bool {
        self.job == job && self.child == *child
    }
}

/// What an event means for the tasks that a job has given to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeansForTasks {
    /// They are to stop.
    Stop(ParentEnding),
    /// The job has come to its end by itself, and they go on.
    GoOn,
}

/// What an event means for the tasks that its job has given to others; none where that is nothing.
fn means_for_tasks(body: &EventBody) -> Option<(JobId, MeansForTasks)> {
    let (job, ending) = match body {
        EventBody::CancelRequested { job, .. } => (*job, ParentEnding::Cancelled),
        EventBody::EvalTimedOut { job, .. } => (*job, ParentEnding::TimedOut),
        EventBody::JobDenied { job, error: Error::ParentEnded { ending, .. } } => (*job, *ending),
        EventBody::JobDenied { job, .. } => (*job, ParentEnding::Denied),
        EventBody::EvalFailed { job, failure: Failure::WorkerExited { .. }, .. } => {
            (*job, ParentEnding::Lost)
        }
        body => match body.job_end()? {
            (job, JobEnd::Cancelled(_)) => (job, ParentEnding::Cancelled),
            (job, JobEnd::Interrupted) => (job, ParentEnding::Lost),
            (job, JobEnd::Completed | JobEnd::Failed) => return Some((job, MeansForTasks::GoOn)),
        },
    };
    Some((job, MeansForTasks::Stop(ending)))
}

impl Session {
    /// The running job gave a task to another.
    pub(super) fn delegate(&mut self, given_at: Seq, job: JobId, child: &CommandId, given: Option<&Grants>) {
        let Some(running) = self.running().filter(|running| running.job == job) else { return };
        let (parent, principal) = (running.command.clone(), running.source.principal());
        let (child, given) = (child.clone(), given.map(Grants::remaining).unwrap_or_default());
        self.delegations.push(Delegation { given_at, job, parent, principal, child, given, stops: None });
    }

    /// A task has ended, or was never begun.
    pub(super) fn end_delegation(&mut self, job: JobId, child: &CommandId) {
        self.delegations.retain(|delegation| !delegation.is_of(job, child));
    }

    /// Takes in what an event of the job that ran before it means for the tasks that this job gave to others: those go on after it, or are to stop.
    pub(super) fn note_for_tasks(&mut self, ran: Option<JobId>, body: &EventBody) {
        if self.delegations.is_empty() {
            return;
        }
        let Some((job, means)) = means_for_tasks(body).filter(|(job, _)| ran == Some(*job)) else { return };
        match means {
            MeansForTasks::Stop(ending) => {
                for delegation in self.delegations.iter_mut().filter(|delegation| delegation.job == job) {
                    delegation.stops.get_or_insert(ending);
                }
            }
            MeansForTasks::GoOn => {
                self.delegations.retain(|delegation| delegation.job != job || delegation.stops.is_some());
            }
        }
    }
}
