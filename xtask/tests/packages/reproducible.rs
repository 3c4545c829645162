//! The same binaries give the same packages. A small program stands for Mainstay: it only has to run where it is asked for completions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{TRIPLE, VERSION, dist, succeed};

/// The packages in a folder, by their names.
fn packages(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Binaries for these platforms, of which only this machine's runs.
fn binaries(folder: &Path) -> Vec<String> {
    let given = |triple: &str, bytes: &[u8]| {
        let path = folder.join(triple);
        fs::write(&path, bytes).unwrap();
        format!("--binary={triple}={}", path.display())
    };
    let own = given(TRIPLE, &fs::read("/bin/echo").unwrap());
    succeed(std::process::Command::new("chmod").arg("755").arg(folder.join(TRIPLE)));
    let mac = given("aarch64-apple-darwin", &0xfeed_facf_u32.to_le_bytes());
    vec![own, given("x86_64-pc-windows-msvc", b"MZ"), mac]
}

#[test]
fn the_same_binaries_give_the_same_packages_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut given = binaries(folder.path());
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    succeed(dist(&one).args(&given));
    given.reverse();
    succeed(dist(&other).args(&given).env("TZ", "Asia/Tokyo").env("LC_ALL", "C").current_dir(folder.path()));
    let (one, other) = (packages(&one), packages(&other));
    let differ: Vec<_> =
        one.iter().filter(|(name, bytes)| other.get(*name) != Some(bytes)).map(|(name, _)| name).collect();
    assert_eq!((one.len(), &differ), (other.len(), &Vec::new()));
    let expected = ["THIRD-PARTY.txt", "Containerfile", "mainstay.osx-arm64", "py3-none-win_amd64.whl"];
    for part in expected {
        assert!(one.keys().any(|name| name.contains(part)), "{part}: {:?}", one.keys());
    }
}

#[test]
fn the_time_of_entries_is_that_of_the_environment_and_an_earlier_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let given = binaries(folder.path());
    succeed(dist(&out).args(&given));
    let of_windows = format!("mainstay.win-x64.{VERSION}.nupkg");
    assert!(packages(&out).contains_key(&of_windows));
    fs::write(out.join("notes.txt"), "mine").unwrap();
    succeed(dist(&out).arg(&given[0]).env("SOURCE_DATE_EPOCH", "1000000000"));
    let made = packages(&out);
    assert!(made.contains_key("notes.txt") && !made.contains_key(&of_windows), "{:?}", made.keys());
    let archive = made.keys().find(|name| name.ends_with(".tar.gz")).unwrap();
    let listed =
        succeed(std::process::Command::new("tar").env("TZ", "UTC").arg("-tvzf").arg(out.join(archive)));
    assert!(listed.lines().all(|line| line.contains("2001-09-09 01:46")), "{listed}");
}

#[test]
fn a_binary_of_another_platform_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    let refused = dist(&folder.path().join("out"))
        .arg(format!("--binary={TRIPLE}={}", path.display()))
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains(&format!("it is no executable for {TRIPLE}")), "{said}");
    assert!(!folder.path().join("out").exists());
}
