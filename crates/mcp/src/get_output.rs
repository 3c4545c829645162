//! `get_output`: all that code printed, by lines: answers have the beginning and the end of what is long.

use std::fmt::{Display, Formatter};
use std::num::NonZeroU32;

use mainstay_engine::CommandStatus;
use mainstay_model::affordance::Reach;
use mainstay_model::event::JobPart;
use mainstay_model::screen::settled;
use mainstay_model::{Action, CommandId, Error, Event, JobId, Outcome, Response, Seq, SessionId};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::view::for_each_between;

/// How many lines an answer has where the client does not say it.
const USUAL: u32 = 200;
/// The most lines in one answer.
const MOST: u32 = 5_000;
/// What the words take that say which lines these are, at most.
const SAID_BYTES: usize = 200;
/// How many events are read at once.
const PAGE: u64 = 256;

/// Asks for the output of a job.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetOutput {
    session_id: Option<String>,
    /// Of a call that still runs.
    id: Option<String>,
    /// Of the answer that was cut.
    seq: Option<u64>,
    /// The first line, from 1.
    from: Option<NonZeroU32>,
    // An answer that cuts a line says where it goes on; models need not read of it before.
    column: Option<NonZeroU32>,
    /// How many lines, 200 by default.
    lines: Option<Within<1, MOST>>,
}

/// The lines that were asked for, and what is left.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutputAnswer {
    session_id: String,
    /// How many there are.
    of: usize,
    /// The first of these.
    from: usize,
    /// Its first character here, where that is not its own first.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    lines: Vec<String>,
    /// Where the only line goes on, where it is longer than an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

/// A line that is longer than an answer, counted in characters.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Cut {
    /// The first that is not here.
    column: usize,
    /// How many the line has.
    characters: usize,
}

impl Tool for GetOutput {
    const NAME: &'static str = "get_output";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "Read what code printed, by lines, where an answer was cut.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    type Answer = OutputAnswer;

    async fn carry_out(self, call: &Call) -> Result<OutputAnswer, Error> {
        let Self { session_id, id, seq, from, column, lines } = self;
        let from = from.map_or(1, |from| from.get() as usize);
        let lines = Within::given(lines, "lines", USUAL)? as usize;
        let (session, span) = match id {
            Some(id) => of_command(call, &CommandId::new(id)?).await?,
            None => {
                let session = call.existing(session_id.as_deref(), Action::Events).await?;
                (session, of_event(call, session, seq).await?)
            }
        };
        call.is_about(session);
        let text = put_out(call, session, span).await?;
        let all: Vec<&str> = text.lines().collect();
        let mut lines: Vec<String> =
            all.iter().skip(from - 1).take(lines).map(|line| (*line).to_owned()).collect();
        let column = column.map(|column| column.get() as usize).filter(|column| *column > 1);
        if let (Some(column), Some(line)) = (column, lines.first_mut()) {
            *line = behind(line, column, from)?;
        }
        Ok(OutputAnswer { session_id: session.short(), of: all.len(), from, column, lines, cut: None })
    }
}

/// A line from this character on.
fn behind(line: &str, column: usize, number: usize) -> Result<String, Error> {
    match line.char_indices().nth(column - 1) {
        Some((at, _)) => Ok(line.get(at..).unwrap_or_default().to_owned()),
        None => Err(Error::InvalidArgument {
            argument: "column".to_owned(),
            reason: format!("it is {column}, and line {number} has {} characters", line.chars().count()),
        }),
    }
}

/// Between which events a command's code prints.
async fn of_command(call: &Call, id: &CommandId) -> Result<(SessionId, (Seq, Seq)), Error> {
    let unknown = || Error::CommandNotFound { command: id.clone() };
    let under_way = call.calls().find(call.client().principal(), id);
    let id = under_way.as_ref().map_or(id, |under_way| under_way.command());
    let status =
        match (call.client().command(id).await, under_way.as_ref().and_then(|under_way| under_way.session()))
        {
            // What runs in parts has no command of its own: what it is at is meant.
            (Err(Error::CommandNotFound { .. }), Some(session)) => {
                return Ok((session, of_event(call, session, None).await?));
            }
            (status, _) => status?,
        };
    match status {
        CommandStatus::Waits { session } => Ok((session, (Seq(0), Seq(0)))),
        CommandStatus::Runs { session } => {
            let status = call.client().status(session).await?.session;
            let running = status.running().filter(|running| running.command == *id);
            let requested = running.map_or(status.last_seq, |running| running.requested);
            Ok((session, (requested, status.last_seq.next())))
        }
        CommandStatus::Ended(stored) => {
            let session = stored.session.ok_or_else(unknown)?;
            match stored.outcome {
                Outcome::Done { response: Response::Evaluated(outcome) } => {
                    Ok((session, (outcome.requested, outcome.completed)))
                }
                Outcome::Done { response: Response::Worked(outcome) } => {
                    Ok((session, (outcome.requested, outcome.completed)))
                }
                Outcome::Done { .. } => Ok((session, (Seq(0), Seq(0)))),
                Outcome::Failed { error } => Err(error),
            }
        }
    }
}

