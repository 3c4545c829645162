//! The runner against scripted runtimes: one that conforms passes every scenario that applies to it, and
//! for each scenario there is a fault with which it fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod dialect_a;
mod dialect_b;
mod faults;
mod server;
mod tls;

use std::collections::BTreeSet;
use std::time::Duration;

use arcp_conformance::{
    Colour, Dialect, Outcome, Report, Scenario, Settings, Target, Work, run, scenarios, select, speaks,
};
use futures::StreamExt;
use serde_json::json;

use crate::faults::FAULTS;

fn settings(url: String) -> Settings {
    let work = Work {
        name: Some("worker".to_owned()),
        input: Some(json!({ "do": "succeed" })),
        failing: Some(json!({ "do": "fail" })),
        slow: Some(json!({ "do": "slow" })),
        chatty: Some(json!({ "do": "chatty" })),
        asking: Some(json!({ "do": "ask" })),
        permission: Some(json!({ "do": "permission" })),
    };
    Settings {
        target: Target::WebSocket { url, headers: Vec::new(), tls: None },
        token: Some("t".to_owned()),
        other_token: Some("u".to_owned()),
        wait: Duration::from_secs(10),
        quiet: Duration::from_millis(100),
        limit: Duration::from_secs(60),
        agent: work.clone(),
        tool: work,
    }
}

async fn serve(dialect: Dialect, fault: &'static str) -> String {
    match dialect {
        Dialect::A => server::serve(dialect_a::Runtime::new(fault)).await,
        Dialect::B => server::serve(dialect_b::Runtime::new(fault)).await,
    }
}

/// Runs one scenario against a runtime of its own; one with a fault is not waited for as long.
async fn against(scenario: Scenario, fault: &'static str) -> Report {
    let mut settings = settings(serve(scenario.dialect(), fault).await);
    if !fault.is_empty() {
        settings.wait = Duration::from_secs(2);
        settings.quiet = Duration::from_millis(300);
    }
    run(&[scenario], &settings, |_| {}).await
}

fn complaint(report: &Report) -> Option<String> {
    let finding = &report.findings[0];
    match &finding.outcome {
        Outcome::Passed => None,
        other => Some(format!("{}: {other:?}", finding.scenario.id)),
    }
}

/// The scenarios whose condition the scripted runtime does not meet, and the one that meets it.
const NOT_MET: [(&str, &str); 2] =
    [("a.10.5.unsupported", "refuses-interrupt"), ("a.10.6.unsupported", "refuses-schedule")];

