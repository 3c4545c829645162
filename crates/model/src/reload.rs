//! Reloads: which submissions run again in the worker that is there, once a script that a session loaded has changed, or why a new
//! worker has to run all of them; and what came of either.
//!
//! [`plan`] knows submissions by what they used, and by what the worker says of their code ([`Description`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::fingerprint::Environment;
use crate::id::Seq;
use crate::replay::{Divergence, DivergenceKind, ReplayItem};
use crate::validity::{Records, Validity};

/// What a worker says of some code, without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The names that it gives a meaning, of whatever kind.
    #[serde(default)]
    pub defines: Vec<String>,
    /// Whether it gives more names a meaning, which are not known.
    #[serde(default)]
    pub defines_others: bool,
    /// The names of the scripts that it loads, with those that these load: all of them are loaded again when it runs again.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Why it must not run twice in one process, for people.
    #[serde(default)]
    pub runs_once: Option<String>,
}

/// A submission that a rebuilding would run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The event that accepted it.
    pub requested: Seq,
    /// How far what the session has of it still holds; none where nothing is known of it in this session.
    pub validity: Option<Validity>,
    /// What it used; none where that cannot be told.
    pub touched: Option<&'a [String]>,
    /// The names that it gives a meaning.
    pub defines: BTreeSet<&'a str>,
    /// The words of its code, among which are the names that it uses, each with how often it is there.
    pub words: BTreeMap<&'a str, usize>,
    /// What the worker says of its code.
    pub description: &'a Description,
}

impl<'a> Candidate<'a> {
    /// What is known of a submission.
    pub fn of(
        item: &'a ReplayItem,
        description: &'a Description,
        records: &'a Records,
        present: &Environment,
    ) -> Self {
        let (validity, touched) = records.live(item.requested, present).unzip();
        Self {
            requested: item.requested,
            validity,
            touched: touched.flatten(),
            defines: item.names().chain(description.defines.iter().map(String::as_str)).collect(),
            words: words_of(&item.code),
            description,
        }
    }

    /// The names, and those of scripts, that it gives a meaning, without that of the last value: what uses it does not run twice.
    fn gives(&self) -> impl Iterator<Item = &'a str> {
        let names = self.defines.iter().copied().chain(self.description.loads.iter().map(String::as_str));
        names.filter(|name| *name != LAST_VALUE)
    }
}

/// What the last value of all is called.
const LAST_VALUE: &str = "it";

fn words_of(code: &str) -> BTreeMap<&str, usize> {
    let mut words = BTreeMap::new();
    for word in code.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\''))) {
        *words.entry(word).or_default() += usize::from(!word.is_empty());
    }
    words
}

/// Why all of a session's submissions run again in a new worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FullReplayReason {
    /// It cannot be told what a submission used.
    Unknown {
        /// The event that accepted it.
        requested: Seq,
    },
    /// A submission ran at first in another session.
    FromElsewhere,
    /// Code was withheld, and it is not known what it used.
    Withheld,
    /// Something that was used is gone.
    Gone {
        /// The name of the definition.
        name: String,
    },
    /// A name that a submission uses or defines would have another meaning than when it ran, or than it is to have afterwards.
    Means {
        /// The name, or that of a script.
        name: String,
        /// The event that accepted the submission that gave it the other meaning.
        by: Seq,
    },
    /// A submission gives names a meaning that are not known.
    Opens {
        /// The event that accepted it.
        requested: Seq,
    },
    /// A submission must not run twice in one process.
    Once {
        /// The event that accepted it.
        requested: Seq,
        /// The reason, in words for people.
        reason: String,
    },
    /// No submission loads something that has changed, so running one again would not exchange it.
    NotLoaded {
        /// The name of the definition.
        name: String,
    },
    /// No submission used what has changed.
    Unused,
    /// No worker has the session's definitions.
    NoWorker,
    /// The worker does not say what its code does.
    Undescribed,
}

