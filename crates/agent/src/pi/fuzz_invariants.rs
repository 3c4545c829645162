//! What the translation promises, whatever pi says and whatever the engine wants meanwhile. A fuzzer holds it to that.

#![allow(clippy::panic, reason = "a broken promise is what a test looks for")]

use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mainstay_model::{
    AgentNotice, AskId, Delivery, Delta, Error, JobId, JobSpec, Prompt, QueuedPrompt, RunnerNotice, Setting,
    ThinkingLevel,
};
use mainstay_os::lines::{Line, Lines};
use mainstay_runner::AgentQuestion;
use serde_json::{Value, json};
use uuid::Uuid;

use super::rpc;
use super::translation::{Output, Timeouts, Translation};

/// The longest line that is read, in bytes.
const LINE_BYTES: usize = 4096;
const SILENCE: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(2);
/// What of a model's description may hold secrets.
const SECRETS: [&str; 2] = ["headers", "apiKey"];

/// Plays a conversation, a step a line: `!` and what the engine wants, `=` and what pi answers to what it was told last, `~` and why it
/// refuses that, or anything else that pi says.
///
/// # Panics
/// Where a promise is broken.
pub(crate) fn check(conversation: &[u8]) {
    let mut lines = Lines::new(conversation, LINE_BYTES);
    let mut conversation = Conversation::begin();
    while let Some(line) = next(&mut lines) {
        let Line::Whole(line) = line else { continue };
        match line.split_first() {
            Some((b'!', wish)) => conversation.want(wish),
            Some((b'=', data)) => conversation.answer(data),
            Some((b'~', error)) => conversation.refuse(error),
            Some(_) | None => conversation.hear(&line),
        }
    }
}

/// The next line of bytes that are all there.
fn next(lines: &mut Lines<&[u8]>) -> Option<Line> {
    match pin!(lines.next()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(line) => line,
        Poll::Pending => None,
    }
}

struct Conversation {
    translation: Translation,
    now: Duration,
    is_ready: bool,
    jobs: u128,
    /// How much of each part of each message has been said, in bytes.
    said: HashMap<(JobId, u32, u32), u64>,
    asks: Vec<AskId>,
    /// What pi was told last.
    last: Option<Value>,
}

impl Conversation {
    fn begin() -> Self {
        let timeouts = Timeouts { silence: Some(SILENCE), dialog_ms: 60_000, grace: GRACE };
        let mut new = Self {
            translation: Translation::new(timeouts, None),
            now: Duration::ZERO,
            is_ready: false,
            jobs: 0,
            said: HashMap::new(),
            asks: Vec::new(),
            last: None,
        };
        new.take(None);
        new
    }

    fn want(&mut self, wish: &[u8]) {
        let job = self.translation.job();
        let now = self.now;
        let queued = |hears| QueuedPrompt { prompt: Prompt::text("left"), hears };
        match wish {
            b"steer" => self.translation.steer(queued(Delivery::Steer)),
            b"follow-up" => self.translation.steer(queued(Delivery::FollowUp)),
            b"interrupt" => self.translation.interrupt(),
            b"pause" => {
                let ask = AskId::from_uuid(Uuid::new_v4());
                self.asks.push(ask);
                job.into_iter().for_each(|job| self.translation.pause(job, ask));
            }
            b"answer" => {
                self.asks
                    .pop()
                    .into_iter()
                    .for_each(|ask| self.translation.answer(ask, &Ok(json!("yes")), now));
            }
            b"cancel-ask" => {
                let cancelled = Err(Error::Cancelled);
                self.asks.pop().into_iter().for_each(|ask| self.translation.answer(ask, &cancelled, now));
            }
            b"ask" => self.translation.ask(1, AgentQuestion::Models),
            b"wait" => self.wait(),
            wish => {
                // The engine gives it one thing to do at a time, once it is there.
                if let Some(work) = work_of(wish).filter(|_| job.is_none() && self.is_ready) {
                    self.jobs += 1;
                    let job = JobId::from_uuid(Uuid::from_u128(self.jobs));
                    self.translation.work(job, work, true, now);
                    return self.take(Some(job));
                }
            }
        }
        self.take(job);
    }

    /// Lets the moment come at which it is to look again.
    fn wait(&mut self) {
        if let Some(deadline) = self.translation.deadline() {
            self.now = self.now.max(deadline);
            self.translation.on_time(self.now);
            let next = self.translation.deadline();
            assert!(next.is_none_or(|next| next > self.now), "it looks again and again");
        }
    }

    fn answer(&mut self, data: &[u8]) {
        let Ok(data) = serde_json::from_slice::<Value>(data) else { return };
        self.reply(json!({ "success": true, "data": data }));
    }

