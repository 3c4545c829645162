//! Replay: which submissions run again so that a new worker has a session's definitions, and which of them then give
//! something else than before.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::{Ask, AskEnding, Raiser};
use crate::command_line::CommandLine;
use crate::diagnostic::Severity;
use crate::error::Error;
use crate::eval::EvalResult;
use crate::event::{Blame, CompletedPart, Event, EventBody};
use crate::id::{AskId, JobId, Seq, SessionId};
use crate::limits::Limits;
use crate::reload::ValueChange;
use crate::runner_notice::{JobEnding, JobReport};

/// What must run again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The submissions, in order.
    pub items: Vec<ReplayItem>,
    /// The requests of those left out because they had ended a worker.
    pub left_out: Vec<(SessionId, Seq)>,
    /// The requests of those that changed the session and cannot run again, and why: their code was withheld, or what it was answered.
    pub withheld: Vec<(SessionId, Seq, DivergenceKind)>,
}

/// What a submission asked when it first ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAsk {
    ask: AskId,
    /// What it was answered, or why there was no answer.
    pub answer: Result<Value, Error>,
}

/// One submission to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayItem {
    /// The job that ran it the first time.
    pub job: JobId,
    /// The session in which it ran then.
    pub session: SessionId,
    /// The event that accepted it.
    pub requested: Seq,
    /// The code to be run again.
    pub code: String,
    /// The file whose text it is.
    pub file: Option<String>,
    /// The command line that it was given.
    pub command_line: Option<CommandLine>,
    /// What it asked the first time, and was answered: it is not asked anew.
    pub asked: Vec<RecordedAsk>,
    /// Whether it ran to its end the first time.
    pub succeeded: bool,
    /// What it gave the first time, where that is known.
    gave: Option<EvalValues>,
    /// Whether the compiler had nothing to say of it the first time, where that is known.
    was_silent: bool,
}

/// The longest code that a kernel is told of ahead of its turn, in bytes.
const AHEAD_BYTES: usize = 8192;

/// A submission whose part in a rebuilt session is not what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", from = "WrittenDivergence")]
#[schemars(!from)]
pub struct Divergence {
    /// The event that accepted it.
    pub requested: Seq,
    /// The session in which it ran at first, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What became of it.
    #[serde(flatten)]
    pub kind: DivergenceKind,
}

/// A divergence as it stands in a log. A bare request is one that ended otherwise: nothing else was compared once.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenDivergence {
    Request(Seq),
    Whole {
        requested: Seq,
        #[serde(default)]
        session: Option<SessionId>,
        #[serde(flatten)]
        kind: DivergenceKind,
    },
}

impl From<WrittenDivergence> for Divergence {
    fn from(written: WrittenDivergence) -> Self {
        match written {
            WrittenDivergence::Request(requested) => {
                Self { requested, session: None, kind: DivergenceKind::Ending { error: None } }
            }
            WrittenDivergence::Whole { requested, session, kind } => Self { requested, session, kind },
        }
    }
}

impl Divergence {
    /// In `session`, of a submission that ran at first in `ran_in`.
    pub fn of(session: SessionId, ran_in: SessionId, requested: Seq, kind: DivergenceKind) -> Self {
        Self { requested, session: (ran_in != session).then_some(ran_in), kind }
    }
}

/// What became of a submission that diverged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "divergence", rename_all = "camelCase")]
pub enum DivergenceKind {
    /// It ended otherwise: it failed where it had run to its end, or the reverse.
    Ending {
        /// What it failed with, how that begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// It gave other values, or values of other types.
    Values {
        /// Their names; `it` is the last expression's. At most [`NAMES_KEPT`].
        names: Vec<String>,
        /// What those have now that still have a value, as it is printed, how it begins.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        now: BTreeMap<String, String>,
    },
    /// It was not run: it had ended a worker.
    LeftOut,
    /// It was not run: its code was withheld, and so is not known.
    Withheld,
    /// It was not run: it had asked for a secret, which is not kept.
    Secret,
}

/// How many names a divergence has at most.
pub const NAMES_KEPT: usize = 20;

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requested = match &self.session {
            Some(session) => format!("{}#{}", session.short(), self.requested),
            None => format!("#{}", self.requested),
        };
        match &self.kind {
            DivergenceKind::Ending { error: None } => write!(f, "{requested} ended otherwise"),
            DivergenceKind::Ending { error: Some(error) } => write!(f, "{requested} failed: {error}"),
            DivergenceKind::Values { names, now } => {
                for (index, name) in names.iter().enumerate() {
                    let before =
                        if index == 0 { format!("{requested} gave another ") } else { ", ".to_owned() };
                    write!(f, "{before}`{name}`")?;
                    now.get(name).map_or(Ok(()), |value| write!(f, " (now {value})"))?;
                }
                Ok(())
            }
            DivergenceKind::Withheld => write!(f, "{requested} was left out: its code was withheld"),
            DivergenceKind::Secret => {
                write!(f, "{requested} was left out: it asks for a secret, which is not kept; run it again")
            }
            DivergenceKind::LeftOut => write!(f, "{requested} was left out: it had ended a worker"),
        }
    }
}

