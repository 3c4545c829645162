//! Coding agents as runners of sessions. [`pi`] is the one there is: a child process that is spoken to over its standard input
//! and output. How processes are started and killed is shared with kernels, and stands in `mainstay_kernel`.

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod pi;
