//! What decoding refuses, and in which words.

use super::*;
use crate::fuzz_invariants;
use proptest::prelude::*;
use serde_json::json;

fn refusal(frame: Value) -> String {
    decode(&frame).unwrap_err().errors
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_the_words_of_upstream() {
    let long = "x".repeat(257);
    let refused = [
        json!(null),
        json!("list_sessions"),
        json!([]),
        json!({}),
        json!({ "type": "dance" }),
        json!({ "id": 7, "type": "prompt" }),
        json!({ "id": "anon:1", "type": "get_state", "sessionId": "s" }),
        json!({ "id": long, "idempotencyKey": " ", "type": "list_sessions" }),
        json!({ "id": "é".repeat(200), "idempotencyKey": "é".repeat(200), "type": "list_sessions" }),
        json!({ "id": "a b", "type": "list_sessions" }),
        json!({ "type": "abort", "sessionId": "s", "dependsOn": ["a", ""] }),
        json!({ "type": "list_sessions", "ifSessionVersion": 1.5 }),
        json!({ "type": "set_thinking_level", "sessionId": "s", "level": "vast" }),
        json!({ "type": "extension_ui_response", "sessionId": "s", "requestId": "a b", "response": {} }),
        json!({ "type": "get_command_history", "limit": 501, "fromTimestamp": 5, "toTimestamp": 4 }),
        json!({ "type": "load_session", "sessionPath": "/a/../b.jsonl" }),
        json!({ "type": "create_session", "sessionId": "a b", "cwd": 3 }),
        json!({ "type": "set_session_name", "sessionId": "s", "name": "a\nb" }),
    ];
    insta::assert_snapshot!(refused.map(refusal).join("\n"), @"
    root: Command must be an object
    root: Command must be an object
    type: Command must have a string 'type' field
    type: Command must have a string 'type' field
    type: Unknown command type 'dance'
    id: Must be a non-empty string if provided; sessionId: Session commands must have a non-empty string 'sessionId'; message: Required string
    id: Cannot use reserved prefix 'anon:'
    id: Too long (max 256 chars); idempotencyKey: Must be a non-empty string if provided
    id: Too long (max 256 bytes); idempotencyKey: Too long (max 256 bytes)
    id: Must not contain white space or control characters
    dependsOn[1]: Must be a non-empty command ID string; id: Required when dependsOn is provided
    ifSessionVersion: Must be a non-negative integer; ifSessionVersion: Only supported for session-targeted commands
    level: Must be one of: off, minimal, low, medium, high, xhigh
    requestId: Must contain only alphanumeric characters, colons, dots, underscores, and dashes; response.method: Must be one of: select, confirm, input, editor, interview, cancelled
    fromTimestamp: Must be less than or equal to toTimestamp; limit: Must be between 1 and 500
    sessionPath: sessionPath contains potentially dangerous path components
    sessionId: Must contain only alphanumeric characters, dots, underscores, and dashes; cwd: Must be a string if provided
    name: Must not contain control characters
    ");
}

#[test]
fn what_upstream_refused_and_pi_knows_is_taken() {
    for level in ["off", "minimal", "none", "xhigh"] {
        let frame = json!({ "type": "set_thinking_level", "sessionId": "a.b", "level": level });
        assert!(decode(&frame).is_ok(), "{level}");
    }
}

#[test]
fn what_only_names_a_command_does_not_change_what_it_says() {
    let said = |frame: Value| decode(&frame).unwrap().fingerprint;
    let plain = said(json!({ "type": "abort", "sessionId": "s", "x": { "b": 1, "a": 2 } }));
    let named = said(
        json!({ "x": { "a": 2, "b": 1 }, "id": "1", "idempotencyKey": "k", "sessionId": "s", "type": "abort" }),
    );
    assert_eq!(plain, named);
    assert_ne!(plain, said(json!({ "type": "abort", "sessionId": "t" })));
}

proptest! {
    #[test]
    fn what_is_promised_of_every_frame_holds(
        kind in prop_oneof![Just("prompt"), Just("bash"), Just("fork"), Just("get_command_history"),
            Just("extension_ui_response"), Just("navigate_tree"), Just("create_session"), Just("x")],
        fields in proptest::collection::btree_map(
            prop_oneof![Just("id"), Just("sessionId"), Just("message"), Just("dependsOn"), Just("limit"),
                Just("options"), Just("response"), Just("requestId"), Just("images"), Just("entryId")],
            prop_oneof![Just(json!(null)), Just(json!("a")), Just(json!(3)), Just(json!([{}])), Just(json!({ "method": 1 })),
                Just(json!("é".repeat(256))), Just(json!("a".repeat(257)))],
            0..6,
        ),
    ) {
        let mut frame: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        frame.insert("type".to_owned(), json!(kind));
        fuzz_invariants::check(&Value::Object(frame));
    }
}
