//! The npm packages, from files: npm and npx, without the network.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Newcomer, PLATFORM, VERSION, packages, provided, succeed};

/// npm that asks nobody for anything, also not for a newer npm.
fn npm(user: &Newcomer, program: &str, arguments: &[&str]) -> Command {
    let mut npm = user.command(program);
    npm.args(arguments).args(["--offline", "--no-audit", "--no-fund", "--ignore-scripts"]);
    npm.env("npm_config_update_notifier", "false");
    npm
}

/// The packages of users and of this platform.
fn archives(packages: &Path) -> [String; 2] {
    let file = |name: String| packages.join(name).display().to_string();
    [
        file(format!("mainstay-sessions-{VERSION}.tgz")),
        file(format!("mainstay-sessions-{}-{VERSION}.tgz", PLATFORM.npm)),
    ]
}

#[test]
fn npm_installs_the_program_of_this_platform_and_removes_it() {
    let (Some(packages), Some(jupyter)) = (packages(), provided("MAINSTAY_TEST_JUPYTER")) else { return };
    let user = Newcomer::new().with("JUPYTER_PATH", jupyter.join("share/jupyter"));
    let [launcher, program] = archives(&packages);
    // A folder has no index, so the package of the platform is named, not found.
    let wanted = format!(
        r#"{{ "dependencies": {{ "mainstay-sessions": "file:{launcher}", "@mainstay-sessions/{}": "file:{program}" }} }}"#,
        PLATFORM.npm
    );
    fs::write(user.folder("work/package.json"), wanted).unwrap();
    succeed(&mut npm(&user, "npm", &["install"]));
    let started = user.folder("work/node_modules/.bin/mainstay");
    user.try_out(&started, "python", "42\n");

    // An older Node.js waits for the program, a newer one becomes it.
    for node in ["node".into(), provided("MAINSTAY_TEST_NODE").unwrap()] {
        let ended = user.command(&node).arg(&started).args(["explain", "no_such"]).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "the exit code of the program");
        assert!(
            String::from_utf8(ended.stderr).unwrap().starts_with("error: "),
            "and what it says, nothing else"
        );
    }

    succeed(&mut npm(
        &user,
        "npm",
        &["uninstall", "mainstay-sessions", &format!("@mainstay-sessions/{}", PLATFORM.npm)],
    ));
    assert!(!user.files("work").iter().any(|file| file.contains("mainstay")), "{:?}", user.files("work"));
}

#[test]
fn npx_runs_the_program_and_says_what_is_missing_where_a_platform_has_none() {
    let Some(packages) = packages() else { return };
    let user = Newcomer::new();
    let [launcher, program] = archives(&packages);
    let npx = |given: &[&String]| {
        let given = given.iter().map(|package| format!("--package={package}"));
        let mut npx = npm(&user, "npx", &["--yes"]);
        npx.args(given).args(["--", "mainstay", "--version"]).output().unwrap()
    };
    let ran = npx(&[&launcher, &program]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("mainstay {VERSION}\n"), "{ran:?}");
    let alone = npx(&[&launcher]);
    let said = String::from_utf8_lossy(&alone.stderr);
    assert!(
        said.contains(&format!("the package @mainstay-sessions/{} is not installed", PLATFORM.npm)),
        "{said}"
    );
    assert_eq!(alone.status.code(), Some(1));
}
