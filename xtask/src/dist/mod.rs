//! `cargo xtask dist`: the packages of a release, from the program's binaries.
//!
//! Each kind of package has a module that returns the package's bytes from [`facts`] and programs; [`archive`] is what they share. The same
//! binaries give the same packages, byte by byte. Files are read and written here, in [`dependencies`] and [`release_build`].

mod archive;
mod binary;
mod deb;
mod dependencies;
mod facts;
mod licences;
mod manifests;
mod names;
mod npm;
mod nuget;
mod options;
mod platform;
mod prebuilt;
mod release_build;
mod sbom;
mod spdx;
mod tarball;
mod wheel;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::command::{output, run as run_command, step};
use crate::failure::Failure;
use archive::Style;
use facts::{Facts, Package, Program, Shell, Texts};
use options::Options;
use platform::{Format, Platform};

/// The package of the workspace that has the program.
const PROGRAM: &str = "mainstay";
/// The list of the packages with their hashes.
const CHECKSUMS: &str = "SHA256SUMS";
const PLATFORM_REMEDY: &str = "give the binary of a platform that has packages: `--binary TRIPLE=PATH`";

/// Makes the packages of the binaries that the arguments give; without any, of a release build for this machine.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let mut options = Options::of(arguments)?;
    if options.binaries.is_empty() {
        let platform = this_machine()?;
        let workers = step("F# workers", || prebuilt::build(PROGRAM, &options.sdks))?;
        let build = || release_build::build(PROGRAM, platform, workers.as_deref());
        options.binaries.push((platform, step("release build", build)?));
    }
    let (facts, programs) = step("what is packed", || read(&options))?;
    let mut shelf = Shelf::empty(&options.out)?;
    step("packages", || pack(&facts, &programs, &mut shelf))?;
    shelf.finish()
}

/// Writes the packages of all platforms.
fn pack(facts: &Facts, programs: &[Program], shelf: &mut Shelf) -> Result<(), Failure> {
    shelf.put("the .NET tool", nuget::tool(facts, programs))?;
    shelf.put("the npm package", npm::launcher(facts, programs))?;
    let mut archives = Vec::new();
    for program in programs {
        archives.push((program, pack_for_platform(facts, program, shelf)?));
    }
    let archives: Vec<_> =
        archives.iter().map(|(program, (name, hash))| (*program, (name.as_str(), hash.as_str()))).collect();
    match manifests::formula(facts, &archives) {
        Some(formula) => drop(shelf.put("the formula", Ok(formula))?),
        None => eprintln!("no formula and no manifest: `repository` in Cargo.toml is empty"),
    }
    for (program, archive) in
        archives.into_iter().filter(|(program, _)| program.platform.format == Format::Pe)
    {
        for file in manifests::winget(facts, program, archive) {
            shelf.put("the manifest", Ok(file))?;
        }
    }
    shelf.put("the recipe of an image", Ok(manifests::containerfile(facts)))?;
    let third_party = facts.texts.third_party.clone().into_bytes();
    shelf.put("the licences", Ok(Package { name: "THIRD-PARTY.txt".to_owned(), bytes: third_party }))?;
    Ok(())
}

/// Writes the packages of a platform; returns the name and hash of its archive.
fn pack_for_platform(
    facts: &Facts,
    program: &Program,
    shelf: &mut Shelf,
) -> Result<(String, String), Failure> {
    let of = |what: &str| format!("{what} for {}", program.platform.triple);
    shelf.put(&of("the .NET tool"), nuget::tool_for_platform(facts, program))?;
    shelf.put(&of("the wheel"), wheel::wheel(facts, program))?;
    shelf.put(&of("the npm package"), npm::for_platform(facts, program))?;
    if let Some(package) = deb::deb(facts, program) {
        shelf.put(&of("Debian's package"), package)?;
    }
    let name = format!("{}.cdx.json", facts.archive_name(program.platform));
    let bytes = program.sbom.clone().into_bytes();
    shelf.put(&of("the bill of materials"), Ok(Package { name, bytes }))?;
    shelf.put(&of("the archive"), tarball::tarball(facts, program))
}