    fn refuse(&mut self, error: &[u8]) {
        self.reply(json!({ "success": false, "error": String::from_utf8_lossy(error) }));
    }

    fn reply(&mut self, mut reply: Value) {
        let Some(last) = self.last.clone() else { return };
        reply["type"] = json!("response");
        reply["id"] = last["id"].clone();
        reply["command"] = last["type"].clone();
        self.hear(reply.to_string().as_bytes());
    }

    fn hear(&mut self, line: &[u8]) {
        let job = self.translation.job();
        if let Ok(said) = rpc::read(line) {
            self.translation.hear(said, self.now);
            self.take(job);
        }
    }

    /// Looks at what follows, where it was at this job.
    fn take(&mut self, mut job: Option<JobId>) {
        for out in self.translation.take() {
            match out {
                Output::Send(line) => self.is_told(&line),
                Output::Ready => self.is_ready = true,
                Output::Tell(
                    RunnerNotice::Asks { job: asking, ask, .. }
                    | RunnerNotice::Checks { job: asking, check: ask, .. },
                ) => {
                    assert_eq!(job, Some(asking), "an ask of no job");
                    self.asks.push(ask);
                }
                Output::Tell(RunnerNotice::Agent(notice)) => match notice {
                    AgentNotice::Ended { job: ended, .. } => {
                        assert_eq!(job.take(), Some(ended), "a job ended that was not under way");
                    }
                    AgentNotice::Said(delta) => {
                        assert_eq!(job, Some(delta.job), "something said in no job");
                        self.is_said(&delta);
                    }
                    AgentNotice::State(state) => {
                        has_no_secrets(&state.model.map(|model| model.about).unwrap_or_default());
                    }
                    AgentNotice::ToolOutput { .. }
                    | AgentNotice::Message(_)
                    | AgentNotice::Compacted { .. }
                    | AgentNotice::Queue(_)
                    | AgentNotice::Noted(_) => {}
                },
                Output::Tell(
                    RunnerNotice::Output { .. }
                    | RunnerNotice::Built { .. }
                    | RunnerNotice::Display { .. }
                    | RunnerNotice::Cleared { .. }
                    | RunnerNotice::Comm { .. }
                    | RunnerNotice::Application(_)
                    | RunnerNotice::CommTaken { .. }
                    | RunnerNotice::Finished { .. }
                    | RunnerNotice::Exited { .. },
                ) => {
                    panic!("a notice of no agent");
                }
                Output::Answered { answer, .. } => has_no_secrets(&answer.unwrap_or_default()),
                Output::Compacted { .. } | Output::Kill => {}
            }
        }
        assert_eq!(self.translation.job(), job, "a job ended without a word");
    }

    fn is_told(&mut self, line: &str) {
        let told: Value = serde_json::from_str(line).unwrap_or_default();
        assert!(told.is_object() && line.find('\n') == Some(line.len() - 1), "no line: {line:?}");
        if told["type"] != "extension_ui_response" {
            self.last = Some(told);
        }
    }

    fn is_said(&mut self, delta: &Delta) {
        let said = self.said.entry((delta.job, delta.message, delta.part)).or_default();
        assert_eq!(delta.offset, *said, "{delta:?}");
        *said += delta.text.len() as u64;
    }
}

fn work_of(wish: &[u8]) -> Option<JobSpec> {
    Some(match wish {
        b"turn" => JobSpec::Turn { prompt: Prompt::text("go") },
        b"compact" => JobSpec::Compaction { instructions: None },
        b"shell" => JobSpec::Shell { line: "ls".to_owned(), is_private: false },
        b"private-shell" => JobSpec::Shell { line: "ls".to_owned(), is_private: true },
        b"model" => JobSpec::Setting(Setting::Model { provider: "p".to_owned(), id: "m".to_owned() }),
        b"next-model" => JobSpec::Setting(Setting::NextModel { is_backward: false }),
        b"previous-model" => JobSpec::Setting(Setting::NextModel { is_backward: true }),
        b"thinking" => JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::High }),
        b"next-thinking" => JobSpec::Setting(Setting::NextThinking),
        b"retry" => JobSpec::Setting(Setting::AutoRetry { enabled: true }),
        _ => return None,
    })
}

fn has_no_secrets(value: &Value) {
    match value {
        Value::Object(fields) => {
            assert!(!SECRETS.iter().any(|secret| fields.contains_key(*secret)), "a secret is told");
            fields.values().for_each(has_no_secrets);
        }
        Value::Array(values) => values.iter().for_each(has_no_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
