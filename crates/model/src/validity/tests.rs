//! Validity as evals, reloads and changed files follow one another.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use super::*;
use crate::Timestamp;
use crate::eval::EvalResult;
use crate::event::{Event, EventBody, Metadata, Source};
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, JobId, Position, Seq, SessionId};
use crate::reload::Reload;
use crate::replay::{Divergence, DivergenceKind};
use crate::swap::Swap;

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

    /// Code of `a.dll` was exchanged.
    fn swaps(&mut self) {
        let assemblies = vec!["a.dll".to_owned()];
        self.happens(EventBody::SourcesSwapped(Box::new(Swap { assemblies, ..Swap::default() })));
    }

    fn happens(&mut self, body: EventBody) -> Seq {
        self.seq += 1;
        let environment = Some(self.environment.fingerprint());
        let metadata = Metadata { source: Source::Worker, correlation: None, causation: None, environment };
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
            restored: None,
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
            grants: None,
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

#[test]
fn what_ran_before_its_code_was_exchanged_is_stale_until_it_has_run_again() {
    let mut history = SessionHistory::begin();
    history.loads("a1");
    history.warm_up(0, Vec::new());
    let (_, used) = history.eval(&["a.dll"], true);
    let (_, other) = history.eval(&[], true);
    history.swaps();
    let (_, later) = history.eval(&["a.dll"], true);
    assert_eq!(history.with("a1", used), (Some(Validity::Stale), 1));
    assert_eq!(history.with("a1", other), (Some(Validity::Valid), 1));
    assert_eq!(history.with("a1", later), (Some(Validity::Valid), 1));
    history.loads("a2");
    history.warm_up(3, Vec::new());
    assert_eq!(history.with("a2", used), (Some(Validity::Valid), 0), "a new worker ran it again");
}
