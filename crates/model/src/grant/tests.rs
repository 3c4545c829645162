//! What grants allow, and what a child of one is never allowed.

mod attacks;
mod patterns;
mod subsets;

use super::{Budget, Denial, Grants, NotASubset, Operation, OperationKind, Pattern, PatternLimits};
use crate::Timestamp;

/// A grant of kinds with patterns.
fn grants(capabilities: &[(&str, &[&str])]) -> Grants {
    let capabilities = capabilities.iter().map(|(kind, patterns)| (*kind, patterns.iter().copied()));
    Grants::parse(capabilities, &PatternLimits::REQUEST).unwrap()
}

fn budget(amounts: &[&str]) -> Budget {
    Budget::parse(amounts.iter().copied()).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn kind(name: &str) -> OperationKind {
    name.parse().unwrap()
}

fn operation(name: &str, target: &str) -> Operation {
    Operation::new(kind(name), target).unwrap()
}

fn pattern(name: &str, text: &str) -> Pattern {
    Pattern::parse(&kind(name), text, &PatternLimits::REQUEST).unwrap()
}

fn spend(grants: &mut Grants, currency: &str, cost: &str) -> Option<String> {
    let left = grants.spend(&currency.parse().unwrap(), cost.parse().unwrap());
    left.map(|left| left.to_string())
}

#[test]
fn an_operation_is_checked_for_what_has_ended_first() {
    let write = operation("fs.write", "/work/a");
    let mut grants = grants(&[("fs.write", &["/work/**"])]).until(Some(at(10))).costing(budget(&["USD:1"]));
    assert_eq!(grants.check(&write, at(9)), Ok(()));
    assert_eq!(grants.check(&write, at(10)), Err(Denial::Expired { at: at(10) }));
    let read = operation("fs.read", "/work/a");
    let target = "/work/a".to_owned();
    assert_eq!(grants.check(&read, at(9)), Err(Denial::NotCovered { kind: kind("fs.read"), target }));
    assert_eq!(spend(&mut grants, "USD", "1.5").as_deref(), Some("0"));
    let exhausted = Denial::BudgetExhausted { currency: "USD".parse().unwrap() };
    assert_eq!(grants.check(&write, at(9)), Err(exhausted));
    grants.revoke("the review is over");
    grants.revoke("another");
    let revoked = Denial::Revoked { reason: "the review is over".to_owned() };
    assert_eq!(grants.check(&write, at(9)), Err(revoked.clone()));
    assert_eq!(grants.extend(at(20), at(9)), Err(revoked));
}

#[test]
fn an_end_is_moved_later_and_never_earlier_and_not_after_it_came() {
    let mut grants = grants(&[]).until(Some(at(10)));
    assert_eq!(grants.extend(at(5), at(1)), Ok(()));
    assert_eq!(grants.expires_at(), Some(at(10)));
    assert_eq!(grants.extend(at(20), at(9)), Ok(()));
    assert_eq!(grants.expires_at(), Some(at(20)));
    assert_eq!(grants.extend(at(30), at(20)), Err(Denial::Expired { at: at(20) }));
    let mut endless = Grants::default();
    assert_eq!(endless.extend(at(5), at(1)), Ok(()));
    assert_eq!(endless.expires_at(), None);
}

#[test]
fn a_child_has_no_more_than_its_parent_has_left() {
    let mut parent = grants(&[("model.use", &["tier-fast/*"]), ("fs.read", &["/work/**"])])
        .until(Some(at(10)))
        .costing(budget(&["USD:5.00"]));
    spend(&mut parent, "USD", "3");
    let child = parent.narrow(&grants(&[("model.use", &["tier-fast/small"])])).unwrap();
    assert_eq!(child.expires_at(), Some(at(10)));
    assert_eq!(child.budget(), &budget(&["USD:2"]));
    let exact = grants(&[]).costing(budget(&["USD:2", "EUR:1"])).until(Some(at(9)));
    assert_eq!(parent.narrow(&exact).unwrap(), exact);

    let beyond = |request: &Grants| parent.narrow(request).unwrap_err();
    let (asked, remaining) = ("USD:2.01".parse().unwrap(), "USD:2".parse().unwrap());
    assert_eq!(beyond(&grants(&[]).costing(budget(&["USD:2.01"]))), NotASubset::Budget { asked, remaining });
    assert_eq!(beyond(&grants(&[]).until(Some(at(11)))), NotASubset::Expiry { asked: at(11), held: at(10) });
    for (name, text) in [("model.use", "tier-slow/*"), ("model.use", "**"), ("fs.write", "/work/a")] {
        let expected = NotASubset::Pattern { capability: kind(name), pattern: text.to_owned() };
        assert_eq!(beyond(&grants(&[("fs.read", &["/work/a"]), (name, &[text])])), expected);
    }
}

#[test]
fn a_request_is_reduced_to_the_narrower_of_what_overlaps() {
    let held = grants(&[("fs.read", &["/work/**", "/tmp/a"]), ("tool.call", &["**"])])
        .until(Some(at(10)))
        .costing(budget(&["USD:5"]));
    let asked = grants(&[
        ("fs.read", &["/work/src/*", "/tmp/*", "/etc/**"]),
        ("fs.write", &["/work/**"]),
        ("tool.call", &["humanq.*"]),
    ])
    .until(Some(at(20)))
    .costing(budget(&["USD:9", "EUR:1"]));
    let given = grants(&[("fs.read", &["/work/src/*", "/tmp/a"]), ("tool.call", &["humanq.*"])])
        .until(Some(at(10)))
        .costing(budget(&["USD:5", "EUR:1"]));
    assert_eq!(held.reduce(&asked), given);
}

#[test]
fn it_is_stored_and_read_back() {
    let mut grants = grants(&[("fs.read", &["/work/**"]), ("payment.refund.create", &["order:*"])])
        .until(Some(at(10)))
        .costing(budget(&["USD:5.00"]));
    spend(&mut grants, "USD", "0.25");
    let stored = serde_json::to_string(&grants).unwrap();
    let expected = [
        r#"{"capabilities":{"fs.read":["/work/**"],"payment.refund.create":["order:*"]},"#,
        r#""expiresAt":"1970-01-01T00:00:10Z","budget":{"USD":{"granted":"5","spent":"0.25"}}}"#,
    ];
    assert_eq!(stored, expected.concat());
    assert_eq!(serde_json::from_str::<Grants>(&stored).unwrap(), grants);
    grants.revoke("over");
    let stored = serde_json::to_value(&grants).unwrap();
    assert_eq!(stored["revoked"], "over");
    assert_eq!(serde_json::from_value::<Grants>(stored).unwrap(), grants);
    assert_eq!(serde_json::from_str::<Grants>("{}").unwrap(), Grants::default());
    assert!(serde_json::from_str::<Grants>(r#"{"capabilities":{"fs.read":["work"]}}"#).is_err());
    let schema = serde_json::to_string(&schemars::schema_for!(Grants)).unwrap();
    assert!(schema.contains(r#""title":"Grants""#) && schema.contains("expiresAt"), "{schema}");
}

#[test]
fn a_request_has_limits() {
    let limits = PatternLimits { bytes: 8, patterns: 2, total_bytes: 12 };
    let parse = |patterns: &[&str]| Grants::parse([("fs.read", patterns.iter().copied())], &limits);
    assert!(parse(&["/a", "/b"]).is_ok());
    assert!(parse(&["/a", "/b", "/c"]).is_err());
    assert!(parse(&["/12345678"]).is_err());
    assert!(parse(&["/1234567", "/1234567"]).is_err());
    let wide = PatternLimits { bytes: usize::MAX, ..PatternLimits::STORED };
    assert!(Grants::parse([("fs.read", [format!("/{}", "a".repeat(9000)).as_str()])], &wide).is_err());
}

#[test]
fn a_kind_is_a_dotted_name_in_lower_case() {
    for name in ["fs.read", "payment.refund.create", "x-vendor.acme_1", "trust.elevate.privileged"] {
        assert_eq!(kind(name).to_string(), name);
    }
    for name in
        ["", "fs", "fs.", ".read", "fs..read", "Fs.read", "fs.read ", "fs.1", "cost.budget", "fs/read"]
    {
        assert!(name.parse::<OperationKind>().is_err(), "{name}");
    }
    assert_eq!(kind("fs.read"), OperationKind::FS_READ);
}
