//! The archive that needs no package manager: the files as they lie below a prefix, and a script that copies them there.

use std::io;

use super::archive::{Files, gzip};
use super::facts::{Facts, Package, Program};
use super::platform::Format;

/// Copies the files below a prefix, or removes them there.
const INSTALL: &str = include_str!("templates/install.sh");
/// Starts the daemon with the user's session of the machine.
const UNIT: &str = include_str!("templates/mainstay.service");

/// Returns the archive of a platform: a zip for Windows, else a compressed tar archive.
pub(crate) fn tarball(facts: &Facts, program: &Program) -> io::Result<Package> {
    let name = facts.archive_name(program.platform);
    let mut files = below_prefix(facts, program)?;
    let is_for_windows = program.platform.format == Format::Pe;
    if !is_for_windows {
        files.add_program("install.sh", INSTALL.as_bytes());
    }
    let folder = format!("{name}/");
    match is_for_windows {
        true => Ok(Package { bytes: files.below(&folder).zip(facts.style)?, name: format!("{name}.zip") }),
        false => Ok(Package { bytes: files.tar_gz(&folder, facts.style)?, name: format!("{name}.tar.gz") }),
    }
}

/// Returns the files as they lie below a prefix.
fn below_prefix<'a>(facts: &'a Facts, program: &'a Program) -> io::Result<Files<'a>> {
    let mut files = Files::default();
    files.add_program(format!("bin/{}", program.platform.executable(&facts.name)), &program.bytes[..]);
    let doc = format!("share/doc/{}/", facts.name);
    files.add_text(format!("{doc}README.md"), facts.readme());
    files.add(format!("{doc}CHANGELOG.md"), facts.texts.changelog.as_bytes());
    files.add(format!("{doc}sbom.cdx.json"), program.sbom.as_bytes());
    facts.add_licences(&mut files, &doc);
    if program.platform.format != Format::Pe {
        for (shell, script) in &facts.texts.completions {
            files.add(shell.completion_path(&facts.name), script.as_bytes());
        }
        for (page, text) in &facts.texts.man_pages {
            files.add(format!("share/man/man1/{page}.gz"), gzip(text.as_bytes())?);
        }
    }
    if program.platform.has_glibc() {
        files.add_text(format!("share/systemd/user/{}.service", facts.name), UNIT);
    }
    Ok(files)
}

/// Returns the unit of a program that is in a folder.
pub(crate) fn unit(bin: &str) -> String {
    UNIT.replace("@BIN@", bin)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program};
    use super::*;

    #[test]
    fn the_script_fits_on_a_screen() {
        let lines = INSTALL.lines();
        assert!(lines.clone().count() <= 40, "{}", lines.count());
    }

    #[test]
    fn windows_gets_a_zip_without_what_it_cannot_use() {
        let package = tarball(&sample(), &sample_program("x86_64-pc-windows-msvc")).unwrap();
        assert_eq!(package.name, "mainstay-1.2.3-x86_64-pc-windows-msvc.zip");
        let archive = zip::ZipArchive::new(io::Cursor::new(&package.bytes)).unwrap();
        let names: Vec<_> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert!(
            names.contains(&"mainstay-1.2.3-x86_64-pc-windows-msvc/bin/mainstay.exe".to_owned()),
            "{names:?}"
        );
        assert!(!names.iter().any(|name| name.ends_with(".sh") || name.contains("completion")), "{names:?}");
    }
}
