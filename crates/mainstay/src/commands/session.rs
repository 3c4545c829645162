//! The commands below `mainstay session`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_gateway::view::{Orphaned, SessionView, StartupView};
use mainstay_model::session::Parent;
use mainstay_model::{CommandId, Error, Principal, SessionId, SessionState, Timestamp, ValidityCounts};
use mainstay_rpc::api::{CreateSession, GetSession, ListSessions, RenameSession, StopSession};
use mainstay_rpc::client::Client;

use super::compact::Compact;
use super::conditions::SentArgs;
use super::delete::Delete;
use super::event_table::EventTable;
use super::events::for_each_event;
use super::fault::{HardReset, fault_text};
use super::fork::Fork;
use super::label::Label;
use super::lineage::Lineage;
use super::merge::{CherryPick, MergeArgs};
use super::rebuild::Rebuild;
use super::refresh::Refresh;
use super::reset::Reset;
use super::stats::Stats;
use super::target::{create, most_recent, project_at, settle, working_directory};
use super::transcript::Transcript;
use crate::connect::connect_or_start;
use crate::home::Home;
use crate::project::root_of;
use crate::terminal::{Paint, Tone, ago, counted, printable};

const EXAMPLES: &str = "\
Examples:
  mainstay session list --here          those of this folder
  mainstay session new --name lab       a new one
  mainstay session show lab             its story
  mainstay session fork lab             another that begins where it is
  mainstay session reset --hard lab     without its definitions, and with another worker";

/// List, create, fork, merge, show, stop, rename, reset and delete sessions.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// List sessions, most recently active first
    #[command(
        after_help = "Examples:\n  mainstay session list\n  mainstay session list --here --live --json\n  mainstay session list --project ~/lab/src"
    )]
    List {
        /// Only those of this folder
        #[arg(long, conflicts_with = "project")]
        here: bool,
        /// Only those of the project that this folder, or the current one, belongs to: the nearest folder upwards with a `.git`,
        /// `*.sln`, `*.fsproj`, `package.json`, `pyproject.toml` or the like, and all below it
        #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
        project: Option<PathBuf>,
        /// Only those that are not at rest
        #[arg(long)]
        live: bool,
        /// Print the sessions as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a session and wait until it is ready
    #[command(
        after_help = "Examples:\n  mainstay session new\n  mainstay session new --name lab --directory ~/lab"
    )]
    New {
        /// What people call it [default: the folder's name]
        #[arg(long)]
        name: Option<String>,
        /// What does its work
        #[arg(short, long, default_value = "fsharp")]
        kind: String,
        /// The folder its code runs in [default: this one]
        #[arg(long, value_name = "FOLDER")]
        directory: Option<PathBuf>,
        /// The project it is for, or its folder [default: that of its own folder, where it has one]
        #[arg(short, long, value_name = "PATH")]
        project: Option<PathBuf>,
        /// For no project, whatever lies in its folder
        #[arg(long, conflicts_with = "project")]
        no_project: bool,
        /// Options of the F# compiler, parted by spaces, besides those of the settings: "--define:X --nowarn:25"
        #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
        fsi_args: Option<String>,
        /// A name of your own for this command: given again, it gets the same session and creates no other
        #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
        id: Option<CommandId>,
        /// Print the session as JSON
        #[arg(long)]
        json: bool,
    },
    Fork(Fork),
    Merge(MergeArgs),
    CherryPick(CherryPick),
    Compact(Compact),
    Label(Label),
    Refresh(Refresh),
    Rebuild(Rebuild),
    Transcript(Transcript),
    Lineage(Lineage),
    Stats(Stats),
    /// Show a session and its story
    #[command(after_help = "Examples:\n  mainstay session show\n  mainstay session show --json lab")]
    Show {
        /// The session [default: the most recently active one of this folder]
        session: Option<String>,
        /// Print JSON: the session, without its story
        #[arg(long)]
        json: bool,
    },
    /// Put a session to rest; it is there again when it is next used
    #[command(after_help = "Examples:\n  mainstay session stop\n  mainstay session stop lab")]
    Stop {
        /// The session [default: the most recently active one of this folder]
        session: Option<String>,
        #[command(flatten)]
        sent: SentArgs,
    },
    /// Drop a session's definitions and wait until it is ready again
    Reset(Reset),
    /// Give a session another name
    #[command(after_help = "Example:\n  mainstay session rename lab workshop")]
    Rename {
        /// The session to be renamed
        session: String,
        /// The new name of the session
        name: String,
        #[command(flatten)]
        sent: SentArgs,
    },
    Delete(Delete),
}

