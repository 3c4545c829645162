//! Clients that public generators make of the document of the HTTP API: they are generated without a warning, compile, and drive a session of
//! a real daemon.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support;
use crate::support::World;
use serde_json::{Value, json};

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/openapi.json").canonicalize().unwrap()
}

fn driver(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs a command, which must succeed: what it prints.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{stdout}\n{stderr}");
    stdout
}

/// A home whose daemon runs, and how the daemon is reached: its address and its token.
fn running() -> (World, [String; 2]) {
    let world = World::with_jupyter();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let port = world.run(["status", "--json"]).json()["port"].clone();
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    (world, [format!("http://127.0.0.1:{port}"), token.trim().to_owned()])
}

fn judge(told: &str) {
    let mut told: Value = serde_json::from_str(told).unwrap();
    assert!(told["command"].as_str().is_some_and(|id| !id.is_empty()), "{told}");
    told["command"] = Value::Null;
    let wanted = json!({
        "value": "42",
        "raised": "ZeroDivisionError",
        "command": null,
        "reset": "ended",
        "state": "Ready",
        "roles": (["input", "output"].repeat(4)),
        "first": "sessionCreated",
        "imported": ["mainstay", 8, "copy"],
        "unknown": "session_not_found",
        "deleted": "ended",
    });
    assert_eq!(told, wanted);
}

#[test]
fn the_client_of_openapi_python_client_runs_a_session() {
    let (world, served) = running();
    let folder = world.work();
    let python = || {
        let mut python = Command::new(support::openapi_python());
        python.current_dir(&folder);
        python
    };
    // Its linters would only make the code prettier.
    std::fs::write(folder.join("config.yaml"), "post_hooks: []\n").unwrap();
    let generates = ["-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"];
    done(
        python()
            .args(generates)
            .args(["--config", "config.yaml", "--output-path", "mainstay_client", "--path"])
            .arg(document()),
    );
    std::fs::copy(driver("drive_openapi.py"), folder.join("drive.py")).unwrap();
    done(python().args(["-m", "mypy", "--strict", "--no-error-summary", "drive.py"]));
    judge(&done(python().arg("drive.py").args(&served).arg(&folder)));
}

#[test]
fn the_client_of_openapi_typescript_runs_a_session() {
    let (world, served) = running();
    let folder = world.work();
    let modules = support::openapi_packages().join("node_modules");
    std::os::unix::fs::symlink(&modules, folder.join("node_modules")).unwrap();
    let node = |program: &str| {
        let mut node = Command::new(support::node());
        node.current_dir(&folder).arg(modules.join(program));
        node
    };
    done(node("openapi-typescript/bin/cli.js").arg(document()).args(["--output", "schema.d.ts"]));
    std::fs::copy(driver("drive_openapi.ts"), folder.join("drive.ts")).unwrap();
    std::fs::write(folder.join("node.d.ts"), "declare const process: { argv: string[] };\n").unwrap();
    let compiles = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"];
    let compiles =
        compiles.iter().chain(&["--allowImportingTsExtensions", "--lib", "es2023,dom,dom.iterable"]);
    std::fs::write(folder.join("package.json"), "{ \"type\": \"module\" }\n").unwrap();
    done(node("typescript/bin/tsc").args(compiles).args(["drive.ts", "node.d.ts"]));
    let mut driven = Command::new(support::node());
    judge(&done(driven.current_dir(&folder).arg("drive.ts").args(&served).arg(&folder)));
}
