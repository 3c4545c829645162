//! Code that runs for a front end: what it prints and shows as it comes, what it asks, and what came of it.

use std::sync::PoisonError;

use mainstay_formats::exchange::{Kernel, coloured_traceback};
use mainstay_kernel::jupyter::connection::Channel;
use mainstay_kernel::jupyter::wire::Message;
use mainstay_model::{
    Admission, AskId, Bundle, CommandId, Error, EvalEnding, Event, EventBody, OutputStream,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::Eval;
use mainstay_protocol::view::EvalView;
use mainstay_terminal::{Paint, eval_summary};
use mainstay_terminal_client::link::is_loss;
use mainstay_terminal_client::own_asks::OwnAsks;
use serde_json::{Value, json};

use super::content::{ExecuteRequest, InputReply, shown};
use super::shell::{Shell, command_of, read};

/// What Jupyter calls code that was interrupted.
const INTERRUPTED: &str = "KeyboardInterrupt";
/// And code that asks where nobody can answer.
const UNANSWERABLE: &str = "StdinNotImplementedError";

/// One request to run code.
struct Run<'a> {
    request: &'a Message,
    asked: &'a ExecuteRequest,
    command: CommandId,
    asks: OwnAsks,
    /// What was put to the front end last, and the message that did so.
    put: Option<(AskId, String)>,
    /// It asked where nobody can answer.
    is_unanswerable: bool,
}

impl Shell {
    /// Runs the code of a request; what is said of it to who asked.
    pub(super) async fn execute(&mut self, request: &Message) -> Value {
        let asked: ExecuteRequest = match read(request) {
            Ok(asked) => asked,
            Err(error) => return failure(&error),
        };
        if asked.code.trim().is_empty() && asked.user_expressions.is_empty() {
            return self.done(json!({}));
        }
        if !asked.silent {
            self.count += u64::from(asked.store_history);
            let input = json!({ "code": asked.code, "execution_count": self.count });
            self.voice.publish(Some(request), "execute_input", &input).await;
        }
        let mut run = Run {
            request,
            asked: &asked,
            command: command_of(request),
            asks: OwnAsks::default(),
            put: None,
            is_unanswerable: false,
        };
        self.last = Some(request.clone());
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.command.clone());
        let ran = self.run(&mut run).await;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let failed = match ran {
            Ok(eval) if eval.success => {
                self.tell_result(&run, &eval).await;
                let expressions = self.user_expressions(&asked).await;
                return self.done(expressions);
            }
            Ok(_) if run.is_unanswerable => unanswerable(),
            Ok(eval) => failed(&self.seat.kernel(), &eval, &asked.code),
            Err(error) => failure(&error),
        };
        if !asked.silent {
            let told = json!({ "ename": failed["ename"], "evalue": failed["evalue"], "traceback": failed["traceback"] });
            self.voice.publish(Some(request), "error", &told).await;
        }
        let mut failed = failed;
        failed["execution_count"] = json!(self.count);
        failed
    }

    fn done(&self, expressions: Value) -> Value {
        json!({ "status": "ok", "execution_count": self.count, "user_expressions": expressions, "payload": [] })
    }

    /// Has the code run once, however often the daemon goes meanwhile.
    async fn run(&mut self, run: &mut Run<'_>) -> Result<EvalView, Error> {
        loop {
            match self.follow(run).await {
                Err(error) if is_loss(&error) => self.seat.reconnect().await?,
                ended => return ended,
            }
        }
    }

    async fn follow(&mut self, run: &mut Run<'_>) -> Result<EvalView, Error> {
        let client = self.seat.client();
        let answered = run.asks.answer_again(&client).await;
        self.answered(answered, run).await?;
        let eval = client.call(Eval {
            session: self.seat.session(),
            code: run.asked.code.clone(),
            file: None,
            command_line: None,
            // What is silent leaves no trace.
            withheld: run.asked.silent,
            admission: Admission::Queue,
            sent: Sent::named(run.command.clone()),
        });
        tokio::pin!(eval);
        let eval = loop {
            tokio::select! {
                eval = &mut eval => break eval?,
                event = self.seat.next(), if !self.seat.is_lost() => {
                    if let Some(event) = event {
                        self.observe(&event, run).await;
                    }
                }
                answer = self.answers.recv() => {
                    if let Some(answer) = answer {
                        self.answer_ask(&answer, run).await?;
                    }
                }
            }
        };
        // An answer may overtake the last of the output.
        while self.seat.seen() < eval.seq {
            let Some(event) = self.seat.next().await else { break };
            self.observe(&event, run).await;
        }
        Ok(eval)
    }

    async fn observe(&mut self, event: &Event, run: &mut Run<'_>) {
        run.asks.observe(event, &run.command);
        if event.metadata.correlation.as_ref() != Some(&run.command) {
            return self.overhear(event).await;
        }
        if let EventBody::EvalRequested { job, .. } = &event.body {
            self.is_job_of(*job, run.request);
        }
        if !run.asked.silent {
            self.tell(run.request, event).await;
        }
        self.put_ask(run).await;
    }

    /// Puts what the code asks to the front end that asked for it.
    async fn put_ask(&self, run: &mut Run<'_>) {
        let Some(ask) = run.asks.open() else { return };
        if run.put.as_ref().is_some_and(|(put, _)| *put == ask.ask) {
            return;
        }
        let (question, id) = (ask.question.clone(), ask.ask);
        if !run.asked.allow_stdin {
            run.put = Some((id, String::new()));
            run.is_unanswerable = true;
            return self.stop(&run.command).await;
        }
        let content = json!({ "prompt": question.prompt, "password": question.is_secret() });
        let message = self.voice.reply(Channel::Stdin, run.request, "input_request", &content).await;
        run.put = Some((id, message));
    }

    async fn answer_ask(&self, answer: &Message, run: &mut Run<'_>) -> Result<(), Error> {
        let (Ok(InputReply { value }), Some((ask, put))) = (answer.read(), run.put.clone()) else {
            return Ok(());
        };
        // What was typed for a question that somebody else has answered answers no other.
        if answer.parent_id().is_some_and(|parent| parent != put) {
            return Ok(());
        }
        let answered = run.asks.answer(&self.seat.client(), ask, &value).await;
        self.answered(answered, run).await
    }

    /// What is no answer is asked again.
    async fn answered(&self, answered: Result<(), Error>, run: &mut Run<'_>) -> Result<(), Error> {
        match answered {
            Err(error @ Error::AnswerInvalid { .. }) => {
                self.print(run.request, OutputStream::Stderr, &format!("{error}\n")).await;
                run.put = None;
                self.put_ask(run).await;
                Ok(())
            }
            answered => answered,
        }
    }

    async fn tell_result(&self, run: &Run<'_>, eval: &EvalView) {
        if run.asked.silent {
            return;
        }
        let notes = eval_summary(eval, None, &run.asked.code, Paint::plain());
        if !notes.is_empty() {
            self.print(run.request, OutputStream::Stderr, &notes).await;
        }
        let is_told = eval.display.is_empty() && eval.displays.iter().any(|view| view.display.is_in_place);
        if let Some(data) = value_of(eval).filter(|_| !is_told) {
            let mut content = shown(&data);
            content["execution_count"] = self.count.into();
            self.voice.publish(Some(run.request), "execute_result", &content).await;
        }
    }

    /// What each comes to, as a front end asked with its code.
    async fn user_expressions(&mut self, asked: &ExecuteRequest) -> Value {
        let mut told = serde_json::Map::new();
        for (name, code) in &asked.user_expressions {
            let eval = self
                .seat
                .call(Eval {
                    session: self.seat.session(),
                    code: code.clone(),
                    file: None,
                    command_line: None,
                    withheld: true,
                    admission: Admission::Queue,
                    sent: Sent::default(),
                })
                .await;
            let told_of_it = match eval {
                Ok(eval) if eval.success => {
                    let value = value_of(&eval).map(|value| shown(&value));
                    let mut told = value.unwrap_or_else(|| json!({ "data": {}, "metadata": {} }));
                    told["status"] = "ok".into();
                    told
                }
                Ok(eval) => failed(&self.seat.kernel(), &eval, code),
                Err(error) => failure(&error),
            };
            told.insert(name.clone(), told_of_it);
        }
        Value::Object(told)
    }
}

