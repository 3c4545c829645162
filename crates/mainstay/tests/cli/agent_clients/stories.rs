//! What a model does with Mainstay through its agent, and what it must be shown. Each story runs in each agent.

use serde_json::json;

use crate::agent_clients::clients::{Client, Turn};
use crate::agent_clients::conversation::{Conversation, Running};
use crate::agent_clients::golden::Golden;
use crate::agent_clients::stage::{Stage, behind, code, has_begun};

/// How much text every agent passes on whole, in characters.
const WHOLE: usize = 12_000;

/// What `tools` and the schemas behind them may take of a request, in bytes: about four are a token.
const TOOLS: usize = 25_500;

fn create(turn: &mut Running<'_>) {
    let created = turn.call("create_session", &json!({ "kind": "python3", "name": "main" })).text();
    assert!(created.to_lowercase().contains("python"), "it does not say what send_code runs now: {created}");
}

/// A plot as a model writes one.
const PLOTS: &str =
    "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [1, 4, 9])\nplt.title('Squares')\nplt.show()";

/// It creates a session, runs code, reads an error, looks at a plot, reads a megabyte, answers a question of the code, and waits for code
/// that is silent.
pub(crate) fn works_in_a_session(client: &'static dyn Client) {
    let mut stage = Stage::new(client, "works");
    let (waiting, gate) = (stage.waiting(), stage.gate());
    let mut conversation = Conversation::new(client, &stage.world, "user");
    let mut turn = conversation.turn(Turn::First, &mut stage.golden);
    let tools = turn.tools();
    let bytes: usize = tools.iter().map(|tool| tool.bytes).sum();
    println!("{}: {} tools of {bytes} bytes in a request", client.name(), tools.len());
    assert!(bytes < TOOLS, "{bytes}");

    create(&mut turn);
    let value = turn.call("send_code", &code("x = 20\nx + 1"));
    assert!(value.text().contains("21"), "{value:?}");

    let failed = turn.call("send_code", &code("def half(n):\n    return n / 0\nhalf(x)"));
    assert!(failed.text().contains("ZeroDivisionError"), "{failed:?}");
    assert_ne!(failed.is_error, Some(false));

    let shown = turn.call("send_code", &code(PLOTS));
    assert!(shown.has_picture(), "{shown:?}");

    reads_a_megabyte(&mut turn);
    answers_a_question(&mut turn);

    let still = turn.call("send_code", &json!({ "code": waiting, "wait": 1 })).text();
    assert!(still.contains("still running") && still.contains("begun"), "{still}");
    let id = behind(&still, "[id ");
    let still = turn.call("get_result", &json!({ "id": id, "wait": 1 })).text();
    assert!(still.contains("still running"), "{still}");
    std::fs::write(gate, "").unwrap();
    let rested = turn.call("get_result", &json!({ "id": id })).text();
    assert!(rested.contains("42"), "{rested}");
    turn.end();
    insta::assert_snapshot!(stage.name(), stage.golden.text());
}

fn reads_a_megabyte(turn: &mut Running<'_>) {
    let prints = "print('\\n'.join(f'line {n:07}' for n in range(77_000)))";
    let long = turn.call("send_code", &code(prints)).text();
    assert!(long.chars().count() < WHOLE, "{}", long.len());
    assert!(long.contains("line 0000000") && long.contains("line 0076999"), "{long}");
    assert!(long.contains("get_output"), "it does not say how to read the rest: {long}");
    let rest = turn.call("get_output", &json!({ "from": 40_000, "lines": 3 })).text();
    assert!(rest.contains("line 0039999\nline 0040000\nline 0040001"), "{rest}");
    let failed = turn.call("send_code", &code(&format!("{prints}\nraise ValueError('at the end')"))).text();
    assert!(failed.chars().count() < 2 * WHOLE, "{}", failed.len());
    assert!(failed.contains("at the end"), "{failed}");
}

fn answers_a_question(turn: &mut Running<'_>) {
    let asked = turn.call("send_code", &code("name = input('Name? ')\nname.upper()")).text();
    assert!(
        asked.contains("Name?") && asked.contains("answer_ask") && asked.contains("cancel_eval"),
        "{asked}"
    );
    let answered =
        turn.call("answer_ask", &json!({ "ask": behind(&asked, "[ask "), "answer": "Ada" })).text();
    assert!(answered.contains("ADA"), "{answered}");
}

