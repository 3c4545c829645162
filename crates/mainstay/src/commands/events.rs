//! `mainstay events`: what happened in a session, or in all.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::event::EventKind;
use mainstay_model::{CommandId, Error, Event, EventBody, EventFilter, Position, Seq, SourceName};
use mainstay_protocol::operations::{Follow, ListAllEvents, ListEvents};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Paint, note};
use mainstay_terminal_client::connect::{Connection, connected};
use mainstay_terminal_client::daemon_fate::connect_to_next;
use mainstay_terminal_client::event_table::EventTable;
use mainstay_terminal_client::link::is_loss;
use tokio::time::{MissedTickBehavior, interval};

use super::interrupts::interrupts;
use super::target::{KIND_SOUGHT, NO_PROJECT_SOUGHT, PROJECT_SOUGHT, Target};

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
        let session = async |connection: &Connection| match self.all {
            true => Ok(None),
            false => self.target.find(&connection.client).await.map(Some),
        };
        let (connection, session) = connected(home, "cli", session).await?;
        let paint = Paint::stdout();
        let mut table =
            session.as_ref().map_or_else(|| EventTable::of_all_sessions(paint), |_| EventTable::new(paint));
        let ended = if self.follow {
            self.follow(home, connection, session.as_ref(), &mut table).await
        } else {
            self.look_back(&connection.client, session.as_ref(), &mut table).await
        };
        print!("{}", table.end());
        ended
    }

    /// Shows what has happened.
    async fn look_back(
        &self,
        client: &Client,
        session: Option<&SessionView>,
        table: &mut EventTable,
    ) -> Result<ExitCode, Error> {
        let filter = self.filter();
        let show = |event: &Event| {
            if filter.matches(event) {
                self.show(event, table);
            }
        };
        match session {
            Some(session) => for_each_event(client, session, Seq(self.since), show).await?,
            None => for_each_event_of_all(client, Position(self.since), show).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows what happens, until Ctrl-C comes, the daemon is told to stop, or the session is deleted. Where the daemon is lost, the next
    /// one goes on after the last event that was seen.
    async fn follow(
        &self,
        home: &Home,
        mut connection: Connection,
        session: Option<&SessionView>,
        table: &mut EventTable,
    ) -> Result<ExitCode, Error> {
        let mut interrupts = interrupts()?;
        let mut last = self.since;
        let followed = async {
            loop {
                match self.follow_over(&mut connection, session, &mut last, table).await {
                    Err(error) if is_loss(&error) => {
                        connection = connect_to_next(home, "cli", &connection).await?;
                        note("the daemon was lost, or began anew; the next one goes on with the events");
                    }
                    followed => return followed.map(|()| ExitCode::SUCCESS),
                }
            }
        };
        tokio::select! {
            ended = followed => ended,
            _ = interrupts.recv() => Ok(ExitCode::from(INTERRUPTED)),
        }
    }

    /// Shows what comes after the event `last`, which is the last one that was shown, over one connection.
    async fn follow_over(
        &self,
        connection: &mut Connection,
        session: Option<&SessionView>,
        last: &mut u64,
        table: &mut EventTable,
    ) -> Result<(), Error> {
        let follow = Follow {
            session: session.map(|session| session.session.to_string()),
            after: session.map(|_| Seq(*last)),
            after_position: session.is_none().then_some(Position(*last)),
            filter: self.filter(),
        };
        connection.client.call(follow).await?;
        let mut looks = interval(PATIENCE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut newest, mut newest_at_look) = (Position::ZERO, Position::ZERO);
        loop {
            tokio::select! {
                event = connection.events.recv() => {
                    let Some(event) = event else { return Err(connection.client.lost()) };
                    newest = event.position;
                    *last = if session.is_some() { event.seq.0 } else { event.position.0 };
                    self.show(&event, table);
                    if session.is_some() && matches!(event.body, EventBody::SessionDeleted) {
                        return Ok(());
                    }
                }
                _ = looks.tick(), if table.is_inside_line() => {
                    print!("{}", table.end_until(newest_at_look));
                    newest_at_look = newest;
                }
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

    fn show(&self, event: &Event, table: &mut EventTable) {
        if self.json {
            super::print_json_line(event).ok();
        } else {
            print!("{}", table.rows_of(event));
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
