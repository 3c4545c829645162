//! Validity: which of the things that were said in a session may be no longer true, since what their code ran against has changed.
//! Source: seed 000, "Epistemic Validity".
//!
//! Events are facts and stay as they are; what is derived here is how far they still hold. It never looks at a file: what is there
//! now comes in as an argument.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventBody, JobPart};
use crate::fingerprint::{Environment, EnvironmentFingerprint, Reference, References};
use crate::id::{JobId, Seq};
use crate::replay::{Divergence, DivergenceKind};

/// How far what an eval gave still holds. In the order of what counts more where several things were touched.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Validity {
    /// Nothing that it touched has changed.
    Valid,
    /// It cannot be told.
    Unknown,
    /// Something that it touched has changed: it may give something else now.
    Stale,
    /// Something that it touched is gone.
    Invalid,
}

impl Validity {
    /// Returns the name of the validity.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unknown => "unknown",
            Self::Stale => "stale",
            Self::Invalid => "invalid",
        }
    }

    /// What is said beside an output that may hold no longer; of what cannot be told nothing is.
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::Valid | Self::Unknown => None,
            Self::Stale => Some("stale: something it used has changed since"),
            Self::Invalid => Some("invalid: something it used is gone"),
        }
    }

    /// Whether it may be shown without a mark.
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// How far what code gave still holds, which ran against `recorded` and touched so much of it, where `present` is what it would run
/// against now. Nothing is known of what has no record, and of code of which it cannot be told what it touched only that nothing has changed.
pub fn assess(present: &Environment, recorded: Option<&Environment>, touched: Option<&[String]>) -> Validity {
    let Some(recorded) = recorded else { return Validity::Unknown };
    if recorded == present {
        return Validity::Valid;
    }
    // Everything touches the runtime, and little depends on which it is.
    let runtime = if recorded.runtime == present.runtime { Validity::Valid } else { Validity::Unknown };
    let of = |name: &String| compare(present.references.get(name), recorded.references.get(name));
    match touched {
        Some(touched) => touched.iter().map(of).fold(runtime, Validity::max),
        None if recorded.references.keys().all(|name| of(name).is_valid()) => runtime,
        None => Validity::Unknown,
    }
}

/// How far something holds that touched one reference.
fn compare(present: Option<&Reference>, recorded: Option<&Reference>) -> Validity {
    let hash = |reference: Option<&Reference>| reference.and_then(|reference| reference.hash.clone());
    match (hash(present), hash(recorded)) {
        (None, None) => Validity::Unknown,
        (None, Some(_)) => Validity::Invalid,
        (Some(present), Some(recorded)) if present == recorded => Validity::Valid,
        (Some(_), Some(_) | None) => Validity::Stale,
    }
}

/// How many evals of a session do not surely hold any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidityCounts {
    /// Something that they touched has changed.
    pub stale: u64,
    /// Something that they touched is gone.
    pub invalid: u64,
    /// It cannot be told.
    pub unknown: u64,
}

impl ValidityCounts {
    /// Whether all of them hold.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, validity: Validity) {
        match validity {
            Validity::Valid => {}
            Validity::Unknown => self.unknown += 1,
            Validity::Stale => self.stale += 1,
            Validity::Invalid => self.invalid += 1,
        }
    }
}

/// What every eval of a session ran against and touched, from the session's events in order. It keeps a few words for each.
#[derive(Clone, Debug, Default)]
pub struct Records {
    runtime: Option<String>,
    references: References,
    /// What there was to run against, by name.
    environments: BTreeMap<EnvironmentFingerprint, Environment>,
    /// What evals ran against and touched; each is there once.
    grounds: Vec<Ground>,
    running: Option<(JobId, Seq)>,
    /// In the order of their events.
    evals: Vec<Record>,
    /// The evals before this one were dropped by a reset.
    since: usize,
}

/// What an eval ran against, and what of it it touched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ground {
    environment: Option<EnvironmentFingerprint>,
    touched: Option<Vec<String>>,
}

/// An eval that ended by itself.
#[derive(Clone, Copy, Debug)]
struct Record {
    requested: Seq,
    ended: Seq,
    /// What the result that is in the log was given on: its index among the grounds.
    said: usize,
    /// What the session has of it is of: what it ran on, or the last rebuilding.
    live: usize,
    /// Whether every rebuilding runs it again.
    is_replayed: bool,
}

