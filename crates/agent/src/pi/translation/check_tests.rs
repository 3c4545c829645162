//! What pi's tools are about to do: asked about where a grant bounds the job, and held back while it pauses.

use mainstay_model::{AskId, Error, JobId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::tests::Play;

const CHECK: &str = r#"{"type":"extension_ui_request","id":"00000000-0000-0000-0000-000000000001","method":"input","title":"mainstay:operation","placeholder":"{\"kind\":\"fs.read\",\"target\":\"/project/a\"}"}"#;

#[test]
fn what_tools_are_about_to_do_is_asked_about_where_a_grant_bounds_the_job() {
    let mut play = Play::ready();
    play.is_bounded = true;
    play.turn();
    play.told.clear();
    play.hear(CHECK);
    let check = AskId::from_uuid(Uuid::from_u128(1));
    play.translation.answer(check, &Ok(Value::Null), play.now);
    play.hear(CHECK);
    let denied =
        Error::GrantDenied { operation: "fs.read".to_owned(), target: "/project/a".to_owned(), reason: None };
    play.translation.answer(check, &Err(denied), play.now);
    play.take().hear(CHECK).translation.interrupt();
    play.take();
    insta::assert_snapshot!(play.told, @r#"
    Tell(Checks { job: JobId(00000000-0000-0000-0000-000000000001), check: AskId(00000000-0000-0000-0000-000000000001), operation: AskedOperation { kind: OperationKind("fs.read"), target: "/project/a", is_recursive: false } })
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"granted"}
    Tell(Checks { job: JobId(00000000-0000-0000-0000-000000000001), check: AskId(00000000-0000-0000-0000-000000000001), operation: AskedOperation { kind: OperationKind("fs.read"), target: "/project/a", is_recursive: false } })
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"the operation `fs.read` on `/project/a` is not granted"}
    Tell(Checks { job: JobId(00000000-0000-0000-0000-000000000001), check: AskId(00000000-0000-0000-0000-000000000001), operation: AskedOperation { kind: OperationKind("fs.read"), target: "/project/a", is_recursive: false } })
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"the command was cancelled; nothing came of it"}
    → {"id":"5","type":"abort"}
    "#);
}

#[test]
fn what_tools_do_in_a_job_that_nothing_bounds_is_asked_nobody() {
    let mut play = Play::ready();
    play.turn();
    play.told.clear();
    play.hear(CHECK);
    insta::assert_snapshot!(play.told, @r#"→ {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"unbounded"}"#);
}

#[test]
fn tools_of_a_job_that_pauses_wait_until_somebody_has_said_how_it_is_to_go_on() {
    let mut play = Play::ready();
    play.turn();
    play.told.clear();
    let (job, ask) = (play.translation.job().unwrap(), AskId::from_uuid(Uuid::from_u128(7)));
    let pause = |play: &mut Play, answer: &Result<Value, Error>| {
        play.translation.pause(job, ask);
        play.hear(CHECK);
        assert_eq!(play.told, "", "it is held back");
        play.translation.answer(ask, answer, play.now);
        // What it decides before it has read the words is not done either.
        play.take().hear(CHECK);
        let told = std::mem::take(&mut play.told);
        play.hear(r#"{"type":"queue_update","steering":["not there"],"followUp":[]}"#);
        play.hear(r#"{"type":"queue_update","steering":[],"followUp":[]}"#).hear(CHECK);
        assert!(play.told.contains("unbounded"), "it has read them: {}", play.told);
        play.told.clear();
        told
    };
    let told = [Ok(json!("not there")), Ok(json!(" ")), Err(Error::Cancelled)]
        .map(|answer| pause(&mut play, &answer));
    insta::assert_snapshot!(told.join("\n"), @r#"
    → {"id":"5","type":"steer","message":"not there"}
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"you were to pause before this; read what the person says now, and do it only where it still fits"}
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"you were to pause before this; read what the person says now, and do it only where it still fits"}

    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"unbounded"}
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"unbounded"}

    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"the command was cancelled; nothing came of it"}
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"unbounded"}
    "#);
}

#[test]
fn tools_of_a_job_that_pauses_are_let_go_with_it_and_no_other_pauses() {
    let mut play = Play::ready();
    play.turn();
    let (other, ask) = (JobId::from_uuid(Uuid::from_u128(9)), AskId::from_uuid(Uuid::from_u128(7)));
    play.translation.pause(other, ask);
    play.told.clear();
    play.hear(CHECK);
    assert!(play.told.contains("unbounded"), "{}", play.told);
    play.translation.pause(play.translation.job().unwrap(), ask);
    play.hear(CHECK);
    play.told.clear();
    play.translation.interrupt();
    play.take();
    insta::assert_snapshot!(play.told, @r#"
    → {"id":"00000000-0000-0000-0000-000000000001","type":"extension_ui_response","value":"the command was cancelled; nothing came of it"}
    → {"id":"5","type":"abort"}
    "#);
}

#[test]
fn tools_go_on_where_pi_refuses_the_words_that_were_said_to_it() {
    let mut play = Play::ready();
    play.turn();
    let (job, ask) = (play.translation.job().unwrap(), AskId::from_uuid(Uuid::from_u128(7)));
    play.translation.pause(job, ask);
    play.translation.answer(ask, &Ok(json!("/review")), play.now);
    play.take();
    play.hear(
        r#"{"type":"response","id":"5","command":"steer","success":false,"error":"it cannot be queued"}"#,
    );
    assert!(play.told.contains("it cannot be queued"), "{}", play.told);
    play.told.clear();
    play.hear(CHECK);
    assert!(play.told.contains("unbounded"), "{}", play.told);
}
