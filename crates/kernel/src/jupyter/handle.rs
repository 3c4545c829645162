//! A kernel as the engine has it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::replay::Snapshot;
use mainstay_model::{
    Action, Binding, Bundle, CommId, CommMessage, Diagnostic, Error, JobId, RunnerInfo, RunnerNotice,
    SessionKind, Severity, TextPosition,
};
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery, Members, Symbol, Symbols};
use mainstay_runner::{AskAnswer, CompletionItem, Completions, Kernel, Process, ResourceUsage, Submission};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use zeromq::{ReqSocket, SocketRecv, SocketSend, ZmqMessage};

use super::content::{CommInfo, CommInfoReply, CompleteReply, InspectReply, IsCompleteReply};
use super::execution::Execution;
use super::interrupt::interrupt;
use super::keeper::Keeper;
use super::launch::{ReaderTask, Start, StartedKernel, begin};
use super::line::Line;
use super::sockets::failed;
use super::{places, python};
use crate::building::Building;
use mainstay_os::process::Group;

use crate::runner_process;

/// How often a kernel is asked whether it is there, and how long it may take to say so.
const BEAT: Duration = Duration::from_secs(10);
/// How long a kernel may say nothing of code that is to stop, before it is told all the same.
const LATE_INTERRUPT: Duration = Duration::from_secs(1);
/// So many beats in a row that an idle kernel does not answer, and it counts as hung.
const BEATS_MISSED: u32 = 3;

/// A kernel, whichever process it is just now.
pub(super) struct Handle {
    start: Start,
    /// It ends with the kernel.
    notices: mpsc::WeakSender<RunnerNotice>,
    building: Building,
    current: Mutex<Current>,
}

/// The process that there is.
struct Current {
    line: Arc<Line>,
    info: RunnerInfo,
    group: Group,
    has_helper: bool,
    reader: Option<ReaderTask>,
    heart: AbortHandle,
    /// What has its values written down, and the task in which it does.
    keeper: Option<(Arc<Keeper>, AbortHandle)>,
}

impl Current {
    fn new(started: StartedKernel) -> Self {
        let StartedKernel { line, info, group, has_helper, heartbeat, reader, keeper } = started;
        let heart = tokio::spawn(beat(heartbeat, Arc::clone(&line), group.clone())).abort_handle();
        let keeper = keeper.map(|keeper| {
            let keeps = tokio::spawn(Arc::clone(&keeper).keep(Arc::clone(&line)));
            (keeper, keeps.abort_handle())
        });
        Self { line, info, group, has_helper, reader: Some(reader), heart, keeper }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.heart.abort();
        if let Some((_, keeps)) = &self.keeper {
            keeps.abort();
        }
        self.group.kill();
    }
}

/// Ends a kernel that neither runs code nor says that it is there. One that is busy may have no time for it.
async fn beat(mut heartbeat: ReqSocket, line: Arc<Line>, group: Group) {
    let mut missed = 0;
    while missed < BEATS_MISSED {
        sleep(BEAT).await;
        let answer = timeout(BEAT, async {
            heartbeat.send(ZmqMessage::from("ping")).await.ok()?;
            heartbeat.recv().await.ok()
        });
        let is_there = answer.await.is_ok_and(|answer| answer.is_some());
        missed = if is_there || line.running().is_some() { 0 } else { missed + 1 };
    }
    tracing::warn!("a kernel that does not answer its heartbeat is killed");
    group.kill();
}

impl Handle {
    pub(super) fn new(start: Start, started: StartedKernel, notices: &mpsc::Sender<RunnerNotice>) -> Self {
        Self {
            start,
            notices: notices.downgrade(),
            building: Building::new(None, notices),
            current: Mutex::new(Current::new(started)),
        }
    }

