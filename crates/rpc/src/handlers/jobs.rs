//! Jobs: evals, the work of agents, and the commands that ask for them.

use super::call::{Call, unexpected};
use mainstay_gateway::view::{command_view, eval_view, work_view};
use mainstay_model::{Error, Outcome, QueuedPrompt, Response, SessionCommand, command};
use mainstay_protocol::operations::{
    AskAgent, CancelSession, Cancelling, DoWork, Eval, GetCommand, PauseSession, SteerSession,
};
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::view::{CommandView, EvalView, SessionView};
use serde_json::Value;

pub(crate) async fn eval(call: Call, eval: Eval) -> Result<EvalView, Error> {
    let Eval { session, code, file, command_line, withheld, admission, sent } = eval;
    let session = call.resolve(&session).await?;
    let body = SessionCommand::Eval(command::Eval { code, file, command_line, origin: None, withheld });
    let (id, answered) = call.run(session, body, admission, sent).await?;
    match answered.outcome {
        Outcome::Done { response: Response::Evaluated(outcome) } => {
            let view = eval_view(&call.client, session, id, outcome).await?;
            Ok(EvalView { version: answered.version, replayed: answered.is_replay, ..view })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn work(call: Call, work: DoWork) -> Result<WorkView, Error> {
    let DoWork { session, work, admission, sent } = work;
    let session = call.resolve(&session).await?;
    let (id, answered) = call.run(session, SessionCommand::Work(work), admission, sent).await?;
    match answered.outcome {
        Outcome::Done { response: Response::Worked(outcome) } => {
            let view = work_view(&call.client, session, id, outcome).await?;
            Ok(WorkView { version: answered.version, replayed: answered.is_replay, ..view })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn cancel(call: Call, cancel: CancelSession) -> Result<Cancelling, Error> {
    let CancelSession { session, target, grace_ms, sent } = cancel;
    let session = call.resolve(&session).await?;
    let job =
        match call.submit(session, SessionCommand::Cancel(command::Cancel { target, grace_ms }), sent).await?
        {
            Outcome::Done { response: Response::Cancelling { job } } => Some(job),
            Outcome::Done { response: Response::Withdrawn { .. } } => None,
            outcome => return Err(unexpected(&outcome)),
        };
    Ok(Cancelling { session: call.view(session).await?, job })
}

pub(crate) async fn command(call: Call, get: GetCommand) -> Result<CommandView, Error> {
    let status = call.client.command(&get.command).await?;
    Ok(command_view(get.command, status))
}

pub(crate) async fn steer(call: Call, asked: SteerSession) -> Result<SessionView, Error> {
    let SteerSession { session, prompt, hears, sent } = asked;
    let body = SessionCommand::Steer(QueuedPrompt { prompt, hears });
    call.change(&session, body, sent).await
}

pub(crate) async fn pause(call: Call, asked: PauseSession) -> Result<SessionView, Error> {
    let PauseSession { session, target, prompt, sent } = asked;
    call.change(&session, SessionCommand::Pause(command::Pause { target, prompt }), sent).await
}

pub(crate) async fn question(call: Call, asked: AskAgent) -> Result<Value, Error> {
    let AskAgent { session, question } = asked;
    call.client.question(call.resolve(&session).await?, question).await
}
