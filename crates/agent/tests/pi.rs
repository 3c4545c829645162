//! The real pi as a runner, with a scripted model behind it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use mainstay_agent::pi::{LiveSessions, PiAgents};
use mainstay_model::{
    AgentNotice, Delivery, Error, JobSpec, Message, Principal, Prompt, QueuedPrompt, Seq, Setting,
    ThinkingLevel, WorkEnding, WorkerExit,
};
use mainstay_runner::{AgentQuestion, AskAnswer, Conversation, RunnerFactory};
use mainstay_test_support::model::{Step, call, say};
use serde_json::{Value, json};
use support::{LONG, World, conversation, line_of};
use tokio::sync::Notify;

fn queued(text: &str, hears: Delivery) -> QueuedPrompt {
    QueuedPrompt { prompt: Prompt::text(text), hears }
}

/// What a request shows the model of the conversation: role and text.
fn shown(request: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| block["text"].as_str().unwrap_or("[image]"))
            .collect::<Vec<_>>()
            .join(" "),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let is_said = |message: &&Value| message["role"] != "system" && message["role"] != "developer";
    let messages = request["messages"].as_array().unwrap().iter().filter(is_said);
    messages
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), text(&message["content"])))
        .collect()
}

#[tokio::test]
async fn a_turn_is_heard_as_it_is_said_with_its_tools_and_what_it_took() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    assert_eq!(pi.info().kernel, "pi 0.73.1");
    assert!(pi.info().runtime.starts_with("Node 2"), "{:?}", pi.info());
    assert_eq!(line_of(&pi.next_of_agent().await), "state local/m, thinking off");

    world.model.will(
        [
            vec![Step::Think("hm")],
            vec![Step::Text("I ".to_owned()), Step::Text("look.".to_owned())],
            call("c1", "bash", &json!({ "command": "echo found" })),
        ]
        .concat(),
    );
    world.model.will(say(&["It is ", "there."]));
    insta::assert_snapshot!(pi.prompt("look").await.told(), @r#"
    message user: look []
    said 1.0 Thinking @0 "hm"
    said 1.1 Assistant @0 "I "
    said 1.1 Assistant @2 "look."
    said 1.2 ToolCall @0 "" bash c1
    said 1.2 ToolCall @0 "{\"command\":\""
    said 1.2 ToolCall @12 "echo found\"}"
    message thinking: hm · assistant: I look. · toolCall bash: {"command":"echo found"} ["m", "toolUse"] (40 tokens in, 10 out)
    state local/m, thinking off, 50 tokens of context
    note bash runs {"command":"echo found"}
    output of c1: {"content":[]}
    output of c1: {"content":[{"text":"found\n","type":"text"}],"details":{}}
    note bash has ended
    message toolResult bash: found []
    said 3.0 Assistant @0 "It is "
    said 3.0 Assistant @6 "there."
    message assistant: It is there. ["m", "stop"] (90 tokens in, 10 out)
    state local/m, thinking off, 100 tokens of context
    done
    "#);

    // A second turn counts its messages from the first again.
    world.model.will(say(&["Yes."]));
    insta::assert_snapshot!(pi.prompt("sure?").await.told(), @r#"
    message user: sure? []
    said 1.0 Assistant @0 "Yes."
    message assistant: Yes. ["m", "stop"] (90 tokens in, 10 out)
    done
    "#);
    insta::assert_snapshot!(shown(&world.model.request(3).await).join("\n"), @"
    user: look
    assistant: I look.
    tool: found

    assistant: It is there.
    user: sure?
    ");
}

#[tokio::test]
async fn a_picture_goes_with_a_prompt() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    let data =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = mainstay_model::agent::Image { mime_type: "image/png".to_owned(), data: data.to_owned() };
    let prompt = Prompt { text: "what is this?".to_owned(), images: vec![image] };
    world.model.will(say(&["A dot."]));
    let done = pi.work(JobSpec::Turn { prompt: prompt.clone() }).await;
    assert_eq!(done.messages()[0].parts, prompt.message().parts);
    assert!(world.model.request(1).await["messages"].to_string().contains(data));
}

#[tokio::test]
async fn what_is_said_while_it_works_is_heard_next_or_at_the_end() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    pi.next_of_agent().await;
    let go_on = Arc::new(Notify::new());
    world.model.will(
        [
            vec![Step::Text("wait".to_owned()), Step::Wait(Arc::clone(&go_on))],
            call("c1", "bash", &json!({ "command": "true" })),
        ]
        .concat(),
    );
    world.model.will(say(&["steered"]));
    world.model.will(say(&["followed"]));
    pi.begin(JobSpec::Turn { prompt: Prompt::text("go") }).await;
    pi.says("wait").await;
    pi.agent.steer(queued("last", Delivery::FollowUp), Seq(1)).await;
    pi.agent.steer(queued("first", Delivery::Steer), Seq(1)).await;
    let is_queue = |notice: &AgentNotice| matches!(notice, AgentNotice::Queue(queue) if queue.len() == 2);
    pi.until(is_queue).await;
    go_on.notify_one();
    let done = pi.done().await;
    let queues: Vec<String> =
        done.said.iter().filter(|notice| matches!(notice, AgentNotice::Queue(_))).map(line_of).collect();
    assert_eq!(queues, ["queue [(FollowUp, \"last\")]", "queue []"]);
    assert_eq!(done.ending.name(), "done");
    let last = shown(&world.model.request(3).await);
    assert_eq!(last[3..], ["user: first", "assistant: steered", "user: last"], "{last:?}");
}

