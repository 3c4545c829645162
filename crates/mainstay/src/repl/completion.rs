//! What Tab proposes: names in code, asked of the daemon, commands, and what follows a command.
//!
//! The editor waits a moment for the answer, and goes on without it if it takes longer; the menu then opens when it comes.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use mainstay_gateway::rpc::api::{Complete, ListSessions};
use mainstay_gateway::rpc::client::Client;
use mainstay_model::{Error, Seq, TextPosition};
use reedline::{Completer, CompletionResult, CompletionStatus, Span, Suggestion};
use tokio::runtime::Handle;
use tokio::time::timeout;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::command::{self, TABLE};
use crate::terminal::{ago, printable};

/// How long the editor stands still for an answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long an answer is of use.
const GIVE_UP: Duration = Duration::from_millis(1_500);
/// The worker describes so many choices; a narrower question gets the rest described.
const DESCRIBED: usize = 100;
/// Names up to this width are aligned.
const ALIGNED: usize = 24;
/// A choice takes so many columns at most, and never more than the terminal has: the menu would wrap it.
const ROW_COLUMNS: usize = 84;
/// What Tab inserts where nothing stands before it.
const STEP: &str = "    ";

/// Whom to ask, shared with the client, which changes it.
pub(super) type Source = Arc<Mutex<Option<Asked>>>;

/// A daemon and the session completions are for.
#[derive(Clone)]
pub(super) struct Asked {
    /// The daemon.
    pub(super) client: Arc<Client>,
    /// The session's id.
    pub(super) session: String,
    /// The session's newest event that was seen: what comes later may have defined more.
    pub(super) as_of: Seq,
}

/// The completer of the prompt.
pub(super) struct DaemonCompleter {
    source: Source,
    runtime: Handle,
    flight: Option<Flight>,
    answer: Option<Answer>,
}

/// What is proposed for the text from `start` to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Proposal {
    start: usize,
    choices: Vec<Choice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    value: String,
    note: String,
    documentation: Option<String>,
}

/// A question under way.
struct Flight {
    line: String,
    as_of: Seq,
    answer: mpsc::Receiver<Proposal>,
}

/// A question and its answer.
struct Answer {
    line: String,
    as_of: Seq,
    proposal: Proposal,
}

impl DaemonCompleter {
    /// A completer that asks whom `source` names, on `runtime`.
    pub(super) fn new(source: Source, runtime: Handle) -> Self {
        Self { source, runtime, flight: None, answer: None }
    }

    fn asked(&self) -> Option<Asked> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts to ask what could stand at the end of `line`, the text before the cursor.
    fn ask(&mut self, asked: Asked, line: &str, code: &str) {
        let (sender, answer) = mpsc::channel();
        let (line, code) = (line.to_owned(), code.to_owned());
        self.flight = Some(Flight { line: line.clone(), as_of: asked.as_of, answer });
        self.runtime.spawn(async move {
            let proposal = match timeout(GIVE_UP, propose(&asked, &line, code)).await {
                Ok(Ok(proposal)) => proposal,
                Ok(Err(_)) | Err(_) => Proposal { start: line.len(), choices: Vec::new() },
            };
            // Nobody waits for it where the line has changed.
            sender.send(proposal).ok();
        });
    }

    fn land(&mut self, proposal: Proposal) {
        if let Some(flight) = self.flight.take() {
            self.answer = Some(Answer { line: flight.line, as_of: flight.as_of, proposal });
        }
    }

    /// What is known of `line`: its own answer, or one it is a narrower case of.
    fn known(&self, line: &str, now: Seq) -> Option<Proposal> {
        let Answer { line: asked, proposal, .. } =
            self.answer.as_ref().filter(|answer| answer.as_of == now)?;
        if asked == line {
            return Some(proposal.clone());
        }
        let more = line.strip_prefix(asked.as_str())?;
        let is_narrower = more.chars().all(is_name_part) && proposal.choices.len() <= DESCRIBED;
        is_narrower.then(|| narrowed(proposal, &line[proposal.start..]))
    }
}