impl ReplayItem {
    /// Whether a kernel may run it together with what comes before and after it, if it finds that all of them only define: it asked
    /// nothing, and there was nothing to tell of it but what it defined.
    pub fn may_run_together(&self) -> bool {
        let is_told = self.succeeded && self.was_silent && self.asked.is_empty();
        is_told && self.code.len() <= AHEAD_BYTES
    }

    /// The names of what it gave.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.gave.iter().flat_map(|gave| gave.0.keys().map(String::as_str))
    }

    /// How its second run, in `session`, differs from the first.
    pub fn divergence(&self, session: SessionId, report: JobReport, limits: &Limits) -> Option<Divergence> {
        self.compare(session, report, limits, None).divergence
    }

    /// What came of a run, in `session`, beside the first one, and beside what the session had of it until now (`had`; without it, what
    /// the first run gave).
    pub fn compare(
        &self,
        session: SessionId,
        report: JobReport,
        limits: &Limits,
        had: Option<&EvalValues>,
    ) -> ReplayComparison {
        let succeeded = report.ending == JobEnding::Completed;
        let result = report.result.cut(limits.value_bytes);
        let gives = EvalValues::of(&result);
        let kind = if succeeded == self.succeeded {
            let names = self.gave.as_ref().map(|gave| gave.differing(&gives)).unwrap_or_default();
            let now = values_of(&names, &result);
            (!names.is_empty()).then_some(DivergenceKind::Values { names, now })
        } else {
            Some(DivergenceKind::Ending { error: error_of(&report.ending, &result) })
        };
        let changes = match (succeeded, had.or(self.gave.as_ref())) {
            (true, Some(had)) => self.changes(had, &gives, &result),
            (true, None) | (false, _) => Vec::new(),
        };
        let divergence = kind.map(|kind| Divergence::of(session, self.session, self.requested, kind));
        ReplayComparison { divergence, changes, gives, succeeded }
    }

    /// Whether it ran to its end the first time, and did not now.
    pub fn fails_now(&self, compared: &ReplayComparison) -> bool {
        self.succeeded && !compared.succeeded
    }

    fn changes(&self, had: &EvalValues, gives: &EvalValues, result: &EvalResult) -> Vec<ValueChange> {
        let names: Vec<String> =
            had.differing(gives).into_iter().filter(|name| gives.0.contains_key(name)).collect();
        let mut now = values_of(&names, result);
        let change = |name: String| ValueChange {
            requested: self.requested,
            now: now.remove(&name),
            was: had.0.get(&name).and_then(|had| had.shown.clone()),
            name,
        };
        names.into_iter().map(change).collect()
    }
}

/// What came of a submission that ran again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayComparison {
    /// How that differs from its first run.
    pub divergence: Option<Divergence>,
    /// What of it is another than the session had.
    pub changes: Vec<ValueChange>,
    /// The result of the replayed code.
    pub gives: EvalValues,
    succeeded: bool,
}

/// How many characters of a value a divergence has at most.
const VALUE_CHARACTERS: usize = 80;

/// How many characters of an error a divergence has at most.
const ERROR_CHARACTERS: usize = 200;

