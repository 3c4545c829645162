//! The recipe of an image, by podman: on a base that has this machine's C library and nothing else.

use std::fs;
use std::path::Path;

use crate::support::{Newcomer, TRIPLE, VERSION, is_here, packages, succeed};

/// The image of the base, and the image that is made. No other has these names.
const BASE: &str = "localhost/mainstay-test-base";
const IMAGE: &str = "localhost/mainstay-test";

#[test]
fn podman_builds_an_image_in_which_the_program_runs() {
    if !is_here("podman") {
        return eprintln!("skipped: there is no podman on this machine");
    }
    let Some(packages) = packages() else { return };
    let user = Newcomer::new();
    // What is in the folder is sent to podman, so it has nothing else.
    let context = user.folder("context");
    fs::create_dir(&context).unwrap();
    for file in ["Containerfile".to_owned(), format!("mainstay-{VERSION}-{TRIPLE}.tar.gz")] {
        fs::copy(packages.join(&file), context.join(&file)).unwrap();
    }
    let podman = |arguments: &[&str]| {
        let mut podman = user.command("podman");
        podman.args([
            "--root",
            user.folder("images").to_str().unwrap(),
            "--runroot",
            user.folder("run").to_str().unwrap(),
        ]);
        succeed(podman.args(arguments))
    };
    podman(&["import", base(&user).to_str().unwrap(), BASE]);
    let build = ["build", "--isolation", "chroot", "--tag", IMAGE, "--build-arg"];
    let arguments =
        [&format!("BASE={BASE}"), "--build-arg", &format!("TRIPLE={TRIPLE}"), context.to_str().unwrap()];
    podman(&[&build[..], &arguments].concat());
    // A container needs more rights than a build, which runs the program just as well.
    let trial = user.folder("trial");
    fs::create_dir(&trial).unwrap();
    fs::write(trial.join("Containerfile"), format!("FROM {IMAGE}\nRUN [\"mainstay\", \"--version\"]\n"))
        .unwrap();
    let said = podman(&["build", "--isolation", "chroot", "--no-cache", trial.to_str().unwrap()]);
    assert!(said.contains(&format!("\nmainstay {VERSION}\n")), "{said}");
    podman(&["system", "reset", "--force"]);
}

/// Makes an archive of the libraries that the program needs.
fn base(user: &Newcomer) -> std::path::PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("mainstay");
    let linked = user.run("ldd", [program]);
    let paths = linked.split_whitespace().filter(|word| word.starts_with('/'));
    let archive = user.folder("base.tar");
    // Links of folders and libraries are followed: the archive has files alone.
    succeed(user.command("tar").arg("-chf").arg(&archive).args(paths));
    archive
}
