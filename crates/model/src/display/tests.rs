//! Bundles of forms, and what pictures say of themselves.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The first 24 bytes of a PNG of 640 by 480, and some of its rest.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=";

fn bundle(data: Value) -> Bundle {
    serde_json::from_value(data).unwrap()
}

#[test]
fn words_that_only_name_an_object_give_way_to_any_other_form() {
    let object = "<IPython.core.display.Thing object>";
    let words =
        |kind: &str, form: &str| bundle(json!({ "text/plain": object, kind: form })).words().into_owned();
    assert_eq!(words("text/markdown", "**b**"), "**b**");
    assert_eq!(words("text/latex", "$x^2$"), "$x^2$");
    assert_eq!(words("text/html", "<b>"), "[text/html, 3 bytes]");
    assert_eq!(bundle(json!({ "text/plain": object })).words(), object);
    assert_eq!(bundle(json!({ "text/plain": "it", "text/html": "<b>" })).words(), "it");
}

#[test]
fn words_have_no_colours_unless_they_are_wanted() {
    let shown = bundle(json!({ "text/plain": "\u{1b}[1;31mred\u{1b}[0m\r\n" }));
    assert_eq!(shown.words(), "red\n");
    assert_eq!(shown.coloured_words(), "\u{1b}[1;31mred\u{1b}[0m\r\n");
}

