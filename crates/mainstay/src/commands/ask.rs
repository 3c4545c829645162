//! `mainstay ask`: what waits for an answer, and answering it.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_home::Home;
use mainstay_model::{Error, Question, Timestamp};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{AnswerAsk, AskAnswer, DeclineAsk, ListAsks, RaiseAsk};
use mainstay_terminal::{HiddenInput, Paint, note, printable};
use mainstay_terminal_client::ask::{answer, asks_text, missing_text, question, question_text};
use mainstay_terminal_client::connect::{Connection, connect_or_start, connected, connected_again};
use serde_json::{Value, json};

use super::conditions::SentArgs;
use super::target::{KIND_SOUGHT, NO_PROJECT_SOUGHT, PROJECT_SOUGHT, Target};

/// Lists, answers, declines and raises asks.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay ask list\n  mainstay ask answer 3fa9c2d1 yes\n  mainstay ask decline 3fa9c2d1\n  mainstay ask raise --choice blue --choice green 'Which one goes live?'"
)]
pub(super) struct AskArgs {
    #[command(subcommand)]
    command: AskCommand,
}

#[derive(Debug, Subcommand)]
enum AskCommand {
    /// List the asks that wait for an answer
    #[command(after_help = "Examples:\n  mainstay ask list\n  mainstay ask list --json | jq '.[].prompt'")]
    List {
        /// Only those of this session: its id, the end of its id, or its name
        #[arg(short, long)]
        session: Option<String>,

        /// Print the questions as JSON
        #[arg(long)]
        json: bool,
    },
    /// Answer an ask; the first valid answer wins, unless several must give the same
    #[command(
        after_help = "Examples:\n  mainstay ask answer 3fa9c2d1 yes\n  mainstay ask answer 3fa9c2d1 '{\"name\": \"Ada\"}'\n  mainstay ask answer 3fa9c2d1 < password.txt\n\nExit codes: 0 it was answered so, 1 it was not."
    )]
    Answer {
        /// The ask: its id, or the end of it
        ask: String,

        /// The answer: text, yes or no, or JSON, whichever the ask wants; without it, a line of standard input, which a terminal does not
        /// show where the ask is for a secret
        answer: Option<String>,
    },
    /// End an ask without an answer; whoever asked is told that nobody answers
    #[command(
        after_help = "Examples:\n  mainstay ask decline 3fa9c2d1\n\nAn agent that pauses waits until it is told how to go on: answer that with '' to let it, or end its turn with `mainstay cancel`.\n\nExit codes: 0 it was ended, 1 it was not."
    )]
    Decline {
        /// The ask: its id, or the end of it
        ask: String,
    },
    /// Ask whoever is attached to a session, and wait for the answer
    Raise(Raise),
}

/// Asks whoever is attached to a session.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay ask raise 'What is it called?'\n  mainstay ask raise --yes-no --default no --timeout 10m 'Deploy?' --id deploy-42\n  mainstay ask raise --yes-no --quorum 2 'Delete the cluster?'\n\nThe ask survives this command and the daemon: with --id it can be taken up again.\n\nExit codes: 0 it was answered, 1 it was not."
)]
#[command(mut_arg("kind", |kind| kind.help(KIND_SOUGHT)), mut_arg("project", |project| project.help(PROJECT_SOUGHT)), mut_arg("no_project", |none| none.help(NO_PROJECT_SOUGHT)))]
struct Raise {
    /// The question to be asked
    prompt: String,

    #[command(flatten)]
    target: Target,

    /// A possible answer; give it again for each
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["yes_no", "schema"])]
    choice: Vec<String>,

    /// The answer is yes or no
    #[arg(long, conflicts_with = "schema")]
    yes_no: bool,

    /// The JSON schema of the answer; any text without it
    #[arg(long, value_name = "JSON", value_parser = |text: &str| serde_json::from_str::<Value>(text))]
    schema: Option<Value>,

    /// What is taken where nobody answers in time
    #[arg(long, value_name = "ANSWER", requires = "timeout")]
    default: Option<String>,

    /// How many principals must give the same answer
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    quorum: Option<u32>,

    #[command(flatten)]
    sent: SentArgs,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

