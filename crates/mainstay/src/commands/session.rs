//! The commands below `mainstay session`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, SessionState, Timestamp};
use mainstay_protocol::operations::{CreateSession, ListSessions, RenameSession, StopSession};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Paint, Tone};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::event_table::EventTable;
use mainstay_terminal_client::fault::{HardReset, fault_text};
use mainstay_terminal_client::paths::{existing, working_directory};
use mainstay_terminal_client::session_text::{
    application_text, orphaned_text, session_line, startup_text, validity_words,
};
use mainstay_terminal_client::sessions::{create, settle};

use super::arguments::named;
use super::compact::Compact;
use super::conditions::SentArgs;
use super::delete::Delete;
use super::events::for_each_event;
use super::fork::Fork;
use super::label::Label;
use super::lineage::Lineage;
use super::merge::{CherryPick, MergeArgs};
use super::rebuild::Rebuild;
use super::refresh::Refresh;
use super::reset::Reset;
use super::session_text::{print_line, show_new};
use super::stats::Stats;
use super::target::project_at;
use super::transcript::Transcript;
use crate::project::root_of;

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
        /// Only those that are not idle
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
    /// Stop a session; it starts again when it is next used
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
        mainstay_terminal::note("no sessions yet; `mainstay` opens one");
    }
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
    let application = application_text(session, paint, Timestamp::now());
    print!("{}", application.map(|text| format!("  {text}")).unwrap_or_default());
    if !session.usage.is_zero() {
        println!("  {}", session.usage);
    }
    if let Some(state) = session.agent.as_ref().and_then(|agent| agent.state.as_ref()) {
        println!("  {}", mainstay_terminal::printable(&mainstay_terminal::turn::state_words(state)));
    }
    if let Some(worker) = &session.worker {
        println!("  {} on {}, pid {}", worker.kernel, worker.runtime, worker.pid);
    }
    if let Some(rebuilt) = &session.rebuilt {
        println!("  {}", paint.tone(Tone::Warning, &mainstay_terminal::printable(&rebuilt.to_string())));
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
    let mut table = EventTable::new(paint);
    for_each_event(client, session, mainstay_model::Seq::ZERO, |event| print!("{}", table.rows_of(event)))
        .await?;
    print!("{}", table.end());
    Ok(())
}
