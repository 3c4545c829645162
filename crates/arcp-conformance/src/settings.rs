//! What the person who runs the scenarios says about the runtime under test.

use std::time::Duration;

use serde_json::Value;

use crate::Target;

/// The runtime under test, what it can be asked to do, and how long it may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the runtime is reached.
    pub target: Target,
    /// The bearer token of the principal that runs the scenarios.
    pub token: Option<String>,
    /// The bearer token of another principal, for what principals must not see of each other.
    pub other_token: Option<String>,
    /// The longest time that one awaited message may take.
    pub wait: Duration,
    /// How long nothing must arrive where nothing is expected.
    pub quiet: Duration,
    /// The longest time that one scenario may take.
    pub limit: Duration,
    /// What the runtime's agent does, for dialect B.
    pub agent: Work,
    /// What the runtime's tool does, for dialect A.
    pub tool: Work,
}

/// An agent or a tool, and the inputs that make it behave in a known way.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// The name of the agent or tool.
    pub name: Option<String>,
    /// An input with which the work succeeds soon.
    pub input: Option<Value>,
    /// An input with which the work fails.
    pub failing: Option<Value>,
    /// An input with which the work runs until it is cancelled.
    pub slow: Option<Value>,
    /// An input with which the work publishes many events, and then succeeds.
    pub chatty: Option<Value>,
    /// An input with which the work asks a human.
    pub asking: Option<Value>,
    /// An input with which the work asks for a permission: twice for the same thing, then for another.
    pub permission: Option<Value>,
}
