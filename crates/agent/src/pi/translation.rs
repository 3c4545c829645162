//! What pi says, in the engine's vocabulary, and what the engine wants, in pi's. Pure: lines and wishes come in, with the time;
//! lines to pi and notices go out. The only state is what pi has been told and has not answered, and the job it is at.
//!
//! A turn is over when pi says that it has nothing under way after the run's end: a retry or a compaction is begun in the moment
//! in which the end is said, so the answer to a question that is asked then comes behind the news of it.

mod answers;
mod events;
mod job;
mod pauses;
mod questions;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use mainstay_model::agent::Image as Picture;
use mainstay_model::{
    AgentNotice, AgentState, AskId, Delivery, Error, JobId, JobSpec, Note, Prompt, QueuedPrompt,
    RunnerNotice, Setting, WorkEnding,
};
use mainstay_runner::AgentQuestion;
use serde_json::Value;

use super::dialog::Dialog;
use super::operation_checks;
use super::rpc::{Command, FOLLOW_UP, Image, request};
use job::{Job, Phase};
use pauses::PauseState;

/// What follows from something that was said.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// Send this notice to the engine.
    Tell(RunnerNotice),
    /// Send this line to pi.
    Send(String),
    /// It shortened what it is shown; look up how much of that it kept.
    Compacted { summary: String, first_kept: String, metadata: Vec<(String, Value)> },
    /// A question is answered.
    Answered { question: u64, answer: Result<Value, Error> },
    /// It goes on as it should, and may be given work.
    Ready,
    /// It does not yield.
    Kill,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    /// How long a model may say nothing; none for as long as it likes.
    pub(crate) silence: Option<Duration>,
    /// How long a dialog waits for its answer where its extension does not say, in milliseconds.
    pub(crate) dialog_ms: u64,
    /// How long it may take to yield then.
    pub(crate) grace: Duration,
}

/// What pi was told and has not answered.
#[derive(Debug, PartialEq)]
enum PendingRequest {
    /// How it is when it has come up.
    Started,
    /// To go on as it did before; what.
    Restored(String),
    /// How it is when all that is done.
    Ready,
    /// To begin with a job, or the next step of one.
    Step(Step),
    /// How it is now that a job may have ended.
    Settled(JobId),
    /// What a client asked.
    Question(u64),
    /// To hear something while it works.
    Steered,
    /// To hear how it is to go on after a pause.
    Guided,
    /// The answer to a request to stop.
    Stopped,
}

/// A step of a job.
#[derive(Debug, PartialEq)]
enum Step {
    /// A turn is accepted.
    Accept,
    /// A compaction, or a command of a shell, and what came of it.
    Do,
    /// The models to choose the one before from.
    Choose,
    /// A setting was changed.
    Set,
    /// How it is now that it is set; what was answered to that.
    Look(Value),
}

/// The state of the translation.
#[derive(Debug)]
pub(crate) struct Translation {
    timeouts: Timeouts,
    last: u64,
    waiting: HashMap<u64, PendingRequest>,
    dialogs: HashMap<AskId, Dialog>,
    /// What its tools are about to do, and wait to hear whether they may.
    checks: HashSet<AskId>,
    /// The asks until whose answers the job is to pause, with what its tools are about to do meanwhile.
    pause: PauseState,
    /// Whether a grant bounded the job before: what its tools still do is not allowed by the end of it.
    was_bounded: bool,
    job: Option<Job>,
    state: AgentState,
    /// How it is to go on once it is there.
    wanted: Option<AgentState>,
    is_ready: bool,
    /// How many things it has still to hear.
    queued: usize,
    /// Whether it is being set to the model before.
    is_cycling: bool,
    session_file: Option<String>,
    out: VecDeque<Output>,
}

impl Translation {
    /// Of a pi that is just starting, and is to go on as it did before.
    pub(crate) fn new(timeouts: Timeouts, wanted: Option<AgentState>) -> Self {
        let mut new = Self {
            timeouts,
            last: 0,
            waiting: HashMap::new(),
            dialogs: HashMap::new(),
            checks: HashSet::new(),
            pause: PauseState::default(),
            was_bounded: false,
            job: None,
            state: AgentState::default(),
            wanted,
            is_ready: false,
            queued: 0,
            is_cycling: false,
            session_file: None,
            out: VecDeque::new(),
        };
        new.send(&Command::GetState, PendingRequest::Started);
        new
    }

