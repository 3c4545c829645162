//! A command that takes its time. Until it ends, its client hears what it prints, is asked what it asks, and can stop it; where it asks
//! and its client is asked by an answer, or it takes long and its client knows tasks, the call is answered before that. A cell of a
//! notebook is no task: what comes of the call is more than what comes of the cell.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use mainstay_engine::{ClientSubscription, CommandStatus};
use mainstay_log::StoredOutcome;
use mainstay_model::command;
use mainstay_model::screen::settled;
use mainstay_model::{
    Admission, AskId, Command, CommandId, Error, Event, EventBody, Outcome, PendingAsk, Response, Seq,
    Session, SessionCommand, SessionId, SessionState, TestProgress, TestResultFeed,
};
use tokio::time::sleep;

use super::call::Call;
use super::elicitation::{self, ElicitationMode};
use super::running_command::{RunningCommand, WAITS_TURN, asks_of};
use super::task_start;
use super::text::{TEXT_BYTES, shortened};
use mainstay_formats::notebook::runs::CellRun;

/// How many events are read at once.
const PAGE: usize = 256;

/// Hands a command over, and waits for its end even when the client cancels it: cancelling always ends.
pub(super) async fn carried_out(call: &Call, session: &Session, command: Command) -> Result<Response, Error> {
    carried_out_among(call, session, command, None).await
}

/// As [`carried_out`], of a command that runs the last of these cells of a notebook.
pub(super) async fn carried_out_among(
    call: &Call,
    session: &Session,
    command: Command,
    cells: Option<Vec<CellRun>>,
) -> Result<Response, Error> {
    let running = RunningCommand { session: session.id, command: command.id.clone(), cells };
    // Before it is handed over, so that nothing it asks or prints is missed.
    let heard = CommandEvents::begin(call, session.id, session.last_seq).await?;
    let may_wait = command.admission == Admission::Queue && session.state() == SessionState::Evaluating;
    let begun = call.client().begin(session.id, command).await?;
    if may_wait {
        call.say(WAITS_TURN).await;
    }
    let answered = until_ended(call, &running, heard, begun.ended()).await??;
    match answered.outcome {
        Outcome::Done { response } => Ok(response),
        Outcome::Failed { error } => Err(error),
    }
}

/// Waits for the end of a command that was handed over before.
pub(super) async fn ended(call: &Call, running: &RunningCommand) -> Result<StoredOutcome, Error> {
    let seen = call.client().status(running.session).await?.session.last_seq;
    let heard = CommandEvents::begin(call, running.session, seen).await?;
    until_ended(call, running, heard, stored(call, running, seen)).await?
}

/// The outcome of a command, once it is there.
async fn stored(call: &Call, running: &RunningCommand, seen: Seq) -> Result<StoredOutcome, Error> {
    let mut events = call.client().subscribe(running.session, seen).await?;
    loop {
        if let CommandStatus::Ended(stored) = call.client().command(&running.command).await? {
            return Ok(*stored);
        }
        while matches!(events.next().await?.body, EventBody::OutputProduced { .. }) {}
    }
}

/// Waits for the end of a command, in its client's company.
async fn until_ended<T>(
    call: &Call,
    running: &RunningCommand,
    mut heard: CommandEvents,
    ended: impl Future<Output = T>,
) -> Result<T, Error> {
    let RunningCommand { session, command, cells } = running;
    let is_of = |other: &CommandId| other == command;
    let mut ended = pin!(ended);
    let mut stopped = pin!(stop_when_cancelled(call, *session, heard.seen, is_of));
    let mut long = pin!(sleep(Duration::from_millis(call.limits().task_after_ms)));
    let (mut is_stopped, mut may_be_task) = (false, cells.is_none() && task_start::are_known(call));
    let mut asked = BTreeSet::new();
    let mut asking = FuturesUnordered::new();
    for pending in ask_anew(call, running, &mut asked).await? {
        asking.push(elicitation::put(call, pending));
    }
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            done = &mut stopped, if !is_stopped => {
                is_stopped = true;
                note_stop(*session, done);
            }
            Some(word) = heard.next(is_of) => match word {
                CommandProgress::Printed(text) => call.tell(shortened(text, TEXT_BYTES)).await,
                CommandProgress::Asked => {
                    for pending in ask_anew(call, running, &mut asked).await? {
                        asking.push(elicitation::put(call, pending));
                    }
                }
            },
            Some(()) = asking.next() => {}
            () = &mut long, if may_be_task => {
                may_be_task = false;
                call.answer_instead(task_start::begun(call, running).await?);
            }
        }
    };
    // What was asked has ended with it, and clients are told so.
    while asking.next().await.is_some() {}
    if let Err(error) = heard.last_words(call, *session, is_of).await {
        tracing::debug!(%session, %error, "a client did not hear the last of what a command printed");
    }
    Ok(ended)
}