#[tokio::test]
async fn a_turn_that_is_stopped_in_mid_stream_ends_cancelled_and_the_next_one_works() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    world.model.will(vec![Step::Text("endless".to_owned()), Step::Hang]);
    pi.begin(JobSpec::Turn { prompt: Prompt::text("go") }).await;
    pi.says("endless").await;
    pi.agent.interrupt().await;
    let done = pi.done().await;
    assert_eq!(done.ending.to_string(), "cancelled");
    assert_eq!(done.messages().last().unwrap().parts[0].text, "endless", "what had arrived is kept");

    // Also before the model is asked, which it then may be or not.
    world.model.will(vec![Step::Hang]);
    pi.begin(JobSpec::Turn { prompt: Prompt::text("again") }).await;
    pi.agent.interrupt().await;
    assert_eq!(pi.done().await.ending.to_string(), "cancelled");

    world.model.forget();

    // A shell of its own process group is stopped as well.
    pi.begin(JobSpec::Shell { line: "sleep 600".to_owned(), is_private: false }).await;
    pi.agent.interrupt().await;
    assert_eq!(pi.done().await.ending.to_string(), "cancelled");

    world.model.will(say(&["here"]));
    assert_eq!(pi.prompt("still there?").await.ending.to_string(), "done");
}

const EXTENSION: &str = r#"
export default function (pi) {
    // Not awaited: pi reads no answer before all of these handlers have ended.
    pi.on("session_start", async (_event, ctx) => {
        ctx.ui.confirm("Early", "Is anybody there?").then((sure) => ctx.ui.notify(`early: ${sure}`));
    });
    pi.registerCommand("ask", { description: "asks", handler: async (_args, ctx) => {
        const sure = await ctx.ui.confirm("Sure?", "It cannot be undone.");
        const which = await ctx.ui.select("Which?", ["a", "b"]);
        const name = await ctx.ui.input("Name?", "a word", { timeout: 5000 });
        const text = await ctx.ui.editor("Text?", "prefilled");
        ctx.ui.notify(JSON.stringify([sure, which ?? null, name ?? null, text ?? null]), "warning");
    }});
    pi.registerCommand("fail", { description: "fails", handler: async () => { throw new Error("broken"); } });
    pi.on("tool_call", async (_event, ctx) => {
        const allowed = await ctx.ui.confirm("Allow?", "A tool wants to run.");
        return allowed ? undefined : { block: true, reason: "not allowed" };
    });
}
"#;

