//! Jupyter kernels: found by their kernelspecs, started, and spoken to over ZeroMQ.
//!
//! [`kernelspec`] says which there are, [`launch`] starts one and gives it to the engine as a runner. [`wire`] and [`connection`] know
//! messages and sockets from both sides: a front end's here, a kernel's where Mainstay itself is one. Source: the messaging protocol of
//! Jupyter, version 5.4 (<https://jupyter-client.readthedocs.io/en/stable/messaging.html>), and JEP 65.

pub mod comm;
pub mod connection;
mod content;
mod execution;
mod handle;
pub mod install;
mod interrupt;
mod keeper;
pub mod kernelspec;
mod launch;
mod line;
pub mod places;
mod published;
mod python;
mod reader;
mod sockets;
pub mod wire;

pub use keeper::SnapshotPlace;
pub use kernelspec::{Kernelspec, Kernelspecs, Places, environment_of};
pub use launch::{Start, launch};
