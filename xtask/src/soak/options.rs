//! What the command line says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Failure;

const USAGE: &str = "cargo xtask soak [--minutes N] [--seed S] [--json FILE]";

/// The options of a soak.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// How long the load lasts.
    pub(super) length: Duration,
    /// Where every choice of the load and of the kills comes from.
    pub(super) seed: u64,
    /// Where the figures are written as JSON.
    pub(super) json: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments; `any_seed` is taken where none is given.
    pub(super) fn read(arguments: &[OsString], any_seed: u64) -> Result<Self, Failure> {
        let mut options = Self { length: Duration::from_mins(10), seed: any_seed, json: None };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| misunderstood(name))?;
            let number = || value.to_str().ok_or_else(|| misunderstood(value));
            match name.to_str() {
                Some("--minutes") => {
                    options.length = minutes(number()?).ok_or_else(|| misunderstood(value))?
                }
                Some("--seed") => options.seed = number()?.parse().map_err(|_| misunderstood(value))?,
                Some("--json") => options.json = Some(PathBuf::from(value)),
                Some(_) | None => return Err(misunderstood(name)),
            }
        }
        Ok(options)
    }
}

/// A tenth of a minute to a week.
fn minutes(text: &str) -> Option<Duration> {
    let minutes: f64 = text.parse().ok()?;
    (0.1..=10_080.0).contains(&minutes).then(|| Duration::from_secs_f64(minutes * 60.0))
}

fn misunderstood(argument: &OsString) -> Failure {
    Failure::Usage(format!("`{}` is not understood; it is `{USAGE}`", argument.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, Failure> {
        let words: Vec<_> = text.split_whitespace().map(OsString::from).collect();
        Options::read(&words, 7)
    }

    #[test]
    fn every_argument_has_a_default_and_a_form() {
        let default = Options { length: Duration::from_mins(10), seed: 7, json: None };
        assert_eq!(read("").unwrap(), default);
        let given =
            Options { length: Duration::from_secs(90), seed: 3, json: Some(PathBuf::from("out.json")) };
        assert_eq!(read("--seed 3 --json out.json --minutes 1.5").unwrap(), given);
        for wrong in ["--minutes", "--minutes 0", "--minutes NaN", "--seed x", "10"] {
            assert!(matches!(read(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
