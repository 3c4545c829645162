//! Any configuration at all, with what else is there kept.

use proptest::prelude::*;

use super::*;

/// Spaces, line ends and comments, as they stand between what counts.
fn trivia() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec![" ", "\n", "\t", "// a \"}{\n", "/* , */"]), 0..3)
        .prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = String> {
    let leaf =
        prop::sample::select(vec!["1", "-2.5e3", "null", "true", "\"x\\\"}\"", "\"// é\"", "[]", "{}"]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 16, 4, |inner| {
        let items = prop::collection::vec((trivia(), inner.clone(), trivia()), 1..4);
        let list = items.prop_map(|items| {
            let items: Vec<String> = items.into_iter().map(|(a, b, c)| a + &b + &c).collect();
            format!("[{}]", items.join(","))
        });
        prop_oneof![list, members("k", inner, false)]
    })
}

/// An object with members of different names, perhaps with a comma behind the last.
fn members(
    name: &'static str,
    value: impl Strategy<Value = String> + 'static,
    may_be_empty: bool,
) -> impl Strategy<Value = String> {
    let member = (trivia(), trivia(), value, trivia());
    let least = usize::from(!may_be_empty);
    (prop::collection::vec(member, least..4), any::<bool>(), trivia()).prop_map(move |(found, comma, end)| {
        let found: Vec<String> = (found.into_iter().enumerate())
            .map(|(index, (a, b, value, c))| format!("{a}\"{name}{index}\"{b}:{value}{c}"))
            .collect();
        let comma = if comma && !found.is_empty() { "," } else { "" };
        format!("{{{}{comma}{end}}}", found.join(","))
    })
}

/// A configuration: with servers, or without any.
fn configuration() -> impl Strategy<Value = String> {
    let servers = members("server", value(), true);
    (trivia(), members("k", value(), false), prop::option::of((trivia(), servers)), trivia()).prop_map(
        |(begin, others, servers, end)| {
            let others = match servers {
                Some((between, servers)) => {
                    format!("{{{between}\"mcpServers\":{servers},{}", &others[1..])
                }
                None => others,
            };
            begin + &others + &end
        },
    )
}

/// Whether all that is written of a text is in another, in its order. An object on one line is laid out on several.
fn is_within(text: &str, other: &str) -> bool {
    let mut rest = other.chars();
    text.chars().filter(|wanted| !wanted.is_whitespace()).all(|wanted| rest.any(|found| found == wanted))
}

fn data(text: &str) -> serde_json::Value {
    jsonc_parser::cst::CstRootNode::parse(text, &Default::default()).unwrap().to_serde_value().unwrap()
}

proptest! {
    #[test]
    fn whatever_is_there_stays(text in configuration()) {
        let with = set(Cursor, &text, &ours()).unwrap();
        prop_assert!(is_within(&text, &with), "{text}\n==\n{with}");
        prop_assert_eq!(&set(Cursor, &with, &ours()).unwrap(), &with);
        let mut expected = data(&text);
        expected["mcpServers"][NAME] =
            serde_json::json!({ "type": "stdio", "command": "/usr/bin/mainstay", "args": ["mcp"] });
        prop_assert_eq!(&data(&with), &expected);
        expected["mcpServers"].as_object_mut().unwrap().remove(NAME);
        prop_assert_eq!(data(&remove(Cursor, &with).unwrap()), expected);
    }

    #[test]
    fn whatever_a_file_says_it_is_changed_rightly_or_left_alone(text in "[\\[\\]{}\"':,=#/*a-z0-9 .\\n\\r\u{feff}]{0,40}") {
        for client in [Cursor, Codex] {
            if let Ok(with) = set(client, &text, &ours()) {
                prop_assert!(is_within(&text, &with), "{text:?} {with:?}");
                prop_assert_eq!(&set(client, &with, &ours()).unwrap(), &with);
            }
        }
    }
}
