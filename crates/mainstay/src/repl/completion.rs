//! What Tab proposes: names in code, asked of the daemon, commands, and what follows a command; to an agent its own commands, skills and prompts,
//! and files.
//!
//! The editor waits a moment for the answer, and goes on without it if it takes longer; the menu then opens when it comes.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use mainstay_gateway::view::{EntryView, SessionView};
use mainstay_model::{Error, Role, Seq, SessionId, TextPosition};
use mainstay_rpc::api::{AskAgent, Complete, GetLineage, ListSessions};
use mainstay_rpc::client::Client;
use mainstay_runner::AgentQuestion;
use reedline::{Completer, CompletionResult, CompletionStatus, Span, Suggestion};
use tokio::runtime::Handle;
use tokio::time::timeout;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use serde_json::Value;

use super::agent_start::start;
use super::command::{self, ArgumentKind, PromptLanguage, table};
use super::mentions;
use crate::commands::transcript::{EntrySelection, for_each_entry, role_words};
use crate::terminal::{ago, printable};

/// How long the editor stands still for an answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long an agent's names of commands are: it may have to be started first.
const AGENT_GIVE_UP: Duration = Duration::from_secs(15);
/// How long an answer is of use.
const GIVE_UP: Duration = Duration::from_millis(1_500);
/// The worker describes so many choices; a narrower question gets the rest described.
const DESCRIBED: usize = 100;
/// So many entries are proposed; a number that has begun gets others.
const ENTRIES: u64 = 50;
/// The options whose values are numbers of entries of this session.
const ENTRY_OPTIONS: [&str; 2] = ["--at", "--before"];
/// Names up to this width are aligned.
const ALIGNED: usize = 24;
/// A choice takes so many columns at most, and never more than the terminal has: the menu would wrap it.
const ROW_COLUMNS: usize = 84;
/// What Tab inserts where nothing stands before it.
const STEP: &str = "    ";

/// Whom to ask, shared with the client, which changes it.
pub(super) type Source = Arc<Mutex<Option<CompletionContext>>>;

/// A daemon and the session completions are for.
#[derive(Clone)]
pub(super) struct CompletionContext {
    /// The client that asks the daemon.
    pub(super) client: Arc<Client>,
    /// The session that completes the code.
    pub(super) session: SessionId,
    /// The folder it works in.
    pub(super) folder: PathBuf,
    /// The session's newest event that was seen: what comes later may have defined more.
    pub(super) as_of: Seq,
}

/// The completer of the prompt.
pub(super) struct DaemonCompleter {
    source: Source,
    tongue: PromptLanguage,
    runtime: Handle,
    flight: Option<PendingQuery>,
    answer: Option<Answer>,
}

/// What is proposed for the text from `start` to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Proposal {
    start: usize,
    choices: Vec<Choice>,
    /// More is proposed for, or said of, what is typed further.
    is_partial: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    value: String,
    note: String,
    documentation: Option<String>,
}

/// A question under way.
struct PendingQuery {
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

impl Choice {
    /// One of which nothing more is said.
    fn plain(value: String) -> Self {
        Self { value, note: String::new(), documentation: None }
    }
}

impl Proposal {
    /// Proposes nothing for the line.
    const fn none(line: &str) -> Self {
        Self::whole(line.len(), Vec::new())
    }

    /// Proposes these choices, which are the complete list.
    const fn whole(start: usize, choices: Vec<Choice>) -> Self {
        Self { start, choices, is_partial: false }
    }
}

impl DaemonCompleter {
    /// A completer that asks whom `source` names, on `runtime`.
    pub(super) fn new(source: Source, tongue: PromptLanguage, runtime: Handle) -> Self {
        Self { source, tongue, runtime, flight: None, answer: None }
    }

