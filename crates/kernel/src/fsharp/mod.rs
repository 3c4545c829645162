//! The F# kernel, before it runs: an SDK is found (`discover`) or installed (`install`), the worker is built with it
//! (`build`) and kept, and the whole can be examined (`doctor`). Whether code is finished is said without one (`completeness`).
//! Nothing here starts a worker or speaks its protocol.

mod build;
mod cache;
mod completeness;
mod diagnostics;
mod discover;
mod doctor;
mod feed;
#[cfg(test)]
mod feed_server;
mod global_json;
mod host;
mod icu;
pub(crate) mod inspection;
mod install;
mod microsoft;
mod options;
mod prebuilt;
mod progress;
pub mod project;
mod recipe;
mod rid;
mod sdk;
mod sdk_3_1;
mod selection;
mod sources;
#[cfg(test)]
pub(crate) mod testing;
mod tokens;
mod version;

pub use build::{BuildError, build, is_built};
pub use cache::{WorkerProgram, WorkerState};
pub use completeness::{indentation, needs_more};
pub(crate) use diagnostics::DebuggerPipes;
pub use diagnostics::{SWITCHES as DIAGNOSTICS_SWITCHES, admits_debuggers, opened_to};
pub use discover::{FoundSdk, NoSdk, Search, choose, discover};
pub use doctor::{Problem, Report, Tool, can_download, examine};
pub use feed::{FEED, FeedError};
pub use install::{Attempt, Failure, InstallError, install};
pub use options::check_options;
pub use progress::{OnProgress, Progress, Source};
pub use sdk::{CompilerLibrary, Origin, Parts, Runtime, Sdk, Unusable};
pub use selection::{Code, Selected, select};
pub use sources::MissingSource;
pub use version::{InvalidVersion, SdkVersion};

use crate::kernel_files::KernelFiles;

/// Tells a worker how long applications may take to start and to stop, in milliseconds, and whether their pages reload: `30000;10000;true`.
pub const APPLICATIONS_VARIABLE: &str = "MAINSTAY_APPLICATIONS";

/// No worker can be started.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// There is no SDK to build it with.
    #[error(transparent)]
    NoSdk(#[from] NoSdk),
    /// It could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// How to start an F# worker on this machine: the preferred SDK is chosen, and the worker built with it if need be. `files` has the worker's
/// sources.
///
/// # Errors
/// [`PrepareError`]; its text says what to do, which is `mainstay kernel install fsharp` where there is no SDK.
pub async fn prepare(
    search: &Search,
    files: KernelFiles,
    progress: OnProgress<'_>,
) -> Result<WorkerProgram, PrepareError> {
    let sdk = choose(search)?;
    Ok(build(&search.home, &sdk, files, progress).await?)
}
