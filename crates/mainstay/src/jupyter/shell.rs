//! What a front end asks of a kernel, one after the other: to run code, and what is asked about code.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use mainstay_kernel::jupyter::connection::Channel;
use mainstay_kernel::jupyter::places;
use mainstay_kernel::jupyter::wire::{Malformed, Message};
use mainstay_model::entry::{Content, Entry, FORMS, Role};
use mainstay_model::{CommandId, DisplayId, Error, Event, EventBody, JobId};
use mainstay_protocol::operations::{Complete, Inspect, IsComplete, ListEntries};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Running;
use super::channels::{Incoming, IoPub};
use super::content::{
    CodeAt, HistoryEntry, HistoryRequest, IsCompleteRequest, complete_reply, history_reply, inspect_reply,
    is_complete_reply,
};
use super::execution::failure;
use super::session_binding::SessionBinding;

/// So many entries of a transcript are asked for at once.
const PAGE: usize = 1000;
/// Of how many requests it is known which job ran their code.
const JOBS_KNOWN: usize = 64;

/// What serves these requests.
pub(super) struct Shell {
    pub(super) seat: SessionBinding,
    pub(super) voice: Arc<IoPub>,
    /// What can be interrupted.
    pub(super) running: Running,
    requests: Incoming,
    /// What front ends answer to what code asks.
    pub(super) answers: Incoming,
    /// How often code ran.
    pub(super) count: u64,
    /// The request that ran code last.
    pub(super) last: Option<Message>,
    /// The requests whose code ran last, by their jobs: what it left running may print.
    jobs: VecDeque<(JobId, Message)>,
    /// Under which names something was displayed.
    pub(super) displayed: HashSet<DisplayId>,
}

impl Shell {
    pub(super) fn new(
        seat: SessionBinding,
        voice: Arc<IoPub>,
        running: Running,
        requests: Incoming,
        answers: Incoming,
    ) -> Self {
        let count = seat.evals();
        let (jobs, displayed) = (VecDeque::new(), HashSet::new());
        Self { seat, voice, running, requests, answers, count, last: None, jobs, displayed }
    }

    /// Serves requests, for ever.
    pub(super) async fn serve(mut self) {
        loop {
            tokio::select! {
                request = self.requests.recv() => match request {
                    Some(request) => self.serve_one(&request).await,
                    None => return,
                },
                // What others do in the session is theirs; what is heard is not heard again with code of ours.
                event = self.seat.next(), if !self.seat.is_lost() => {
                    if let Some(event) = event {
                        self.overhear(&event).await;
                    }
                }
            }
        }
    }

    async fn serve_one(&mut self, request: &Message) {
        self.voice.publish(Some(request), "status", &json!({ "execution_state": "busy" })).await;
        let kind = request.header.msg_type.clone();
        let content = match kind.as_str() {
            "execute_request" => Some(self.execute(request).await),
            "comm_open" | "comm_msg" | "comm_close" => {
                self.take_comm(request).await;
                None
            }
            _ => self.answer(&kind, request).await,
        };
        if let Some(content) = content {
            self.voice.reply(Channel::Shell, request, &kind.replace("_request", "_reply"), &content).await;
            if kind == "execute_request" && content["status"] == "error" && stops(request) {
                self.abort_waiting().await;
            }
        }
        self.voice.publish(Some(request), "status", &json!({ "execution_state": "idle" })).await;
    }

    /// The answer to what is asked about code; none to what needs none.
    async fn answer(&mut self, kind: &str, request: &Message) -> Option<Value> {
        let answer = match kind {
            "kernel_info_request" => Ok(self.seat.info()),
            "complete_request" => self.complete(request).await,
            "inspect_request" => self.inspect(request).await,
            "is_complete_request" => self.is_complete(request).await,
            "history_request" => self.history(request).await,
            "comm_info_request" => self.comms(request).await,
            _ => {
                tracing::debug!(kind, "a front end asks for what there is not");
                return None;
            }
        };
        Some(answer.unwrap_or_else(|error| failure(&error)))
    }

    async fn complete(&mut self, request: &Message) -> Result<Value, Error> {
        let asked: CodeAt = read(request)?;
        let cursor = places::position(&asked.code, asked.cursor_pos);
        let complete = Complete { session: self.seat.session(), code: asked.code.clone(), cursor };
        let completions = self.seat.call(complete).await?;
        Ok(complete_reply(&asked, completions))
    }