impl Records {
    /// Takes in the next event.
    pub fn push(&mut self, event: &Event) {
        match &event.body {
            EventBody::EnvironmentChanged { references } => {
                self.references.clone_from(references);
                self.note_environment();
            }
            EventBody::WarmUpCompleted { runtime, diverged, replayed, reload, .. } => {
                self.runtime = event.metadata.environment.as_ref().map(|_| runtime.clone());
                self.note_environment();
                if let Some(environment) = self.known(event).filter(|_| *replayed > 0) {
                    let in_place = reload.as_ref().and_then(|reload| reload.in_place.as_deref());
                    self.rebuilt(&environment, diverged, in_place);
                }
            }
            EventBody::SessionReset | EventBody::SessionHardReset => self.since = self.evals.len(),
            EventBody::EvalCompleted { result, changes_state, .. }
            | EventBody::EvalFailed { result, changes_state, .. } => {
                let ground = Ground { environment: self.known(event), touched: result.touched.clone() };
                self.end(event, ground, *changes_state);
            }
            _ => {
                if let Some((job, JobPart::Requested { withheld, .. })) = event.body.job_part() {
                    self.running = (!withheld).then_some((job, event.seq));
                }
            }
        }
    }

    /// How far what the eval gave still holds that ended with this event; none where none did.
    pub fn of(&self, ended: Seq, present: &Environment) -> Option<Validity> {
        let index = self.evals.binary_search_by_key(&ended, |record| record.ended).ok()?;
        Some(self.assess(self.grounds.get(self.evals.get(index)?.said)?, present))
    }

    /// How many evals since the last reset do not surely hold. What a rebuilding has brought up to date in the session counts as what
    /// it is now, whatever was said of it.
    pub fn counts(&self, present: &Environment) -> ValidityCounts {
        let validities: Vec<_> = self.grounds.iter().map(|ground| self.assess(ground, present)).collect();
        let mut counts = ValidityCounts::default();
        let live = self.evals.iter().skip(self.since);
        live.filter_map(|record| validities.get(record.live)).for_each(|validity| counts.add(*validity));
        counts
    }

    /// Whether a rebuilding would run something again that has changed since it last ran.
    pub fn is_outdated(&self, present: &Environment) -> bool {
        let replayed = self.evals.iter().skip(self.since).filter(|record| record.is_replayed);
        let mut grounds = replayed.filter_map(|record| self.grounds.get(record.live));
        grounds.any(|ground| self.assess(ground, present) == Validity::Stale)
    }

    /// How far what the session has of an eval still holds that this event accepted, and what it touched, where that can be told.
    pub fn live(&self, requested: Seq, present: &Environment) -> Option<(Validity, Option<&[String]>)> {
        let ground = self.ground(requested)?;
        Some((self.assess(ground, present), ground.touched.as_deref()))
    }

    /// The names of what an eval touched, that this event accepted, and that is otherwise than what the session has of it is of.
    pub fn changed(&self, requested: Seq, present: &Environment) -> Vec<String> {
        let ground = self.ground(requested);
        let recorded = ground.and_then(|ground| self.environments.get(ground.environment.as_ref()?));
        let touched = ground.and_then(|ground| ground.touched.as_ref());
        let (Some(recorded), Some(touched)) = (recorded, touched) else { return Vec::new() };
        let is_other = |name: &&String| {
            let of = |environment: &Environment| environment.references.get(*name).cloned();
            !compare(of(present).as_ref(), of(recorded).as_ref()).is_valid()
        };
        touched.iter().filter(is_other).cloned().collect()
    }

    fn ground(&self, requested: Seq) -> Option<&Ground> {
        let index = self.evals.binary_search_by_key(&requested, |record| record.requested).ok()?;
        self.grounds.get(self.evals.get(index)?.live)
    }

    fn assess(&self, ground: &Ground, present: &Environment) -> Validity {
        let recorded = ground.environment.as_ref().and_then(|name| self.environments.get(name));
        assess(present, recorded, ground.touched.as_deref())
    }

