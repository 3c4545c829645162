//! `mainstay events`: what happened in a session, or in all.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_gateway::rpc::api::{Follow, ListAllEvents, ListEvents};
use mainstay_gateway::rpc::client::Client;
use mainstay_gateway::view::SessionView;
use mainstay_model::eval::Failure;
use mainstay_model::event::CancelEnding;
use mainstay_model::replay::Divergence;
use mainstay_model::screen::settled;
use mainstay_model::session::DIVERGENCES_KEPT;
use mainstay_model::transcript::total;
use mainstay_model::{
    AskEnding, CommandId, Error, Event, EventBody, EventFilter, EventKind, ForkPoint, Kept, Position, Seq,
    Source, SourceName, WarmUpReason, WorkEnding,
};
use tokio::time::{MissedTickBehavior, interval};

use super::interrupts;
use super::story::Story;
use super::target::{KIND_SOUGHT, NO_PROJECT_SOUGHT, PROJECT_SOUGHT, Target};
use crate::connect::{Connection, connect_or_start};
use crate::home::Home;
use crate::terminal::{Paint, Tone, counted, printable};

/// A line that has not gone on for this long, at most twice as long, is told before its end.
const PATIENCE: Duration = Duration::from_millis(200);
/// What shells make of a program that Ctrl-C ends.
const INTERRUPTED: u8 = 128 + 2;

/// Shows what happened in a session, or in all.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("kind", |kind| kind.long("session-kind").help(KIND_SOUGHT)), mut_arg("project", |project| project.help(PROJECT_SOUGHT)), mut_arg("no_project", |none| none.help(NO_PROJECT_SOUGHT)))]
pub(super) struct Events {
    #[command(flatten)]
    target: Target,

    /// What happened in all sessions, in the order of the log
    #[arg(short, long, conflicts_with_all = ["session", "kind", "project"])]
    all: bool,

    /// Only what came after this event; with --all, after this position
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    since: u64,

    /// Only events of this kind, as `--json` shows it: evalCompleted, outputProduced. May be given more than once
    #[arg(long = "kind", value_name = "KIND")]
    event_kinds: Vec<EventKind>,

    /// Only what this caused: a client (cli, terminal), worker, or system, which is Mainstay itself
    #[arg(long, value_name = "NAME")]
    source: Option<SourceName>,

    /// Only events of this command
    #[arg(short, long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    command: Option<CommandId>,

    /// Go on with what happens next, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay events --since 10
  mainstay events --follow --json | jq .kind
  mainstay events --kind evalFailed --source cli
  mainstay events --command my-eval-7
  mainstay events --all --follow --kind evalCompleted --kind evalFailed";

impl Events {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let session = match self.all {
            true => None,
            false => Some(self.target.find(home, &connection.client).await?),
        };
        let paint = Paint::stdout();
        let mut story = session.as_ref().map_or_else(|| Story::of_all_sessions(paint), |_| Story::new(paint));
        let ended = if self.follow {
            self.follow(connection, session.as_ref(), &mut story).await
        } else {
            self.look_back(&connection.client, session.as_ref(), &mut story).await
        };
        print!("{}", story.end());
        ended
    }

