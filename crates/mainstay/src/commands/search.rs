//! The command `mainstay search`, which finds entries.

use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use mainstay_home::Home;
use mainstay_model::{Error, Role, SessionKind, Validity};
use mainstay_protocol::operations::SearchEntries;
use mainstay_protocol::view::FoundView;
use mainstay_terminal::{Paint, Tone, ago, note, printable};

use super::target::working_directory;
use super::timestamps::moment;
use super::transcript::role_mark;
use crate::connect::connect_or_start;

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

/// Shows what was found, the best first.
pub(crate) fn show_found(found: &[FoundView], paint: Paint, now: Timestamp) {
    found.iter().for_each(|found| print!("{}", found_text(found, paint, now)));
    if found.is_empty() {
        note("nothing was found");
    }
}

/// What was found, in two lines.
fn found_text(found: &FoundView, paint: Paint, now: Timestamp) -> String {
    let FoundView { short_id, name, index, role, at, snippet, working_directory, validity, .. } = found;
    let place = match index {
        Some(index) => format!("entry {}", index + 1),
        None => "no longer in its transcript".to_owned(),
    };
    let mark = role_mark(*role);
    let facts = format!("{place}  {working_directory}  {}", ago(*at, now));
    let validity = validity.filter(|_| *role == Role::Output).and_then(Validity::mark);
    let validity =
        validity.map_or_else(String::new, |mark| format!("    {}\n", paint.tone(Tone::Warning, mark)));
    format!(
        "{}  {name}  {}\n  {mark} {}\n{validity}",
        paint.tone(Tone::Name, short_id),
        paint.tone(Tone::Faint, &facts),
        printable(snippet),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_says_where_it_is() {
        let mut found = FoundView {
            session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            short_id: "a1b2c3d4".to_owned(),
            name: "lab".to_owned(),
            kind: SessionKind::fsharp(),
            working_directory: "/code/lab".to_owned(),
            index: Some(6),
            role: Role::Input,
            at: "2026-02-13T13:29:20Z".parse().unwrap(),
            snippet: "… let dog = 1 …".to_owned(),
            validity: None,
        };
        let now = "2026-02-13T13:30:20Z".parse().unwrap();
        insta::assert_snapshot!(found_text(&found, Paint::plain(), now), @"
        a1b2c3d4  lab  entry 7  /code/lab  1 min ago
          > … let dog = 1 …
        ");
        found.role = Role::ToolResult;
        insta::assert_snapshot!(found_text(&found, Paint::plain(), now), @"
        a1b2c3d4  lab  entry 7  /code/lab  1 min ago
          tool result: … let dog = 1 …
        ");
    }
}
