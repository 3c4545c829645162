//! How a client of dialect A answers what a job asks, permissions among it. Source: draft-arcp-01, 12 and 15.4.

use mainstay_arcp_protocol::a::permission::PermissionGrant;
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::command::Answer;
use mainstay_model::permission::Permission;
use mainstay_model::{
    AskId, Channel, Command, CommandId, Error, Outcome, SessionCommand, Timestamp, TrustRefusal,
};
use serde_json::{Value, json};

use super::{A, errors, ids, leases};
use crate::session::Session;

/// What a message answers to a question.
pub(super) struct Response {
    value: Value,
    /// By which way a person answered, as the client says.
    responded_by: Option<String>,
    /// What it says of a permission that it gives.
    grant: Option<PermissionGrant>,
}

/// The answer to a question in a message; none of a message that answers none.
pub(super) fn answer_in(message: &Message) -> Option<Response> {
    let answer = |value, responded_by: &Option<String>| {
        Some(Response { value, responded_by: responded_by.clone(), grant: None })
    };
    match message {
        Message::HumanInputResponse(response) => answer(response.value.clone(), &response.responded_by),
        Message::HumanChoiceResponse(response) => answer(json!(response.choice_id), &response.responded_by),
        Message::PermissionGrant(grant) => Some(Response {
            value: json!(Permission::Once.as_str()),
            responded_by: None,
            grant: Some(grant.clone()),
        }),
        Message::PermissionDeny(_) => answer(json!(Permission::No.as_str()), &None),
        _ => None,
    }
}

impl Session<A> {
    /// Answers a question. The first valid answer counts, whoever gives it, unless several must give the same.
    pub(super) async fn answer_ask(
        &mut self,
        id: &str,
        question: Option<String>,
        response: Response,
    ) -> Result<(), Error> {
        let Some(ask) = question.as_deref().and_then(ids::ask_of) else {
            let reason = "the correlation_id names no question of this runtime";
            let step = "Answer with the `id` of the request as the `correlation_id`.";
            self.nack(id, errors::nack(ErrorCode::NotFound, reason, step)).await;
            return Ok(());
        };
        let command = self.command_of(id)?;
        let answered = match self.outcome_of(&command).await {
            Some(outcome) => outcome,
            None => self.give(command, ask, response).await,
        };
        self.settle(id, answered).await
    }

    /// Gives an answer to the session whose job asks.
    async fn give(&self, command: CommandId, ask: AskId, response: Response) -> Result<Outcome, Error> {
        let Response { value, responded_by, grant } = response;
        let channel = responded_by.map(Channel::new).transpose()?;
        let waiting = self.client.ask(&ask.to_string()).await?;
        let elevation = waiting.pending.elevation();
        if elevation.and_then(|elevation| elevation.asker).is_some_and(|asker| asker == self.stored.id) {
            return Err(Error::TrustRefused { refusal: TrustRefusal::OwnRequest });
        }
        let lease =
            grant.map(|grant| leases::terms_of(grant, &waiting.pending, Timestamp::now())).transpose()?;
        let body = SessionCommand::Answer(Answer { ask, value, channel, lease: lease.flatten() });
        let command = Command::new(command, self.client.source(), body);
        Ok(self.client.submit(waiting.session.id, command).await?.outcome)
    }
}