impl AskArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self.command {
            AskCommand::List { session, json } => list(home, session, json).await,
            AskCommand::Answer { ask, answer } => give(home, &ask, answer).await,
            AskCommand::Decline { ask } => decline(home, ask).await,
            AskCommand::Raise(raise) => raise.run(home).await,
        }
    }
}

async fn list(home: &Home, session: Option<String>, json: bool) -> Result<ExitCode, Error> {
    let asks = connect_or_start(home, "cli").await?.client.call(ListAsks { session }).await?;
    if json {
        super::print_json(&asks)?;
    } else {
        print!("{}", asks_text(&asks, Paint::stdout(), Timestamp::now()));
    }
    Ok(ExitCode::SUCCESS)
}

async fn give(home: &Home, reference: &str, text: Option<String>) -> Result<ExitCode, Error> {
    let client = connect_or_start(home, "cli").await?.client;
    let answered = match text {
        Some(text) => answer(&client, reference, &text).await?,
        None => {
            let question = question(&client, reference).await?;
            let text = read_line(question.as_ref())?;
            let value = question.map_or_else(|| Value::String(text.clone()), |asked| asked.value_of(&text));
            client.call(AnswerAsk { ask: reference.to_owned(), command: None, value }).await?
        }
    };
    if let Some(missing) = answered.missing {
        note(&format!("the answer was counted; {}", missing_text(missing)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn decline(home: &Home, ask: String) -> Result<ExitCode, Error> {
    let client = connect_or_start(home, "cli").await?.client;
    client.call(DeclineAsk { ask, command: None }).await?;
    note("the ask has ended without an answer");
    Ok(ExitCode::SUCCESS)
}

/// The line that answers a question, which a terminal shows unless it is a secret.
fn read_line(question: Option<&Question>) -> Result<String, Error> {
    let is_typed = std::io::stdin().is_terminal();
    // First: what is typed as soon as the question is there must not be shown either.
    let _hidden = question.filter(|question| question.is_secret()).and_then(|_| HiddenInput::begin());
    if let Some(question) = question.filter(|_| is_typed) {
        eprint!("{} ", printable(&question_text(question)));
    }
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    let unreadable = |reason: String| Error::InvalidArgument { argument: "answer".to_owned(), reason };
    match read.map_err(|error| unreadable(error.to_string()))? {
        0 => Err(unreadable("standard input has no line".to_owned())),
        _ => Ok(line.trim_end_matches('\n').trim_end_matches('\r').to_owned()),
    }
}

impl Raise {
    async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let find = async |connection: &Connection| self.target.find(&connection.client).await;
        let (_, session) = connected(home, "cli", find).await?;
        let (command, conditions) = self.sent.clone().named();
        let sent = Sent { command: Some(command), conditions };
        let raise = RaiseAsk { session: session.session.to_string(), question: self.question(), sent };
        // Where the daemon is lost, the ask with its id waits in the next one.
        let ask = async |connection: &Connection| connection.client.call(raise.clone()).await;
        let (_, answer) = connected_again(home, "cli", ask).await?;
        if self.json {
            super::print_json(&answer)?;
        } else {
            println!("{}", answer_text(&answer));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn question(&self) -> Question {
        let schema = match &self.schema {
            Some(schema) => schema.clone(),
            None if self.yes_no => json!({ "type": "boolean" }),
            None if !self.choice.is_empty() => json!({ "enum": self.choice }),
            None => json!({ "type": "string" }),
        };
        let question = Question { schema, quorum: self.quorum, ..Question::text(self.prompt.clone()) };
        let default = self.default.as_ref().map(|text| question.value_of(text));
        Question { default, ..question }
    }
}

/// An answer for scripts: text as it is, all else as JSON.
fn answer_text(answer: &AskAnswer) -> String {
    answer.value.as_str().map_or_else(|| answer.value.to_string(), str::to_owned)
}
