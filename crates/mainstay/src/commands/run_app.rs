//! `mainstay run-app` and `mainstay stop-app`: the application of a session's project, which runs in the session.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::application::{NO_ENTRY_POINT, stop_code};
use mainstay_model::{Action, ApplicationStart, Error, JobSpec, Timestamp};
use mainstay_protocol::operations::GetSession;
use mainstay_protocol::view::{ApplicationView, EvalView, SessionView};
use mainstay_terminal::{Paint, eval_summary, note};
use mainstay_terminal_client::connect::{Connection, connected};
use mainstay_terminal_client::session_text::application_text;
use serde::Serialize;

use super::conditions::{SentArgs, milliseconds};
use super::eval::{Run, Show, Source};
use super::rebuild::build;
use super::target::{KIND_SOUGHT, NO_PROJECT_SOUGHT, PROJECT_SOUGHT, Target};

/// Runs the program of a session's project in the session, such as a web application.
///
/// It runs on a thread of its own while evals go on, and they share its state. What is saved runs in it at once where `[fsharp] watch` is
/// "swap". A worker that is lost, rebuilt or reset starts it again.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunApp {
    #[command(flatten)]
    target: Target,

    /// The function that it begins with, by its full name [default: the entry point of the project]
    #[arg(long, value_name = "FUNCTION")]
    entry: Option<String>,

    #[arg(long)]
    json: bool,

    /// What the program is given, behind --
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  mainstay run-app                                   # where it listens is printed
  mainstay run-app -- --urls http://127.0.0.1:0      # on any free port
  mainstay run-app --entry Shop.Demo.main
  mainstay eval 'Cart.visits'                        # its state, while it serves
  mainstay stop-app

Exit codes: 0 it runs, 1 it does not, 2 the command line was wrong.
What it prints is in the session's events (`mainstay events --follow`).";

/// Stops the application that runs in a session, in order.
#[derive(Debug, Args)]
#[command(after_help = STOP_EXAMPLES)]
#[command(mut_arg("kind", |kind| kind.help(KIND_SOUGHT)), mut_arg("project", |project| project.help(PROJECT_SOUGHT)), mut_arg("no_project", |none| none.help(NO_PROJECT_SOUGHT)))]
pub(super) struct StopApp {
    #[command(flatten)]
    target: Target,

    /// How long it may take: 90s, 500ms, 2m [default: `application-stop-ms`]
    #[arg(long, value_name = "TIME", value_parser = stop_limit)]
    timeout: Option<u64>,

    #[arg(long)]
    json: bool,
}

const STOP_EXAMPLES: &str = "\
Examples:
  mainstay stop-app
  mainstay stop-app --timeout 30s

Exit codes: 0 none runs any more, 1 it did not stop in time, 2 the command line was wrong.";

fn stop_limit(text: &str) -> Result<u64, String> {
    let limit = milliseconds(text)?;
    if (1..=u64::from(u32::MAX / 2)).contains(&limit) {
        Ok(limit)
    } else {
        Err("it is nothing, or too long".to_owned())
    }
}

/// What came of a start or a stop, for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    /// Whether nothing of it failed.
    success: bool,
    /// Whether there was nothing to do.
    unchanged: bool,
    /// What runs in the session now.
    application: Option<ApplicationView>,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl RunApp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { target, entry, json, arguments } = self;
        let settled = async |connection: &Connection| target.settled(home, &connection.client).await;
        let (connection, opened) = connected(home, "cli", settled).await?;
        let mut session = opened.session;
        if !Action::Rebuild.is_of(session.capabilities()) {
            let reason = format!("a session of {} has no project that could be run", session.kind);
            return Err(Error::EntryPointNotFound { reason });
        }
        let before = session.application.clone().filter(|application| application.runs);
        // One that runs is not begun anew by the way.
        let is_unbuilt = session.startup.as_ref().is_some_and(|startup| startup.unbuilt.is_some());
        if is_unbuilt && before.is_none() {
            let (built, _) =
                build(home, connection, &session, JobSpec::Build, SentArgs::default(), !json).await?;
            if !built.success {
                note("nothing was started: it would have been an older build");
                return Ok(ExitCode::FAILURE);
            }
            session = session_now(home, &session).await?;
        }
        let code = ApplicationStart { entry, arguments }.code();
        let Some(eval) = evaluate(home, &session, &code).await? else { return Ok(ExitCode::FAILURE) };
        if let Some(error) = eval.error.as_ref().filter(|error| error.kind == NO_ENTRY_POINT) {
            return Err(Error::EntryPointNotFound { reason: error.message.clone() });
        }
        let session = session_now(home, &session).await?;
        if !json && eval.success && before.is_some() {
            note("it runs already; `mainstay stop-app` stops it");
        }
        tell(&session, eval, before.is_some(), &code, json)
    }
}

impl StopApp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { target, timeout, json } = self;
        let find = async |connection: &Connection| target.find(&connection.client).await;
        let (_, session) = connected(home, "cli", find).await?;
        if session.application.is_none() {
            if !json {
                note("no application runs in this session");
            }
            return done(&Changed { success: true, unchanged: true, application: None, error: None }, json);
        }
        let code = stop_code(timeout);
        let Some(eval) = evaluate(home, &session, &code).await? else { return Ok(ExitCode::FAILURE) };
        let session = session_now(home, &session).await?;
        if !json && eval.success {
            note("the application is stopped");
        }
        tell(&session, eval, false, &code, json)
    }
}

/// Runs code in a session, and tells nothing of it; none where the session cannot run code, which is said.
async fn evaluate(home: &Home, session: &SessionView, code: &str) -> Result<Option<EvalView>, Error> {
    let source =
        Source { code: code.to_owned(), file: None, command_line: None, lines_before: 0, is_script: true };
    let target = Target { session: Some(session.session.to_string()), ..Target::default() };
    let answer = Run::new(source, Show::Nothing).awaited(home, target, SentArgs::default()).await?;
    Ok(answer.map(|answer| answer.eval))
}

async fn session_now(home: &Home, session: &SessionView) -> Result<SessionView, Error> {
    let reference = session.session.to_string();
    let get = async |connection: &Connection| {
        connection.client.call(GetSession { session: reference.clone() }).await
    };
    Ok(connected(home, "cli", get).await?.1)
}

/// Tells what runs now. What an application printed that does not run any more says why.
fn tell(
    session: &SessionView,
    eval: EvalView,
    unchanged: bool,
    code: &str,
    json: bool,
) -> Result<ExitCode, Error> {
    if !json && !eval.success {
        eprint!("{}{}", eval.put_out(), eval.stderr);
        eprint!("{}", eval_summary(&eval, None, code, Paint::stderr()));
    } else if !json {
        let text = application_text(session, Paint::stdout(), Timestamp::now());
        print!("{}", text.unwrap_or_default());
    }
    let error = eval.error.as_ref().map(|error| error.message.clone());
    done(&Changed { success: eval.success, unchanged, application: session.application.clone(), error }, json)
}

fn done(changed: &Changed, json: bool) -> Result<ExitCode, Error> {
    if json {
        super::print_json(changed)?;
    }
    Ok(if changed.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
