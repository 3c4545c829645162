//! The session's worker: started and dropped, told what to do, heard and asked.

use std::sync::Arc;
use std::time::Duration;

use mainstay_model::affordance::{Availability, availability};
use mainstay_model::breaker::is_of_provider;
use mainstay_model::outcome::OutputItem;
use mainstay_model::reload::FullReplayReason;
use mainstay_model::{
    Action, AgentNotice, Delta, Error, JobId, JobKind, Live, Notice, RunnerNotice, RunningJob, WorkEnding,
    WorkerExit,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::heard_notices::HeardNotices;
use super::{NOTICES, OUTPUT_INTERVAL, SessionTask};
use crate::output::{OutputBuffer, OutputPiece};
use crate::sync::task::spawn;
use crate::sync::time::{Instant, timeout};
use crate::validity::differs;
use crate::warm_up::{FromWorker, ReloadRequest, WarmUp, exited};
use crate::worker::{Order, Worker, reset};
use mainstay_runner::{
    AgentQuestion, Kernel, Report, Runner, RunnerFactory, StartLines, StartObserver, Submission,
};

/// What holds back what a worker says, to join it with what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Buffer {
    /// What the running job puts out, or none.
    Running,
    /// What jobs put out that have ended.
    Ended,
    /// What an agent says of a message.
    Stream,
}

impl SessionTask {
    pub(super) fn start_worker(&mut self, after: Duration) {
        self.start_worker_for(after, None);
    }

    /// Starts a worker; where one was there that could not run again what depends on what has changed, `because` of this.
    fn start_worker_for(&mut self, after: Duration, because: Option<FullReplayReason>) {
        self.drop_worker();
        let kind = &self.session.kind;
        let Some(factory) = self.shared.factory_of(kind).cloned() else {
            let unknown = Notice::WarmUpFailed { error: Error::KernelUnknown { kind: kind.clone() } };
            return self.tell_later(FromWorker::Notice(unknown));
        };
        let warm_up = WarmUp { after, because, ..self.warm_up(factory) };
        self.worker = Some(Worker::start(warm_up));
    }

    /// What a worker of the session needs to come up, at once.
    pub(super) fn warm_up(&self, factory: Arc<dyn RunnerFactory>) -> WarmUp {
        WarmUp {
            factory,
            spec: self.shared.runner_spec(&self.session, self.epoch),
            observer: StartObserver { report: self.report(), last_lines: StartLines::default() },
            log: Arc::clone(&self.shared.log),
            limits: self.shared.limits.clone(),
            starts: Arc::clone(&self.shared.starts),
            breakers: Arc::clone(&self.shared.breakers),
            after: Duration::ZERO,
            watch: self.shared.watch.clone(),
            given: self.given.clone(),
            because: None,
            up_to: self.session.last_seq,
            committed: self.visible.clone(),
            tell: self.worker_in.clone(),
        }
    }

    /// Has the worker run again what depends on what has changed.
    pub(super) fn reload(&mut self) {
        let Some(Runner::Kernel(kernel)) = self.runner() else {
            return self.start_worker_for(Duration::ZERO, Some(FullReplayReason::NoWorker));
        };
        let wanted = ReloadRequest { kernel, up_to: self.session.last_seq };
        if !self.worker.as_ref().is_some_and(|worker| worker.reload(wanted)) {
            self.start_worker_for(Duration::ZERO, Some(FullReplayReason::NoWorker));
        }
    }

    /// Tells this task how far a start is. What it has no time for is said again soon.
    fn report(&self) -> Report {
        let tell = self.worker_in.clone();
        Report::to(move |progress| {
            tell.try_send(FromWorker::WarmsUp(progress)).ok();
        })
    }