impl SessionArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let client = &connection.client;
        match self.command {
            SessionCommand::List { here, project, live, json } => {
                let folder = here.then(working_directory).transpose()?;
                let within = project.map(|folder| existing(&folder, "project")).transpose()?;
                let within = within.as_deref().map(root_of);
                let path = |folder: &Path| folder.display().to_string();
                let (working_directory, within) = (folder.as_deref().map(path), within.map(path));
                list(client, ListSessions { working_directory, within, live, limit: None }, json).await?;
            }
            SessionCommand::New { name, kind, directory, project, no_project, fsi_args, id, json } => {
                let folder = match directory {
                    Some(folder) => existing(&folder, "directory")?,
                    None => working_directory()?,
                };
                let project = project.as_deref().map(project_at).transpose()?;
                let kind = mainstay_model::SessionKind::new(kind)?;
                let working_directory = folder.display().to_string();
                let new = CreateSession {
                    command: id,
                    kind,
                    working_directory,
                    project,
                    no_project,
                    fsi_args,
                    name,
                };
                let session = create(home, client, new).await?;
                let session = settle(client, session).await?;
                show_new(&session, json)?;
                if session.state == SessionState::Faulted.name() {
                    return Ok(ExitCode::FAILURE);
                }
            }
            SessionCommand::Fork(fork) => return fork.run(client).await,
            SessionCommand::Merge(merge) => return merge.run(client).await,
            SessionCommand::CherryPick(pick) => return pick.run(client).await,
            SessionCommand::Compact(compact) => return compact.run(client).await,
            SessionCommand::Label(label) => return label.run(client).await,
            SessionCommand::Refresh(refresh) => return refresh.run(client).await,
            SessionCommand::Rebuild(rebuild) => return rebuild.run(home, connection).await,
            SessionCommand::Transcript(transcript) => return transcript.run(client).await,
            SessionCommand::Lineage(lineage) => return lineage.run(client).await,
            SessionCommand::Stats(stats) => return stats.run(client).await,
            SessionCommand::Delete(delete) => return delete.run(client).await,
            SessionCommand::Show { session, json } => {
                let session = named(client, session).await?;
                if json {
                    super::print_json(&session)?;
                } else {
                    show(client, &session).await?;
                }
            }
            SessionCommand::Stop { session, sent } => {
                let session = named(client, session).await?.session.to_string();
                print_line(&client.call(StopSession { session, sent: sent.sent() }).await?);
            }
            SessionCommand::Reset(reset) => return reset.run(client).await,
            SessionCommand::Rename { session, name, sent } => {
                print_line(&client.call(RenameSession { session, name, sent: sent.sent() }).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(super) async fn named(client: &Client, session: Option<String>) -> Result<SessionView, Error> {
    let session = match session {
        Some(session) => session,
        None => most_recent(client).await?.session.to_string(),
    };
    client.call(GetSession { session }).await
}

pub(super) fn existing(path: &PathBuf, argument: &str) -> Result<PathBuf, Error> {
    std::fs::canonicalize(path).map_err(|error| Error::InvalidArgument {
        argument: argument.to_owned(),
        reason: format!("`{}`: {error}", path.display()),
    })
}

async fn list(client: &Client, list: ListSessions, json: bool) -> Result<(), Error> {
    let sessions = client.call(list).await?;
    if json {
        return super::print_json(&sessions);
    }
    let (paint, now) = (Paint::stdout(), Timestamp::now());
    for session in &sessions {
        print!("{}", session_line(session, paint, now));
    }
    if sessions.is_empty() {
        crate::terminal::note("no sessions yet; `mainstay` opens one");
    }
    Ok(())
}

pub(super) fn show_new(session: &SessionView, json: bool) -> Result<(), Error> {
    if json {
        return super::print_json(session);
    }
    print_line(session);
    eprint!("{}", startup_text(session, Paint::stderr()));
    eprint!("{}", fault_text(session, HardReset::Command, Paint::stderr()).unwrap_or_default());
    Ok(())
}

async fn show(client: &Client, session: &SessionView) -> Result<(), Error> {
    let paint = Paint::stdout();
    print!("{}", session_line(session, paint, Timestamp::now()));
    println!("  id {}", session.session);
    if let Some(project) = &session.project {
        println!("  project {project}");
    }
    print!("{}", startup_text(session, paint));
    if !session.usage.is_zero() {
        println!("  {}", session.usage);
    }
    if let Some(state) = session.agent.as_ref().and_then(|agent| agent.state.as_ref()) {
        println!("  {}", crate::terminal::printable(&crate::render::state_words(state)));
    }
    if let Some(worker) = &session.worker {
        println!("  {} on {}, pid {}", worker.kernel, worker.runtime, worker.pid);
    }
    if let Some(rebuilt) = &session.rebuilt {
        println!("  {}", paint.tone(Tone::Warning, &crate::terminal::printable(&rebuilt.to_string())));
    }
    print!(
        "{}",
        orphaned_text(session, paint, Timestamp::now()).map(|text| format!("  {text}")).unwrap_or_default()
    );
    if let Some(words) = validity_words(session) {
        println!("  {}", paint.tone(Tone::Warning, &words));
    }
    print!("{}", fault_text(session, HardReset::Command, paint).unwrap_or_default());
    println!();
    let mut story = EventTable::new(paint);
    for_each_event(client, session, mainstay_model::Seq::ZERO, |event| print!("{}", story.tell(event)))
        .await?;
    print!("{}", story.end());
    Ok(())
}

/// What a session's worker brought in before its own code, and what of it did not go as it was meant to; nothing where there was nothing.
pub(crate) fn startup_text(session: &SessionView, paint: Paint) -> String {
    let Some(StartupView { summary, faults, unbuilt }) = &session.startup else { return String::new() };
    let line = |line: &str, tone| paint.tone(tone, &format!("  {}", printable(line))) + "\n";
    let unbuilt = unbuilt.iter().map(|unbuilt| format!("{unbuilt} (`mainstay session rebuild --keep`)"));
    let warnings = faults.iter().cloned().chain(unbuilt).map(|warning| line(&warning, Tone::Warning));
    let summary = (!summary.is_empty()).then(|| line(summary, Tone::Faint));
    summary.into_iter().chain(warnings).collect()
}

/// That the connection which asked for what runs in a session has left, and what to do; none where it has not.
pub(crate) fn orphaned_text(session: &SessionView, paint: Paint, now: Timestamp) -> Option<String> {
    let Orphaned { by, requested_at } = session.orphaned.as_ref()?;
    let words = format!("what {by} sent {} still runs, and its client is gone", ago(*requested_at, now));
    let words = paint.tone(Tone::Warning, &printable(&words));
    Some(format!("{words}; `mainstay cancel --session {}` stops it\n", session.short_id))
}

/// How many of a session's evals may hold no longer; none where all do, or it cannot be told.
pub(crate) fn validity_words(session: &SessionView) -> Option<String> {
    let ValidityCounts { stale, invalid, unknown: _ } = session.validity?;
    let part = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let parts: Vec<_> = part(stale, "stale").into_iter().chain(part(invalid, "invalid")).collect();
    (!parts.is_empty()).then(|| format!("{} evals: what they used has changed", parts.join(" and ")))
}

/// What a session counts that it was given to do, and how many of those failed. An agent's settings, compactions and lines of a shell count
/// for nothing.
pub(crate) fn tally(session: &SessionView) -> (&'static str, String) {
    let counted = if session.is_agent() { "turn" } else { "eval" };
    (counted, format!("{} of them failed", session.failures))
}

fn print_line(session: &SessionView) {
    print!("{}", session_line(session, Paint::stdout(), Timestamp::now()));
}

/// What a session has come to and where it began, for a line below its own. `all` are the sessions whose names are known.
pub(crate) fn session_facts(session: &SessionView, all: &[SessionView]) -> String {
    let (noun, failed) = tally(session);
    let failed = if session.failures > 0 { format!(", {failed}") } else { String::new() };
    let origin = session.forked_from.as_ref().map(|Parent { session: parent, entries }| {
        format!(", forked off {} after {}", called(*parent, all), counted(*entries, "entry"))
    });
    format!("{}{failed}{}", counted(session.evals, noun), origin.unwrap_or_default())
}

/// What a session is called among these: its name, with the end of its id where another has the same; the end of its id where it is not one
/// of them.
pub(crate) fn called<'a>(
    session: SessionId,
    all: impl IntoIterator<Item = &'a SessionView> + Clone,
) -> String {
    let Some(found) = all.clone().into_iter().find(|other| other.session == session) else {
        return session.short();
    };
    let is_shared = all.into_iter().any(|other| other.name == found.name && other.session != session);
    let name = printable(&found.name);
    if is_shared { format!("{name} ({})", found.short_id) } else { name.into_owned() }
}

/// A session on one line.
pub(crate) fn session_line(session: &SessionView, paint: Paint, now: Timestamp) -> String {
    let state = match session.state.as_str() {
        "Faulted" => paint.tone(Tone::Error, &format!("{:<13}", session.state)),
        "Ready" => paint.tone(Tone::Good, &format!("{:<13}", session.state)),
        other => format!("{other:<13}"),
    };
    let owner = match session.owner == Principal::local() {
        true => String::new(),
        false => paint.tone(Tone::Warning, &format!(" of {}", session.owner)),
    };
    let warm_up = session.warm_up.map(|progress| format!("  {progress}")).unwrap_or_default();
    let title = session.title.as_ref().map(|title| format!("  {}", printable(title))).unwrap_or_default();
    format!(
        "{}  {state} {:<8} {}{owner}  {}  {}{warm_up}{}\n",
        paint.tone(Tone::Name, &session.short_id),
        session.kind.as_str(),
        session.name,
        paint.tone(Tone::Faint, &session.working_directory),
        paint.tone(Tone::Faint, &ago(session.last_activity, now)),
        paint.tone(Tone::Faint, &title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: &str) -> SessionView {
        let view = serde_json::json!({
            "session": id, "shortId": &id[28..], "name": name, "kind": "fsharp", "state": "Ready", "offered": [],
            "workingDirectory": "/", "createdAt": "2026-02-13T11:17:00Z", "lastActivity": "2026-02-13T11:17:00Z",
            "lastSeq": 1, "evals": 0, "failures": 0,
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_name_that_several_sessions_have_comes_with_the_end_of_the_id() {
        let ids = ["11111111", "22222222", "33333333", "44444444"];
        let ids = ids.map(|end| format!("019a0000-0000-7000-8000-0000{end}"));
        let names = ["main", "main", "other"];
        let all: Vec<_> = ids.iter().zip(names).map(|(id, name)| session(id, name)).collect();
        let called = ids.map(|id| called(id.parse().unwrap(), &all));
        assert_eq!(called, ["main (11111111)", "main (22222222)", "other", "44444444"]);
    }
}
