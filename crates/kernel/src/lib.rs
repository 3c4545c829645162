//! The worker protocol and its transports; F# kernels, found, installed and built; Jupyter kernels.
//!
//! [`worker::launch`] starts a worker of any language and gives it to the engine as a runner. What is particular to F# stands in
//! [`fsharp`], what is of Jupyter's in [`jupyter`]; what every kind of runner needs of processes and of installing is in [`process`], [`command`], [`folder`] and
//! [`download`]. The contract with workers is `docs/worker-protocol.md`; the F# worker itself is `kernels/fsharp`.

mod building;
mod channel;
pub mod command;
pub mod download;
pub mod folder;
pub mod fsharp;
pub mod jupyter;
mod overflow;
mod pipe;
pub mod process;
mod protocol;
mod startup_context;
mod text;
pub mod worker;

pub use building::Builder;
pub use process::Launch;
pub use startup_context::{OpenedNames, Project, ShadowCopy, StartupContext};
