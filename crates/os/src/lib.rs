//! What Mainstay asks of the operating system.
//!
//! [`process`] starts a process in a group of its own and kills it with all that it started; [`detached`] starts one that is nobody's child.
//! [`command`] runs a program to its end, and [`download`] one that fills a folder. [`folder`] has folders that come to be whole or not at
//! all. [`lines`] go over the pipes of a process, and by [`handover`] a listener outlives the program that had it.
//! [`system`] asks about processes that are not ours to start; all that is Linux's alone stands there, each with a fallback for other
//! systems.
//!
//! Absent on purpose: anything that knows of sessions, runners or kernels.

pub mod command;
pub mod detached;
pub mod download;
pub mod folder;
pub mod handover;
pub mod lines;
pub mod output_pipe;
pub mod process;
pub mod system;
mod text;
