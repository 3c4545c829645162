//! Changed sources that are put into a worker that runs.

use mainstay_model::{Admission, Error, JobSpec, SessionCommand, SessionState};

use crate::rebuilds::session_of_project;
use crate::scripted::Build;
use crate::support::{CANCEL, Client, Daemon, command, next_id, quick};

/// Whether the session knows of the change.
async fn swap(daemon: &Daemon, session: &Client, file: &str) -> Result<bool, Error> {
    Ok(daemon.engine.swap_sources(session.id, vec![file.to_owned()]).await?.is_some())
}

#[tokio::test]
async fn what_a_worker_put_in_is_a_fact_of_the_session_also_while_code_runs() {
    let daemon = Daemon::start().await;
    let session = session_of_project(&daemon).await;
    let before = session.now().await;
    assert_eq!(swap(&daemon, &session, "/shop/Cart.fs").await, Ok(true));
    session.until("sourcesSwapped").await;
    let running = session.begin("wait").await;
    assert_eq!(swap(&daemon, &session, "/shop/Cart.fs").await, Ok(true));
    session.until_count("sourcesSwapped", 2).await;
    daemon.workers.let_go();
    running.await.unwrap().unwrap();
    assert_eq!(
        swap(&daemon, &session, "/elsewhere.py").await,
        Ok(false),
        "its kernel exchanges no such code"
    );
    let story = session.story_after(before).await;
    assert_eq!(story.iter().filter(|line| *line == "swapped: total").count(), 2, "{story:?}");
}

#[tokio::test]
async fn nothing_is_put_in_while_a_build_reads_the_sources_or_no_worker_is_there() {
    let daemon = Daemon::with(quick()).await;
    let session = session_of_project(&daemon).await;
    daemon.workers.next_builds([Build::Loops]);
    let build = SessionCommand::Work(JobSpec::Build);
    let running = session.send(command(next_id(), Admission::Now, build));
    session.until("outputProduced").await;
    assert_eq!(swap(&daemon, &session, "/shop/Cart.fs").await, Ok(false));
    session.submit(CANCEL).await.unwrap();
    running.await.unwrap().unwrap();
    session.submit(SessionCommand::Stop).await.unwrap();
    let refused = swap(&daemon, &session, "/shop/Cart.fs").await;
    assert!(
        matches!(&refused, Err(Error::NotOffered { state: SessionState::Uninitialized, .. })),
        "{refused:?}"
    );
    assert_eq!(session.count("sourcesSwapped").await, 0);
}
