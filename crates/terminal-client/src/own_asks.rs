//! What one's own code asks while one waits for it: which asks wait, and whether they were answered from here.

use mainstay_client::Client;
use mainstay_model::ask::{Ask, Raiser};
use mainstay_model::{AskId, CommandId, Error, Event, EventBody};
use mainstay_protocol::operations::{AnswerAsk, GetStatus};
use serde_json::Value;
use uuid::Uuid;

use crate::link::is_loss;

/// Answers that are no larger are sent as they are.
const UNCHECKED_BYTES: usize = 32 * 1024;
/// What is around an answer in its message, at most.
const ENVELOPE_BYTES: usize = 1024;

/// The asks of one command's code that have not ended.
#[derive(Default)]
pub struct OwnAsks {
    asks: Vec<OwnAsk>,
}

struct OwnAsk {
    ask: Ask,
    standing: AskStatus,
}

/// How an ask stands, as far as is known here.
enum AskStatus {
    /// It waits for an answer.
    Open,
    /// The answer was given from here, and no daemon has said yet that it has it.
    Given(AnswerAsk),
    /// It was answered from here by this command; the event that says so is on its way, unless more must answer the same.
    Answered(Option<CommandId>),
    /// It had ended when it was answered from here; the event that says how is on its way.
    Late,
}

/// What an event says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskChange {
    /// One more ask waits for an answer.
    Raised,
    /// Somebody answered one that needs the same answer of more.
    Voted,
    /// One has ended, as was done from here.
    Answered,
    /// One has ended without us.
    Ended,
}

impl OwnAsks {
    /// Takes in an event of the session in which `command` runs; none where it says nothing of them.
    pub fn observe(&mut self, event: &Event, command: &CommandId) -> Option<AskChange> {
        if let EventBody::AskRaised(ask) = &event.body
            && is_of(ask, event, command)
        {
            self.asks.push(OwnAsk { ask: (**ask).clone(), standing: AskStatus::Open });
            return Some(AskChange::Raised);
        }
        if let EventBody::AskVoted { ask, .. } = &event.body {
            return self.asks.iter().any(|own| own.ask.ask == *ask).then_some(AskChange::Voted);
        }
        let EventBody::AskEnded { ask, .. } = &event.body else { return None };
        let at = self.asks.iter().position(|own| own.ask.ask == *ask)?;
        let own = self.asks.remove(at);
        let needs_others = own.ask.question.needed_answers() > 1;
        Some(match own.standing {
            AskStatus::Answered(_) if !needs_others => AskChange::Answered,
            AskStatus::Answered(command) | AskStatus::Given(AnswerAsk { command, .. })
                if event.metadata.correlation == command =>
            {
                AskChange::Answered
            }
            AskStatus::Answered(_) | AskStatus::Open | AskStatus::Given(_) | AskStatus::Late => {
                AskChange::Ended
            }
        })
    }

    /// The first that waits for an answer.
    pub fn open(&self) -> Option<&Ask> {
        self.asks.iter().find(|own| matches!(own.standing, AskStatus::Open)).map(|own| &own.ask)
    }

    /// The one whose answer was given, and may not have arrived.
    pub fn given(&self) -> Option<&Ask> {
        self.asks.iter().find(|own| matches!(own.standing, AskStatus::Given(_))).map(|own| &own.ask)
    }

    /// Answers one with what a person typed. Where it has ended meanwhile, the event that ended it says so. Where the daemon is lost, the
    /// answer is kept for [`OwnAsks::answer_again`].
    ///
    /// # Errors
    /// [`Error::AnswerInvalid`], and what stands in the way of a call.
    pub async fn answer(&mut self, client: &Client, ask: AskId, text: &str) -> Result<(), Error> {
        let Some(own) = self.asks.iter_mut().find(|own| own.ask.ask == ask) else { return Ok(()) };
        let command = Some(CommandId::from_uuid(Uuid::now_v7()));
        let value = own.ask.question.value_of(text);
        own.standing = AskStatus::Given(AnswerAsk { ask: ask.to_string(), command, value });
        own.send(client).await
    }

    /// Sends what was given to a daemon that was lost. An answer that it had stored counts once.
    ///
    /// # Errors
    /// As [`OwnAsks::answer`].
    pub async fn answer_again(&mut self, client: &Client) -> Result<(), Error> {
        for own in &mut self.asks {
            own.send(client).await?;
        }
        Ok(())
    }
}

impl OwnAsk {
    /// Sends the answer that was given, where there is one.
    async fn send(&mut self, client: &Client) -> Result<(), Error> {
        let AskStatus::Given(given) = &self.standing else { return Ok(()) };
        let (standing, answered) = match send(client, &self.ask, given.clone()).await {
            Err(error) if is_loss(&error) => return Err(error),
            Ok(()) => (AskStatus::Answered(given.command.clone()), Ok(())),
            Err(Error::AskNotPending { .. }) => (AskStatus::Late, Ok(())),
            Err(error) => (AskStatus::Open, Err(error)),
        };
        self.standing = standing;
        answered
    }
}

async fn send(client: &Client, ask: &Ask, given: AnswerAsk) -> Result<(), Error> {
    if given.value.to_string().len() > UNCHECKED_BYTES {
        let limits = client.call(GetStatus {}).await?.limits;
        ask.question.check_size(&given.value, &limits)?;
        check_message(&given.value, limits.message_bytes)?;
    }
    client.call(given).await.map(drop)
}

/// A message that is too large would end the connection, and the question would wait on.
fn check_message(value: &Value, limit: usize) -> Result<(), Error> {
    let bytes = value.to_string().len() + ENVELOPE_BYTES;
    if bytes <= limit {
        return Ok(());
    }
    let reason = format!("it has {bytes} bytes as JSON; `message-bytes` allows {limit}");
    Err(Error::InvalidArgument { argument: "value".to_owned(), reason })
}

fn is_of(ask: &Ask, event: &Event, command: &CommandId) -> bool {
    match ask.raiser {
        Raiser::Job { .. } => event.metadata.correlation.as_ref() == Some(command),
        Raiser::Command { .. } => false,
    }
}
