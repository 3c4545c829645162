//! What `cargo xtask dist` is told on its command line.

use std::ffi::OsString;
use std::path::PathBuf;

use super::platform::{PLATFORMS, Platform};
use crate::failure::Failure;

/// What to pack, and where the packages go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The binaries that were given, each with its platform; none where this machine's is to be built.
    pub(crate) binaries: Vec<(&'static Platform, PathBuf)>,
    /// The .NET SDKs of whose F# worker the program that is built carries a compiled one; none where it carries the sources alone.
    pub(crate) sdks: Vec<PathBuf>,
    /// The folder of the packages.
    pub(crate) out: PathBuf,
    /// The level of compression, 1 to 9.
    pub(crate) level: u32,
}

const USAGE: &str = "Usage: cargo xtask dist [--binary TRIPLE=PATH]... [--sdk FOLDER]... [--out FOLDER, else target/dist] [--level 1 to 9, else 9]";

impl Options {
    /// Reads the arguments of the command line.
    pub(crate) fn of(arguments: &[OsString]) -> Result<Self, Failure> {
        let out = crate::root().join("target/dist");
        let mut options = Self { binaries: Vec::new(), sdks: Vec::new(), out, level: 9 };
        let mut rest = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(argument) = rest.next() {
            let (option, value) = match argument.split_once('=').filter(|_| argument.starts_with("--")) {
                Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
                None => (argument.into_owned(), rest.next().map(Into::into)),
            };
            let value = value.ok_or_else(|| Failure::Usage(USAGE.to_owned()))?;
            match option.as_str() {
                "--binary" => options.binaries.push(binary(&value)?),
                "--sdk" => options.sdks.push(PathBuf::from(value)),
                "--out" => options.out = PathBuf::from(value),
                "--level" => options.level = level(&value)?,
                _ => return Err(Failure::Usage(format!("`{option}` is not understood\n{USAGE}"))),
            }
        }
        options.binaries.sort_by_key(|(platform, _)| platform.triple);
        let mut pairs = options.binaries.windows(2);
        match pairs.find(|pair| pair[0].0 == pair[1].0) {
            None if !options.sdks.is_empty() && !options.binaries.is_empty() => Err(Failure::Usage(
                "a binary that is there carries what it was built with: `--sdk` is for one that is built"
                    .to_owned(),
            )),
            Some(pair) => Err(Failure::Usage(format!("{} is given twice", pair[0].0.triple))),
            None => Ok(options),
        }
    }
}

fn binary(text: &str) -> Result<(&'static Platform, PathBuf), Failure> {
    let (triple, path) =
        text.split_once('=').ok_or_else(|| Failure::Usage(format!("`{text}` is no TRIPLE=PATH\n{USAGE}")))?;
    let platform = Platform::of_triple(triple).ok_or_else(|| {
        let known: Vec<_> = PLATFORMS.iter().map(|platform| platform.triple).collect();
        Failure::Usage(format!("there are no packages for `{triple}`, but for {}", known.join(", ")))
    })?;
    Ok((platform, PathBuf::from(path)))
}

fn level(value: &str) -> Result<u32, Failure> {
    let level = value.parse().ok().filter(|level| (1..=9).contains(level));
    level.ok_or_else(|| Failure::Usage(format!("`{value}` is no level of compression\n{USAGE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<Options, String> {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        Options::of(&arguments).map_err(|failure| failure.to_string())
    }

    #[test]
    fn binaries_are_sorted_by_platform_whatever_order_they_are_given_in() {
        let given =
            ["--binary", "x86_64-unknown-linux-gnu=a", "--binary", "aarch64-apple-darwin=b", "--out", "o"];
        let options = of(&given).unwrap();
        let told: Vec<_> =
            options.binaries.iter().map(|(platform, path)| (platform.rid, path.to_str())).collect();
        assert_eq!(told, [("osx-arm64", Some("b")), ("linux-x64", Some("a"))]);
        assert_eq!((options.out, options.level, options.sdks), (PathBuf::from("o"), 9, Vec::new()));
        let of_sdks = of(&["--sdk", "8", "--sdk=10"]).unwrap();
        assert_eq!(of_sdks.sdks, ["8", "10"].map(PathBuf::from));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (arguments, expected) in [
            (&["--binary", "sparc=x"][..], "there are no packages for `sparc`"),
            (&["--binary", "x"], "is no TRIPLE=PATH"),
            (&["--level=10"], "is no level of compression"),
            (&["--out"], "Usage:"),
            (&["--sdk", "s", "--binary", "x86_64-apple-darwin=a"], "`--sdk` is for one that is built"),
            (&["--quick", "x"], "`--quick` is not understood"),
            (
                &["--binary", "x86_64-apple-darwin=a", "--binary", "x86_64-apple-darwin=b"],
                "x86_64-apple-darwin is given twice",
            ),
        ] {
            let said = of(arguments).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
