//! Asks: raised by jobs and by commands, answered once, and never lost.

use mainstay_model::command;
use mainstay_model::{
    Admission, AskId, Command, CommandId, DivergenceKind, Error, EvalEnding, Limits, Outcome, Question,
    Response, Seq, SessionCommand, SessionState, WaitReason,
};
use serde_json::{Value, json};

use crate::support::{
    CANCEL, Client, Daemon, Running, cancel, command, ending, eval, evaluated, id, next_id, quick, until_it,
};

impl Client {
    /// The asks that wait in the session.
    async fn asks(&self) -> Vec<AskId> {
        let session = self.attached.status(self.id).await.unwrap().session;
        session.asks.iter().map(|pending| pending.ask.ask).collect()
    }

    /// The only ask that waits in it.
    async fn the_ask(&self) -> AskId {
        match self.asks().await.as_slice() {
            [ask] => *ask,
            others => panic!("{others:?}"),
        }
    }

    async fn waits_for_an_answer(&self) {
        until_it(async || self.state().await == SessionState::Waiting(WaitReason::Ask)).await;
    }

    async fn answer(&self, ask: AskId, value: impl Into<Value>) -> Result<Outcome, Error> {
        self.submit(SessionCommand::Answer(command::Answer::new(ask, value.into()))).await
    }

    /// Raises an ask; comes back once it is there.
    async fn raise(&self, name: &str, question: Question) -> Running {
        let before = self.count("askRaised").await;
        let asking = self.send(asks(name, question));
        self.until_count("askRaised", before + 1).await;
        until_it(async || !self.asks().await.is_empty()).await;
        asking
    }
}

fn asks(name: &str, question: Question) -> Command {
    command(id(name), Admission::Now, SessionCommand::Ask(question))
}

fn number() -> Question {
    Question { schema: json!({ "type": "integer", "minimum": 1 }), ..Question::text("How many?") }
}

fn answered(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done { response: Response::Answered { value, .. } } => value,
        other => panic!("{other:?}"),
    }
}

fn timed_out(limit_ms: u64) -> Outcome {
    Outcome::Failed { error: Error::TimedOut { limit_ms } }
}

#[tokio::test]
async fn a_job_waits_for_its_answer_and_goes_on_with_it() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let before = session.now().await;
    let running = session.begin("ask Name?").await;
    session.waits_for_an_answer().await;
    session.answer(session.the_ask().await, "Ada").await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Completed);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("\"Ada\""));
    let expected = ["eval ask Name?", "asks Name?", "answered \"Ada\"", "completed"];
    assert_eq!(session.story_after(before).await[..4], expected);
}

#[tokio::test]
async fn what_a_job_was_answered_is_answered_again_when_it_is_replayed() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let running = session.begin("ask Name?\nask Age?").await;
    for (number, answer) in [(1, "Ada"), (2, "36")] {
        session.until_count("askRaised", number).await;
        session.waits_for_an_answer().await;
        session.answer(session.the_ask().await, answer).await.unwrap();
    }
    assert_eq!(ending(running).await, EvalEnding::Completed);
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("\"Ada\" \"36\""));
    assert_eq!(session.story().await.iter().filter(|event| event.starts_with("asks")).count(), 2);
}

fn two_of(question: Question) -> Question {
    Question { quorum: Some(2), ..question }
}

#[tokio::test]
async fn a_vote_survives_the_daemon_and_counts_once_however_often_it_is_sent() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let before = session.now().await;
    let asking = session.raise("which", two_of(number())).await;
    asking.abort();
    asking.await.ok();
    let ask = session.the_ask().await;
    let give = |name: &str, value: i64| {
        let answer = SessionCommand::Answer(command::Answer::new(ask, value.into()));
        command(id(name), Admission::Now, answer)
    };
    let voted = session.give(give("mine", 3)).await.unwrap();
    let Outcome::Done { response: Response::Voted { votes: 1, missing: 1, .. } } = voted else {
        panic!("{voted:?}")
    };
    let session = session.leave();
    let daemon = daemon.crash().await;
    let (session, other) = (daemon.client(session), daemon.client_of("bob", session));
    assert_eq!(session.give(give("mine", 3)).await, Ok(voted), "the same command has the same answer");
    let asking = session.send(asks("which", two_of(number())));
    assert!(matches!(
        other.give(give("his", 4)).await,
        Ok(Outcome::Done { response: Response::Voted { votes: 1, missing: 1, .. } })
    ));
    assert!(matches!(
        other.give(give("his-other", 3)).await,
        Ok(Outcome::Done { response: Response::Recorded { .. } })
    ));
    assert_eq!(answered(asking.await.unwrap().unwrap()), 3);
    let expected = ["asks How many?", "votes 3, 1 missing", "votes 4, 1 missing", "answered 3"];
    let mut story = session.story_after(before).await;
    story.retain(|event| event != "warming up, DaemonLost" && event != "ready");
    assert_eq!(story, expected);
    let late = session.give(give("late", 4)).await;
    assert!(matches!(late, Err(Error::AskNotPending { .. })), "{late:?}");
}

