//! The daemon: one process that holds the store, the sessions and the listeners.
//!
//! [`serve`] is its whole life. [`background`] starts it apart from the process that wants it, [`supervisor`] is the process that starts it again
//! after a crash, and [`supervisor_lock`] says which process that is. [`RunnerSettings`] makes the factories of runners, which `fsharp`,
//! `jupyter` and `pi` have; `kinds` and `kind_rules` say what this machine has for each kind of session, `watcher` watches files, and
//! `telemetry` exports traces and metrics.
//!
//! Nothing here connects to a daemon, and nothing is printed but announcements: what people read is the program's.

mod announcement;
pub mod background;
mod builds;
mod certificates;
mod compilers;
mod default_kind;
mod fsharp;
mod jupyter;
mod kept_projects;
mod kind_rules;
mod kinds;
mod listeners;
mod logging;
mod pi;
mod projects;
mod runners;
#[cfg(feature = "failpoints")]
mod scripted;
mod serve;
pub mod shims;
mod standby;
pub mod supervisor;
pub mod supervisor_lock;
mod telemetry;
mod watcher;

pub use self::kept_projects::assemblies_of;
pub use self::runners::RunnerSettings;
pub use self::serve::{Ended, ServeOptions, serve};
