//! The files that kernels are given. The program carries them, and says here how they are read: so a change of one compiles nothing of this crate.

use std::borrow::Cow;

/// Reads a text in the folder `kernels` of the source tree, by its path there; none where there is no such file.
pub type KernelFiles = fn(path: &str) -> Option<Cow<'static, str>>;
