//! What code shows, in its cell.

use super::*;

#[test]
fn what_code_shows_is_a_table_a_picture_or_a_frame_without_rights() {
    let mut story = SessionHistory::default();
    let job = story.eval("shows");
    let rows = json!({ "schema": { "fields": [{ "name": "<n>" }, { "name": "of" }] }, "data": [{ "<n>": 1, "of": "<x>" }] });
    for data in [
        json!({ "text/plain": "t", "application/vnd.dataresource+json": rows }),
        json!({ "text/plain": "<p>", "image/png": "iVBORw0KGgo=" }),
        json!({ "text/plain": "a drawing", "image/svg+xml": "<svg/>" }),
        json!({ "text/plain": "a page", "text/html": "<script>alert(1)</script>" }),
        json!({ "text/plain": "<only> text", "text/markdown": "# m" }),
        json!({ "text/plain": "a chart", "application/vnd.vegalite.v6+json": { "mark": "<bar>" }, "text/html": "<script>" }),
        json!({ "text/plain": "x", "text/latex": "$x < y$\n" }),
        json!({ "text/plain": "some data", "application/json": { "a": "<b>" } }),
    ] {
        let body = json!({ "job": job, "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    }
    for text in ["first", "second"] {
        let body = json!({ "job": job, "id": "d", "data": { "text/plain": text } });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    }
    insta::assert_snapshot!(story.shown());
}

#[test]
fn a_chart_is_drawn_whatever_the_version_in_its_type() {
    let chart = json!({
        "mark": "bar",
        "data": { "values": [{ "day": "Mon", "builds": 3 }, { "day": "Tue", "builds": 5 }] },
        "encoding": { "x": { "field": "day", "type": "nominal" }, "y": { "field": "builds", "type": "quantitative" } },
    });
    for kind in ["application/vnd.vegalite.v5+json", "application/vnd.vegalite.v6.json"] {
        let mut story = SessionHistory::default();
        let job = story.eval("shows");
        let body = json!({ "job": job, "data": { "text/plain": "a chart", kind: chart } });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        assert!(story.shown().contains("<svg"), "{kind}");
    }
}

#[test]
fn how_far_tests_are_stands_in_one_place_until_their_report_does() {
    let mut story = SessionHistory::default();
    let job = story.eval("Mainstay.Tests.run()");
    let mut shows = |data: Value| {
        let body = json!({ "job": job, "id": "tests-1", "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        story.shown()
    };
    let progress = json!({ "nth": 1, "passed": 1, "failed": 0, "timedOut": 0, "skipped": 0, "tests": [] });
    let words = "running: 1 passed";
    let runs = shows(json!({ "text/plain": words, "application/vnd.mainstay.test-progress+json": progress }));
    assert!(runs.contains(words) && !runs.contains("test-progress"), "{runs}");
    let ended = shows(json!({ "text/plain": "1 passed in 3 ms", "application/vnd.mainstay.tests+json": {} }));
    assert!(ended.contains("1 passed in 3 ms") && !ended.contains(words), "{ended}");
}

#[test]
fn a_picture_is_as_wide_as_its_code_says() {
    let mut story = SessionHistory::default();
    let job = story.eval("Image(data=dot, width=120)");
    let png = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=";
    let data = json!({ "text/plain": "it", "image/png": png, METADATA: { "image/png": { "width": 120 } } });
    let body = json!({ "job": job, "data": data });
    story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    let shown = story.shown();
    assert!(shown.contains(r#"width="120""#) && !shown.contains("metadata"), "{shown}");
}

#[test]
fn a_value_that_stands_in_a_richer_form_is_not_told_again() {
    let shown = |text: &str, kind: &str| {
        let mut story = SessionHistory::default();
        let job = story.eval("frame");
        let data = json!({ "text/plain": text, kind: "<table>" });
        let body = json!({ "job": job, "isValue": true, "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        story.completes(job, value("the frame", "DataFrame"));
        story.shown()
    };
    for rich in [shown("the frame", "text/html"), shown("a table in words", "text/html")] {
        assert!(!rich.contains("the frame") && rich.contains("DataFrame"), "{rich}");
    }
    assert!(shown("in other words", "text/x-frame").contains("the frame"));
}
