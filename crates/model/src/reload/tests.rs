//! Plans of reloads, and how they are reported.

use std::collections::{BTreeMap, BTreeSet};

use proptest::bool::weighted;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::id::Seq;
use crate::replay::{Divergence, DivergenceKind};
use crate::validity::Validity;

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
        let mut all =
            [Known::of(&["a.fsx"], "p", true), Known::of(&["a.fsx"], "q", false), Known::of(&[], "r", false)];
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
        assert_eq!(all(opens[index - 1]), Err(FullReplayReason::Opens { requested: Seq(index as u64 + 1) }));
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
    let reload = Reload { in_place: Some(vec![Seq(3)]), of: 4, changes: vec![change], ..Reload::default() };
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
