//! pi's lines and the engine's wishes, and what follows of them, in one script.

use std::time::Duration;

use mainstay_model::agent::{AgentState, Model};
use mainstay_model::{
    AgentNotice, JobId, JobSpec, Prompt, QueuedPrompt, RunnerNotice, Setting, ThinkingLevel,
};
use mainstay_runner::AgentQuestion;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::pi::{fuzz_invariants, rpc};

const IDLE: &str = r#""model":{"provider":"p","id":"m","headers":{"x":"secret"}},"thinkingLevel":"off","isStreaming":false,"isCompacting":false"#;

/// A pi that is played by hand.
pub(super) struct Play {
    pub(super) translation: Translation,
    pub(super) is_bounded: bool,
    pub(super) now: Duration,
    pub(super) told: String,
}

impl Play {
    /// One that is just starting.
    fn starting(wanted: Option<AgentState>) -> Self {
        let timeouts = Timeouts {
            silence: Some(Duration::from_secs(10)),
            dialog_ms: 60_000,
            grace: Duration::from_secs(2),
        };
        let mut play = Self {
            translation: Translation::new(timeouts, wanted),
            is_bounded: false,
            now: Duration::ZERO,
            told: String::new(),
        };
        play.take();
        play
    }

    /// One that is ready, and whose first words are not told.
    pub(super) fn ready() -> Self {
        let mut play = Self::starting(None);
        play.reply(IDLE).reply(IDLE);
        play.told.clear();
        play
    }

    pub(super) fn take(&mut self) -> &mut Self {
        for out in self.translation.take() {
            let line = match out {
                Output::Tell(RunnerNotice::Agent(AgentNotice::Said(delta))) => {
                    format!(
                        "said {}.{} @{} {:?} {:?}",
                        delta.message, delta.part, delta.offset, delta.text, delta.tool
                    )
                }
                Output::Tell(RunnerNotice::Agent(AgentNotice::Noted(note))) => format!("note {note}"),
                Output::Tell(RunnerNotice::Agent(AgentNotice::State(state))) => format!("state {state}"),
                Output::Tell(RunnerNotice::Agent(AgentNotice::Message(message))) => {
                    format!("message {message}")
                }
                Output::Tell(RunnerNotice::Agent(AgentNotice::Ended { ending, .. })) => {
                    format!("ended {ending}")
                }
                Output::Send(line) => format!("→ {}", line.trim()),
                other => format!("{other:?}"),
            };
            self.told += &format!("{line}\n");
        }
        self
    }

    pub(super) fn hear(&mut self, line: &str) -> &mut Self {
        self.translation.hear(rpc::read(line.as_bytes()).unwrap(), self.now);
        self.take()
    }

    /// pi answers what it was told last.
    fn reply(&mut self, data: &str) -> &mut Self {
        let id = self.translation.last;
        self.hear(&format!(
            r#"{{"type":"response","id":"{id}","command":"c","success":true,"data":{{{data}}}}}"#
        ))
    }

    fn refuse(&mut self, error: &str) -> &mut Self {
        let id = self.translation.last;
        self.hear(&format!(
            r#"{{"type":"response","id":"{id}","command":"c","success":false,"error":"{error}"}}"#
        ))
    }

    fn work(&mut self, work: JobSpec) -> &mut Self {
        self.translation.work(JobId::from_uuid(Uuid::from_u128(1)), work, self.is_bounded, self.now);
        self.take()
    }