    fn with<T>(&self, read: impl FnOnce(&mut Current) -> T) -> T {
        read(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn line(&self) -> Arc<Line> {
        self.with(|current| Arc::clone(&current.line))
    }

    /// The line to a kernel that has a helper.
    fn helped(&self) -> Option<Arc<Line>> {
        self.with(|current| current.has_helper.then(|| Arc::clone(&current.line)))
    }

    /// What has its values written down, where something does.
    fn keeper(&self) -> Option<Arc<Keeper>> {
        self.with(|current| current.keeper.as_ref().map(|(keeper, _)| Arc::clone(keeper)))
    }

    /// That kernels of its kind do not do it.
    fn not_of_kind(&self, action: Action) -> Error {
        match SessionKind::new(&self.start.kernelspec.name) {
            Ok(kind) => Error::NotOfKind { action, kind },
            Err(error) => error,
        }
    }

    async fn members(&self, name: String) -> Result<Members, Error> {
        let found = match self.helped() {
            Some(line) => line.call::<Option<Members>>(&python::call("members", &[json!(name)])).await?,
            None => self.inspected(&name, name.chars().count(), false).await?.map(|told| Members {
                name: name.clone(),
                documentation: Some(told.text().to_owned()),
                ..Members::default()
            }),
        };
        let reason = || format!("nothing is called `{name}`");
        found.ok_or_else(|| Error::InvalidArgument { argument: "name".to_owned(), reason: reason() })
    }

    /// What a kernel says of the name behind which so many code points stand, in its own words.
    async fn inspected(&self, code: &str, at: usize, in_detail: bool) -> Result<Option<Bundle>, Error> {
        let content = json!({ "code": code, "cursor_pos": at, "detail_level": u8::from(in_detail) });
        let reply: InspectReply = self.told("inspect_request", &content).await?;
        Ok(reply.found.then(|| Bundle::from(reply.data)))
    }

    async fn completeness(&self, code: &str) -> Result<Completeness, Error> {
        let IsCompleteReply { status, indent } =
            self.told("is_complete_request", &json!({ "code": code })).await?;
        Ok(match status.as_str() {
            "complete" => Completeness::Complete,
            "incomplete" => Completeness::Incomplete { indent },
            "invalid" => Completeness::Invalid,
            _ => Completeness::Unknown,
        })
    }

    async fn symbols(&self, text: String, limit: u32) -> Result<Symbols, Error> {
        if let Some(line) = self.helped() {
            return line.call(&python::call("symbols", &[json!(text), json!(limit)])).await;
        }
        let end = places::position(&text, text.chars().count());
        let items = self.complete(text, end).await?.items;
        let found = items.len() as u64;
        let symbol = |CompletionItem { label, kind, detail, documentation }| Symbol {
            name: label.clone(),
            full_name: label,
            kind,
            signature: detail,
            documentation,
            assembly: None,
        };
        let items =
            items.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).map(symbol).collect();
        Ok(Symbols { items, found })
    }

    /// A kernel that takes no job is ended.
    fn is_sent(&self, sent: Result<(), Error>) {
        if let Err(error) = sent {
            tracing::warn!(%error, "a job could not be sent");
            self.kill();
        }
    }

    async fn comms(&self, target: Option<String>) -> Result<BTreeMap<CommId, String>, Error> {
        let content = target.map_or_else(|| json!({}), |target| json!({ "target_name": target }));
        let CommInfoReply { comms } = self.told("comm_info_request", &content).await?;
        // What cannot be a name names nothing.
        let named = |(id, info): (String, CommInfo)| Some((CommId::new(id).ok()?, info.target_name));
        Ok(comms.into_iter().filter_map(named).collect())
    }

    async fn told<T: serde::de::DeserializeOwned>(&self, kind: &str, content: &Value) -> Result<T, Error> {
        let reply = self.line().ask(kind, content).await?;
        reply.read().map_err(|error| failed(&format!("its answer is not understood: {error}")))
    }
}

#[async_trait]
impl Process for Handle {
    fn info(&self) -> RunnerInfo {
        self.with(|current| current.info.clone())
    }

    async fn answer(&self, AskAnswer { ask, answer, is_secret }: AskAnswer) {
        if is_secret && let Some(keeper) = self.keeper() {
            keeper.has_secrets();
        }
        let text = answer.ok().map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        });
        self.line().answer(ask, text.as_deref()).await;
    }

    async fn interrupt(&self) {
        if self.building.interrupt().await {
            return;
        }
        let (line, group) = self.with(|current| (Arc::clone(&current.line), current.group.clone()));
        let how = self.start.kernelspec.interrupt;
        // Some kernels end when they are interrupted while they are idle.
        let wanted = line.running().as_mut().map(|execution| (execution.job, execution.interrupt()));
        match wanted {
            Some((_, true)) => interrupt(&line, &group, how).await,
            Some((job, false)) => {
                tokio::spawn(async move {
                    sleep(LATE_INTERRUPT).await;
                    if line.running().as_mut().is_some_and(|execution| execution.takes_late_interrupt(job)) {
                        interrupt(&line, &group, how).await;
                    }
                });
            }
            None => {}
        }
    }

    fn kill(&self) {
        self.building.kill();
        self.with(|current| current.group.kill());
    }

    fn usage(&self) -> Option<ResourceUsage> {
        self.with(|current| runner_process::usage(&current.group))
    }
}

