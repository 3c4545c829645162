//! `mainstay command`: what became of a command.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, EvalOutcome, Outcome, Response, WorkOutcome};
use mainstay_protocol::operations::GetCommand;
use mainstay_protocol::view::{CommandState, CommandView};
use mainstay_terminal::{Paint, Tone, counted, printable};
use mainstay_terminal_client::ask::missing_text;
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::events::person_name;
use mainstay_terminal_client::merge::inserted_text;

/// Shows what became of a command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay command show nightly-import")]
pub(super) struct CommandArgs {
    #[command(subcommand)]
    command: CommandCommand,
}

#[derive(Debug, Subcommand)]
enum CommandCommand {
    /// Show whether a command waits, runs or has ended, and its one stored answer
    #[command(
        after_help = "Examples:\n  mainstay command show nightly-import\n  mainstay command show --json nightly-import | jq .outcome\n\nExit codes: 0 it is known, 1 it is not."
    )]
    Show {
        /// The id of the command
        #[arg(value_parser = |text: &str| CommandId::new(text))]
        id: CommandId,

        /// Print the command as JSON
        #[arg(long)]
        json: bool,
    },
}

impl CommandArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let CommandCommand::Show { id, json } = self.command;
        let view = connect_or_start(home, "cli").await?.client.call(GetCommand { command: id }).await?;
        if json {
            super::print_json(&view)?;
        } else {
            print!("{}", text(&view, Paint::stdout()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(view: &CommandView, paint: Paint) -> String {
    let state = match view.state {
        CommandState::Waits => "waits for its turn",
        CommandState::Runs => "is under way",
        CommandState::Ended => "has ended",
    };
    let mut text = format!("{} {state}\n", paint.tone(Tone::Name, &printable(view.command.as_str())));
    if let Some(session) = view.session {
        text.push_str(&format!("  session {}\n", session.short()));
    }
    if let Some(version) = view.version {
        text.push_str(&format!("  the session had version {version} then\n"));
    }
    if let Some(outcome) = &view.outcome {
        text.push_str(&format!("  {}\n", outcome_text(outcome, paint)));
    }
    text
}

fn outcome_text(outcome: &Outcome, paint: Paint) -> String {
    match outcome {
        Outcome::Failed { error } => {
            paint.tone(Tone::Error, &printable(&format!("failed: {error} [{}]", error.code())))
        }
        Outcome::Done { response } => match response {
            Response::Created { session } => format!("created session {}", session.short()),
            Response::Forked { session, entries, .. } => {
                format!("created session {} with {entries} entries of another", session.short())
            }
            Response::Compacted { entries, .. } => {
                format!("a summary stands for {}", counted(*entries, "entry"))
            }
            Response::Merged { entries, at, asked, .. } => inserted_text(*entries, *at, *asked),
            Response::Cancelling { .. } => "asked the running job to stop".to_owned(),
            Response::Withdrawn { command } => {
                format!("took {} back", printable(command.as_str()))
            }
            Response::Answered { value, by, .. } => {
                format!("answered {value} by {}", printable(&person_name(by)))
            }
            Response::Voted { missing, .. } => {
                format!("the answer was counted; {}", missing_text(*missing))
            }
            Response::Recorded { seq } => format!("done, event #{seq}"),
            Response::Evaluated(eval) => eval_text(eval, paint),
            Response::Worked(WorkOutcome { requested, completed, ending, duration_ms, .. }) => {
                let ending = ending.to_string();
                format!("{}, events #{requested} to #{completed} ({duration_ms} ms)", printable(&ending))
            }
        },
    }
}

fn eval_text(eval: &EvalOutcome, paint: Paint) -> String {
    let tone = if eval.success() { Tone::Good } else { Tone::Error };
    let ending = paint.tone(tone, eval.ending.name());
    let EvalOutcome { requested, completed, duration_ms, display, .. } = eval;
    let gave = printable(display.trim_end());
    let gave = if gave.is_empty() { String::new() } else { format!("\n{gave}") };
    format!("eval {ending}, events #{requested} to #{completed} ({duration_ms} ms){gave}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{SessionId, Version};

    fn shown(state: CommandState, outcome: Option<Outcome>) -> String {
        let session: SessionId = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        let view = CommandView {
            command: CommandId::new("nightly").unwrap(),
            session: Some(session),
            state,
            version: outcome.is_some().then_some(Version(7)),
            outcome,
        };
        text(&view, Paint::plain())
    }

    #[test]
    fn one_that_waits_has_no_outcome() {
        insta::assert_snapshot!(shown(CommandState::Waits, None), @r"
        nightly waits for its turn
          session a1b2c3d4
        ");
    }

    #[test]
    fn one_that_failed_says_why() {
        let outcome = Outcome::Failed { error: Error::TimedOut { limit_ms: 5_000 } };
        insta::assert_snapshot!(shown(CommandState::Ended, Some(outcome)), @r"
        nightly has ended
          session a1b2c3d4
          the session had version 7 then
          failed: the command did not end within 5000 ms [timed_out]
        ");
    }
}
