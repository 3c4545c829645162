//! The command `mainstay history`, which lists typed lines.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{Content, Error, HistoryLine, LineNumber, Timestamp};
use mainstay_protocol::operations::{ListHistory, RemoveHistory};
use mainstay_terminal::{Paint, Tone, ago, note, printable};

use super::target::working_directory;
use crate::connect::connect_or_start;

/// How many of a line's own lines are shown.
const LINES: usize = 10;

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

/// The newest lines, the newest last.
pub(crate) async fn newest(
    client: &Client,
    list: ListHistory,
    limit: usize,
) -> Result<Vec<HistoryLine>, Error> {
    let mut lines: Vec<HistoryLine> = Vec::new();
    while lines.len() < limit {
        let before = lines.last().map(|line| line.number);
        let page = ListHistory { before, limit: Some(limit - lines.len()), ..list.clone() };
        let found = client.call(page).await?.lines;
        if found.is_empty() {
            break;
        }
        lines.extend(found);
    }
    lines.reverse();
    Ok(lines)
}

/// Shows lines of a history.
pub(crate) fn show_history(lines: &[HistoryLine], paint: Paint, now: Timestamp) {
    lines.iter().for_each(|line| print!("{}", line_text(line, paint, now)));
    if lines.is_empty() {
        note("nothing was found");
    }
}

/// A line, with its number, and how long ago it was.
fn line_text(line: &HistoryLine, paint: Paint, now: Timestamp) -> String {
    let text = printable(line.content.beginning().trim_end());
    let all: Vec<&str> = text.lines().collect();
    let number = line.number.to_string();
    let mut told = String::new();
    for (index, shown) in all.iter().take(LINES).enumerate() {
        let mark = match index {
            0 => paint.tone(Tone::Name, &format!("{number:>5}")),
            _ => " ".repeat(number.len().max(5)),
        };
        let moment = if index == 0 {
            paint.tone(Tone::Faint, &format!("  {}", ago(line.at, now)))
        } else {
            String::new()
        };
        told.push_str(&format!("{mark}  {shown}{moment}\n"));
    }
    let untold = all.len().saturating_sub(LINES);
    let more = match &line.content {
        Content::Object { bytes, .. } => Some(format!("{bytes} bytes in all")),
        Content::Text(_) if untold > 0 => Some(format!("{untold} lines more")),
        Content::Text(_) => None,
    };
    if let Some(more) = more {
        let blank = " ".repeat(number.len().max(5));
        told.push_str(&format!("{blank}  {}\n", paint.tone(Tone::Faint, &format!("… {more}"))));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let line = HistoryLine {
            number: LineNumber(7),
            at: "2026-02-13T13:29:20Z".parse().unwrap(),
            folder: Some("/lab".to_owned()),
            session: None,
            content: Content::of(text.to_owned()).0,
        };
        line_text(&line, Paint::plain(), "2026-02-13T13:30:20Z".parse().unwrap())
    }

    #[test]
    fn a_line_is_numbered_and_large_ones_are_cut() {
        insta::assert_snapshot!(told("let f x =\n    x + 1"), @"
        7  let f x =  1 min ago
               x + 1
        ");
        insta::assert_snapshot!(told(&"line\n".repeat(12)), @"
        7  line  1 min ago
           line
           line
           line
           line
           line
           line
           line
           line
           line
           … 2 lines more
        ");
        insta::assert_snapshot!(told(&"let x = 1; ".repeat(2000)).lines().last().unwrap(), @"       … 22000 bytes in all");
    }
}
