//! Acknowledgements: a runner learns which of its notices are durable, and so a tool acts only once its call is.

use mainstay_model::{AgentNotice, JobSpec, Message, NoticeNumber, Part, PartRole, Prompt, SessionCommand};
use serde_json::json;

use crate::support::{Client, Daemon, Running, breathe, command, next_id, quick};
use mainstay_test_support::scripted_agent::Script;

/// Gives the agent a turn; comes back once the agent has it.
async fn working(talk: &Client, script: &mut Script) -> Running {
    let turn = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("tidy up") });
    let running = talk.send(command(next_id(), mainstay_model::Admission::Queue, turn));
    script.start().await;
    script.work().await;
    running
}

/// The agent's model calls a tool; gives the number of the notice that says so.
async fn call_a_tool(script: &Script) -> NoticeNumber {
    let parts = vec![Part::tool_call("c1", "remove", &json!({ "path": "a" }))];
    script.tell(AgentNotice::Message(Message { parts, ..Message::default() })).await;
    script.last_notice()
}

#[tokio::test]
async fn a_tool_may_act_once_its_call_is_stored_and_not_before() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let _running = working(&talk, &mut script).await;
    daemon.store.hold(true);
    let call = call_a_tool(&script).await;
    breathe().await;
    assert!(script.acknowledged() < call, "nobody knows yet that it is durable");
    daemon.store.hold(false);
    script.until_acknowledged(call).await;
    assert_eq!(talk.count("messageAdded").await, 1);
}

#[tokio::test]
async fn what_is_held_back_is_acknowledged_with_what_it_is_joined_with() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = working(&talk, &mut script).await;
    script.stream("All ").await;
    script.stream("done.").await;
    let streamed = script.last_notice();
    script.until_acknowledged(streamed).await;
    assert_ne!(talk.count("messageStreamed").await, 0);
    script.say(PartRole::Assistant, "All done.").await;
    script.done().await;
    assert!(running.await.unwrap().is_ok());
    script.until_acknowledged(script.last_notice()).await;
    assert_eq!(script.last_notice(), NoticeNumber(4), "each has the next number");
}

#[tokio::test]
async fn what_could_not_be_stored_is_never_acknowledged() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = working(&talk, &mut script).await;
    script.until_acknowledged(script.last_notice()).await;
    daemon.store.refuse_after(0);
    let call = call_a_tool(&script).await;
    assert!(running.await.unwrap().is_err());
    assert!(script.acknowledged() < call);
}

#[tokio::test]
async fn the_numbers_of_a_new_runner_begin_anew() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    for _ in 0..2 {
        let running = working(&talk, &mut script).await;
        script.say(PartRole::Assistant, "Here.").await;
        script.done().await;
        assert!(running.await.unwrap().is_ok());
        script.until_acknowledged(NoticeNumber(2)).await;
        assert_eq!(script.acknowledged(), NoticeNumber(2));
        assert!(talk.submit(SessionCommand::Stop).await.is_ok());
    }
}