impl Display for FullReplayReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { requested } => write!(f, "it is not known what #{requested} used"),
            Self::FromElsewhere => f.write_str("the session has code of another session"),
            Self::Withheld => f.write_str("it is not known what withheld code used"),
            Self::Gone { name } => write!(f, "{name} is gone"),
            Self::Means { name, by } => write!(f, "#{by} gave `{name}` another meaning"),
            Self::Opens { requested } => write!(f, "it is not known which names #{requested} opened"),
            Self::Once { requested, reason } => write!(f, "#{requested} {reason}"),
            Self::NotLoaded { name } => write!(f, "{name} cannot be exchanged in a worker"),
            Self::Unused => f.write_str("no submission used what changed"),
            Self::NoWorker => f.write_str("the session had no worker"),
            Self::Undescribed => f.write_str("the worker does not say what can run twice in it"),
        }
    }
}

/// The submissions that run again, in order, where what has these names is otherwise than a session's code had it: those that used it,
/// themselves or through names of the session, and those that used what is loaded again with it.
///
/// # Errors
/// Why all have to run again in a new worker.
pub fn plan(candidates: &[Candidate<'_>], changed: &BTreeSet<String>) -> Result<Vec<Seq>, FullReplayReason> {
    let mut part = part_of(candidates, changed)?;
    // The last value of all stays that of the same submission.
    let gives_last = |candidate: &&Candidate<'_>| candidate.defines.contains(LAST_VALUE);
    let changes_last =
        candidates.iter().filter(gives_last).any(|one| part.binary_search(&one.requested).is_ok());
    if changes_last
        && let Some(last) = candidates.iter().rfind(gives_last)
        && let Err(index) = part.binary_search(&last.requested)
    {
        part.insert(index, last.requested);
    }
    let runs_again = |candidate: &Candidate<'_>| part.binary_search(&candidate.requested).is_ok();
    let again: Vec<_> = candidates.iter().filter(|candidate| runs_again(candidate)).collect();
    let loads = |name: &String| again.iter().any(|one| one.description.loads.contains(name));
    if let Some(name) = changed.iter().find(|name| !loads(name)) {
        return Err(FullReplayReason::NotLoaded { name: name.clone() });
    }
    for Candidate { requested, description, .. } in &again {
        if let Some(reason) = description.runs_once.clone() {
            return Err(FullReplayReason::Once { requested: *requested, reason });
        }
        if description.defines_others {
            return Err(FullReplayReason::Opens { requested: *requested });
        }
    }
    check_meanings(candidates, runs_again)?;
    Ok(part)
}

/// What used what has changed, or is loaded again with it.
fn part_of(candidates: &[Candidate<'_>], changed: &BTreeSet<String>) -> Result<Vec<Seq>, FullReplayReason> {
    let mut renewed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let mut part = Vec::new();
    for Candidate { requested, validity, touched, description, .. } in candidates {
        let requested = *requested;
        let touched = match (validity, touched) {
            (None, _) => return Err(FullReplayReason::FromElsewhere),
            (Some(Validity::Unknown), _) | (_, None) => return Err(FullReplayReason::Unknown { requested }),
            (Some(Validity::Valid | Validity::Stale | Validity::Invalid), Some(touched)) => touched,
        };
        if touched.iter().any(|name| renewed.contains(name.as_str())) {
            part.push(requested);
            renewed.extend(description.loads.iter().map(String::as_str));
        }
    }
    if part.is_empty() { Err(FullReplayReason::Unused) } else { Ok(part) }
}

/// Refuses where a name would mean something else than if all had run again: to a submission that runs again, because one that ran behind
/// it has given it another meaning, or afterwards, because one behind which it now runs had.
fn check_meanings<'a>(
    candidates: &[Candidate<'a>],
    runs_again: impl Fn(&Candidate<'_>) -> bool,
) -> Result<(), FullReplayReason> {
    // The scripts and names that those before use or define which run again, and those that they define.
    let (mut mentioned, mut defined): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    let mut earlier: BTreeSet<&str> = BTreeSet::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let Candidate { requested, touched, defines, words, description, .. } = candidate;
        let gives = || candidate.gives();
        let means = |name: &str, by: Seq| Err(FullReplayReason::Means { name: name.to_owned(), by });
        if runs_again(candidate) {
            let is_used = |(word, count): (&&'a str, &usize)| {
                let is_used =
                    *word != LAST_VALUE && !defines.contains(*word) || *count > 1 && earlier.contains(*word);
                (is_used && !defined.contains(*word)).then_some(*word)
            };
            let scripts = touched.iter().flat_map(|touched| touched.iter()).map(String::as_str);
            let of_others =
                scripts.filter(|name| !defined.contains(name) && !gives().any(|given| given == *name));
            let used: BTreeSet<&str> = words.iter().filter_map(is_used).chain(of_others).collect();
            // Up to its own turn nobody who runs again has given these the meaning that they had then.
            let rest = candidates.iter().skip(index).filter(|one| runs_again(one));
            let mut later = rest.flat_map(|one| {
                one.gives().filter(|name| used.contains(name)).map(|name| (name, one.requested))
            });
            if let Some((name, by)) = later.next() {
                return means(name, by);
            }
            mentioned.extend(words.keys().copied().chain(gives()));
            mentioned.extend(touched.iter().flat_map(|touched| touched.iter()).map(String::as_str));
            defined.extend(gives());
        } else if !mentioned.is_empty() {
            if description.defines_others {
                return Err(FullReplayReason::Opens { requested: *requested });
            }
            if let Some(name) = gives().find(|name| mentioned.contains(name)) {
                return means(name, *requested);
            }
        }
        earlier.extend(gives());
    }
    Ok(())
}

/// A value that is another than before a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueChange {
    /// The event that accepted the submission.
    pub requested: Seq,
    /// Its name; `it` is the last expression's.
    pub name: String,
    /// What it has now, as it is printed, how it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The value before the change, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

impl Display for ValueChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { name, now, was, .. } = self;
        match (now, was) {
            (Some(now), Some(was)) if now != was => write!(f, "{name} is {now} (was {was})"),
            (Some(now), None) => write!(f, "{name} is {now}"),
            (Some(_), Some(_)) | (None, _) => write!(f, "{name} is another"),
        }
    }
}