/// The daemon is killed in mid-call: the code goes on, the model gets what came of it, and works on in the same session.
pub(crate) fn survives_the_death_of_the_daemon(client: &'static dyn Client) {
    let mut stage = Stage::new(client, "survives");
    let waiting = stage.waiting();
    let mut conversation = Conversation::new(client, &stage.world, "user");
    let gate = stage.gate();
    let mut turn = conversation.turn(Turn::First, &mut stage.golden);
    create(&mut turn);
    turn.call("send_code", &code("x = 41"));
    turn.begin("send_code", &code(&waiting));
    has_begun(&stage.world);
    stage.world.kill_daemon();
    std::fs::write(gate, "").unwrap();
    let told = turn.result().text();
    assert!(told.contains("42"), "{told}");
    let value = turn.call("send_code", &code("x + 1")).text();
    assert!(value.contains("42"), "{value}");
    turn.end();
    insta::assert_snapshot!(stage.name(), stage.golden.text());
}

/// A conversation goes on in its session; its agent is killed in mid-call, and the next one sees that its code still runs, and what it came to.
pub(crate) fn leaves_code_behind_and_finds_it_again(client: &'static dyn Client) {
    let mut stage = Stage::new(client, "leaves");
    let waiting = stage.waiting();
    let mut conversation = Conversation::new(client, &stage.world, "user");
    let mut turn = conversation.turn(Turn::First, &mut stage.golden);
    create(&mut turn);
    turn.call("send_code", &code("x = 20"));
    turn.end();

    stage.golden.note("the conversation is resumed");
    let mut turn = conversation.turn(Turn::Resumed, &mut stage.golden);
    assert!(turn.request().contains("x = 20"), "it is another conversation: {}", turn.request());
    let value = turn.call("send_code", &code("x + 1")).text();
    assert!(value.contains("21"), "{value}");
    turn.begin("send_code", &code(&waiting));
    has_begun(&stage.world);
    turn.kill();

    stage.golden.note("the agent is killed, and the conversation resumed");
    let gate = stage.gate();
    let mut turn = conversation.turn(Turn::Resumed, &mut stage.golden);
    let status = turn.call("get_status", &json!({})).text();
    assert!(status.contains("client is gone"), "{status}");
    std::fs::write(gate, "").unwrap();
    let value = turn.call("send_code", &code("rested + x")).text();
    assert!(value.contains("62"), "{value}");
    turn.end();
    insta::assert_snapshot!(stage.name(), stage.golden.text());
}

/// Two agents, of two users of the machine's, work in one session.
pub(crate) fn two_work_in_one_session(client: &'static dyn Client) {
    let stage = Stage::new(client, "two");
    let mut goldens = [Golden::new(&stage.world), Golden::new(&stage.world)];
    let [first, second] = &mut goldens;
    let mut ada = Conversation::new(client, &stage.world, "ada");
    let mut bob = Conversation::new(client, &stage.world, "bob");
    let mut ada = ada.turn(Turn::First, first);
    create(&mut ada);
    ada.call("send_code", &code("x = 20"));
    let mut bob = bob.turn(Turn::First, second);
    let value = bob.call("send_code", &code("y = x + 1\ny")).text();
    assert!(value.contains("21"), "{value}");
    let value = ada.call("send_code", &code("x + y")).text();
    assert!(value.contains("41"), "{value}");
    ada.end();
    bob.end();
    let [first, second] = goldens;
    insta::assert_snapshot!(stage.name(), format!("· one\n{}· the other\n{}", first.text(), second.text()));
}

/// Code that says nothing for longer than an agent waits: the model waits on, and gets its value.
pub(crate) fn waits_for_silent_code(client: &'static dyn Client) {
    let seconds = std::env::var("MAINSTAY_TEST_SILENCE_SECONDS").unwrap_or_else(|_| "100".to_owned());
    let mut stage = Stage::new(client, "waits");
    let mut conversation = Conversation::new(client, &stage.world, "user");
    let mut turn = conversation.turn(Turn::First, &mut stage.golden);
    create(&mut turn);
    let mut shown =
        turn.call("send_code", &code(&format!("import time\ntime.sleep({seconds})\n'res' + 'ted'"))).text();
    while !shown.contains("rested") {
        assert!(shown.contains("still running"), "{shown}");
        shown = turn.call("get_result", &json!({ "id": behind(&shown, "[id ") })).text();
    }
    turn.end();
}