#[async_trait]
impl Kernel for Handle {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, file: _, command_line, is_withheld } = submission;
        // A kernel without a helper was not offered arguments, and a script's name alone is no loss.
        if let Some(line) = command_line
            && let Some(helped) = self.helped()
        {
            let words = json!(line.into_words());
            self.is_sent(helped.call(&python::call("run_next_with", &[words])).await);
        }
        if let Some(keeper) = self.keeper() {
            keeper.begins(job, &code);
            if is_withheld {
                keeper.has_secrets();
            }
        }
        self.is_sent(self.line().execute(Execution::new(job, &code), &code, !is_withheld).await);
    }

    async fn take_comm(&self, job: JobId, message: CommMessage) {
        self.is_sent(self.line().take_comm(Execution::of_comm(job), &message).await);
    }

    async fn build(&self, job: JobId) {
        self.building.begin(job).await;
    }

    async fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        match self.keeper() {
            Some(keeper) => keeper.snapshot(&self.line()).await,
            None => Ok(None),
        }
    }

    async fn forget_snapshot(&self) -> Result<(), Error> {
        if let Some(keeper) = self.keeper() {
            keeper.forget().await;
        }
        Ok(())
    }

    async fn restore(&self) -> Result<(), Error> {
        match self.keeper() {
            Some(keeper) => keeper.restore(&self.line()).await,
            None => Err(failed("it keeps no values")),
        }
    }

    /// Another process takes the place of this one: kernels know no other way.
    async fn reset(&self) -> Result<RunnerInfo, Error> {
        let notices = self.notices.upgrade().ok_or_else(|| failed("it has ended"))?;
        let keeper = self.keeper();
        let reader = self.with(|current| {
            let reader = current.reader.take();
            reader.iter().for_each(|reader| reader.is_replaced.store(true, Ordering::Release));
            current.keeper.iter().for_each(|(_, keeps)| keeps.abort());
            current.group.kill();
            reader
        });
        if let Some(reader) = reader {
            reader.task.await.ok();
        }
        // Now nobody writes there any more.
        if let Some(keeper) = keeper {
            keeper.forget().await;
        }
        let started = begin(&self.start, &notices).await?;
        let info = started.info.clone();
        self.with(|current| *current = Current::new(started));
        Ok(info)
    }

    async fn check(&self, code: String, _file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        if let Some(line) = self.helped() {
            return line.call(&python::call("check", &[json!(code)])).await;
        }
        let (severity, name, message) = match self.completeness(&code).await? {
            Completeness::Invalid => {
                (Severity::Error, "invalid", "the kernel says that this is no valid code, and not where")
            }
            Completeness::Incomplete { .. } => (
                Severity::Info,
                Diagnostic::UNCHECKED,
                "nothing was checked: this kernel only says that the code is not whole",
            ),
            // Some say so of any code.
            Completeness::Complete => (
                Severity::Info,
                Diagnostic::UNCHECKED,
                "nothing was checked: this kernel only says that the code is whole",
            ),
            Completeness::Unknown => return Err(self.not_of_kind(Action::Check)),
        };
        let end = places::position(&code, code.chars().count());
        let start = TextPosition { line: 1, column: 1 };
        let (code, message) = (name.to_owned(), message.to_owned());
        Ok(vec![Diagnostic { severity, code, message, file: None, start, end }])
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        let content = json!({ "code": code, "cursor_pos": places::offset(&code, cursor) });
        let CompleteReply { matches, cursor_start, metadata } =
            self.told("complete_request", &content).await?;
        let mut types = metadata.types.into_iter();
        let item = |label: String| {
            // IPython has a type for each match, in the order of the matches.
            let known = types.next().filter(|known| known.text == label);
            let (kind, detail) = known.map(|known| (known.kind, known.signature)).unwrap_or_default();
            let detail = detail.filter(|detail| !detail.is_empty());
            // So IPython calls what it does not know.
            let kind = kind.filter(|kind| kind != "<unknown>").unwrap_or_default();
            CompletionItem { label, kind, detail, documentation: None }
        };
        let items = matches.into_iter().map(item).collect();
        Ok(Completions { items, start: Some(places::position(&code, cursor_start)) })
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match query {
            KernelQuery::Members { name } => self.members(name).await.map(KernelAnswer::Members),
            KernelQuery::Symbols { text, limit } => {
                self.symbols(text, limit).await.map(KernelAnswer::Symbols)
            }
            KernelQuery::Values => {
                let helper = self.helped().ok_or_else(|| self.not_of_kind(Action::Explore))?;
                let values = helper.call::<Vec<Binding>>(&python::call("values", &[])).await?;
                Ok(KernelAnswer::Values(values))
            }
            KernelQuery::Tests { .. }
            | KernelQuery::Coverage { .. }
            | KernelQuery::Measure { .. }
            | KernelQuery::TakeMeasurement { .. }
            | KernelQuery::Review { .. } => Err(failed("it knows F# only")),
            KernelQuery::Completeness { code } => {
                self.completeness(&code).await.map(KernelAnswer::Completeness)
            }
            KernelQuery::Inspection { code, cursor, in_detail } => {
                let found = self.inspected(&code, places::offset(&code, cursor), in_detail).await?;
                Ok(KernelAnswer::Inspection(found))
            }
            KernelQuery::Comms { target } => self.comms(target).await.map(KernelAnswer::Comms),
        }
    }
}