/// Notes that what its client cancelled could not be stopped. Its outcome comes all the same.
fn note_stop(session: SessionId, done: Result<(), Error>) {
    if let Err(error) = done {
        tracing::warn!(%session, %error, "a cancelled command could not be stopped");
    }
}

/// Waits for the end of what is carried out in parts, each a command of its own. Its client hears what they print, and is asked what they
/// ask where that can be done meanwhile; once it cancels, the part that runs is stopped, which ends the whole.
pub(super) async fn parts_ended<T>(
    call: &Call,
    session: &Session,
    whole: &CommandId,
    ended: impl Future<Output = T>,
) -> Result<T, Error> {
    let id = session.id;
    let is_of = |command: &CommandId| command.is_part_of(whole);
    let mut heard = CommandEvents::begin(call, id, session.last_seq).await?;
    let mut ended = pin!(ended);
    let mut stopped = pin!(stop_when_cancelled(call, id, heard.seen, is_of));
    let mut is_stopped = false;
    let mut asked = BTreeSet::new();
    let mut asking = FuturesUnordered::new();
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            done = &mut stopped, if !is_stopped => {
                is_stopped = true;
                note_stop(id, done);
            }
            Some(word) = heard.next(is_of) => match word {
                CommandProgress::Printed(text) => call.tell(shortened(text, TEXT_BYTES)).await,
                CommandProgress::Asked if ElicitationMode::of(call) == ElicitationMode::InSession => {
                    let now = call.client().status(id).await?.session;
                    let pending = asks_of(&now, is_of);
                    let new = pending.into_iter().filter(|pending| asked.insert(pending.ask.ask));
                    asking.extend(new.map(|pending| elicitation::put(call, pending)));
                }
                CommandProgress::Asked => call.under_way().note_ask(),
            },
            Some(()) = asking.next() => {}
        }
    };
    while asking.next().await.is_some() {}
    if let Err(error) = heard.last_words(call, id, is_of).await {
        tracing::debug!(session = %id, %error, "a client did not hear the last of what a command printed");
    }
    Ok(ended)
}

/// What the command asks and its client was not asked yet. Where it is asked by an answer, that is the answer.
async fn ask_anew(
    call: &Call,
    running: &RunningCommand,
    asked: &mut BTreeSet<AskId>,
) -> Result<Vec<PendingAsk>, Error> {
    let session = call.client().status(running.session).await?.session;
    let mut pending = asks_of(&session, |command| *command == running.command);
    match ElicitationMode::of(call) {
        ElicitationMode::Never => {
            if !pending.is_empty() {
                answer_asked(call, running).await?;
            }
            Ok(Vec::new())
        }
        ElicitationMode::InSession => {
            pending.retain(|pending| asked.insert(pending.ask.ask));
            Ok(pending)
        }
        ElicitationMode::ByAnswer => {
            // Who has voted is not asked again.
            let is_open = |pending: &&PendingAsk| !pending.has_voted(call.client().principal());
            let open: Vec<_> = pending.iter().filter(is_open).cloned().collect();
            match elicitation::required(call, running, &open)? {
                Some(required) => call.answer_instead(required.into()),
                None if !pending.is_empty() => answer_asked(call, running).await?,
                None => {}
            }
            Ok(Vec::new())
        }
    }
}

/// Answers a call whose code asks what its client shows to nobody: as a task, which says so, where its client knows tasks.
async fn answer_asked(call: &Call, running: &RunningCommand) -> Result<(), Error> {
    match running.cells.is_none() && task_start::are_known(call) {
        true => call.answer_instead(task_start::begun(call, running).await?),
        false => call.under_way().note_ask(),
    }
    Ok(())
}

