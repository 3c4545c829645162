//! The command `mainstay search`, which finds entries.

use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use mainstay_home::Home;
use mainstay_model::{Error, Role, SessionKind};
use mainstay_protocol::operations::SearchEntries;
use mainstay_terminal::{Paint, note};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::paths::working_directory;
use mainstay_terminal_client::search::show_found;

use super::timestamps::moment;

/// Finds what was said in sessions, in cells and in conversations with agents, by the words in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay search Dictionary\n  mainstay search --here --role output 'barks \"in a row\" begin*'\n  mainstay search --since 7d --json timeout | jq -r '.[].session'\n\nAll words must be in an entry; capitals do not matter. Words in quotation marks stand in a row, and a star lets a word go on.\n\nExit codes: 0 something was found, 1 nothing was."
)]
pub(super) struct Search {
    /// The words to be found
    #[arg(required = true)]
    words: Vec<String>,

    /// Only in this session
    #[arg(short, long)]
    session: Option<String>,

    /// Only in sessions of this folder
    #[arg(long)]
    here: bool,

    /// Only in sessions of this kind: fsharp, agent
    #[arg(short, long, value_parser = |text: &str| SessionKind::new(text))]
    kind: Option<SessionKind>,

    /// Only what plays this part
    #[arg(long, value_parser = role_parser())]
    role: Option<Role>,

    /// Only what was said then or later: 7d, 12h, 2026-11-01, 2026-11-01T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = |text: &str| moment(text, Timestamp::now()))]
    since: Option<Timestamp>,

    /// Only what was said before then
    #[arg(long, value_name = "TIME", value_parser = |text: &str| moment(text, Timestamp::now()))]
    until: Option<Timestamp>,

    /// At most so many, at most 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,

    /// Without the first so many
    #[arg(long, default_value_t = 0)]
    offset: usize,

    /// Print the entries as JSON
    #[arg(long)]
    json: bool,
}

/// Reads a role as people write it.
fn role_parser() -> impl TypedValueParser<Value = Role> {
    let of =
        |text: String| Role::ALL.into_iter().find(|role| role_argument(*role) == text).ok_or("no such role");
    PossibleValuesParser::new(Role::ALL.map(role_argument)).try_map(of)
}

const fn role_argument(role: Role) -> &'static str {
    match role {
        Role::ToolCall => "tool-call",
        Role::ToolResult => "tool-result",
        _ => role.name(),
    }
}

impl Search {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { words, session, here, kind, role, since, until, limit, offset, json } = self;
        let limit = usize::from(limit);
        let connection = connect_or_start(home, "cli").await?;
        let working_directory = if here { Some(working_directory()?.display().to_string()) } else { None };
        let search = SearchEntries {
            words: words.join(" "),
            session,
            working_directory,
            kind,
            roles: role.into_iter().collect(),
            since,
            until,
            offset,
            limit: Some(limit),
        };
        let found = connection.client.call(search).await?;
        if json {
            super::print_json(&found)?;
        } else {
            show_found(&found, Paint::stdout(), Timestamp::now());
            if !found.is_empty() && found.len() == limit {
                note(&format!("more with --offset {}", offset + limit));
            }
        }
        Ok(if found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
