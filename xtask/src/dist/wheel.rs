//! The wheel for Python's installers: the program as a script of the environment, and kernelspecs by which Jupyter in it finds Mainstay.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::archive::Files;
use super::facts::{Facts, Package, Program};
use super::names::{PYPI, python_file_name};
use super::platform::WheelTag;

/// The kinds of sessions that notebooks are offered, with the name that people read and the language. The folders have the names that
/// `mainstay kernel register` gives them.
const KERNELS: [(&str, &str, &str); 2] =
    [("fsharp", "F# (durable)", "fsharp"), ("python", "Python (durable)", "python")];

/// Starts the program for `uvx`, which runs the command that has the name of the package and no other.
const START: &str = include_str!("templates/start.py");

/// Returns the wheel of a platform. The error says why there can be none of this version.
pub(crate) fn wheel(facts: &Facts, program: &Program) -> io::Result<Package> {
    let version = python_version(&facts.version).ok_or_else(|| {
        io::Error::other(format!(
            "Python has no version like `{}`; use alpha.N, beta.N or rc.N",
            facts.version
        ))
    })?;
    let module = python_file_name(PYPI);
    let name = format!("{module}-{version}");
    let tag = format!("py3-none-{}", platform_tag(program));
    let executable = program.platform.executable(&facts.name);
    let mut files = Files::default();
    files.add_program(format!("{name}.data/scripts/{executable}"), &program.bytes[..]);
    files.add(format!("{module}/__main__.py"), START.as_bytes());
    for (kind, display_name, language) in KERNELS {
        let path = format!("{name}.data/data/share/jupyter/kernels/mainstay-{kind}/kernel.json");
        files.add_text(path, kernelspec(program, &executable, kind, display_name, language));
    }
    let info = format!("{name}.dist-info");
    files.add_text(format!("{info}/METADATA"), metadata(facts, &version));
    files.add_text(
        format!("{info}/WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: mainstay-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"),
    );
    files.add_text(
        format!("{info}/entry_points.txt"),
        format!("[console_scripts]\n{PYPI} = {module}.__main__:main\n"),
    );
    facts.add_licences(&mut files, &format!("{info}/licenses/"));
    files.add(format!("{info}/sboms/{}.cdx.json", facts.name), program.sbom.as_bytes());
    let record = record(&files, &info);
    files.add_text(format!("{info}/RECORD"), record);
    Ok(Package { name: format!("{name}-{tag}.whl"), bytes: files.zip(facts.style)? })
}

fn platform_tag(program: &Program) -> String {
    match program.platform.wheel {
        WheelTag::Fixed(tag) => tag.to_owned(),
        WheelTag::Manylinux(architecture) => {
            let (major, minor) = program.needs.glibc;
            format!("manylinux_{major}_{minor}_{architecture}")
        }
    }
}

/// Jupyter fills in `resource_dir`, the folder of the kernelspec: so the program is found in an environment that is not activated, and in the
/// user's own folder. It is four folders below that of the environment in both.
fn kernelspec(program: &Program, executable: &str, kind: &str, display_name: &str, language: &str) -> String {
    let scripts = if program.platform.npm_os == "win32" { "Scripts" } else { "bin" };
    let path = format!("{{resource_dir}}/../../../../{scripts}/{executable}");
    let spec = json!({
        "argv": [path, "kernel", "serve", "{connection_file}", "--kind", kind],
        "display_name": display_name,
        "language": language,
        "interrupt_mode": "message",
        "metadata": { "mainstay": { "kind": kind } },
    });
    format!("{spec:#}\n")
}

fn metadata(facts: &Facts, version: &str) -> String {
    let Facts { description, licence, homepage, repository, maintainer, .. } = facts;
    let licences = facts.texts.licences.iter().map(|(name, _)| name.as_str()).chain(["THIRD-PARTY.txt"]);
    let licences: String = licences.map(|name| format!("License-File: {name}\n")).collect();
    let author = if maintainer.contains('@') { "Author-email" } else { "Author" };
    let links = [("Homepage", homepage), ("Source", repository)];
    let links: String = links
        .into_iter()
        .filter_map(|(what, link)| Some(format!("Project-URL: {what}, {}\n", link.as_ref()?)))
        .collect();
    format!(
        "Metadata-Version: 2.4\nName: {PYPI}\nVersion: {version}\nSummary: {description}\n{author}: {maintainer}\nLicense-Expression: {licence}\n{licences}{links}Classifier: Framework :: Jupyter\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        facts.readme()
    )
}

/// Lists each file with its hash and size, and the list itself without.
fn record(files: &Files, info: &str) -> String {
    let row = |(path, file): (&str, &super::archive::File)| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        format!("{path},sha256={hash},{}\n", file.bytes.len())
    };
    files.iter().map(row).chain([format!("{info}/RECORD,,\n")]).collect()
}

/// Returns a version of Semantic Versioning in Python's words: `1.0.0-rc.1` is `1.0.0rc1`.
fn python_version(version: &str) -> Option<String> {
    let Some((release, before)) = version.split_once('-') else {
        return (!version.contains('+')).then(|| version.to_owned());
    };
    let (stage, number) = before.split_once('.')?;
    let stage = match stage {
        "alpha" => "a",
        "beta" => "b",
        "rc" => "rc",
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| format!("{release}{stage}{number}"))
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program, sample_without_addresses};
    use super::*;

    #[test]
    fn versions_before_a_release_are_written_as_python_has_them() {
        assert_eq!(python_version("1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(python_version("1.2.3-rc.1").as_deref(), Some("1.2.3rc1"));
        assert_eq!(python_version("1.2.3-beta.2").as_deref(), Some("1.2.3b2"));
        assert_eq!(python_version("1.2.3-nightly"), None);
        assert_eq!(python_version("1.2.3+abc"), None);
    }

    #[test]
    fn the_tag_says_which_glibc_is_needed() {
        let name = |triple| wheel(&sample(), &sample_program(triple)).unwrap().name;
        assert_eq!(
            name("x86_64-unknown-linux-gnu"),
            "mainstay_sessions-1.2.3-py3-none-manylinux_2_34_x86_64.whl"
        );
        assert_eq!(name("aarch64-apple-darwin"), "mainstay_sessions-1.2.3-py3-none-macosx_11_0_arm64.whl");
    }

    #[test]
    fn every_file_is_recorded_with_its_hash() {
        let mut files = Files::default();
        files.add_text("a.data/x", "abc");
        let told = record(&files, "a.dist-info");
        assert_eq!(
            told,
            "a.data/x,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\na.dist-info/RECORD,,\n"
        );
    }

    #[test]
    fn an_address_that_is_not_set_is_left_out() {
        let (with, without) = (metadata(&sample(), "1.2.3"), metadata(&sample_without_addresses(), "1.2.3"));
        assert!(with.contains("\nAuthor-email: Ada <ada@mainstay.example>\n"), "{with}");
        assert!(with.contains("\nProject-URL: Source, https://mainstay.example/source\n"), "{with}");
        assert!(without.contains("\nAuthor: Ada\n") && !without.contains("://"), "{without}");
    }
}
