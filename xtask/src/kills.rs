//! `cargo xtask kills`: the stories of `crates/mainstay/tests/cli/kills`, in which daemons are killed at seeded moments, for many moments.

use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::command::{run as run_command, step};
use crate::failure::Failure;
use crate::test;
use crate::tools;

const USAGE: &str = "cargo xtask kills [--moments N] [--seed S] [--kind K]…";

/// The kinds of sessions that there are stories of: `scripted` is F# with a worker that needs no compiler, `project` F# whose project is
/// built.
const KINDS: [&str; 6] = ["scripted", "fsharp", "project", "python3", "xpython", "pi"];

/// How many moments of each kind there are, where it is not said.
const MOMENTS: u64 = 100;

/// The profile of the test runner in which a test may take hours.
const PROFILE: &str = "kills";

/// Plays moments of the kinds that are named, of all where none is.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let any_seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let Options { moments, seed, kinds } = Options::read(arguments, any_seed)?;
    let tools = step("what the tests need", || tools::provide(&[]))?;
    let filter = format!("test(/^kills::({})_/)", kinds.join("|"));
    let selection: Vec<OsString> = [
        "-p",
        "mainstay",
        "--test",
        "cli",
        "--profile",
        PROFILE,
        "--run-ignored",
        "all",
        "--no-capture",
        "-E",
        &filter,
    ]
    .iter()
    .map(OsString::from)
    .collect();
    let mut runner = test::runner(&tools, &selection);
    runner.env("MAINSTAY_KILLS", moments.to_string()).env("MAINSTAY_KILLS_SEED", seed.to_string());
    step(&format!("{moments} moments from seed {seed} on of {}", kinds.join(", ")), || {
        run_command(&mut runner, test::CARGO_REMEDY)
    })
}

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// How many moments of each kind.
    moments: u64,
    /// The seed of the first moment; each has the next.
    seed: u64,
    kinds: Vec<&'static str>,
}

impl Options {
    /// Reads the arguments; `any_seed` is taken where none is given.
    fn read(arguments: &[OsString], any_seed: u64) -> Result<Self, Failure> {
        let misunderstood = |argument: &OsString| {
            let kinds = KINDS.join(", ");
            let argument = argument.display();
            Failure::Usage(format!(
                "`{argument}` is not understood; it is `{USAGE}`, and the kinds are {kinds}"
            ))
        };
        let mut options = Self { moments: MOMENTS, seed: any_seed, kinds: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| misunderstood(name))?;
            let number =
                || value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| misunderstood(value));
            match name.to_str() {
                Some("--moments") => options.moments = number()?,
                Some("--seed") => options.seed = number()?,
                Some("--kind") => {
                    let kind =
                        KINDS.iter().find(|kind| value == *kind).ok_or_else(|| misunderstood(value))?;
                    options.kinds.push(kind);
                }
                Some(_) | None => return Err(misunderstood(name)),
            }
        }
        if options.kinds.is_empty() {
            options.kinds = KINDS.to_vec();
        }
        Ok(options)
    }
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
        let default = Options { moments: MOMENTS, seed: 7, kinds: KINDS.to_vec() };
        assert_eq!(read("").unwrap(), default);
        let given = Options { moments: 3, seed: 9, kinds: vec!["pi", "fsharp"] };
        assert_eq!(read("--kind pi --seed 9 --moments 3 --kind fsharp").unwrap(), given);
        for wrong in ["--moments", "--moments x", "--kind emacs", "--seed -1", "pi"] {
            assert!(matches!(read(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