#[tokio::test]
async fn a_question_whose_quorum_cannot_be_is_not_asked() {
    let daemon = Daemon::with(Limits { quorum: 2, ..quick() }).await;
    let session = daemon.session().await;
    for quorum in [0, 3] {
        let refused = session.give(asks("which", Question { quorum: Some(quorum), ..number() })).await;
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert_eq!(session.count("askRaised").await, 0);
}

/// All that is stored of a session, as text.
async fn stored(session: &Client) -> String {
    let events = session.attached.events(session.id, Seq::ZERO, usize::MAX).await.unwrap();
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    let status = session.attached.status(session.id).await.unwrap();
    format!("{} {entries:?} {status:?}", serde_json::to_string(&events).unwrap())
}

#[tokio::test]
async fn a_secret_reaches_the_code_that_asked_for_it_and_is_stored_nowhere() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define before").await;
    let running = session.begin("secret Password?").await;
    session.waits_for_an_answer().await;
    let ask = session.the_ask().await;
    let answer = |value: &str| {
        let body = SessionCommand::Answer(command::Answer::new(ask, value.into()));
        command(id("answer"), Admission::Now, body)
    };
    let first = session.give(answer("hunter2")).await.unwrap();
    assert_eq!(session.give(answer("hunter2")).await.unwrap(), first, "it has its outcome");
    let given = evaluated(running.await.unwrap());
    assert_eq!(given.value.as_deref(), Some("\"***\""));
    assert_eq!(session.eval("names").await.value.as_deref(), Some("before hunter2"), "the code has it");
    let story = session.story().await;
    assert!(story.contains(&"answered with a secret".to_owned()), "{story:?}");
    // But for what was asked for later.
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    assert_eq!(session.give(answer("hunter2")).await.unwrap(), first, "also to the next daemon");
    let names = session.eval("names").await;
    assert_eq!(names.value.as_deref(), Some("before"));
    let kept = stored(&session).await.replace("before hunter2", "");
    assert!(!kept.contains("hunter2"), "{kept}");
    let rebuilt = session.attached.status(session.id).await.unwrap().session.rebuilt.unwrap();
    assert_eq!(rebuilt.diverged[0].kind, DivergenceKind::Secret);
}

#[tokio::test]
async fn what_is_wrong_with_a_secret_is_told_without_it_and_a_command_asks_for_none() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let schema = json!({ "type": "string", "writeOnly": true });
    let refused = session.give(asks("secret", Question { schema, ..Question::text("Key?") })).await;
    assert!(
        matches!(&refused, Ok(Outcome::Failed { error: Error::InvalidArgument { argument, .. } }) if argument == "schema")
            || matches!(&refused, Err(Error::InvalidArgument { argument, .. }) if argument == "schema"),
        "{refused:?}"
    );
    let running = session.begin("secret Password?").await;
    session.waits_for_an_answer().await;
    let wrong = session.answer(session.the_ask().await, json!({ "password": "hunter2" })).await;
    let Err(Error::AnswerInvalid { reason }) = wrong else { panic!("{wrong:?}") };
    assert!(!reason.contains("hunter2"), "{reason}");
    session.submit(CANCEL).await.unwrap();
    assert!(!stored(&session).await.contains("hunter2"));
    running.await.unwrap().ok();
}

#[tokio::test]
async fn a_secret_does_not_wait_in_the_lane() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let running = session.send(command(id("running"), Admission::Queue, eval("secret Password?")));
    session.waits_for_an_answer().await;
    let body = SessionCommand::Answer(command::Answer::new(session.the_ask().await, "hunter2".into()));
    let waits = Command { depends_on: vec![id("running")], ..command(id("late"), Admission::Queue, body) };
    assert!(matches!(session.give(waits).await, Err(Error::Withheld { .. })));
    assert!(!stored(&session).await.contains("hunter2"));
    session.submit(CANCEL).await.unwrap();
    running.await.unwrap().ok();
}

#[tokio::test]
async fn the_first_valid_answer_wins_and_no_other_changes_anything() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let asking = session.raise("how-many", number()).await;
    let ask = session.the_ask().await;
    let before = session.now().await;
    for wrong in [json!("five"), json!(0), json!(null)] {
        assert!(matches!(session.answer(ask, wrong).await, Err(Error::AnswerInvalid { .. })));
    }
    assert_eq!(session.now().await, before);
    let (first, second) = tokio::join!(session.answer(ask, 5), session.answer(ask, 6));
    assert!(matches!(first, Ok(Outcome::Done { .. })));
    assert_eq!(second, Err(Error::AskNotPending { reference: ask.to_string() }));
    assert_eq!(answered(asking.await.unwrap().unwrap()), json!(5));
    assert_eq!(answered(session.give(asks("how-many", number())).await.unwrap()), json!(5), "it stays so");
    assert_eq!(session.state().await, SessionState::Ready);
}

#[tokio::test]
async fn an_ask_passes_a_running_job_and_ends_without_it() {
    let daemon = Daemon::with(Limits { cancel_grace_ms: 600_000, ..quick() }).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let asking = session.raise("one", number()).await;
    assert_eq!(session.state().await, SessionState::Evaluating, "the job does not wait for it");
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    session.answer(session.the_ask().await, 1).await.unwrap();
    assert_eq!(answered(asking.await.unwrap().unwrap()), json!(1));
}