    /// What follows, and has not been taken yet.
    pub(crate) fn take(&mut self) -> Vec<Output> {
        self.out.drain(..).collect()
    }

    /// The file that pi writes.
    pub(crate) fn session_file(&self) -> Option<&str> {
        self.session_file.as_deref()
    }

    /// The job it is at.
    pub(crate) fn job(&self) -> Option<JobId> {
        self.job.as_ref().map(|job| job.id)
    }

    /// Starts a job of the agent.
    pub(crate) fn work(&mut self, id: JobId, work: JobSpec, is_bounded: bool, now: Duration) {
        self.is_cycling = false;
        let (phase, command) = match work {
            JobSpec::Turn { prompt } => {
                let (message, images) = said(prompt);
                (Phase::turn(), Command::Prompt { message, images, streaming_behavior: FOLLOW_UP })
            }
            JobSpec::Compaction { instructions } => {
                (Phase::Compaction, Command::Compact { custom_instructions: instructions })
            }
            JobSpec::Shell { is_private: true, .. } => {
                let message =
                    "pi 0.73.1 cannot run a command without telling its model of it; run it in a shell"
                        .to_owned();
                return self.agent(AgentNotice::Ended { job: id, ending: WorkEnding::failed(message) });
            }
            JobSpec::Shell { line, .. } => {
                (Phase::Shell { command: line.clone() }, Command::Bash { command: line })
            }
            JobSpec::Setting(setting) => (Phase::Setting, command_of(setting)),
            JobSpec::Build | JobSpec::Rebuild | JobSpec::Comm(_) => {
                let ending = WorkEnding::failed("an agent has nothing to build");
                return self.agent(AgentNotice::Ended { job: id, ending });
            }
        };
        let step = match (&phase, &command) {
            (Phase::Turn(_), _) => Step::Accept,
            (Phase::Compaction | Phase::Shell { .. }, _) => Step::Do,
            (Phase::Setting, Command::GetAvailableModels) => Step::Choose,
            (Phase::Setting, _) => Step::Set,
        };
        self.was_bounded = is_bounded;
        self.job = Some(Job { is_bounded, ..Job::new(id, phase, now) });
        self.send(&command, PendingRequest::Step(step));
    }

    /// Says something to it while it works.
    pub(crate) fn steer(&mut self, queued: QueuedPrompt) {
        let (message, images) = said(queued.prompt);
        let command = match queued.hears {
            Delivery::Steer => Command::Steer { message, images },
            Delivery::FollowUp => Command::FollowUp { message, images },
        };
        self.send(&command, PendingRequest::Steered);
    }

    /// Stops the job it is at.
    pub(crate) fn interrupt(&mut self) {
        let Some(job) = &mut self.job else { return };
        job.is_interrupted = true;
        let command = match &job.phase {
            // This also ends the wait before a retry.
            Phase::Turn(_) => Some(Command::Abort),
            Phase::Shell { .. } => Some(Command::AbortBash),
            // pi takes no word about these over its pipes; its process is ended where that takes too long.
            Phase::Compaction | Phase::Setting => None,
        };
        self.cancel_dialogs();
        if let Some(command) = command {
            self.send(&command, PendingRequest::Stopped);
        }
    }

    /// Passes on the answer to an ask.
    pub(crate) fn answer(&mut self, ask: AskId, answer: &Result<Value, Error>, now: Duration) {
        if self.guide(ask, answer) {
            return;
        }
        let line = match (self.dialogs.remove(&ask), answer) {
            (Some(dialog), Ok(value)) => dialog.answered(value),
            (Some(dialog), Err(_)) => dialog.cancelled(),
            (None, answer) if self.checks.remove(&ask) => operation_checks::answered(ask, answer),
            (None, _) => return,
        };
        self.out.push_back(Output::Send(line));
        if let Some(job) = &mut self.job {
            job.heard_at = now;
        }
    }