/// Reads the binaries, and what packages say of them.
fn read(options: &Options) -> Result<(Facts, Vec<Program>), Failure> {
    let style = Style { time: facts::time()?, level: options.level };
    let mut all = BTreeMap::new();
    let mut programs = Vec::new();
    let mut facts = None;
    for (platform, path) in &options.binaries {
        let bytes = fs::read(path).map_err(Failure::at(path))?;
        let needs = binary::needs(&bytes, platform).map_err(|reason| Failure::Unpackable {
            what: path.display().to_string(),
            reason,
            remedy: PLATFORM_REMEDY,
        })?;
        let metadata = facts::metadata(platform)?;
        let facts = match &facts {
            Some(facts) => facts,
            None => facts.insert(Facts::of(&metadata, PROGRAM, style)?),
        };
        let dependencies = dependencies::of_program(PROGRAM, platform, &metadata)?;
        let sbom = sbom::sbom(facts, platform, &dependencies);
        all.extend(dependencies);
        programs.push(Program { platform, bytes, needs, sbom });
    }
    let mut facts = facts.ok_or_else(|| Failure::Usage("there is no binary to pack".to_owned()))?;
    let third_party = licences::third_party(&facts, &all).map_err(|crates| Failure::Unpackable {
        what: crates.join(", "),
        reason: "no licence is known".to_owned(),
        remedy: "ask the authors for one, or leave out what needs it",
    })?;
    let deny = read_text("deny.toml")?;
    let refused = licences::refused(&all, &spdx::allowed_by(&deny));
    if !refused.is_empty() {
        return Err(Failure::Unpackable {
            what: refused.join(", "),
            reason: "deny.toml allows no licence of it".to_owned(),
            remedy: "leave out what needs it, or add the licence to deny.toml",
        });
    }
    facts.texts = texts(options, third_party)?;
    Ok((facts, programs))
}

/// Reads the texts that go along. The program itself makes its completions and man pages, so one of the binaries must run here.
fn texts(options: &Options, third_party: String) -> Result<Texts, Failure> {
    let here = this_machine()?;
    let runs = options.binaries.iter().find(|(platform, _)| *platform == here);
    let (_, program) = runs.ok_or_else(|| {
        Failure::Usage(format!("the program makes its man pages: give the binary of {} too", here.triple))
    })?;
    // A path without a folder would be looked for on the `PATH`.
    let program = std::path::absolute(program).map_err(Failure::at(program))?;
    let ask = |arguments: &[&str]| output(Command::new(&program).args(arguments), PLATFORM_REMEDY);
    let completions = Shell::ALL.map(|shell| Ok((shell, ask(&["completions", shell.name()])? + "\n")));
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(|name| Ok((name.to_owned(), read_text(name)?)));
    Ok(Texts {
        licences: licences.into_iter().collect::<Result<_, Failure>>()?,
        third_party,
        changelog: read_text("CHANGELOG.md")?,
        completions: completions.into_iter().collect::<Result<_, Failure>>()?,
        man_pages: man_pages(&program)?,
    })
}

/// Reads a file of the repository's root.
fn read_text(name: &str) -> Result<String, Failure> {
    let path = crate::root().join(name);
    fs::read_to_string(&path).map_err(Failure::at(&path))
}

/// Returns the man pages that the program writes, in the order of their names.
fn man_pages(program: &Path) -> Result<Vec<(String, String)>, Failure> {
    let scratch = std::env::temp_dir();
    let folder = tempfile::tempdir().map_err(Failure::at(&scratch))?;
    run_command(Command::new(program).arg("man-pages").arg(folder.path()), PLATFORM_REMEDY)?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder.path()).map_err(Failure::at(&scratch))? {
        let path = entry.map_err(Failure::at(&scratch))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pages.push((name, fs::read_to_string(&path).map_err(Failure::at(&path))?));
    }
    pages.sort();
    Ok(pages)
}

fn this_machine() -> Result<&'static Platform, Failure> {
    Platform::of_this_machine().ok_or_else(|| Failure::Unpackable {
        what: "this machine".to_owned(),
        reason: "it is of none of the platforms that have packages".to_owned(),
        remedy: PLATFORM_REMEDY,
    })
}

/// The folder of the packages, with the hash of each.
struct Shelf {
    folder: PathBuf,
    hashes: BTreeMap<String, String>,
}

impl Shelf {
    /// Opens a folder and removes the packages of an earlier run, which are those that its list of hashes names.
    fn empty(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(Failure::at(folder))?;
        let list = folder.join(CHECKSUMS);
        let earlier = match fs::read_to_string(&list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(Failure::at(&list))?,
        };
        let names = earlier.lines().filter_map(|line| Some(line.split_once("  ")?.1));
        for name in names.filter(|name| Path::new(name).file_name().is_some_and(|plain| plain == *name)) {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::at(&path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Self { folder: folder.to_owned(), hashes: BTreeMap::new() })
    }

    /// Writes a package; returns its name and hash. `what` names it where it could not be made.
    fn put(&mut self, what: &str, package: io::Result<Package>) -> Result<(String, String), Failure> {
        let Package { name, bytes } = package.map_err(|error| Failure::Unpackable {
            what: what.to_owned(),
            reason: error.to_string(),
            remedy: "see docs/contributing.md",
        })?;
        let path = self.folder.join(&name);
        fs::write(&path, &bytes).map_err(Failure::at(&path))?;
        eprintln!("{:>12}  {name}", bytes.len());
        let hash = hash(&bytes);
        self.hashes.insert(name.clone(), hash.clone());
        Ok((name, hash))
    }

    /// Writes the list of hashes, which `sha256sum --check` reads.
    fn finish(self) -> Result<(), Failure> {
        let list: String = self.hashes.iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
        let path = self.folder.join(CHECKSUMS);
        fs::write(&path, list).map_err(Failure::at(&path))?;
        println!("{}", self.folder.display());
        Ok(())
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