    fn end(&mut self, event: &Event, ground: Ground, is_replayed: bool) {
        let ended = event.body.job_end().map(|(job, _)| job);
        let Some((_, requested)) = self.running.take_if(|(job, _)| Some(*job) == ended) else { return };
        let ground = self.index_of(ground);
        self.evals.push(Record { requested, ended: event.seq, said: ground, live: ground, is_replayed });
    }

    /// What the session has is of the new environment; so is what was said of code that ran again, where that was the same again. Of a
    /// reload in the worker that was there only what ran again (`in_place`), unless it failed: then the session has what it had.
    fn rebuilt(
        &mut self,
        environment: &EnvironmentFingerprint,
        diverged: &[Divergence],
        in_place: Option<&[Seq]>,
    ) {
        let own = diverged.iter().filter(|divergence| divergence.session.is_none());
        let diverged: BTreeMap<Seq, &DivergenceKind> =
            own.map(|divergence| (divergence.requested, &divergence.kind)).collect();
        let mut evals = std::mem::take(&mut self.evals);
        for record in evals.iter_mut().skip(self.since) {
            let Some(ground) = self.grounds.get(record.said).cloned() else { continue };
            let ground = self.index_of(Ground { environment: Some(environment.clone()), ..ground });
            let is_kept = in_place.is_some_and(|ran| record.is_replayed && !ran.contains(&record.requested));
            match diverged.get(&record.requested) {
                _ if is_kept => {}
                Some(DivergenceKind::Ending { error: Some(_) }) if in_place.is_some() => {}
                None if record.is_replayed => (record.said, record.live) = (ground, ground),
                // The session has nothing of what only looked.
                None | Some(DivergenceKind::Ending { .. } | DivergenceKind::Values { .. }) => {
                    record.live = ground
                }
                // It was not run.
                Some(DivergenceKind::LeftOut | DivergenceKind::Withheld | DivergenceKind::Secret) => {}
            }
        }
        self.evals = evals;
    }

    fn index_of(&mut self, ground: Ground) -> usize {
        // What ran last ran mostly against the same.
        self.grounds.iter().rposition(|known| *known == ground).unwrap_or_else(|| {
            self.grounds.push(ground);
            self.grounds.len() - 1
        })
    }

    fn note_environment(&mut self) {
        if let Some(runtime) = self.runtime.clone() {
            let environment = Environment { runtime, references: self.references.clone() };
            self.environments.insert(environment.fingerprint(), environment);
        }
    }

