//! Which events a filter lets through, beside what the event says on the wire.

use mainstay_model::{CommandId, Event, EventFilter, EventKind, SessionId, SourceName};
use proptest::collection::btree_set;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::{any_command_id, any_event, session_id};

/// Like an event in some parts, so that each part decides at times.
fn any_filter_near(event: &Event) -> impl Strategy<Value = EventFilter> + use<> {
    let other: SessionId = "01890a5d-ac96-774b-bcce-b302099a8058".parse().unwrap();
    let own_kind: EventKind = event.body.kind().parse().unwrap();
    let own_command = event.metadata.correlation.clone();
    let command = own_command.map_or_else(
        || any_command_id().boxed(),
        |own| prop_oneof![3 => Just(own), 1 => any_command_id()].boxed(),
    );
    let source = select(vec!["worker", "system", "", "a", "1"]).prop_map(|name| {
        if name.is_empty() { SourceName::Client(String::new()) } else { name.parse().unwrap() }
    });
    let kind = prop_oneof![3 => Just(own_kind), 1 => select(EventKind::ALL)];
    (
        btree_set(select(vec![session_id(), other]), 0..3),
        btree_set(kind, 0..3),
        option::weighted(0.3, source),
        option::weighted(0.3, command),
    )
        .prop_map(|(sessions, kinds, source, correlation)| EventFilter {
            sessions,
            kinds,
            source,
            correlation,
        })
}

/// What a reader of the wire would say.
fn is_wanted(filter: &Value, event: &Value) -> bool {
    let among = |wanted: &str, found: &str| {
        filter.get(wanted).is_none_or(|wanted| wanted.as_array().unwrap().contains(&event[found]))
    };
    let source = match &event["source"] {
        Value::String(name) => (name.clone(), false),
        client => (client["client"]["name"].as_str().unwrap().to_owned(), true),
    };
    let is_reserved = |name: &str| name == "worker" || name == "system";
    among("sessions", "session")
        && among("kinds", "kind")
        && filter
            .get("source")
            .is_none_or(|wanted| *wanted == source.0 && (is_reserved(&source.0) != source.1))
        && filter.get("correlation").is_none_or(|wanted| event.get("correlation") == Some(wanted))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn a_filter_lets_through_what_has_all_it_asks_for(
        (event, filter) in any_event().prop_flat_map(|event| {
            let filter = any_filter_near(&event);
            (Just(event), filter)
        }),
    ) {
        let wire = serde_json::to_value(&filter).unwrap();
        prop_assert_eq!(filter.matches(&event), is_wanted(&wire, &serde_json::to_value(&event).unwrap()));
    }
}

#[test]
fn every_kind_has_a_name_and_no_other_is_taken() {
    for kind in EventKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(*kind));
    }
    let refused = "evalDone".parse::<EventKind>().unwrap_err();
    assert_eq!(refused.code().0, "invalid_argument");
    assert!(refused.to_string().contains("evalCompleted"), "{refused}");
}

#[test]
fn a_filter_is_read_from_what_a_client_writes() {
    let written = json!({ "kinds": ["evalFailed"], "source": "mcp:claude", "correlation": "a" });
    let filter: EventFilter = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(filter.source, Some(SourceName::Client("mcp:claude".to_owned())));
    assert_eq!(filter.correlation, Some(CommandId::new("a").unwrap()));
    assert_eq!(serde_json::to_value(&filter).unwrap(), written);
    assert_eq!(serde_json::from_value::<EventFilter>(json!({})).unwrap(), EventFilter::default());
    for bad in [json!({ "kinds": ["evalDone"] }), json!({ "source": "" }), json!({ "correlation": "a b" })] {
        assert!(serde_json::from_value::<EventFilter>(bad.clone()).is_err(), "{bad}");
    }
}