    /// Shows what has happened.
    async fn look_back(
        &self,
        client: &Client,
        session: Option<&SessionView>,
        story: &mut Story,
    ) -> Result<ExitCode, Error> {
        let filter = self.filter();
        let show = |event: &Event| {
            if filter.matches(event) {
                self.show(event, story);
            }
        };
        match session {
            Some(session) => for_each_event(client, session, Seq(self.since), show).await?,
            None => for_each_event_of_all(client, Position(self.since), show).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows what happens, until Ctrl-C comes, the connection ends, or the session is deleted.
    async fn follow(
        &self,
        mut connection: Connection,
        session: Option<&SessionView>,
        story: &mut Story,
    ) -> Result<ExitCode, Error> {
        let mut interrupts = interrupts()?;
        let follow = Follow {
            session: session.map(|session| session.session.to_string()),
            after: session.map(|_| Seq(self.since)),
            after_position: session.is_none().then_some(Position(self.since)),
            filter: self.filter(),
        };
        connection.client.call(follow).await?;
        let mut looks = interval(PATIENCE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut last_at_look) = (Position::ZERO, Position::ZERO);
        loop {
            tokio::select! {
                event = connection.events.recv() => {
                    let Some(event) = event else { return Err(connection.client.lost()) };
                    last = event.position;
                    self.show(&event, story);
                    if session.is_some() && matches!(event.body, EventBody::SessionDeleted) {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
                _ = looks.tick(), if story.is_inside_line() => {
                    print!("{}", story.end_until(last_at_look));
                    last_at_look = last;
                }
                _ = interrupts.recv() => return Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    }

    fn filter(&self) -> EventFilter {
        EventFilter {
            sessions: BTreeSet::new(),
            kinds: self.event_kinds.iter().copied().collect(),
            source: self.source.clone(),
            correlation: self.command.clone(),
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

/// Reads the events of all sessions page by page.
async fn for_each_event_of_all(
    client: &Client,
    mut after_position: Position,
    mut show: impl FnMut(&Event),
) -> Result<(), Error> {
    loop {
        let events = client.call(ListAllEvents { after_position, limit: None }).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after_position = last.position;
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
        EventBody::SessionForked(ForkPoint { from, entries, .. }) => {
            (None, format!("forked off {} with {entries} of its entries", from.short()))
        }
        EventBody::EntriesMerged(point) => {
            let (from, entries) = (point.from.short(), counted(total(&point.brought), "entry"));
            (None, format!("{entries} of {from} merged behind the first {}", point.at))
        }
        EventBody::SessionImported { .. } => (None, "read from a file".to_owned()),
        EventBody::SessionRenamed { name } => (None, format!("renamed to `{name}`")),
        EventBody::WarmUpStarted { reason } => (None, format!("warms up: {}", reason_words(*reason))),
        EventBody::WarmUpCompleted { diverged, reload: Some(reload), .. } => {
            let tone = if diverged.is_empty() { Tone::Good } else { Tone::Warning };
            (Some(tone), reload.line(diverged))
        }
        EventBody::WarmUpCompleted { kernel, replayed, diverged, duration_ms, .. } => {
            let tone = if diverged.is_empty() { Tone::Good } else { Tone::Warning };
            let diverged = divergence_words(diverged);
            (Some(tone), format!("ready: {kernel}, {replayed} replayed ({duration_ms} ms){diverged}"))
        }
        EventBody::SessionFaulted { message } => (Some(Tone::Error), format!("faulted: {message}")),
        EventBody::SessionReset => (None, "reset".to_owned()),
        EventBody::SessionHardReset => (None, "hard reset".to_owned()),
        EventBody::SessionStopped => (None, "put to rest".to_owned()),
        EventBody::SessionDeleted => (Some(Tone::Warning), "deleted".to_owned()),
        EventBody::SessionUnloaded { alias: Some(alias) } => (None, format!("unloaded: `{alias}` is free")),
        EventBody::SessionUnloaded { alias: None } => (None, "unloaded".to_owned()),
        EventBody::SessionLoaded { alias: Some(alias) } => (None, format!("loaded as `{alias}`")),
        EventBody::SessionLoaded { alias: None } => (None, "loaded".to_owned()),
        EventBody::WorkerExited { exit, restart_after_ms, reason, .. } => {
            let next = match restart_after_ms {
                None => "not replaced".to_owned(),
                Some(0) => "replaced at once".to_owned(),
                Some(after) => format!("replaced in {} s", *after as f64 / 1000.0),
            };
            let why = reason.as_ref().map_or_else(String::new, |reason| format!(" ({})", first_line(reason)));
            (Some(Tone::Warning), format!("the worker ended with {exit}{why}; {next}"))
        }
        EventBody::CommandQueued(queued) => {
            (Some(Tone::Faint), format!("queued {} {}", queued.body.action(), queued.command))
        }
        EventBody::CommandLeft { command, error, .. } => match error {
            Some(error) => (Some(Tone::Warning), format!("{command} did not begin: {error}")),
            None => (Some(Tone::Faint), format!("{command} had nothing to do")),
        },
        EventBody::AskRaised(ask) => {
            (Some(Tone::Name), format!("asks {}: {}", ask.ask.short(), first_line(&ask.question.prompt)))
        }
        EventBody::AskEnded { ask, ending } => match ending {
            AskEnding::Answered { value } => {
                (None, format!("answered {}: {}", ask.short(), first_line(&value.to_string())))
            }
            AskEnding::Withheld => {
                (None, format!("answered {} with a secret, which is not kept", ask.short()))
            }
            AskEnding::Defaulted { value } => {
                (Some(Tone::Warning), format!("nobody answered {}; {value} was taken", ask.short()))
            }
            AskEnding::TimedOut { .. } => (Some(Tone::Warning), format!("nobody answered {}", ask.short())),
            AskEnding::Cancelled => (None, format!("{} is no longer asked", ask.short())),
        },
        EventBody::EvalTimedOut { limit_ms, .. } => {
            (Some(Tone::Warning), format!("took longer than {limit_ms} ms and was told to stop"))
        }
        EventBody::EvalRequested { withheld: true, .. } => (None, "eval (withheld)".to_owned()),
        EventBody::EvalRequested { code, .. } => (None, format!("eval {}", first_line(code))),
        EventBody::OutputProduced { text, .. } => {
            (Some(Tone::Faint), format!("printed {}", first_line(settled(text).trim_start_matches('\n'))))
        }
        EventBody::OutputDisplayed { display, .. } => {
            let what = if display.is_value { "has the value as" } else { "showed" };
            (
                Some(Tone::Faint),
                format!("{what} {}: {}", display.data.kinds().join(", "), first_line(&display.data.words())),
            )
        }
        EventBody::OutputCleared { .. } => {
            (Some(Tone::Faint), "took back what it had printed and shown".to_owned())
        }
        EventBody::CommPublished { message, .. } => (Some(Tone::Faint), format!("comm: {message}")),
        EventBody::OutputCut { limit, .. } => {
            (Some(Tone::Warning), format!("output cut at {limit} bytes, but for its end"))
        }
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
                Failure::WorkerExited { exit } => exit.of_code(),
            };
            (Some(Tone::Error), format!("failed: {}", first_line(&why)))
        }
        EventBody::EvalCancelled { ending, kept, .. } => {
            (Some(Tone::Warning), cancelled_words(*ending, kept.as_ref()))
        }
        EventBody::EvalInterrupted { .. } => (Some(Tone::Warning), "interrupted".to_owned()),
        EventBody::EnvironmentChanged { references } => {
            let names: Vec<&str> = references.keys().map(String::as_str).collect();
            (
                None,
                if names.is_empty() {
                    "rests on nothing else".to_owned()
                } else {
                    format!("rests on {}", names.join(", "))
                },
            )
        }
        EventBody::AssembliesChanged { changed, .. } => {
            (Some(Tone::Warning), format!("{} changed: what used it may be out of date", changed.join(", ")))
        }
        EventBody::SourcesChanged { changed } => {
            (Some(Tone::Warning), format!("{} changed: no build has it yet", changed.join(", ")))
        }
        EventBody::JobRequested { work, .. } => {
            (None, format!("{}: {}", work.kind().name(), first_line(&work.to_string())))
        }
        EventBody::JobEnded { ending, duration_ms, .. } => {
            let tone = match ending {
                WorkEnding::Done { .. } => Tone::Good,
                WorkEnding::Cancelled { .. } => Tone::Warning,
                WorkEnding::Failed { .. } | WorkEnding::Interrupted => Tone::Error,
            };
            (Some(tone), format!("{} ({duration_ms} ms)", first_line(&ending.to_string())))
        }
        EventBody::MessageStreamed(delta) => (Some(Tone::Faint), format!("says {}", first_line(&delta.text))),
        EventBody::PromptQueued(queued) => (None, first_line(&queued.to_string())),
        EventBody::QueueChanged { queue } => {
            (Some(Tone::Faint), format!("has still to hear {}", counted(queue.len() as u64, "message")))
        }
        EventBody::AgentChanged(state) => (Some(Tone::Faint), first_line(&state.to_string())),
        EventBody::AgentNoted(note) => (Some(Tone::Faint), first_line(&note.to_string())),
        EventBody::MessageAdded(message) => (None, first_line(&message.to_string())),
        EventBody::EntryLabeled { entry, label: Some(label) } => {
            (None, format!("called entry {} of {} `{label}`", entry.number, entry.session.short()))
        }
        EventBody::EntryLabeled { entry, label: None } => {
            (None, format!("took the label off entry {} of {}", entry.number, entry.session.short()))
        }
        EventBody::TranscriptCompacted(compaction) => (
            None,
            format!(
                "compacted {}: {}",
                counted(total(&compaction.covers), "entry"),
                first_line(&compaction.summary)
            ),
        ),
    }
}

/// How a cancelled eval ended, and what of it still counts.
pub(crate) fn cancelled_words(ending: CancelEnding, kept: Option<&Kept>) -> String {
    let how = match ending {
        CancelEnding::Yielded => "cancelled",
        CancelEnding::Killed => "cancelled by killing the worker",
    };
    match kept {
        Some(Kept { bytes, .. }) => {
            format!("{how}; the first {bytes} bytes of its code had run to their end and are kept")
        }
        None => how.to_owned(),
    }
}

/// What a rebuilt session has otherwise than before, as far as a line holds it.
fn divergence_words(diverged: &[Divergence]) -> String {
    let told = diverged.iter().take(DIVERGENCES_KEPT).map(|divergence| format!("; {divergence}"));
    let more = match diverged.len().saturating_sub(DIVERGENCES_KEPT) {
        0 => String::new(),
        untold => format!("; … and {untold} more"),
    };
    told.chain([more]).collect()
}

const fn reason_words(reason: WarmUpReason) -> &'static str {
    match reason {
        WarmUpReason::Started => "started",
        WarmUpReason::Reset => "after a reset",
        WarmUpReason::HardReset => "after a hard reset",
        WarmUpReason::Refreshed => "what it rests on is taken in anew",
        WarmUpReason::Cancelled => "the worker was killed to end a cancelled job",
        WarmUpReason::WorkerLost => "the worker was lost",
        WarmUpReason::DaemonLost => "the daemon was lost",
        WarmUpReason::Merged => "with what was put into its transcript",
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

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::replay::DivergenceKind;
    use mainstay_model::{Compaction, Message, Part, PartRole, Segment, WorkerExit};

    fn words(body: &EventBody) -> String {
        describe(body).1
    }

    #[test]
    fn a_cancelled_eval_says_how_much_of_it_is_kept() {
        let job = "019a0000-0000-7000-8000-000000000001".parse().unwrap();
        let cancelled = |ending, kept| words(&EventBody::EvalCancelled { job, ending, kept });
        assert_eq!(cancelled(CancelEnding::Yielded, None), "cancelled");
        assert_eq!(
            cancelled(CancelEnding::Yielded, Some(Kept { bytes: 14, bindings: Vec::new() })),
            "cancelled; the first 14 bytes of its code had run to their end and are kept"
        );
        assert_eq!(cancelled(CancelEnding::Killed, None), "cancelled by killing the worker");
    }

    #[test]
    fn a_worker_that_ended_says_when_it_is_replaced() {
        let ended = |attempt, restart_after_ms| {
            words(&EventBody::WorkerExited {
                exit: WorkerExit::Code(3),
                attempt,
                restart_after_ms,
                reason: None,
                blame: None,
            })
        };
        assert_eq!(ended(0, Some(0)), "the worker ended with exit code 3; replaced at once");
        assert_eq!(ended(1, Some(1500)), "the worker ended with exit code 3; replaced in 1.5 s");
        assert_eq!(ended(6, None), "the worker ended with exit code 3; not replaced");
    }

    #[test]
    fn a_line_holds_only_so_many_divergences() {
        let ready = |count: u64| {
            words(&EventBody::WarmUpCompleted {
                kernel: "fsharp".to_owned(),
                runtime: "test".to_owned(),
                language: None,
                pid: 1,
                replayed: 9,
                diverged: (1..=count)
                    .map(|seq| Divergence {
                        requested: Seq(seq),
                        session: None,
                        kind: DivergenceKind::Ending { error: None },
                    })
                    .collect(),
                startup: None,
                reload: None,
                duration_ms: 1,
            })
        };
        assert_eq!(ready(1), "ready: fsharp, 9 replayed (1 ms); #1 ended otherwise");
        assert!(ready(20).ends_with("; #20 ended otherwise"));
        assert!(ready(23).ends_with("; #20 ended otherwise; … and 3 more"));
    }

    #[test]
    fn a_message_is_told_in_one_line_each_part_by_its_role() {
        let parts = vec![
            Part::text(PartRole::Assistant, "I look.\nNow."),
            Part::tool_call("c1", "read", &serde_json::json!({ "path": "a.txt" })),
        ];
        let message = Message { parts, ..Message::default() };
        assert_eq!(
            words(&EventBody::MessageAdded(Box::new(message))),
            "assistant: I look. Now. · toolCall read: {\"path\":\"a.txt\"}"
        );
        let session = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        let covers = vec![Segment::new(session, 2, 6)];
        let compaction = Compaction { covers, summary: "A file.".to_owned(), metadata: Default::default() };
        assert_eq!(
            words(&EventBody::TranscriptCompacted(Box::new(compaction))),
            "compacted 4 entries: A file."
        );
    }
}
