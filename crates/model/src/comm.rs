//! Comms: what a kernel and the front ends of its session say to each other beside code, such as the state of a widget.
//!
//! Mainstay carries such messages and reads nothing into them. Source: the messaging protocol of Jupyter, version 5.4, "Custom
//! Messages".

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base64::Base64;
use crate::error::Error;
use crate::id::CommId;
use crate::limits::Limits;

/// One message of a comm.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommMessage {
    /// The comm to which the message belongs.
    pub comm: CommId,
    /// What the message does to the comm.
    #[serde(flatten)]
    pub step: CommStep,
    /// What is said: an object, whose meaning is the comm's.
    #[serde(default)]
    pub data: Value,
    /// What is said of that: an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Bytes that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<Base64>,
}

/// What a message does to its comm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CommStep {
    /// The comm is opened.
    Open {
        /// What the other side knows how to answer, such as `jupyter.widget`.
        target: String,
        /// The module that knows it, where a front end is to load one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<String>,
    },
    /// A message is sent over the open comm.
    Say,
    /// The comm is closed.
    Close,
}

impl CommStep {
    /// Its name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Say => "say",
            Self::Close => "close",
        }
    }
}

impl CommMessage {
    /// How many bytes it has, about.
    pub fn bytes(&self) -> usize {
        let written = |value: &Value| match value {
            Value::Null => 0,
            value => value.to_string().len(),
        };
        let buffers: usize = self.buffers.iter().map(Base64::len).sum();
        written(&self.data) + written(&self.metadata) + buffers
    }

    /// Checks what can be checked without the kernel.
    ///
    /// # Errors
    /// [`Error::CodeTooLarge`]: a kernel runs code for it.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        let (bytes, limit) = (self.bytes(), limits.code_bytes);
        if bytes > limit {
            return Err(Error::CodeTooLarge { bytes, limit });
        }
        Ok(())
    }
}

/// Describes the message in few words.
impl fmt::Display for CommMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { comm, step, .. } = self;
        match step {
            CommStep::Open { target, .. } => write!(f, "{} of {comm} for {target}", step.name()),
            CommStep::Say => write!(f, "{} in {comm}, {} bytes", step.name(), self.bytes()),
            CommStep::Close => write!(f, "{} of {comm}", step.name()),
        }
    }
}

// By hand: what a widget holds may be anything, and is large.
impl fmt::Debug for CommMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommMessage({}, {:?}, {} bytes)", self.comm, self.step, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_written_as_what_it_does_and_read_again() {
        let step = CommStep::Open { target: "jupyter.widget".to_owned(), module: None };
        let message = CommMessage {
            comm: CommId::new("1").unwrap(),
            step,
            data: json!({ "state": { "value": 3 } }),
            metadata: Value::Null,
            buffers: vec![Base64::of(b"\x00\x01")],
        };
        let written = serde_json::to_value(&message).unwrap();
        assert_eq!(
            written,
            json!({ "comm": "1", "step": "open", "target": "jupyter.widget", "data": { "state": { "value": 3 } },
                "buffers": ["AAE="] })
        );
        assert_eq!(serde_json::from_value::<CommMessage>(written).unwrap(), message);
    }

    #[test]
    fn it_is_as_large_as_all_that_it_says() {
        let message = CommMessage {
            comm: CommId::new("1").unwrap(),
            step: CommStep::Say,
            data: json!({ "a": 1 }),
            metadata: Value::Null,
            buffers: vec![Base64::of(&[0; 100])],
        };
        assert_eq!(message.bytes(), 107);
        let limits = |code_bytes| Limits { code_bytes, ..Limits::default() };
        assert_eq!(message.validate(&limits(107)), Ok(()));
        assert_eq!(message.validate(&limits(106)), Err(Error::CodeTooLarge { bytes: 107, limit: 106 }));
    }
}
