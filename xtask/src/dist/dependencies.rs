//! The crates that are compiled into the program, from cargo and the sources that it has downloaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::platform::Platform;
use crate::command::{cargo, output};
use crate::failure::Failure;
use crate::test::CARGO_REMEDY;

/// The beginnings of the names of files that are licences.
const LICENCE_FILES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// The name and version of a crate.
pub(crate) type CrateId = (String, String);

/// A crate that the program is made of, or made with.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The licence, as an expression of SPDX; none where the crate has none.
    pub(crate) licence: Option<String>,
    /// The hash of the crate, where it comes from a registry.
    pub(crate) checksum: Option<String>,
    /// Whether the crate is part of the program; else only its build runs it.
    pub(crate) is_part: bool,
    /// Whether the crate is one of this workspace.
    pub(crate) is_own: bool,
    /// The crates that it uses, of those that the program is made of.
    pub(crate) uses: BTreeSet<CrateId>,
    /// The names of the authors.
    pub(crate) authors: Vec<String>,
    /// The licences in the crate: names of files and their texts.
    pub(crate) texts: Vec<(String, String)>,
}

/// Returns everything that the program is made of on a platform, the program itself with it.
pub(crate) fn of_program(
    name: &str,
    platform: &Platform,
    metadata: &Value,
) -> Result<BTreeMap<CrateId, Dependency>, Failure> {
    let parts = tree(name, platform, "normal")?;
    let all = tree(name, platform, "normal,build")?;
    let checksums = checksums()?;
    let packages: BTreeMap<&str, &Value> = entries(&metadata["packages"], "id");
    let nodes: BTreeMap<&str, &Value> = entries(&metadata["resolve"]["nodes"], "id");
    let id_of = |package: &Value| (text(&package["name"]), text(&package["version"]));
    let mut dependencies = BTreeMap::new();
    for (package_id, package) in &packages {
        let id = id_of(package);
        if !all.contains(&id) {
            continue;
        }
        let used = nodes.get(package_id).and_then(|node| node["dependencies"].as_array());
        let used = used.into_iter().flatten().filter_map(|used| packages.get(used.as_str()?));
        let is_own = package["source"].is_null();
        let manifest = text(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().unwrap_or(Path::new("."));
        let dependency = Dependency {
            licence: package["license"]
                .as_str()
                .map(spdx)
                .or_else(|| package["license_file"].as_str().map(|_| "LicenseRef-file".to_owned())),
            checksum: checksums.get(&id).cloned(),
            is_part: parts.contains(&id),
            is_own,
            uses: used.map(|used| id_of(used)).filter(|used| all.contains(used)).collect(),
            authors: strings(&package["authors"]),
            texts: if is_own { Vec::new() } else { licence_texts(folder)? },
        };
        dependencies.insert(id, dependency);
    }
    Ok(dependencies)
}

/// Returns the crates that cargo compiles for the program. `cargo metadata` alone would add what only tests need.
fn tree(name: &str, platform: &Platform, edges: &str) -> Result<BTreeSet<CrateId>, Failure> {
    let arguments = ["tree", "--locked", "--package", name, "--target", platform.triple, "--edges", edges];
    let told = output(cargo(arguments).args(["--prefix", "none", "--format", "{p}"]), CARGO_REMEDY)?;
    let crate_of = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    Ok(told.lines().filter_map(crate_of).collect())
}

/// Returns the hashes in `Cargo.lock`.
fn checksums() -> Result<BTreeMap<CrateId, String>, Failure> {
    let path = crate::root().join("Cargo.lock");
    let lock = fs::read_to_string(&path).map_err(Failure::at(&path))?;
    Ok(checksums_of(&lock))
}

/// Each entry of the lock file has its name, version and checksum on lines of their own.
fn checksums_of(lock: &str) -> BTreeMap<CrateId, String> {
    let entry = |entry: &str| {
        let value = |key: &str| {
            let line = entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"')).map(str::to_owned)
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

/// Old crates write `A/B` for `A OR B`.
fn spdx(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns the licences in the folder of a crate, in order.
fn licence_texts(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))? {
        let path = entry.map_err(Failure::at(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_licence = LICENCE_FILES.iter().any(|start| name.to_lowercase().starts_with(start));
        if is_licence && path.is_file() {
            let bytes = fs::read(&path).map_err(Failure::at(&path))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            texts.push((name, text.trim_end().to_owned() + "\n"));
        }
    }
    texts.sort();
    Ok(texts)
}

fn entries<'a>(list: &'a Value, key: &str) -> BTreeMap<&'a str, &'a Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|entry| Some((entry[key].as_str()?, entry))).collect()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(text).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_belong_to_a_name_and_a_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let expected = BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), "ab".to_owned())]);
        assert_eq!(checksums_of(lock), expected);
    }

    #[test]
    fn old_licences_are_written_as_expressions() {
        assert_eq!(spdx("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(spdx("MIT AND Zlib"), "MIT AND Zlib");
    }
}
