//! `mainstay schedule`: code and prompts that run later.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::schedule::{MissedRuns, When};
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{
    AddSchedule, ListSchedules, RemoveSchedule, ScheduleView, ScheduledTime,
};
use mainstay_terminal::{note, printable};
use mainstay_terminal_client::connect::connect_or_start;

use super::conditions::milliseconds;

/// Has code or a prompt run later in a session, also when nobody is there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay schedule add lab 'refresh ()' --every 'FREQ=DAILY;BYHOUR=6;BYMINUTE=0'\n  mainstay schedule list\n  mainstay schedule remove nightly"
)]
pub(super) struct ScheduleArgs {
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// Have code or a prompt run later
    #[command(
        after_help = "Examples:\n  mainstay schedule add lab 'refresh ()' --every 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=6;BYMINUTE=0' --name weekly\n  mainstay schedule add lab 'report ()' --after 2h\n  mainstay schedule add lab 'report ()' --at 2026-05-09T13:00:00Z --missed skip\n\nRules are those of RFC 5545, in UTC, with FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYHOUR and BYMINUTE."
    )]
    Add(Add),
    /// List your schedules, also those that ended within a day
    #[command(
        after_help = "Examples:\n  mainstay schedule list\n  mainstay schedule list --json | jq -r '.[].schedule'"
    )]
    List {
        /// Print the schedules as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a schedule; a run that is under way goes on
    #[command(after_help = "Examples:\n  mainstay schedule remove nightly")]
    Remove {
        /// The name of the schedule
        schedule: String,
    },
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("when").args(["at", "after", "every"]).required(true))]
struct Add {
    /// The session that does it, by name or id
    session: String,

    /// The code for a kernel, or the prompt for an agent
    text: String,

    /// Once, at this moment, such as 2026-05-09T13:00:00Z
    #[arg(long, value_name = "MOMENT")]
    at: Option<Timestamp>,

    /// Once, after this time, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    after: Option<u64>,

    /// Again and again, by this rule, such as FREQ=DAILY
    #[arg(long, value_name = "RULE")]
    every: Option<String>,

    /// What to call it [default: a name is made up]
    #[arg(long)]
    name: Option<String>,

    /// What becomes of runs that were missed: skip, once, or how many of them run
    #[arg(long, value_name = "POLICY", default_value = "once", value_parser = missed)]
    missed: MissedRuns,

    /// Print the schedule as JSON
    #[arg(long)]
    json: bool,
}

fn missed(text: &str) -> Result<MissedRuns, String> {
    match (text, text.parse()) {
        ("skip", _) => Ok(MissedRuns::Skip),
        ("once", _) => Ok(MissedRuns::RunOnce),
        (_, Ok(limit @ 1..)) => Ok(MissedRuns::RunAll(limit)),
        _ => Err("it is `skip`, `once`, or a number from 1".to_owned()),
    }
}

impl ScheduleArgs {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let client = &connection.client;
        match self.command {
            ScheduleCommand::Add(add) => add.run(client).await?,
            ScheduleCommand::List { json } => list(client, json).await?,
            ScheduleCommand::Remove { schedule } => {
                client.call(RemoveSchedule { schedule: schedule.clone() }).await?;
                note(&format!("{} is removed", printable(&schedule)));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Add {
    async fn run(self, client: &Client) -> Result<(), Error> {
        let Self { session, text, at, after, every, name, missed, json } = self;
        let when = match (at, after, every) {
            (Some(at), ..) => ScheduledTime::At(at),
            (_, Some(after), _) => ScheduledTime::After(after),
            (.., every) => ScheduledTime::Every(every.unwrap_or_default()),
        };
        let made = client.call(AddSchedule { session, schedule: name, text, when, missed }).await?;
        match json {
            true => super::print_json(&made)?,
            false => println!("{}", line_of(&made)),
        }
        Ok(())
    }
}

async fn list(client: &Client, json: bool) -> Result<(), Error> {
    let schedules = client.call(ListSchedules {}).await?.schedules;
    match json {
        true => super::print_json(&schedules)?,
        false if schedules.is_empty() => {
            note("there are no schedules; `mainstay schedule add` makes one");
        }
        false => schedules.iter().for_each(|schedule| println!("{}", line_of(schedule))),
    }
    Ok(())
}

/// A schedule on one line.
fn line_of(view: &ScheduleView) -> String {
    let when = match &view.when {
        When::At(_) => "once".to_owned(),
        When::Every(rule) => rule.to_string(),
    };
    let next = view.next.map_or_else(|| "has ended".to_owned(), |next| format!("next {next:.0}"));
    let last = match &view.last {
        Some(last) => match (&last.error, &last.ending) {
            (Some(error), _) => format!("  last {:.0}: {}", last.at, printable(&error.to_string())),
            (None, Some(ending)) => format!("  last {:.0}: {ending}", last.at),
            (None, None) => format!("  last {:.0}", last.at),
        },
        None => String::new(),
    };
    let session = view.session.short();
    format!("{}  {session}  {}  {next}{last}", printable(&view.schedule), printable(&when))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_or_refused() {
        assert_eq!(missed("skip"), Ok(MissedRuns::Skip));
        assert_eq!(missed("once"), Ok(MissedRuns::RunOnce));
        assert_eq!(missed("3"), Ok(MissedRuns::RunAll(3)));
        assert!(missed("0").is_err() && missed("all").is_err());
    }
}
