//! The command line, one file a command.
//!
//! Exit codes: 0 done, 1 the code or the command failed, 2 the command line was wrong, 3 a daemon that cannot start. Code that
//! calls `exit` gives its own, unless JSON was asked for.

mod agent;
mod arcp;
mod arguments;
mod ask;
mod attach;
mod backup;
mod cancel;
mod command;
mod command_wait;
mod compact;
mod completions;
mod conditions;
mod coverage;
mod daemon;
mod debug;
mod delete;
mod demo;
mod doctor;
mod environment;
mod eval;
mod events;
mod explain;
mod explore;
mod export;
mod fork;
mod gc;
mod history;
mod import;
mod interrupts;
mod json_output;
mod kernel;
mod kernel_doctor;
mod label;
mod lineage;
mod man_pages;
mod mcp;
mod merge;
mod pi;
mod principal;
mod prompt;
mod prune;
mod questions;
mod rebuild;
mod refresh;
mod register;
mod reset;
mod restart;
mod restore;
mod review;
mod run;
mod run_app;
mod runner_job;
mod scaffold;
mod schedule;
mod search;
mod serve;
mod session;
mod session_text;
mod shim;
mod stats;
mod status;
mod stop;
mod target;
mod test;
mod timestamps;
mod transcript;
mod uninstall;
mod usage_error;
mod web;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use mainstay_home::Home;
use mainstay_home::config::Ports;
use mainstay_model::Error;
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::StartOptions;

pub(crate) use self::json_output::{print_json, print_json_line};

/// Keeps interactive sessions alive, durable and shared.
///
/// Without a command it opens a prompt on this folder's most recent session: it connects to the daemon, or starts one first. Piped
/// input is run as a script.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    target: target::Target,

    /// Start the daemon in the background and return
    #[arg(short = 'd', long = "daemon")]
    daemon: bool,

    /// With --daemon: the port to listen on, 0 for any free one
    #[arg(long, requires = "daemon")]
    port: Option<u16>,

    /// With --daemon: a port for the pi protocol alone, 0 for any free one
    #[arg(long, requires = "daemon")]
    pi_port: Option<u16>,

    /// With --daemon: start the daemon again after a crash
    #[arg(long, requires = "daemon")]
    supervised: bool,

    /// With --daemon: do not watch the files that sessions rest on
    #[arg(long, requires = "daemon")]
    no_watch: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay                              a prompt on this folder's session
  mainstay eval '1 + 1'                 run code, print what comes of it
  echo 'printfn \"hi\"' | mainstay        run a script
  mainstay prompt 'Explain this repo'   say something to an agent
  mainstay session list                 what there is
  mainstay events --follow              what happens
  mainstay mcp                          serve an AI agent over stdio";

#[derive(Debug, Subcommand)]
enum Command {
    /// Stop the daemon; its sessions start again when they are next used
    Stop(stop::Stop),
    /// Begin the daemon anew; what runs in its sessions goes on
    Restart(restart::Restart),
    /// Have the daemon go on as this version of Mainstay; what runs in its sessions goes on
    Upgrade(restart::Upgrade),
    /// Show the daemon and its sessions
    Status(status::Status),
    /// Run the daemon in the foreground
    Serve(serve::Serve),
    /// List, create, fork, merge, show, stop, rename, reset and delete sessions
    Session(session::SessionArgs),
    /// Run code in a session
    Eval(eval::Eval),
    /// Run a notebook or a script in a session, cell by cell
    Run(run::Run),
    /// Run the program of a session's project in the session, such as a web application
    RunApp(run_app::RunApp),
    /// Stop the application that runs in a session
    StopApp(run_app::StopApp),
    /// Run the tests that a session's code defined, and those of the assemblies it refers to
    Test(test::Test),
    /// Show which lines of a session's project tests reach, and how these ended
    Coverage(coverage::Coverage),
    /// Attach a debugger to the worker of an F# session
    Debug(debug::Debug),
    /// Say something to an agent
    Prompt(prompt::Prompt),
    /// Show what became of a command
    #[command(name = "command")]
    Commands(command::CommandArgs),
    /// Show what a session has and refers to: namespaces, types, names, values
    Explore(explore::Explore),
    /// Say what in F# code could be written more plainly
    Review(review::Review),
    /// Write property-based tests of an F# function from its type
    Scaffold(scaffold::Scaffold),
    /// Have code or a prompt run later in a session
    Schedule(schedule::ScheduleArgs),
    /// Find what was said in sessions
    Search(search::Search),
    /// Show what you submitted at prompts, newest last, and remove it
    History(history::History),
    /// Write a session to a file, whole or for people to read
    Export(export::Export),
    /// Make a session of an exported one
    Import(import::Import),
    /// Stop the code that runs in a session
    Cancel(cancel::Cancel),
    /// List, answer and decline what waits for an answer; ask whoever is attached
    Ask(ask::AskArgs),
    /// Show what happened in a session
    Events(events::Events),
    /// List, install and examine kernels
    Kernel(kernel::KernelArgs),
    /// List and install coding agents
    Agent(agent::AgentArgs),
    /// Examine the store for damage
    Doctor(doctor::Doctor),
    /// Remove what deleted sessions have left
    Gc(gc::Gc),
    /// Write all that is stored into a folder, while everything goes on
    Backup(backup::Backup),
    /// Put a backup in the place of what is stored
    Restore(restore::Restore),
    /// Export sessions that were not used for long, and delete them
    Prune(prune::Prune),
    /// List who may come in with a token of their own, and make such tokens
    Principal(principal::PrincipalArgs),
    /// Serve MCP over stdio: a bridge to the daemon
    Mcp(mcp::Mcp),
    Pi(pi::Pi),
    Arcp(arcp::Arcp),
    /// Open the page in a browser
    Web(web::Web),
    /// Show what Mainstay does, in a minute
    Demo(demo::Demo),
    /// Say what of Mainstay is on this machine, and what takes it away
    Uninstall(uninstall::Uninstall),
    /// Explain an error code, or a rule of `review`
    Explain(explain::Explain),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    #[command(hide = true)]
    ManPages(man_pages::ManPages),
    #[command(hide = true)]
    Environment(environment::Environment),
    #[command(hide = true)]
    Shim(shim::Shim),
}

