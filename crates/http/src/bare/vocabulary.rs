//! The forms of what other crates and modules have words for.

use mainstay_model::agent::{Delta, Setting, ToolCall, YieldReason};
use mainstay_model::display::PLAIN;
use mainstay_model::session::{Parent, Rebuilt};
use mainstay_model::{
    Action, Binding, Bundle, Diagnostic, Display, EnvironmentFingerprint, Error, Event, Form, Message,
    Metadata, NewLine, Outcome, OutputStream, Part, PartRole, RaisedError, SessionState, Severity, Source,
    TextPosition, TokenUsage, ValidityCounts,
};
use mainstay_runner::{CompletionItem, Completions, ResourceUsage, WarmUpPhase, WarmUpProgress};
use serde_json::Value;

use super::plain::{json_shape, member, uint};
use super::schema::{Field, Schema, field, flattened};
use super::{Decode, Encode, Fields, Malformed, Reader, Shape, choice, told};
use mainstay_protocol::view::agent::{AgentView, WorkView};
use mainstay_protocol::view::{
    BroughtView, CellView, CommandState, CommandView, DisplayView, ErrorView, EvalView, MergeView,
    NotebookView, RefusedView, SessionView, StartupView, WorkerView,
};

told!(Binding { name, value_type, value });
told!(Diagnostic { severity, code, message, file, start, end });
told!(TextPosition { line, column });
told!(RaisedError { kind, message, stack; without coloured_stack });
told!(Completions { items, start });
told!(CompletionItem { label, kind, detail, documentation });
told!(Display { id, is_value, is_update, data; without is_in_place });
told!(Delta { job, message, part, role, offset, text, tool });
told!(ToolCall { call, tool });
told!(Message { parts, metadata, usage });
told!(Part { role, text, metadata });
told!(TokenUsage { input, output, cache_read, cache_write; without cost });
told!(WarmUpProgress { phase, done, total });
told!(ValidityCounts { stale, invalid, unknown });
told!(Parent { session, entries });
told!(ResourceUsage { resident_bytes, cpu_ms });

told!(EvalView {
    session, command, seq, success, ending, value, value_type = "type", bindings, display, stdout, stderr,
    displays, output_cut, diagnostics, error, duration_ms, version, replayed, withheld
});
told!(DisplayView { printed_before | display });
told!(WorkView {
    session,
    command,
    seq,
    success,
    ending,
    reason,
    text,
    value,
    error,
    diagnostics,
    usage,
    duration_ms,
    version,
    replayed
});
told!(CommandView { command, session, state, version, outcome });
told!(MergeView { success, ran, refused, not_run });
told!(BroughtView { index, eval });
told!(NotebookView { session, success, cells, not_run });
told!(CellView { cell, line, ran_before, eval });
told!(RefusedView { index, error });
told!(ErrorView { code, message, next_step, offered, error });
told!(StartupView { summary, faults, unbuilt });
told!(SessionView {
    session,
    short_id,
    name,
    title,
    kind,
    state,
    fault,
    warm_up,
    rebuilt,
    validity,
    version,
    waiting,
    owner,
    asks,
    offered,
    working_directory,
    project,
    startup,
    forked_from,
    deleted_at,
    created_at,
    last_activity,
    last_seq,
    evals,
    failures,
    usage,
    running,
    agent,
    worker; without capabilities, language, orphaned, dropped_environment, application
});
told!(WorkerView { kernel, runtime, pid, usage });

choice!(Severity { Error, Warning, Info, Hidden });
choice!(OutputStream { Stdout, Stderr });
choice!(WarmUpPhase { Project, Assemblies, Namespaces, Profile, Replay; Build as Project });
choice!(PartRole { System, User, Assistant, Thinking, ToolCall, ToolResult });
choice!(YieldReason { EndTurn, MaxTokens; WarmCompiler as EndTurn });
choice!(CommandState { Waits, Runs, Ended });
choice!(SessionState { Uninitialized, WarmingUp, Ready, Evaluating, Waiting(_), Faulted });
choice!(Action {
    Cancel,
    Eval,
    Prompt,
    Steer,
    Check,
    Complete,
    Explore,
    Events,
    Status,
    Reset,
    HardReset,
    Refresh,
    Start,
    Stop,
    Rename,
    Merge,
    Delete,
    Compact,
    Label,
    Ask,
    Answer,
    Rebuild,
    Test,
    Review,
    Comm;
    Pause as Steer
});