async fn passes_all(dialect: Dialect) {
    let all = scenarios().into_iter().filter(|each| each.dialect() == dialect);
    let runs = futures::stream::iter(all).map(|each| {
        let other = NOT_MET.iter().find(|(id, _)| *id == each.id);
        against(each, other.map_or("", |(_, runtime)| runtime))
    });
    let runs = runs.buffer_unordered(16);
    let complaints: Vec<_> = runs.filter_map(async |report| complaint(&report)).collect().await;
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[tokio::test]
async fn a_runtime_that_conforms_passes_every_scenario_of_dialect_a() {
    passes_all(Dialect::A).await;
}

#[tokio::test]
async fn a_runtime_that_conforms_passes_every_scenario_of_dialect_b() {
    passes_all(Dialect::B).await;
}

#[tokio::test]
async fn every_scenario_fails_with_the_fault_that_breaks_it() {
    let pairs = FAULTS.iter().flat_map(|(fault, ids)| ids.iter().map(|id| (*fault, *id)));
    let runs = futures::stream::iter(pairs).map(async |(fault, id)| {
        let scenario = select(scenarios(), &[id.to_owned()]).pop().expect(id);
        let report = against(scenario, fault).await;
        let failed = matches!(report.findings[0].outcome, Outcome::Failed { .. });
        (!failed).then(|| format!("{id} with {fault}: {:?}", report.findings[0].outcome))
    });
    let survivors: Vec<_> = runs.buffer_unordered(16).filter_map(async |each| each).collect().await;
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

#[test]
fn every_scenario_has_a_fault_that_breaks_it() {
    let broken: BTreeSet<_> = FAULTS.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    let all: BTreeSet<_> = scenarios().iter().map(|each| each.id).collect();
    let missing: Vec<_> = all.difference(&broken).collect();
    assert!(missing.is_empty(), "scenarios that may be unable to fail: {missing:?}");
    assert_eq!(all.len(), scenarios().len(), "an id is used twice");
}

#[tokio::test]
async fn a_condition_that_is_not_met_is_not_applicable_and_a_missing_option_skips() {
    let mut settings = settings(serve(Dialect::A, "").await);
    let unmet = select(scenarios(), &["a.10.5.unsupported".to_owned()]);
    let report = run(&unmet, &settings, |_| {}).await;
    assert!(matches!(report.findings[0].outcome, Outcome::NotApplicable(_)));
    settings.tool = Work::default();
    let report = run(&select(scenarios(), &["a.10.4".to_owned()]), &settings, |_| {}).await;
    let unknown = report.findings.iter().filter(|each| each.scenario.id != "a.10.4.unknown-job");
    assert!(unknown.into_iter().all(|each| each.outcome == Outcome::Skipped("no --tool".to_owned())));
}

#[tokio::test]
async fn a_runtime_that_is_not_there_fails_and_speaks_neither_dialect() {
    let settings = settings("ws://127.0.0.1:1/arcp".to_owned());
    let report = run(&select(scenarios(), &["b.6.2.welcome".to_owned()]), &settings, |_| {}).await;
    assert!(
        matches!(&report.findings[0].outcome, Outcome::Failed { expected, .. } if expected == "a connection")
    );
    assert!(!report.conforms());
    assert!(!speaks(Dialect::A, &settings).await);
    assert!(!speaks(Dialect::B, &settings).await);
}

#[tokio::test]
async fn each_runtime_speaks_its_own_dialect_alone() {
    for (dialect, other) in [(Dialect::A, Dialect::B), (Dialect::B, Dialect::A)] {
        let mut settings = settings(serve(dialect, "").await);
        assert!(speaks(dialect, &settings).await);
        settings.wait = Duration::from_secs(1);
        assert!(!speaks(other, &settings).await);
    }
}

#[tokio::test]
async fn a_failure_shows_its_frames_without_the_token() {
    let mut settings = settings(serve(Dialect::B, "no-closed").await);
    settings.wait = Duration::from_secs(1);
    let report = run(&select(scenarios(), &["b.6.7.close".to_owned()]), &settings, |_| {}).await;
    let Outcome::Failed { frames, .. } = &report.findings[0].outcome else { panic!("no failure") };
    let all: String = frames.iter().map(|frame| frame.text.as_str()).collect();
    assert!(
        all.contains("session.hello") && all.contains("session.close") && !all.contains("\"token\":\"t\"")
    );
    let json = report.json();
    assert_eq!(json["conforms"], false);
    assert_eq!(json["scenarios"][0]["outcome"], "failed");
    assert_eq!(json["scenarios"][0]["section"], "6.7");
    assert_eq!(json["scenarios"][0]["frames"].as_array().unwrap().len(), frames.len());
    let rows = report.findings[0].rows(Colour::Off);
    assert!(rows.starts_with("FAILED         MUST   b.6.7.close"), "{rows}");
    assert!(report.findings[0].rows(Colour::On).contains("\u{1b}[31m"));
}

#[tokio::test]
async fn a_section_or_an_id_selects_scenarios_and_none_selects_all() {
    let ids = |only: &[&str]| {
        let only: Vec<_> = only.iter().map(|each| (*each).to_owned()).collect();
        select(scenarios(), &only).into_iter().map(|each| each.id).collect::<Vec<_>>()
    };
    assert!(ids(&["b.6.7"]).iter().all(|id| id.starts_with("b.6.7.")));
    assert_eq!(ids(&["b.6.7.close", "8.4"]).len(), 3);
    assert!(ids(&["1"]).is_empty(), "a section is whole: 1 is not 10 or 13");
    assert_eq!(ids(&[]).len(), scenarios().len());
}