/// Whether a command is asked for JSON.
fn wants_json(given: &ArgMatches) -> bool {
    matches!(given.try_get_one::<bool>("json"), Ok(Some(true)))
        || given.subcommand().is_some_and(|(_, given)| wants_json(given))
}

impl Cli {
    /// Carries out the command that the program was started with.
    pub(crate) fn run_from_arguments() -> ExitCode {
        let given = match Self::command().try_get_matches() {
            Ok(given) => given,
            Err(error) => return usage_error::tell(&error, std::env::args_os()),
        };
        if wants_json(&given) {
            terminal::say_failures_as_json();
        }
        match Self::from_arg_matches(&given) {
            Ok(cli) => cli.run(),
            Err(error) => usage_error::tell(&error, std::env::args_os()),
        }
    }

    /// Carries out the command.
    fn run(self) -> ExitCode {
        let is_server = matches!(self.command, Some(Command::Serve(_)));
        match self.run_command() {
            Ok(code) => code,
            Err(error) => {
                terminal::show_error(&error);
                if is_server {
                    ExitCode::from(mainstay_daemon::supervisor::CANNOT_START)
                } else {
                    ExitCode::FAILURE
                }
            }
        }
    }

    fn run_command(self) -> Result<ExitCode, Error> {
        match self.command {
            Some(Command::Explain(explain)) => explain.run(),
            Some(Command::Completions(completions)) => Ok(completions.run()),
            Some(Command::ManPages(man_pages)) => man_pages.run(),
            Some(Command::Environment(environment)) => environment.run(),
            Some(Command::Shim(shim)) => shim.run(),
            Some(Command::Uninstall(uninstall)) => uninstall.run(&Home::open()?),
            Some(Command::Doctor(doctor)) => doctor.run(&Home::open()?),
            Some(Command::Restore(restore)) => restore.run(&Home::open()?),
            Some(Command::Serve(serve)) => serve.run(&Home::open()?),
            Some(command) => block_on(command.run(&Home::open()?)),
            None if self.daemon => {
                let ports = Ports { own: self.port, pi: self.pi_port };
                let options = StartOptions { ports, no_watch: self.no_watch, supervised: self.supervised };
                block_on(daemon::run(&Home::open()?, options))
            }
            None => block_on(attach::run(&Home::open()?, self.target)),
        }
    }
}

impl Command {
    async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self {
            Self::Stop(stop) => stop.run(home).await,
            Self::Restart(restart) => restart.run(home).await,
            Self::Upgrade(upgrade) => upgrade.run(home).await,
            Self::Status(status) => status.run(home).await,
            Self::Session(session) => session.run(home).await,
            Self::Eval(eval) => eval.run(home).await,
            Self::Run(run) => run.run(home).await,
            Self::RunApp(run) => run.run(home).await,
            Self::StopApp(stop) => stop.run(home).await,
            Self::Test(test) => test.run(home).await,
            Self::Coverage(coverage) => coverage.run(home).await,
            Self::Debug(debug) => debug.run(home).await,
            Self::Prompt(prompt) => prompt.run(home).await,
            Self::Commands(command) => command.run(home).await,
            Self::Explore(explore) => explore.run(home).await,
            Self::Review(review) => review.run(home).await,
            Self::Scaffold(scaffold) => scaffold.run(home).await,
            Self::Schedule(schedule) => schedule.run(home).await,
            Self::Search(search) => search.run(home).await,
            Self::History(history) => history.run(home).await,
            Self::Export(export) => export.run(home).await,
            Self::Import(import) => import.run(home).await,
            Self::Cancel(cancel) => cancel.run(home).await,
            Self::Ask(ask) => ask.run(home).await,
            Self::Events(events) => events.run(home).await,
            Self::Principal(principal) => principal.run(home),
            Self::Kernel(kernel) => kernel.run(home).await,
            Self::Agent(agent) => agent.run(home).await,
            Self::Gc(gc) => gc.run(home).await,
            Self::Backup(backup) => backup.run(home).await,
            Self::Restore(restore) => restore.run(home),
            Self::Prune(prune) => prune.run(home).await,
            Self::Mcp(mcp) => mcp.run(home).await,
            Self::Pi(pi) => pi.run(home).await,
            Self::Arcp(arcp) => arcp.run(home).await,
            Self::Web(web) => web.run(home).await,
            Self::Serve(serve) => serve.run(home),
            Self::Doctor(doctor) => doctor.run(home),
            Self::Demo(demo) => demo.run(home).await,
            Self::Uninstall(uninstall) => uninstall.run(home),
            Self::Explain(explain) => explain.run(),
            Self::Completions(completions) => Ok(completions.run()),
            Self::ManPages(man_pages) => man_pages.run(),
            Self::Environment(environment) => environment.run(),
            Self::Shim(shim) => shim.run(),
        }
    }
}

/// A client does one thing at a time: one thread will do.
fn block_on(task: impl Future<Output = Result<ExitCode, Error>>) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
    let done = runtime.block_on(task);
    // A thread may wait for input that never comes; the process ends without it.
    runtime.shutdown_background();
    done
}
