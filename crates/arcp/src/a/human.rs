//! How a client of dialect A answers what a job asks, permissions among it. Source: draft-arcp-01, 12 and 15.4.

use mainstay_arcp_protocol::a::control::Ack;
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_engine::CommandStatus;
use mainstay_model::command::Answer;
use mainstay_model::permission::Permission;
use mainstay_model::{Command, Error, Outcome, SessionCommand};
use serde_json::{Value, json};

use super::{A, errors, ids};
use crate::job_id::{Submission, job_id};
use crate::session::Session;

/// The answer to a question in a message; none of a message that answers none.
pub(super) fn answer_in(message: &Message) -> Option<Value> {
    match message {
        Message::HumanInputResponse(response) => Some(response.value.clone()),
        Message::HumanChoiceResponse(response) => Some(json!(response.choice_id)),
        Message::PermissionGrant(_) => Some(json!(Permission::Once.as_str())),
        Message::PermissionDeny(_) => Some(json!(Permission::No.as_str())),
        _ => None,
    }
}

impl Session<A> {
    /// Answers a question. The first valid answer counts, whoever gives it.
    pub(super) async fn answer_ask(
        &mut self,
        id: &str,
        question: Option<String>,
        value: Value,
    ) -> Result<(), Error> {
        let Some(ask) = question.as_deref().and_then(ids::ask_of) else {
            let reason = "the correlation_id names no question of this runtime";
            self.nack(id, errors::nack(ErrorCode::NotFound, reason)).await;
            return Ok(());
        };
        // The same message is the same command, however often it comes.
        let told_apart = Submission::Message { session: &self.stored.id, message: id };
        let command = job_id(self.client.principal(), told_apart)?;
        let answered = async {
            let outcome = match self.client.command(&command).await {
                Ok(CommandStatus::Ended(stored)) => stored.outcome,
                _ => {
                    let waiting = self.client.ask(&ask.to_string()).await?;
                    let body = SessionCommand::Answer(Answer { ask, value });
                    let command = Command::new(command, self.client.source(), body);
                    self.client.submit(waiting.session.id, command).await?.outcome
                }
            };
            match outcome {
                Outcome::Done { .. } => Ok(()),
                Outcome::Failed { error } => Err(error),
            }
        };
        match answered.await {
            Ok(()) => self.answer(id, Message::Ack(Ack { details: None })).await,
            Err(Error::DaemonStopping) => return Err(Error::DaemonStopping),
            Err(error) => self.nack(id, errors::of_error(&error)).await,
        }
        Ok(())
    }
}
