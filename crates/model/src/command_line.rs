//! The command line of a script: what `fsi.CommandLineArgs` of F# and `sys.argv` of Python give its code.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::SessionKind;
use crate::language::Language;
use crate::limits::Limits;

/// The command line that a script runs with. It holds for that run alone: other code has the session's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandLine {
    /// The script's path, as it was given.
    pub script: String,
    /// The arguments behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

impl CommandLine {
    /// The script's path and its arguments, as the code sees them.
    pub fn into_words(self) -> Vec<String> {
        std::iter::once(self.script).chain(self.arguments).collect()
    }

    /// What of it makes a command another one: the arguments. The script is named by its absolute path besides.
    pub(crate) fn asked(&self) -> Option<Self> {
        let Self { arguments, .. } = self;
        (!arguments.is_empty()).then(|| Self { script: String::new(), arguments: arguments.clone() })
    }

    /// Checks what can be checked without the session.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is larger than code may be, or has a NUL, which no command line has.
    pub(crate) fn validate(&self, limits: &Limits) -> Result<(), Error> {
        let words = || std::iter::once(&self.script).chain(&self.arguments);
        let (bytes, limit) = (words().map(String::len).sum::<usize>(), limits.code_bytes);
        if bytes > limit {
            return Err(invalid(format!("they have {bytes} bytes; `code-bytes` allows {limit}")));
        }
        if words().any(|word| word.contains('\0')) {
            return Err(invalid("one of them has a NUL".to_owned()));
        }
        Ok(())
    }

    /// Checks that code of this language, in a session of this kind, can see the arguments there are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it cannot.
    pub(crate) fn check_taken(&self, kind: &SessionKind, language: Option<&Language>) -> Result<(), Error> {
        let is_taken = language.is_some_and(|language| ["fsharp", "python"].contains(&language.as_str()));
        if self.arguments.is_empty() || is_taken {
            return Ok(());
        }
        let reason = format!("a session of kind `{kind}` takes none: only scripts in F# and Python do");
        Err(invalid(reason))
    }
}

fn invalid(reason: String) -> Error {
    Error::InvalidArgument { argument: "arguments".to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> CommandLine {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        CommandLine { script: "a.fsx".to_owned(), arguments }
    }

    #[test]
    fn only_languages_that_have_arguments_take_them() {
        let taken = |kind: &str, arguments: &[&str]| {
            let kind = SessionKind::new(kind).unwrap();
            line(arguments)
                .check_taken(&kind, Language::of(&kind).as_ref())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            [taken("fsharp", &["x"]), taken("xpython", &["x"]), taken("bash", &[])],
            [Ok(()), Ok(()), Ok(())]
        );
        insta::assert_snapshot!(taken("bash", &["x"]).unwrap_err(), @"arguments is not valid: a session of kind `bash` takes none: only scripts in F# and Python do");
    }

    #[test]
    fn a_command_line_is_as_large_as_code_may_be() {
        let limits = Limits { code_bytes: 6, ..Limits::default() };
        assert_eq!(line(&["x"]).validate(&limits), Ok(()));
        assert!(line(&["xy"]).validate(&limits).is_err());
        assert!(line(&["\0"]).validate(&limits).is_err());
    }
}