    /// What the event names as its environment, where that is known.
    fn known(&self, event: &Event) -> Option<EnvironmentFingerprint> {
        event.metadata.environment.clone().filter(|name| self.environments.contains_key(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use uuid::Uuid;

    use super::*;
    use crate::Timestamp;
    use crate::eval::EvalResult;
    use crate::event::{Metadata, Source};
    use crate::fingerprint::CommandFingerprint;
    use crate::id::{CommandId, Position, SessionId};
    use crate::reload::Reload;

    fn any_name() -> impl Strategy<Value = String> {
        select(vec!["a.dll", "b.dll", "c.fsx"]).prop_map(str::to_owned)
    }

    fn any_environment() -> impl Strategy<Value = Environment> {
        let hash = option::weighted(0.9, select(vec!["1", "2"]).prop_map(str::to_owned));
        let reference = hash.prop_map(|hash| Reference { path: None, hash });
        let runtime = select(vec![".NET 8", ".NET 8", ".NET 8", ".NET 10"]).prop_map(str::to_owned);
        (runtime, btree_map(any_name(), reference, 0..4))
            .prop_map(|(runtime, references)| Environment { runtime, references })
    }

    fn any_touched() -> impl Strategy<Value = Option<Vec<String>>> {
        option::weighted(0.8, vec(any_name(), 0..3))
    }

    proptest! {
        #[test]
        fn where_nothing_has_changed_everything_holds(environment in any_environment(), touched in any_touched()) {
            let validity = assess(&environment, Some(&environment), touched.as_deref());
            prop_assert_eq!(validity, Validity::Valid);
        }

        #[test]
        fn what_touched_something_that_has_changed_never_holds(
            present in any_environment(), recorded in any_environment(), touched in vec(any_name(), 0..3)
        ) {
            let hash = |environment: &Environment, name: &String| {
                environment.references.get(name).and_then(|reference| reference.hash.clone())
            };
            let has_changed = touched.iter().any(|name| hash(&present, name) != hash(&recorded, name));
            let is_gone = touched.iter().any(|name| hash(&present, name).is_none() && hash(&recorded, name).is_some());
            let validity = assess(&present, Some(&recorded), Some(&touched));
            prop_assert_eq!(validity == Validity::Invalid, is_gone);
            prop_assert_eq!(validity >= Validity::Stale, has_changed);
        }

        #[test]
        fn what_was_not_touched_changes_nothing(
            present in any_environment(), recorded in any_environment(), touched in any_touched(), hash in "[0-9]"
        ) {
            let other = Reference { path: None, hash: Some(hash) };
            let mut more = present.clone();
            more.references.insert("unrelated.dll".to_owned(), other);
            let before = assess(&present, Some(&recorded), touched.as_deref());
            let after = assess(&more, Some(&recorded), touched.as_deref());
            // Where the environment is the very same, also what is in neither counts as unchanged.
            prop_assert!(after == before || present == recorded && after == Validity::Unknown);
        }

        #[test]
        fn of_what_has_no_record_nothing_is_known(present in any_environment(), touched in any_touched()) {
            prop_assert_eq!(assess(&present, None, touched.as_deref()), Validity::Unknown);
        }

        #[test]
        fn where_it_cannot_be_told_what_was_touched_a_change_makes_it_unknown(
            present in any_environment(), recorded in any_environment()
        ) {
            let validity = assess(&present, Some(&recorded), None);
            prop_assert!(validity <= Validity::Unknown);
            let same = recorded.runtime == present.runtime
                && recorded.references.iter().all(|(name, reference)| {
                    reference.hash.is_some() && present.references.get(name).is_some_and(|now| now.hash == reference.hash)
                });
            prop_assert_eq!(validity.is_valid(), same || present == recorded);
        }
    }

    /// A session that is told in short, and what becomes of what was said in it.
    struct SessionHistory {
        records: Records,
        environment: Environment,
        seq: u64,
    }

    impl SessionHistory {
        fn begin() -> Self {
            let environment = Environment { runtime: ".NET 8".to_owned(), ..Environment::default() };
            let mut story = Self { records: Records::default(), environment, seq: 0 };
            story.warm_up(0, Vec::new());
            story
        }

        fn happens(&mut self, body: EventBody) -> Seq {
            self.seq += 1;
            let environment = Some(self.environment.fingerprint());
            let metadata =
                Metadata { source: Source::Worker, correlation: None, causation: None, environment };
            self.records.push(&Event {
                session: SessionId::from_uuid(Uuid::nil()),
                seq: Seq(self.seq),
                position: Position(self.seq),
                at: Timestamp::UNIX_EPOCH,
                metadata,
                body,
            });
            Seq(self.seq)
        }

        fn warm_up(&mut self, replayed: u32, diverged: Vec<Divergence>) {
            self.reload(replayed, diverged, None);
        }

        fn reload(&mut self, replayed: u32, diverged: Vec<Divergence>, in_place: Option<Vec<Seq>>) {
            let reload = in_place.map(|ran| Box::new(Reload { in_place: Some(ran), ..Reload::default() }));
            let (kernel, runtime) = ("F# 8.0".to_owned(), self.environment.runtime.clone());
            self.happens(EventBody::WarmUpCompleted {
                kernel,
                runtime,
                language: None,
                pid: Some(1),
                replayed,
                diverged,
                startup: None,
                reload,
                duration_ms: 1,
            });
        }

        /// A worker has this content of `a.dll` from here on.
        fn loads(&mut self, hash: &str) {
            let reference = Reference { path: None, hash: Some(hash.to_owned()) };
            self.environment.references.insert("a.dll".to_owned(), reference);
            let references = self.environment.references.clone();
            self.happens(EventBody::EnvironmentChanged { references });
        }

        /// An eval that touched these; gives its request and its end.
        fn eval(&mut self, touched: &[&str], changes_state: bool) -> (Seq, Seq) {
            let job = JobId::from_uuid(Uuid::from_u128(self.seq.into()));
            let requested = self.happens(EventBody::EvalRequested {
                job,
                command: CommandId::from_uuid(job.as_uuid()),
                fingerprint: CommandFingerprint::of("", &""),
                key: None,
                deadline: None,
                code: String::new(),
                file: None,
                command_line: None,
                origin: None,
                withheld: false,
            });
            let touched = Some(touched.iter().map(|name| (*name).to_owned()).collect());
            let result = EvalResult { touched, ..EvalResult::default() };
            (requested, self.happens(EventBody::EvalCompleted { job, result, changes_state, duration_ms: 1 }))
        }

        /// How far what ended there holds, and how many are stale, with this content of `a.dll`.
        fn with(&self, hash: &str, ended: Seq) -> (Option<Validity>, u64) {
            let mut present = self.environment.clone();
            if let Some(reference) = present.references.get_mut("a.dll") {
                reference.hash = Some(hash.to_owned());
            }
            (self.records.of(ended, &present), self.records.counts(&present).stale)
        }
    }

    #[test]
    fn what_ran_again_and_gave_the_same_holds_again_and_what_gave_something_else_is_only_counted_no_more() {
        let mut story = SessionHistory::begin();
        story.loads("1");
        let (_, same) = story.eval(&["a.dll"], true);
        let (other_requested, other) = story.eval(&["a.dll"], true);
        let (_, looked) = story.eval(&["a.dll"], false);
        let (_, unrelated) = story.eval(&[], true);
        assert_eq!(story.with("1", same), (Some(Validity::Valid), 0));
        assert_eq!(story.with("2", same), (Some(Validity::Stale), 3));
        assert_eq!(story.with("2", unrelated).0, Some(Validity::Valid));
        story.loads("2");
        let kind = DivergenceKind::Ending { error: None };
        story.warm_up(3, vec![Divergence { requested: other_requested, session: None, kind }]);
        assert_eq!(story.with("2", same), (Some(Validity::Valid), 0));
        assert_eq!(story.with("2", other), (Some(Validity::Stale), 0));
        assert_eq!(story.with("2", looked), (Some(Validity::Stale), 0));
        assert_eq!(story.with("3", other), (Some(Validity::Stale), 3));
        story.happens(EventBody::SessionReset);
        assert_eq!(story.with("3", same), (Some(Validity::Stale), 0), "a reset has dropped it");
    }

    #[test]
    fn of_a_reload_only_what_ran_again_and_did_not_fail_is_brought_up_to_date() {
        let mut story = SessionHistory::begin();
        story.loads("1");
        let [ran, failed, left] = [(); 3].map(|()| story.eval(&["a.dll"], true));
        let (_, looked) = story.eval(&["a.dll"], false);
        story.loads("2");
        let kind = DivergenceKind::Ending { error: Some("no".to_owned()) };
        let diverged = vec![Divergence { requested: failed.0, session: None, kind }];
        story.reload(2, diverged, Some(vec![ran.0, failed.0]));
        assert_eq!(story.with("2", ran.1), (Some(Validity::Valid), 2));
        assert_eq!([failed, left].map(|(_, ended)| story.with("2", ended).0), [Some(Validity::Stale); 2]);
        assert_eq!(story.with("2", looked).0, Some(Validity::Stale), "it stands as it was said");
        let present = story.environment.clone();
        let live = |requested| story.records.live(requested, &present).map(|(validity, _)| validity);
        assert_eq!(
            [ran, left].map(|(requested, _)| live(requested)),
            [Some(Validity::Valid), Some(Validity::Stale)]
        );
        assert_eq!(story.records.changed(left.0, &present), ["a.dll"]);
        assert_eq!(story.records.changed(ran.0, &present), Vec::<String>::new());
        story.reload(2, Vec::new(), Some(vec![failed.0, left.0]));
        assert_eq!(story.with("2", left.1), (Some(Validity::Valid), 0));
    }

    #[test]
    fn of_an_eval_whose_environment_was_not_told_nothing_is_known() {
        let mut story = SessionHistory::begin();
        story.records = Records::default();
        let (_, ended) = story.eval(&[], true);
        assert_eq!(story.with("1", ended).0, Some(Validity::Unknown));
        assert_eq!(story.records.of(Seq(1), &story.environment), None);
    }
}