/// The same of the job that this event of a session ended; without one, of the job that runs, or else of the newest.
async fn of_event(call: &Call, session: SessionId, seq: Option<u64>) -> Result<(Seq, Seq), Error> {
    let status = call.client().status(session).await?.session;
    let last = status.last_seq;
    if let (None, Some(running)) = (seq, status.running()) {
        return Ok((running.requested, last.next()));
    }
    let mut before = seq.map_or(last.next(), |seq| Seq(seq).next().min(last.next()));
    let mut ended: Option<(JobId, Seq)> = None;
    while before.0 > 1 {
        let after = Seq(before.0.saturating_sub(PAGE + 1));
        let count = usize::try_from(before.0 - after.0 - 1).unwrap_or_default();
        let events = call.client().events(session, after, count).await?;
        for event in events.iter().rev() {
            match ended {
                None => ended = event.body.job_end().map(|(job, _)| (job, event.seq)),
                Some((job, completed)) if is_request(event, job) => return Ok((event.seq, completed)),
                Some(_) => {}
            }
        }
        before = after.next();
    }
    let seq = seq.map_or_else(String::new, |seq| format!(" {seq}"));
    Err(Error::InvalidArgument {
        argument: "seq".to_owned(),
        reason: format!("no code has ended by event{seq}; it is the seq of an answer to code"),
    })
}

fn is_request(event: &Event, job: JobId) -> bool {
    match event.body.job_part() {
        Some((of, JobPart::Requested { .. })) => of == job,
        Some(_) | None => false,
    }
}

/// What code put out between two events.
pub(super) async fn put_out(
    call: &Call,
    session: SessionId,
    (from, to): (Seq, Seq),
) -> Result<String, Error> {
    let mut text = String::new();
    for_each_between(call.client(), session, from, to, |event| match event.body.job_part() {
        Some((_, JobPart::Printed { text: more, .. })) => text.push_str(more),
        Some((_, JobPart::Displayed(display))) if display.is_put_out() => {
            text.push_str(&display.data.words());
            text.push('\n');
        }
        Some((_, JobPart::Cleared)) => text.clear(),
        Some(_) | None => {}
    })
    .await?;
    Ok(settled(&text).into_owned())
}

impl Answer for OutputAnswer {
    fn fit(&mut self, bytes: usize) {
        let most = bytes.saturating_sub(SAID_BYTES);
        let mut room = most;
        let fitting = self.lines.iter().take_while(|line| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        });
        let count = fitting.count();
        if count < self.lines.len() {
            self.lines.truncate(count.max(1));
        }
        if let (0, Some(line)) = (count, self.lines.first_mut()) {
            let before = self.column.map_or(0, |column| column - 1);
            let characters = before + line.chars().count();
            // One character is shown at least, so that every call gets on.
            let least = line.chars().next().map_or(0, char::len_utf8);
            let whole = line.len();
            line.truncate(line.floor_char_boundary(most).max(least));
            if line.len() < whole {
                self.cut = Some(Cut { column: before + line.chars().count() + 1, characters });
            }
        }
    }
}

impl Display for OutputAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, of, from, column, lines, cut } = self;
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if let Some(Cut { column: next, characters }) = cut {
            let (first, last) = (column.unwrap_or(1), next - 1);
            return write!(
                f,
                "characters {first} to {last} of the {characters} of line {from}, of {of} lines: go on with from {from} and column {next} \
                 [session {session_id}]"
            );
        }
        match lines.len() {
            0 => write!(f, "no lines from {from} on; there are {of} [session {session_id}]"),
            count => {
                let last = from + count - 1;
                write!(f, "lines {from} to {last} of {of} [session {session_id}]")
            }
        }
    }
}