#[tokio::test]
async fn an_extension_asks_and_its_command_is_a_turn_without_a_model() {
    let mut world = World::new().await;
    world.extend(EXTENSION);
    let mut pi = world.pi().await;
    assert_eq!(
        line_of(&pi.next_of_agent().await),
        "note warning: an extension asked while nothing was to be done: Early\nIs anybody there?"
    );
    pi.until(|notice| line_of(notice) == "note info: early: false").await;

    pi.begin(JobSpec::Turn { prompt: Prompt::text("/ask") }).await;
    let mut questions = Vec::new();
    for answer in [json!(true), json!("b"), json!("x"), json!("y")] {
        let (ask, question, timeout_ms) = pi.asks().await;
        questions.push(json!([question, timeout_ms]).to_string());
        pi.agent.answer(AskAnswer::open(ask, Ok(answer))).await;
    }
    insta::assert_snapshot!(questions.join("\n"), @r#"
    [{"prompt":"Sure?\nIt cannot be undone.","schema":{"type":"boolean"}},60000]
    [{"prompt":"Which?","schema":{"enum":["a","b"],"type":"string"}},60000]
    [{"prompt":"Name?\na word","schema":{"type":"string"}},5000]
    [{"prompt":"Text?","schema":{"default":"prefilled","type":"string"}},60000]
    "#);
    let done = pi.done().await;
    assert_eq!(done.told(), "note warning: [true,\"b\",\"x\",\"y\"]\ndone");

    pi.begin(JobSpec::Turn { prompt: Prompt::text("/ask") }).await;
    for _ in 0..4 {
        let (ask, ..) = pi.asks().await;
        pi.agent.answer(AskAnswer::open(ask, Err(Error::TimedOut { limit_ms: 1 }))).await;
    }
    assert_eq!(pi.done().await.told(), "note warning: [false,null,null,null]\ndone");

    let failed = pi.prompt("/fail").await;
    assert!(failed.told().contains("failed at command: broken"), "{failed:?}");
    assert_eq!(world.model.asked(), 0);

    // A tool waits for the answer; where the job is stopped instead, the question is taken back.
    world.model.will(call("c1", "bash", &json!({ "command": "echo ran" })));
    world.model.will(say(&["it ran"]));
    pi.begin(JobSpec::Turn { prompt: Prompt::text("run it") }).await;
    let (ask, ..) = pi.asks().await;
    pi.agent.answer(AskAnswer::open(ask, Ok(json!(true)))).await;
    let done = pi.done().await;
    assert_eq!(done.messages()[0].parts[0].text, "ran\n");

    world.model.will(call("c2", "bash", &json!({ "command": "echo ran" })));
    pi.begin(JobSpec::Turn { prompt: Prompt::text("again") }).await;
    pi.asks().await;
    pi.agent.interrupt().await;
    let done = pi.done().await;
    assert_eq!(done.ending.to_string(), "cancelled");
    world.model.will(say(&["here"]));
    assert_eq!(pi.prompt("still there?").await.ending.to_string(), "done");
}

#[tokio::test]
async fn it_takes_settings_and_tells_of_itself_without_secrets() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    pi.next_of_agent().await;
    let model =
        |id: &str| JobSpec::Setting(Setting::Model { provider: "local".to_owned(), id: id.to_owned() });
    let settings = [
        model("n"),
        JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::High }),
        JobSpec::Setting(Setting::NextThinking),
        JobSpec::Setting(Setting::NextModel { is_backward: false }),
        JobSpec::Setting(Setting::NextModel { is_backward: true }),
        JobSpec::Setting(Setting::NextModel { is_backward: true }),
        JobSpec::Setting(Setting::AutoCompaction { enabled: false }),
        JobSpec::Setting(Setting::AutoRetry { enabled: false }),
        model("unknown"),
        JobSpec::Shell { line: "true".to_owned(), is_private: true },
    ];
    let mut told = String::new();
    for work in settings {
        let done = pi.work(work.clone()).await;
        let value = match &done.ending {
            WorkEnding::Done { value, .. } => value.clone(),
            WorkEnding::Failed { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Value::Null,
        };
        assert!(!format!("{done:?}").contains("hidden"), "{done:?}");
        let value = match value.get("model").unwrap_or(&value).get("id") {
            Some(id) => format!("{id} {}", value["thinkingLevel"]),
            None => value.to_string(),
        };
        told += &format!("{work}\n  {}\n  {value}\n", done.told().replace('\n', "\n  "));
    }
    insta::assert_snapshot!(told, @r#"
    model local/n
      state local/m, thinking medium
      state local/n, thinking medium
      done
      "n" null
    thinking high
      state local/n, thinking high
      done
      null
    next thinking level
      state local/n, thinking off
      done
      {"level":"off"}
    next model
      state local/o, thinking off
      done
      "o" "off"
    previous model
      state local/n, thinking off
      done
      "n" "off"
    previous model
      state local/m, thinking off
      done
      "m" "off"
    automatic compaction off
      state local/m, thinking off
      done
      null
    automatic retry off
      
      done
      null
    model local/unknown
      
      failed: Model not found: local/unknown
      null
    $ true
      
      failed: pi 0.73.1 cannot run a command without telling its model of it; run it in a shell
      null
    "#);

    for question in
        [AgentQuestion::Models, AgentQuestion::Commands, AgentQuestion::State, AgentQuestion::Statistics]
    {
        let answer = pi.agent.tell(question).await.unwrap();
        assert!(answer.is_object() && !answer.to_string().contains("hidden"), "{question:?}: {answer}");
    }
    let models = pi.agent.tell(AgentQuestion::Models).await.unwrap();
    assert_eq!(models["models"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_it_shortens_keeps_the_last_entries() {
    let world = World::new().await;
    let said: Vec<Message> = (0..4)
        .flat_map(|number| {
            [Prompt::text(format!("question {number}")).message(), answer(&format!("answer {number}"))]
        })
        .collect();
    let mut pi = world.pi_with(conversation(&said)).await.unwrap();
    world.model.will([vec![Step::Think("hm")], say(&["new answer"])].concat());
    pi.prompt("new question").await;
    world.model.will(say(&["a summary"]));
    world.model.will(say(&["of a turn's beginning"]));
    let done = pi.work(JobSpec::Compaction { instructions: Some("briefly".to_owned()) }).await;
    insta::assert_snapshot!(done.told(), @"
    note compacts (manual)
    compacted, 2 kept: a summary

    ---

    **Turn Context (split turn):**

    of a turn's beginning
    state local/m, thinking off
    done
    ");
    assert!(world.model.request(2).await.to_string().contains("briefly"));
    world.model.will(say(&["go on"]));
    pi.prompt("and now?").await;
    insta::assert_snapshot!(shown(&world.model.request(world.model.asked()).await).join("\n"), @"
    user: The conversation history before this point was compacted into the following summary:

    <summary>
    a summary

    ---

    **Turn Context (split turn):**

    of a turn's beginning
    </summary>
    assistant: new answer
    user: and now?
    ");
}

fn answer(text: &str) -> Message {
    let part = mainstay_model::Part::text(mainstay_model::PartRole::Assistant, text);
    Message { parts: vec![part], ..Message::default() }
}

#[tokio::test]
async fn a_provider_that_fails_is_asked_again_and_its_last_word_is_the_turns() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    pi.next_of_agent().await;

    world.model.will(vec![Step::Refuse(429, "slow down")]);
    world.model.will(say(&["at last"]));
    insta::assert_snapshot!(pi.prompt("limited").await.told(), @r#"
    message user: limited []
    message assistant:  ["m", "error"] (0 tokens in, 0 out)
    note 429 slow down; tries again in 10 ms (1 of 2)
    said 2.0 Assistant @0 "at last"
    message assistant: at last ["m", "stop"] (90 tokens in, 10 out)
    state local/m, thinking off, 100 tokens of context
    note answered at try 1
    done
    "#);

    world.model.will(vec![Step::Text("cut".to_owned()), Step::Close]);
    world.model.will(say(&["whole"]));
    let done = pi.prompt("truncated").await;
    assert_eq!((done.ending.to_string(), done.notes().len()), ("done".to_owned(), 2), "{done:?}");

    world.model.will(vec![Step::Refuse(400, "no such thing")]);
    let done = pi.prompt("refused").await;
    insta::assert_snapshot!(done.ending, @"failed: 400 no such thing");
    assert!(done.notes().is_empty());

    for _ in 0..3 {
        world.model.will(vec![Step::Refuse(503, "away")]);
    }
    let done = pi.prompt("away").await;
    insta::assert_snapshot!(done.notes().join("\n"), @"
    503 away; tries again in 10 ms (1 of 2)
    503 away; tries again in 20 ms (2 of 2)
    gave up after try 2: 503 away
    ");
    insta::assert_snapshot!(done.ending, @"failed: 503 away");

    world.model.will(vec![Step::Text("too much".to_owned()), Step::Finish("length", 100)]);
    assert_eq!(pi.prompt("much").await.ending.to_string(), "cut short: as long as it may be");
}

#[tokio::test]
async fn a_turn_that_is_stopped_before_the_provider_is_asked_again_is_cancelled() {
    let world = World::new().await;
    let slow = json!({ "retry": { "baseDelayMs": 600_000 } });
    std::fs::write(world.folder.path().join("agent/settings.json"), slow.to_string()).unwrap();
    let mut pi = world.pi().await;
    world.model.will(vec![Step::Refuse(500, "broken")]);
    pi.begin(JobSpec::Turn { prompt: Prompt::text("go") }).await;
    pi.until(|notice| line_of(notice).contains("tries again")).await;
    pi.agent.interrupt().await;
    assert_eq!(pi.done().await.ending.to_string(), "cancelled");
}

#[tokio::test]
async fn a_model_that_says_nothing_ends_its_turn_and_not_pi() {
    let mut world = World::new().await;
    world.settings.silence = Some(Duration::from_millis(1500));
    let mut pi = world.pi().await;
    world.model.will(vec![Step::Hang]);
    assert_eq!(pi.prompt("hello?").await.ending.to_string(), "failed: the model said nothing for 1500 ms");

    // A tool may take its time, and so may people.
    world.model.will(call("c1", "bash", &json!({ "command": "sleep 2" })));
    world.model.will(say(&["slept"]));
    assert_eq!(pi.prompt("sleep").await.ending.to_string(), "done");

    // Nothing stops a compaction but the end of pi.
    world.model.will(vec![Step::Hang]);
    world.model.will(vec![Step::Hang]);
    let done = pi.work(JobSpec::Compaction { instructions: None }).await;
    assert_eq!(done.ending.to_string(), "failed: the model said nothing for 1500 ms");
    assert_eq!(pi.exits().await, WorkerExit::Signal(9));
}

#[tokio::test]
async fn a_pi_that_was_killed_is_heard_of_and_the_next_one_goes_on_from_what_was_said() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    world
        .model
        .will([vec![Step::Think("hm")], call("c1", "bash", &json!({ "command": "echo found" }))].concat());
    world.model.will(say(&["It is there."]));
    let mut said: Vec<Message> = pi.prompt("look").await.messages().into_iter().cloned().collect();
    pi.work(JobSpec::Setting(Setting::Model { provider: "local".to_owned(), id: "n".to_owned() })).await;
    let done = pi.work(JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::Low })).await;
    let Some(AgentNotice::State(state)) =
        done.said.iter().rfind(|notice| matches!(notice, AgentNotice::State(_))).cloned()
    else {
        panic!("{done:?}")
    };
    said.extend(
        pi.work(JobSpec::Shell { line: "echo by hand".to_owned(), is_private: false })
            .await
            .messages()
            .into_iter()
            .cloned(),
    );
    world.model.will(vec![Step::Text("half".to_owned()), Step::Hang]);
    pi.begin(JobSpec::Turn { prompt: Prompt::text("more") }).await;
    pi.says("half").await;
    support::kill_outright(pi.info().pid.unwrap());
    assert_eq!(pi.exits().await, WorkerExit::Signal(9));

    let asked = world.model.asked();
    let state = mainstay_model::AgentState { context_tokens: Some(123), ..state };
    let resumed = Conversation { state: Some(state), ..conversation(&said) };
    let mut pi = world.pi_with(resumed).await.unwrap();
    assert_eq!(line_of(&pi.next_of_agent().await), "state local/n, thinking low, 123 tokens of context");
    assert_eq!(pi.agent.tell(AgentQuestion::State).await.unwrap()["sessionName"], "a session");
    let modes = [world.session_folder(), world.session_folder().join("session.jsonl")]
        .map(|path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o700, 0o600]);
    world.model.will(say(&["I remember."]));
    assert_eq!(pi.prompt("what was there?").await.ending.to_string(), "done");
    insta::assert_snapshot!(shown(&world.model.request(asked + 1).await).join("\n"), @"
    user: look
    assistant: hm
    tool: found

    assistant: It is there.
    user: Ran `echo by hand`
    ```
    by hand

    ```
    user: what was there?
    ");
}

#[tokio::test]
async fn what_its_tools_started_ends_with_it() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    let pipe = world.folder.path().join("pid");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let command = format!("echo $$ > {}; exec sleep 600", pipe.display());
    pi.begin(JobSpec::Shell { line: command, is_private: false }).await;
    let told = tokio::task::spawn_blocking(move || std::fs::read_to_string(pipe).unwrap());
    let shell: u32 = told.await.unwrap().trim().parse().unwrap();
    pi.agent.kill();
    assert_eq!(pi.exits().await, WorkerExit::Signal(9));
    let is_there = std::fs::read_to_string(format!("/proc/{shell}/cmdline")).unwrap_or_default();
    assert!(!is_there.contains("sleep"), "{is_there}");

    // What a daemon that was lost has left ends before the session's next pi begins.
    let mark = format!("{}#earlier", world.session_folder().display());
    let mut left =
        std::process::Command::new("sleep").arg("600").env("MAINSTAY_RUNNER", mark).spawn().unwrap();
    let _pi = world.pi().await;
    assert_eq!(left.wait().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_pi_that_does_not_come_up_says_why() {
    let mut world = World::new().await;
    world.settings.model = Some("unknown".to_owned());
    world.settings.provider = Some("nobody".to_owned());
    let Err(Error::KernelUnavailable { reason }) = world.pi_with(conversation(&[])).await.map(drop) else {
        panic!("another start would say the same")
    };
    insta::assert_snapshot!(reason, @r#"pi ended with exit code 1: Error: Unknown provider "nobody". Use --list-models to see available providers/models; `[pi]` in Mainstay's `config.toml` says how it is started"#);
    world.settings.search.configured = Some("/nonexistent/pi".into());
    let refused = world.pi_with(conversation(&[])).await.map(drop).unwrap_err();
    insta::assert_snapshot!(refused, @"the kernel cannot be started: the configured pi /nonexistent/pi is not there; correct `path` in `[pi]`, or remove it to have pi found");
}

#[tokio::test]
async fn a_pi_that_was_ended_from_outside_or_said_nothing_may_be_started_again() {
    let mut world = World::new().await;
    for end in ["echo 'too much memory' >&2; kill -9 $$", "echo stopped >&2; exit 143", "exit 1"] {
        world.stand_in(end);
        let failed = world.pi_with(conversation(&[])).await.map(drop).unwrap_err();
        assert!(matches!(failed, Error::WorkerFailed { .. }), "{end}: {failed}");
    }
}

#[tokio::test]
async fn what_pi_prints_beside_its_protocol_is_passed_over() {
    let mut world = World::new().await;
    let real = world.settings.search.configured.clone().unwrap();
    let wrapper = world.folder.path().join("pi");
    let script = format!(
        "#!/bin/sh\nprintf 'not json\\n\\377\\376\\n[]\\n{{\"type\":5}}\\n'\nhead -c 70000000 /dev/zero; echo\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(&wrapper, script).unwrap();
    std::process::Command::new("chmod").args(["+x", wrapper.to_str().unwrap()]).status().unwrap();
    world.settings.search.configured = Some(wrapper);
    let mut pi = world.pi().await;
    world.model.will(say(&["hello"]));
    let done = pi.prompt("hi").await;
    assert_eq!(done.ending.to_string(), "done");
    assert!(matches!(done.said.first(), Some(AgentNotice::State(_))));
}

#[tokio::test]
async fn a_session_that_does_not_listen_holds_pi_up_and_nothing_else() {
    let world = World::new().await;
    let mut pi = world.pi().await;
    let pieces: Vec<String> = (0..2000).map(|number| format!("{number} ")).collect();
    world.model.will(say(&pieces.iter().map(String::as_str).collect::<Vec<_>>()));
    pi.begin(JobSpec::Turn { prompt: Prompt::text("count") }).await;
    world.model.request(1).await;
    // Larger than what a pipe holds; nobody has heard a word yet.
    let long = "x".repeat(1024 * 1024);
    let steered = pi.agent.clone();
    let steering =
        tokio::spawn(async move { steered.steer(queued(&long, Delivery::FollowUp), Seq(1)).await });
    world.model.will(say(&["heard"]));
    let done = pi.done().await;
    steering.await.unwrap();
    assert_eq!(done.ending.to_string(), "done");
    let counted: String = done
        .said
        .iter()
        .filter_map(|notice| match notice {
            AgentNotice::Said(delta) if delta.message == 1 => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(counted, pieces.concat());
}

/// A daemon that is gone: nothing listens on its port.
fn nowhere(world: &World) -> LiveSessions {
    let token_file = world.folder.path().join("token");
    std::fs::write(&token_file, "secret").unwrap();
    let daemon_file = world.folder.path().join("daemon.json");
    std::fs::write(&daemon_file, r#"{"port": 9}"#).unwrap();
    LiveSessions { daemon_file, token_file }
}

#[tokio::test]
async fn where_the_daemons_sessions_are_away_pi_says_so_and_works_without_them() {
    let mut world = World::new().await;
    world.settings.live_sessions = Some(nowhere(&world));
    world.model.will(say(&["Hello."]));
    let mut pi = world.pi().await;
    let done = pi.prompt("hello").await;
    assert_eq!(done.ending.name(), "done");
    let notes = done.notes();
    assert_eq!(
        notes
            .iter()
            .filter(|note| note.contains("Live sessions are not there") && note.contains("`mainstay -d`"))
            .count(),
        1,
        "{notes:?}"
    );
    assert!(!world.model.request(1).await["tools"].to_string().contains("mainstay_"));
}

#[tokio::test]
async fn an_agent_of_another_principal_is_not_given_the_local_ones_token() {
    let mut world = World::new().await;
    world.settings.live_sessions = Some(nowhere(&world));
    for (owner, told) in [("local", "yes\n"), ("ci", "no\n")] {
        world.owner = Principal::new(owner).unwrap();
        let command = "if [ $MAINSTAY_TOKEN_FILE ]; then echo yes; else echo no; fi";
        world.model.will(call("c1", "bash", &json!({ "command": command })));
        world.model.will(say(&["So it is."]));
        world.pi().await.prompt("look").await;
        let request = world.model.request(world.model.asked()).await;
        assert_eq!(shown(&request).last().unwrap(), &format!("tool: {told}"), "{owner}");
    }
}

#[tokio::test]
async fn what_pi_says_while_it_starts_is_known_before_it_is_ready() {
    let mut world = World::new().await;
    world.stand_in("[ \"$1\" = --version ] && exit; echo 'Log in first.' >&2; exec sleep 600");
    let spec = world.spec(conversation(&[]));
    let observer = mainstay_runner::StartObserver::default();
    let said = observer.last_lines.clone();
    let factory = PiAgents::new(world.settings.clone());
    let start = tokio::spawn(async move { factory.start(spec, observer).await.map(drop) });
    let known = async {
        while said.text().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, known).await.expect("it says something");
    assert_eq!(said.text().as_deref(), Some("Log in first."));
    assert!(!start.is_finished(), "it hangs");
    start.abort();
}