    /// A turn that is accepted, and under way.
    pub(super) fn turn(&mut self) -> &mut Self {
        self.work(JobSpec::Turn { prompt: Prompt::text("go") }).reply("").hear(r#"{"type":"agent_start"}"#);
        self.reply(r#""isStreaming":true"#)
    }

    fn ends(&mut self, reason: &str) -> &mut Self {
        let message =
            json!({ "role": "assistant", "stopReason": reason, "errorMessage": "it broke", "content": [] });
        self.hear(&json!({ "type": "message_end", "message": message }).to_string());
        self.hear(&json!({ "type": "agent_end", "messages": [message] }).to_string())
    }

    fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self.translation.on_time(self.now);
        self.take()
    }

    fn told(&mut self) -> String {
        std::mem::take(&mut self.told)
    }
}

#[test]
fn it_goes_on_as_it_did_before_one_setting_after_another() {
    let model = Model {
        provider: "p".to_owned(),
        id: "other".to_owned(),
        name: None,
        context_window: None,
        about: Value::Null,
    };
    let wanted = AgentState { model: Some(model), thinking: ThinkingLevel::High, ..AgentState::default() };
    let mut play = Play::starting(Some(wanted));
    play.reply(IDLE).refuse("Model not found: p/other").reply("").reply(IDLE);
    insta::assert_snapshot!(play.told(), @r#"
    → {"id":"1","type":"get_state"}
    → {"id":"2","type":"set_model","provider":"p","modelId":"other"}
    note warning: pi could not go on with the model p/other: Model not found: p/other
    → {"id":"3","type":"set_thinking_level","level":"high"}
    → {"id":"4","type":"get_state"}
    state p/m, thinking off
    Ready
    "#);
    let as_it_is = AgentState { model: play.translation.state.model.clone(), ..AgentState::default() };
    assert!(!format!("{as_it_is:?}").contains("secret"));
    let mut play = Play::starting(Some(as_it_is));
    play.reply(IDLE).reply(IDLE);
    insta::assert_snapshot!(play.told(), @r#"
    → {"id":"1","type":"get_state"}
    → {"id":"2","type":"get_state"}
    state p/m, thinking off
    Ready
    "#);
}

#[test]
fn a_turn_ends_when_nothing_is_under_way_any_more() {
    let mut play = Play::ready();
    play.turn().ends("error");
    play.hear(
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"it broke"}"#,
    );
    // The answer to the question at the run's end comes behind that.
    play.reply(IDLE);
    play.hear(r#"{"type":"agent_start"}"#).ends("stop");
    play.hear(r#"{"type":"compaction_start","reason":"threshold"}"#);
    play.reply(r#""isCompacting":true"#);
    play.hear(r#"{"type":"compaction_end","reason":"threshold","result":{"summary":"s","firstKeptEntryId":"x"},"aborted":false,"willRetry":false}"#);
    play.reply(IDLE);
    insta::assert_snapshot!(play.told(), @r#"
    → {"id":"3","type":"prompt","message":"go","streamingBehavior":"followUp"}
    → {"id":"4","type":"get_state"}
    state no model, thinking off
    message assistant: 
    → {"id":"5","type":"get_state"}
    note it broke; tries again in 2000 ms (1 of 3)
    state p/m, thinking off
    message assistant: 
    → {"id":"6","type":"get_state"}
    note compacts (threshold)
    state no model, thinking off
    Compacted { summary: "s", first_kept: "x", metadata: [("reason", String("threshold"))] }
    → {"id":"7","type":"get_state"}
    state p/m, thinking off
    ended done
    "#);
}

#[test]
fn a_context_that_was_too_long_is_shortened_and_the_turn_goes_on() {
    let mut play = Play::ready();
    play.turn().ends("error");
    play.hear(r#"{"type":"compaction_start","reason":"overflow"}"#).reply(r#""isCompacting":true"#);
    play.hear(r#"{"type":"compaction_end","reason":"overflow","result":{"summary":"s","firstKeptEntryId":"x"},"aborted":false,"willRetry":true}"#);
    assert!(!play.told().contains("ended"));
    play.hear(r#"{"type":"agent_start"}"#).ends("stop").reply(IDLE);
    assert!(play.told().ends_with("ended done\n"));
}

#[test]
fn what_waits_when_the_context_was_shortened_is_heard_in_the_same_turn() {
    let mut play = Play::ready();
    play.turn().ends("stop");
    play.hear(r#"{"type":"compaction_start","reason":"threshold"}"#).reply(r#""isCompacting":true"#);
    play.hear(r#"{"type":"queue_update","steering":["more"],"followUp":[]}"#);
    play.hear(r#"{"type":"compaction_end","reason":"threshold","result":{"summary":"s","firstKeptEntryId":"x"},"aborted":false,"willRetry":false}"#);
    assert!(!play.told().contains("ended"));
    play.hear(r#"{"type":"agent_start"}"#).hear(r#"{"type":"queue_update","steering":[],"followUp":[]}"#);
    play.ends("stop").reply(IDLE);
    assert!(play.told().ends_with("ended done\n"));
}

#[test]
fn a_turn_that_pi_refuses_fails_as_pi_says() {
    let mut play = Play::ready();
    play.work(JobSpec::Turn { prompt: Prompt::text("go") }).refuse("No API key found for p");
    assert!(play.told().ends_with("ended failed: No API key found for p\n"));
}

#[test]
fn a_turn_that_is_stopped_before_it_runs_is_stopped_when_it_does() {
    let mut play = Play::ready();
    play.work(JobSpec::Turn { prompt: Prompt::text("go") });
    play.translation.interrupt();
    play.take().told.clear();
    play.hear(r#"{"type":"agent_start"}"#);
    assert_eq!(play.told(), "→ {\"id\":\"5\",\"type\":\"abort\"}\n");
}

#[test]
fn how_the_model_came_to_its_end_is_how_the_turn_did() {
    let ending = |reason: &str, is_interrupted: bool| {
        let mut play = Play::ready();
        play.turn();
        if is_interrupted {
            play.translation.interrupt();
        }
        play.ends(reason);
        // What was told last may be the abort, which is answered as well.
        play.reply(IDLE);
        play.told().lines().last().unwrap().to_owned()
    };
    let endings =
        ["stop", "length", "error", "aborted"].map(|reason| [ending(reason, false), ending(reason, true)]);
    insta::assert_debug_snapshot!(endings, @r#"
    [
        [
            "ended done",
            "ended done",
        ],
        [
            "ended cut short: as long as it may be",
            "ended cut short: as long as it may be",
        ],
        [
            "ended failed: it broke",
            "ended cancelled",
        ],
        [
            "ended cancelled",
            "ended cancelled",
        ],
    ]
    "#);
}

#[test]
fn pieces_say_where_they_begin_in_bytes() {
    let piece = |kind: &str, part: u32, delta: &str| {
        let event = json!({ "type": kind, "contentIndex": part, "delta": delta, "partial": { "content": [{}, { "id": "c", "name": "bash" }] } });
        json!({ "type": "message_update", "assistantMessageEvent": event, "message": {} }).to_string()
    };
    let mut play = Play::ready();
    play.turn().told.clear();
    play.hear(&piece("text_delta", 0, "é")).hear(&piece("text_delta", 0, "!")).hear(&piece(
        "text_delta",
        0,
        "",
    ));
    play.hear(&piece("toolcall_start", 1, "")).hear(&piece("toolcall_end", 1, ""));
    play.hear(&piece("thinking_delta", 2, "hm"));
    play.hear(
        r#"{"type":"message_end","message":{"role":"custom","content":"c","customType":"x","display":true}}"#,
    );
    play.hear(&piece("text_delta", 0, "new"));
    insta::assert_snapshot!(play.told(), @r#"
    said 0.0 @0 "é" None
    said 0.0 @2 "!" None
    said 0.1 @0 "" Some(ToolCall { call: "c", tool: "bash" })
    said 0.2 @0 "hm" None
    message user: c
    said 1.0 @0 "new" None
    "#);
}

#[test]
fn a_model_that_says_nothing_is_stopped_then_its_process_is() {
    let mut play = Play::ready();
    play.turn().told.clear();
    play.wait(9);
    assert_eq!(play.told(), "");
    play.wait(1).wait(1);
    insta::assert_snapshot!(play.told(), @r#"→ {"id":"5","type":"abort"}"#);
    play.wait(1);
    insta::assert_snapshot!(play.told(), @"
    ended failed: the model said nothing for 10000 ms
    Kill
    ");
    assert_eq!(play.translation.deadline(), None);
}

#[test]
fn a_model_that_is_stopped_for_its_silence_may_still_yield() {
    let mut play = Play::ready();
    play.turn().wait(10).ends("aborted").reply(IDLE);
    assert!(play.told().ends_with("ended failed: the model said nothing for 10000 ms\n"));
}

#[test]
fn nobody_waits_for_a_model_while_a_tool_a_person_or_a_pause_is_waited_for() {
    let deadline = |lines: &[&str]| {
        let mut play = Play::ready();
        play.turn();
        for line in lines {
            play.hear(line);
        }
        play.translation.deadline().map(|deadline| deadline.as_secs())
    };
    let tool = r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{}}"#;
    let end = r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","isError":false}"#;
    let dialog = r#"{"type":"extension_ui_request","id":"00000000-0000-0000-0000-000000000001","method":"confirm","title":"t"}"#;
    let retry = r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":60000}"#;
    assert_eq!(
        [deadline(&[]), deadline(&[tool]), deadline(&[tool, end]), deadline(&[dialog]), deadline(&[retry])],
        [Some(10), None, Some(10), None, Some(70)]
    );
}

#[test]
fn what_is_said_too_late_or_is_refused_is_told() {
    let mut play = Play::ready();
    play.translation.steer(QueuedPrompt { prompt: Prompt::text("/cmd"), hears: Delivery::Steer });
    play.take().refuse("Extension command cannot be queued");
    play.translation.ask(5, AgentQuestion::Models);
    play.take().reply(r#""models":[{"id":"m","apiKey":"secret","headers":{}}]"#);
    insta::assert_snapshot!(play.told(), @r#"
    → {"id":"3","type":"steer","message":"/cmd"}
    note error: Extension command cannot be queued
    → {"id":"4","type":"get_available_models"}
    Answered { question: 5, answer: Ok(Object {"models": Array [Object {"id": String("m")}]}) }
    "#);
}

#[test]
fn of_one_model_there_is_none_before() {
    let mut play = Play::ready();
    play.work(JobSpec::Setting(Setting::NextModel { is_backward: true }));
    play.reply(r#""models":[{"provider":"p","id":"m"}]"#);
    assert!(play.told().ends_with("ended done\n"));
}

/// What the engine may want, or pi answer.
fn any_wish() -> impl Strategy<Value = String> {
    let known = [
        "!turn",
        "!compact",
        "!shell",
        "!previous-model",
        "!steer",
        "!pause",
        "!interrupt",
        "!answer",
        "!cancel-ask",
        "!ask",
        "!wait",
        "={}",
        r#"={"isStreaming":true}"#,
        "~no",
    ];
    prop::sample::select(known.to_vec()).prop_map(str::to_owned)
}

/// A line that pi may say, in whatever order.
fn any_line() -> impl Strategy<Value = String> {
    let known = [
        r#"{"type":"agent_start"}"#,
        r#"{"type":"agent_end","messages":[{"role":"assistant","stopReason":"stop"}]}"#,
        r#"{"type":"agent_end","messages":[]}"#,
        r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"x"}],"stopReason":"error"}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":7,"delta":"d"}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_start","contentIndex":9}}"#,
        r#"{"type":"tool_execution_start","toolCallId":"c"}"#,
        r#"{"type":"tool_execution_end","toolCallId":"c"}"#,
        r#"{"type":"compaction_start"}"#,
        r#"{"type":"compaction_end","aborted":true}"#,
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":1,"delayMs":5}"#,
        r#"{"type":"auto_retry_end","success":false,"attempt":1}"#,
        r#"{"type":"extension_ui_request","id":"00000000-0000-0000-0000-000000000001","method":"input"}"#,
        r#"{"type":"extension_ui_request","id":"?","method":"select"}"#,
    ];
    let reply = (1..12_u64, any::<bool>()).prop_map(|(id, success)| {
        format!(r#"{{"type":"response","id":"{id}","success":{success},"data":{{"isStreaming":false}}}}"#)
    });
    prop_oneof![3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 2 => reply]
}

proptest! {
    #[test]
    fn whatever_pi_says_and_the_engine_wants_what_is_promised_holds(
        steps in prop::collection::vec(prop_oneof![3 => any_line(), 2 => any_wish()], 0..60),
    ) {
        fuzz_invariants::check(format!("={{}}\n={{}}\n!turn\n{}\n", steps.join("\n")).as_bytes());
    }
}
