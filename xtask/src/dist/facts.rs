//! What packages say of the program: its name, version, description and links, all from `Cargo.toml`, and the texts that go with it.

use std::process::Command;

use jiff::Timestamp;
use serde_json::Value;

use super::archive::{Files, Style};
use super::binary::Needs;
use super::platform::Platform;
use crate::command::{cargo, output};
use crate::failure::Failure;

/// The variable that sets the time of every entry, as <https://reproducible-builds.org> has it.
const TIME_VARIABLE: &str = "SOURCE_DATE_EPOCH";
const TIME_REMEDY: &str = "set SOURCE_DATE_EPOCH to the time of the release in seconds since 1970";

/// What every package says of the program.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The name of the program. Its packages may have others, which are in `names`.
    pub(crate) name: String,
    /// The version, as Semantic Versioning has it.
    pub(crate) version: String,
    /// One sentence about the program.
    pub(crate) description: String,
    /// The name of who maintains it, with an address behind it where one is set.
    pub(crate) maintainer: String,
    /// The address of its page.
    pub(crate) homepage: Option<String>,
    /// The address of its repository, below which releases are downloaded.
    pub(crate) repository: Option<String>,
    /// The licence, as an expression of SPDX.
    pub(crate) licence: String,
    /// The texts that packages carry beside the program.
    pub(crate) texts: Texts,
    /// How archives are made.
    pub(crate) style: Style,
}

/// The texts that packages carry beside the program.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The licences of the program, by their file names.
    pub(crate) licences: Vec<(String, String)>,
    /// The licences of everything that is compiled into the program.
    pub(crate) third_party: String,
    /// What changed for those who use it.
    pub(crate) changelog: String,
    /// The completion scripts of bash, zsh and fish.
    pub(crate) completions: Vec<(Shell, String)>,
    /// The man pages, by their file names.
    pub(crate) man_pages: Vec<(String, String)>,
}

/// A shell that has completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    /// The GNU shell, bash.
    Bash,
    /// The Z shell, zsh.
    Zsh,
    /// The friendly interactive shell, fish.
    Fish,
}

/// The program for a platform.
#[derive(Debug)]
pub(crate) struct Program {
    /// The platform that it runs on.
    pub(crate) platform: &'static Platform,
    /// The content of the executable file.
    pub(crate) bytes: Vec<u8>,
    /// What it needs of the system.
    pub(crate) needs: Needs,
    /// The bill of materials, as JSON.
    pub(crate) sbom: String,
}

/// A file of a release.
#[derive(Debug)]
pub(crate) struct Package {
    /// The name of the file.
    pub(crate) name: String,
    /// The content of the file.
    pub(crate) bytes: Vec<u8>,
}

impl Shell {
    /// Every shell that packages have completions for.
    pub(crate) const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// The name by which `mainstay completions` knows the shell.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// The path of the script below a prefix, such as `/usr/local`.
    pub(crate) fn completion_path(self, program: &str) -> String {
        match self {
            Self::Bash => format!("share/bash-completion/completions/{program}"),
            Self::Zsh => format!("share/zsh/site-functions/_{program}"),
            Self::Fish => format!("share/fish/vendor_completions.d/{program}.fish"),
        }
    }
}

impl Facts {
    /// Returns the facts of a package of the workspace in what `cargo metadata` says. A fact that is missing is an error, unless it is an
    /// address.
    pub(crate) fn of(metadata: &Value, name: &str, style: Style) -> Result<Self, Failure> {
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages.clone().find(|package| package["name"] == name && package["source"].is_null());
        let fact = |fact: &str| {
            let value = package.map_or(&Value::Null, |package| &package[fact]);
            let text = value.as_str().or_else(|| value[0].as_str());
            text.map(str::to_owned).ok_or_else(|| Failure::Unpackable {
                what: name.to_owned(),
                reason: format!("its Cargo.toml has no `{fact}`"),
                remedy: "add it under [workspace.package] and inherit it in the package",
            })
        };
        Ok(Self {
            name: name.to_owned(),
            version: fact("version")?,
            description: fact("description")?,
            maintainer: fact("authors")?,
            homepage: fact("homepage").ok().filter(|address| !address.is_empty()),
            repository: fact("repository").ok().filter(|address| !address.is_empty()),
            licence: fact("license")?,
            texts: Texts::default(),
            style,
        })
    }

