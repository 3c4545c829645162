//! Chooses scenarios, and runs them one after the other.

use std::time::Instant;

use serde_json::Value;

use crate::probe::Probe;
use crate::report::{Finding, Report};
use crate::scenario::{Dialect, Outcome, Scenario, Stop};
use crate::settings::Settings;
use crate::{a, b};

/// Returns the scenarios whose id, section or beginning of either is among those asked for; all where none
/// is.
pub fn select(scenarios: Vec<Scenario>, only: &[String]) -> Vec<Scenario> {
    let wanted = |scenario: &Scenario| {
        only.iter().any(|only| {
            let begins = |text: &str| {
                text.strip_prefix(only.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            begins(scenario.id) || begins(scenario.section())
        })
    };
    scenarios.into_iter().filter(|scenario| only.is_empty() || wanted(scenario)).collect()
}

/// Tries the handshake of a dialect, and returns whether the runtime accepts it.
pub async fn speaks(dialect: Dialect, settings: &Settings) -> bool {
    let probe = Probe::new(settings.clone());
    match dialect {
        Dialect::A => a::Session::open(&probe).await.is_ok(),
        Dialect::B => b::Session::open(&probe).await.is_ok(),
    }
}

/// Runs scenarios in order, and tells each finding as soon as it is there.
pub async fn run(scenarios: &[Scenario], settings: &Settings, mut tell: impl FnMut(&Finding)) -> Report {
    let mut findings = Vec::new();
    for scenario in scenarios {
        let finding = run_one(*scenario, settings).await;
        tell(&finding);
        findings.push(finding);
    }
    Report { findings }
}

async fn run_one(scenario: Scenario, settings: &Settings) -> Finding {
    let probe = Probe::new(settings.clone());
    let began = Instant::now();
    let ended = tokio::time::timeout(settings.limit, (scenario.body)(&probe)).await;
    let outcome = match ended {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(Stop::Failed { expected, got })) => failed(&probe, expected, got),
        Ok(Err(Stop::Skipped(why))) => Outcome::Skipped(why),
        Ok(Err(Stop::NotApplicable(why))) => Outcome::NotApplicable(why),
        Err(_) => failed(&probe, format!("an end within {:?}", settings.limit), "none".to_owned()),
    };
    Finding { scenario, outcome, took: began.elapsed() }
}

fn failed(probe: &Probe, expected: String, got: String) -> Outcome {
    let mut frames = probe.transcript.frames();
    let tokens = [&probe.settings.token, &probe.settings.other_token];
    for token in tokens.into_iter().flatten() {
        let secret = format!("\"token\":{}", Value::from(token.as_str()));
        for frame in &mut frames {
            frame.text = frame.text.replace(&secret, "\"token\":\"…\"");
        }
    }
    Outcome::Failed { expected, got, frames }
}
