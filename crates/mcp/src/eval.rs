//! `send_code`: running code, and telling what came of it.

use std::fmt::{self, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::screen::settled;
use mainstay_model::{
    Action, Binding, Command, CommandId, Error, IdempotencyKey, RaisedError, Response, Session,
    SessionCommand, SessionId,
};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, unexpected};
use super::command_wait::carried_out;
use super::diagnostic::{DiagnosticLine, wants_change};
use super::needs::{Waits, Works};
use super::text::{TEXT_BYTES, shortened, shortened_again};
use super::tool::{Answer, Effect, PictureBlock, Tool};
use mainstay_gateway::view::eval_view;
use mainstay_protocol::view::{DisplayView, EvalView};

/// Types of pictures that models look at.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// How much all pictures of one answer have at most, in base64: what models take, at most.
const PICTURE_BYTES: usize = 2 * 1024 * 1024;

/// Runs code in a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendCode {
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
    /// How many bytes both had before they were cut.
    #[serde(skip)]
    output_bytes: usize,
    #[serde(skip)]
    error_bytes: usize,
    #[serde(skip)]
    pictures: Vec<PictureBlock>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_cut: bool,
    /// Whether a value is cut for its reader.
    #[serde(skip)]
    value_cut: bool,
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
    /// Where the code was, innermost first, and the exceptions that caused this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<String>,
}

/// What the words take that say that the output is cut, about.
const CUT_BYTES: usize = 160;

/// How many lines of an exception's stack are told.
const STACK_LINES: usize = 10;

impl Tool for SendCode {
    const NAME: &'static str = "send_code";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Eval>()];
    const SEED_NAME: Option<&'static str> = Some("send_fsharp_code");
    const DESCRIPTION: &'static str = "Run code in a session's REPL (F#, Python, a notebook's kernel) and wait for what it evaluates to, after other code that runs.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Eval);
    const WORKS: Works = Works::InAny(Action::Eval, Reach::InTurn);
    const WAITS: Waits = Waits::AsAsked;
    const IS_BASIC: bool = true;
    type Answer = EvalAnswer;

    async fn carry_out(self, call: &Call) -> Result<EvalAnswer, Error> {
        let key = self.idempotency_key.map(IdempotencyKey::new).transpose()?;
        run(call, self.session_id.as_deref(), Code { text: self.code, file: None, key }).await
    }
}

/// Code to run, with its options.
pub(super) struct Code {
    pub(super) text: String,
    /// The file whose text it is, absolute.
    pub(super) file: Option<String>,
    /// The client's name for what it wants done once.
    pub(super) key: Option<IdempotencyKey>,
}

/// Runs code in the session that is meant, started or created first where it must be.
pub(super) async fn run(call: &Call, reference: Option<&str>, code: Code) -> Result<EvalAnswer, Error> {
    let session = call.workplace(reference, Action::Eval).await?;
    let ready = tokio::select! {
        biased;
        () = call.cancelled() => return Ok(EvalAnswer::not_run(session)),
        ready = call.bring_up(session) => ready?,
    };
    let news = ready.rebuilt.as_ref().filter(|rebuilt| rebuilt.is_news);
    let Code { text, file, key } = code;
    let eval = SessionCommand::Eval(command::Eval {
        code: text,
        file,
        command_line: None,
        origin: None,
        withheld: false,
    });
    let command = Command { key, ..call.code(&ready, eval) };
    let view = evaluated(call, &ready, command).await?;
    // An answer that is looked up is of an eval before the rebuilding: the next one tells it.
    let rebuilt = news.filter(|_| view.seq > ready.last_seq).map(ToString::to_string);
    Ok(EvalAnswer { rebuilt, ..EvalAnswer::from(view) })
}

/// Runs code, and waits for its end.
pub(super) async fn evaluated(call: &Call, session: &Session, command: Command) -> Result<EvalView, Error> {
    let id = command.id.clone();
    let response = carried_out(call, session, command).await?;
    view_of(call, session, id, response).await
}

/// What came of code that has run.
pub(super) async fn view_of(
    call: &Call,
    session: &Session,
    command: CommandId,
    response: Response,
) -> Result<EvalView, Error> {
    match response {
        Response::Evaluated(outcome) => eval_view(call.client(), session.id, command, outcome).await,
        response => Err(unexpected(&response)),
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
            output_bytes: 0,
            error_bytes: 0,
            pictures: Vec::new(),
            output_cut: false,
            value_cut: false,
            bindings: Vec::new(),
            diagnostics: Vec::new(),
            error: Some(ErrorLine { kind: "Cancelled".to_owned(), message, stack: Vec::new() }),
            rebuilt: None,
        }
    }
}

