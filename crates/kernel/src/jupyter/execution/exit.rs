//! The end of a kernel that its code asked for.

use serde_json::Value;

/// The end of the kernel, as its code asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::jupyter) struct Exit {
    /// The exit code of the process.
    pub(in crate::jupyter) code: i32,
    /// Whether the kernel ends itself.
    pub(in crate::jupyter) is_own: bool,
}

impl Exit {
    /// As the kernel's `keepkernel` says: nothing of the kind, or the code that was meant.
    pub(super) fn of(keepkernel: &Value) -> Self {
        let code = match keepkernel {
            Value::Number(code) => code.as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(1),
            Value::Bool(true) | Value::String(_) | Value::Array(_) | Value::Object(_) => 1,
            Value::Bool(false) | Value::Null => 0,
        };
        Self { code, is_own: matches!(keepkernel, Value::Bool(false) | Value::Null) }
    }
}
