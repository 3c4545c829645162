//! The worker protocol and its transports; F# kernels, found, installed and built.
//!
//! [`worker::launch`] starts a worker of any language and gives it to the engine as a runner. What is particular to F# stands in
//! [`fsharp`]. The contract with workers is `docs/worker-protocol.md`; the F# worker itself is `kernels/fsharp`.

mod channel;
pub mod fsharp;
mod process;
mod protocol;
mod text;
pub mod worker;

pub use process::Launch;
