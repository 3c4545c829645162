//! Arguments that the program does not understand, told to a person or to a script.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Error as ClapError;
use mainstay_model::Error;
use mainstay_terminal as terminal;

/// Tells what is wrong with the arguments, as JSON where they ask for that, and gives the exit code. Help and version are no errors: they are
/// printed here too.
pub(super) fn tell(error: &ClapError, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let own = arguments.into_iter().take_while(|argument| argument != "--");
    if !error.use_stderr() || !own.into_iter().any(|argument| argument == "--json") {
        error.exit();
    }
    terminal::say_failures_as_json();
    let exit_code = error.exit_code();
    let Usage { message, next_step } = usage_of(&error.render().to_string());
    let error = Error::InvalidArgument { argument: String::new(), reason: String::new() };
    terminal::show_failure(&message, error.code(), &next_step);
    u8::try_from(exit_code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What is wrong, and how the command is used.
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    message: String,
    next_step: String,
}

/// The parts of the text that clap renders: the error, hints, the usage, and where there is help.
fn usage_of(rendered: &str) -> Usage {
    let (rendered, _) = rendered.split_once("For more information").unwrap_or((rendered, ""));
    let (error, usage) = rendered.split_once("Usage:").unwrap_or((rendered, ""));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let usage = words(usage);
    let next_step = match usage.as_str() {
        "" => "`--help` says how it is used.".to_owned(),
        usage => format!("It is used so: `{usage}`; `--help` says more."),
    };
    let paragraphs: Vec<_> =
        error.trim_start().trim_start_matches("error:").split("\n\n").map(words).collect();
    let message =
        paragraphs.into_iter().filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("; ");
    Usage { message, next_step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_and_the_usage_are_told_apart() {
        let rendered = "error: unexpected argument '--sesion' found\n\n  tip: a similar argument exists: '--session'\n\n\
                        Usage: mainstay eval [OPTIONS] <CODE>\n\nFor more information, try '--help'.\n";
        let usage = Usage {
            message: "unexpected argument '--sesion' found; tip: a similar argument exists: '--session'"
                .to_owned(),
            next_step: "It is used so: `mainstay eval [OPTIONS] <CODE>`; `--help` says more.".to_owned(),
        };
        assert_eq!(usage_of(rendered), usage);
        let short = usage_of("error: no such thing\n\nFor more information, try '--help'.\n");
        assert_eq!(
            (short.message.as_str(), short.next_step.as_str()),
            ("no such thing", "`--help` says how it is used.")
        );
    }
}