/// Stops the command, and no other, once the client cancels the call. One that has not come to the session yet is stopped as soon as it
/// begins; for one that has ended already this waits until its outcome is there.
async fn stop_when_cancelled(
    call: &Call,
    session: SessionId,
    seen: Seq,
    is_of: impl Fn(&CommandId) -> bool,
) -> Result<(), Error> {
    call.cancelled().await;
    let mut events = call.client().subscribe(session, seen).await?;
    let now = call.client().status(session).await?.session;
    let mut running = now.running().map(|running| running.command.clone()).filter(&is_of);
    loop {
        let target = match running.take() {
            Some(running) => running,
            None => begun(&mut events, &is_of).await?,
        };
        match call
            .submit_beside(
                session,
                SessionCommand::Cancel(command::Cancel { target: Some(target), grace_ms: None }),
            )
            .await
        {
            Ok(_) => return Ok(()),
            Err(Error::NotRunning { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until such a command begins, and says which it is.
async fn begun(
    events: &mut ClientSubscription,
    is_of: impl Fn(&CommandId) -> bool,
) -> Result<CommandId, Error> {
    loop {
        let event = events.next().await?;
        if let EventBody::EvalRequested { command, .. } | EventBody::JobRequested { command, .. } =
            &event.body
            && is_of(command)
        {
            return Ok(command.clone());
        }
    }
}

/// What is heard of a command.
struct CommandEvents {
    /// Where what was looked at ends.
    seen: Seq,
    events: ClientSubscription,
    tests: TestResultFeed,
}

/// Something a command does.
enum CommandProgress {
    Printed(String),
    Asked,
}

impl CommandProgress {
    /// What an event says of a command; of tests that run what is new.
    fn of(event: &Event, is_of: impl Fn(&CommandId) -> bool, tests: &mut TestResultFeed) -> Option<Self> {
        if !event.metadata.correlation.as_ref().is_some_and(is_of) {
            return None;
        }
        if let EventBody::OutputProduced { text, .. } = &event.body {
            Some(Self::Printed(settled(text).into_owned()))
        } else if let EventBody::OutputDisplayed { display, .. } = &event.body
            && display.is_put_out()
        {
            let text = match tests.of(display) {
                None => display.data.words().into_owned(),
                Some(news) if news.is_empty() && TestProgress::shown(display).is_some() => {
                    display.data.text().lines().next().unwrap_or_default().to_owned()
                }
                Some(news) => news,
            };
            (!text.is_empty()).then_some(Self::Printed(text))
        } else if let EventBody::AskRaised(_) = &event.body {
            Some(Self::Asked)
        } else {
            None
        }
    }
}

impl CommandEvents {
    async fn begin(call: &Call, session: SessionId, seen: Seq) -> Result<Self, Error> {
        let events = call.client().subscribe(session, seen).await?;
        Ok(Self { seen, events, tests: TestResultFeed::default() })
    }

    /// What it does next; none where nothing can be heard.
    async fn next(&mut self, is_of: impl Fn(&CommandId) -> bool) -> Option<CommandProgress> {
        loop {
            let event = self.events.next().await.ok()?;
            self.seen = event.seq;
            if let Some(word) = CommandProgress::of(&event, &is_of, &mut self.tests) {
                return Some(word);
            }
        }
    }

    /// Says what it printed that was not heard yet when it ended.
    async fn last_words(
        &mut self,
        call: &Call,
        session: SessionId,
        is_of: impl Fn(&CommandId) -> bool,
    ) -> Result<(), Error> {
        if !call.wants_progress() {
            return Ok(());
        }
        let end = call.client().status(session).await?.session.last_seq;
        while self.seen < end {
            let page = call.client().events(session, self.seen, PAGE).await?;
            let Some(last) = page.last() else { break };
            self.seen = last.seq;
            for event in &page {
                match CommandProgress::of(event, &is_of, &mut self.tests) {
                    Some(CommandProgress::Printed(text)) => call.tell(shortened(text, TEXT_BYTES)).await,
                    Some(CommandProgress::Asked) | None => {}
                }
            }
        }
        Ok(())
    }
}
