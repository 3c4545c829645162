//! What a front end says to a kernel beside code: a job like another, whose outcome is stored.

use mainstay_model::{
    Admission, CommId, CommMessage, CommStep, CreateSession, Error, JobSpec, Outcome, Response,
    SessionCommand, SessionKind, WorkEnding, YieldReason,
};
use serde_json::{Value, json};

use crate::support::{Client, Daemon, command, create, next_id};

fn moved() -> SessionCommand {
    SessionCommand::Work(JobSpec::Comm(Box::new(CommMessage {
        comm: CommId::new("slider").unwrap(),
        step: CommStep::Say,
        data: json!({ "value": 7 }),
        metadata: Value::Null,
        buffers: Vec::new(),
    })))
}

async fn session_of_jupyter(daemon: &Daemon) -> Client {
    let create = CreateSession { kind: SessionKind::new("python3").unwrap(), ..create("widgets") };
    match daemon.local.create(next_id(), create).await.unwrap() {
        Outcome::Done { response: Response::Created { session } } => {
            let client = daemon.client(session);
            client.until("warmUpCompleted").await;
            client
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_front_end_says_is_answered_once_and_what_the_kernel_says_is_in_the_log() {
    let daemon = Daemon::start().await;
    let session = session_of_jupyter(&daemon).await;
    let before = session.now().await;
    let id = next_id();
    let say = || session.give(command(id.clone(), Admission::Queue, moved()));
    let first = say().await.unwrap();
    let Outcome::Done { response: Response::Worked(outcome) } = &first else { panic!("{first:?}") };
    assert_eq!(outcome.ending, WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null });
    let story = ["comm: say in slider, 11 bytes", "say of comm slider", "done"];
    assert_eq!(session.story_after(before).await, story);
    assert_eq!(say().await.unwrap(), first);
    assert_eq!(session.story_after(before).await, story, "sent again it is not said again");
}

#[tokio::test]
async fn an_fsharp_session_knows_of_no_comms() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let refused = session.submit(moved()).await.unwrap_err();
    assert!(matches!(refused, Error::NotOfKind { .. }), "{refused:?}");
}
