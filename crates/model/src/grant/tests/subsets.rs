//! What a child may do its parent may do: over any grants, operations, moments and costs.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{at, budget, grants, operation};
use crate::Timestamp;
use crate::grant::{Amount, Currency, Grants, Operation};

const KINDS: [&str; 3] = ["fs.read", "tool.call", "model.use"];

/// A pattern that is valid for each of the kinds.
fn any_pattern() -> impl Strategy<Value = String> {
    let glob = select(vec!["a", "b", "ab", "*", "a*", "**"]);
    vec(glob, 1..4).prop_map(|globs| format!("/{}", globs.join("/")))
}

fn any_moment() -> impl Strategy<Value = Timestamp> {
    (0_i64..6).prop_map(at)
}

fn any_grants() -> impl Strategy<Value = Grants> {
    let capabilities = vec((select(&KINDS[..]), vec(any_pattern(), 1..4)), 0..4);
    let amounts = (option::of(0_u8..5), option::of(0_u8..5));
    (capabilities, option::of(any_moment()), amounts).prop_map(
        |(capabilities, expires_at, (dollars, credits))| {
            let texts: Vec<(&str, Vec<&str>)> = capabilities
                .iter()
                .map(|(kind, texts)| (*kind, texts.iter().map(String::as_str).collect()))
                .collect();
            let texts: Vec<(&str, &[&str])> =
                texts.iter().map(|(kind, texts)| (*kind, texts.as_slice())).collect();
            let amounts = [
                dollars.map(|dollars| format!("USD:{dollars}")),
                credits.map(|credits| format!("credits:{credits}")),
            ];
            let amounts: Vec<&str> = amounts.iter().flatten().map(String::as_str).collect();
            grants(&texts).until(expires_at).costing(budget(&amounts))
        },
    )
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let target =
        vec(select(vec!["a", "b", "ab", "ba"]), 1..5).prop_map(|names| format!("/{}", names.join("/")));
    (select(&KINDS[..]), target).prop_map(|(kind, target)| operation(kind, &target))
}

/// Costs that are reported one after the other.
fn any_costs() -> impl Strategy<Value = Vec<(Currency, String)>> {
    let currency = select(vec!["USD", "credits", "EUR"]).prop_map(|name| name.parse().unwrap());
    vec((currency, "[0-3]([.][05])?"), 0..4)
}

fn spend_all(grants: &mut Grants, costs: &[(Currency, String)]) {
    for (currency, cost) in costs {
        grants.spend(currency, cost.parse().unwrap());
    }
}

/// Whether one holds no more of any currency than the other.
fn holds_no_more(one: &Grants, other: &Grants) -> bool {
    let all: Vec<Amount> = other.budget().all_remaining().collect();
    all.iter().all(|held| one.budget().remaining(&held.currency).is_some_and(|left| left <= held.value))
}

fn ends_no_later(one: &Grants, other: &Grants) -> bool {
    other.expires_at().is_none_or(|end| one.expires_at().is_some_and(|sooner| sooner <= end))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_child_may_do_nothing_that_its_parent_may_not(
        parent in any_grants(),
        request in any_grants(),
        costs in any_costs(),
        revoked in any::<bool>(),
        operation in any_operation(),
        now in any_moment(),
    ) {
        let mut parent = parent;
        spend_all(&mut parent, &costs);
        if revoked {
            parent.revoke("over");
        }
        let reduced = parent.reduce(&request);
        for child in [parent.narrow(&request).ok(), Some(reduced.clone())].into_iter().flatten() {
            prop_assert!(child.check(&operation, now).is_err() || parent.check(&operation, now).is_ok());
            prop_assert!(child.check(&operation, now).is_err() || request.check(&operation, now).is_ok());
            prop_assert!(holds_no_more(&child, &parent) && holds_no_more(&child, &request));
            prop_assert!(ends_no_later(&child, &parent) && ends_no_later(&child, &request));
        }
        // What it is reduced to is a part, so that nothing more is cut from it.
        prop_assert_eq!(parent.narrow(&reduced), Ok(reduced));
    }

    #[test]
    fn a_part_of_a_part_is_a_part(parent in any_grants(), child in any_grants(), grandchild in any_grants()) {
        let child = parent.reduce(&child);
        let grandchild = child.reduce(&grandchild);
        prop_assert_eq!(parent.narrow(&grandchild), Ok(grandchild));
    }

    #[test]
    fn a_grant_is_a_part_of_itself(grants in any_grants()) {
        prop_assert_eq!(grants.narrow(&grants), Ok(grants.clone()));
        prop_assert!(Grants::default().reduce(&grants).capabilities().is_empty());
    }

    #[test]
    fn budgets_never_go_up_and_ends_never_come_sooner(
        grants in any_grants(),
        costs in any_costs(),
        later in any_moment(),
        now in any_moment(),
    ) {
        let mut after = grants.clone();
        spend_all(&mut after, &costs);
        prop_assert!(holds_no_more(&after, &grants));
        let _ = after.extend(later, now);
        prop_assert!(holds_no_more(&after, &grants));
        prop_assert!(ends_no_later(&grants, &after));
    }

    #[test]
    fn storing_and_reading_gives_the_same(grants in any_grants(), costs in any_costs()) {
        let mut grants = grants;
        spend_all(&mut grants, &costs);
        let stored = serde_json::to_string(&grants).unwrap();
        prop_assert_eq!(serde_json::from_str::<Grants>(&stored).unwrap(), grants);
    }
}