    /// Asks it about itself.
    pub(crate) fn ask(&mut self, number: u64, question: AgentQuestion) {
        let command = match question {
            AgentQuestion::Models => Command::GetAvailableModels,
            AgentQuestion::Commands => Command::GetCommands,
            AgentQuestion::State => Command::GetState,
            AgentQuestion::Statistics => Command::GetSessionStats,
        };
        self.send(&command, PendingRequest::Question(number));
    }

    /// When to look again whether its model says anything.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let silence = self.timeouts.silence?;
        let job = self
            .job
            .as_ref()
            .filter(|_| self.dialogs.is_empty() && self.checks.is_empty() && self.pause.holds_nothing())?;
        job.deadline(silence, self.timeouts.grace)
    }

    /// That moment has come, or not.
    pub(crate) fn on_time(&mut self, now: Duration) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let Some((job, silence)) = self.job.as_mut().zip(self.timeouts.silence) else { return };
        match (&job.phase, job.silent_since) {
            (Phase::Turn(_), None) => {
                job.silent_since = Some(now);
                self.send(&Command::Abort, PendingRequest::Stopped);
            }
            // Nothing stops a compaction, and this turn was not to be stopped.
            (Phase::Turn(_) | Phase::Compaction | Phase::Shell { .. } | Phase::Setting, _) => {
                self.end(WorkEnding::failed(job::said_nothing(silence)));
                self.out.push_back(Output::Kill);
            }
        }
    }

    fn send(&mut self, command: &Command, waiting: PendingRequest) {
        self.last += 1;
        self.waiting.insert(self.last, waiting);
        self.out.push_back(Output::Send(request(self.last, command)));
    }

    fn agent(&mut self, notice: AgentNotice) {
        self.out.push_back(Output::Tell(RunnerNotice::Agent(notice)));
    }

    fn note(&mut self, note: Note) {
        self.agent(AgentNotice::Noted(note));
    }

    fn told(&mut self, level: &str, message: String) {
        self.note(Note::Told { level: level.to_owned(), message });
    }

    /// Goes on otherwise, and says so where that is news.
    fn goes_on(&mut self, change: impl FnOnce(&mut AgentState)) {
        let mut state = self.state.clone();
        change(&mut state);
        if state != self.state {
            self.state = state.clone();
            // Until it is there it may still be told to go on as it did before.
            if self.is_ready {
                self.agent(AgentNotice::State(state));
            }
        }
    }

    fn end(&mut self, ending: WorkEnding) {
        if let Some(job) = self.job.take() {
            self.cancel_dialogs();
            self.agent(AgentNotice::Ended { job: job.id, ending });
        }
    }

    fn cancel_dialogs(&mut self) {
        self.end_pauses(&Error::Cancelled);
        for (_, dialog) in std::mem::take(&mut self.dialogs) {
            self.out.push_back(Output::Send(dialog.cancelled()));
        }
        for check in std::mem::take(&mut self.checks) {
            self.out.push_back(Output::Send(operation_checks::answered(check, &Err(Error::Cancelled))));
        }
    }
}

fn said(prompt: Prompt) -> (String, Vec<Image>) {
    let image = |Picture { data, mime_type }| Image { data, mime_type };
    (prompt.text, prompt.images.into_iter().map(image).collect())
}

fn command_of(setting: Setting) -> Command {
    match setting {
        Setting::Model { provider, id } => Command::SetModel { provider, model_id: id },
        Setting::NextModel { is_backward: false } => Command::CycleModel,
        // pi's RPC goes forward only.
        Setting::NextModel { is_backward: true } => Command::GetAvailableModels,
        Setting::Thinking { level } => Command::SetThinkingLevel { level },
        Setting::NextThinking => Command::CycleThinkingLevel,
        Setting::AutoCompaction { enabled } => Command::SetAutoCompaction { enabled },
        Setting::AutoRetry { enabled } => Command::SetAutoRetry { enabled },
    }
}

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod tests;
