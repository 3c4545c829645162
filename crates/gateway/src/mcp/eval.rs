//! `send_fsharp_code`: running code, telling what it prints meanwhile, and stopping it when the client cancels the call.

use std::fmt::{self, Formatter};
use std::pin::pin;

use mainstay_engine::Followed;
use mainstay_model::{
    Action, Binding, Command, CommandId, Error, EventBody, IdempotencyKey, Outcome, RaisedError, Response,
    Seq, Session, SessionCommand, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, unexpected};
use super::diagnostic::{DiagnosticLine, wants_change};
use super::text::{TEXT_BYTES, shortened};
use super::tool::{Answer, Effect, PictureBlock, Tool};
use crate::view::{DisplayView, EvalView};

/// Types of pictures that models look at.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// How much all pictures of one answer have at most, in base64: what models take, at most.
const PICTURE_BYTES: usize = 2 * 1024 * 1024;

/// Runs code.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendFsharpCode {
    session_id: Option<String>,
    code: String,
    /// Repeated with it, the code runs once.
    idempotency_key: Option<String>,
}

/// What came of it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvalAnswer {
    session_id: String,
    success: bool,
    /// The event that ended it: the cursor for what comes later.
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    value_type: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error_output: String,
    #[serde(skip)]
    pictures: Vec<PictureBlock>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_cut: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bindings: Vec<BindingLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<DiagnosticLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorLine>,
    /// What a rebuilding of the session, since the eval before this one, left otherwise than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    rebuilt: Option<String>,
}

/// A name the code defined.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct BindingLine {
    name: String,
    #[serde(rename = "type")]
    value_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

/// Why the code did not run to its end, where the diagnostics do not say it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct ErrorLine {
    kind: String,
    message: String,
}

impl Tool for SendFsharpCode {
    const NAME: &'static str = "send_fsharp_code";
    const DESCRIPTION: &'static str =
        "Run F# code in a session and wait for its end. Cancelling the request stops it.";
    const EFFECT: Effect = Effect::Changes { destructive: true, idempotent: false };
    type Answer = EvalAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<EvalAnswer, Error> {
        let key = self.idempotency_key.map(IdempotencyKey::new).transpose()?;
        let session = call.workplace(self.session_id.as_deref(), Action::Eval).await?;
        let ready = tokio::select! {
            biased;
            () = call.cancelled() => return Ok(EvalAnswer::not_run(session)),
            ready = call.bring_up(session) => ready?,
        };
        let news = ready.rebuilt.as_ref().filter(|rebuilt| rebuilt.is_news).map(ToString::to_string);
        let command = Command {
            key,
            ..call.command(SessionCommand::Eval {
                code: self.code,
                file: None,
                origin: None,
                withheld: false,
            })
        };
        let view = evaluated(call, &ready, command).await?;
        Ok(EvalAnswer { rebuilt: news, ..EvalAnswer::from(view) })
    }
}

/// Runs code, and waits for its end even when the client cancels it: cancelling always ends.
async fn evaluated(call: &Call<'_>, session: &Session, command: Command) -> Result<EvalView, Error> {
    let (session, seen) = (session.id, session.last_seq);
    let id = command.id.clone();
    let mut printed = match call.wants_progress() {
        true => Some(call.client().subscribe(session, seen).await?),
        false => None,
    };
    let mut outcome = pin!(call.client().submit(session, command));
    let mut stopped = pin!(stop_when_cancelled(call, session, seen, &id));
    let mut is_stopped = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut outcome => break outcome?,
            done = &mut stopped, if !is_stopped => {
                is_stopped = true;
                // Its outcome comes all the same.
                if let Err(error) = done {
                    tracing::warn!(%session, %error, "a cancelled eval could not be stopped");
                }
            }
            Some(text) = next_output(&mut printed, &id) => call.say(shortened(text, TEXT_BYTES)).await,
        }
    };
    match outcome.outcome {
        Outcome::Done { response: Response::Evaluated(outcome) } => {
            EvalView::load(call.client(), session, id.clone(), outcome).await
        }
        Outcome::Done { response } => Err(unexpected(&response)),
        Outcome::Failed { error } => Err(error),
    }
}

