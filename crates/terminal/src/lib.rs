//! What people see. Data goes to standard output, everything else to standard error.
//!
//! One meaning a colour, and colour only on a terminal that has not asked for none (`NO_COLOR`):
//! red is an error, yellow a warning, green a good end, cyan a name that can be typed back, grey what may be skipped.
//! An error is one line that says what happened and one that says what to do next; where JSON is asked for, an object on one line.
//! A picture is drawn only on a terminal that shows pictures (`MAINSTAY_IMAGES`), in the place of the words for it.
//! What is not ours (names, diagnostics, values) goes through [`printable`] first, and what other people's code prints through [`printed`];
//! only what the user's own code prints does not.

mod confirm;
mod diagnostic;
mod displays;
mod eval_summary;
mod hidden_input;
mod markdown;
mod message;
mod next_step;
mod open_line;
mod pager;
mod paint;
mod pictures;
mod printable;
mod printed;
mod progress_line;
mod quantity;
mod sequence;
mod syntax;
pub mod turn;

pub use self::confirm::{Enter, agrees, confirm};
pub use self::diagnostic::diagnostic_text;
pub use self::displays::{Surface, cut, display_text, result_text};
pub use self::eval_summary::eval_summary;
pub use self::hidden_input::HiddenInput;
pub use self::markdown::{events as markdown_events, is_blank_before, rendered as rendered_markdown};
pub use self::message::{note, say_failures_as_json, show_error, show_failure, tell_news, tell_unbuilt};
pub use self::next_step::next_step;
pub use self::open_line::OpenLine;
pub use self::pager::page;
pub use self::paint::{Paint, Tone};
pub use self::printable::printable;
pub use self::printed::printed;
pub use self::progress_line::ProgressLine;
pub use self::quantity::{ago, bytes, counted};
pub use self::sequence::DisplaySequence;
pub use self::syntax::syntax_colour;