impl From<EvalView> for EvalAnswer {
    fn from(view: EvalView) -> Self {
        let (output, error_output) =
            (settled(&view.put_out()).into_owned(), settled(&view.stderr).into_owned());
        let is_long = output.len() > TEXT_BYTES || error_output.len() > TEXT_BYTES;
        let text = |text| shortened(text, TEXT_BYTES);
        Self {
            session_id: view.session.short(),
            success: view.success,
            seq: view.seq.0,
            value: view.value.map(text),
            value_type: view.value_type,
            output_bytes: output.len(),
            error_bytes: error_output.len(),
            output: text(output),
            error_output: text(error_output),
            pictures: pictures(&view.displays),
            output_cut: view.output_cut || is_long,
            value_cut: false,
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
        let RaisedError { kind, message, stack, coloured_stack: _ } = error;
        let lines = stack.as_deref().unwrap_or_default().lines().map(str::trim);
        let stack = lines.filter(|line| !line.is_empty()).take(STACK_LINES).map(str::to_owned).collect();
        Self { kind, message: shortened(message, TEXT_BYTES), stack }
    }
}

impl Answer for EvalAnswer {
    const IS_MARKED: bool = true;

    fn is_failure(&self) -> bool {
        !self.success
    }

    fn pictures(&mut self) -> Vec<PictureBlock> {
        std::mem::take(&mut self.pictures)
    }

    fn fit(&mut self, bytes: usize) {
        let over = |answer: &Self| answer.to_string().len().saturating_sub(bytes);
        if over(self) == 0 {
            return;
        }
        // What is left of each that is long, at least.
        let least = bytes / 4;
        for errors in [false, true] {
            let over = over(self);
            let text = if errors { &mut self.error_output } else { &mut self.output };
            let limit = text.len().saturating_sub(over + CUT_BYTES).max(least);
            if over > 0 && limit < text.len() {
                let total = if errors { self.error_bytes } else { self.output_bytes };
                *text = shortened_again(std::mem::take(text), limit, total);
                self.output_cut = true;
            }
        }
        let bound = self.bindings.iter_mut().filter_map(|binding| binding.value.as_mut());
        for value in self.value.iter_mut().chain(bound) {
            if value.len() > least {
                *value = shortened(std::mem::take(value), least);
                self.value_cut = true;
            }
        }
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
                Some(value) => writeln!(f, "val {name}: {value_type} = {value}")?,
                None => writeln!(f, "val {name}: {value_type}")?,
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
        if let Some(ErrorLine { kind, message, stack }) = &self.error {
            writeln!(f, "{kind}: {message}")?;
            stack.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
            if kind == "Interrupted" {
                writeln!(
                    f,
                    "It may have run in part: look at what it changed, then send it again. Earlier definitions are kept."
                )?;
            }
        }
        if self.output_cut {
            writeln!(
                f,
                "the output is cut: get_output with seq {} reads what is kept of it, by lines",
                self.seq
            )?;
        }
        if self.value_cut {
            writeln!(f, "a value is cut: print the part of it that matters")?;
        }
        let ending = if self.success { "ok" } else { "failed" };
        write!(f, "{ending} [session {}, seq {}]", self.session_id, self.seq)
    }
}
