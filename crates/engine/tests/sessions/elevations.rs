//! Who says how far a job is trusted.

use mainstay_log::EventLog;
use mainstay_model::command::{Answer, Elevate};
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::{
    Access, Admission, AskId, Command, Error, EventBody, JobSpec, Principal, Prompt, Rights, Seq,
    SessionCommand, TrustRefusal,
};
use serde_json::json;

use crate::support::{Client, Daemon, command, id, next_id, quick, until_it};

/// The ask of a session that is in the log, whoever was told of it.
async fn ask_in_the_log(daemon: &Daemon, session: &Client) -> Option<AskId> {
    let events = EventLog::events(&*daemon.store, session.id, Seq::ZERO, usize::MAX).await.unwrap();
    events.iter().find_map(|event| match &event.body {
        EventBody::AskRaised(ask) => Some(ask.ask),
        _ => None,
    })
}

#[tokio::test]
async fn who_reads_of_an_elevation_before_all_know_of_it_does_not_answer_it_either() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let work = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("go") });
    let grants = Some(Box::new(Grants::default().asking()));
    let _turn = talk.send(Command { grants, ..command(id("turn"), Admission::Queue, work) });
    script.work().await;
    let elevation = Elevation {
        level: TrustLevel::Trusted,
        kind: OperationKind::FS_WRITE,
        pattern: "/work/**".to_owned(),
        duration_ms: 1_000,
        reason: None,
        asker: None,
    };
    daemon.store.hold(true);
    let elevate = SessionCommand::Elevate(Elevate { target: id("turn"), elevation });
    let asking = talk.send(command(next_id(), Admission::Now, elevate));
    until_it(async || ask_in_the_log(&daemon, &talk).await.is_some()).await;
    let ask = ask_in_the_log(&daemon, &talk).await.unwrap();
    let everything = || vec!["*".parse().unwrap()];
    let rights = Rights::Some { see: everything(), drive: everything() };
    let bob = daemon.engine.attach(Access { principal: Principal::new("bob").unwrap(), rights }, "test");
    let answer = SessionCommand::Answer(Answer::new(ask, json!("once")));
    let answered = bob.begin(talk.id, Command::new(next_id(), bob.source(), answer)).await;
    let refused = Error::TrustRefused { refusal: TrustRefusal::NotAllRights };
    assert_eq!(answered.map(drop), Err(refused));
    daemon.store.hold(false);
    asking.await.unwrap().unwrap();
}
