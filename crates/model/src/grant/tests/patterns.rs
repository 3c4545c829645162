//! What patterns match, and which cover which: by example, and against every target over a small alphabet.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{kind, operation, pattern};
use crate::grant::{Operation, Pattern, PatternLimits};

#[track_caller]
fn assert_matches(name: &str, text: &str, targets: &[&str], others: &[&str]) {
    let pattern = pattern(name, text);
    assert_eq!(pattern.to_string(), text);
    for target in targets {
        assert!(pattern.matches(&operation(name, target)), "{text} {target}");
    }
    for target in others {
        assert!(!pattern.matches(&operation(name, target)), "{text} {target}");
    }
}

#[test]
fn paths() {
    assert_matches("fs.read", "/work/**", &["/work", "/work/a", "/work/a/b"], &["/", "/works", "/a/work"]);
    assert_matches("fs.read", "/work/*/x", &["/work/a/x"], &["/work/x", "/work/a/b/x"]);
    assert_matches("fs.read", "/work/**/x", &["/work/x", "/work/a/b/x"], &["/work/a/b/xx"]);
    assert_matches("fs.read", "/**", &["/", "/a/b"], &[]);
    assert_matches("fs.read", "**/*.rs", &["/a.rs", "/a/b.rs"], &["/a.rs/b"]);
    assert_matches("fs.read", "/a*b*c", &["/abc", "/axbxbxc"], &["/ab", "/abcd"]);
    assert_matches("fs.read", "//work/", &["/work"], &["/work/a"]);
    assert!(!pattern("fs.read", "/work/**").matches(&operation("net.fetch", "https://work/")));
}

#[test]
fn urls() {
    let origin = "https://api.example.com";
    let under = |path: &str| format!("{origin}{path}");
    assert_matches(
        "net.fetch",
        &under("/**"),
        &[origin, &under("/a/b?c"), &under("/a/")],
        &["http://api.example.com/"],
    );
    assert_matches("net.fetch", origin, &[origin, &under("/?q")], &[&under("/a")]);
    assert_matches("net.fetch", &under("/v1/*/x"), &[&under("/v1/é/x")], &[&under("/v1/a/b/x")]);
    assert_matches("net.fetch", &under("/%C3%a9"), &[&under("/é")], &[]);
    assert_matches(
        "net.fetch",
        "https://*.example.com/**",
        &["https://a.example.com/", "https://a.b.example.com/x"],
        &["https://example.com/", "https://example.com.evil.org/", "https://a.example.com:444/"],
    );
    assert_matches("net.fetch", "http://*:*/**", &["http://a:1/b", "http://[::1]/"], &["https://a/"]);
    assert_matches(
        "net.fetch",
        "HTTP://Example.COM.:80/",
        &["http://example.com"],
        &["http://example.com:81"],
    );
    assert_matches("net.fetch", "https://**", &["https://a.b:9/c/d"], &["http://a"]);
    assert_matches("net.fetch", "**", &["https://a/", "http://b"], &[]);
}

#[test]
fn names() {
    assert_matches(
        "tool.call",
        "humanq.*",
        &["humanq.ask"],
        &["humanq", "humanq.ask.twice", "humanq/ask", "humanq.a/b"],
    );
    assert_matches("tool.call", "humanq.**", &["humanq", "humanq.ask.twice"], &["humanqs.ask"]);
    assert_matches(
        "tool.call",
        "mcp:github/*",
        &["mcp:github/repo.create"],
        &["mcp:github", "mcp:github/a/b"],
    );
    assert_matches("tool.call", "*", &["shell"], &["humanq.ask", "mcp:github/a"]);
    assert_matches("tool.call", "**", &["shell", "humanq.ask", "mcp:github/a"], &[]);
    assert_matches("agent.delegate", "test-*", &["test-runner", "test-runner@1.2"], &["lint"]);
    assert_matches("agent.delegate", "a@1.*", &["a@1.2.3"], &["a", "a@2.0", "b@1.0"]);
    assert_matches("agent.delegate", "*", &["a", "a@1"], &[]);
    assert_matches(
        "model.use",
        "anthropic/claude-3-haiku-*",
        &["anthropic/claude-3-haiku-2024"],
        &["claude-3-haiku-1"],
    );
    assert_matches("model.use", "gpt-4.1*", &["gpt-4.1", "gpt-4.1-mini"], &["gpt-4o", "openai/gpt-4.1"]);
    assert_matches("payment.refund.create", "order:ord_*", &["order:ord_4812"], &["order:x/ord_1"]);
}