/// How what a submission failed with begins, on one line.
fn error_of(ending: &JobEnding, result: &EvalResult) -> Option<String> {
    match ending {
        JobEnding::Raised(raised) => {
            Some(beginning(&format!("{}: {}", raised.kind, raised.message), ERROR_CHARACTERS))
        }
        JobEnding::Rejected => {
            let error = result.diagnostics.iter().find(|one| one.severity == Severity::Error)?;
            Some(beginning(&format!("{} {}", error.code, error.message), ERROR_CHARACTERS))
        }
        _ => None,
    }
}

/// How a text begins, on one line.
fn beginning(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(characters).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// What these names have in a result, on one line.
fn values_of(names: &[String], result: &EvalResult) -> BTreeMap<String, String> {
    let value_of = |name: &String| match name.as_str() {
        "it" => result.value.as_ref(),
        _ => result.bindings.iter().rfind(|binding| binding.name == *name)?.value.as_ref(),
    };
    names
        .iter()
        .filter_map(|name| Some((name.clone(), beginning(value_of(name)?, VALUE_CHARACTERS))))
        .collect()
}

/// What a submission gave, by name, reduced to what it is compared by and how it begins. Nothing here leaves the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalValues(BTreeMap<String, ValueDigest>);

impl EvalValues {
    /// Whether the value of an expression is among it.
    pub fn has_last_value(&self) -> bool {
        self.0.contains_key("it")
    }
}

/// What a submission gave under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ValueDigest {
    digest: u64,
    /// How the value begins, as it is printed.
    shown: Option<String>,
}

impl EvalValues {
    fn of(result: &EvalResult) -> Self {
        let bindings =
            result.bindings.iter().map(|binding| (&*binding.name, &binding.value, Some(&binding.value_type)));
        let last = ("it", &result.value, result.value_type.as_ref());
        let digest = |value: &Option<String>, value_type: Option<&String>| {
            let mut hasher = DefaultHasher::new();
            (value.as_deref().map(unnumbered), value_type.map(|text| unnumbered(text))).hash(&mut hasher);
            hasher.finish()
        };
        let given = bindings.chain(last.2.is_some().then_some(last)).map(|(name, value, value_type)| {
            let shown = value.as_deref().map(|value| beginning(value, VALUE_CHARACTERS));
            (name.to_owned(), ValueDigest { digest: digest(value, value_type), shown })
        });
        Self(given.collect())
    }

    /// The names that have something else there, or nothing.
    fn differing(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let digest = |given: &Self, name: &String| given.0.get(name).map(|gave| gave.digest);
        let differ = |name: &&&String| digest(self, name) != digest(other, name);
        names.iter().filter(differ).take(NAMES_KEPT).map(|name| (*name).clone()).collect()
    }
}

/// A printed value without the numbers that compilers give to what has no name of its own (`FSI_0004`, `f@12-1`): they
/// count submissions, of which a rebuilt session has fewer.
fn unnumbered(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(at) =
        [rest.find("FSI_").map(|at| at + 4), rest.find('@').map(|at| at + 1)].into_iter().flatten().min()
    {
        let (before, numbered) = rest.split_at(at);
        plain.push_str(before);
        rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    }
    plain.push_str(rest);
    plain
}

/// Collects what must run again, from the events of the session's transcript since its last reset, in order.
///
/// Only submissions that ended and changed the session's state count, those whose value one of these uses (`it`), and the
/// one that gave the last value of all. Of one that was cancelled only the part that had run to its end counts: the rest may
/// never end, and what it had done is not known. One that was cut off does not count, nor one that ended a worker.
#[derive(Debug, Default)]
pub struct ReplayList {
    pending: Option<ReplayItem>,
    /// Every submission that may have to run again; none where one turned out not to.
    candidates: Vec<Option<ReplayItem>>,
    /// Which of them give the present value of `it`: the submission that gave it, behind those whose value that one used.
    /// They are there for nothing else.
    last_value: Vec<usize>,
    /// Whose code may have ended a worker once.
    suspects: Vec<JobId>,
    left_out: Vec<(SessionId, Seq)>,
    /// The job that cannot run again, while it runs, where it was requested, and why.
    hidden: Option<(JobId, SessionId, Seq, DivergenceKind)>,
    withheld: Vec<(SessionId, Seq, DivergenceKind)>,
}

