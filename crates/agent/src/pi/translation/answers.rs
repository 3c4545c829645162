//! What pi answers to what it was told.

use std::time::Duration;

use mainstay_formats::exchange::pi_message;
use mainstay_model::agent::Model;
use mainstay_model::event::CancelEnding;
use mainstay_model::{AgentNotice, AgentState, Error, JobId, ThinkingLevel, WorkEnding, YieldReason};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::job::Phase;
use super::{Output, PendingRequest, Step, Translation};
use crate::pi::rpc::{Command, Response};

/// What of a model's description may hold secrets.
const SECRETS: [&str; 2] = ["headers", "apiKey"];

impl Translation {
    pub(super) fn answered(&mut self, response: Response, now: Duration) {
        let Response { id, command, success, data, error } = response;
        let number = id.and_then(|id| id.parse().ok());
        let Some(waiting) = number.and_then(|number: u64| self.waiting.remove(&number)) else {
            tracing::warn!(command, ?error, "pi answers what it was not asked");
            return;
        };
        let answer = match success {
            true => Ok(data),
            false => Err(error.unwrap_or_else(|| format!("pi refused `{command}`"))),
        };
        match waiting {
            PendingRequest::Started => {
                self.adopt(answer.as_ref());
                self.restore();
            }
            PendingRequest::Restored(what) => {
                if let Err(error) = answer {
                    self.told("warning", format!("pi could not go on with {what}: {error}"));
                }
                self.restore();
            }
            PendingRequest::Ready => {
                self.adopt(answer.as_ref());
                self.is_ready = true;
                self.agent(AgentNotice::State(self.state.clone()));
                self.out.push_back(Output::Ready);
            }
            PendingRequest::Step(step) => {
                if let Some(job) = &mut self.job {
                    job.heard_at = now;
                }
                self.step(step, answer);
            }
            PendingRequest::Settled(job) => self.settled(job, answer.as_ref()),
            PendingRequest::Question(question) => {
                let answer = answer.map(without_secrets).map_err(|reason| Error::WorkerFailed { reason });
                self.out.push_back(Output::Answered { question, answer });
            }
            PendingRequest::Steered => {
                if let Err(error) = answer {
                    self.told("error", error);
                }
            }
            PendingRequest::Guided => {
                if let Err(error) = answer {
                    self.words_are_lost();
                    self.told(
                        "error",
                        format!("the agent does not hear how it is to go on, and goes on: {error}"),
                    );
                }
            }
            PendingRequest::Stopped => {}
        }
    }

    /// Lets it go on as it did before, one setting after another: pi does not take its turns.
    fn restore(&mut self) {
        let Some(wanted) = &mut self.wanted else {
            return self.send(&Command::GetState, PendingRequest::Ready);
        };
        self.state.context_tokens = wanted.context_tokens;
        let key = |model: &Model| (model.provider.clone(), model.id.clone());
        if let Some((provider, id)) = wanted.model.take().as_ref().map(key)
            && self.state.model.as_ref().map(key) != Some((provider.clone(), id.clone()))
        {
            let what = PendingRequest::Restored(format!("the model {provider}/{id}"));
            return self.send(&Command::SetModel { provider, model_id: id }, what);
        }
        let level = wanted.thinking;
        self.wanted = None;
        if self.state.thinking == level {
            return self.send(&Command::GetState, PendingRequest::Ready);
        }
        let what = PendingRequest::Restored(format!("the thinking level {}", level.name()));
        self.send(&Command::SetThinkingLevel { level }, what);
    }

    fn step(&mut self, step: Step, answer: Result<Value, String>) {
        let Some(job) = &mut self.job else { return };
        let data = match answer {
            Ok(data) => data,
            Err(_) if job.is_interrupted => {
                return self.end(WorkEnding::Cancelled { by: CancelEnding::Yielded });
            }
            Err(message) => return self.end(WorkEnding::failed(message)),
        };
        match step {
            Step::Accept => {
                if let Some(turn) = job.turn() {
                    turn.is_accepted = true;
                }
                // An extension may have done all there was to do.
                self.settle();
            }
            Step::Do => self.did(data),
            Step::Choose => match self.model_before(&data) {
                Some((provider, model_id)) => {
                    self.send(&Command::SetModel { provider, model_id }, PendingRequest::Step(Step::Set));
                    self.is_cycling = true;
                }
                None => self.done(Value::Null),
            },
            Step::Set => {
                let value = without_secrets(data);
                let value = match std::mem::take(&mut self.is_cycling) {
                    true => json!({ "model": value, "isScoped": false }),
                    false => value,
                };
                self.send(&Command::GetState, PendingRequest::Step(Step::Look(value)));
            }
            Step::Look(mut value) => {
                self.adopt(Ok(&data));
                // As pi says it of the model after.
                if value.get("isScoped").is_some() {
                    value["thinkingLevel"] = json!(self.state.thinking);
                }
                self.done(value);
            }
        }
    }

