//! `mainstay events`: what happened in a session.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_gateway::rpc::api::{ListEvents, Subscribe};
use mainstay_gateway::rpc::client::Client;
use mainstay_gateway::view::SessionView;
use mainstay_model::eval::Failure;
use mainstay_model::event::CancelEnding;
use mainstay_model::{Error, Event, EventBody, Seq, Source, WarmUpReason};
use tokio::time::{MissedTickBehavior, interval};

use super::interrupts;
use super::story::Story;
use super::target::Target;
use crate::connect::{Connection, connect_or_start};
use crate::home::Home;
use crate::terminal::{Paint, Tone, printable};

/// A line that has not gone on for this long, at most twice as long, is told before its end.
const PATIENCE: Duration = Duration::from_millis(200);
/// What shells make of a program that Ctrl-C ends.
const INTERRUPTED: u8 = 128 + 2;

/// Shows what happened in a session.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay events --since 10\n  mainstay events --follow --json | jq .kind"
)]
pub(super) struct Events {
    #[command(flatten)]
    target: Target,

    /// Only what came after this event
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    since: u64,

    /// Go on with what happens next, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Events {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let session = self.target.find(&connection.client).await?;
        let mut story = Story::new(Paint::stdout());
        let ended = if self.follow {
            self.follow(connection, &session, &mut story).await
        } else {
            let show = |event: &Event| self.show(event, &mut story);
            for_each_event(&connection.client, &session, Seq(self.since), show)
                .await
                .map(|()| ExitCode::SUCCESS)
        };
        print!("{}", story.end());
        ended
    }

    /// Shows what happens, until Ctrl-C comes or the connection ends.
    async fn follow(
        &self,
        mut connection: Connection,
        session: &SessionView,
        story: &mut Story,
    ) -> Result<ExitCode, Error> {
        let mut interrupts = interrupts()?;
        let subscribe = Subscribe { session: session.session.to_string(), after: Seq(self.since) };
        connection.client.call(subscribe).await?;
        let mut looks = interval(PATIENCE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut last_at_look) = (Seq::ZERO, Seq::ZERO);
        loop {
            tokio::select! {
                event = connection.events.recv() => {
                    let Some(event) = event else { return Err(connection.client.lost()) };
                    last = event.seq;
                    self.show(&event, story);
                }
                _ = looks.tick(), if story.is_inside_line() => {
                    print!("{}", story.end_until(last_at_look));
                    last_at_look = last;
                }
                _ = interrupts.recv() => return Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    }

    fn show(&self, event: &Event, story: &mut Story) {
        if self.json {
            super::print_json_line(event).ok();
        } else {
            print!("{}", story.tell(event));
        }
    }
}

/// Reads a session's events page by page.
pub(crate) async fn for_each_event(
    client: &Client,
    session: &SessionView,
    mut after: Seq,
    mut show: impl FnMut(&Event),
) -> Result<(), Error> {
    loop {
        let page = ListEvents { session: session.session.to_string(), after, limit: None };
        let events = client.call(page).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.seq;
        events.iter().for_each(&mut show);
    }
}

/// Who caused an event.
pub(crate) fn who(source: &Source) -> &str {
    match source {
        Source::Client { name, .. } => name,
        Source::Worker => "worker",
        Source::System => "mainstay",
    }
}

/// What happened, in a few words, and how that is to be taken.
pub(crate) fn describe(body: &EventBody) -> (Option<Tone>, String) {
    match body {
        EventBody::SessionCreated { kind, name, .. } => (None, format!("created `{name}` ({kind})")),
        EventBody::SessionRenamed { name } => (None, format!("renamed to `{name}`")),
        EventBody::WarmUpStarted { reason } => (None, format!("warms up: {}", reason_words(*reason))),
        EventBody::WarmUpCompleted { kernel, replayed, diverged, duration_ms, .. } => {
            let tone = if diverged.is_empty() { Tone::Good } else { Tone::Warning };
            let diverged: String = diverged.iter().map(|divergence| format!("; {divergence}")).collect();
            (Some(tone), format!("ready: {kernel}, {replayed} replayed ({duration_ms} ms){diverged}"))
        }
        EventBody::SessionFaulted { message } => (Some(Tone::Error), format!("faulted: {message}")),
        EventBody::SessionReset => (None, "reset".to_owned()),
        EventBody::SessionHardReset => (None, "hard reset".to_owned()),
        EventBody::SessionStopped => (None, "put to rest".to_owned()),
        EventBody::WorkerExited { exit, restart_after_ms, reason, .. } => {
            let next = restart_after_ms.map_or_else(
                || "not replaced".to_owned(),
                |after| format!("replaced in {} s", after as f64 / 1000.0),
            );
            let why = reason.as_ref().map_or_else(String::new, |reason| format!(" ({})", first_line(reason)));
            (Some(Tone::Warning), format!("the worker ended with {exit}{why}; {next}"))
        }
        EventBody::EvalRequested { code, .. } => (None, format!("eval {}", first_line(code))),
        EventBody::OutputProduced { text, .. } => {
            (Some(Tone::Faint), format!("printed {}", first_line(text)))
        }
        EventBody::OutputCut { limit, .. } => (Some(Tone::Warning), format!("output cut at {limit} bytes")),
        EventBody::CancelRequested { .. } => (None, "cancel".to_owned()),
        EventBody::EvalCompleted { result, duration_ms, .. } => {
            (Some(Tone::Good), format!("done: {} ({duration_ms} ms)", first_line(&result.display)))
        }
        EventBody::EvalFailed { failure, result, .. } => {
            let why = match failure {
                Failure::Rejected => result
                    .diagnostics
                    .first()
                    .map_or_else(String::new, |first| format!("{} {}", first.code, first.message)),
                Failure::Raised { error } => format!("{}: {}", error.kind, error.message),
                Failure::WorkerExited { exit } => format!("the code ended its worker with {exit}"),
            };
            (Some(Tone::Error), format!("failed: {}", first_line(&why)))
        }
        EventBody::EvalCancelled { ending: CancelEnding::Yielded, .. } => {
            (Some(Tone::Warning), "cancelled".to_owned())
        }
        EventBody::EvalCancelled { ending: CancelEnding::Killed, .. } => {
            (Some(Tone::Warning), "cancelled by killing the worker".to_owned())
        }
        EventBody::EvalInterrupted { .. } => (Some(Tone::Warning), "interrupted".to_owned()),
    }
}

const fn reason_words(reason: WarmUpReason) -> &'static str {
    match reason {
        WarmUpReason::Started => "started",
        WarmUpReason::Reset => "after a reset",
        WarmUpReason::HardReset => "after a hard reset",
        WarmUpReason::Cancelled => "the worker was killed to end a cancelled job",
        WarmUpReason::WorkerLost => "the worker was lost",
        WarmUpReason::DaemonLost => "the daemon was lost",
    }
}

/// The first line of a text, shortened, with a mark where more follows.
fn first_line(text: &str) -> String {
    const WIDTH: usize = 100;
    let trimmed = printable(text.trim_end());
    let line = trimmed.lines().next().unwrap_or_default();
    let short: String = line.chars().take(WIDTH).collect();
    let is_whole = short.len() == trimmed.len();
    if is_whole { short } else { format!("{short} …") }
}
