//! The archive with its script, and the list of hashes.

use std::fs;

use crate::support::{Newcomer, TRIPLE, VERSION, is_here, packages, provided, succeed};

#[test]
fn the_script_installs_below_a_prefix_and_removes_every_file() {
    let (Some(packages), Some(jupyter)) = (packages(), provided("MAINSTAY_TEST_JUPYTER")) else { return };
    let user = Newcomer::new().with("JUPYTER_PATH", jupyter.join("share/jupyter"));
    let name = format!("mainstay-{VERSION}-{TRIPLE}");
    let archive = packages.join(format!("{name}.tar.gz"));
    succeed(user.command("tar").arg("-xzf").arg(archive));
    let script = |arguments: &[&str]| user.run(user.folder("work").join(&name).join("install.sh"), arguments);

    let prefix = user.folder("work/pre fix");
    let said = script(&["--prefix", "pre fix"]);
    assert!(said.contains(&format!("add {}/bin to your PATH", prefix.display())), "{said}");
    script(&["--prefix", "pre fix"]);
    user.try_out(&prefix.join("bin/mainstay"), "python", "42\n");
    let unit = fs::read_to_string(prefix.join("share/systemd/user/mainstay.service")).unwrap();
    assert!(unit.contains(&format!("\nExecStart=\"{}/bin/mainstay\" serve\n", prefix.display())), "{unit}");
    match is_here("systemd-analyze") {
        true => drop(user.run(
            "systemd-analyze",
            ["verify", prefix.join("share/systemd/user/mainstay.service").to_str().unwrap()],
        )),
        false => eprintln!("skipped: there is no systemd on this machine"),
    }
    let installed = user.files("work/pre fix");
    for file in ["share/bash-completion/completions/mainstay", "share/doc/mainstay/THIRD-PARTY.txt"] {
        assert!(installed.contains(&file.to_owned()), "{installed:?}");
    }

    script(&["--prefix", "pre fix", "--uninstall"]);
    assert_eq!(user.files("work/pre fix"), [""; 0]);
    assert!(!prefix.join("share/doc/mainstay").exists(), "a folder of Mainstay's own");
    assert!(prefix.join("bin").is_dir(), "a folder that others use too");
    let refused =
        user.command(user.folder("work").join(&name).join("install.sh")).arg("--help").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8(refused.stderr).unwrap().contains("./install.sh [--prefix FOLDER] [--uninstall]")
    );
}

#[test]
fn the_list_of_hashes_holds_for_every_package() {
    let Some(packages) = packages() else { return };
    let checked =
        succeed(Newcomer::new().command("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&packages));
    let mut names: Vec<_> = fs::read_dir(&packages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    assert_eq!(checked, names.iter().map(|name| format!("{name}: OK\n")).collect::<String>());
}

#[test]
fn the_bill_of_materials_and_the_licences_name_every_crate() {
    let Some(packages) = packages() else { return };
    let read = |name: &str| fs::read_to_string(packages.join(name)).unwrap();
    let bill: serde_json::Value =
        serde_json::from_str(&read(&format!("mainstay-{VERSION}-{TRIPLE}.cdx.json"))).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = bill["components"].as_array().unwrap();
    let licences = read("THIRD-PARTY.txt");
    let linked = components.iter().filter(|one| one["scope"] == "required" && one["purl"].is_string());
    let linked: Vec<_> = linked
        .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["version"].as_str().unwrap()))
        .collect();
    assert!(linked.len() > 100, "{}", linked.len());
    for one in linked {
        assert!(licences.contains(&format!("\n{one}: ")), "{one}");
    }
    let edges = bill["dependencies"].as_array().unwrap();
    assert_eq!(edges.len(), components.len() + 1, "each component and the program");
}
