//! Tasks that an agent gives to another. Source: draft-arcp-01, 14.
//!
//! The `job_id` of the envelope names the job that gives the task. What the other job may do is a part of what that one may, which the engine
//! decides; a client that names no job gives what itself may do.

use mainstay_arcp_protocol::a::ErrorCode;
use mainstay_arcp_protocol::a::control::Nack;
use mainstay_arcp_protocol::a::execution::AgentDelegate;
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::{CommandId, Error, EventBody, JobSpec, SessionCommand, Timestamp};
use serde_json::{Map, Value, json};

use super::{A, errors, results};
use crate::agents::takes_objects;
use crate::delegation::Delegation;
use crate::session::Session;
use crate::submissions::Submit;

/// The draft's names of permissions, and those that grants have for them.
const NAMES: [(&str, OperationKind); 3] = [
    ("filesystem.read", OperationKind::FS_READ),
    ("filesystem.write", OperationKind::FS_WRITE),
    ("network.fetch", OperationKind::NET_FETCH),
];

impl Session<A> {
    /// Gives a task to an agent, with a part of what the job may do that gives it, and with the memory that both share.
    pub(super) async fn delegate(
        &mut self,
        submit: Submit,
        parent: Option<String>,
        delegate: AgentDelegate,
    ) -> Result<(), Error> {
        let AgentDelegate { task, context, working_directory, session, .. } = delegate;
        let (trace, inherited, memory) = match context {
            Some(context) => (context.trace_id, context.permissions_inherited, context.shared_memory_ref),
            None => (None, None, None),
        };
        let message = submit.message.clone();
        if let Some(nack) = self.refuse_text(&submit.agent).await? {
            self.nack(&message, nack).await;
            return Ok(());
        }
        let input = match memory {
            Some(_) if self.is_tool(&submit.agent).await? => {
                let reason = "shared_memory_ref: a tool takes none; put what it needs into the task";
                let step = "Leave `shared_memory_ref` out.";
                Err(errors::nack(ErrorCode::InvalidArgument, reason, step))
            }
            Some(memory) => match self.with_memory(&task, &memory).await? {
                // What came of a job does not depend on what is kept now.
                Err(nack) => self.given_before(&submit, &task, &memory).await?.ok_or(nack),
                found => found,
            },
            None => Ok(json!(task)),
        };
        let submit = input.and_then(|input| {
            let trace = submit.trace.clone().or(trace);
            let input = placed(input, working_directory, session);
            self.delegated(Submit { trace, input, ..submit }, parent, inherited)
                .map_err(|error| errors::of_error(&error))
        });
        match submit {
            Ok(submit) => self.submit(submit).await,
            Err(nack) => {
                self.nack(&message, nack).await;
                Ok(())
            }
        }
    }

    /// The submission of a job that may do what it inherits of the job that gives the task.
    fn delegated(
        &self,
        submit: Submit,
        parent: Option<String>,
        inherited: Option<Vec<String>>,
    ) -> Result<Submit, Error> {
        let parent = parent.map(CommandId::new).transpose()?;
        let known = parent.as_ref().and_then(|parent| self.fold.job(parent));
        // A task belongs to the trace of the job that gives it.
        let trace = submit.trace.clone().or_else(|| known.map(|known| known.origin.trace.clone()));
        let kinds = inherited.iter().flatten().map(|name| kind_of(name)).collect::<Result<Vec<_>, _>>()?;
        let (delegation, grants) = match (parent, inherited) {
            (Some(parent), _) => (Some(Delegation { parent, inherits: kinds }), submit.grants),
            (None, None) => (None, submit.grants),
            (None, Some(_)) => (None, Some(of_kinds(&kinds, submit.grants.as_deref())?)),
        };
        Ok(Submit { trace, delegation, grants, ..submit })
    }