    async fn inspect(&mut self, request: &Message) -> Result<Value, Error> {
        let CodeAt { code, cursor_pos, detail_level } = read(request)?;
        let cursor = places::position(&code, cursor_pos);
        let inspect = Inspect { session: self.seat.session(), code, cursor, in_detail: detail_level > 0 };
        Ok(inspect_reply(self.seat.call(inspect).await?.as_ref()))
    }

    async fn is_complete(&mut self, request: &Message) -> Result<Value, Error> {
        let IsCompleteRequest { code } = read(request)?;
        Ok(is_complete_reply(self.seat.call(IsComplete { session: self.seat.session(), code }).await?))
    }

    async fn history(&mut self, request: &Message) -> Result<Value, Error> {
        let asked: HistoryRequest = read(request)?;
        let mut past: Vec<HistoryEntry> = Vec::new();
        let mut from = 0;
        loop {
            let page = ListEntries { session: self.seat.session(), from, limit: Some(PAGE), full: false };
            let page = self.seat.call(page).await?;
            if page.is_empty() {
                return Ok(history_reply(&asked, past));
            }
            from += page.len() as u64;
            for Entry { role, content, metadata } in page.into_iter().map(|view| view.placed.entry) {
                let text = match content {
                    Content::Text(text) => text,
                    Content::Object { preview, .. } => preview,
                };
                if role == Role::Input {
                    past.push(HistoryEntry { input: text, output: None });
                } else if role == Role::Output
                    && let Some(past) = past.last_mut()
                    // What was shown is no text.
                    && !metadata.contains_key(FORMS)
                {
                    past.output = Some(text);
                }
            }
        }
    }

    /// Takes in an event that nothing of ours waits for. Front ends share the widgets of a session.
    pub(super) async fn overhear(&mut self, event: &Event) {
        match &event.body {
            // What is withheld is no part of the session.
            EventBody::EvalRequested { withheld, .. } => self.count += u64::from(!withheld),
            EventBody::CommPublished { message, .. } => self.voice.pass_on(None, message).await,
            // What code left running puts out belongs to what ran last, as far as anybody knows.
            EventBody::OutputProduced { job: None, .. } | EventBody::OutputDisplayed { job: None, .. } => {
                if let Some(request) = self.last.clone() {
                    self.tell(&request, event).await;
                }
            }
            // What runs names its command.
            EventBody::OutputProduced { job: Some(job), .. }
            | EventBody::OutputDisplayed { job: Some(job), .. }
                if event.metadata.correlation.is_none() =>
            {
                let known = self.jobs.iter().find(|(known, _)| known == job);
                if let Some((_, request)) = known.cloned() {
                    self.tell(&request, event).await;
                }
            }
            _ => {}
        }
    }

    /// Remembers which request a job is of.
    pub(super) fn is_job_of(&mut self, job: JobId, request: &Message) {
        self.jobs.truncate(JOBS_KNOWN - 1);
        self.jobs.push_front((job, request.clone()));
    }

    /// Code that waits behind some that failed does not run.
    async fn abort_waiting(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            if request.header.msg_type == "execute_request" {
                let content = json!({ "status": "aborted", "execution_count": self.count });
                self.voice.publish(Some(&request), "status", &json!({ "execution_state": "busy" })).await;
                self.voice.reply(Channel::Shell, &request, "execute_reply", &content).await;
                self.voice.publish(Some(&request), "status", &json!({ "execution_state": "idle" })).await;
            } else {
                Box::pin(self.serve_one(&request)).await;
            }
        }
    }
}

/// The command that a request comes to: sent again, it is not carried out again.
pub(super) fn command_of(request: &Message) -> CommandId {
    CommandId::new(format!("jupyter:{}", request.header.msg_id))
        .unwrap_or_else(|_| CommandId::from_uuid(Uuid::now_v7()))
}

fn stops(request: &Message) -> bool {
    request.read::<super::content::ExecuteRequest>().is_ok_and(|asked| asked.stop_on_error)
}

/// What a request says.
///
/// # Errors
/// [`Error::BadRequest`] where it is none.
pub(super) fn read<T: serde::de::DeserializeOwned>(request: &Message) -> Result<T, Error> {
    request.read().map_err(|error: Malformed| Error::BadRequest { reason: error.to_string() })
}
