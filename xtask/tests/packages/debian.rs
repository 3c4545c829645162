//! Debian's package: dpkg installs it below a root of its own, checks and purges it.

use std::fs;
use std::path::Path;

use crate::support::{Newcomer, PLATFORM, VERSION, is_here, packages, provided, skip, succeed};

#[test]
fn dpkg_installs_verifies_and_purges_the_package() {
    if !is_here("dpkg") {
        return eprintln!("skipped: there is no dpkg on this machine");
    }
    let (Some(packages), Some(jupyter)) = (packages(), provided("MAINSTAY_TEST_JUPYTER")) else { return };
    let user = Newcomer::new().with("JUPYTER_PATH", jupyter.join("share/jupyter"));
    if user.run("id", ["-u"]) != "0\n" {
        return skip("dpkg installs packages for root alone");
    }
    let package = packages.join(format!("mainstay_{VERSION}_{}.deb", PLATFORM.deb)).display().to_string();
    let root = user.folder("root");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut dpkg = user.command("dpkg");
        // The root has no other packages, which the control file is asked about below.
        dpkg.arg("--root").arg(&root).args(["--force-depends", "--log=/dev/null"]);
        succeed(dpkg.args(arguments))
    };
    let before = user.files("root/usr");
    dpkg(&["--install", &package]);
    assert_eq!(dpkg(&["--verify", "mainstay"]), "", "every file has the sum that the package says");
    user.try_out(&root.join("usr/bin/mainstay"), "python", "42\n");
    let control = user.run("dpkg-deb", ["--field", &package]);
    assert!(control.contains("\nDepends: libc6 (>= 2."), "{control}");
    look_at_files(&user, &root);
    match is_here("lintian") {
        true => {
            let judged = user.run("lintian", ["--allow-root", "--fail-on", "error", &package]);
            assert!(!judged.contains("E: "), "{judged}");
        }
        false => eprintln!("skipped: there is no lintian on this machine"),
    }
    dpkg(&["--purge", "mainstay"]);
    assert_eq!(user.files("root/usr"), before);
    assert!(
        !user.files("root/var").iter().any(|file| file.contains("mainstay")),
        "{:?}",
        user.files("root/var")
    );
}

/// Looks for what Debian's policy asks of a package with a program.
fn look_at_files(user: &Newcomer, root: &Path) {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let unit = read("usr/lib/systemd/user/mainstay.service");
    assert!(unit.contains("\nExecStart=\"/usr/bin/mainstay\" serve\n"), "{unit}");
    assert!(unit.contains("\nKillMode=process\n"), "code that runs outlives the daemon: {unit}");
    let copyright = read("usr/share/doc/mainstay/copyright");
    assert!(copyright.contains("\nLicense: MIT or Apache-2.0\n"), "{copyright}");
    let documents = ["changelog.gz", "CHANGELOG.md.gz", "THIRD-PARTY.txt.gz", "sbom.cdx.json.gz"];
    for document in documents {
        succeed(user.command("gzip").arg("--test").arg(root.join("usr/share/doc/mainstay").join(document)));
    }
    // Each command has a page, which names it as `whatis` shows it.
    for page in ["mainstay", "mainstay-session-fork"] {
        let packed = root.join(format!("usr/share/man/man1/{page}.1.gz"));
        let text = succeed(user.command("gzip").args(["--decompress", "--stdout"]).arg(packed));
        assert!(text.contains(&format!("\n{} \\- ", page.replace('-', "\\-"))), "{text}");
    }
    let script = root.join("usr/share/bash-completion/completions/mainstay");
    let complete = format!(". '{}'; complete -p mainstay", script.display());
    assert!(user.run("bash", ["-c", &complete]).contains("-F _mainstay"));
    for path in
        ["usr/share/zsh/vendor-completions/_mainstay", "usr/share/fish/vendor_completions.d/mainstay.fish"]
    {
        assert!(read(path).contains("mainstay"), "{path}");
    }
}
