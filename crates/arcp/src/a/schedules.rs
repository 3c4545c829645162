//! Commands that are to run later. Source: draft-arcp-01, 10.6.
//!
//! A schedule is the engine's, and durable there. Each of its runs is a job of the session that made the schedule: its command has that session in its
//! key, so the run is told as all jobs of the session are.

use std::time::Duration;

use mainstay_arcp_protocol::a::control::{Ack, CancelAccepted, Nack};
use mainstay_arcp_protocol::a::execution::{
    AgentDelegate, JobCancelled, JobSchedule, ScheduledCommand, ToolInvoke, When as WireWhen,
};
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message};
use mainstay_engine::NewSchedule;
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::schedule::{MissedRuns, Recurrence, Schedule, When};
use mainstay_model::{Capability, CommandId, Error, SessionId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::delegation::{kind_of, of_kinds, placed};
use super::requests::{NOT_YOURS, not_yours};
use super::{A, closing, errors};
use crate::job_id::{Submission, job_id};
use crate::pending_submissions::Refusal;
use crate::session::Session;
use crate::submission_key::SubmissionKey;
use crate::work::Work;

/// How the names of schedules begin.
const SCHEDULE: &str = "sched_";

/// A message that schedules a command.
pub(super) struct Asked {
    pub(super) message: String,
    pub(super) trace: Option<String>,
    pub(super) key: Option<String>,
    /// The job that gives the task, where the message names one.
    pub(super) parent: Option<String>,
}

impl Session<A> {
    /// Makes a schedule, and answers with its name and its first run.
    pub(super) async fn schedule(&mut self, asked: Asked, schedule: JobSchedule) {
        match self.try_schedule(&asked, schedule).await {
            Ok(made) => {
                let details = json!({ "schedule_id": made.id, "next": made.state.next });
                self.answer(&asked.message, Message::Ack(Ack { details: Some(details) })).await;
            }
            Err(nack) => self.nack(&asked.message, nack).await,
        }
    }

    async fn try_schedule(&self, asked: &Asked, schedule: JobSchedule) -> Result<Schedule, Nack> {
        let refused = |error: Error| errors::of_error(&error);
        if !self.has("scheduled_jobs") {
            let reason = "this session does not have `scheduled_jobs`";
            return Err(errors::not_agreed(reason, "scheduled_jobs"));
        }
        if self.dialect.closing.is_some() {
            let reason = "the session is being closed, and takes no schedules";
            return Err(errors::nack(ErrorCode::FailedPrecondition, reason, closing::STEP));
        }
        let JobSchedule { job, when } = schedule;
        let is_task = job.r#type == "agent.delegate";
        if asked.parent.is_some() {
            let reason = "a job gives a task now, not later";
            return Err(errors::nack(ErrorCode::Unimplemented, reason, "Leave out `job_id`."));
        }
        let Scheduled { agent, input, kinds } = command_of(job)?;
        if is_task && let Some(nack) = self.refuse_text(&agent).await.map_err(refused)? {
            return Err(nack);
        }
        let when = moments_of(when)?;
        let told_apart = match &asked.key {
            Some(key) => Submission::Key(key),
            None => Submission::Message { session: &self.stored.id, message: &asked.message },
        };
        let job = job_id(self.client.principal(), told_apart).map_err(refused)?;
        let id = format!("{SCHEDULE}{}", job.as_str().trim_start_matches("job_"));
        let found =
            self.agent_cache.agent(&self.daemon, &self.client, &agent, None).await.map_err(refused)?;
        let found = found.map_err(|why| errors::of_refusal(&Refusal::Agent { agent: agent.clone(), why }))?;
        let work = Work::for_agent(&found, &input).map_err(refused)?.in_folder(self.folder.as_deref());
        let kind = &found.kind;
        let capabilities = self.client.capabilities_of(kind);
        let is_agent = capabilities.has(Capability::Conversation);
        let command = work.clone().command(kind, capabilities).map_err(refused)?;
        let key = SubmissionKey {
            session: self.stored.id.clone(),
            trace: asked.trace.clone(),
            message: Some(asked.message.clone()),
        };
        let key_prefix = Some(prefix_of(&key, &id).map_err(refused)?);
        let asking = self.asking_grants();
        let grants = match kinds {
            Some(kinds) => Some(of_kinds(&kinds, asking.as_deref()).map_err(refused)?),
            None => asking,
        };
        let (grants, missed) = (grants.filter(|_| is_agent), MissedRuns::RunOnce);
        // A session may be made for the schedule, and none is for one that is refused.
        let no_session = SessionId::from_uuid(Uuid::nil());
        let new = NewSchedule { id, when, session: no_session, command, key_prefix, grants, missed };
        self.client.check_schedule(&new).await.map_err(refused)?;
        let session = work.session(&self.daemon, &self.client, kind).await.map_err(refused)?;
        self.client.add_schedule(NewSchedule { session, ..new }).await.map_err(refused)
    }

    /// What a job of the session may do: where its client answers for permissions, what that allows.
    pub(super) fn asking_grants(&self) -> Option<Box<Grants>> {
        self.has("permissions").then(|| Box::new(Grants::default().asking()))
    }

    /// Ends a schedule of the session, where there is one of this name; says whether there is.
    pub(super) async fn cancel_schedule(&self, message: &str, id: &str) -> Result<bool, Error> {
        let Some(schedule) = self.client.schedule(id).await? else { return Ok(false) };
        let prefix = schedule.key_prefix.as_deref().unwrap_or_default();
        if prefix.split('/').next() != Some(self.stored.id.as_str()) {
            self.refuse_cancel(message, NOT_YOURS, not_yours("the schedule")).await;
            return Ok(true);
        }
        self.client.remove_schedule(id).await?;
        self.answer(message, Message::CancelAccepted(CancelAccepted { deadline_ms: None })).await;
        let cancelled = JobCancelled {
            code: Some(ErrorCode::Cancelled),
            reason: None,
            message: Some("the schedule was removed; a run that is under way goes on".to_owned()),
        };
        let envelope = self.envelope(Some(message), Message::JobCancelled(cancelled));
        let envelope = Envelope { job_id: Some(id.to_owned()), ..envelope };
        self.send_frame(super::encoded(&envelope)).await;
        Ok(true)
    }
}

/// What is to run later.
struct Scheduled {
    agent: String,
    /// What the agent is given.
    input: Value,
    /// What kinds of things it may do, where that is said.
    kinds: Option<Vec<OperationKind>>,
}

/// What a command asks that is to run later.
fn command_of(ScheduledCommand { r#type, payload }: ScheduledCommand) -> Result<Scheduled, Nack> {
    let wrong = |error: serde_json::Error| {
        let step = "Send the payload of `job` as the message of that type has it.";
        errors::nack(ErrorCode::InvalidArgument, error.to_string(), step)
    };
    match r#type.as_str() {
        "tool.invoke" => {
            let ToolInvoke { tool, arguments } =
                ToolInvoke::deserialize(Value::Object(payload)).map_err(wrong)?;
            let input = Value::Object(arguments.unwrap_or_default());
            Ok(Scheduled { agent: tool, input, kinds: None })
        }
        "agent.delegate" => {
            let delegate = AgentDelegate::deserialize(Value::Object(payload)).map_err(wrong)?;
            let AgentDelegate { target, task, context, working_directory, session } = delegate;
            let (inherited, memory) = match context {
                Some(context) => (context.permissions_inherited, context.shared_memory_ref),
                None => (None, None),
            };
            if memory.is_some() {
                let step = "Leave it out, and put what the agent needs into the task.";
                let reason = "shared_memory_ref cannot be used later";
                return Err(errors::nack(ErrorCode::Unimplemented, reason, step));
            }
            let kinds = inherited.map(|names| names.iter().map(|name| kind_of(name)).collect());
            let kinds = kinds.transpose().map_err(|error: Error| errors::of_error(&error))?;
            let input = placed(json!(task), working_directory, session);
            Ok(Scheduled { agent: target, input, kinds })
        }
        other => {
            let step = "Schedule `tool.invoke` or `agent.delegate`.";
            Err(errors::nack(ErrorCode::Unimplemented, format!("{other} cannot run later"), step))
        }
    }
}

/// The moments that a client wants.
fn moments_of(when: WireWhen) -> Result<When, Nack> {
    match when {
        WireWhen::At(at) => Ok(When::At(at)),
        WireWhen::After(seconds) => When::after(Timestamp::now(), Duration::from_secs(seconds))
            .map_err(|error| errors::of_error(&error)),
        WireWhen::Every(rule) => {
            let step = "Give a rule of RFC 5545, such as `FREQ=DAILY;BYHOUR=6`.";
            rule.parse::<Recurrence>()
                .map(When::Every)
                .map_err(|error| errors::nack(ErrorCode::InvalidArgument, format!("`every`: {error}"), step))
        }
    }
}

/// What the keys of a schedule's runs begin with, where those are not too long.
fn prefix_of(key: &SubmissionKey, schedule: &str) -> Result<String, Error> {
    // As long as the ids of its runs are for the next centuries.
    let run = CommandId::new(format!("{schedule}.{}", 10_u64.pow(10)))?;
    let whole = key.of_job(&run)?;
    Ok(whole.as_str().trim_end_matches(run.as_str()).to_owned())
}