    /// The name of an archive of the program for a platform, which is also the folder in it.
    pub(crate) fn archive_name(&self, platform: &Platform) -> String {
        format!("{}-{}-{}", self.name, self.version, platform.triple)
    }

    /// Who maintains the program, without an address.
    pub(crate) fn publisher(&self) -> &str {
        self.maintainer.split(" <").next().unwrap_or_default()
    }

    /// The text that introduces the program where a registry shows its package.
    pub(crate) fn readme(&self) -> String {
        let template = include_str!("templates/README.md");
        let filled = template.replace("@NAME@", &self.name).replace("@DESCRIPTION@", &self.description);
        let see = self.homepage.as_ref().map(|homepage| format!(" See {homepage}."));
        filled.replace("@SEE@", &see.unwrap_or_default())
    }

    /// Adds the licences of the program and of what it is made of, below a folder.
    pub(crate) fn add_licences<'a>(&'a self, files: &mut Files<'a>, folder: &str) {
        for (name, text) in &self.texts.licences {
            files.add(format!("{folder}{name}"), text.as_bytes());
        }
        files.add(format!("{folder}THIRD-PARTY.txt"), self.texts.third_party.as_bytes());
    }
}

/// Returns the time of the release: what the environment sets, else that of the last commit.
pub(crate) fn time() -> Result<Timestamp, Failure> {
    let unknown =
        |reason: String| Failure::Unpackable { what: "a release".to_owned(), reason, remedy: TIME_REMEDY };
    let seconds = match std::env::var(TIME_VARIABLE) {
        Ok(set) => set,
        Err(_) => {
            let mut git = Command::new("git");
            output(git.current_dir(crate::root()).args(["log", "-1", "--format=%ct"]), TIME_REMEDY)?
        }
    };
    let parsed = seconds.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    parsed.ok_or_else(|| unknown(format!("`{seconds}` is no time in seconds")))
}

/// Returns what `cargo metadata` says of the workspace and its dependencies on a platform.
pub(crate) fn metadata(platform: &Platform) -> Result<Value, Failure> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", platform.triple];
    let told = output(&mut cargo(arguments), crate::test::CARGO_REMEDY)?;
    serde_json::from_str(&told).map_err(|error| Failure::Unpackable {
        what: "what `cargo metadata` printed".to_owned(),
        reason: error.to_string(),
        remedy: crate::test::CARGO_REMEDY,
    })
}

/// Facts of the same release where no address is set.
#[cfg(test)]
pub(crate) fn sample_without_addresses() -> Facts {
    Facts { maintainer: "Ada".to_owned(), homepage: None, repository: None, ..sample() }
}

/// Facts of a small release, for tests of packages.
#[cfg(test)]
pub(crate) fn sample() -> Facts {
    Facts {
        name: "mainstay".to_owned(),
        version: "1.2.3".to_owned(),
        description: "Keeps sessions.".to_owned(),
        maintainer: "Ada <ada@mainstay.example>".to_owned(),
        homepage: Some("https://mainstay.example".to_owned()),
        repository: Some("https://mainstay.example/source".to_owned()),
        licence: "MIT OR Apache-2.0".to_owned(),
        texts: Texts {
            licences: vec![("LICENSE-MIT".to_owned(), "MIT\n".to_owned())],
            third_party: "others\n".to_owned(),
            changelog: "# Changelog\n".to_owned(),
            completions: Shell::ALL.map(|shell| (shell, format!("complete {}\n", shell.name()))).to_vec(),
            man_pages: vec![("mainstay.1".to_owned(), ".TH mainstay 1\n".to_owned())],
        },
        style: Style { time: Timestamp::from_second(1_790_000_000).unwrap(), level: 1 },
    }
}

/// A program of a few bytes for a platform, for tests of packages.
#[cfg(test)]
pub(crate) fn sample_program(triple: &str) -> Program {
    let platform = Platform::of_triple(triple).unwrap();
    let needs = Needs { glibc: (2, 34), libraries: vec!["libc.so.6".to_owned()] };
    Program { platform, bytes: b"program".to_vec(), needs, sbom: "{}".to_owned() }
}
