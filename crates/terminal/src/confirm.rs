//! Questions that are answered with yes or no.

use std::io::{IsTerminal, Write};

use mainstay_model::Error;

/// What Enter alone answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// Yes, for an action that nobody regrets.
    Yes,
    /// What cannot be taken back.
    No,
}

/// Asks on the terminal.
pub fn confirm(question: &str, enter: Enter) -> bool {
    let choice = match enter {
        Enter::Yes => "[Y/n]",
        Enter::No => "[y/N]",
    };
    eprint!("{question} {choice} ");
    std::io::stderr().flush().ok();
    let mut answer = String::new();
    let is_read = std::io::stdin().read_line(&mut answer).is_ok_and(|count| count > 0);
    is_read
        && match answer.trim().to_ascii_lowercase().as_str() {
            "" => enter == Enter::Yes,
            answer => matches!(answer, "y" | "yes"),
        }
}

/// The same for a command that takes `--yes`.
///
/// # Errors
/// [`Error::InvalidArgument`] where there is no terminal to ask on.
pub fn agrees(question: &str, enter: Enter) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::InvalidArgument {
            argument: "--yes".to_owned(),
            reason: "it must be given where there is no terminal to ask on".to_owned(),
        });
    }
    Ok(confirm(question, enter))
}