impl ReplayList {
    /// Takes in the next event.
    pub fn push(&mut self, event: Event) {
        match event.body {
            EventBody::EvalRequested { job, withheld: true, .. } => {
                self.pending = None;
                self.hidden = Some((job, event.session, event.seq, DivergenceKind::Withheld));
            }
            EventBody::EvalRequested { job, code, file, command_line, .. } => {
                let requested = event.seq;
                let asked = Vec::new();
                self.pending = Some(ReplayItem {
                    job,
                    session: event.session,
                    requested,
                    code,
                    file,
                    command_line,
                    asked,
                    succeeded: false,
                    gave: None,
                    was_silent: false,
                });
            }
            EventBody::AskRaised(ask) => self.asked(*ask),
            EventBody::AskEnded { ask, ending } => self.answered(ask, &ending),
            EventBody::EvalCompleted { job, result, changes_state, .. } => {
                self.end(job, changes_state, true, &result);
            }
            EventBody::EvalFailed { job, result, changes_state, .. } => {
                self.end(job, changes_state, false, &result);
            }
            EventBody::EvalCancelled { job, kept, .. } => self.end_kept(job, kept),
            EventBody::EvalInterrupted { job } => self.end_kept(job, None),
            EventBody::WorkerExited { blame: Some(blame), .. } => self.blame(blame),
            EventBody::SessionReset | EventBody::SessionHardReset => *self = Self::default(),
            _ => {}
        }
    }

    /// What must run again.
    pub fn finish(self) -> Replay {
        let Self { candidates, left_out, withheld, .. } = self;
        Replay { items: candidates.into_iter().flatten().collect(), left_out, withheld }
    }

    fn asked(&mut self, Ask { ask, raiser, .. }: Ask) {
        if let (Some(pending), Raiser::Job { job }) = (&mut self.pending, raiser)
            && pending.job == job
        {
            pending.asked.push(RecordedAsk { ask, answer: Err(Error::Cancelled) });
        }
    }

    fn answered(&mut self, ask: AskId, ending: &AskEnding) {
        let has_asked = |pending: &mut ReplayItem| pending.asked.iter().any(|asked| asked.ask == ask);
        if *ending == AskEnding::Withheld
            && let Some(item) = self.pending.take_if(has_asked)
        {
            self.hidden = Some((item.job, item.session, item.requested, DivergenceKind::Secret));
        }
        let pending = self.pending.iter_mut().flat_map(|pending| &mut pending.asked);
        for asked in pending.filter(|asked| asked.ask == ask) {
            asked.answer = ending.answer();
        }
    }

    fn end(&mut self, job: JobId, changes_state: bool, succeeded: bool, result: &EvalResult) {
        self.end_hidden(job, changes_state);
        let Some(item) = self.pending.take_if(|pending| pending.job == job) else { return };
        let gives_value = succeeded && result.value_type.is_some();
        if !changes_state && !gives_value {
            return;
        }
        if changes_state && result.uses_last {
            // What gave the value is there for good now.
            self.last_value.clear();
        }
        if gives_value && !result.uses_last {
            self.forget_last_value();
        }
        if !changes_state {
            self.last_value.push(self.candidates.len());
        } else if gives_value {
            self.last_value.clear();
        }
        let (gave, was_silent) = (Some(EvalValues::of(result)), result.diagnostics.is_empty());
        self.candidates.push(Some(ReplayItem { succeeded, gave, was_silent, ..item }));
    }

    fn end_hidden(&mut self, job: JobId, changes_state: bool) {
        if let Some((_, session, requested, why)) = self.hidden.take_if(|(hidden, ..)| *hidden == job)
            && changes_state
        {
            self.withheld.push((session, requested, why));
        }
    }

    /// A submission of which at most the beginning had run to its end.
    fn end_kept(&mut self, job: JobId, kept: Option<CompletedPart>) {
        self.end_hidden(job, kept.is_some());
        let Some(mut item) = self.pending.take_if(|pending| pending.job == job) else { return };
        let Some(CompletedPart { bytes, bindings }) = kept else { return };
        if !item.code.is_char_boundary(bytes) {
            return;
        }
        item.code.truncate(bytes);
        item.gave = Some(EvalValues::of(&EvalResult { bindings, ..EvalResult::default() }));
        // It may have used the last value, and may have given another.
        self.last_value.clear();
        self.candidates.push(Some(ReplayItem { succeeded: true, ..item }));
    }

