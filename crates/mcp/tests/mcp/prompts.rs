//! Prompts, and the completion of what they and the addresses of resources take.

use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, ContentBlock, GetPromptRequestParams,
    GetPromptResult, Reference, ResourceContents,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::support::{Agent, Home};

async fn get(agent: &Agent, name: &str, arguments: Value) -> Result<GetPromptResult, ServiceError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    agent.service.get_prompt(GetPromptRequestParams::new(name).with_arguments(arguments)).await
}

/// What a prompt says, and the address and text of what it has attached.
async fn said(agent: &Agent, name: &str, arguments: Value) -> (String, Vec<(String, String)>) {
    let messages = get(agent, name, arguments).await.unwrap().messages;
    let text = messages[0].content.as_text().unwrap().text.clone();
    let attached = messages[1..].iter().map(|message| match &message.content {
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => (uri.clone(), text.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    (text, attached.collect())
}

async fn complete(
    agent: &Agent,
    reference: Reference,
    name: &str,
    begun: &str,
    given: &[(&str, &str)],
) -> (Vec<String>, bool) {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = CompleteRequestParams::new(reference, ArgumentInfo::new(name, begun))
        .with_context(CompletionContext::with_arguments(given));
    let completion = agent.service.complete(request).await.unwrap().completion;
    (completion.values, completion.has_more.unwrap())
}

#[tokio::test]
async fn prompts_are_listed_and_say_what_to_do() {
    let home = Home::new().await;
    let agent = home.agent().await;
    insta::assert_json_snapshot!("prompts", agent.service.list_all_prompts().await.unwrap());
    let (explore, _) = said(&agent, "explore_type", json!({ "type": "Pets.Dog" })).await;
    let (tdd, _) = said(&agent, "tdd_cycle", json!({ "goal": "a queue" })).await;
    insta::assert_snapshot!("prompts_said", format!("{explore}\n\n====\n\n{tdd}"));
}

#[tokio::test]
async fn the_repair_of_an_error_brings_the_cell_along() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for code in ["nonsense", "let x = 3", "failwith \"no\"", "1 + 1"] {
        agent.send(code).await;
    }
    let id = home.session().await;
    let (text, attached) = said(&agent, "repair_error", json!({})).await;
    assert!(text.contains("Cell 3 ") && text.contains(&id.short()), "{text}");
    let [(uri, cell)] = attached.as_slice() else { panic!("{attached:?}") };
    assert_eq!(*uri, format!("mainstay://session/{id}/cell/3"));
    assert!(cell.contains("failwith \"no\"") && cell.contains("System.Exception"), "{cell}");

    let (_, attached) = said(&agent, "repair_error", json!({ "session": id.short(), "cell": "1" })).await;
    assert!(attached[0].1.contains("FS0039"), "{attached:?}");
}

#[tokio::test]
async fn a_prompt_that_cannot_be_given_says_why() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for (name, arguments, why) in [
        ("sing", json!({}), "there is no prompt `sing`"),
        ("explore_type", json!({}), "the argument `type` is missing"),
        ("explore_type", json!({ "type": " " }), "the argument `type` is missing"),
        ("explore_type", json!({ "type": "A", "kind": "b" }), "has no argument `kind`"),
        ("tdd_cycle", json!({ "goal": 1 }), "`goal` must be text"),
        ("repair_error", json!({ "cell": "first" }), "`cell` must be a number"),
        ("repair_error", json!({}), "there is no session"),
        ("repair_error", json!({ "session": "nobody" }), "session_not_found"),
    ] {
        match get(&agent, name, arguments).await.unwrap_err() {
            ServiceError::McpError(error) => {
                assert_eq!(error.code.0, -32602, "{error}");
                assert!(error.message.contains(why), "{error}");
            }
            other => panic!("{other}"),
        }
    }
    agent.send("1 + 1").await;
    assert!(get(&agent, "repair_error", json!({})).await.is_err(), "nothing failed");
}

#[tokio::test]
async fn arguments_are_completed() {
    let home = Home::new().await;
    let (agent, ada) = (home.agent().await, home.agent_of("ada").await);
    let repair = || Reference::for_prompt("repair_error");
    let template = || Reference::for_resource("mainstay://session/{id}/cell/{number}");
    let explore = || Reference::for_prompt("explore_type");
    assert_eq!(complete(&agent, explore(), "type", "Do", &[]).await, (vec![], false), "no session is there");

    for code in ["nonsense", "let x = 3", "failwith \"no\""] {
        agent.send(code).await;
    }
    let id = home.session().await.short();
    assert_eq!(complete(&agent, repair(), "session", "wo", &[]).await.0, ["work"]);
    assert_eq!(complete(&agent, template(), "id", &id[..3], &[]).await.0, [id.as_str()]);
    assert_eq!(complete(&agent, repair(), "cell", "", &[]).await.0, ["3", "1"], "those that failed");
    assert_eq!(complete(&agent, template(), "number", "", &[("id", &id)]).await.0, ["3", "2", "1"]);
    assert_eq!(complete(&agent, template(), "number", "2", &[("id", &id)]).await.0, ["2"]);
    let types = complete(&agent, explore(), "type", "Do", &[]).await;
    assert_eq!(types, (vec!["Pets.Do".to_owned()], true));
    assert_eq!(complete(&agent, Reference::for_prompt("tdd_cycle"), "goal", "a", &[]).await.0, [""; 0]);
    assert_eq!(complete(&ada, repair(), "session", "", &[]).await.0, [""; 0], "it is not hers");
}
