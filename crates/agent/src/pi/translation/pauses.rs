//! Pauses: what pi's tools are about to do is held back until somebody has said how the agent is to go on.

use mainstay_model::{AskId, Error, JobId};
use serde_json::Value;

use super::{Output, PendingRequest, Translation};
use crate::pi::operation_checks;
use crate::pi::rpc::{Command, ExtensionRequest};

/// What a job waits for that is to pause.
#[derive(Debug, Default)]
pub(super) struct PauseState {
    /// The asks until whose answers it pauses.
    asks: Vec<AskId>,
    /// What its tools wait to do.
    held: Vec<ExtensionRequest>,
    /// How far the words have come that somebody has said.
    words: Words,
}

/// How far words have come that say how the agent is to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Words {
    /// It has read all that was said.
    #[default]
    Read,
    /// pi was told, and has not said that they wait.
    Said,
    /// They wait until the model is asked next.
    Wait,
}

impl PauseState {
    /// Whether no tool waits: then it is the model that says nothing.
    pub(super) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }
}

impl Translation {
    /// Has the job pause until this ask is answered, where it is at this job.
    pub(crate) fn pause(&mut self, job: JobId, ask: AskId) {
        if self.job() == Some(job) {
            self.pause.asks.push(ask);
        }
    }

    /// Holds back what a tool is about to do, or refuses it since the agent decided that before it read what somebody has said. Says whether it
    /// does either.
    pub(super) fn hold(&mut self, request: &ExtensionRequest) -> bool {
        if !self.pause.asks.is_empty() {
            self.pause.held.push(request.clone());
        } else if self.job.is_some() && self.pause.words != Words::Read {
            self.out.push_back(Output::Send(operation_checks::paused(request)));
        } else {
            return false;
        }
        true
    }

    /// pi does not take the words: nothing is refused for what it will not read.
    pub(super) fn words_are_lost(&mut self) {
        self.pause.words = Words::Read;
    }

    /// Hears how much of what was said to it still waits to be read.
    pub(super) fn words_wait(&mut self, steering: usize) {
        self.pause.words = match (self.pause.words, steering) {
            (Words::Wait, 0) => Words::Read,
            (Words::Said, waiting) if waiting > 0 => Words::Wait,
            (words, _) => words,
        };
    }

    /// Takes the answer to an ask for which the job pauses; says whether it is one. Words come to the agent before its tools are let go, so that
    /// it reads them with the refusal.
    pub(super) fn guide(&mut self, ask: AskId, answer: &Result<Value, Error>) -> bool {
        let Some(at) = self.pause.asks.iter().position(|open| *open == ask) else { return false };
        self.pause.asks.swap_remove(at);
        match answer.as_ref().map(|value| value.as_str().unwrap_or_default().trim()) {
            Ok("") if self.pause.asks.is_empty() => {
                for request in std::mem::take(&mut self.pause.held) {
                    self.check(&request);
                }
            }
            Ok("") => {}
            Ok(words) => {
                let command = Command::Steer { message: words.to_owned(), images: Vec::new() };
                self.send(&command, PendingRequest::Guided);
                self.pause.words = Words::Said;
                self.answer_held(operation_checks::paused);
            }
            Err(error) => self.answer_held(|request| operation_checks::refused(request, error)),
        }
        true
    }

    /// Ends all pauses, and refuses what was held back.
    pub(super) fn end_pauses(&mut self, error: &Error) {
        self.pause.asks.clear();
        self.pause.words = Words::Read;
        self.answer_held(|request| operation_checks::refused(request, error));
    }

    fn answer_held(&mut self, line: impl Fn(&ExtensionRequest) -> String) {
        let held = std::mem::take(&mut self.pause.held);
        self.out.extend(held.iter().map(|request| Output::Send(line(request))));
    }
}