    fn blame(&mut self, Blame { job, is_sure }: Blame) {
        if is_sure || self.suspects.contains(&job) {
            self.leave_out(job);
        } else {
            self.suspects.push(job);
        }
    }

    fn leave_out(&mut self, job: JobId) {
        let is_of =
            |candidate: &&mut Option<ReplayItem>| candidate.as_ref().is_some_and(|item| item.job == job);
        if let Some(item) = self.candidates.iter_mut().find(is_of).and_then(Option::take) {
            self.left_out.push((item.session, item.requested));
        }
    }

    /// Another value took the place of the last one, which nothing needs any more.
    fn forget_last_value(&mut self) {
        for index in self.last_value.drain(..) {
            self.candidates[index] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::{Diagnostic, TextPosition};
    use crate::eval::RaisedError;
    use std::time::Duration;

    use super::*;
    use crate::Timestamp;
    use crate::eval::{Binding, WorkerExit};
    use crate::event::{CancelEnding, Metadata, Source};
    use crate::fingerprint::CommandFingerprint;
    use crate::id::{CommandId, Position};

    fn session() -> SessionId {
        SessionId::from_uuid(uuid::Uuid::nil())
    }

    fn job(index: usize) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(index as u128))
    }

    fn event(body: EventBody) -> Event {
        let metadata =
            Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
        Event {
            session: session(),
            seq: Seq(1),
            position: Position(1),
            at: Timestamp::UNIX_EPOCH,
            metadata,
            body,
        }
    }

    fn requested(index: usize, code: &str) -> Event {
        let request = event(EventBody::EvalRequested {
            job: job(index),
            command: CommandId::from_uuid(job(index).as_uuid()),
            fingerprint: CommandFingerprint::of("", &code),
            key: None,
            deadline: None,
            code: code.to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        });
        Event { seq: Seq(index as u64 + 1), ..request }
    }

    /// One completed eval a line: `!` changes state, `=` gives a value, `it` uses the last one.
    fn list_of(evals: &[&str]) -> ReplayList {
        let mut list = ReplayList::default();
        for (index, eval) in evals.iter().enumerate() {
            let result = EvalResult {
                value_type: eval.contains('=').then(|| "int".to_owned()),
                uses_last: eval.contains("it"),
                ..EvalResult::default()
            };
            list.push(requested(index, eval));
            let changes_state = eval.contains('!');
            list.push(event(EventBody::EvalCompleted {
                job: job(index),
                result,
                changes_state,
                duration_ms: 0,
            }));
        }
        list
    }

    fn codes(list: ReplayList) -> Vec<String> {
        list.finish().items.into_iter().map(|item| item.code).collect()
    }

    fn replayed(evals: &[&str]) -> Vec<String> {
        codes(list_of(evals))
    }

    fn exited(blame: Option<Blame>) -> Event {
        let exit = WorkerExit::Signal(6);
        event(EventBody::WorkerExited { exit, attempt: 1, restart_after_ms: Some(1), reason: None, blame })
    }

    fn surely(index: usize) -> Option<Blame> {
        Some(Blame { job: job(index), is_sure: true })
    }

    fn maybe(index: usize) -> Option<Blame> {
        Some(Blame { job: job(index), is_sure: false })
    }

    #[test]
    fn what_is_more_than_code_that_ran_silently_runs_alone() {
        let may = |change: fn(&mut ReplayItem)| {
            let mut item = list_of(&["a!"]).finish().items.remove(0);
            change(&mut item);
            item.may_run_together()
        };
        assert!(may(|_| ()));
        assert!(!may(|item| item.succeeded = false));
        assert!(!may(|item| item.was_silent = false));
        assert!(may(|item| item.file = Some("/a.fsx".to_owned())));
        assert!(!may(|item| item
            .asked
            .push(RecordedAsk { ask: AskId::from_uuid(uuid::Uuid::nil()), answer: Err(Error::Cancelled) })));
        assert!(!may(|item| item.code = "a".repeat(AHEAD_BYTES + 1)));
    }

