//! What clients see of sessions, evals and errors, whatever the protocol.

pub mod agent;
mod application;
mod ask;
mod command;
mod error;
mod eval;
mod lineage;
mod merge;
mod notebook;
mod session;
mod startup;
mod statistics;
mod transcript;

pub use self::application::ApplicationView;
pub use self::ask::AskView;
pub use self::command::{CommandState, CommandView};
pub use self::error::ErrorView;
pub use self::eval::{DisplayView, EvalView, EvalViewBuilder};
pub use self::lineage::{MergedEntries, RelativeView};
pub use self::merge::{BroughtView, MergeView, RefusedView};
pub use self::notebook::{CellView, NotebookView};
pub use self::session::{Orphaned, SessionView, WorkerView};
pub use self::startup::StartupView;
pub use self::statistics::StatisticsView;
pub use self::transcript::{EntryView, FoundView, LabelView};