    fn asked(&self) -> Option<CompletionContext> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts to ask what could stand at the end of `line`, the text before the cursor.
    fn ask(&mut self, asked: CompletionContext, line: &str, code: &str) {
        let (sender, answer) = mpsc::channel();
        let (line, code, tongue) = (line.to_owned(), code.to_owned(), self.tongue);
        self.flight = Some(PendingQuery { line: line.clone(), as_of: asked.as_of, answer });
        let limit = if is_of_agent(&line, tongue) { AGENT_GIVE_UP } else { GIVE_UP };
        self.runtime.spawn(async move {
            let proposal = match timeout(limit, propose(&asked, tongue, &line, code)).await {
                Ok(Ok(proposal)) => proposal,
                // What is known without asking is worth the more.
                Ok(Err(_)) | Err(_) if is_of_agent(&line, tongue) => commands(&line, tongue),
                Ok(Err(_)) | Err(_) => Proposal::none(&line),
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
        let is_narrower = more.chars().all(is_name_part) && !proposal.is_partial;
        is_narrower.then(|| narrowed(proposal, &line[proposal.start..]))
    }
}

impl Completer for DaemonCompleter {
    fn complete(&mut self, code: &str, cursor: usize) -> CompletionResult {
        let line = code.get(..cursor).unwrap_or(code);
        if let Some(proposal) = at_once(line, self.tongue) {
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
fn at_once(line: &str, tongue: PromptLanguage) -> Option<Proposal> {
    let here = line.rsplit('\n').next().unwrap_or_default();
    if line.len() > here.len() && here.trim().is_empty() {
        let choice = Choice { value: STEP.to_owned(), note: String::new(), documentation: None };
        return Some(Proposal::whole(line.len(), vec![choice]));
    }
    if let Some(CompletionTarget::File { path, endings }) = sought(line, tongue) {
        return Some(files(path, endings, line.len()));
    }
    if is_of_agent(line, tongue) || tongue == PromptLanguage::Words && mentions::begun(line).is_some() {
        return None;
    }
    let is_command = line.is_empty() || (line.starts_with([':', '/']) && !line.contains(char::is_whitespace));
    is_command.then(|| commands(line, tongue))
}

/// Whether it is the name of a command that may be an agent's own.
fn is_of_agent(line: &str, tongue: PromptLanguage) -> bool {
    tongue == PromptLanguage::Words && line.starts_with('/') && !line.contains(char::is_whitespace)
}

/// The commands whose names begin with `begun`, with the sign it begins with.
fn commands(begun: &str, tongue: PromptLanguage) -> Proposal {
    let sign = begun.chars().next().unwrap_or(':');
    let choices = table(tongue).filter_map(|entry| {
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

/// What is to follow the command that stands in a line, with what of it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionTarget<'a> {
    /// Nothing that could be proposed.
    Nothing,
    /// The name of another session.
    Session { begun: &'a str },
    /// Another session, or the numbers of its entries where it is named.
    EntriesOf { text: &'a str },
    /// The number of an entry of this session.
    Entry { begun: &'a str },
    /// The number of an entry that a tool gave.
    ToolResult { begun: &'a str },
    /// A file that ends so, or a folder.
    File { path: &'a str, endings: &'static [&'static str] },
}

/// What is sought at the end of a line; none where it begins with no command.
fn sought(line: &str, tongue: PromptLanguage) -> Option<CompletionTarget<'_>> {
    let (name, text) = line.split_once(' ')?;
    let entry = command::named(name, tongue)?;
    if let Some(begun) = ENTRY_OPTIONS.iter().find_map(|option| option_begun(entry, option, text)) {
        return Some(CompletionTarget::Entry { begun });
    }
    Some(match entry.first {
        ArgumentKind::Free => CompletionTarget::Nothing,
        ArgumentKind::Session => CompletionTarget::Session { begun: text },
        ArgumentKind::EntriesOf => CompletionTarget::EntriesOf { text },
        ArgumentKind::Entry => CompletionTarget::Entry { begun: text },
        ArgumentKind::ToolResult => CompletionTarget::ToolResult { begun: text },
        ArgumentKind::Script => CompletionTarget::File { path: text, endings: &[".fsx", ".fs", ".fsscript"] },
        ArgumentKind::SessionFile => CompletionTarget::File { path: text, endings: &[".jsonl"] },
        ArgumentKind::File => CompletionTarget::File { path: text, endings: &[""] },
        ArgumentKind::Folder => CompletionTarget::File { path: text, endings: &[] },
    })
}

/// What is typed of an option's value at the end of `text`, where the command has that option.
fn option_begun<'a>(entry: &command::Entry, option: &str, text: &'a str) -> Option<&'a str> {
    let (before, begun) = text.rsplit_once([' ', '='])?;
    let is_meant = entry.argument.contains(option) && before.trim_end().ends_with(option);
    is_meant.then_some(begun)
}

/// The files and folders whose paths begin with `path`, which ends at `end`.
fn files(path: &str, endings: &[&str], end: usize) -> Proposal {
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
            let is_shown = is_folder || endings.iter().any(|end| value.ends_with(end));
            (is_wanted && is_shown).then_some(Choice { value, note: String::new(), documentation: None })
        })
        .collect();
    choices.sort_by(|a, b| a.value.cmp(&b.value));
    Proposal::whole(end - begun.len(), choices)
}

/// Asks the daemon for completions of code.
async fn propose(
    asked: &CompletionContext,
    tongue: PromptLanguage,
    line: &str,
    code: String,
) -> Result<Proposal, Error> {
    if is_of_agent(line, tongue) {
        return agent_commands(asked, line).await;
    }
    if let Some((start, typed)) = mentions::begun(line).filter(|_| tongue == PromptLanguage::Words) {
        let found = mentions::found(&asked.folder, typed).await;
        let choices = found.iter().map(|path| Choice::plain(mentions::mention(path))).collect();
        return Ok(Proposal { start, choices, is_partial: true });
    }
    match sought(line, tongue) {
        Some(CompletionTarget::Session { begun }) => {
            Ok(sessions(&all_sessions(asked).await?, asked, begun, line.len()))
        }
        Some(CompletionTarget::EntriesOf { text }) => {
            let all = all_sessions(asked).await?;
            match named_in(&all, text) {
                Some((session, numbers)) => {
                    entries(asked, session, last_number(numbers), line.len(), |_| true).await
                }
                None => Ok(sessions(&all, asked, text, line.len())),
            }
        }
        Some(CompletionTarget::Entry { begun }) => {
            entries(asked, asked.session, begun, line.len(), |_| true).await
        }
        Some(CompletionTarget::ToolResult { begun }) => {
            let is_result = |entry: &EntryView| entry.placed.entry.role == Role::ToolResult;
            entries(asked, asked.session, begun, line.len(), is_result).await
        }
        Some(CompletionTarget::Nothing | CompletionTarget::File { .. }) => Ok(Proposal::none(line)),
        None if line.starts_with(':') || tongue == PromptLanguage::Words => Ok(Proposal::none(line)),
        None => names(asked, line, code).await,
    }
}

/// Our commands and the agent's: its extensions' own, its prompts and its skills. Where it is at rest it is started, for only it knows them.
async fn agent_commands(asked: &CompletionContext, line: &str) -> Result<Proposal, Error> {
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

async fn all_sessions(asked: &CompletionContext) -> Result<Vec<SessionView>, Error> {
    asked.client.call(ListSessions::default()).await
}

fn sessions(sessions: &[SessionView], asked: &CompletionContext, begun: &str, end: usize) -> Proposal {
    let now = mainstay_model::Timestamp::now();
    let choices = sessions
        .iter()
        .filter(|session| session.name.starts_with(begun) && session.session != asked.session)
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
    Proposal::whole(end - begun.len(), choices)
}

/// The session whose name, or the end of whose id, stands before the numbers of entries, and what stands behind it. Its name may
/// have blanks in it: the longest that fits is meant.
fn named_in<'a>(sessions: &[SessionView], text: &'a str) -> Option<(SessionId, &'a str)> {
    let behind = |session: &SessionView, name: &str| {
        let numbers = text.strip_prefix(name)?.strip_prefix(' ')?;
        let is_list = numbers.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-' | ' '));
        is_list.then_some((session.session, numbers))
    };
    let named = sessions.iter().flat_map(|session| {
        let quoted = format!("\"{}\"", session.name);
        [&session.name, &quoted, &session.short_id]
            .into_iter()
            .filter_map(|name| behind(session, name))
            .collect::<Vec<_>>()
    });
    named.min_by_key(|(_, numbers)| numbers.len())
}

/// What is typed of the last number in a list of them.
fn last_number(numbers: &str) -> &str {
    numbers.rsplit([',', '-', ' ']).next().unwrap_or_default()
}

/// The numbers of a session's entries that begin with `begun`, the last ones first.
async fn entries(
    asked: &CompletionContext,
    session: SessionId,
    begun: &str,
    end: usize,
    is_wanted: fn(&EntryView) -> bool,
) -> Result<Proposal, Error> {
    let relatives = asked.client.call(GetLineage { session: session.to_string() }).await?;
    let found = relatives.iter().find(|relative| relative.session.session == session);
    let (runs, is_partial) = numbers(begun, found.map_or(0, |relative| relative.entries), ENTRIES);
    let mut choices = Vec::new();
    for Range { start, end } in runs {
        let wanted = EntrySelection { from: start - 1, count: Some(end - start), full: false };
        let mut run = Vec::new();
        for_each_entry(&asked.client, session, wanted, |number, entry| {
            if is_wanted(entry) {
                run.push(Choice { value: number.to_string(), note: entry_note(entry), documentation: None });
            }
            Ok(())
        })
        .await?;
        choices.extend(run.into_iter().rev());
    }
    Ok(Proposal { start: end - begun.len(), choices, is_partial })
}

/// Which of the numbers from 1 to `total` begin with these digits: runs of them, the last numbers first, and whether there are
/// more than so many.
fn numbers(begun: &str, total: u64, most: u64) -> (Vec<Range<u64>>, bool) {
    let all = 1..total.saturating_add(1);
    let of_length = |digits: u32, prefix: u64| {
        let unit = 10_u64.checked_pow(digits)?;
        let (start, end) = (prefix.checked_mul(unit)?, (prefix + 1).checked_mul(unit)?);
        Some(start..end.min(total.saturating_add(1)))
    };
    let runs = match begun.parse::<u64>() {
        _ if begun.is_empty() => Some(all).into_iter().filter(|all| !all.is_empty()).collect(),
        Ok(prefix) if !begun.starts_with(['0', '+']) => {
            let runs = (0..).map_while(|digits| of_length(digits, prefix));
            let mut runs: Vec<_> = runs.take_while(|run| !run.is_empty()).collect();
            runs.reverse();
            runs
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let (mut kept, mut room) = (Vec::new(), most);
    let count = |run: &Range<u64>| run.end - run.start;
    let is_partial = runs.iter().map(count).sum::<u64>() > most;
    for run in runs {
        let taken = count(&run).min(room);
        room -= taken;
        if taken > 0 {
            kept.push(run.end - taken..run.end);
        }
    }
    (kept, is_partial)
}

/// How an entry begins.
fn entry_note(view: &EntryView) -> String {
    let entry = &view.placed.entry;
    let shown = entry.shown(entry.content.beginning());
    let line = shown.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_end();
    let label = view.label.as_ref().map(|label| format!("  [{label}]")).unwrap_or_default();
    match entry.role {
        Role::Input => format!("> {line}{label}"),
        Role::Output => format!("  {line}{label}"),
        Role::System
        | Role::User
        | Role::Assistant
        | Role::Thinking
        | Role::ToolCall
        | Role::ToolResult
        | Role::Summary => format!("{}: {line}{label}", role_words(entry.role)),
    }
}

async fn names(asked: &CompletionContext, line: &str, code: String) -> Result<Proposal, Error> {
    let cursor = position(line);
    let found = asked.client.call(Complete { session: asked.session.to_string(), code, cursor }).await?;
    let start = found.start.map_or(line.len(), |start| offset(line, start));
    let choices = found.items.into_iter().map(|item| {
        let note = match &item.detail {
            Some(detail) => format!("{}  {detail}", item.kind),
            None => item.kind,
        };
        Choice { value: item.label, note, documentation: item.documentation }
    });
    let choices: Vec<_> = choices.collect();
    let is_partial = choices.len() > DESCRIBED;
    Ok(Proposal { start, choices, is_partial })
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
    Proposal::whole(proposal.start, proposal.choices.iter().filter(fits).cloned().collect())
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

    fn at_once(line: &str) -> Option<Proposal> {
        super::at_once(line, PromptLanguage::Fsharp)
    }

    fn sought(line: &str) -> Option<CompletionTarget<'_>> {
        super::sought(line, PromptLanguage::Fsharp)
    }

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
            Some(":rename ,:reset,:rebuild ,:refresh ")
        );
        assert_eq!(
            at_once("/re").map(|proposal| values(&proposal).join(",")).as_deref(),
            Some("/rename ,/reset,/rebuild ,/refresh ")
        );
        assert_eq!(at_once("//comment\nList.ma"), None);
        assert_eq!(
            at_once("").map(|proposal| proposal.choices.len()),
            Some(table(PromptLanguage::Fsharp).count())
        );
    }

    #[test]
    fn what_follows_a_command_first_is_told_from_the_table() {
        for line in [":switch la", "/session la", ":delete-session la", ":stats la"] {
            assert_eq!(sought(line), Some(CompletionTarget::Session { begun: "la" }), "{line}");
        }
        for line in [":merge la 3", "/cherry-pick la 3"] {
            assert_eq!(sought(line), Some(CompletionTarget::EntriesOf { text: "la 3" }), "{line}");
        }
        for line in [
            ":fork 3",
            "/transcript 3",
            ":merge la 1 --at 3",
            ":merge la 1 --at=3",
            ":compact So. --before 3",
        ] {
            assert_eq!(sought(line), Some(CompletionTarget::Entry { begun: "3" }), "{line}");
        }
        for line in [":rename 3", ":search so --at 3", ":quit "] {
            assert_eq!(sought(line), Some(CompletionTarget::Nothing), "{line}");
        }
        let file = |line| match sought(line) {
            Some(CompletionTarget::File { path, endings }) => (path, endings.len()),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(file(":load a b"), ("a b", 3));
        assert_eq!(file(":import a b"), ("a b", 1));
        assert_eq!((file(":export a b"), file("/backup a")), (("a b", 1), ("a", 0)));
        assert_eq!(sought("// fork"), None);
        assert_eq!(sought(":fork"), None);
    }

    #[test]
    fn numbers_begin_with_what_was_typed_and_the_last_ones_come_first() {
        let all = |begun, total| numbers(begun, total, 1000);
        assert_eq!(all("", 0), (vec![], false));
        assert_eq!(all("1", 123), (vec![100..124, 10..20, 1..2], false));
        for none in ["0", "+1", "x", "124", "99999999999999999999"] {
            assert_eq!(all(none, 123), (vec![], false), "{none}");
        }
        assert_eq!(numbers("1", 123, 30), (vec![100..124, 14..20], true));
        assert_eq!(numbers("1", u64::MAX, 1).0.len(), 1);
    }

    #[test]
    fn numbers_are_those_that_begin_so() {
        for (total, most) in [(0, 5), (1, 0), (7, 5), (100, 12), (1234, 40), (1234, 2000)] {
            for begun in ["", "0", "1", "9", "10", "12", "99", "123", "1234", "12345"] {
                let fits = |number: &u64| number.to_string().starts_with(begun);
                let wanted: Vec<u64> = (1..=total).rev().filter(fits).collect();
                let expected: Vec<u64> = wanted.iter().copied().take(most as usize).collect();
                let (runs, is_partial) = numbers(begun, total, most);
                let got: Vec<u64> = runs.into_iter().flat_map(Iterator::rev).collect();
                assert_eq!((got, is_partial), (expected, wanted.len() as u64 > most), "{begun} of {total}");
            }
        }
    }

    #[test]
    fn a_list_of_numbers_is_completed_at_its_last() {
        assert_eq!(["", "3", "3,", "3, 4", "7-1"].map(last_number), ["", "3", "", "4", "1"]);
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
        let mut completer =
            DaemonCompleter::new(Source::default(), PromptLanguage::Fsharp, runtime.handle().clone());
        let proposal = Proposal::whole(5, vec![choice("map"), choice("Max"), choice("``my``")]);
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
