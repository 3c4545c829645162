//! `mainstay demo`, from its first step to its last.

use std::path::Path;

use crate::support::World;

/// The folders of demos that are left.
fn left() -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    std::fs::read_dir(std::env::temp_dir())
        .unwrap()
        .map(name)
        .filter(|name| name.starts_with("mainstay-demo-"))
        .collect()
}

#[test]
fn a_demo_shows_all_its_steps_and_leaves_nothing() {
    let world = World::with_jupyter();
    let before = left();
    for kind in ["fsharp", "python"] {
        let shown = world.run(["demo", "--no-wait", "--kind", kind]);
        assert_eq!(shown.code, 0, "{shown:?}");
        let told: Vec<_> = ["$ kill -9 ", "val it: int = 15", "tools/call", "328", "http://127.0.0.1:"]
            .into_iter()
            .filter(|words| !shown.stdout.contains(words))
            .collect();
        let expected: &[&str] = if kind == "python" { &["val it: int = 15"] } else { &[] };
        assert_eq!(told, expected, "{}", shown.stdout);
        assert_eq!(shown.stdout.matches("$ kill -9 ").count(), 2, "{}", shown.stdout);
    }
    assert_eq!(left(), before);
    assert!(!Path::new(&world.home()).join("daemon.json").exists(), "the home of its user is as it was");
}