impl Completer for DaemonCompleter {
    fn complete(&mut self, code: &str, cursor: usize) -> CompletionResult {
        let line = code.get(..cursor).unwrap_or(code);
        if let Some(proposal) = at_once(line) {
            return fresh(&proposal, cursor);
        }
        let Some(asked) = self.asked() else { return CompletionResult::fresh(Vec::new()) };
        if let Some(proposal) = self.known(line, asked.as_of) {
            return fresh(&proposal, cursor);
        }
        if !self.flight.as_ref().is_some_and(|flight| flight.line == line && flight.as_of == asked.as_of) {
            self.ask(asked, line, code);
        }
        match self.flight.as_ref().map(|flight| flight.answer.recv_timeout(PATIENCE)) {
            Some(Ok(proposal)) => {
                let result = fresh(&proposal, cursor);
                self.land(proposal);
                result
            }
            _ => CompletionResult::Pending,
        }
    }

    fn poll_completion(&mut self) -> CompletionStatus {
        let Some(flight) = &self.flight else { return CompletionStatus::Idle };
        match flight.answer.try_recv() {
            Ok(proposal) => {
                self.land(proposal);
                CompletionStatus::Ready
            }
            Err(mpsc::TryRecvError::Empty) => CompletionStatus::Pending,
            Err(mpsc::TryRecvError::Disconnected) => {
                self.flight = None;
                CompletionStatus::Idle
            }
        }
    }
}

/// What needs no asking: indentation, commands, files.
fn at_once(line: &str) -> Option<Proposal> {
    let here = line.rsplit('\n').next().unwrap_or_default();
    if line.len() > here.len() && here.trim().is_empty() {
        let choice = Choice { value: STEP.to_owned(), note: String::new(), documentation: None };
        return Some(Proposal { start: line.len(), choices: vec![choice] });
    }
    if let Some(("FILE", path)) = argument(line) {
        return Some(files(path, line.len()));
    }
    let is_command = line.is_empty() || (line.starts_with([':', '/']) && !line.contains(char::is_whitespace));
    is_command.then(|| commands(line))
}

/// The commands whose names begin with `begun`, with the sign it begins with.
fn commands(begun: &str) -> Proposal {
    let sign = begun.chars().next().unwrap_or(':');
    let choices = TABLE.iter().filter_map(|entry| {
        let name = entry.name.replacen(':', sign.encode_utf8(&mut [0; 4]), 1);
        let end = if entry.argument.is_empty() { "" } else { " " };
        name.starts_with(begun).then(|| Choice {
            value: format!("{name}{end}"),
            note: entry.about.to_owned(),
            documentation: None,
        })
    });
    Proposal { start: 0, choices: choices.collect() }
}

/// What is to follow the command that stands in a line, and what of it is typed.
fn argument(line: &str) -> Option<(&'static str, &str)> {
    let (name, begun) = line.split_once(' ')?;
    Some((command::named(name)?.first_argument(), begun))
}

/// The files and folders whose paths begin with `path`, which ends at `end`.
fn files(path: &str, end: usize) -> Proposal {
    let split = path.rfind('/').map_or(0, |at| at + 1);
    let (folder, begun) = path.split_at(split);
    let listed = std::fs::read_dir(if folder.is_empty() { "." } else { folder });
    let mut choices: Vec<_> = listed
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_folder = entry.path().is_dir();
            let is_wanted = name.starts_with(begun) && (!name.starts_with('.') || begun.starts_with('.'));
            let value = if is_folder { format!("{name}/") } else { name };
            let is_shown = is_folder || [".fsx", ".fs", ".fsscript"].iter().any(|end| value.ends_with(end));
            (is_wanted && is_shown).then_some(Choice { value, note: String::new(), documentation: None })
        })
        .collect();
    choices.sort_by(|a, b| a.value.cmp(&b.value));
    Proposal { start: end - begun.len(), choices }
}