    #[test]
    fn what_only_looked_is_not_run_again_but_for_the_last_value() {
        assert_eq!(replayed(&["a!", "b=", "c=", "d!"]), ["a!", "c=", "d!"]);
        assert_eq!(replayed(&["a!", "b=", "c! ="]), ["a!", "c! ="]);
    }

    #[test]
    fn a_value_that_a_definition_used_is_brought_back_in_its_place_with_all_it_came_from() {
        assert_eq!(replayed(&["a=", "b=", "c= it", "d! it", "e="]), ["b=", "c= it", "d! it", "e="]);
        assert_eq!(replayed(&["a=", "b!", "c! it"]), ["a=", "b!", "c! it"]);
        assert_eq!(replayed(&["a=", "b! =", "c! it"]), ["b! =", "c! it"]);
        assert_eq!(replayed(&["a=", "b! it", "c=", "d! it"]), ["a=", "b! it", "c=", "d! it"]);
    }

    #[test]
    fn what_ended_a_worker_is_left_out_and_named() {
        let mut list = list_of(&["a!", "b!", "c=", "d!"]);
        for blame in [None, surely(1), surely(2), surely(1), surely(9)] {
            list.push(exited(blame));
        }
        let replay = list.finish();
        assert_eq!(replay.left_out, [(session(), Seq(2)), (session(), Seq(3))]);
        let codes: Vec<_> = replay.items.into_iter().map(|item| item.code).collect();
        assert_eq!(codes, ["a!", "d!"]);
    }

    #[test]
    fn what_may_have_ended_a_worker_is_left_out_the_second_time() {
        let codes_after = |blames: &[Option<Blame>]| {
            let mut list = list_of(&["a!", "b!"]);
            blames.iter().for_each(|blame| list.push(exited(*blame)));
            codes(list)
        };
        assert_eq!(codes_after(&[maybe(1)]), ["a!", "b!"]);
        assert_eq!(codes_after(&[maybe(1), maybe(0)]), ["a!", "b!"]);
        assert_eq!(codes_after(&[maybe(1), None, maybe(1)]), ["a!"]);
        assert_eq!(codes_after(&[maybe(1), surely(0)]), ["b!"]);
    }

    #[test]
    fn of_cancelled_code_the_part_that_had_run_is_run_again() {
        let cancelled = |kept: Option<usize>| {
            let kept = kept.map(|bytes| CompletedPart { bytes, bindings: Vec::new() });
            let mut list = list_of(&["a!"]);
            list.push(requested(1, "let é = 1;; spin ()"));
            list.push(event(EventBody::EvalCancelled { job: job(1), ending: CancelEnding::Yielded, kept }));
            codes(list)
        };
        assert_eq!(cancelled(Some(12)), ["a!", "let é = 1;;"]);
        assert_eq!(cancelled(None), ["a!"]);
        for no_part in [5, 1000] {
            assert_eq!(cancelled(Some(no_part)), ["a!"], "{no_part}");
        }
    }

    #[test]
    fn the_last_value_that_cancelled_code_may_have_used_is_brought_back() {
        let mut list = list_of(&["a="]);
        list.push(requested(1, "b it;; spin ()"));
        list.push(event(EventBody::EvalCancelled {
            job: job(1),
            ending: CancelEnding::Yielded,
            kept: Some(CompletedPart { bytes: 6, bindings: Vec::new() }),
        }));
        assert_eq!(codes(list), ["a=", "b it;;"]);
    }

    fn result(value: &str) -> EvalResult {
        let binding = |name: &str, value: &str| Binding {
            name: name.to_owned(),
            value_type: "int".to_owned(),
            value: Some(value.to_owned()),
        };
        EvalResult { bindings: vec![binding("x", value), binding("y", "2")], ..EvalResult::default() }
    }

    #[test]
    fn a_value_of_the_part_that_is_kept_is_compared_as_well() {
        let mut list = ReplayList::default();
        list.push(requested(0, "code;; spin ()"));
        let kept = Some(CompletedPart { bytes: 6, bindings: result("1").bindings });
        list.push(event(EventBody::EvalCancelled { job: job(0), ending: CancelEnding::Yielded, kept }));
        let ending = JobEnding::Completed;
        let report = JobReport {
            ending,
            result: result("7"),
            changes_state: true,
            took: Duration::ZERO,
            references: None,
        };
        let divergence = list.finish().items[0].divergence(session(), report, &Limits::default()).unwrap();
        assert_eq!(divergence.kind, values(&["x"], &[("x", "7")]));
    }

