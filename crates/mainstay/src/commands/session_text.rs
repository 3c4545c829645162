//! Sessions in words, for the terminal: a line for each, and the lines below it.

use mainstay_model::{Error, Timestamp};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::Paint;
use mainstay_terminal_client::fault::{HardReset, fault_text};
use mainstay_terminal_client::session_text::{session_line, startup_text};

use super::print_json;

/// Prints a session that was just created or reset.
pub(super) fn show_new(session: &SessionView, json: bool) -> Result<(), Error> {
    if json {
        return print_json(session);
    }
    print_line(session);
    eprint!("{}", startup_text(session, Paint::stderr()));
    eprint!("{}", fault_text(session, HardReset::Command, Paint::stderr()).unwrap_or_default());
    Ok(())
}

/// Prints the line of a session.
pub(super) fn print_line(session: &SessionView) {
    print!("{}", session_line(session, Paint::stdout(), Timestamp::now()));
}
