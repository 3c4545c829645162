//! `mainstay prompt`: something said to an agent, and its answer.

mod image;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{
    Admission, CommandId, Delivery, Error, JobSpec, Prompt as Said, Setting, ThinkingLevel,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{DoWork, PauseSession, SteerSession};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::note;
use mainstay_terminal_client::agent_settings::{model, thinking};
use mainstay_terminal_client::connect::{Connection, connected};
use uuid::Uuid;

use super::command_wait::CommandWait;
use super::conditions::SentArgs;
use super::questions::Asker;
use super::runner_job::RunnerJob;
use super::target::Target;

/// Says something to an agent and shows its answer as it comes.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("kind", |kind| kind.help("The kind of session to look for or create: pi, agent [default: whichever is there, else pi]")))]
pub(super) struct Prompt {
    #[command(flatten)]
    target: Target,

    /// What is said; - for standard input
    #[arg(required = true)]
    text: Vec<String>,

    /// In a new session
    #[arg(short, long, conflicts_with = "session")]
    new: bool,

    /// Say it to an agent that works, before its next step, and do not wait for what comes of it
    #[arg(long, conflicts_with_all = ["follow_up", "new"])]
    steer: bool,

    /// Say it to an agent that works, once it would be done, and do not wait for what comes of it
    #[arg(long, conflicts_with = "new")]
    follow_up: bool,

    /// Have an agent that works pause before its next step and ask this, and do not wait for the answer
    #[arg(long, conflicts_with_all = ["steer", "follow_up", "new", "image"])]
    pause: bool,

    /// Go on with this model first
    #[arg(long, value_name = "PROVIDER/ID", value_parser = model, conflicts_with_all = ["steer", "follow_up", "pause"])]
    model: Option<Setting>,

    /// Have it think this hard from now on: off, minimal, low, medium, high, xhigh
    #[arg(long, value_name = "LEVEL", value_parser = thinking, conflicts_with_all = ["steer", "follow_up", "pause"])]
    thinking: Option<ThinkingLevel>,

    /// A picture that goes with it; may be given again
    #[arg(short, long, value_name = "FILE")]
    image: Vec<PathBuf>,

    #[command(flatten)]
    sent: SentArgs,

    /// Print one line of JSON when it has ended
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay prompt 'Why does the last test fail?'
  git diff | mainstay prompt --new -
  mainstay prompt --steer 'Leave the tests alone'
  mainstay prompt --pause 'Is the old table still needed?'
  mainstay prompt --model anthropic/claude-sonnet-4-5 --thinking high 'Find the race'
  mainstay prompt --image screen.png 'What is wrong here?'
  mainstay prompt --id review-17 --json 'Review this'   # again after a crash: it runs once, and the answer is the same

What the agent says goes to standard output, what it does to standard error; Ctrl-C stops it.
Exit codes: 0 it was done, 1 it failed, was cancelled or cut off, 2 the command line was wrong.";

/// What is said once an agent has been told to pause.
const PAUSED: &str = "the agent pauses before its next step, and asks how to go on: `mainstay ask list` shows the question, \
                      `mainstay ask answer ID TEXT` answers it";

impl Prompt {
    /// What was piped in.
    pub(super) fn of_text(target: Target, text: Vec<u8>) -> Result<Self, Error> {
        let text = String::from_utf8(text).map_err(|error| Error::CodeInvalid {
            reason: format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()),
        })?;
        Ok(Self { target, text: vec![text], ..Self::default() })
    }

    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let prompt = self.read()?;
        // Created once, however often it is asked for.
        let new = self.new.then(|| CommandId::from_uuid(Uuid::now_v7()));
        let find = async |connection: &Connection| {
            if self.pause {
                return self.target.find_agent(&connection.client).await;
            }
            self.target.find_or_create_agent(home, &connection.client, new.clone()).await
        };
        let (_, session) = connected(home, "cli", find).await?;
        if self.pause {
            return self.have_it_pause(home, session.session.to_string(), prompt.text).await;
        }
        if self.steer || self.follow_up {
            return self.say_while_it_works(home, session.session.to_string(), prompt).await;
        }
        let thinking = self.thinking.map(|level| Setting::Thinking { level });
        let settings: Vec<Setting> = self.model.into_iter().chain(thinking).collect();
        let set = async |connection: &Connection| {
            for setting in &settings {
                set(connection, &session, setting.clone()).await?;
            }
            Ok(())
        };
        let (connection, ()) = connected(home, "cli", set).await?;
        let done = RunnerJob::new(JobSpec::Turn { prompt }, &session, !self.json);
        let mut turn = CommandWait::new(done, &session, self.sent.named(), Asker::Agent)?;
        let (view, _) = turn.answer(home, connection).await?;
        turn.shown.finish(&view);
        if self.json {
            super::print_json_line(&view)?;
        }
        Ok(if view.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Has an agent that works pause and ask that, and says how it goes on.
    async fn have_it_pause(&self, home: &Home, session: String, question: String) -> Result<ExitCode, Error> {
        let (command, conditions) = self.sent.clone().named();
        let sent = Sent { command: Some(command), conditions };
        let pause = PauseSession { session, target: None, prompt: Some(question), sent };
        let paused = async |connection: &Connection| connection.client.call(pause.clone()).await;
        let (_, session) = connected(home, "cli", paused).await?;
        if self.json {
            super::print_json_line(&session)?;
        } else {
            note(PAUSED);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Says something to an agent that works.
    async fn say_while_it_works(self, home: &Home, session: String, prompt: Said) -> Result<ExitCode, Error> {
        let (command, conditions) = self.sent.named();
        let sent = Sent { command: Some(command), conditions };
        let hears = if self.steer { Delivery::Steer } else { Delivery::FollowUp };
        let say = async |connection: &Connection| {
            let (session, sent, prompt) = (session.clone(), sent.clone(), prompt.clone());
            connection.client.call(SteerSession { session, prompt, hears, sent }).await
        };
        let (_, session) = connected(home, "cli", say).await?;
        if self.json {
            super::print_json_line(&session)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<Said, Error> {
        let text = match self.text.as_slice() {
            [only] if only == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(|error| Error::InvalidArgument {
                    argument: "standard input".to_owned(),
                    reason: error.to_string(),
                })?;
                text
            }
            words => words.join(" "),
        };
        let images = self.image.iter().map(|file| image::read(file)).collect::<Result<_, _>>()?;
        Ok(Said { text, images })
    }
}

/// Has the agent go on otherwise. That it cannot is told in its own words.
async fn set(connection: &Connection, session: &SessionView, setting: Setting) -> Result<(), Error> {
    let argument = setting.to_string();
    let work = JobSpec::Setting(setting);
    let (session, sent) = (session.session.to_string(), Sent::default());
    let done = connection.client.call(DoWork { session, work, admission: Admission::Queue, sent }).await?;
    done.error.map_or(Ok(()), |reason| Err(Error::InvalidArgument { argument, reason }))
}