/// How many changes of values are told.
pub const CHANGES_KEPT: usize = 100;

/// What ran again because something had changed that a session's code uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    /// The submissions that ran again, in the worker that was there; none where a new one ran all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<Vec<Seq>>,
    /// Those that would have, had not one before them failed: the session has of them what it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Seq>,
    /// How many a rebuilding runs.
    pub of: u32,
    /// Why a new worker ran them, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What gave another value; at most [`CHANGES_KEPT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ValueChange>,
}

impl Reload {
    /// What came of it, in a line.
    pub fn line(&self, diverged: &[Divergence]) -> String {
        let Self { in_place, left, of, because, changes } = self;
        let submissions = |count: u32| if count == 1 { "submission" } else { "submissions" };
        let ran = match (in_place, because) {
            (Some(ran), _) => format!("{} of {of} {} ran again", ran.len(), submissions(*of)),
            (None, None) => format!("{of} {} ran again in a new worker", submissions(*of)),
            (None, Some(because)) => {
                format!("{of} {} ran again in a new worker ({because})", submissions(*of))
            }
        };
        let is_told = |divergence: &&Divergence| !matches!(divergence.kind, DivergenceKind::Values { .. });
        let mut told: Vec<String> = diverged.iter().filter(is_told).map(ToString::to_string).collect();
        match left.as_slice() {
            [] => {}
            [one] => told.push(format!("#{one} did not run")),
            several => {
                let several: Vec<_> = several.iter().map(|seq| format!("#{seq}")).collect();
                told.push(format!("{} did not run", several.join(", ")));
            }
        }
        told.extend(changes.iter().map(ToString::to_string));
        match told.is_empty() {
            true => format!("{ran}: nothing gave another value"),
            false => format!("{ran}: {}", told.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::bool::weighted;
    use proptest::collection::{btree_set, vec};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;

    const SCRIPTS: [&str; 3] = ["a.fsx", "b.fsx", "c.fsx"];

    #[derive(Clone, Debug)]
    struct Known {
        touched: Vec<String>,
        name: &'static str,
        uses: Option<&'static str>,
        description: Description,
    }

    impl Known {
        fn of(touched: &[&str], name: &'static str, loads: bool) -> Self {
            let touched: Vec<_> = touched.iter().map(|name| (*name).to_owned()).collect();
            let loads = if loads { touched.clone() } else { Vec::new() };
            Self { touched, name, uses: None, description: Description { loads, ..Description::default() } }
        }
    }

    fn any_session() -> impl Strategy<Value = Vec<Known>> {
        let name = || select(vec!["u", "v", "w", "x", "y", "z"]);
        let one = (subsequence(SCRIPTS.to_vec(), 0..=2), name(), option::of(name()), weighted(0.3));
        vec(one, 0..12).prop_map(|all| {
            // What is used through a name counts as used; only what was loaded or defined can be used.
            let mut through: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            let mut loaded: BTreeSet<&'static str> = BTreeSet::new();
            let mut sessions = Vec::new();
            for (touched, name, uses, loads) in all {
                if loads {
                    loaded.extend(touched.iter().copied());
                }
                let mut touched = touched;
                touched.retain(|script| loaded.contains(script));
                let uses = uses.filter(|uses| !loads && through.contains_key(uses));
                let known = Known { uses, ..Known::of(&touched, name, loads) };
                let other = uses.map(|name| through[name].clone()).unwrap_or_default();
                let touched: Vec<String> = known.touched.iter().cloned().chain(other).collect();
                through.insert(name, touched.clone());
                sessions.push(Known { touched, ..known });
            }
            sessions
        })
    }

    fn candidates(known: &[Known]) -> Vec<Candidate<'_>> {
        let mut all = Vec::new();
        for (index, known) in known.iter().enumerate() {
            let mut words = BTreeMap::from([(known.name, 1)]);
            if let Some(uses) = known.uses {
                *words.entry(uses).or_default() += 1;
            }
            all.push(Candidate {
                requested: Seq(index as u64 + 1),
                validity: Some(Validity::Valid),
                touched: Some(&known.touched),
                defines: BTreeSet::from([known.name]),
                words,
                description: &known.description,
            });
        }
        all
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn any_changed() -> impl Strategy<Value = BTreeSet<String>> {
        btree_set(select(SCRIPTS.to_vec()).prop_map(str::to_owned), 1..3)
    }

    /// What submissions come to that run in this order: for each what it was made of, by the submission that gave that (of a name or a
    /// script), and at last what gave each name.
    type Made = (Vec<BTreeMap<String, usize>>, BTreeMap<String, usize>);

    fn run(known: &[Known], order: impl IntoIterator<Item = usize>) -> Made {
        let mut given = BTreeMap::new();
        let mut made = vec![BTreeMap::new(); known.len()];
        for index in order {
            let Known { touched, name, uses, description } = &known[index];
            given.extend(description.loads.iter().map(|script| (script.clone(), index)));
            let used = touched.iter().map(String::as_str).chain(*uses);
            made[index] = used.filter_map(|name| Some((name.to_owned(), *given.get(name)?))).collect();
            given.insert((*name).to_owned(), index);
        }
        (made, given)
    }

    proptest! {
        #[test]
        fn all_that_used_what_has_changed_runs_again_in_order(known in any_session(), changed in any_changed()) {
            let all = candidates(&known);
            let uses = |one: &&Candidate<'_>| one.touched.unwrap().iter().any(|name| changed.contains(name));
            match plan(&all, &changed) {
                Ok(part) => {
                    prop_assert!(part.is_sorted());
                    prop_assert!(all.iter().filter(uses).all(|one| part.contains(&one.requested)));
                }
                Err(FullReplayReason::Unused) => prop_assert!(!all.iter().any(|one| uses(&one))),
                Err(FullReplayReason::Means { .. } | FullReplayReason::NotLoaded { .. }) => prop_assert!(all.iter().any(|one| uses(&one))),
                Err(other) => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn afterwards_all_is_made_of_the_same_as_if_everything_had_run_again(known in any_session(), changed in any_changed()) {
            if let Ok(part) = plan(&candidates(&known), &changed) {
                let again: Vec<usize> = part.iter().map(|seq| seq.0 as usize - 1).collect();
                let whole = run(&known, 0..known.len());
                prop_assert_eq!(&whole, &run(&known, (0..known.len()).chain(again.iter().copied())));
                let kept = whole.0.iter().enumerate().filter(|(index, _)| !again.contains(index));
                for (index, made) in kept {
                    prop_assert!(made.values().all(|by| !again.contains(by)), "{index} has what was there before");
                }
            }
        }

        #[test]
        fn what_used_nothing_that_changed_and_loads_nothing_leaves_a_plan_as_it_is(
            known in any_session(), changed in any_changed(), at in 0_usize..12
        ) {
            let plain = Known::of(&[], "a name of its own", false);
            let at = at.min(known.len());
            let mut longer = known.clone();
            longer.insert(at, plain);
            let moved = |seq: Seq| if seq.0 as usize > at { Seq(seq.0 + 1) } else { seq };
            let before = plan(&candidates(&known), &changed).map(|part| part.into_iter().map(moved).collect::<Vec<_>>());
            let after = plan(&candidates(&longer), &changed);
            prop_assert_eq!(before.ok(), after.ok());
        }
    }

    #[test]
    fn what_is_loaded_again_with_a_script_has_its_users_run_again() {
        let all = [
            Known::of(&["b.fsx"], "p", true),
            Known::of(&["b.fsx"], "early", false),
            Known::of(&["a.fsx", "b.fsx"], "q", true),
            Known::of(&["b.fsx"], "late", false),
            Known::of(&["c.fsx"], "other", true),
        ];
        let all = candidates(&all);
        assert_eq!(plan(&all, &set(&["a.fsx"])), Ok(vec![Seq(3), Seq(4)]));
        assert_eq!(plan(&all, &set(&["b.fsx"])), Ok(vec![Seq(1), Seq(2), Seq(3), Seq(4)]));
        assert_eq!(plan(&all, &set(&["c.fsx"])), Ok(vec![Seq(5)]));
        assert_eq!(plan(&all, &set(&["d.dll"])), Err(FullReplayReason::Unused));
        let with = plan(&all, &set(&["c.fsx", "d.dll"]));
        assert_eq!(with, Err(FullReplayReason::NotLoaded { name: "d.dll".to_owned() }));
    }

    #[test]
    fn what_is_not_known_is_not_left_out() {
        let known = [Known::of(&[], "x", false)];
        let with = |change: fn(&mut Candidate<'_>)| {
            let mut all = candidates(&known);
            all.iter_mut().for_each(change);
            plan(&all, &set(&["a.fsx"]))
        };
        assert_eq!(with(|one| one.touched = None), Err(FullReplayReason::Unknown { requested: Seq(1) }));
        assert_eq!(
            with(|one| one.validity = Some(Validity::Unknown)),
            Err(FullReplayReason::Unknown { requested: Seq(1) })
        );
        assert_eq!(with(|one| one.validity = None), Err(FullReplayReason::FromElsewhere));
    }

    #[test]
    fn what_must_not_run_twice_or_opens_unknown_names_has_a_new_worker() {
        let all = |change: fn(&mut [Known])| {
            let mut all = [
                Known::of(&["a.fsx"], "p", true),
                Known::of(&["a.fsx"], "q", false),
                Known::of(&[], "r", false),
            ];
            change(&mut all);
            plan(&candidates(&all), &set(&["a.fsx"]))
        };
        assert_eq!(all(|_| ()), Ok(vec![Seq(1), Seq(2)]));
        let once = all(|all| all[1].description.runs_once = Some("has effects".to_owned()));
        assert_eq!(once, Err(FullReplayReason::Once { requested: Seq(2), reason: "has effects".to_owned() }));
        assert_eq!(
            all(|all| all[2].description.runs_once = Some("has effects".to_owned())),
            Ok(vec![Seq(1), Seq(2)])
        );
        for index in [1, 2] {
            let opens = [
                |all: &mut [Known]| all[1].description.defines_others = true,
                |all: &mut [Known]| all[2].description.defines_others = true,
            ];
            assert_eq!(
                all(opens[index - 1]),
                Err(FullReplayReason::Opens { requested: Seq(index as u64 + 1) })
            );
        }
    }

    #[test]
    fn a_name_that_is_used_has_the_meaning_it_had() {
        let means = |all: &[Known]| plan(&candidates(all), &set(&["a.fsx"])).err();
        let of = |name, uses, touched: &[&str]| Known { uses, ..Known::of(touched, name, false) };
        let load = || Known::of(&["a.fsx"], "load", true);
        let by = |seq| Some(FullReplayReason::Means { name: "k".to_owned(), by: Seq(seq) });
        let a = &["a.fsx"][..];
        assert_eq!(means(&[of("k", None, &[]), load(), of("p", Some("k"), a)]), None);
        assert_eq!(means(&[of("k", None, &[]), load(), of("p", Some("k"), a), of("k", None, &[])]), by(4));
        assert_eq!(means(&[of("k", None, &[]), load(), of("p", Some("k"), a), of("k", None, a)]), by(4));
        assert_eq!(means(&[of("k", None, &[]), load(), of("k", Some("k"), a)]), by(3));
        assert_eq!(means(&[load(), of("k", None, a), of("p", Some("k"), a), of("k", None, a)]), None);
        assert_eq!(means(&[load(), of("k", None, a), of("k", None, &[])]), by(3));
    }

    #[test]
    fn the_shape_of_a_reload() {
        let change = ValueChange {
            requested: Seq(5),
            name: "p".to_owned(),
            now: Some("2".to_owned()),
            was: Some("1".to_owned()),
        };
        let reload =
            Reload { in_place: Some(vec![Seq(3)]), of: 4, changes: vec![change], ..Reload::default() };
        let written = r#"{"inPlace":[3],"of":4,"changes":[{"requested":5,"name":"p","now":"2","was":"1"}]}"#;
        assert_eq!(serde_json::to_string(&reload).unwrap(), written);
        assert_eq!(serde_json::from_str::<Reload>(written).unwrap(), reload);
    }

    #[test]
    fn a_line_says_what_gave_another_value() {
        let change = |name: &str, now: Option<&str>, was: Option<&str>| ValueChange {
            requested: Seq(5),
            name: name.to_owned(),
            now: now.map(str::to_owned),
            was: was.map(str::to_owned),
        };
        let changes = vec![
            change("price", Some("30.0"), Some("20.0")),
            change("total", Some("90.0"), Some("60.0")),
            change("help", None, None),
        ];
        let reload = Reload { in_place: Some(vec![Seq(3), Seq(5)]), of: 4, ..Reload::default() };
        insta::assert_snapshot!(reload.line(&[]), @"2 of 4 submissions ran again: nothing gave another value");
        let reload = Reload { changes, ..reload };
        insta::assert_snapshot!(reload.line(&[]), @"2 of 4 submissions ran again: price is 30.0 (was 20.0), total is 90.0 (was 60.0), help is another");
        let kind = DivergenceKind::Ending { error: Some("FS0001 tax.fsx(2): no".to_owned()) };
        let failed = [Divergence { requested: Seq(3), session: None, kind }];
        let reload =
            Reload { in_place: Some(vec![Seq(3)]), left: vec![Seq(5), Seq(7)], of: 4, ..Reload::default() };
        insta::assert_snapshot!(reload.line(&failed), @"1 of 4 submissions ran again: #3 failed: FS0001 tax.fsx(2): no, #5, #7 did not run");
        let because = Some(FullReplayReason::Means { name: "x".to_owned(), by: Seq(9) }.to_string());
        let reload = Reload { of: 1, because, ..Reload::default() };
        insta::assert_snapshot!(reload.line(&[]), @"1 submission ran again in a new worker (#9 gave `x` another meaning): nothing gave another value");
    }
}
