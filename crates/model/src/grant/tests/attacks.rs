//! Targets that are written so that they pass for others. Source: ARCP draft 02, section 14.

use super::{operation, pattern};
use crate::grant::{Denial, Operation};

fn form(kind: &str, target: &str) -> Result<String, Denial> {
    Operation::new(super::kind(kind), target).map(|operation| operation.target().to_owned())
}

#[track_caller]
fn assert_forms(kind: &str, forms: &[(&str, &str)]) {
    for (target, expected) in forms {
        assert_eq!(form(kind, target).as_deref(), Ok(*expected), "{target}");
        assert_eq!(form(kind, expected).as_deref(), Ok(*expected), "the form of the form of {target}");
    }
}

#[track_caller]
fn assert_refused(kind: &str, targets: &[&str]) {
    for target in targets {
        assert!(matches!(form(kind, target), Err(Denial::NotCanonical { .. })), "{target}");
    }
}

#[test]
fn a_path_has_one_form() {
    assert_forms(
        "fs.read",
        &[
            ("/work/../etc/passwd", "/etc/passwd"),
            ("/work/./a//b/", "/work/a/b"),
            ("/../../etc", "/etc"),
            ("//", "/"),
            ("/work/...", "/work/..."),
            ("/work/a b%20c", "/work/a b%20c"),
            ("/work/*", "/work/*"),
        ],
    );
}

#[test]
fn a_path_that_could_be_read_in_two_ways_is_refused() {
    assert_refused(
        "fs.write",
        &[
            "",
            "work/a",
            "~/a",
            "C:/work",
            "/work/a\0/../b",
            "/work\\..\\etc",
            "/work/%2e%2e/etc",
            "/work/%2E./etc",
            "/work/%252e%252e/etc",
            "/work/x%2f..%2f..%2fetc",
            "/work/%5c..%5cetc",
            "/work/..;/etc",
            "/work/a%00",
            "/work/%c0%ae%c0%ae/etc",
        ],
    );
    assert_refused("fs.read", &[&format!("/{}", "a".repeat(9000)), &format!("/%{}2e", "25".repeat(20))]);
}

#[test]
fn a_url_has_one_form() {
    assert_forms(
        "net.fetch",
        &[
            ("HTTPS://GOOD.example.com.:443", "https://good.example.com/"),
            ("http://good.example.com:80/a/", "http://good.example.com/a/"),
            ("http://good.example.com:443/a", "http://good.example.com:443/a"),
            ("http://good.example.com:/a", "http://good.example.com/a"),
            ("https://h/a/%2e%2e/b", "https://h/b"),
            ("https://h/a/.%2E/../c/.", "https://h/c/"),
            ("https://h//a///b", "https://h/a/b"),
            ("https://h/%61%2f%7e", "https://h/a%2F~"),
            ("https://h/ü<", "https://h/%C3%BC%3C"),
            ("https://h/a?x=/../b&y=ü#c", "https://h/a?x=/../b&y=%C3%BC"),
            ("https://h?x#/../y", "https://h/?x"),
            ("http://[::0001]:8080/", "http://[::1]:8080/"),
            ("https://good.example.com#@evil.example.org", "https://good.example.com/"),
        ],
    );
}

#[test]
fn a_url_that_programs_read_in_different_ways_is_refused() {
    assert_refused(
        "net.fetch",
        &[
            "http://good.example.com@evil",
            "http://good.example.com:80@evil/",
            "https://user:secret@good.example.com/",
            "https:/good.example.com",
            "https:good.example.com",
            "https:///good.example.com",
            "//good.example.com",
            "ftp://good.example.com",
            "file:///etc/passwd",
            "https:\\\\good.example.com",
            "https://evil\\.good.example.com",
            "https://evil/\\good",
            "https://good.exa\tmple.com",
            "https://h/a b",
            "https://h/a\0",
            "https://h/%00",
            "https://h/%zz",
            "https://h/%",
            "https://h/a%2f..%2f..%2fb",
            "https://h/..%2fb",
            "https://h/..%5cb",
            "https://h/%252e%252e/b",
            "https://h/..;/b",
            "https://h/%c0%ae%c0%ae/b",
            "https://evil.example.org\u{ff0f}.good.example.com/",
            "https://ｇood.example.com/",
            "https://good%2eexample.com/",
            "https://good..example.com/",
            "https://./",
            "https://h:0/",
            "https://h:65536/",
            "https://h:+80/",
            "https://h:*/",
            "https://[::1/",
            "https://[fe80::1%25eth0]/",
        ],
    );
}

#[test]
fn a_name_is_what_is_written() {
    assert_forms(
        "tool.call",
        &[("mcp:github/create_issue", "mcp:github/create_issue"), ("humanq.ask", "humanq.ask")],
    );
    // The second begins with a Cyrillic letter.
    assert_forms(
        "model.use",
        &[("anthropic/claude", "anthropic/claude"), ("аnthropic/claude", "аnthropic/claude")],
    );
    assert!(!pattern("model.use", "anthropic/*").matches(&operation("model.use", "аnthropic/claude")));
    assert!(!pattern("tool.call", "humanq.*").matches(&operation("tool.call", "HUMANQ.ask")));
    assert_refused(
        "tool.call",
        &[
            "",
            "a\0b",
            "a\nb",
            "mcp:github/../fs/write",
            "mcp:github/%2e%2e/x",
            "..",
            "..?",
            "a/..#b",
            "a/.\\b",
        ],
    );
    // Paths under the name that dialect A has for reading files: not resolved, so refused.
    assert_refused("filesystem.read", &["/work/../etc", "/work/%2e%2e/etc"]);
}

#[test]
fn what_passes_for_something_granted_is_not_covered() {
    let covered =
        |kind: &str, text: &str, target: &str| pattern(kind, text).matches(&operation(kind, target));
    assert!(!covered("fs.read", "/work/**", "/work/../etc/passwd"));
    assert!(!covered("fs.read", "/work/**", "/workshop/a"));
    assert!(!covered("fs.read", "/work/*", "/work/a/b"));
    assert!(covered("net.fetch", "https://good.example.com/**", "HTTPS://GOOD.example.com.:443//a/../b"));
    for target in [
        "https://good.example.com.evil.example.org/",
        "https://evil.example.org/good.example.com/",
        "https://evil.example.org/?https://good.example.com/",
        "http://good.example.com/",
        "https://good.example.com:8443/",
    ] {
        assert!(!covered("net.fetch", "https://good.example.com/**", target), "{target}");
    }
    assert!(!covered("net.fetch", "https://h/**/public", "https://h/secret?x=/public"));
    assert!(!covered("net.fetch", "https://h/*.json", "https://h/secret?x=.json"));
}
