//! What streams tell, as Datastar's signals: objects that clients merge into what they have. Pure: events in, signals out. Source: seed 000,
//! "Datastar SSE for IDE Plugins". Behind each stands its form in BARE.

mod eval;
mod status;
mod turn;

use std::collections::BTreeMap;

use mainstay_model::{CommandId, Diagnostic, Event};
use mainstay_runner::Completions;
use schemars::JsonSchema;
use serde::Serialize;

use super::bare::{Encode, Schema, Shape, member, told};

pub(super) use self::eval::{EvalSignals, begins_job, clears_diagnostics, duration_of, eval, idle};
pub(super) use self::status::{StatusSignals, status, status_kinds};

/// What `/events` tells: one event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct EventSignals<'a> {
    /// The event, as it is stored.
    pub(super) event: &'a Event,
}

told!(EventSignals<'a> { event });

/// The signals that `/diagnostics` sends.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct DiagnosticsSignals {
    /// The diagnostics of each file, those of code in none under an empty name; null where what was found is out of date.
    pub(super) diagnostics: BTreeMap<String, Option<Vec<Diagnostic>>>,
}

told!(DiagnosticsSignals { diagnostics });

/// The signals that `/completions` sends.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CompletionsSignals {
    /// What could stand at the cursor; null before anyone has asked.
    pub(super) completions: Option<CompletionsSignal>,
}

told!(CompletionsSignals { completions });

/// What could stand at a cursor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompletionsSignal {
    /// What the client calls its question.
    pub(super) command_id: CommandId,
    /// The choices, and where the text begins that one replaces.
    #[serde(flatten)]
    pub(super) completions: Completions,
}

told!(CompletionsSignal { command_id | completions });

/// What any stream tells.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum AnySignals<'a> {
    Status(StatusSignals),
    Eval(EvalSignals<'a>),
    Event(EventSignals<'a>),
    Diagnostics(DiagnosticsSignals),
    Completions(CompletionsSignals),
}

impl Shape for AnySignals<'_> {
    fn shape(schema: &mut Schema) -> String {
        schema.define_union(
            "Signals",
            "What a stream tells: each stream one of these.",
            &[
                StatusSignals::shape,
                EvalSignals::shape,
                EventSignals::shape,
                DiagnosticsSignals::shape,
                CompletionsSignals::shape,
            ],
        )
    }
}

impl Encode for AnySignals<'_> {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Status(signals) => member(0, signals, to),
            Self::Eval(signals) => member(1, signals, to),
            Self::Event(signals) => member(2, signals, to),
            Self::Diagnostics(signals) => member(3, signals, to),
            Self::Completions(signals) => member(4, signals, to),
        }
    }
}

/// One message of a stream over WebSocket.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Frame<'a> {
    /// Where it stands in what the stream tells: who comes again with it as `after` is told what follows. None where a stream has no past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    /// The signals that have changed.
    pub(super) signals: &'a AnySignals<'a>,
}

told!(Frame<'a> { id, signals });
