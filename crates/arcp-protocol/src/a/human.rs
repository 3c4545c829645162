//! Questions to people, and their answers. Source: draft-arcp-01, 12.

use jiff::Timestamp;
use serde_json::Value;

use super::error::ErrorCode;
use super::payload::payloads;

payloads! {
    /// A job asks a person for something. Source: draft-arcp-01, 12.1.
    HumanInputRequest {
        /// What is asked, for people.
        prompt: String,
        /// The JSON schema of an answer.
        response_schema: Value,
        /// When it must have been answered.
        expires_at: Timestamp,
    } optional {
        /// What is taken where nobody answers in time.
        default: Value,
    }

    /// A person answers a question. Source: draft-arcp-01, 12.1 and 12.3.
    HumanInputResponse {
        /// The answer to the question.
        value: Value,
    } optional {
        /// By which way it was answered.
        responded_by: String,
        /// When it was answered, as the client says.
        responded_at: Timestamp,
    }

    /// Something to choose. Source: draft-arcp-01, 12.2.
    ChoiceOption {
        /// The name of the option.
        id: String,
        /// What the option is, for people.
        label: String,
    } optional {}

    /// A job has a person choose. Source: draft-arcp-01, 12.2.
    HumanChoiceRequest {
        /// What is asked, for people.
        prompt: String,
        /// What there is to choose from.
        options: Vec<ChoiceOption>,
        /// When it must have been answered.
        expires_at: Timestamp,
    } optional {
        /// The option that is taken where nobody answers in time.
        default: String,
    }

    /// A person has chosen. Source: draft-arcp-01, 12.2.
    HumanChoiceResponse {
        /// The option that was chosen.
        choice_id: String,
    } optional {
        /// By which way it was answered.
        responded_by: String,
        /// When it was answered, as the client says.
        responded_at: Timestamp,
    }

    /// A question needs no answer any more. Source: draft-arcp-01, 12.3 and 12.4.
    HumanInputCancelled {} optional {
        /// Why: `DEADLINE_EXCEEDED` where nobody answered in time.
        code: ErrorCode,
        /// Why it needs no answer, in a word.
        reason: String,
        /// By which way it was answered, where it was; `default` where the default was taken.
        responded_by: String,
    }
}