/// Asks the daemon.
async fn propose(asked: &Asked, line: &str, code: String) -> Result<Proposal, Error> {
    match argument(line) {
        Some(("SESSION" | "[SESSION]", begun)) => sessions(asked, begun, line.len()).await,
        Some(_) => Ok(Proposal { start: line.len(), choices: Vec::new() }),
        None if line.starts_with(':') => Ok(Proposal { start: line.len(), choices: Vec::new() }),
        None => names(asked, line, code).await,
    }
}

async fn sessions(asked: &Asked, begun: &str, end: usize) -> Result<Proposal, Error> {
    let all = ListSessions { working_directory: None, live: false, limit: None };
    let sessions = asked.client.call(all).await?;
    let now = mainstay_model::Timestamp::now();
    let choices = sessions
        .iter()
        .filter(|session| session.name.starts_with(begun) && session.session.to_string() != asked.session)
        .map(|session| {
            // A name that several sessions have names none of them.
            let is_shared = sessions.iter().filter(|other| other.name == session.name).count() > 1;
            let value = if is_shared { session.short_id.clone() } else { session.name.clone() };
            let shown = if is_shared { format!("{}  ", session.name) } else { String::new() };
            let note = format!(
                "{shown}{}  {}  {}",
                session.state,
                session.working_directory,
                ago(session.last_activity, now)
            );
            Choice { value, note, documentation: None }
        })
        .collect();
    Ok(Proposal { start: end - begun.len(), choices })
}

async fn names(asked: &Asked, line: &str, code: String) -> Result<Proposal, Error> {
    let cursor = position(line);
    let found = asked.client.call(Complete { session: asked.session.clone(), code, cursor }).await?;
    let start = found.start.map_or(line.len(), |start| offset(line, start));
    let choices = found.items.into_iter().map(|item| {
        let note = match &item.detail {
            Some(detail) => format!("{}  {detail}", item.kind),
            None => item.kind,
        };
        Choice { value: item.label, note, documentation: item.documentation }
    });
    Ok(Proposal { start, choices: choices.collect() })
}

/// Where the end of `text` is: line and column from 1, the column in UTF-16 code units.
fn position(text: &str) -> TextPosition {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().encode_utf16().count() + 1;
    let counted = |count| u32::try_from(count).unwrap_or(u32::MAX);
    TextPosition { line: counted(line), column: counted(column) }
}

