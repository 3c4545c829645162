//! Merges by reference: entries of another session are put into a transcript at a place, in one event. Nothing is copied, and nothing runs
//! but what rebuilds the session. What is live is built anew with them.

use std::ops::Range;
use std::time::{Duration, Instant};

use mainstay_log::Log;
use mainstay_model::command;
use mainstay_model::transcript::{kept, slice, total};
use mainstay_model::{
    Answered, Command, CommandId, Error, EventBody, MergePoint, Outcome, Response, Segment, Seq, Session,
    SessionCommand, SessionId, SessionState, Transcript, Version,
};

use crate::client::Client;
use crate::engine::CommandStatus;
use crate::entries::events_of;
use crate::merge::Merge;
use crate::warm_up::is_no_reset;

/// How many events are read from the log at once.
const PAGE: usize = 512;
/// How often it is found out anew what a merge comes to, where the session changes meanwhile.
const ATTEMPTS: usize = 8;

/// Where entries were put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// How many entries were inserted.
    pub entries: u64,
    /// Behind how many they stand.
    pub at: u64,
    /// Behind how many they were to stand, where that would have parted what belongs together.
    pub asked: Option<u64>,
}

impl Client {
    /// Puts entries of another session into the transcript of `session`, behind the first `at`, or at the end. An output brings its
    /// input and a tool's result its call, and no such two are parted. A session that is live is built anew; one that is being built is
    /// waited for, as long as a command may wait for those it depends on.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`], [`Error::NotOffered`] while something runs,
    /// [`Error::InvalidArgument`] where there are no such entries, or what stands there was dropped by a reset,
    /// [`Error::CommandConflict`], [`Error::EntryDamaged`], [`Error::StoreFailed`].
    pub async fn insert(
        &self,
        session: SessionId,
        id: CommandId,
        merge: Merge,
        at: Option<u64>,
    ) -> Result<Inserted, Error> {
        self.must_drive(session).await?;
        let mut attempts = 0;
        let patience = Duration::from_millis(self.engine().shared.limits.dependency_wait_ms);
        let until = Instant::now() + patience;
        loop {
            attempts += 1;
            let body = match self.answered_before(&id).await? {
                // What it came to then is not looked at.
                true => self.unplanned(&merge, at),
                false => self.plan(session, &merge, at).await?,
            };
            let command = Command::new(id.clone(), self.source(), body);
            match self.submit(session, command).await {
                Ok(Answered { outcome, .. }) => return inserted(outcome),
                Err(Error::VersionMismatch { .. }) if attempts < ATTEMPTS => {}
                // An earlier merge, or whatever else came before it, has it built anew.
                Err(Error::NotOffered { state: SessionState::WarmingUp, .. }) if Instant::now() < until => {
                    attempts -= 1;
                    self.settled(session, until - Instant::now()).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a command of this id was carried out.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn answered_before(&self, id: &CommandId) -> Result<bool, Error> {
        match self.command(id).await {
            Ok(CommandStatus::Ended(_)) => Ok(true),
            Ok(CommandStatus::Waits { .. } | CommandStatus::Runs { .. })
            | Err(Error::CommandNotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unplanned(&self, merge: &Merge, at: Option<u64>) -> SessionCommand {
        let point = MergePoint {
            from: merge.from,
            entries: merge.entries.clone(),
            brought: Vec::new(),
            at: 0,
            wanted: at,
            transcript: Transcript::default(),
            replay: Vec::new(),
        };
        SessionCommand::Merge(command::Merge { point: Box::new(point), planned: Version::ZERO })
    }

    /// What the merge comes to now.
    async fn plan(
        &self,
        session: SessionId,
        merge: &Merge,
        wanted: Option<u64>,
    ) -> Result<SessionCommand, Error> {
        let into = self.visible_session(session).await?;
        let engine = self.engine();
        let segments = engine.segments_of(&into).await?;
        let all = total(&segments);
        let at = match wanted {
            Some(wanted) if wanted > all => {
                return Err(invalid("at", format!("it has {all} entries, and {wanted} of them are meant")));
            }
            Some(wanted) if wanted < all => engine.whole_end(&segments, wanted).await?,
            Some(_) | None => all,
        };
        let brought = self.brought(merge).await?;
        let mut transcript = into.transcript.clone();
        let own = transcript.own(session, all).to;
        transcript.insert(session, own, at, &brought);
        let replay = match engine.shared.serves(&into.kind) {
            true => {
                let first = self.first_that_counts(&into, &segments).await?;
                if at < first {
                    let reason =
                        format!("a reset dropped the first {first} entries; nothing is put before their end");
                    return Err(invalid("at", reason));
                }
                kept(&slice(transcript.inherited(), first..u64::MAX)).collect()
            }
            false => Vec::new(),
        };
        let (from, entries) = (merge.from, merge.entries.clone());
        let point = MergePoint { from, entries, brought, at, wanted, transcript, replay };
        Ok(SessionCommand::Merge(command::Merge { point: Box::new(point), planned: into.version }))
    }

    /// The entries that are asked for, and what belongs to them, in the order of the other transcript.
    async fn brought(&self, merge: &Merge) -> Result<Vec<Segment>, Error> {
        let other = self.status(merge.from).await?.session;
        let segments = self.engine().segments_of(&other).await?;
        let mut wanted: Vec<Range<u64>> = Vec::with_capacity(merge.entries.len());
        for range in &merge.entries {
            wanted.push(self.whole_range(&segments, range.clone()).await?);
        }
        wanted.sort_by_key(|range| range.start);
        let mut found = Vec::new();
        let mut reached = 0;
        for Range { start, end } in wanted {
            found.extend(slice(&segments, start.max(reached)..end));
            reached = reached.max(end);
        }
        Ok(kept(&found).collect())
    }

    /// The index of the first entry whose code counts: no reset came behind it.
    async fn first_that_counts(&self, into: &Session, segments: &[Segment]) -> Result<u64, Error> {
        let log = self.engine().shared.log.as_ref();
        // They are the end of the transcript, as far as that is known without looking at what happened.
        let definitions = self.engine().definitions_of(into, segments).await?;
        let mut begins = total(segments);
        for segment in definitions.iter().rev() {
            begins = begins.saturating_sub(segment.len());
            if let Some(reset) = last_reset(log, *segment).await? {
                return Ok(begins + first_after(log, *segment, reset).await? - segment.from);
            }
        }
        Ok(begins)
    }
}

/// The last reset among the events that a segment comes from.
async fn last_reset(log: &dyn Log, segment: Segment) -> Result<Option<Seq>, Error> {
    if segment.kept {
        return Ok(None);
    }
    let (mut after, up_to) = events_of(log, segment).await?;
    let mut reset = None;
    while after < up_to {
        let page = log.events(segment.session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for event in page.iter().filter(|event| event.seq <= up_to) {
            if matches!(event.body, EventBody::EntriesMerged(_)) {
                // The merge knew what was dropped.
                reset = None;
            } else if !is_no_reset(event) {
                reset = Some(event.seq);
            }
        }
    }
    Ok(reset)
}

/// The first of a segment's entries that began after an event, by its number; the end where none did.
async fn first_after(log: &dyn Log, segment: Segment, after: Seq) -> Result<u64, Error> {
    let Segment { session, from, to, .. } = segment;
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        let placed = log.own_entries(session, middle, 1).await?.pop();
        let placed = placed.ok_or(Error::EntryDamaged { session, number: middle })?;
        if placed.first > after { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

fn inserted(outcome: Outcome) -> Result<Inserted, Error> {
    match outcome {
        Outcome::Done { response: Response::Merged { entries, at, asked, .. } } => {
            Ok(Inserted { entries, at, asked })
        }
        Outcome::Done { response } => {
            Err(Error::BadRequest { reason: format!("the command's outcome is {response:?}") })
        }
        Outcome::Failed { error } => Err(error),
    }
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}