    /// What the job of a submission was given where that was submitted before, with this task and this memory. A kernel was given the task alone.
    async fn given_before(
        &self,
        submit: &Submit,
        task: &str,
        memory: &Value,
    ) -> Result<Option<Value>, Error> {
        let job = self.job_of(submit)?;
        let Some((home, _)) = self.place_of(&job).await? else { return Ok(None) };
        let accepted = self.acceptance_of(&job, home).await?;
        let prompt = match accepted.as_ref().map(|event| &event.body) {
            Some(EventBody::EvalRequested { .. }) => return Ok(Some(json!(task))),
            Some(EventBody::JobRequested { work: JobSpec::Turn { prompt }, .. }) => prompt,
            Some(EventBody::CommandQueued(queued)) => match &queued.body {
                SessionCommand::Eval(_) => return Ok(Some(json!(task))),
                SessionCommand::Work(JobSpec::Turn { prompt }) => prompt,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let heading = behind_media_type(artifact_of(memory));
        let behind = prompt.text.strip_prefix(&before_memory(task)).and_then(|rest| rest.lines().next());
        let is_it = behind.is_some_and(|line| line.ends_with(heading.trim_end()));
        Ok(is_it.then(|| json!({ "code": task, "prompt": prompt.text })))
    }

    /// Why a task, which is a text, is not given to a tool that takes objects.
    pub(super) async fn refuse_text(&self, agent: &str) -> Result<Option<Nack>, Error> {
        if !self.is_tool(agent).await? || !takes_objects(&self.daemon, &self.client, agent).await? {
            return Ok(None);
        }
        let reason = format!("a task is a text, and {agent} takes an object");
        let step = "Name the worker as the target and write the call as the task, as `TOOL {\"name\": \"value\"}`; or use `tool.invoke`.";
        Ok(Some(errors::nack(ErrorCode::InvalidArgument, reason, step)))
    }

    async fn is_tool(&self, agent: &str) -> Result<bool, Error> {
        let found = self.agent_cache.agent(&self.daemon, &self.client, agent, None).await?;
        Ok(found.is_ok_and(|found| found.tool.is_some()))
    }

    /// The media type and the content of an artifact that was put, or of a job's result.
    async fn memory(&self, id: &str) -> Result<Option<(String, Vec<u8>)>, Error> {
        if let Some(job) = results::job_of(id) {
            let found = self.result_content(&job).await?;
            return Ok(found.map(|(sent, content)| (sent.media_type, content)));
        }
        let Some(artifact) = self.client.artifact(id, Timestamp::now()).await? else { return Ok(None) };
        let content = self.client.artifact_content(&artifact).await?;
        Ok(Some((artifact.stored.media_type, content.to_vec())))
    }

    /// What an agent is told that is given an artifact with its task. Code has no place for it, and stays as it is.
    async fn with_memory(&self, task: &str, memory: &Value) -> Result<Result<Value, Nack>, Error> {
        let id = artifact_of(memory);
        let found = match self.memory(id).await {
            Ok(found) => found,
            Err(error @ (Error::ObjectNotFound { .. } | Error::ObjectDamaged { .. })) => {
                return Ok(Err(errors::of_error_as(ErrorCode::DataLoss, &error)));
            }
            Err(error) => return Err(error),
        };
        let Some((media_type, content)) = found else {
            let reason = format!("shared_memory_ref: there is no artifact {id}, or it is kept no more");
            let step = "Put the artifact again, and name that one.";
            return Ok(Err(errors::nack(ErrorCode::NotFound, reason, step)));
        };
        Ok(match String::from_utf8(content) {
            Ok(text) => {
                let prompt = format!("{}{media_type}{}{text}", before_memory(task), behind_media_type(id));
                Ok(json!({ "code": task, "prompt": prompt }))
            }
            Err(_) => {
                let step = "Share an artifact that is text in UTF-8.";
                Err(errors::nack(ErrorCode::InvalidArgument, "shared_memory_ref: it is no text", step))
            }
        })
    }
}

/// What an agent is given as its task, in this folder or this session where one is named.
pub(super) fn placed(input: Value, folder: Option<String>, session: Option<String>) -> Value {
    if folder.is_none() && session.is_none() {
        return input;
    }
    let mut placed = match input {
        Value::Object(fields) => fields,
        task => Map::from_iter([("code".to_owned(), task.clone()), ("prompt".to_owned(), task)]),
    };
    let names = [("working_directory", folder), ("session", session)];
    placed.extend(names.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
    Value::Object(placed)
}

/// The artifact that is shared memory, by its id or its reference.
fn artifact_of(memory: &Value) -> &str {
    memory.as_str().or_else(|| memory["artifact_id"].as_str()).unwrap_or_default()
}

/// What an agent is told before the media type of the memory that it is given.
fn before_memory(task: &str) -> String {
    format!("{task}\n\nShared memory (")
}

/// What it is told between the media type of the memory and the text of it.
fn behind_media_type(artifact: &str) -> String {
    format!(", {artifact}):\n")
}

/// What a job may do that may do things of these kinds, and asks where it would have asked.
pub(super) fn of_kinds(kinds: &[OperationKind], held: Option<&Grants>) -> Result<Box<Grants>, Error> {
    let given = Grants::of_kinds(kinds)?;
    Ok(Box::new(if held.is_some_and(Grants::asks) { given.asking() } else { given }))
}

/// The kind of operations that a permission's name means, in the draft or in grants.
pub(super) fn kind_of(name: &str) -> Result<OperationKind, Error> {
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.parse(), |(_, kind)| Ok(kind.clone()))
}