/// Stops the eval, and no other, once the client cancels the call. An eval that has not come to the session yet is stopped
/// as soon as it begins; for one that has ended already this waits until its outcome is there.
async fn stop_when_cancelled(
    call: &Call<'_>,
    session: SessionId,
    seen: Seq,
    eval: &CommandId,
) -> Result<(), Error> {
    call.cancelled().await;
    let mut events = call.client().subscribe(session, seen).await?;
    loop {
        match call.submit(session, SessionCommand::Cancel { target: Some(eval.clone()) }).await {
            Ok(_) => return Ok(()),
            Err(Error::NotRunning { .. }) => begun(&mut events, eval).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Waits until an eval begins.
async fn begun(events: &mut Followed, eval: &CommandId) -> Result<(), Error> {
    loop {
        let event = events.next().await?;
        if matches!(&event.body, EventBody::EvalRequested { command, .. } if command == eval) {
            return Ok(());
        }
    }
}

/// What the eval prints next; none where nobody asked.
async fn next_output(printed: &mut Option<Followed>, eval: &CommandId) -> Option<String> {
    let printed = printed.as_mut()?;
    loop {
        let event = printed.next().await.ok()?;
        let text = if let EventBody::OutputProduced { text, .. } = &event.body {
            text
        } else if let EventBody::OutputDisplayed { display, .. } = &event.body
            && !display.is_value
        {
            display.data.text()
        } else {
            continue;
        };
        if event.metadata.correlation.as_ref() == Some(eval) {
            return Some(text.to_owned());
        }
    }
}

impl EvalAnswer {
    /// The client cancelled before the code ran.
    fn not_run(session: SessionId) -> Self {
        let message = "the request was cancelled before the code ran".to_owned();
        Self {
            session_id: session.short(),
            success: false,
            seq: 0,
            value: None,
            value_type: None,
            output: String::new(),
            error_output: String::new(),
            pictures: Vec::new(),
            output_cut: false,
            bindings: Vec::new(),
            diagnostics: Vec::new(),
            error: Some(ErrorLine { kind: "Cancelled".to_owned(), message }),
            rebuilt: None,
        }
    }
}

impl From<EvalView> for EvalAnswer {
    fn from(view: EvalView) -> Self {
        let output = view.put_out();
        let is_long = output.len() > TEXT_BYTES || view.stderr.len() > TEXT_BYTES;
        let text = |text| shortened(text, TEXT_BYTES);
        Self {
            session_id: view.session.short(),
            success: view.success,
            seq: view.seq.0,
            value: view.value.map(text),
            value_type: view.value_type,
            output: text(output),
            error_output: text(view.stderr),
            pictures: pictures(&view.displays),
            output_cut: view.output_cut || is_long,
            bindings: view.bindings.into_iter().map(BindingLine::from).collect(),
            diagnostics: view
                .diagnostics
                .into_iter()
                .filter(wants_change)
                .map(DiagnosticLine::from)
                .collect(),
            error: view.error.map(ErrorLine::from),
            rebuilt: None,
        }
    }
}

/// The pictures that a model can look at, as far as they are not too much for it; those that are larger it is told of in words.
fn pictures(displays: &[DisplayView]) -> Vec<PictureBlock> {
    let mut room = PICTURE_BYTES;
    let mut pictures = Vec::new();
    for view in displays {
        let Some(picture) = view.display.data.picture() else { continue };
        let data = picture.data.as_str();
        if PICTURES.contains(&picture.kind.as_str()) && data.len() <= room {
            room -= data.len();
            pictures.push(PictureBlock { kind: picture.kind.to_string(), data: data.to_owned() });
        }
    }
    pictures
}

impl From<Binding> for BindingLine {
    fn from(binding: Binding) -> Self {
        let Binding { name, value_type, value } = binding;
        Self { name, value_type, value: value.map(|value| shortened(value, TEXT_BYTES)) }
    }
}

impl From<RaisedError> for ErrorLine {
    fn from(error: RaisedError) -> Self {
        let RaisedError { kind, message, stack: _ } = error;
        Self { kind, message: shortened(message, TEXT_BYTES) }
    }
}

impl Answer for EvalAnswer {
    fn is_failure(&self) -> bool {
        !self.success
    }

    fn pictures(&mut self) -> Vec<PictureBlock> {
        std::mem::take(&mut self.pictures)
    }
}

impl fmt::Display for EvalAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(rebuilt) = &self.rebuilt {
            writeln!(f, "note: {rebuilt}")?;
        }
        for output in [&self.output, &self.error_output] {
            if !output.is_empty() {
                writeln!(f, "{}", output.trim_end())?;
            }
        }
        for BindingLine { name, value_type, value } in &self.bindings {
            match value {
                Some(value) => writeln!(f, "val {name} : {value_type} = {value}")?,
                None => writeln!(f, "val {name} : {value_type}")?,
            }
        }
        match (&self.value, &self.value_type) {
            (Some(value), Some(value_type)) => writeln!(f, "{value} : {value_type}")?,
            (Some(value), None) => writeln!(f, "{value}")?,
            (None, _) => {}
        }
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        if let Some(ErrorLine { kind, message }) = &self.error {
            writeln!(f, "{kind}: {message}")?;
        }
        let ending = if self.success { "ok" } else { "failed" };
        write!(f, "{ending} [session {}, seq {}]", self.session_id, self.seq)
    }
}