/// What is JSON also here.
macro_rules! json {
    ($($type:ty),*) => {$(
        impl Shape for $type {
            fn shape(schema: &mut Schema) -> String {
                json_shape(schema)
            }
        }

        impl Encode for $type {
            fn encode(&self, to: &mut Vec<u8>) {
                // What cannot be written is nothing that one of these could be.
                serde_json::to_string(self).unwrap_or_default().encode(to);
            }
        }
    )*};
}

json!(Outcome, Error, Rebuilt, AgentView, Setting, NewLine);

/// What is read as JSON also here.
macro_rules! read_as_json {
    ($($type:ty),*) => {$(
        impl Decode for $type {
            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                serde_json::from_value(Value::decode(from)?).map_err(|error| from.malformed(error.to_string()))
            }
        }
    )*};
}

read_as_json!(Setting, NewLine);

impl Shape for EnvironmentFingerprint {
    fn shape(schema: &mut Schema) -> String {
        str::shape(schema)
    }
}

impl Encode for EnvironmentFingerprint {
    fn encode(&self, to: &mut Vec<u8>) {
        self.as_str().encode(to);
    }
}

/// The forms by their MIME types, plain text among them.
impl Shape for Bundle {
    fn shape(schema: &mut Schema) -> String {
        let form = schema.define_union(
            "Form",
            "One form of it.",
            &[
                |schema| schema.define("Text", "Text.", |_| "str".to_owned()),
                |schema| schema.define("Base64", "Bytes, in base64 with padding.", |_| "str".to_owned()),
                json_shape,
            ],
        );
        format!("map<str><{form}>")
    }
}

impl Encode for Bundle {
    fn encode(&self, to: &mut Vec<u8>) {
        uint(self.forms().count() as u64 + 1, to);
        PLAIN.encode(to);
        member(0, self.text(), to);
        for (kind, form) in self.forms() {
            kind.as_str().encode(to);
            match form {
                Form::Text(text) => member(0, text, to),
                Form::Binary(data) => member(1, data.as_str(), to),
                Form::Json(value) => member(2, value, to),
            }
        }
    }
}

/// Who caused an event. Its members have no schema of their own in JSON.
impl Shape for Source {
    fn shape(schema: &mut Schema) -> String {
        let client = "struct {\n  # On whose behalf.\n  principal: str\n  # Through what: `terminal`, `cli`, `mcp:NAME`.\n  name: str\n}";
        schema.define("Client", "A client's command.", |_| client.to_owned());
        schema.define_union(
            "Source",
            "Who caused an event.",
            &[
                |_| "Client".to_owned(),
                |schema| schema.define("Worker", "The session's worker.", |_| "void".to_owned()),
                |schema| schema.define("System", "The daemon itself.", |_| "void".to_owned()),
            ],
        )
    }
}

impl Encode for Source {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Client { principal, name } => {
                uint(0, to);
                principal.encode(to);
                name.encode(to);
            }
            Self::Worker => uint(1, to),
            Self::System => uint(2, to),
        }
    }
}

told!(Metadata { source, correlation, causation, environment });

/// What happened stays JSON: there are many kinds, and only ever more.
impl Shape for Event {
    fn shape(schema: &mut Schema) -> String {
        schema.define_struct::<Self>("Event")
    }
}

impl Fields for Event {
    fn fields(schema: &mut Schema) -> Vec<Field> {
        let mut fields = vec![
            field("session", |it: &Self| &it.session, schema),
            field("seq", |it: &Self| &it.seq, schema),
            field("position", |it: &Self| &it.position, schema),
            field("at", |it: &Self| &it.at, schema),
        ];
        fields.extend(flattened(|it: &Self| &it.metadata, schema));
        fields.extend([Field::new("kind", str::shape(schema)), Field::new("body", Value::shape(schema))]);
        fields
    }
}

impl Encode for Event {
    fn encode(&self, to: &mut Vec<u8>) {
        let Self { session, seq, position, at, metadata, body } = self;
        session.encode(to);
        seq.encode(to);
        position.encode(to);
        at.encode(to);
        metadata.encode(to);
        body.kind().encode(to);
        let written = serde_json::to_value(body).unwrap_or_default();
        written["body"].encode(to);
    }
}
