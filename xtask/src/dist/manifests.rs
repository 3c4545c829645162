//! What other registries are told of a release: Homebrew's formula and winget's manifest, with the hashes of archives that are downloaded,
//! and a `Containerfile`. Each is filled in from a template.

use super::facts::{Facts, Package, Program};
use super::names::WINGET as WINGET_ID;
use super::platform::Format;

const FORMULA: &str = include_str!("templates/formula.rb");
const CONTAINERFILE: &str = include_str!("templates/Containerfile");
/// The files of winget's manifest, by the endings of their names.
const WINGET: [(&str, &str); 3] = [
    ("", include_str!("templates/winget.yaml")),
    (".installer", include_str!("templates/winget.installer.yaml")),
    (".locale.en-US", include_str!("templates/winget.locale.en-US.yaml")),
];

/// An archive that a manifest names: its file name and SHA-256.
pub(crate) type Archive<'a> = (&'a str, &'a str);

/// Returns Homebrew's formula, which has each archive for macOS and Linux; nothing where nobody knows where those are downloaded.
pub(crate) fn formula(facts: &Facts, archives: &[(&Program, Archive)]) -> Option<Package> {
    let repository = facts.repository.as_ref()?;
    let of_platform = |(program, (file, hash)): &(&Program, Archive)| {
        let (os, cpu) = match (program.platform.format, program.platform.npm_cpu) {
            (Format::Pe, _) => return None,
            (Format::MachO, cpu) => ("macos", cpu),
            (Format::Elf(_), cpu) => ("linux", cpu),
        };
        let cpu = if cpu == "arm64" { "arm" } else { "intel" };
        Some(format!(
            "  on_{os} do\n    on_{cpu} do\n      url \"{}\"\n      sha256 \"{hash}\"\n    end\n  end\n",
            download(facts, repository, file)
        ))
    };
    let platforms: Vec<_> = archives.iter().filter_map(of_platform).collect();
    let class: String =
        facts.name.chars().take(1).flat_map(char::to_uppercase).chain(facts.name.chars().skip(1)).collect();
    let licences: Vec<_> = facts.licence.split(" OR ").map(|licence| format!("\"{licence}\"")).collect();
    let text = filled(FORMULA, facts)
        .replace("@CLASS@", &class)
        .replace("@LICENCES@", &licences.join(", "))
        .replace("@PLATFORMS@", platforms.join("\n").trim_end());
    Some(Package { name: format!("{}.rb", facts.name), bytes: text.into_bytes() })
}

/// The address from which a file of this release is downloaded.
fn download(facts: &Facts, repository: &str, file: &str) -> String {
    format!("{repository}/releases/download/v{}/{file}", facts.version)
}

/// Returns winget's manifest for an archive for Windows, which is three files; none where nobody knows where that is downloaded.
pub(crate) fn winget(facts: &Facts, program: &Program, (file, hash): Archive) -> Vec<Package> {
    let Some(repository) = &facts.repository else { return Vec::new() };
    let folder = facts.archive_name(program.platform);
    let of = |(ending, template): (&str, &str)| {
        let text = filled(template, facts)
            .replace("@ID@", WINGET_ID)
            .replace("@URL@", &download(facts, repository, file))
            .replace("@HASH@", &hash.to_uppercase())
            .replace("@PROGRAM@", &format!("{folder}\\bin\\{}", program.platform.executable(&facts.name)));
        Package { name: format!("{WINGET_ID}{ending}.yaml"), bytes: text.into_bytes() }
    };
    WINGET.map(of).into()
}

/// Returns the recipe of an image, which takes the program from the archives beside it.
pub(crate) fn containerfile(facts: &Facts) -> Package {
    Package { name: "Containerfile".to_owned(), bytes: filled(CONTAINERFILE, facts).into_bytes() }
}

fn filled(template: &str, facts: &Facts) -> String {
    let Facts { name, version, description, homepage, repository, licence, .. } = facts;
    let homepage = homepage.as_ref().or(repository.as_ref()).map_or("", String::as_str);
    template
        .replace("@NAME@", name)
        .replace("@VERSION@", version)
        .replace("@DESCRIPTION@", description)
        .replace("@HOMEPAGE@", homepage)
        .replace("@LICENCE@", licence)
        .replace("@PUBLISHER@", facts.publisher())
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program, sample_without_addresses};
    use super::*;

    fn text(package: &Package) -> &str {
        std::str::from_utf8(&package.bytes).unwrap()
    }

    #[test]
    fn the_formula_has_an_archive_for_each_platform_of_homebrew() {
        let programs = ["aarch64-apple-darwin", "x86_64-pc-windows-msvc", "x86_64-unknown-linux-gnu"]
            .map(sample_program);
        let archives = [("a.tar.gz", "aa"), ("w.zip", "bb"), ("l.tar.gz", "cc")];
        let archives: Vec<_> = programs.iter().zip(archives).collect();
        let formula = formula(&sample(), &archives).unwrap();
        let text = text(&formula);
        assert!(text.starts_with("class Mainstay < Formula\n"), "{text}");
        assert!(text.contains("on_macos do\n    on_arm do\n      url \"https://mainstay.example/source/releases/download/v1.2.3/a.tar.gz\"\n      sha256 \"aa\"\n"), "{text}");
        assert!(text.contains("on_linux do\n    on_intel do\n"), "{text}");
        assert!(!text.contains("w.zip") && !text.contains('@'), "{text}");
    }

    #[test]
    fn the_manifest_of_winget_has_the_program_in_the_archive() {
        let manifest = winget(&sample(), &sample_program("x86_64-pc-windows-msvc"), ("w.zip", "ab"));
        let names: Vec<_> = manifest.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "mainstay.mainstay.yaml",
                "mainstay.mainstay.installer.yaml",
                "mainstay.mainstay.locale.en-US.yaml"
            ]
        );
        let installer = text(&manifest[1]);
        assert!(installer.contains("InstallerSha256: AB\n"), "{installer}");
        assert!(
            installer
                .contains("RelativeFilePath: mainstay-1.2.3-x86_64-pc-windows-msvc\\bin\\mainstay.exe\n"),
            "{installer}"
        );
        assert!(manifest.iter().all(|file| !text(file).contains('@')), "{manifest:?}");
    }

    #[test]
    fn without_a_repository_nothing_is_told_where_to_download() {
        let (facts, program) = (sample_without_addresses(), sample_program("x86_64-pc-windows-msvc"));
        assert!(formula(&facts, &[(&program, ("w.zip", "ab"))]).is_none());
        assert!(winget(&facts, &program, ("w.zip", "ab")).is_empty());
    }

    #[test]
    fn nothing_is_left_to_fill_in_of_the_containerfile() {
        let package = containerfile(&sample());
        assert!(text(&package).contains("ARG VERSION=1.2.3\n") && !text(&package).contains('@'));
    }
}