/// The value of the last expression, in all its forms; none of code that only defines something.
fn value_of(eval: &EvalView) -> Option<Bundle> {
    let shown = eval.displays.iter().rfind(|view| view.display.is_value);
    match (shown, &eval.value) {
        (Some(view), _) => Some(view.display.data.clone()),
        (None, Some(value)) => Some(Bundle::plain(value.clone())),
        (None, None) => None,
    }
}

/// What is said of code that did not run to its end.
fn failed(kernel: &Kernel, eval: &EvalView, code: &str) -> Value {
    if eval.ending == EvalEnding::Cancelled.name() {
        return error(INTERRUPTED, "", vec![INTERRUPTED.to_owned()]);
    }
    if let Some(raised) = &eval.error {
        return error(&raised.kind, &raised.message, coloured_traceback(kernel, raised));
    }
    let first = eval.diagnostics.first().map_or("", |diagnostic| &diagnostic.message);
    let summary = eval_summary(eval, None, code, Paint::plain());
    error(&eval.ending, first, summary.lines().map(str::to_owned).collect())
}

fn unanswerable() -> Value {
    let reason = "the code asks, and this front end takes no answers; it was stopped";
    error(UNANSWERABLE, reason, vec![format!("{UNANSWERABLE}: {reason}")])
}

fn error(name: &str, value: &str, traceback: Vec<String>) -> Value {
    json!({ "status": "error", "ename": name, "evalue": value, "traceback": traceback })
}

/// What is said where the daemon refuses something.
pub(super) fn failure(refusal: &Error) -> Value {
    let (name, text) = (refusal.code().to_string(), refusal.to_string());
    error(
        &name,
        &text,
        vec![format!("{text} [{name}]"), format!("  {}", mainstay_terminal::next_step(refusal))],
    )
}