#[tokio::test]
async fn an_ask_ends_with_its_job() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for end in [CANCEL, SessionCommand::HardReset, SessionCommand::Stop] {
        let running = session.begin("ask Name?").await;
        session.waits_for_an_answer().await;
        let ask = session.the_ask().await;
        session.submit(end).await.unwrap();
        assert_eq!(ending(running).await, EvalEnding::Cancelled);
        assert_eq!(
            session.answer(ask, "late").await,
            Err(Error::AskNotPending { reference: ask.to_string() })
        );
    }
}

#[tokio::test]
async fn a_client_takes_its_ask_back() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let asking = session.raise("one", number()).await;
    let withdrawn = Outcome::Done { response: Response::Withdrawn { command: id("one") } };
    assert_eq!(session.submit(cancel(&id("one"))).await, Ok(withdrawn));
    assert_eq!(asking.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    assert_eq!(session.asks().await, []);
}

#[tokio::test]
async fn where_nobody_answers_in_time_the_default_is_taken_if_there_is_one() {
    let daemon = Daemon::with(Limits { ask_ms: 20, ..quick() }).await;
    let session = daemon.session().await;
    let timed = |name: &str, question| Command { timeout_ms: Some(20), ..asks(name, question) };
    let one = Question { default: Some(json!(1)), ..number() };
    assert_eq!(answered(session.give(timed("default", one)).await.unwrap()), json!(1));
    assert_eq!(session.give(timed("none", number())).await, Ok(timed_out(20)));
    let Outcome::Done { response: Response::Evaluated(eval) } =
        session.give(command(next_id(), Admission::Queue, crate::support::eval("ask Name?"))).await.unwrap()
    else {
        panic!()
    };
    assert!(matches!(eval.ending, EvalEnding::Raised { .. }), "the job hears that nobody answered");
}

#[tokio::test]
async fn an_ask_outlives_the_daemon_and_is_answered_by_the_next() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let resting = daemon.session().await;
    let asking = [session.raise("one", number()).await, resting.raise("two", number()).await];
    resting.submit(SessionCommand::Stop).await.unwrap();
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    let (session, resting) = (session.leave(), resting.leave());
    let daemon = daemon.crash().await;
    for (session, name, value) in [(session, "one", 1), (resting, "two", 2)] {
        let session = daemon.client(session);
        let waiting = session.send(asks(name, number()));
        let conflict = session.give(asks(name, Question::text("other"))).await;
        assert_eq!(conflict, Err(Error::CommandConflict { command: id(name) }));
        session.answer(session.the_ask().await, value).await.unwrap();
        assert_eq!(answered(waiting.await.unwrap().unwrap()), json!(value));
    }
}

#[tokio::test]
async fn the_time_for_an_answer_passes_while_no_daemon_is_there() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let asking = session.send(Command { timeout_ms: Some(50), ..asks("one", number()) });
    session.until("askRaised").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    asking.abort();
    let session = session.leave();
    let daemon = daemon.crash().await;
    let again = Command { timeout_ms: Some(50), ..asks("one", number()) };
    assert_eq!(daemon.client(session).give(again).await, Ok(timed_out(50)));
}

#[tokio::test]
async fn no_more_asks_wait_than_may_and_a_question_must_be_one() {
    let daemon = Daemon::with(Limits { asks: 1, ..quick() }).await;
    let session = daemon.session().await;
    let asking = session.raise("one", number()).await;
    assert_eq!(session.give(asks("two", number())).await, Err(Error::TooManyAsks { limit: 1 }));
    let no_schema = Question { schema: json!({ "type": "number of" }), ..number() };
    assert!(matches!(session.give(asks("three", no_schema)).await, Err(Error::InvalidArgument { .. })));
    let outcome = evaluated(
        session.give(command(next_id(), Admission::Queue, crate::support::eval("ask Name?"))).await,
    );
    assert!(matches!(outcome.ending, EvalEnding::Raised { .. }), "a job's ask finds no place either");
    session.answer(session.the_ask().await, 1).await.unwrap();
    asking.await.unwrap().unwrap();
    let two = session.raise("two", number()).await;
    session.answer(session.the_ask().await, 2).await.unwrap();
    assert_eq!(answered(two.await.unwrap().unwrap()), json!(2), "what was refused has left nothing behind");
}

#[tokio::test]
async fn an_ask_that_waits_is_found_by_the_end_of_its_id() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let asking = session.raise("one", number()).await;
    let ask = session.the_ask().await;
    let found = daemon.local.ask(&ask.short()).await.unwrap();
    assert_eq!((found.session.id, found.pending.ask.ask), (session.id, ask));
    let unknown = daemon.local.ask("00000000").await;
    assert_eq!(unknown, Err(Error::AskNotPending { reference: "00000000".to_owned() }));
    session.submit(cancel(&CommandId::new("one").unwrap())).await.unwrap();
    asking.await.unwrap().unwrap();
    assert_eq!(daemon.local.asks().await, Ok(Vec::new()));
}