#[test]
fn a_bundle_without_plain_text_gets_one() {
    for (data, text) in [
        (json!({}), ""),
        (json!({ "text/html": "<b>" }), "[text/html, 3 bytes]"),
        (json!({ "text/html": "<b>", "text/markdown": "**b**" }), "**b**"),
        (json!({ "image/png": PNG, "image/svg+xml": "<svg/>" }), "[image/png, 640×480, 29 bytes]"),
        (json!({ "application/json": 1, "text/plain": "one" }), "one"),
        (json!({ "application/json": { "a": [1] } }), r#"{"a":[1]}"#),
        (json!({ "application/x+json": 1 }), "[application/x+json, 1 bytes]"),
    ] {
        assert_eq!(bundle(data.clone()).text(), text, "{data}");
    }
}

#[test]
fn what_is_not_of_its_type_is_left_out_and_named() {
    let given = json!({ "image/png": "no base64!", "text/html": 3, "html": "<b>", "text/plain": "it" });
    let read = bundle(given);
    assert_eq!(read.kinds(), ["text/plain"]);
    insta::assert_snapshot!(read.text(), @"
    it
    [a form left out: `html` is no MIME type]
    [image/png left out: it is not of this type]
    [text/html left out: it is not of this type]
    ");
}

#[test]
fn data_is_carried_under_whatever_name() {
    for (kind, data) in [
        ("application/vnd.vegalite.v6.json", json!({ "mark": "bar" })),
        ("application/vnd.vegalite.v6.json", json!("a text")),
        ("application/vnd.vegalite.v6.json", json!(["lines", "that are data"])),
        ("application/vnd.plotly.v1", json!({ "data": [] })),
        ("application/x.rows", json!([[1, 2]])),
        ("application/x.count", json!(3)),
    ] {
        let given = json!({ "text/plain": "it", kind: data });
        let read = bundle(given.clone());
        assert_eq!((read.form(kind), read.text()), (Some(&Form::Json(data)), "it"));
        assert_eq!(serde_json::to_value(read).unwrap(), given);
    }
    let given = json!({ "application/pdf": { "a": 1 }, "application/rss+xml": [1], "application/x": null });
    assert_eq!(bundle(given).kinds(), ["text/plain"]);
}

#[test]
fn forms_are_read_as_notebooks_have_them() {
    let read = bundle(json!({
        "TEXT/HTML; charset=utf-8": ["<b>\n", "</b>"],
        "image/png": "iVBO\nRw==\n",
        "text/plain": ["a\n", "b"],
    }));
    assert_eq!(
        serde_json::to_value(&read).unwrap(),
        json!({ "image/png": "iVBORw==", "text/html": "<b>\n</b>", "text/plain": "a\nb" })
    );
    assert_eq!(read.picture().unwrap().data.len(), 4);
}

#[test]
fn what_is_said_of_forms_goes_with_them_and_is_none() {
    let of = json!({ "image/png": { "width": 320, "height": "a lot" }, "isolated": true });
    let given = json!({ "image/png": PNG, "text/plain": "it", METADATA: of });
    let read = bundle(given.clone());
    assert_eq!((read.kinds(), read.text()), (vec!["image/png", "text/plain"], "it"));
    assert_eq!(Value::from(read.metadata().clone()), of);
    assert_eq!(serde_json::to_value(&read).unwrap(), given);
    let wanted = read.wanted_size("image/png");
    assert_eq!(wanted, WantedSize { width: Some(320), height: None });
    assert_eq!(wanted.of(read.picture().unwrap().size().unwrap()), (320, 240));
    let high = WantedSize { width: None, height: Some(960) };
    assert_eq!(high.width_of(&read.picture().unwrap()), Some(1280));
    assert_eq!(WantedSize::default().width_of(&read.picture().unwrap()), None);
    let endless = json!({ "text/plain": "it", METADATA: { "a": "x".repeat(5000) } });
    assert_eq!(bundle(endless), Bundle::plain("it".to_owned()));
    let none = bundle(json!({ "text/plain": "it", METADATA: 1 }));
    assert!(none.metadata().is_empty());
}

#[test]
fn what_is_too_large_is_cut_down_with_a_note() {
    let page = "x".repeat(5000);
    let given = bundle(json!({ "text/html": page, "image/svg+xml": "<svg/>", "text/plain": "it" }));
    assert_eq!(given.clone().cut(6000), given);
    let cut = given.cut(100);
    assert_eq!(cut.kinds(), ["image/svg+xml", "text/plain"]);
    assert_eq!(cut.text(), "it\n[text/html left out: 5 KB, over the limit]");
    assert_eq!(Bundle::plain("é".repeat(10)).cut(3).text(), "é … (cut)");
}

#[test]
fn pictures_tell_their_size() {
    let gif = bundle(json!({ "image/gif": "R0lGODlhIAAQAIAA" }));
    assert_eq!(gif.picture().unwrap().size(), Some((32, 16)));
    let jpeg = bundle(json!({ "image/jpeg": "/9j/4AAEAAD/wAALCAAQACADAQ==" }));
    assert_eq!(jpeg.picture().unwrap().size(), Some((32, 16)));
    let cut_off = bundle(json!({ "image/jpeg": "/9j/4AAEAAD/wAAL" }));
    assert_eq!(cut_off.picture().unwrap().size(), None);
    let unknown = bundle(json!({ "image/webp": "AAAA" }));
    assert_eq!(unknown.picture().unwrap().to_string(), "image/webp, 3 bytes");
}

#[test]
fn what_a_picture_is_its_bytes_say_and_not_its_name() {
    let format = |kind: &str, data: &str| bundle(json!({ kind: data })).picture().unwrap().format();
    assert_eq!(format("image/jpeg", PNG), Some(PictureFormat::Png));
    assert_eq!(format("image/png", "R0lGODlhIAAQAIAA"), Some(PictureFormat::Gif));
    assert_eq!(format("image/png", "UklGRgAAAABXRUJQ"), Some(PictureFormat::Webp));
    assert_eq!(format("image/png", "iVBORw=="), None);
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        ".{0,40}".prop_map(Value::from),
        "[A-Za-z0-9+/]{0,12}={0,2}".prop_map(Value::from),
        proptest::collection::vec(".{0,9}", 0..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u8>().prop_map(|width| json!({ "image/png": { "width": width } })),
        Just(Value::Null),
    ]
}

fn any_map() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let name = prop_oneof![
        ".{0,8}",
        Just(PLAIN.to_owned()),
        Just("image/png".to_owned()),
        Just("application/json".to_owned()),
        Just(METADATA.to_owned()),
        "text/[a-z]{1,3}",
    ];
    proptest::collection::btree_map(name, any_value(), 0..6)
}

proptest! {
    #[test]
    fn what_was_written_is_read_again(data in any_map()) {
        let read = Bundle::from(data);
        let written = serde_json::to_string(&read).unwrap();
        prop_assert_eq!(serde_json::from_str::<Bundle>(&written).unwrap(), read);
    }

    #[test]
    fn what_is_cut_has_no_more_than_it_may_and_says_what_is_gone(data in any_map(), limit in 0_usize..60) {
        let whole = Bundle::from(data);
        let cut = whole.clone().cut(limit);
        prop_assert!(cut.form_bytes() <= limit);
        for (kind, form) in whole.forms() {
            match cut.form(kind.as_str()) {
                Some(kept) => prop_assert_eq!(kept, form),
                None => prop_assert!(cut.text().contains(kind.as_str())),
            }
        }
        if whole.text().len() + whole.form_bytes() <= limit {
            prop_assert_eq!(cut, whole);
        }
    }
}
