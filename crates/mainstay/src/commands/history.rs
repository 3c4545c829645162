//! The command `mainstay history`, which lists typed lines.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{Error, LineNumber, Timestamp};
use mainstay_protocol::operations::{ListHistory, RemoveHistory};
use mainstay_terminal::{Paint, note, printable};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::history::{newest, show_history};
use mainstay_terminal_client::paths::working_directory;

/// Shows what you submitted at prompts, newest last, and removes it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay history                       what was typed in this folder's sessions last\n  mainstay history --all rate            wherever this was typed\n  mainstay history --json --limit 100 | jq -r '.[].content'\n  mainstay history --remove 12\n\nWords may be parts of words; capitals do not matter. A line that begins with a blank is never kept.\n\nExit codes: 0 there was something, 1 there was nothing."
)]
pub(super) struct History {
    /// Only lines in which each of these stands
    words: Vec<String>,

    /// Of all folders, not only of this one
    #[arg(short, long, conflicts_with = "session")]
    all: bool,

    /// Of this session, whatever its folder
    #[arg(short, long)]
    session: Option<String>,

    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Remove the line with this number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["words", "all", "session", "clear"])]
    remove: Option<u64>,

    /// Remove all lines of this folder; with --all or --session, of all or of that session
    #[arg(long, conflicts_with = "words")]
    clear: bool,

    /// Print the lines as JSON
    #[arg(long)]
    json: bool,
}

impl History {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { words, all, session, limit, remove, clear, json } = self;
        let connection = connect_or_start(home, "cli").await?;
        let client = &connection.client;
        if let Some(number) = remove {
            let number = Some(LineNumber(number));
            return removed(client, RemoveHistory { number, folder: None, session: None }).await;
        }
        let is_of_folder = !all && session.is_none();
        let folder = if is_of_folder { Some(working_directory()?.display().to_string()) } else { None };
        if clear {
            return removed(client, RemoveHistory { number: None, folder, session }).await;
        }
        let list = ListHistory { folder, session, words, before: None, after: None, limit: None };
        let lines = newest(client, list, limit as usize).await?;
        if json {
            super::print_json(&lines)?;
        } else {
            show_history(&lines, Paint::stdout(), Timestamp::now());
        }
        Ok(if lines.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Removes lines; on a terminal only if that is confirmed.
async fn removed(client: &Client, remove: RemoveHistory) -> Result<ExitCode, Error> {
    let what = match &remove {
        RemoveHistory { number: Some(number), .. } => format!("line {number}"),
        RemoveHistory { session: Some(session), .. } => format!("all lines of session {session}"),
        RemoveHistory { folder: Some(folder), .. } => format!("all lines of {folder}"),
        RemoveHistory { .. } => "all lines of all folders".to_owned(),
    };
    if std::io::stdin().is_terminal() && !is_confirmed(&format!("Remove {what} from the history?")) {
        return Ok(ExitCode::FAILURE);
    }
    let removed = client.call(remove).await?.removed;
    note(&match removed {
        1 => "1 line was removed".to_owned(),
        lines => format!("{lines} lines were removed"),
    });
    Ok(if removed == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn is_confirmed(question: &str) -> bool {
    eprint!("{} [y/N] ", printable(question));
    std::io::stderr().flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
