//! The prompts that the suite knows by name.

use rmcp::model::{GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt};
use serde_json::{Value, json};

use crate::server::input;
use crate::tools::{PNG, form};

/// Each prompt, and what it takes.
const PROMPTS: [(&str, &[&str]); 5] = [
    ("test_simple_prompt", &[]),
    ("test_prompt_with_arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", &["resourceUri"]),
    ("test_prompt_with_image", &[]),
    ("test_input_required_result_prompt", &[]),
];

/// Returns the prompts that the server lists.
pub(crate) fn listed() -> Vec<Prompt> {
    let prompt = |(name, arguments): (&str, &[&str])| {
        let argument = |name: &&str| json!({ "name": name, "required": true });
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        let prompt = json!({ "name": name, "description": "The conformance suite asks for it.", "arguments": arguments });
        serde_json::from_value(prompt).unwrap()
    };
    PROMPTS.map(prompt).into()
}

/// What a prompt says, where it is one of these.
pub(crate) fn get(request: &GetPromptRequestParams) -> Option<GetPromptResponse> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref()?;
        arguments.get(name)?.as_str()
    };
    let said = |text: &str| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![said("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let [first, second] = ["arg1", "arg2"].map(|name| argument(name).unwrap_or_default());
            vec![said(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing.",
            });
            vec![
                json!({ "type": "resource", "resource": resource }),
                said("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            vec![
                json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
                said("Please analyze the image above."),
            ]
        }
        "test_input_required_result_prompt" => {
            let requests = json!({ "user_context": form("What context should the prompt use?", "context") });
            if let Some(required) = input(&requests, request.input_responses.as_ref()) {
                return Some(GetPromptResponse::InputRequired(required));
            }
            vec![said(&format!("{:?}", request.input_responses))]
        }
        _ => return None,
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    let messages = serde_json::from_value(Value::from(messages)).unwrap();
    Some(GetPromptResult::new(messages).into())
}
