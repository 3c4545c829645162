//! The command `mainstay session label`.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{LabelEntry, ListLabels};
use mainstay_terminal::{Paint, note};
use mainstay_terminal_client::label::{given_label, labeled_text, labels_text};

use super::conditions::SentArgs;

/// Gives an entry of a session's transcript a label, takes it off, or lists them.
///
/// The entry itself never changes. Forks that are made then, and exported files, have the label too.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").args(["text", "remove"]),
    after_help = "Examples:\n  mainstay session label lab 4 'the good one'   # see `session transcript` for the number\n  mainstay session label lab 4 --remove\n  mainstay session label lab                    # what there is"
)]
pub(super) struct Label {
    /// The session with the entry
    session: String,

    /// The number of the entry [default: all that have a label are listed]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), requires = "what")]
    entry: Option<u64>,

    /// What to call it; an empty text takes the label off
    text: Option<String>,

    /// Take the label off
    #[arg(long, requires = "entry")]
    remove: bool,

    /// Print the labels as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sent: SentArgs,
}

impl Label {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let Self { session, entry, text, remove: _, json, sent } = self;
        let Some(entry) = entry else {
            let labels = client.call(ListLabels { session }).await?;
            match json {
                true => super::print_json(&labels)?,
                false => print!("{}", labels_text(&labels, Paint::stdout(), Timestamp::now())),
            }
            return Ok(ExitCode::SUCCESS);
        };
        let label = given_label(text);
        let told = labeled_text(entry, label.as_deref());
        let labeled = client.call(LabelEntry { session, entry: entry - 1, label, sent: sent.sent() }).await?;
        match json {
            true => super::print_json(&labeled)?,
            false => note(&told),
        }
        Ok(ExitCode::SUCCESS)
    }
}
