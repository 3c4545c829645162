//! The panel of a session's tests: how they ended when they last ran, which failed and where, and which cannot be relied upon.

use mainstay_engine::Client;
use mainstay_model::{
    ChosenPart, Error, FailedTest, RecordedRuns, Session, SessionId, TestChoice, TestPlace, TestSelection,
};
use maud::{Markup, html};

use super::cell::moment;
use super::coverage::address;

/// How many tests that failed are shown, and how many that are flaky.
const SHOWN: usize = 20;
/// How much is shown of what a test said.
const MESSAGE_BYTES: usize = 2_000;

/// What is known of a session's tests; nothing of one that runs none.
///
/// # Errors
/// As [`Client::test_runs`].
pub(super) async fn runs(client: &Client, session: &Session) -> Result<RecordedRuns, Error> {
    match TestSelection::is_known_to(&session.kind, session.capabilities()) {
        Ok(()) => client.test_runs(session.id).await,
        Err(_) => Ok(RecordedRuns::default()),
    }
}

/// The panel, which is hidden as long as no test has run.
pub(super) fn panel(session: SessionId, runs: &RecordedRuns) -> Markup {
    let Some(last) = runs.runs.last() else {
        return html! { section #tests aria-label="Tests" hidden {} };
    };
    let history = runs.history();
    let counts = history.counts();
    let failing: Vec<_> = history.failing().map(|(assembly, name)| runs.failure(assembly, name)).collect();
    let flaky: Vec<_> = history.flaky().collect();
    let (class, words) = match (runs.is_running, counts.failed) {
        (true, _) => ("runs", "tests run".to_owned()),
        (false, 0) => ("ok", "all tests pass".to_owned()),
        (false, 1) => ("bad", "1 test fails".to_owned()),
        (false, failed) => ("bad", format!("{failed} tests fail")),
    };
    let reach = reach(runs);
    html! {
        section #tests aria-label="Tests" {
            p.facts role="status" {
                span.state.{ (class) } { (words) }
                span { (counts.passed) " passed" }
                @if counts.failed > 0 { span { (counts.failed) " failed" } }
                @if counts.skipped > 0 { span { (counts.skipped) " skipped" } }
                @if !flaky.is_empty() { span.warning { (flaky.len()) " flaky" } }
                @if let Some(choice) = reach { span { (choice.chosen) " of " (choice.found) " tests reach the change" } }
                (moment(last.at))
                @if !runs.changes.is_empty() { span.warning { "the code has changed since" } }
                a href={ "/ui/sessions/" (session) "/coverage" } { "coverage" }
            }
            @if !failing.is_empty() {
                ul.failing { @for test in failing.iter().take(SHOWN) { (failed(session, test)) } }
                @if failing.len() > SHOWN { p.hint { "… " (failing.len() - SHOWN) " more" } }
            }
            @if !flaky.is_empty() {
                p.hint { "Flaky, with the same code: " (flaky.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ")) }
            }
        }
    }
}

/// What the newest run chose, but for one of the rest: where it was for those that reach a change.
fn reach(runs: &RecordedRuns) -> Option<&TestChoice> {
    let mut choices = runs.runs.iter().rev().map(|recorded| recorded.run.choice.as_ref());
    let newest = choices.find(|choice| choice.is_none_or(|choice| choice.part != ChosenPart::Rest));
    newest.flatten().filter(|choice| choice.part == ChosenPart::Reached)
}

fn failed(session: SessionId, test: &FailedTest<'_>) -> Markup {
    let FailedTest { name, message, place } = test;
    html! {
        li {
            span.error { (name) }
            @if let Some(TestPlace { file, line }) = place {
                " "
                a.path href={ (address(session, Some(file))) "#L" (line) } { (file.rsplit(['/', '\\']).next().unwrap_or(file)) ":" (line) }
            }
            @if !message.is_empty() { pre tabindex="0" { (&message[..message.floor_char_boundary(MESSAGE_BYTES)]) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{RecordedRun, Seq, TestFailure, TestOutcome, TestResult, TestRun, Timestamp};

    use super::*;

    fn test(name: &str, outcome: TestOutcome) -> TestResult {
        TestResult {
            name: name.to_owned(),
            framework: "NUnit".to_owned(),
            assembly: Some("Shop.Tests".to_owned()),
            categories: Vec::new(),
            duration_ms: 1,
            output: None,
            place: Some(TestPlace { file: "/shop/a b/Tests.fs".to_owned(), line: 7 }),
            outcome,
        }
    }

    #[test]
    fn what_failed_stands_with_its_place_and_nothing_of_it_is_html() {
        let session: SessionId = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        assert!(panel(session, &RecordedRuns::default()).into_string().contains("hidden"));
        let failure = TestFailure {
            kind: "E".to_owned(),
            message: "Expected: <b>2</b>".to_owned(),
            expected: None,
            actual: None,
            stack: Vec::new(),
            file: None,
            line: None,
        };
        let failed = TestOutcome::Failed { failure: Box::new(failure) };
        let choice = TestChoice {
            part: ChosenPart::Reached,
            changed: vec!["Shop.Cart.price".to_owned()],
            chosen: 3,
            found: 500,
            on_demand: 0,
            over_budget: 0,
            overtaken: false,
        };
        let run = TestRun {
            tests: vec![test("prices", failed), test("totals", TestOutcome::Passed)],
            choice: Some(choice),
            ..TestRun::default()
        };
        let mut runs = RecordedRuns::default();
        runs.runs.push(RecordedRun { seq: Seq(4), at: Timestamp::UNIX_EPOCH, run });
        insta::assert_snapshot!(panel(session, &runs).into_string().replace("><", ">\n<"));
    }
}