    fn values(names: &[&str], now: &[(&str, &str)]) -> DivergenceKind {
        DivergenceKind::Values {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            now: now.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    /// What is said of code that gave `before` and then ends as `ending` with `after`.
    fn divergence(before: EvalResult, ending: JobEnding, after: EvalResult) -> Option<DivergenceKind> {
        let mut list = ReplayList::default();
        list.push(requested(0, "code"));
        list.push(event(EventBody::EvalCompleted {
            job: job(0),
            result: before,
            changes_state: true,
            duration_ms: 0,
        }));
        let report =
            JobReport { ending, result: after, changes_state: true, took: Duration::ZERO, references: None };
        let limits = Limits { value_bytes: 40, ..Limits::default() };
        list.finish().items[0].divergence(session(), report, &limits).map(|divergence| divergence.kind)
    }

    #[test]
    fn a_value_that_differs_is_named_and_one_that_is_the_same_is_not() {
        let completed = JobEnding::Completed;
        assert_eq!(divergence(result("1"), completed.clone(), result("1")), None);
        assert_eq!(
            divergence(result("1"), completed.clone(), result("7")),
            Some(values(&["x"], &[("x", "7")]))
        );
        assert_eq!(
            divergence(result("1"), completed.clone(), EvalResult::default()),
            Some(values(&["x", "y"], &[]))
        );
        let last = |value: &str| EvalResult {
            value: Some(value.to_owned()),
            value_type: Some("int".to_owned()),
            ..EvalResult::default()
        };
        assert_eq!(divergence(last("1"), completed, last("2\n")), Some(values(&["it"], &[("it", "2")])));
    }

    #[test]
    fn what_fails_now_is_told_with_what_it_failed_with() {
        let fails = |ending, result| divergence(EvalResult::default(), ending, result).unwrap();
        let because = |error: &str| DivergenceKind::Ending { error: Some(error.to_owned()) };
        let raised = JobEnding::Raised(RaisedError {
            kind: "Oops".to_owned(),
            message: "no\n  more".to_owned(),
            stack: None,
            coloured_stack: None,
        });
        assert_eq!(fails(raised, EvalResult::default()), because("Oops: no more"));
        let place = TextPosition { line: 1, column: 1 };
        let diagnostic = |severity, code: &str, message: &str| Diagnostic {
            severity,
            code: code.to_owned(),
            message: message.to_owned(),
            start: place,
            end: place,
            file: None,
        };
        let diagnostics = vec![
            diagnostic(Severity::Warning, "W1", "old"),
            diagnostic(Severity::Error, "NU1101", "no such package"),
        ];
        let rejected = EvalResult { diagnostics, ..EvalResult::default() };
        let failed = fails(JobEnding::Rejected, rejected);
        assert_eq!(failed, because("NU1101 no such package"));
        let told = Divergence { requested: Seq(3), session: None, kind: failed }.to_string();
        assert_eq!(told, "#3 failed: NU1101 no such package");
        assert_eq!(fails(JobEnding::Rejected, EvalResult::default()), DivergenceKind::Ending { error: None });
    }

    #[test]
    fn a_divergence_that_was_written_as_a_bare_request_is_read() {
        let read: Divergence = serde_json::from_str("4").unwrap();
        assert_eq!(
            read,
            Divergence { requested: Seq(4), session: None, kind: DivergenceKind::Ending { error: None } }
        );
    }

    #[test]
    fn numbers_of_submissions_and_what_was_cut_make_no_difference() {
        let of = |text: &str| divergence(result("<fun:f@12-1>"), JobEnding::Completed, result(text));
        assert_eq!(of("<fun:f@9>"), None);
        assert!(of("<fun:g@9>").is_some());
        let of = |text: &str| divergence(result("FSI_0004+T é"), JobEnding::Completed, result(text));
        assert_eq!(of("FSI_0002+T é"), None);
        let long = |end: &str| result(&format!("{}{end}", "1".repeat(50)));
        let kept = long("a").cut(40);
        assert_eq!(divergence(kept, JobEnding::Completed, long("b")), None);
    }
}