#[test]
fn what_is_no_pattern_is_refused() {
    for (name, texts) in [
        (
            "fs.read",
            &["", "work/**", "*", "/a/../b", "/./a", "/a**", "/a/***", "/a\\b", "/a\0", "/%2e%2e/*"][..],
        ),
        (
            "net.fetch",
            &[
                "",
                "*",
                "https://",
                "https://api.*",
                "https://example.com*/**",
                "https://*example.com",
                "https://**.a/",
                "*://a/",
                "ftp://a/",
                "https://a/b?c",
                "https://a/b#c",
                "https://a@b/",
                "https://a/../b",
                "https://a:b/",
                "https://a/%",
                "https://a/x**",
                "https://é/",
                "https://a b/",
            ][..],
        ),
        ("tool.call", &["", "mcp:**", "a\nb", "mcp/../x"][..]),
        ("agent.delegate", &["", "a**", "a@1.**"][..]),
    ] {
        for text in texts {
            assert!(Pattern::parse(&kind(name), text, &PatternLimits::REQUEST).is_err(), "{name} {text}");
        }
    }
}

#[test]
fn one_covers_another_where_that_is_proven() {
    let covers = |name: &str, wide: &str, narrow: &str| pattern(name, wide).covers(&pattern(name, narrow));
    for (name, wide, narrow) in [
        ("fs.read", "/work/**", "/work/**"),
        ("fs.read", "/work/**", "/work"),
        ("fs.read", "/work/**", "/work/a/*/b/**"),
        ("fs.read", "/work/*", "/work/a*b"),
        ("fs.read", "**", "/a/**"),
        ("fs.read", "/**/*", "/*/**"),
        ("fs.read", "/**/**/a", "/**/a"),
        ("fs.read", "/a*", "/a*b"),
        ("net.fetch", "https://*.example.com/**", "https://api.example.com/v1/*"),
        ("net.fetch", "https://**", "https://a:444/b"),
        ("tool.call", "**", "humanq.*"),
        ("tool.call", "humanq.*", "humanq.ask"),
        ("agent.delegate", "test-*", "test-runner@1.0"),
        ("model.use", "tier-fast/*", "tier-fast/small-*"),
    ] {
        assert!(covers(name, wide, narrow), "{wide} {narrow}");
    }
    for (name, wide, narrow) in [
        ("fs.read", "/work/*", "/work/**"),
        ("fs.read", "/work/a", "/work/*"),
        ("fs.read", "/a*b", "/a*"),
        ("fs.read", "/work/**", "/**"),
        ("net.fetch", "https://a/**", "http://a/**"),
        ("net.fetch", "https://a/**", "https://*/**"),
        ("tool.call", "*", "**"),
        ("tool.call", "a.*", "a/*"),
        ("agent.delegate", "a@1", "a"),
    ] {
        assert!(!covers(name, wide, narrow), "{wide} {narrow}");
    }
    assert!(!pattern("fs.read", "**").covers(&pattern("model.use", "a")));
}

/// The long way round: every way to divide the segments, and the characters of each.
fn stands_for(globs: &[&str], segments: &[&str]) -> bool {
    match globs {
        [] => segments.is_empty(),
        ["**", rest @ ..] => (0..=segments.len()).any(|skip| stands_for(rest, &segments[skip..])),
        [glob, rest @ ..] => segments.split_first().is_some_and(|(segment, others)| {
            segment_stands_for(glob.as_bytes(), segment.as_bytes()) && stands_for(rest, others)
        }),
    }
}

fn segment_stands_for(glob: &[u8], segment: &[u8]) -> bool {
    match glob {
        [] => segment.is_empty(),
        [b'*', rest @ ..] => (0..=segment.len()).any(|skip| segment_stands_for(rest, &segment[skip..])),
        [byte, rest @ ..] => {
            segment.split_first().is_some_and(|(c, others)| c == byte && segment_stands_for(rest, others))
        }
    }
}

