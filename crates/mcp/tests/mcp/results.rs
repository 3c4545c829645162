//! In what form results are given, and how what is long is read.

use rmcp::ServiceExt;
use rmcp::model::ServerResult;
use serde_json::{Value, json};

use crate::support::{Agent, Home, Listener, Reply};

impl Home {
    /// An agent that calls itself so.
    pub(crate) async fn agent_named(&self, name: &'static str) -> Agent {
        let (stream, _) = self.stream(Some(self.folder("work")));
        Agent { service: Listener { name: Some(name), ..Listener::default() }.serve(stream).await.unwrap() }
    }
}

#[tokio::test]
async fn clients_of_models_get_text_and_pictures_alone() {
    let home = Home::new().await;
    for name in ["codex-mcp-client", "claude-code", "opencode", "gemini-cli-mcp-client"] {
        let agent = home.agent_named(name).await;
        let tools = agent.service.list_all_tools().await.unwrap();
        assert!(tools.iter().all(|tool| tool.output_schema.is_none()), "{name}");
        let marked = tools.iter().filter(|tool| tool.meta.is_some()).count();
        assert_eq!(marked > 0, name == "claude-code", "{name}");
        let shown = agent.send("show \"a table\"").await;
        assert_eq!((&shown.structured, shown.pictures.len()), (&Value::Null, 1), "{name}: {shown:?}");
        assert!(shown.text.starts_with("a table\n"), "{name}: {}", shown.text);
        let refused = agent.send("failwith \"no\"").await;
        assert_eq!((&refused.structured, refused.is_error), (&Value::Null, true), "{name}");
    }
}

#[tokio::test]
async fn a_request_may_ask_for_another_form() {
    let home = Home::new().await;
    for (name, form, is_structured) in
        [("codex-mcp-client", "structured", true), ("tester", "text", false), ("tester", "else", true)]
    {
        let agent = home.agent_named(name).await;
        let meta = json!({ "mainstay/results": form });
        let call = agent.begin_with("send_code", json!({ "code": "1 + 1" }), &meta).await;
        let ServerResult::CallToolResult(result) = call.await_response().await.unwrap() else { panic!() };
        assert_eq!(Reply::from(result).structured["value"] == json!("2"), is_structured, "{name} {form}");
    }
}

#[tokio::test]
async fn an_answer_is_cut_to_what_its_client_passes_on_and_says_how_to_read_the_rest() {
    let home = Home::new().await;
    for (name, most) in [("codex-mcp-client", 10_000), ("claude-code", 10_000)] {
        let agent = home.agent_named(name).await;
        let reply = agent.send("flood 200000").await;
        assert!(reply.text.len() <= most, "{name}: {} bytes", reply.text.len());
        assert!(reply.text.contains("get_output with seq "), "{name}: {}", reply.text);
        assert!(reply.text.contains("bytes left out") && reply.text.contains("x end"), "{name}");
    }
}

#[tokio::test]
async fn a_long_value_is_cut_and_said_to_be() {
    let home = Home::new().await;
    let agent = home.agent_named("codex-mcp-client").await;
    let reply = agent.send("long 15000").await;
    assert!(reply.text.len() <= 10_000, "{} bytes", reply.text.len());
    assert!(reply.text.contains("a value is cut") && !reply.text.contains("get_output"), "{}", reply.text);
}

#[tokio::test]
async fn a_line_longer_than_an_answer_is_read_in_parts() {
    let home = Home::new().await;
    let agent = home.agent_named("codex-mcp-client").await;
    agent.send("flood 60000").await;
    let (mut read, mut column) = (String::new(), 1);
    loop {
        let part = agent.call("get_output", json!({ "column": column })).await.text;
        let (text, said) = part.rsplit_once('\n').unwrap();
        assert!(part.len() <= 10_000, "{} bytes", part.len());
        read.push_str(text);
        let Some((_, rest)) = said.split_once("go on with from 1 and column ") else { break };
        column = rest.split_once(' ').unwrap().0.parse().unwrap();
        assert_eq!(column, read.len() + 1, "{said}");
    }
    assert_eq!(read, format!("{} end", "x".repeat(60_000)));
    let agent = home.agent().await;
    let past = agent.call("get_output", json!({ "column": 60_006 })).await;
    assert!(past.text.contains("line 1 has 60004 characters"), "{past:?}");
    agent.send("printfn \"aé𝄞b\"").await;
    let rest = agent.call("get_output", json!({ "column": 3 })).await;
    assert_eq!((&rest.structured["lines"], &rest.structured["column"]), (&json!(["\u{1d11e}b"]), &json!(3)));
}

#[tokio::test]
async fn output_is_read_by_lines() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let first = agent.send("printfn \"one\ntwo\nthree\"").await.structured["seq"].clone();
    agent.send("printfn \"last\"").await;
    let read = async |arguments: Value| agent.call("get_output", arguments).await;
    let all = read(json!({ "seq": first })).await;
    assert_eq!(
        (&all.structured["of"], &all.structured["lines"]),
        (&json!(3), &json!(["one", "two", "three"]))
    );
    let two = read(json!({ "seq": first, "from": 2, "lines": 1 })).await;
    assert!(two.text.starts_with("two\nlines 2 to 2 of 3 "), "{}", two.text);
    let newest = read(json!({})).await;
    assert_eq!(newest.structured["lines"], json!(["last"]));
    let past = read(json!({ "seq": first, "from": 9 })).await;
    assert!(past.text.starts_with("no lines from 9 on; there are 3"), "{}", past.text);
    let none = read(json!({ "seq": 1 })).await;
    assert_eq!(none.structured["code"], json!("invalid_argument"), "{none:?}");
    let still = agent.call("send_code", json!({ "code": "wait", "wait": 0 })).await;
    home.reaches("Evaluating").await;
    for arguments in [json!({}), json!({ "id": still.structured["id"] })] {
        let mut reads = read(arguments.clone()).await;
        while reads.structured["lines"] == json!([]) {
            reads = read(arguments.clone()).await;
        }
        assert_eq!(reads.structured["lines"], json!(["waiting"]), "{reads:?}");
    }
    agent.call("cancel_eval", json!({})).await;
}
