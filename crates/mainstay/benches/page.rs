//! How long the page takes in a real Chromium: to its first paint, and until its scripts have run, so that it can be used. `cargo xtask bench`
//! runs it with the release build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mainstay_test_support::browser::{Browser, Tab};

const LOADS: usize = 20;
const CELLS: usize = 100;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(target).unwrap();
    let home = Home(folder.path().join("home"));
    let mut daemon = home.command(&["serve", "--announce", "--port", "0"]);
    let mut daemon = daemon.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut line).unwrap();
    home.run(&["eval", "1 + 1"]);
    let session = home.session();
    let browser = Browser::start();
    println!(
        "| the page | first paint, median | longest | can be used, median | longest |\n|---|---|---|---|---|"
    );
    let row = |what: &str, target: Option<&str>| {
        tell(&format!("{what}, in a new browser"), || {
            let tab = browser.tab();
            tab.go(&home.link(target));
            tab
        });
        let tab = browser.tab();
        tab.go(&home.link(target));
        tell(&format!("{what}, again"), || {
            tab.value("void location.reload()");
            tab.until("document.readyState === 'complete' && performance.getEntriesByName('first-contentful-paint').length");
            &tab
        });
    };
    row("the list of sessions", None);
    row("a session of one cell", Some(&session));
    for number in 1..CELLS {
        home.run(&[
            "eval",
            &format!("printfn \"line %d\" {number}\nlet value{number} = List.init {number} id"),
        ]);
    }
    row(&format!("a session of {CELLS} cells"), Some(&session));
    drop(browser);
    home.run(&["stop"]);
    daemon.wait().unwrap();
}

fn tell<T: std::borrow::Borrow<Tab>>(what: &str, load: impl Fn() -> T) {
    let (mut painted, mut usable) = (Vec::new(), Vec::new());
    for _ in 0..LOADS {
        let tab = load();
        let tab = tab.borrow();
        tab.until("performance.getEntriesByName('first-contentful-paint').length");
        let ms = |expression: &str| tab.value(expression).as_f64().unwrap();
        painted.push(ms("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
        usable.push(ms("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"));
    }
    let [painted, usable] = [painted, usable].map(|mut took| {
        took.sort_by(f64::total_cmp);
        format!("{:.0} ms | {:.0} ms", took[LOADS / 2], took[LOADS - 1])
    });
    println!("| {what} | {painted} | {usable} |");
}

/// Where the daemon lives.
struct Home(PathBuf);

impl Home {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(arguments)
            .env("MAINSTAY_HOME", &self.0)
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let done = self.command(arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn session(&self) -> String {
        let listed: serde_json::Value =
            serde_json::from_str(&self.run(&["session", "list", "--json"])).unwrap();
        listed[0]["session"].as_str().unwrap().to_owned()
    }

    fn link(&self, session: Option<&str>) -> String {
        let arguments: Vec<_> = ["web", "--print"].into_iter().chain(session).collect();
        self.run(&arguments).trim().to_owned()
    }
}