/// Where in `text` a position is, in bytes; its end where the position is beyond it.
fn offset(text: &str, position: TextPosition) -> usize {
    let lines_before = (position.line as usize).saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    let mut units = 1;
    for (at, c) in text[line_start..].char_indices() {
        if units >= position.column as usize {
            return line_start + at;
        }
        units += c.len_utf16();
    }
    text.len()
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

fn narrowed(proposal: &Proposal, begun: &str) -> Proposal {
    let begun = begun.to_lowercase();
    let fits = |choice: &&Choice| choice.value.trim_start_matches('`').to_lowercase().starts_with(&begun);
    Proposal { start: proposal.start, choices: proposal.choices.iter().filter(fits).cloned().collect() }
}

/// The answer as the editor takes it: each choice on a line, with its type beside it.
fn fresh(proposal: &Proposal, cursor: usize) -> CompletionResult {
    let width =
        proposal.choices.iter().map(|choice| choice.value.width()).filter(|width| *width <= ALIGNED).max();
    let columns = crossterm::terminal::size()
        .map_or(ROW_COLUMNS, |(columns, _)| usize::from(columns).saturating_sub(2));
    let columns = columns.min(ROW_COLUMNS);
    let span = Span { start: proposal.start.min(cursor), end: cursor };
    let suggestions: Vec<_> = proposal
        .choices
        .iter()
        .map(|choice| Suggestion {
            value: choice.value.clone(),
            display_override: Some(row(choice, width.unwrap_or(0), columns)),
            description: choice.documentation.as_deref().map(|text| printable(text).into_owned()),
            span,
            ..Suggestion::default()
        })
        .collect();
    CompletionResult::fresh(suggestions)
}

/// A choice with its type beside it, in so many columns at most.
fn row(choice: &Choice, width: usize, columns: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(choice.value.width()));
    let row = format!("{}{padding}  {}", choice.value, choice.note.replace('\n', " "));
    let row = printable(row.trim_end());
    if row.width() <= columns {
        return row.into_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    row.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(value: &str) -> Choice {
        Choice { value: value.to_owned(), note: "function  int -> int".to_owned(), documentation: None }
    }

    fn values(proposal: &Proposal) -> Vec<&str> {
        proposal.choices.iter().map(|choice| choice.value.as_str()).collect()
    }

    #[test]
    fn positions_count_utf16_code_units_from_one() {
        assert_eq!(position(""), TextPosition { line: 1, column: 1 });
        assert_eq!(position("a\n🙂é"), TextPosition { line: 2, column: 4 });
    }

    #[test]
    fn an_offset_undoes_a_position() {
        let text = "let é = \"🙂\"\nList.ma";
        for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
            assert_eq!(offset(text, position(&text[..at])), at);
        }
        assert_eq!(offset("ab", TextPosition { line: 9, column: 9 }), 2);
    }

    #[test]
    fn tab_indents_where_nothing_stands_before_it() {
        assert_eq!(
            at_once("let f x =\n  ").map(|proposal| proposal.choices),
            Some(vec![Choice { value: "    ".to_owned(), note: String::new(), documentation: None }])
        );
        assert_eq!(at_once("let f x = "), None);
    }

    #[test]
    fn commands_are_proposed_by_name() {
        assert_eq!(
            at_once(":re").map(|proposal| values(&proposal).join(",")).as_deref(),
            Some(":rename ,:reset,:refresh")
        );
        assert_eq!(
            at_once("/re").map(|proposal| values(&proposal).join(",")).as_deref(),
            Some("/rename ,/reset,/refresh")
        );
        assert_eq!(at_once("//comment\nList.ma"), None);
        assert_eq!(at_once("").map(|proposal| proposal.choices.len()), Some(TABLE.len()));
    }

    #[test]
    fn what_follows_a_command_first_is_told_from_the_table() {
        for line in [":switch la", ":merge la", ":cherry-pick la", "/session la"] {
            assert_eq!(argument(line), Some(("SESSION", "la")));
        }
        assert_eq!(argument(":load a b"), Some(("FILE", "a b")));
        assert_eq!(argument("// fork"), None);
    }

    #[test]
    fn files_are_proposed_by_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.fsx", "ab.txt", ".hidden.fsx"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("args")).unwrap();
        let line = format!(":load {}/a", folder.path().display());
        let proposal = at_once(&line).unwrap();
        assert_eq!(values(&proposal), ["a.fsx", "args/"]);
        assert_eq!(proposal.start, line.len() - 1);
    }

    #[test]
    fn an_answer_serves_while_the_name_grows() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut completer = DaemonCompleter::new(Source::default(), runtime.handle().clone());
        let proposal = Proposal { start: 5, choices: vec![choice("map"), choice("Max"), choice("``my``")] };
        completer.answer = Some(Answer { line: "List.m".to_owned(), as_of: Seq(7), proposal });
        let known = |line| completer.known(line, Seq(7)).map(|proposal| values(&proposal).join(","));
        assert_eq!(known("List.m").as_deref(), Some("map,Max,``my``"));
        assert_eq!(known("List.ma").as_deref(), Some("map,Max"));
        assert_eq!(known("List.m."), None);
        assert_eq!(known("List."), None);
        assert_eq!(completer.known("List.m", Seq(8)), None);
    }

    #[test]
    fn choices_are_shown_with_their_types_beside_them() {
        assert_eq!(row(&choice("map"), 6, 80), "map     function  int -> int");
        assert_eq!(row(&choice("longer than that"), 6, 80), "longer than that  function  int -> int");
        assert_eq!(row(&choice("map"), 6, 12), "map     fun…");
    }
}
