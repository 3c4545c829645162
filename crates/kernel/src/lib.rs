//! The worker protocol and its transports; F# kernels, found, installed and built; Jupyter kernels.
//!
//! [`worker::launch`] starts a worker of any language and gives it to the engine as a runner. What is particular to F# stands in
//! [`fsharp`], what is of Jupyter's in [`jupyter`]; how a runner's process is told of to the engine in [`runner_process`]; processes, folders and downloads themselves are in `mainstay-os`.
//! The contract with workers is `docs/worker-protocol.md`; the F# worker itself is `kernels/fsharp`.

mod building;
mod channel;
pub mod fsharp;
pub mod jupyter;
mod kernel_files;
mod overflow;
mod protocol;
pub mod runner_process;
mod startup_context;
pub mod worker;

pub use building::Builder;
pub use kernel_files::KernelFiles;
pub use startup_context::{OpenedNames, Project, ShadowCopy, StartupContext};
