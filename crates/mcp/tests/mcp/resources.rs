//! Resources: what can be read of sessions without calling a tool, and by whom.

use rmcp::model::{ReadResourceRequestParams, ResourceContents};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::support::{Agent, Home};

async fn read(agent: &Agent, uri: &str) -> Result<(String, String), ServiceError> {
    let result = agent.service.read_resource(ReadResourceRequestParams::new(uri)).await?;
    let [ResourceContents::TextResourceContents { text, mime_type, uri: said, .. }] =
        result.contents.as_slice()
    else {
        panic!("{:?}", result.contents)
    };
    assert_eq!(said, uri);
    Ok((mime_type.clone().unwrap(), text.clone()))
}

pub(crate) async fn text(agent: &Agent, uri: &str) -> String {
    read(agent, uri).await.unwrap().1
}

async fn json_of(agent: &Agent, uri: &str) -> Value {
    let (kind, text) = read(agent, uri).await.unwrap();
    assert_eq!(kind, "application/json");
    serde_json::from_str(&text).unwrap()
}

/// The error's code, and whether it names what was asked for.
async fn refused(agent: &Agent, uri: &str) -> (i32, bool) {
    match read(agent, uri).await.unwrap_err() {
        ServiceError::McpError(error) => (error.code.0, error.data == Some(json!({ "uri": uri }))),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn sessions_are_listed_and_each_has_templates() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let before = agent.service.list_all_resources().await.unwrap();
    assert_eq!(
        before.iter().map(|resource| resource.uri.as_str()).collect::<Vec<_>>(),
        ["mainstay://sessions"]
    );

    let session = agent.send("1 + 1").await.session();
    let after = agent.service.list_all_resources().await.unwrap();
    let uri = after[1].uri.clone();
    assert_eq!(uri, format!("mainstay://session/{}", home.session().await));
    assert_eq!(json_of(&agent, &uri).await["sessionId"], json!(session));
    let listed = json_of(&agent, "mainstay://sessions").await;
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));

    let templates = agent.service.list_all_resource_templates().await.unwrap();
    insta::assert_json_snapshot!("resource_templates", templates);
}

#[tokio::test]
async fn a_transcript_is_read_as_markdown_page_by_page() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("let x = 3").await;
    agent.send("printfn \"hello\"").await;
    agent.send("nonsense").await;
    let id = home.session().await;
    let all = text(&agent, &format!("mainstay://session/{id}/transcript")).await;
    insta::assert_snapshot!("transcript", all.replace(&id.to_string(), "ID"));

    let first = text(&agent, &format!("mainstay://session/{id}/transcript?from=1&count=2")).await;
    let next = first.lines().last().unwrap().strip_prefix("Next: ").unwrap().to_owned();
    assert_eq!(next, format!("mainstay://session/{id}/transcript?from=3&count=2"));
    let rest = text(&agent, &next).await;
    assert!(rest.contains("### Cell 3\n") && !rest.contains("### Cell 2\n"), "{rest}");
    assert!(
        rest.ends_with(&format!("Before: mainstay://session/{id}/transcript?from=1&count=2\n")),
        "{rest}"
    );
    let newest = text(&agent, &format!("mainstay://session/{id}/transcript?count=1")).await;
    assert!(newest.contains("### Cell 3\n") && !newest.contains("### Cell 2\n"), "{newest}");
    let beyond = text(&agent, &format!("mainstay://session/{id}/transcript?from=9")).await;
    assert!(beyond.ends_with("There is nothing.\n"), "{beyond}");
}

#[tokio::test]
async fn a_page_ends_where_it_gets_long_and_a_cell_has_more_of_itself() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for _ in 0..6 {
        agent.send("flood 9000").await;
    }
    let id = home.session().await;
    let page = text(&agent, &format!("mainstay://session/{id}/transcript?from=1")).await;
    assert!(page.len() < 18_000, "{} bytes", page.len());
    assert!(page.contains("bytes left out"), "{page}");
    let next = page.lines().last().unwrap();
    let last: u64 = next.rsplit('=').next().unwrap().parse().unwrap();
    assert!((2..6).contains(&last), "{next}");
    let cell = text(&agent, &format!("mainstay://session/{id}/cell/1")).await;
    assert!(cell.len() > 9_000 && !cell.contains("left out"), "{cell}");
}

#[tokio::test]
async fn cells_remarks_and_events_have_addresses() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let session = agent.send("nonsense").await.session();
    agent.send("unused").await;
    let of = |part: &str| format!("mainstay://session/{session}/{part}");
    let (kind, cell) = read(&agent, &of("cell/1")).await.unwrap();
    assert_eq!(kind, "text/markdown");
    assert!(cell.starts_with("```fsharp\nnonsense\n```\n") && cell.contains("FS0039"), "{cell}");

    let remarks = json_of(&agent, &of("diagnostics")).await;
    let told: Vec<_> = remarks["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|remark| (remark["cell"].clone(), remark["severity"].clone()))
        .collect();
    assert_eq!(told, [(json!(1), json!("error")), (json!(2), json!("warning"))]);
    agent.call("reset_session", json!({})).await;
    assert_eq!(json_of(&agent, &of("diagnostics")).await["diagnostics"], json!([]));

    let newest = json_of(&agent, &of("events")).await;
    let cursor = newest["cursor"].as_u64().unwrap();
    let later = json_of(&agent, &of(&format!("events?since={}", cursor - 1))).await;
    assert_eq!(later["events"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_there_or_not_ones_own_is_not_found() {
    let home = Home::new().await;
    let (agent, ada) = (home.agent().await, home.agent_of("ada").await);
    let session = agent.send("1 + 1").await.session();
    for uri in [
        "mainstay://nothing".to_owned(),
        "mainstay://session/nobody".to_owned(),
        format!("mainstay://session/{session}/cell/2"),
        format!("mainstay://session/{session}/cell/0"),
    ] {
        assert_eq!(refused(&agent, &uri).await, (-32002, true), "{uri}");
    }
    for part in ["", "/transcript", "/cell/1", "/diagnostics", "/events"] {
        let uri = format!("mainstay://session/{session}{part}");
        assert_eq!(refused(&ada, &uri).await, (-32002, true), "{uri}");
    }
    assert_eq!(ada.service.list_all_resources().await.unwrap().len(), 1);
    assert_eq!(json_of(&ada, "mainstay://sessions").await["sessions"], json!([]));
}