    /// Kills the worker. The channel is replaced with it, so that nothing it still says is taken for its successor's.
    pub(super) fn drop_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.kill();
        }
        self.heard = None;
        self.is_runner_gone = false;
        (self.grace, self.cancelled) = (None, None);
        (self.worker_in, self.from_worker) = mpsc::channel(NOTICES);
    }

    pub(super) fn reset_worker(&mut self) {
        // An agent is given the rest of its conversation when it starts.
        let Some(Runner::Kernel(kernel)) = self.runner() else { return self.start_worker(Duration::ZERO) };
        let limit = Duration::from_millis(self.shared.limits.worker_start_ms);
        spawn(reset(kernel, limit, self.worker_in.clone()));
    }

    /// Gives the worker a job's code; whether it is withheld is known of the job that runs.
    pub(super) fn run_job(&mut self, submission: Submission) {
        let job = submission.job;
        self.late.renew();
        let running = self.session.running().filter(|running| running.job == job);
        let is_withheld = running.is_some_and(|running| running.withheld);
        let requested = running.map_or(self.session.last_seq, |running| running.requested);
        self.give(Order::Run { submission: Submission { is_withheld, ..submission }, requested });
    }

    /// Gives the worker a job. Where none takes it, it is gone.
    pub(super) fn give(&mut self, order: Order) {
        if !self.order(order) {
            self.tell_later(FromWorker::Notice(exited(WorkerExit::Unknown)));
        }
    }

    /// Says to the runner what is queued and nobody knows whether it has heard; of what comes twice, it heeds the first.
    pub(super) fn steer_again(&self) {
        for order in self.named_prompts.orders() {
            self.order(order);
        }
    }

    /// The same to a runner that was adopted: what it has queued of its own accord it has already.
    pub(super) fn steer_again_adopted(&self) {
        for order in self.named_prompts.orders_of_events() {
            self.order(order);
        }
    }

    pub(super) fn order(&self, order: Order) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.order(order))
    }

    /// Says something to this task as if the worker had, once the present decision is through.
    fn tell_later(&self, word: FromWorker) {
        let tell = self.worker_in.clone();
        spawn(async move { tell.send(word).await });
    }

    pub(super) fn hear(&mut self, word: FromWorker) {
        match word {
            FromWorker::Told(number, notice) => {
                self.hear_up_to(number);
                self.hear(FromWorker::Notice(notice));
            }
            FromWorker::Started(id, runner) => {
                self.heard = Some(HeardNotices::of_new(id));
                let (grace, committed) = (self.grace(), self.visible.clone());
                if let Some(worker) = &mut self.worker {
                    worker.is_up(runner, grace, committed);
                }
                // What the one before had not come to hear.
                self.steer_again();
            }
            FromWorker::CannotReload(because) => self.start_worker_for(Duration::ZERO, Some(because)),
            FromWorker::WarmsUp(progress) => {
                let (session, warm_ups) = (self.session.id, &self.shared.warm_ups);
                if let Some(worker) = &mut self.worker {
                    worker.warming_up.get_or_insert_with(|| warm_ups.begin(session)).has_come_to(progress);
                }
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Agent(notice))) => self.hear_agent(notice),
            FromWorker::Notice(Notice::Runner(RunnerNotice::Output { job, stream, text })) => {
                let buffer = self.buffer_of(job);
                let pieces = self.output_buffer(buffer).push(job, stream, &text);
                self.record_released(buffer, pieces);
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Display { job, display })) => {
                let buffer = self.buffer_of(job);
                let pieces = self.output_buffer(buffer).show(job, *display);
                self.record_released(buffer, pieces);
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Cleared { job, is_replaced })) => {
                let pieces = self.output.clear(job, is_replaced);
                self.record_released(Buffer::Running, pieces);
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Comm { job, message })) => {
                let pieces = self.output.say(job, message);
                self.record_released(Buffer::Running, pieces);
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Finished { job, mut report })) => {
                self.secrets.mask_report(&mut report);
                self.hear_done(Notice::Runner(RunnerNotice::Finished { job, report }));
            }
            FromWorker::Notice(
                notice @ (Notice::WarmedUp { .. }
                | Notice::Runner(RunnerNotice::Built { .. } | RunnerNotice::CommTaken { .. })),
            ) => self.hear_done(notice),
            FromWorker::Notice(notice) => {
                self.is_done_warming_up();
                self.notice(notice);
            }
        }
    }

    /// The worker has done what it was given.
    fn hear_done(&mut self, notice: Notice) {
        self.is_done_warming_up();
        self.traces.worker_is_done();
        self.notice(notice);
        self.look();
    }

    /// Before what follows from it is published: nobody hears of a warm-up whose end they have heard of.
    fn is_done_warming_up(&mut self) {
        if let Some(worker) = &mut self.worker {
            worker.warming_up = None;
        }
    }

    /// Looks how the files are now that the session's code rests on, without waiting for it.
    fn look(&self) {
        let Some(known) = self.session.surroundings.as_ref().map(|known| &known.present) else { return };
        if known.is_empty() {
            return;
        }
        let (watch, known, tell) = (self.shared.watch.clone(), known.clone(), self.worker_in.clone());
        spawn(async move {
            let found = watch.look_at(known.clone()).await;
            if differs(&known, &found) {
                // The session's task may be gone; the next look finds the same.
                tell.send(FromWorker::Notice(Notice::LookedAt { found })).await.ok();
            }
        });
    }

    /// Hears what the worker has said already, before it is killed for what it has not.
    pub(super) fn hear_out(&mut self) {
        for _ in 0..NOTICES {
            let Ok(word) = self.from_worker.try_recv() else { return };
            self.hear(word);
        }
    }

    fn hear_agent(&mut self, notice: AgentNotice) {
        match notice {
            AgentNotice::Said(delta) => {
                self.shared.hub.tell(self.session.id, Live::Delta(delta.clone()));
                let ready = self.stream.push(delta);
                if !ready.is_empty() {
                    self.flush_buffers(&[Buffer::Ended, Buffer::Running]);
                }
                self.record_stream(ready);
            }
            AgentNotice::ToolOutput { call, output } => {
                self.shared.hub.tell(self.session.id, Live::ToolOutput { call, output });
            }
            AgentNotice::Message(_) => {
                self.stream.forget();
                self.agent_notice(notice);
            }
            AgentNotice::Ended { job, ref ending } => {
                self.note_turn(job, ending);
                self.traces.worker_is_done();
                self.agent_notice(notice);
            }
            AgentNotice::Compacted { .. }
            | AgentNotice::Queue(_)
            | AgentNotice::State(_)
            | AgentNotice::Noted(_) => self.agent_notice(notice),
        }
    }

    /// The provider of the model that the session's agent uses.
    pub(super) fn provider(&self) -> Option<&str> {
        Some(self.session.agent.as_ref()?.model.as_ref()?.provider.as_str())
    }

    /// Notes for the provider's breaker how a turn ended. One that was aborted, or failed by its own fault, says nothing of the provider.
    fn note_turn(&self, job: JobId, ending: &WorkEnding) {
        let is_turn = |running: &RunningJob| running.job == job && running.kind == JobKind::Turn;
        let ended = match ending {
            WorkEnding::Done { .. } => Ok(()),
            WorkEnding::Failed { message, .. } if is_of_provider(message) => Err(message.clone()),
            WorkEnding::Failed { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => return,
        };
        if let Some(provider) = self.provider()
            && self.session.running().is_some_and(is_turn)
        {
            self.shared.breakers.turn_ended(provider, ended);
        }
    }

    fn agent_notice(&mut self, notice: AgentNotice) {
        self.notice(Notice::Runner(RunnerNotice::Agent(notice)));
    }

    fn record_stream(&mut self, ready: impl IntoIterator<Item = Delta>) {
        for delta in ready {
            self.agent_notice(AgentNotice::Said(delta));
        }
        self.keep_flush_time();
    }

    pub(super) fn flush_output(&mut self) {
        self.flush_buffers(&[Buffer::Ended, Buffer::Running, Buffer::Stream]);
    }

    fn flush_buffers(&mut self, buffers: &[Buffer]) {
        for buffer in buffers {
            match buffer {
                Buffer::Stream => {
                    let held = self.stream.flush();
                    self.record_stream(held);
                }
                Buffer::Ended | Buffer::Running => {
                    let held = self.output_buffer(*buffer).flush();
                    self.record_output(held);
                }
            }
        }
    }

    /// Where what a job puts out is collected. One that has ended may have left code running.
    fn buffer_of(&self, job: Option<JobId>) -> Buffer {
        let running = self.session.running().map(|running| running.job);
        if job.is_some() && job != running { Buffer::Ended } else { Buffer::Running }
    }

    fn output_buffer(&mut self, buffer: Buffer) -> &mut OutputBuffer {
        match buffer {
            Buffer::Ended => &mut self.late,
            Buffer::Running | Buffer::Stream => &mut self.output,
        }
    }

    /// Records what a buffer has released. What the others hold was said before, and is recorded before: so all that is stored is of
    /// earlier notices than all that is held back.
    fn record_released(&mut self, by: Buffer, pieces: Vec<OutputPiece>) {
        if pieces.is_empty() {
            return self.keep_flush_time();
        }
        let other = if by == Buffer::Ended { Buffer::Running } else { Buffer::Ended };
        self.flush_buffers(&[other, Buffer::Stream]);
        self.record_output(pieces);
    }

    pub(super) fn record_output(&mut self, pieces: impl IntoIterator<Item = OutputPiece>) {
        let withheld = self.session.running().filter(|running| running.withheld).map(|running| running.job);
        for mut piece in pieces {
            if let OutputPiece::Chunk(_, put_out) = &mut piece {
                self.secrets_out_of(put_out);
            }
            let notice = match piece {
                OutputPiece::Chunk(job, put_out) if job.is_some() && job == withheld => {
                    self.unstored.push(put_out);
                    continue;
                }
                OutputPiece::Chunk(job, OutputItem::Printed(stream, text)) => {
                    Notice::Runner(RunnerNotice::Output { job, stream, text })
                }
                OutputPiece::Chunk(job, OutputItem::Displayed(display)) => {
                    Notice::Runner(RunnerNotice::Display { job, display })
                }
                OutputPiece::Cleared { job, .. } if Some(job) == withheld => {
                    self.unstored.clear();
                    continue;
                }
                OutputPiece::Cleared { job, is_replaced } => {
                    Notice::Runner(RunnerNotice::Cleared { job, is_replaced })
                }
                OutputPiece::Comm(job, message) => Notice::Runner(RunnerNotice::Comm { job, message }),
                OutputPiece::Cut(job) => {
                    Notice::OutputCut { job, limit: self.shared.limits.output_bytes_per_job as u64 }
                }
            };
            self.notice(notice);
        }
        self.keep_flush_time();
    }

    fn secrets_out_of(&self, put_out: &mut OutputItem) {
        match put_out {
            OutputItem::Printed(_, text) => self.secrets.mask(text),
            OutputItem::Displayed(display) => self.secrets.mask_display(display),
        }
    }

    /// Whether something that the worker has put out is held back, to be joined with what follows.
    pub(super) fn holds_output(&self) -> bool {
        self.output.is_pending() || self.late.is_pending() || self.stream.is_pending()
    }

    fn keep_flush_time(&mut self) {
        self.flush_at = match (self.holds_output(), self.flush_at) {
            (false, _) => None,
            (true, Some(at)) => Some(at),
            (true, None) => Some(Instant::now() + OUTPUT_INTERVAL),
        };
    }

    /// Passes a query to the worker without waiting for it.
    pub(super) fn query<T, F, A>(&self, action: Action, reply: oneshot::Sender<Result<T, Error>>, ask: A)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
        A: FnOnce(Arc<dyn Kernel>) -> F + Send + 'static,
    {
        let kind = &self.session.kind;
        // What its kind cannot do at all no start of it makes possible.
        let of_kind = match action.is_of(self.session.capabilities()) {
            true => Ok(()),
            false => Err(Error::NotOfKind { action, kind: kind.clone() }),
        };
        if let Err(error) = self.must_be_there().and_then(|()| self.shared.must_serve(kind)).and(of_kind) {
            reply.send(Err(error)).ok();
            return;
        }
        let state = self.session.state();
        let kernel = match self.runner() {
            Some(Runner::Kernel(kernel)) if availability(state, action) != Availability::Refused => kernel,
            Some(Runner::Kernel(_) | Runner::Agent(_)) | None => {
                reply.send(Err(self.session.refusal(action))).ok();
                return;
            }
        };
        let limit_ms = self.shared.limits.query_ms;
        spawn(async move {
            let answer = timeout(Duration::from_millis(limit_ms), ask(kernel)).await;
            reply.send(answer.unwrap_or(Err(Error::Timeout { limit_ms }))).ok();
        });
    }

    /// Asks the agent about itself, without waiting for it.
    pub(super) fn ask_agent(&self, question: AgentQuestion, reply: oneshot::Sender<Result<Value, Error>>) {
        let Some(Runner::Agent(agent)) = self.runner() else {
            let (action, kind) = (Action::Prompt, self.session.kind.clone());
            let error = match self.session.is_agent() {
                true => self.session.refusal(action),
                false => Error::NotOfKind { action, kind },
            };
            reply.send(Err(error)).ok();
            return;
        };
        let limit_ms = self.shared.limits.query_ms;
        spawn(async move {
            let answer = timeout(Duration::from_millis(limit_ms), agent.tell(question)).await;
            reply.send(answer.unwrap_or(Err(Error::Timeout { limit_ms }))).ok();
        });
    }

    pub(super) fn runner(&self) -> Option<Runner> {
        self.worker.as_ref()?.runner().cloned()
    }

    /// Whether the agent that is there pauses where it is told to. Whether one is there at all is decided elsewhere.
    pub(super) fn can_pause(&self) -> bool {
        self.runner().as_ref().and_then(Runner::agent).is_none_or(|agent| agent.pauses())
    }
}
