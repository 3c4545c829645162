//! What messages say, as far as it matters here. What a kernel leaves out is taken as its default, since many do.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// `stream`
#[derive(Debug, Deserialize)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) text: String,
}

/// `display_data`, `update_display_data`, `execute_result`
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    #[serde(default)]
    pub(super) data: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) metadata: Map<String, Value>,
    #[serde(default)]
    pub(super) transient: Transient,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Transient {
    pub(super) display_id: Option<String>,
}

/// `status`
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) execution_state: String,
}

/// `clear_output`
#[derive(Debug, Deserialize)]
pub(super) struct ClearOutput {
    #[serde(default)]
    pub(super) wait: bool,
}

/// `comm_info_reply`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommInfoReply {
    pub(super) comms: BTreeMap<String, CommInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommInfo {
    pub(super) target_name: String,
}

/// `input_request`
#[derive(Debug, Deserialize)]
pub(super) struct InputRequest {
    #[serde(default)]
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) password: bool,
}

/// `execute_reply`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExecuteReply {
    pub(super) status: String,
    pub(super) ename: Option<String>,
    pub(super) evalue: Option<String>,
    pub(super) traceback: Vec<String>,
    pub(super) payload: Vec<Payload>,
}

/// What a kernel wants its front end to do.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    #[serde(default)]
    pub(super) source: String,
    /// Of `ask_exit`: whether the kernel stays all the same. Who calls `exit(4)` of IPython says so, and means an exit code.
    #[serde(default)]
    pub(super) keepkernel: Value,
    #[serde(default)]
    pub(super) data: BTreeMap<String, Value>,
    /// What Mainstay's own helper tells of the code.
    #[serde(default)]
    pub(super) report: Value,
}

/// `complete_reply`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompleteReply {
    pub(super) matches: Vec<String>,
    pub(super) cursor_start: usize,
    pub(super) metadata: CompletionMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionMetadata {
    /// What IPython says of its matches.
    #[serde(rename = "_jupyter_types_experimental")]
    pub(super) types: Vec<MatchType>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatchType {
    pub(super) text: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) signature: Option<String>,
}

/// `inspect_reply`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InspectReply {
    pub(super) found: bool,
    pub(super) data: BTreeMap<String, Value>,
}

/// `is_complete_reply`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IsCompleteReply {
    pub(super) status: String,
    pub(super) indent: String,
}

/// `kernel_info_reply`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KernelInfo {
    pub(super) implementation: String,
    pub(super) implementation_version: String,
    pub(super) language_info: LanguageInfo,
    pub(super) supported_features: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LanguageInfo {
    pub(super) name: String,
    pub(super) version: String,
}
