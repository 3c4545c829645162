//! The question to a session's people whether a build is to put in what a swap could not, with `on-obstacle = "ask"`.

use std::collections::BTreeMap;

use mainstay_engine::Client;
use mainstay_model::{
    Access, Command, CommandId, Outcome, Question, Response, SessionCommand, SessionId, Source, command,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::NAME;

/// The questions that wait for an answer, at most one of a session.
#[derive(Default)]
pub(super) struct BuildQuestions {
    waiting: BTreeMap<SessionId, CommandId>,
    tasks: JoinSet<(SessionId, CommandId, bool)>,
}

impl BuildQuestions {
    /// Asks, unless the session is asked already. `what` could not be put in.
    pub(super) fn ask(&mut self, client: Client, session: SessionId, what: &str) {
        if self.waiting.contains_key(&session) {
            return;
        }
        let question = Question {
            prompt: format!(
                "Saved and not what runs: {what}. Build now? What the session's code has made is made anew."
            ),
            schema: json!({ "type": "boolean" }),
            default: None,
            quorum: None,
        };
        let command = own_command(SessionCommand::Ask(question));
        let id = command.id.clone();
        self.waiting.insert(session, id.clone());
        self.tasks.spawn(async move {
            let answered = client.submit(session, command).await;
            if let Err(error) = &answered {
                tracing::debug!(%session, %error, "nobody can be asked whether to build");
            }
            (session, id, answered.is_ok_and(|answered| is_yes(&answered.outcome)))
        });
    }

    /// Takes the question back: what it is about runs, or is being built.
    pub(super) fn withdraw(&mut self, client: &Client, session: SessionId) {
        let Some(asked) = self.waiting.remove(&session) else { return };
        let client = client.clone();
        tokio::spawn(async move {
            let cancel = SessionCommand::Cancel(command::Cancel { target: Some(asked), grace_ms: None });
            if let Err(error) = client.submit(session, own_command(cancel)).await {
                tracing::debug!(%session, %error, "a question about a build is not taken back");
            }
        });
    }

    /// The sessions that are asked.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.waiting.keys().copied().collect()
    }

    /// Waits for an answer; gives the session where that is to build. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Option<SessionId>> {
        let (session, asked, is_to_be_built) = self.tasks.join_next().await?.ok()?;
        if self.waiting.get(&session) != Some(&asked) {
            return Some(None);
        }
        self.waiting.remove(&session);
        Some(is_to_be_built.then_some(session))
    }
}

fn own_command(body: SessionCommand) -> Command {
    let source = Source::Client { principal: Access::local().principal, name: NAME.to_owned() };
    Command::new(CommandId::from_uuid(uuid::Uuid::now_v7()), source, body)
}

fn is_yes(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { response: Response::Answered { value, .. } } if *value == Value::Bool(true))
}