/// Every path with up to three segments, each of up to two characters of `ab`.
fn every_path() -> Vec<String> {
    let names = ["a", "b", "aa", "ab", "ba", "bb"];
    let mut paths = vec![String::new()];
    let mut longest = paths.clone();
    for _ in 0..3 {
        longest = longest.iter().flat_map(|path| names.map(|name| format!("{path}/{name}"))).collect();
        paths.extend(longest.iter().cloned());
    }
    paths[0] = "/".to_owned();
    paths
}

fn any_path_pattern() -> impl Strategy<Value = String> {
    let (star, stars) = (Just("*".to_owned()), Just("**".to_owned()));
    let glob = prop_oneof![3 => "[ab]{1,2}", 2 => "[ab]?[*][ab]?", 1 => star, 2 => stars];
    vec(glob, 0..5).prop_map(|globs| format!("/{}", globs.join("/")))
}

fn any_path() -> impl Strategy<Value = String> {
    select(every_path())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn it_matches_what_trying_every_division_matches(text in any_path_pattern(), path in any_path()) {
        let globs: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let is_match = pattern("fs.read", &text).matches(&operation("fs.read", &path));
        prop_assert_eq!(is_match, stands_for(&globs, &segments));
    }

    #[test]
    fn every_pattern_covers_itself_and_what_it_matches(text in any_path_pattern(), path in any_path()) {
        let wide = pattern("fs.read", &text);
        prop_assert!(wide.covers(&wide));
        prop_assert_eq!(wide.covers(&pattern("fs.read", &path)), wide.matches(&operation("fs.read", &path)));
        let below = pattern("fs.read", &format!("{}/**", text.trim_end_matches('/')));
        prop_assert!(below.covers(&wide));
    }

    #[test]
    fn a_target_is_brought_into_its_form_once(
        kind_name in select(vec!["fs.read", "net.fetch", "tool.call", "agent.delegate", "model.use"]),
        start in select(vec!["", "/", "https://h", "HTTP://H.:80/"]),
        rest in "([a.]|%2[eEfF5]|%5c|/|;|[?]|:|@|é|\u{0}|\\\\){0,12}",
    ) {
        if let Ok(once) = Operation::new(kind(kind_name), &format!("{start}{rest}")) {
            let target = once.target();
            prop_assert_eq!(&Operation::new(kind(kind_name), target).unwrap(), &once);
            let path = target.split('?').next().unwrap_or_default();
            prop_assert!(path.split('/').all(|segment| segment != ".."), "{}", target);
        }
    }

    #[test]
    fn no_text_breaks_it(
        kind_name in select(vec!["fs.read", "net.fetch", "tool.call", "a.b"]),
        text in any::<String>(),
    ) {
        let _ = Operation::new(kind(kind_name), &text);
        if let Ok(pattern) = Pattern::parse(&kind(kind_name), &text, &PatternLimits::REQUEST) {
            prop_assert_eq!(pattern.to_string(), text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn where_one_covers_another_there_is_no_counterexample(
        wide in any_path_pattern(),
        narrow in any_path_pattern(),
    ) {
        let (wide, narrow) = (pattern("fs.read", &wide), pattern("fs.read", &narrow));
        if wide.covers(&narrow) {
            for path in every_path() {
                let read = operation("fs.read", &path);
                prop_assert!(!narrow.matches(&read) || wide.matches(&read), "{} {} {}", wide, narrow, path);
            }
        }
    }
}

#[test]
fn a_pattern_of_many_stars_is_matched_in_bounded_steps() {
    let stars = format!("/{}b", "a*".repeat(500));
    assert!(!pattern("fs.read", &stars).matches(&operation("fs.read", &format!("/{}", "a".repeat(8000)))));
    let deep = format!("/{}b", "**/a/".repeat(200));
    assert!(!pattern("fs.read", &deep).matches(&operation("fs.read", &"/a".repeat(4000))));
    assert!(!pattern("fs.read", &deep).covers(&pattern("fs.read", &"/a".repeat(500))));
}
