//! The completion of names of commands: those of the prompt, and those of an agent.

use mainstay_model::Error;
use mainstay_protocol::operations::AskAgent;
use mainstay_runner::AgentQuestion;
use serde_json::Value;

use super::CompletionContext;
use super::proposal::{Choice, Proposal};
use crate::agent_start::start;
use crate::command::{self, PromptLanguage, table};

/// Whether it is the name of a command that may be an agent's own.
pub(super) fn is_of_agent(line: &str, prompt_language: PromptLanguage) -> bool {
    prompt_language == PromptLanguage::Words && line.starts_with('/') && !line.contains(char::is_whitespace)
}

/// The commands whose names begin with `begun`, with the sign it begins with.
pub(super) fn commands(begun: &str, prompt_language: PromptLanguage) -> Proposal {
    let sign = begun.chars().next().unwrap_or(':');
    let choices = table(prompt_language).filter_map(|entry| {
        let name = entry.name.replacen(':', sign.encode_utf8(&mut [0; 4]), 1);
        let end = if entry.argument.is_empty() { "" } else { " " };
        name.starts_with(begun).then(|| Choice {
            value: format!("{name}{end}"),
            note: entry.about.to_owned(),
            documentation: None,
        })
    });
    Proposal::whole(0, choices.collect())
}

/// Our commands and the agent's: its extensions' own, its prompts and its skills. An idle agent is started, for only it knows them.
pub(super) async fn agent_commands(asked: &CompletionContext, line: &str) -> Result<Proposal, Error> {
    let ask = || {
        let session = asked.session.to_string();
        asked.client.call(AskAgent { session, question: AgentQuestion::Commands })
    };
    let told = match ask().await {
        Err(Error::NotOffered { .. }) => {
            start(&asked.client, asked.session.to_string()).await?;
            ask().await?
        }
        told => told?,
    };
    let mut proposal = commands(line, PromptLanguage::Words);
    let listed = told["commands"].as_array().into_iter().flatten();
    proposal.choices.extend(listed.filter_map(|told| agent_command(told, line)));
    Ok(proposal)
}

/// A command as an agent tells of it, where it begins so and none of ours has its name.
fn agent_command(told: &Value, begun: &str) -> Option<Choice> {
    let name = format!("/{}", told["name"].as_str()?);
    // It is typed as it is.
    let is_plain = !name.contains(|c: char| c.is_control() || c.is_whitespace());
    let is_meant =
        is_plain && name.starts_with(begun) && command::named(&name, PromptLanguage::Words).is_none();
    let about = told["description"].as_str().unwrap_or_default();
    let note = match told["source"].as_str() {
        Some(source) => format!("{source}: {about}"),
        None => about.to_owned(),
    };
    is_meant.then(|| Choice { value: format!("{name} "), note, documentation: None })
}
