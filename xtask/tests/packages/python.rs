//! The wheel, from a folder as its index: pip, and Jupyter in the same environment.

use std::fs;
use std::path::PathBuf;

use crate::support::{Newcomer, VERSION, packages, provided, succeed};

/// Runs a cell in a kernel and prints its value.
const CELL: &str = r#"
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name=sys.argv[1])
def show(message):
    if message["msg_type"] in ("execute_result", "error"):
        print(message["msg_type"], message["content"].get("data", message["content"])["text/plain"])
client.execute_interactive(sys.argv[2], output_hook=show)
client.stop_channels()
manager.shutdown_kernel()
"#;

/// A fresh virtual environment, and its user. Where Python comes without a pip of its own, another's puts packages into it.
fn environment(jupyter: &std::path::Path) -> (Newcomer, PathBuf) {
    let user = Newcomer::new();
    let environment = user.folder("environment");
    let path =
        std::env::join_paths([environment.join("share/jupyter"), jupyter.join("share/jupyter")]).unwrap();
    let user = user.with("JUPYTER_PATH", path);
    succeed(user.command("python3").args(["-m", "venv", "--without-pip"]).arg(&environment));
    (user, environment)
}

#[test]
fn the_wheel_brings_the_program_and_kernels_of_jupyter() {
    let (Some(packages), Some(jupyter)) = (packages(), provided("MAINSTAY_TEST_JUPYTER")) else { return };
    let (user, environment) = environment(&jupyter);
    let before = user.files("environment");
    let pip = |arguments: &[&str]| {
        let mut pip = user.command("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "--python"])
            .arg(environment.join("bin/python"));
        succeed(pip.args(arguments))
    };
    pip(&["install", "--no-index", "--find-links", packages.to_str().unwrap(), "mainstay-sessions"]);
    let shown = pip(&["show", "mainstay-sessions"]);
    assert!(shown.contains("\nSummary: Keeps F#, Jupyter"), "{shown}");
    let program = environment.join("bin/mainstay");
    user.try_out(&program, "python", "42\n");
    let of_package = environment.join("bin/mainstay-sessions");
    assert_eq!(user.run(&of_package, ["--version"]), format!("mainstay {VERSION}\n"), "what uvx runs");
    let ended = user.command(&of_package).args(["explain", "no_such"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "the exit code of the program");
    let remains = user.run(&program, ["uninstall"]);
    assert!(remains.contains("python -m pip uninstall mainstay-sessions\n"), "{remains}");

    let python = jupyter.join("bin/python");
    let kernels = user.run(&python, ["-m", "jupyter_client.kernelspecapp", "list"]);
    assert!(kernels.contains("mainstay-fsharp") && kernels.contains("mainstay-python"), "{kernels}");
    // The environment is not active: the kernelspec says where the program is.
    assert_eq!(user.run(&python, ["-c", CELL, "mainstay-python", "6 * 7"]), "execute_result 42\n");
    let kernels = user.run(&program, ["kernel", "list"]);
    assert!(!kernels.contains("durable"), "Mainstay takes none of its own kernels for a kernel: {kernels}");
    user.run(&program, ["stop"]);
    // Of what is in the same environment it knows without being told, as with `uvx --with ipykernel`.
    let beside = environment.join("share/jupyter/kernels/beside");
    fs::create_dir(&beside).unwrap();
    let spec = r#"{ "argv": ["sh"], "display_name": "Beside", "language": "sh" }"#;
    fs::write(beside.join("kernel.json"), spec).unwrap();
    let listed = succeed(user.command(&program).env_remove("JUPYTER_PATH").args(["kernel", "list"]));
    assert!(listed.contains("beside"), "{listed}");
    fs::remove_dir_all(beside).unwrap();

    pip(&["uninstall", "--yes", "mainstay-sessions"]);
    assert_eq!(user.files("environment"), before);
    assert!(fs::exists(user.folder("home/.mainstay/store/mainstay.db")).unwrap(), "what is the user's stays");
}
