//! Asks: questions to whoever is attached, and their answers.

use super::call::{Call, unexpected};
use mainstay_engine::WaitingAsk;
use mainstay_gateway::command::{answered_before, id_of};
use mainstay_gateway::view::ask_view;
use mainstay_model::{AskId, Command, CommandId, Error, Outcome, Response, SessionCommand, command};
use mainstay_protocol::operations::{AnswerAsk, Answered, AskAnswer, DeclineAsk, ListAsks, RaiseAsk};
use mainstay_protocol::view::AskView;

pub(crate) async fn raise(call: Call, raise: RaiseAsk) -> Result<AskAnswer, Error> {
    let RaiseAsk { session, question, sent } = raise;
    let session = call.resolve(&session).await?;
    let command = call.command_of(SessionCommand::Ask(question), sent)?;
    let answered = call.client.submit(session, command).await?;
    match answered.outcome {
        Outcome::Done { response: Response::Answered { ask, value, by } } => {
            Ok(AskAnswer { ask, value, by, replayed: answered.is_replay })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn list(call: Call, list: ListAsks) -> Result<Vec<AskView>, Error> {
    let session = call.optional(list.session).await?;
    let mut asks = call.client.asks().await?;
    asks.retain(|waiting| session.is_none_or(|session| session == waiting.session.id));
    Ok(asks.into_iter().map(ask_view).collect())
}

/// Answers an ask of a session.
pub(crate) async fn answer(call: Call, answer: AnswerAsk) -> Result<Answered, Error> {
    let AnswerAsk { ask, command, value } = answer;
    end(&call, ask, command, |ask| SessionCommand::Answer(command::Answer::new(ask, value))).await
}

/// Ends an ask of a session without an answer.
pub(crate) async fn decline(call: Call, decline: DeclineAsk) -> Result<Answered, Error> {
    let DeclineAsk { ask, command } = decline;
    end(&call, ask, command, |ask| SessionCommand::Decline(command::Decline { ask })).await
}

/// Has the session of an ask carry out what answers or ends it.
async fn end(
    call: &Call,
    reference: String,
    command: Option<CommandId>,
    body: impl FnOnce(AskId) -> SessionCommand + Send,
) -> Result<Answered, Error> {
    let (session, ask) = match answered_before(&call.client, &reference, command.as_ref()).await? {
        Some(before) => before,
        None => {
            let WaitingAsk { session, pending } = call.client.ask(&reference).await?;
            (session.id, pending.ask.ask)
        }
    };
    let command = Command::new(id_of(command)?, call.client.source(), body(ask));
    match call.client.submit(session, command).await?.outcome {
        Outcome::Done { response: Response::Recorded { seq } } => {
            Ok(Answered { ask, session, seq, missing: None })
        }
        Outcome::Done { response: Response::Voted { seq, missing, .. } } => {
            Ok(Answered { ask, session, seq, missing: Some(missing) })
        }
        outcome => Err(unexpected(&outcome)),
    }
}
