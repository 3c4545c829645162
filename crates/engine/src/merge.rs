//! Merges into a live session: the inputs of another session's entries run there, one after the other, up to the first that
//! fails. What comes of each is the session's own, and says where its code was brought from.
//!
//! Each is a command of its own, whose id follows from the merge's: a merge that is sent again goes on where it was cut off,
//! and runs nothing twice.

use std::collections::BTreeMap;
use std::ops::Range;

use mainstay_model::command;
use mainstay_model::transcript::{slice, total};
use mainstay_model::{
    Admission, Answered, Command, CommandId, CommandLine, Error, EvalOutcome, Origin, Outcome, Response,
    Role, Segment, SessionCommand, SessionId, TranscriptEntry,
};
use serde::Deserialize;

use crate::client::Client;
use crate::sync::task;

/// What is brought into a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The session it is brought from.
    pub from: SessionId,
    /// Which entries of its transcript, by their indices.
    pub entries: Vec<Range<u64>>,
}

/// What came of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// What ran to its end, in order.
    pub applied: Vec<MergedInput>,
    /// What stopped the merge.
    pub stopped: Option<MergeStop>,
    /// The indices of the inputs behind it, which were not run.
    pub left: Vec<u64>,
}

/// An input that was brought, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedInput {
    /// Its index in the other transcript.
    pub index: u64,
    /// The command that ran it.
    pub command: CommandId,
    /// What came of it.
    pub outcome: EvalOutcome,
}

/// What stopped a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStop {
    /// The input did not run to its end.
    Ended(MergedInput),
    /// It could not be run.
    Refused {
        /// The input's index in the other transcript.
        index: u64,
        /// The error with which it was refused.
        error: Error,
    },
}

impl Client {
    /// Runs in `session` the inputs of another session's entries, in the order of its transcript; an output that is asked for
    /// brings its input. Whoever waits for it may go: it is carried out all the same.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`], [`Error::KernelUnknown`] where nothing runs there,
    /// [`Error::InvalidArgument`] where the other has no such entries or
    /// there is no input among them, [`Error::EntryDamaged`], [`Error::StoreFailed`]. What an input's eval is refused for is
    /// in the answer.
    pub async fn merge(&self, session: SessionId, id: CommandId, merge: Merge) -> Result<Merged, Error> {
        self.must_drive(session).await?;
        let into = self.visible_session(session).await?;
        self.engine().shared.must_serve(&into.kind)?;
        let inputs = self.inputs(&merge).await?;
        // An id that is too long for the last part is refused before anything runs.
        id.part(inputs.len() as u64)?;
        let client = self.clone();
        let merged = task::spawn(async move { client.run_inputs(session, &id, inputs).await });
        merged.await.unwrap_or_else(|error| Err(Error::DaemonFailed { reason: error.to_string() }))
    }

    async fn run_inputs(&self, session: SessionId, id: &CommandId, inputs: Inputs) -> Result<Merged, Error> {
        let mut merged = Merged::default();
        let mut inputs = inputs.into_iter().zip(1_u64..);
        for ((index, input), number) in inputs.by_ref() {
            let command = id.part(number)?;
            let ran = match self.eval_of(input).await {
                Ok(body) => self.run_input(session, command.clone(), body).await,
                Err(error) => Err(error),
            };
            match ran {
                Ok(outcome) if outcome.success() => {
                    merged.applied.push(MergedInput { index, command, outcome })
                }
                Ok(outcome) => {
                    merged.stopped = Some(MergeStop::Ended(MergedInput { index, command, outcome }));
                    break;
                }
                Err(error) => {
                    merged.stopped = Some(MergeStop::Refused { index, error });
                    break;
                }
            }
        }
        merged.left = inputs.map(|((index, _), _)| index).collect();
        Ok(merged)
    }

    async fn run_input(
        &self,
        session: SessionId,
        id: CommandId,
        body: SessionCommand,
    ) -> Result<EvalOutcome, Error> {
        let command = Command { admission: Admission::Queue, ..Command::new(id, self.source(), body) };
        let Answered { outcome, .. } = self.submit(session, command).await?;
        match outcome {
            Outcome::Done { response: Response::Evaluated(outcome) } => Ok(outcome),
            Outcome::Done { response } => {
                Err(Error::BadRequest { reason: format!("the command's outcome is {response:?}") })
            }
            Outcome::Failed { error } => Err(error),
        }
    }

    async fn eval_of(&self, input: TranscriptEntry) -> Result<SessionCommand, Error> {
        let code = self.engine().text_of(&input).await?;
        let TranscriptEntry { session, number, entry, .. } = input;
        let file = entry.metadata.get("file").and_then(|file| file.as_str()).map(str::to_owned);
        let command_line =
            entry.metadata.get("commandLine").and_then(|line| CommandLine::deserialize(line).ok());
        let origin = Some(Origin { session, number });
        Ok(SessionCommand::Eval(command::Eval { code, file, command_line, origin, withheld: false }))
    }

    /// The entries with these indices, and what belongs to them.
    pub(crate) async fn whole_range(
        &self,
        segments: &[Segment],
        wanted: Range<u64>,
    ) -> Result<Range<u64>, Error> {
        let Range { start, end } = wanted;
        let all = total(segments);
        if start >= end || end > all {
            let reason = format!("it has {all} entries; {start}..{end} is not a range of them");
            return Err(Error::InvalidArgument { argument: "entries".to_owned(), reason });
        }
        self.engine().whole_around(segments, start..end).await
    }

    /// The inputs among what is to be brought, by their indices.
    async fn inputs(&self, merge: &Merge) -> Result<Inputs, Error> {
        let other = self.status(merge.from).await?.session;
        let segments = self.engine().segments_of(&other).await?;
        let mut inputs = Inputs::new();
        for Range { start, end } in merge.entries.iter().cloned() {
            let Range { start, end } = self.whole_range(&segments, start..end).await?;
            let entries = self.engine().entries_of(&slice(&segments, start..end)).await?;
            inputs.extend((start..).zip(entries).filter(|(_, placed)| placed.entry.role == Role::Input));
        }
        if inputs.is_empty() {
            let reason = match other.is_agent() {
                true => {
                    "there is no input among them: what an agent's conversation says does not run".to_owned()
                }
                false => "there is no input among them".to_owned(),
            };
            return Err(Error::InvalidArgument { argument: "entries".to_owned(), reason });
        }
        Ok(inputs)
    }
}

/// By their indices in the other transcript.
type Inputs = BTreeMap<u64, TranscriptEntry>;
