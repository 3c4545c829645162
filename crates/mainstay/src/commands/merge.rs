//! `mainstay session merge` and `mainstay session cherry-pick`: entries of another session, run in this one or put into its
//! transcript.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{CommandId, Error};
use mainstay_protocol::entries::with_context;
use mainstay_protocol::operations::{InsertEntries, Inserted, MergeSession};
use mainstay_terminal::tell_news;
use mainstay_terminal_client::merge::{Entries, entries, inserted_text, show_merged};
use mainstay_terminal_client::sessions::settle;

use super::arguments::named;

/// Brings entries of another session into this one
///
/// Its cells run here, in their order, up to the first that fails. With --at they are put into the transcript at that place instead, and the
/// session is built anew with them. In an agent's conversation, where no code runs, they always are.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session merge ideas 5-8\n  mainstay session merge ideas 3,7 --into lab\n  mainstay session merge ideas 1-2 --at 4    # behind the first four entries\n\nThe numbers are those of `mainstay session transcript FROM`. An output brings its input.\n\nExit codes: 0 all of it ran to its end, 1 it did not; what was and was not run is said."
)]
pub(super) struct MergeArgs {
    /// The session they are brought from
    from: String,

    /// The numbers of its entries: 3,4,7-9
    #[arg(value_parser = entries)]
    entries: Entries,

    /// Put them behind the first so many entries of the transcript
    #[arg(long, value_name = "ENTRIES")]
    at: Option<u64>,

    #[command(flatten)]
    into: MergeTarget,
}

/// Runs one cell of another session in this one, with those before it that it needs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session cherry-pick ideas 7\n  mainstay session cherry-pick ideas 7 --context 2 --into lab\n\nThe number is that of `mainstay session transcript FROM`. An output brings its input.\n\nExit codes: 0 all of it ran to its end, 1 it did not; what was and was not run is said."
)]
pub(super) struct CherryPick {
    /// The session it is brought from
    from: String,

    /// The number of the entry
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    entry: u64,

    /// With so many entries before it
    #[arg(long, value_name = "ENTRIES", default_value_t = 0)]
    context: u64,

    /// Put them behind the first so many entries of the transcript
    #[arg(long, value_name = "ENTRIES")]
    at: Option<u64>,

    #[command(flatten)]
    into: MergeTarget,
}

/// The session that receives the entries, and how.
#[derive(Debug, Args)]
struct MergeTarget {
    /// The session they run in [default: the most recently active one of this folder]
    #[arg(long, value_name = "SESSION")]
    into: Option<String>,

    /// A name of your own for this command: given again, it goes on where it was cut off, and runs nothing twice
    #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    id: Option<CommandId>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl MergeArgs {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        self.into.bring(client, self.from, self.entries.0, self.at).await
    }
}

impl CherryPick {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let range = with_context(self.entry, self.context);
        self.into.bring(client, self.from, vec![range], self.at).await
    }
}

impl MergeTarget {
    async fn bring(
        self,
        client: &Client,
        from: String,
        entries: Vec<Range<u64>>,
        at: Option<u64>,
    ) -> Result<ExitCode, Error> {
        let into = named(client, self.into).await?;
        if at.is_some() || into.kind.is_agent() {
            let session = into.session.to_string();
            let insert = InsertEntries { session, command: self.id, from, entries, at };
            let Inserted { session, entries, at, asked } = client.call(insert).await?;
            let session = settle(client, session).await?;
            match self.json {
                true => super::print_json(&Inserted { session, entries, at, asked })?,
                false => {
                    println!("{}", inserted_text(entries, at, asked));
                    tell_news(&session);
                }
            }
            return Ok(ExitCode::SUCCESS);
        }
        let session = settle(client, into).await?;
        let session = session.session.to_string();
        let merged = client.call(MergeSession { session, command: self.id, from, entries }).await?;
        if self.json {
            super::print_json(&merged)?;
        } else {
            show_merged(&merged);
        }
        Ok(if merged.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
