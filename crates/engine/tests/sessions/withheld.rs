//! Code that is stored nowhere.

use mainstay_model::command;
use mainstay_model::outcome::OutputItem;
use mainstay_model::{
    Admission, Command, DivergenceKind, Error, EvalOutcome, EventBody, Outcome, Response, Seq, SessionCommand,
};

use crate::support::{CANCEL, Client, Daemon, command, ending, eval, evaluated, id, next_id, patient, quick};

fn withheld(code: &str) -> SessionCommand {
    SessionCommand::Eval(command::Eval {
        code: code.to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: true,
    })
}

async fn run(session: &Client, code: &str) -> EvalOutcome {
    evaluated(session.give(command(next_id(), Admission::Now, withheld(code))).await)
}

/// All that the log has of a session, and of an outcome.
async fn stored(daemon: &Daemon, session: &Client) -> String {
    let events = daemon.local.events(session.id, Seq::ZERO, usize::MAX).await.unwrap();
    serde_json::to_string(&events).unwrap()
}

#[tokio::test]
async fn who_asked_is_told_what_the_log_does_not_have() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let sent = || {
        command(
            id("mine"),
            Admission::Now,
            withheld("print secret\nerror secret too\nshow secret\npure secret"),
        )
    };
    let first = evaluated(session.give(sent()).await);
    let live = first.live.as_ref().unwrap();
    assert_eq!(live.result.value.as_deref(), Some("secret"));
    let printed: String = live
        .put_out
        .iter()
        .map(|put_out| match put_out {
            OutputItem::Printed(_, text) => text.as_str(),
            OutputItem::Displayed(display) => display.data.text(),
        })
        .collect();
    assert_eq!(printed, "secretsecret toosecret");
    assert!(first.withheld && first.value.is_none());
    assert!(!serde_json::to_string(&first).unwrap().contains("secret"));
    assert!(!format!("{first:?}").contains("secret"));

    let raised = run(&session, "raise").await;
    assert!(raised.live.unwrap().error.is_some());
    assert!(!stored(&daemon, &session).await.contains("secret"));
    assert!(!stored(&daemon, &session).await.contains("raise\""));

    let session = session.leave();
    let daemon = daemon.reopen(quick()).await;
    let session = daemon.client(session);
    let again = evaluated(session.give(sent()).await);
    assert_eq!(again, EvalOutcome { live: None, ..first });
    let other = command(id("mine"), Admission::Now, withheld("another secret"));
    assert_eq!(evaluated(session.give(other).await), again, "the code is in no fingerprint");
    let open = command(id("mine"), Admission::Now, eval("pure 1"));
    assert!(matches!(session.give(open).await, Err(Error::CommandConflict { .. })));
}

#[tokio::test]
async fn a_session_is_called_after_its_first_input_where_that_is_not_withheld() {
    let daemon = Daemon::start().await;
    let [one, other] = [daemon.session().await, daemon.session().await];
    let title = async |session: &Client| daemon.local.status(session.id).await.unwrap().session.title.clone();
    assert_eq!(title(&one).await, None);
    one.eval("pure 1\npure 2").await;
    one.eval("pure 3").await;
    assert_eq!(title(&one).await.as_deref(), Some("pure 1"));
    run(&other, "pure secret").await;
    other.eval("pure 3").await;
    assert_eq!(title(&other).await, None);
}

#[tokio::test]
async fn it_never_waits_and_never_asks() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let cannot = |what: &str| Error::Withheld { what: what.to_owned() };
    let running = session.begin("loop").await;
    let queued = session.give(command(next_id(), Admission::Queue, withheld("pure secret"))).await;
    assert_eq!(queued, Err(cannot("wait for its turn")));
    session.submit(CANCEL).await.unwrap();
    ending(running).await;
    let depends_on = vec![id("unknown")];
    let after = Command { depends_on, ..command(next_id(), Admission::Queue, withheld("pure secret")) };
    assert_eq!(session.give(after).await, Err(cannot("wait for its turn")));
    let asked = run(&session, "ask what is the secret").await;
    assert!(!asked.success(), "{asked:?}");
    session.submit(SessionCommand::Stop).await.unwrap();
    let at_rest = session.give(command(next_id(), Admission::Queue, withheld("pure secret"))).await;
    assert_eq!(at_rest, Err(cannot("wait for its turn")));
    assert!(!stored(&daemon, &session).await.contains("secret"));
}

#[tokio::test]
async fn a_rebuilt_session_and_its_forks_are_without_it_and_say_so() {
    let daemon = Daemon::with(quick()).await;
    let session = daemon.session().await;
    session.eval("define open").await;
    let hidden = run(&session, "define hidden").await;
    run(&session, "pure looked").await;
    session.eval("define later").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(session.eval("names").await.value.as_deref(), Some("open later"));
    let rebuilt = daemon.local.status(session.id).await.unwrap().session.rebuilt.clone().unwrap();
    let named: Vec<_> = rebuilt.diverged.iter().map(|one| (one.requested, one.kind.clone())).collect();
    assert_eq!(named, [(hidden.requested, DivergenceKind::Withheld)]);

    let entries = daemon.local.entries(session.id, 0, 100).await.unwrap();
    assert_eq!(entries.len(), 6, "its input and output are no entries");
    let fork =
        mainstay_model::ForkSession { from: session.id, entries: None, name: None, before_reset: false };
    let Ok(Outcome::Done { response: Response::Forked { session: forked, .. } }) =
        daemon.local.fork(next_id(), fork).await
    else {
        panic!("no fork")
    };
    let forked = daemon.client(forked);
    forked.until("warmUpCompleted").await;
    let events = daemon.local.events(forked.id, Seq::ZERO, 100).await.unwrap();
    let diverged = events.iter().find_map(|event| match &event.body {
        EventBody::WarmUpCompleted { diverged, .. } => Some(diverged.clone()),
        _ => None,
    });
    assert_eq!(diverged.unwrap()[0].kind, DivergenceKind::Withheld);
    assert_eq!(forked.eval("names").await.value.as_deref(), Some("open later"));
}