    fn did(&mut self, data: Value) {
        let Some(job) = &mut self.job else { return };
        let was_cancelled = data.get("cancelled") == Some(&Value::Bool(true)) && job.is_interrupted;
        if let Phase::Shell { command } = &job.phase {
            let mut ran = data.as_object().cloned().unwrap_or_default();
            ran.insert("role".to_owned(), "bashExecution".into());
            ran.insert("command".to_owned(), command.as_str().into());
            job.messages += 1;
            self.agent(AgentNotice::Message(pi_message(&ran)));
        }
        match was_cancelled {
            true => self.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }),
            false => self.done(data),
        }
    }

    fn done(&mut self, value: Value) {
        self.end(WorkEnding::Done { reason: YieldReason::EndTurn, value });
    }

    fn settled(&mut self, id: JobId, answer: Result<&Value, &String>) {
        if self.job() != Some(id) {
            return;
        }
        self.adopt(answer);
        let is = |name: &str| answer.is_ok_and(|data| data.get(name) == Some(&Value::Bool(true)));
        let is_at_work = is("isStreaming") || is("isCompacting");
        let silence = self.timeouts.silence.unwrap_or_default();
        let Some(job) = &mut self.job else { return };
        let closing = match job.turn() {
            Some(turn) if turn.is_over() && !is_at_work => turn.closing.take(),
            Some(_) | None => return,
        };
        let ending = job.turns_ending(closing.as_ref(), silence);
        self.end(ending);
    }

    /// Takes over how it goes on, as it says itself.
    fn adopt(&mut self, answer: Result<&Value, &String>) {
        let Ok(data) = answer else { return };
        let told: ReportedState = match ReportedState::deserialize(data) {
            Ok(told) => told,
            Err(error) => {
                tracing::warn!(%error, "pi says of its state what cannot be read");
                return;
            }
        };
        self.session_file = told.session_file;
        let model = told.model.as_ref().and_then(model_of);
        self.goes_on(|state| {
            *state = AgentState {
                model,
                thinking: told.thinking_level,
                auto_compaction: told.auto_compaction_enabled,
                context_tokens: state.context_tokens,
            };
        });
    }

    /// The model before the one it has, among all that it may use.
    fn model_before(&self, data: &Value) -> Option<(String, String)> {
        let models = data.get("models")?.as_array()?;
        let keys: Vec<(&str, &str)> = models
            .iter()
            .filter_map(|model| Some((model.get("provider")?.as_str()?, model.get("id")?.as_str()?)))
            .collect();
        if keys.len() < 2 {
            return None;
        }
        let now = self.state.model.as_ref().map(|model| (model.provider.as_str(), model.id.as_str()));
        let index = keys.iter().position(|key| Some(*key) == now).unwrap_or_default();
        let (provider, id) = keys.get((index + keys.len() - 1) % keys.len())?;
        Some(((*provider).to_owned(), (*id).to_owned()))
    }
}

/// How it goes on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedState {
    #[serde(default)]
    model: Option<Map<String, Value>>,
    #[serde(default)]
    thinking_level: ThinkingLevel,
    #[serde(default)]
    auto_compaction_enabled: bool,
    #[serde(default)]
    session_file: Option<String>,
}

fn model_of(model: &Map<String, Value>) -> Option<Model> {
    let text = |name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Model {
        provider: text("provider")?,
        id: text("id")?,
        name: text("name"),
        context_window: model.get("contextWindow").and_then(Value::as_u64),
        about: without_secrets(Value::Object(model.clone())),
    })
}

/// Without what may hold secrets, wherever it is.
fn without_secrets(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !SECRETS.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, without_secrets(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_secrets).collect()),
        value => value,
    }
}
