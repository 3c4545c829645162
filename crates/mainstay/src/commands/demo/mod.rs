//! The command `mainstay demo`: what Mainstay does, shown in a minute by its own commands, in a home that is gone afterwards.

mod story;
mod world;

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use mainstay_embedded::kernel_file;
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::{fsharp_sdks, jupyter_kernels};
use mainstay_kernel::fsharp::examine;
use mainstay_model::{Error, SessionKind};
use mainstay_terminal as terminal;
use mainstay_terminal_client::paths::working_directory;

use self::story::{Step, Story};
use self::world::{Failure, Runtime, World};

/// Shows what Mainstay does, in a minute.
///
/// It runs code, kills the worker and the daemon, forks the session, lets an agent's client use it and opens the page, all with the commands
/// that you would use. It has a home and a folder of its own in the temporary folder, which are gone when it ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay demo\n  mainstay demo --kind python --no-wait")]
pub(super) struct Demo {
    /// What runs the code: fsharp or python [default: the first that this machine has]
    #[arg(short, long, value_parser = ["fsharp", "python"])]
    kind: Option<String>,

    /// Do not keep the page open at the end
    #[arg(long)]
    no_wait: bool,
}

impl Demo {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let runtime = runtime(home, self.kind.as_deref())?;
        match self.show(&runtime, &home.fsharp_workers()).await {
            Ok(()) => {
                terminal::note(
                    "that was all, and its sessions are gone. `mainstay` begins one of yours in this folder",
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(Failure(reason)) => {
                let code = Error::DaemonFailed { reason: String::new() }.code();
                terminal::show_failure(
                    &reason,
                    code,
                    "Type the commands one by one; `mainstay kernel doctor` says what is missing.",
                );
                Ok(ExitCode::FAILURE)
            }
        }
    }

    async fn show(&self, runtime: &Runtime, workers: &Path) -> Result<(), Failure> {
        let world = World::new(runtime, workers)?;
        let waits = !self.no_wait && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let story = Story::of(runtime);
        let told = tokio::select! {
            told = tell(&world, &story, waits) => told,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        // What was started is ended, whatever became of the story.
        let ended = world.end().await;
        told.and(ended)
    }
}

/// What this machine can run the code with.
fn runtime(home: &Home, kind: Option<&str>) -> Result<Runtime, Error> {
    let folder = working_directory()?;
    let search = fsharp_sdks(home, Config::load(home)?.fsharp);
    let sdk = || examine(&search, &folder, kernel_file).chosen;
    let kind_of_python = SessionKind::new("python")?;
    let python = || jupyter_kernels(home, None).kernelspecs().choose(&kind_of_python).cloned();
    match kind {
        Some("python") => python().map(Runtime::python),
        Some(_) => sdk().map(Runtime::fsharp).ok_or_else(missing),
        None => match (sdk(), python()) {
            (Some(sdk), _) => Ok(Runtime::fsharp(sdk)),
            (None, Ok(spec)) => Ok(Runtime::python(spec)),
            (None, Err(_)) => Err(missing()),
        },
    }
}

/// What brings something to run the code with is told with the error.
fn missing() -> Error {
    Error::KernelUnavailable {
        reason: "this machine has neither a .NET SDK nor a Python with ipykernel".to_owned(),
    }
}

async fn tell(world: &World, story: &Story, waits: bool) -> Result<(), Failure> {
    for chapter in &story.chapters {
        world.say(chapter.title);
        for step in &chapter.steps {
            match step {
                Step::Run { arguments, answer } => world.run(arguments, *answer).await?,
                Step::KillWorker => world.kill_worker().await?,
                Step::KillDaemon => world.kill_daemon()?,
                Step::Agent { code, answer } => world.agent(code, answer).await?,
                Step::Page => {
                    world.run(&["web", "--print"], None).await?;
                    if waits {
                        terminal::note("open that link, and press Enter to end the demo");
                        entered().await;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Waits for a line of the input, or its end.
async fn entered() {
    // The thread may wait for ever; the process ends without it.
    let read = tokio::task::spawn_blocking(|| std::io::stdin().lock().read_line(&mut String::new()));
    drop(read.await);
}
