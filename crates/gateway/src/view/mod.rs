//! Makes the views of `protocol` of what the engine answers.

mod events;
mod session;
mod transcript;
mod work;

pub use events::for_each_between;
pub use session::{ask_view, orphaned_view, relative_view, session_view, statistics_view};
pub use transcript::found_view;
pub use work::{command_view, eval_view, merge_view, work_view};
