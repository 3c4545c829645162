//! Debian's package, written without Debian's tools so that any machine can make it.

use std::io;

use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use md5::{Digest, Md5};

use super::archive::{Files, ar, gzip};
use super::facts::{Facts, Package, Program, Shell};
use super::tarball::unit;

/// Returns the package; nothing where there is no Debian of the platform.
pub(crate) fn deb(facts: &Facts, program: &Program) -> Option<io::Result<Package>> {
    let architecture = program.platform.deb?;
    Some(package(facts, program, architecture))
}

fn package(facts: &Facts, program: &Program, architecture: &str) -> io::Result<Package> {
    let version = debian_version(&facts.version);
    let data = data(facts, program, &version)?;
    let mut control = Files::default();
    control.add_text("control", fields(facts, program, &version, architecture, &data));
    control.add_text("md5sums", sums(&data));
    let (control, data) = (control.tar_gz("./", facts.style)?, data.tar_gz("./", facts.style)?);
    let members: [(&str, &[u8]); 3] =
        [("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    let bytes = ar(&members, facts.style);
    Ok(Package { name: format!("{}_{version}_{architecture}.deb", facts.name), bytes })
}

/// Returns the files that the package installs.
fn data<'a>(facts: &'a Facts, program: &'a Program, version: &str) -> io::Result<Files<'a>> {
    let name = &facts.name;
    let compressed = |text: &str| gzip(text.as_bytes());
    let mut files = Files::default();
    files.add_program(format!("usr/bin/{name}"), &program.bytes[..]);
    files.add_text(format!("usr/lib/systemd/user/{name}.service"), unit("/usr/bin"));
    for (shell, script) in &facts.texts.completions {
        // What packages of Debian bring has a folder of its own for zsh.
        let path = match shell {
            Shell::Zsh => format!("share/zsh/vendor-completions/_{name}"),
            Shell::Bash | Shell::Fish => shell.completion_path(name),
        };
        files.add(format!("usr/{path}"), script.as_bytes());
    }
    for (page, text) in &facts.texts.man_pages {
        files.add(format!("usr/share/man/man1/{page}.gz"), compressed(text)?);
    }
    let doc = format!("usr/share/doc/{name}");
    files.add_text(format!("{doc}/copyright"), copyright(facts));
    files.add(format!("{doc}/changelog.gz"), compressed(&changelog(facts, version))?);
    files.add(format!("{doc}/CHANGELOG.md.gz"), compressed(&facts.texts.changelog)?);
    files.add(format!("{doc}/THIRD-PARTY.txt.gz"), compressed(&facts.texts.third_party)?);
    files.add(format!("{doc}/sbom.cdx.json.gz"), compressed(&program.sbom)?);
    Ok(files)
}

fn fields(facts: &Facts, program: &Program, version: &str, architecture: &str, data: &Files) -> String {
    let kilobytes: usize = data.iter().map(|(_, file)| file.bytes.len().div_ceil(1024)).sum();
    let (major, minor) = program.needs.glibc;
    let has_unwinder = program.needs.libraries.iter().any(|library| library == "libgcc_s.so.1");
    let unwinder = if has_unwinder { ", libgcc-s1" } else { "" };
    let Facts { name, description, .. } = facts;
    let maintainer = maintainer(facts);
    let homepage =
        facts.homepage.as_ref().map(|homepage| format!("Homepage: {homepage}\n")).unwrap_or_default();
    format!(
        "Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: libc6 (>= {major}.{minor}){unwinder}
Suggests: python3-ipykernel
Section: devel
Priority: optional
{homepage}Description: {description}
 People, editors, notebooks and agents work in the same live session. It
 survives the loss of its worker, of the daemon and of the machine.
"
    )
}

/// Who maintains the package. Debian wants an address; that of nobody is never anyone's.
fn maintainer(facts: &Facts) -> String {
    let has_address = facts.maintainer.contains('@');
    format!("{}{}", facts.maintainer, if has_address { "" } else { " <nobody@mainstay.invalid>" })
}

fn sums(data: &Files) -> String {
    let sum = |bytes: &[u8]| Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    data.iter().map(|(path, file)| format!("{}  {path}\n", sum(&file.bytes))).collect()
}

fn copyright(facts: &Facts) -> String {
    let holder = facts.publisher();
    let source = facts.repository.as_ref().map(|source| format!("Source: {source}\n")).unwrap_or_default();
    let year = facts.style.time.to_zoned(TimeZone::UTC).year();
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: {}
{source}Comment: The program contains crates of others. THIRD-PARTY.txt.gz, beside
 this file, has their names and licences.

Files: *
Copyright: {year} {holder}
License: MIT or Apache-2.0

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

License: MIT
",
        facts.name
    );
    // Debian has the text of Apache's licence once for all packages.
    let own = facts.texts.licences.iter().filter(|(name, _)| name.contains("MIT"));
    for line in own.flat_map(|(_, licence)| licence.lines()) {
        text.push_str(&format!(" {}\n", if line.trim().is_empty() { "." } else { line.trim_end() }));
    }
    text
}

fn changelog(facts: &Facts, version: &str) -> String {
    let date = rfc2822::to_string(&facts.style.time.to_zoned(TimeZone::UTC)).unwrap_or_default();
    format!(
        "{} ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz for what changed.\n\n -- {}  {date}\n",
        facts.name,
        maintainer(facts)
    )
}

/// Returns a version of Semantic Versioning in Debian's words, where `~` sorts before a release.
fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program, sample_without_addresses};
    use super::*;

    #[test]
    fn a_version_before_a_release_sorts_before_it() {
        assert_eq!(debian_version("1.2.3-rc.1"), "1.2.3~rc.1");
        assert_eq!(debian_version("1.2.3"), "1.2.3");
    }

    #[test]
    fn only_a_platform_of_debian_has_a_package() {
        let name = |triple| deb(&sample(), &sample_program(triple)).map(|package| package.unwrap().name);
        assert_eq!(name("aarch64-unknown-linux-gnu").as_deref(), Some("mainstay_1.2.3_arm64.deb"));
        assert_eq!(name("x86_64-apple-darwin"), None);
    }

    #[test]
    fn the_package_says_what_it_needs_and_what_was_in_it() {
        let (facts, program) = (sample(), sample_program("x86_64-unknown-linux-gnu"));
        let data = data(&facts, &program, "1.2.3").unwrap();
        let fields = fields(&facts, &program, "1.2.3", "amd64", &data);
        assert!(fields.contains("\nDepends: libc6 (>= 2.34)\n"), "{fields}");
        assert!(fields.contains("\nHomepage: https://mainstay.example\nDescription: "), "{fields}");
        assert!(
            sums(&data).contains("a9c449d4fa44e9e5a41c574ae55ce4d9  usr/bin/mainstay\n"),
            "{}",
            sums(&data)
        );
    }

    #[test]
    fn an_address_that_is_not_set_is_left_out_or_that_of_nobody() {
        let (facts, program) = (sample_without_addresses(), sample_program("x86_64-unknown-linux-gnu"));
        let fields = fields(&facts, &program, "1.2.3", "amd64", &Files::default());
        assert!(fields.contains("\nMaintainer: Ada <nobody@mainstay.invalid>\n"), "{fields}");
        assert!(!fields.contains("://") && !copyright(&facts).contains("Source:"), "{fields}");
    }
}
