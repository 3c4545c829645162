//! Permissions: what people are asked where the grant of a job does not cover what its tools are about to do. Source: ARCP draft 01, 15.4.

use serde_json::{Value, json};

use crate::ask::Question;
use crate::grant::AskedOperation;

/// The title of the schema of such a question.
const TITLE: &str = "permission";

/// What is answered to a question for a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It may be done this time.
    Once,
    /// It may be done as long as the job runs.
    Job,
    /// It may not be done.
    No,
}

impl Permission {
    /// All that can be answered.
    const ALL: [Self; 3] = [Self::Once, Self::Job, Self::No];

    /// Returns the answer as it is given.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Job => "job",
            Self::No => "no",
        }
    }

    /// What an answer says; none where it is no answer to such a question.
    pub fn of(answer: &Value) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| answer == permission.as_str())
    }

    /// The question whether an operation may be done. Nobody's answer is no.
    pub fn question(operation: &AskedOperation) -> Question {
        let AskedOperation { kind, target, is_recursive } = operation;
        let below = if *is_recursive { " and all below it" } else { "" };
        let answers = Self::ALL.map(Self::as_str);
        Question {
            prompt: format!("May `{kind}` be done to `{target}`{below}?"),
            schema: json!({ "title": TITLE, "enum": answers, "operation": operation }),
            default: Some(json!(Self::No.as_str())),
            quorum: None,
        }
    }

    /// The operation that a question is about; none of another question.
    pub fn operation(question: &Question) -> Option<AskedOperation> {
        let schema = (question.schema["title"] == TITLE).then_some(&question.schema)?;
        serde_json::from_value(schema["operation"].clone()).ok()
    }
}
